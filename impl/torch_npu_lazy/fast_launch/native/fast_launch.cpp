// The part of planned fast launch that runs at every launch.
//
// A `CallSite` stands in generated code where `KERNEL.run` stood. While what it was armed with still holds it converts the
// arguments, writes them over the image of the last launch and hands the launch to torch_npu's operator command. Everything else
// goes to `enter`, which is Python.
//
// Invariants:
// - Arguments are converted, and everything that can be refused is, before a launch is handed over; a refusal is a word, and `enter`
//   decides. What fails afterwards is raised, never repeated.
// - A hit looks nothing up by name and makes no Python object.
// - All of it runs under the GIL, but `Launch::operator()`, which runs on torch_npu's thread, and touches C++ alone.

#include <torch/csrc/autograd/python_variable.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <acl/acl_rt.h>
#include <profiling/aprof_pub.h>
#include <torch_npu/csrc/core/npu/NPUStream.h>
#include <torch_npu/csrc/framework/OpCommand.h>

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace py = pybind11;

namespace {

constexpr int64_t kMostBlocks = 65535; // the hardware's count has 16 bits

PyObject* g_error = nullptr; // FastLaunchError
std::atomic<bool> g_forked{false};
std::atomic<bool> g_profiling{false};

// --- what the runtime has ---

struct Runtime {
    using KernelLaunch = int32_t (*)(const void*, uint32_t, void*, uint32_t, void*, void*);
    using HostArgsLaunch = aclError (*)(void*, uint32_t, aclrtStream, aclrtLaunchKernelCfg*, void*, size_t, void*, size_t);
    using SyncAddress = int32_t (*)(uint64_t*, uint32_t*);
    using RegisterProfiler = int32_t (*)(uint32_t, int32_t (*)(uint32_t, void*, uint32_t));

    KernelLaunch kernel_launch = find<KernelLaunch>("rtKernelLaunch");
    HostArgsLaunch host_args_launch = find<HostArgsLaunch>("aclrtLaunchKernelWithHostArgs");
    SyncAddress sync_address = find<SyncAddress>("rtGetC2cCtrlAddr");
    RegisterProfiler register_profiler = find<RegisterProfiler>("MsprofRegisterCallback");

    // torch_npu has loaded the runtime with local symbols on some releases; then its library is asked by name.
    template <typename Function>
    static Function find(const char* name) {
        for (const char* library : {"", "libruntime.so", "libascendcl.so", "libprofapi.so"}) {
            void* handle = *library ? ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD) : RTLD_DEFAULT;
            if (*library && !handle) continue;
            if (void* found = ::dlsym(handle, name)) return reinterpret_cast<Function>(found);
        }
        return nullptr;
    }
};

Runtime& runtime() {
    static Runtime found;
    return found;
}

// --- plans ---

enum class Kind : uint8_t { tensor, i32, i64, u32, u64, f32, f64, boolean };

// An argument of the caller that goes into the buffer.
struct Slot {
    Kind kind;
    uint16_t source;
    uint32_t offset;
};

// One step of the computation of a grid's dimension, on a stack of integers.
struct Step {
    enum Code : uint8_t { constant, argument, add, subtract, multiply, floor_divide, modulo, negate, least, greatest } code;
    int64_t value;
};
constexpr size_t kDeepest = 16;

struct Plan;

// A launch that is under way: the buffer, and where to. Used again and again, so that what never changes is written once.
struct Launch {
    Plan* plan;
    Launch* next;
    aclrtStream stream;
    uint32_t blocks;
    alignas(8) unsigned char args[1];
};

struct Plan {
    std::string name;
    const void* function;
    int device;
    int64_t dynamic_memory; // bytes that a SIMT kernel is given, -1 for any other
    std::vector<unsigned char> image;
    std::vector<Slot> slots;
    std::vector<Step> grid[3];
    size_t grid_offset;
    uint32_t blocks = 0; // of a grid that never changes, else 0
    size_t arguments;    // that a call gives
    PyObject* owner;     // what keeps the kernel loaded
    aclrtStream last_stream = nullptr;
    std::atomic<uint32_t> users{1};
    Launch* ready = nullptr;               // taken under the GIL
    std::atomic<Launch*> returned{nullptr}; // put back by whoever has launched

    Launch* take() {
        if (!ready) ready = returned.exchange(nullptr, std::memory_order_acquire);
        Launch* launch = ready;
        if (launch) {
            ready = launch->next;
        } else {
            launch = static_cast<Launch*>(::operator new(offsetof(Launch, args) + image.size() + 8));
            launch->plan = this;
            std::memcpy(launch->args, image.data(), image.size());
        }
        users.fetch_add(1, std::memory_order_relaxed);
        return launch;
    }

    // One that was taken and not handed over; under the GIL.
    void put_back(Launch* launch) {
        launch->next = ready;
        ready = launch;
        users.fetch_sub(1, std::memory_order_relaxed);
    }

    // One that has been launched.
    void give_back(Launch* launch) {
        Launch* head = returned.load(std::memory_order_relaxed);
        do launch->next = head;
        while (!returned.compare_exchange_weak(head, launch, std::memory_order_release, std::memory_order_relaxed));
        leave();
    }

    void leave();

    ~Plan() {
        for (Launch* list : {ready, returned.load(std::memory_order_acquire)})
            while (list) {
                Launch* next = list->next;
                ::operator delete(list);
                list = next;
            }
    }
};

// Plans whose last user was a thread without the GIL: what they own is let go of later.
struct Graveyard {
    std::mutex mutex;
    std::vector<Plan*> plans;
    std::atomic<bool> filled{false};

    void add(Plan* plan) {
        std::lock_guard lock(mutex);
        plans.push_back(plan);
        filled.store(true, std::memory_order_release);
    }

    void empty() {
        if (!filled.load(std::memory_order_acquire)) return;
        std::vector<Plan*> gone;
        {
            std::lock_guard lock(mutex);
            gone.swap(plans);
            filled.store(false, std::memory_order_release);
        }
        for (Plan* plan : gone) {
            Py_XDECREF(plan->owner);
            delete plan;
        }
    }
};

Graveyard& graveyard() {
    static auto* kept = new Graveyard; // torch_npu's threads may outlive the module
    return *kept;
}

void Plan::leave() {
    if (users.fetch_sub(1, std::memory_order_acq_rel) == 1) graveyard().add(this);
}

// What torch_npu's queue keeps of a launch: one pointer, which std::function stores in place. Runs without the GIL. torch_npu runs it
// again after an error for want of memory, so only success gives the buffer back.
struct Handler {
    Launch* launch;

    int operator()() const {
        Plan& plan = *launch->plan;
        int result;
        if (plan.dynamic_memory < 0 && runtime().kernel_launch) {
            result = runtime().kernel_launch(plan.function, launch->blocks, launch->args, static_cast<uint32_t>(plan.image.size()),
                                             nullptr, launch->stream);
        } else {
            aclrtLaunchKernelAttr attribute{};
            aclrtLaunchKernelCfg config{&attribute, 0};
            if (plan.dynamic_memory >= 0) {
                attribute.id = static_cast<aclrtLaunchKernelAttrId>(2); // the dynamic part of on-chip memory; its name has changed
                std::memcpy(&attribute.value, &plan.dynamic_memory, sizeof(uint32_t));
                config.numAttrs = 1;
            }
            result = runtime().host_args_launch(const_cast<void*>(plan.function), launch->blocks, launch->stream, &config, launch->args,
                                                plan.image.size(), nullptr, 0);
        }
        if (result == 0) plan.give_back(launch);
        return result;
    }
};

// Why this call is not for the plan; nullptr if it is.
using Refusal = const char*;

Refusal integer(PyObject* value, Kind kind, unsigned char* to) {
    if (!PyLong_CheckExact(value)) return "argument";
    if (kind == Kind::u64 || kind == Kind::u32) {
        const unsigned long long number = PyLong_AsUnsignedLongLong(value);
        if (number == static_cast<unsigned long long>(-1) && PyErr_Occurred()) {
            PyErr_Clear();
            return "argument";
        }
        if (kind == Kind::u32) {
            if (number > std::numeric_limits<uint32_t>::max()) return "argument";
            const auto small = static_cast<uint32_t>(number);
            std::memcpy(to, &small, sizeof small);
        } else {
            std::memcpy(to, &number, sizeof number);
        }
        return nullptr;
    }
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return "argument";
    if (kind == Kind::i32) {
        if (number < std::numeric_limits<int32_t>::min() || number > std::numeric_limits<int32_t>::max()) return "argument";
        const auto small = static_cast<int32_t>(number);
        std::memcpy(to, &small, sizeof small);
    } else {
        std::memcpy(to, &number, sizeof number);
    }
    return nullptr;
}

Refusal convert(const Plan& plan, PyObject* value, Kind kind, unsigned char* to) {
    switch (kind) {
    case Kind::tensor: {
        if (!THPVariable_CheckExact(value)) return "argument"; // None, a number or a subclass with a data_ptr of its own
        const at::Tensor& tensor = THPVariable_Unpack(value);
        if (!tensor.is_privateuseone() || tensor.device().index() != plan.device || !tensor.has_storage()) return "argument";
        void* address = nullptr;
        try {
            address = tensor.data_ptr();
        } catch (const std::exception&) {
            return "argument"; // the slow path asks the same, and says what is wrong
        }
        std::memcpy(to, &address, sizeof address);
        return nullptr;
    }
    case Kind::f32:
    case Kind::f64: {
        if (!PyFloat_CheckExact(value)) return "argument";
        const double number = PyFloat_AS_DOUBLE(value);
        if (kind == Kind::f32) {
            const auto small = static_cast<float>(number);
            std::memcpy(to, &small, sizeof small);
        } else {
            std::memcpy(to, &number, sizeof number);
        }
        return nullptr;
    }
    case Kind::boolean: {
        if (!PyBool_Check(value)) return "argument";
        const int32_t number = value == Py_True;
        std::memcpy(to, &number, sizeof number);
        return nullptr;
    }
    default: return integer(value, kind, to);
    }
}

int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// The dimension as Python computes it. What does not fit 64 bits, or divides by zero, is refused.
bool compute(const std::vector<Step>& steps, PyObject* const* args, int64_t& out) {
    int64_t stack[kDeepest];
    size_t height = 0;
    for (const Step& step : steps) {
        switch (step.code) {
        case Step::constant: stack[height++] = step.value; continue;
        case Step::argument: {
            PyObject* value = args[step.value];
            if (!PyLong_CheckExact(value)) return false;
            int overflow = 0;
            stack[height++] = PyLong_AsLongLongAndOverflow(value, &overflow);
            if (overflow) return false;
            continue;
        }
        case Step::negate:
            if (__builtin_sub_overflow(int64_t{0}, stack[height - 1], &stack[height - 1])) return false;
            continue;
        default: break;
        }
        const int64_t b = stack[--height], a = stack[height - 1];
        int64_t& result = stack[height - 1];
        switch (step.code) {
        case Step::add:
            if (__builtin_add_overflow(a, b, &result)) return false;
            break;
        case Step::subtract:
            if (__builtin_sub_overflow(a, b, &result)) return false;
            break;
        case Step::multiply:
            if (__builtin_mul_overflow(a, b, &result)) return false;
            break;
        case Step::floor_divide:
        case Step::modulo:
            if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return false;
            result = step.code == Step::floor_divide ? floor_divide(a, b) : a - floor_divide(a, b) * b;
            break;
        case Step::least: result = std::min(a, b); break;
        default: result = std::max(a, b); break;
        }
    }
    out = stack[0];
    return true;
}

// Whether the three dimensions make a grid; if so the number of blocks.
bool blocks_of(const int64_t (&grid)[3], uint32_t& blocks) {
    int64_t product = 1;
    for (const int64_t size : grid) {
        if (size <= 0 || size > std::numeric_limits<int32_t>::max()) return false;
        product *= size;
        if (product > kMostBlocks) return false;
    }
    blocks = static_cast<uint32_t>(product);
    return true;
}

// --- arming ---

// Dictionaries that must not have changed. CPython counts the changes of a dictionary (up to 3.11), or tells of them.
#if PY_VERSION_HEX < 0x030C0000
struct Watched {
    PyObject* dict;
    uint64_t version;
    bool holds() const { return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag == version; }
};
Watched watched(PyObject* dict) {
    return {Py_NewRef(dict), reinterpret_cast<PyDictObject*>(dict)->ma_version_tag};
}
#else
uint64_t g_changes = 0; // of any watched dictionary; under the GIL
int g_watcher = -1;
int on_change(PyDict_WatchEvent, PyObject*, PyObject*, PyObject*) {
    ++g_changes;
    return 0;
}
struct Watched {
    PyObject* dict;
    uint64_t version;
    bool holds() const { return g_changes == version; }
};
Watched watched(PyObject* dict) {
    if (g_watcher < 0) g_watcher = PyDict_AddWatcher(on_change);
    if (g_watcher < 0 || PyDict_Watch(g_watcher, dict) < 0) throw py::error_already_set();
    return {Py_NewRef(dict), g_changes};
}
#endif

// What has been looked at before a site is armed, as it was then.
class Guard {
  public:
    Guard() = default;
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() {
        for (const auto& each : dicts_) Py_DECREF(each.dict);
        for (PyObject* list : empty_) Py_DECREF(list);
    }
    // What must stay as it is: a dictionary, or an object or class with one.
    void watch(py::handle object) {
        PyObject* dict = object.ptr();
        py::object own;
        if (PyType_Check(dict)) {
            dict = reinterpret_cast<PyTypeObject*>(dict)->tp_dict;
        } else if (!PyDict_CheckExact(dict)) {
            own = py::getattr(object, "__dict__");
            dict = own.ptr();
        }
        if (!PyDict_CheckExact(dict)) throw py::type_error("what is watched needs a dictionary of its own");
        dicts_.push_back(watched(dict));
    }
    // A list that must stay empty.
    void watch_empty(py::list list) { empty_.push_back(list.inc_ref().ptr()); }

    bool holds() const {
        for (const auto& each : dicts_)
            if (!each.holds()) return false;
        for (PyObject* list : empty_)
            if (PyList_GET_SIZE(list) != 0) return false;
        return !g_forked.load(std::memory_order_relaxed) && !g_profiling.load(std::memory_order_relaxed);
    }

  private:
    std::vector<Watched> dicts_;
    std::vector<PyObject*> empty_;
};

struct PlanHandle {
    Plan* plan;
    explicit PlanHandle(Plan* made) : plan(made) {}
    PlanHandle(const PlanHandle&) = delete;
    ~PlanHandle() {
        plan->leave();
        graveyard().empty();
    }
};

// What a site was armed with. Lives as long as a call uses it, whatever becomes of the site meanwhile.
struct Armed {
    unsigned holders = 1; // under the GIL
    PyObject* kernel;     // whom the site is armed for
    py::object guard_object, plan_object;
    const Guard* guard;
    Plan* plan = nullptr;
    PyObject* direct = nullptr; // what is called instead of a plan

    void leave() {
        if (--holders) return;
        Py_DECREF(kernel);
        Py_XDECREF(direct);
        delete this;
    }
};

struct CallSite {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* enter;
    Armed* armed;
    uint64_t planned, direct;
};

PyObject* g_stream = nullptr; // the name of the keyword

// Launches the plan. `args` are the kernel's. Returns -1 with an error set, 1 for a refusal, else 0.
int launch(Plan& plan, PyObject* const* args, size_t count, PyObject* stream_object, Refusal& why) {
    if (count != plan.arguments) return why = "argument count", 1;
    if (!PyLong_CheckExact(stream_object)) return why = "stream", 1;
    void* const stream = PyLong_AsVoidPtr(stream_object);
    if (!stream) {
        PyErr_Clear();
        return why = "stream", 1;
    }
    int64_t grid[3];
    uint32_t blocks = plan.blocks;
    if (!blocks) {
        for (int i = 0; i < 3; ++i)
            if (!compute(plan.grid[i], args, grid[i])) return why = "grid", 1;
        if (!blocks_of(grid, blocks)) return why = "grid", 1;
    }
    try {
        if (stream != plan.last_stream) {
            // The task queue is the current stream's: a launch elsewhere is for others to order.
            if (c10_npu::getCurrentNPUStream(static_cast<c10::DeviceIndex>(plan.device)).stream(false) != stream) return why = "stream", 1;
            plan.last_stream = stream;
        }
        Launch* const made = plan.take();
        for (const Slot& slot : plan.slots)
            if (Refusal refused = convert(plan, args[slot.source], slot.kind, made->args + slot.offset)) {
                plan.put_back(made);
                return why = refused, 1;
            }
        if (!plan.blocks)
            for (int i = 0; i < 3; ++i) {
                const auto size = static_cast<int32_t>(grid[i]);
                std::memcpy(made->args + plan.grid_offset + 4 * i, &size, sizeof size);
            }
        made->stream = stream;
        made->blocks = blocks;
        at_npu::native::OpCommand::RunOpApiV2(plan.name, Handler{made});
    } catch (const std::exception& error) {
        // The buffer stays with whoever has it: torch_npu does not say whether the launch is in its queue.
        if (!PyErr_Occurred())
            PyErr_Format(g_error, "kernel %s was handed over for its launch, and is not launched a second time: %s", plan.name.c_str(),
                         error.what());
        return -1;
    }
    return 0;
}

PyObject* enter(CallSite* site, Refusal why, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    graveyard().empty();
    if (count < 1) return PyErr_Format(PyExc_TypeError, "a call site takes the kernel as its first argument");
    py::object given = py::reinterpret_steal<py::object>(PyTuple_New(count - 1));
    if (!given) return nullptr;
    for (Py_ssize_t i = 1; i < count; ++i) PyTuple_SET_ITEM(given.ptr(), i - 1, Py_NewRef(args[i]));
    py::object keywords = py::reinterpret_steal<py::object>(PyDict_New());
    if (!keywords) return nullptr;
    for (Py_ssize_t i = 0, all = names ? PyTuple_GET_SIZE(names) : 0; i < all; ++i)
        if (PyDict_SetItem(keywords.ptr(), PyTuple_GET_ITEM(names, i), args[count + i]) < 0) return nullptr;
    py::object reason = py::reinterpret_steal<py::object>(why ? PyUnicode_FromString(why) : Py_NewRef(Py_None));
    if (!reason) return nullptr;
    return PyObject_CallFunctionObjArgs(site->enter, reason.ptr(), args[0], given.ptr(), keywords.ptr(), nullptr);
}

PyObject* call(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
    auto* site = reinterpret_cast<CallSite*>(self);
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    Armed* const armed = site->armed;
    Refusal why = nullptr;
    if (armed && count > 0 && args[0] == armed->kernel && names && PyTuple_GET_SIZE(names) == 1 &&
        PyTuple_GET_ITEM(names, 0) == g_stream && armed->guard->holds()) {
        ++armed->holders;
        int result = 0;
        PyObject* returned = nullptr;
        if (armed->plan) {
            result = launch(*armed->plan, args + 1, static_cast<size_t>(count - 1), args[count], why);
            if (result == 0) {
                ++site->planned;
                returned = Py_NewRef(Py_None);
            }
        } else {
            ++site->direct;
            returned = PyObject_Vectorcall(armed->direct, args + 1, static_cast<size_t>(count - 1), names);
        }
        armed->leave();
        if (result != 1) return returned;
    }
    return enter(site, why, args, count, names);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    auto* site = reinterpret_cast<CallSite*>(self);
    Py_VISIT(site->enter);
    return 0;
}

int clear(PyObject* self) {
    auto* site = reinterpret_cast<CallSite*>(self);
    Py_CLEAR(site->enter);
    if (Armed* armed = std::exchange(site->armed, nullptr)) armed->leave();
    return 0;
}

void dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject g_site_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

CallSite& site_of(py::handle object) {
    if (Py_TYPE(object.ptr()) != &g_site_type) throw py::type_error("not a call site");
    return *reinterpret_cast<CallSite*>(object.ptr());
}

py::object make_site(py::object enter_with) {
    auto* site = PyObject_GC_New(CallSite, &g_site_type);
    if (!site) throw py::error_already_set();
    site->vectorcall = call;
    site->enter = enter_with.release().ptr();
    site->armed = nullptr;
    site->planned = site->direct = 0;
    PyObject_GC_Track(site);
    return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(site));
}

void arm(py::handle object, py::object kernel, py::object guard, py::object plan, py::object direct) {
    CallSite& site = site_of(object);
    auto* made = new Armed;
    made->kernel = kernel.release().ptr();
    made->guard = &guard.cast<const Guard&>();
    made->guard_object = std::move(guard);
    if (!plan.is_none()) {
        made->plan = plan.cast<PlanHandle&>().plan;
        made->plan_object = std::move(plan);
    } else {
        made->direct = direct.release().ptr();
    }
    if (Armed* before = std::exchange(site.armed, made)) before->leave();
}

void disarm(py::handle object) {
    if (Armed* before = std::exchange(site_of(object).armed, nullptr)) before->leave();
}

// Launches at once. Returns why the call is not for the plan, or None. Raises FastLaunchError for what failed behind that point.
py::object launch_now(PlanHandle& handle, py::tuple args, py::object stream) {
    Refusal why = nullptr;
    const int result = launch(*handle.plan, &PyTuple_GET_ITEM(args.ptr(), 0), args.size(), stream.ptr(), why);
    if (result < 0) throw py::error_already_set();
    return result ? py::object(py::str(why)) : py::object(py::none());
}

using Program = std::vector<std::pair<int, int64_t>>;

std::unique_ptr<PlanHandle> make_plan(const std::string& name, uint64_t function, int device, const std::string& image,
                                      const std::vector<std::tuple<int, size_t, size_t>>& slots, const std::vector<Program>& grid,
                                      size_t grid_offset, size_t arguments, int64_t dynamic_memory, py::object owner) {
    if (!function) throw py::value_error("the kernel's handle is null");
    if (grid.size() != 3 || grid_offset + 12 > image.size()) throw py::value_error("the grid lies outside the buffer");
    if (image.size() > std::numeric_limits<uint32_t>::max()) throw py::value_error("the buffer is too large");
    if (dynamic_memory > std::numeric_limits<uint32_t>::max()) throw py::value_error("the dynamic memory does not fit 32 bits");
    if (!(dynamic_memory < 0 ? runtime().kernel_launch || runtime().host_args_launch : runtime().host_args_launch != nullptr))
        throw std::runtime_error("the runtime has no function that launches this kernel");
    auto plan = std::make_unique<Plan>();
    plan->name = name;
    plan->function = reinterpret_cast<const void*>(function);
    plan->device = device;
    plan->dynamic_memory = dynamic_memory;
    plan->image.assign(image.begin(), image.end());
    plan->grid_offset = grid_offset;
    plan->arguments = arguments;
    for (const auto& [kind, source, offset] : slots) {
        if (source >= arguments || offset + 8 > image.size() + 4 || kind < 0 || kind > static_cast<int>(Kind::boolean))
            throw py::value_error("an argument lies outside the call or the buffer");
        plan->slots.push_back({static_cast<Kind>(kind), static_cast<uint16_t>(source), static_cast<uint32_t>(offset)});
    }
    int64_t sizes[3];
    bool fixed = true;
    for (int i = 0; i < 3; ++i) {
        size_t height = 0;
        for (const auto& [code, value] : grid[i]) {
            const bool pushes = code == Step::constant || code == Step::argument;
            height += pushes ? 1 : 0;
            if (code < 0 || code > Step::greatest || height > kDeepest || (code == Step::argument && (value < 0 || size_t(value) >= arguments)) ||
                height < (pushes || code == Step::negate ? 1u : 2u))
                throw py::value_error("the grid's computation is malformed");
            if (!pushes && code != Step::negate) --height;
            fixed &= code != Step::argument;
            plan->grid[i].push_back({static_cast<Step::Code>(code), value});
        }
        if (height != 1) throw py::value_error("the grid's computation is malformed");
        if (fixed) fixed = compute(plan->grid[i], nullptr, sizes[i]);
    }
    if (fixed) {
        if (!blocks_of(sizes, plan->blocks)) throw py::value_error("the grid is no grid, whatever the arguments");
        for (int i = 0; i < 3; ++i) {
            const auto size = static_cast<int32_t>(sizes[i]);
            std::memcpy(plan->image.data() + grid_offset + 4 * i, &size, sizeof size);
        }
    }
    plan->owner = owner.release().ptr();
    return std::make_unique<PlanHandle>(plan.release());
}

uint64_t sync_address() {
    uint64_t address = 0;
    uint32_t bytes = 0;
    if (!runtime().sync_address) throw std::runtime_error("the runtime has no rtGetC2cCtrlAddr");
    if (const int result = runtime().sync_address(&address, &bytes))
        throw std::runtime_error("rtGetC2cCtrlAddr failed: " + std::to_string(result));
    if (!address) throw std::runtime_error("rtGetC2cCtrlAddr gave no address");
    return address;
}

// CANN's profiler starts or stops. While it takes kernels, each of Triton's launchers reports its launches, and this one cannot.
int32_t on_profiling(uint32_t type, void* data, uint32_t size) {
    if (type != PROF_CTRL_SWITCH || !data || size < offsetof(MsprofCommandHandle, cacheFlag)) return 0;
    const uint32_t command = static_cast<const MsprofCommandHandle*>(data)->type;
    if (command == PROF_COMMANDHANDLE_TYPE_START) g_profiling.store(true);
    if (command == PROF_COMMANDHANDLE_TYPE_STOP) g_profiling.store(false);
    return 0;
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    g_site_type.tp_name = "torch_npu_lazy.fast_launch.CallSite";
    g_site_type.tp_doc = "Launches a compiled kernel; called as CallSite(kernel, *arguments, stream=stream).";
    g_site_type.tp_basicsize = sizeof(CallSite);
    g_site_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
    g_site_type.tp_vectorcall_offset = offsetof(CallSite, vectorcall);
    g_site_type.tp_call = PyVectorcall_Call;
    g_site_type.tp_traverse = traverse;
    g_site_type.tp_clear = clear;
    g_site_type.tp_dealloc = dealloc;
    g_site_type.tp_free = PyObject_GC_Del;
    if (PyType_Ready(&g_site_type) < 0) throw py::error_already_set();
    g_stream = PyUnicode_InternFromString("stream");
    g_error = PyErr_NewExceptionWithDoc("torch_npu_lazy.fast_launch.FastLaunchError",
                                        "A launch that was handed over failed. It is not repeated: it may have run.", PyExc_RuntimeError,
                                        nullptr);
    if (!g_stream || !g_error) throw py::error_already_set();
    module.attr("FastLaunchError") = py::reinterpret_borrow<py::object>(g_error);
    module.attr("CallSite") = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(&g_site_type));

    py::class_<PlanHandle>(module, "Plan");
    py::class_<Guard>(module, "Guard")
        .def(py::init<>())
        .def("watch", &Guard::watch)
        .def("watch_empty", &Guard::watch_empty)
        .def("holds", &Guard::holds);
    module.def("make_site", make_site);
    module.def("arm", arm, py::arg("site"), py::arg("kernel"), py::arg("guard"), py::arg("plan") = py::none(),
               py::arg("direct") = py::none());
    module.def("disarm", disarm);
    module.def("launch", launch_now);
    module.def("counts", [](py::handle site) { return std::pair(site_of(site).planned, site_of(site).direct); });
    module.def("make_plan", make_plan);
    module.def("sync_address", sync_address);
    module.def("unusable", []() -> const char* {
        return g_forked.load() ? "a forked child" : g_profiling.load() ? "CANN's profiler" : nullptr;
    });

    ::pthread_atfork(nullptr, nullptr, [] { g_forked.store(true); });
    constexpr uint32_t kKernels = 8; // CANN's number for those who launch kernels
    if (runtime().register_profiler) runtime().register_profiler(kKernels, on_profiling);
}
