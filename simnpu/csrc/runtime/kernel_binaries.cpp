#include "kernel_binaries.h"

#include "calls.h"
#include "devices.h"
#include "errors.h"
#include "simnpu/core.h"

#include <runtime/runtime/rt.h>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

namespace simnpu {
namespace {

#if defined(__x86_64__)
constexpr unsigned kHostMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kHostMachine = EM_AARCH64;
#else
#error "which ELF machine is this?"
#endif

constexpr size_t kKeptFailures = 3;

struct Registry {
    std::shared_mutex mutex;
    std::unordered_map<const void*, std::shared_ptr<const Kernel>> stubs;
    std::deque<std::string> failures; // of loading, the latest last
};

Registry& registry() {
    static Registry& instance = *new Registry;
    return instance;
}

HandleTable<Binary>& binaries() {
    static HandleTable<Binary>& table = *new HandleTable<Binary>(0x57);
    return table;
}

HandleTable<const Kernel>& functions() {
    static HandleTable<const Kernel>& table = *new HandleTable<const Kernel>(0x58);
    return table;
}

// Triton prints that a kernel could not be loaded and goes on with a null stub, so that the launch is the first to tell the
// program. It needs the reason.
aclError remembered(aclError result) {
    if (result == ACL_SUCCESS || broken_by_fork()) return result;
    auto& all = registry();
    std::unique_lock lock(all.mutex);
    if (all.failures.size() == kKeptFailures) all.failures.pop_front();
    all.failures.push_back(thread_errors().text);
    return result;
}

std::string path_of(int fd) {
    return "/proc/self/fd/" + std::to_string(fd);
}

// Why the bytes are no shared object for this host, empty if they are one. The loader itself would crash on a shortened file.
std::string unfit(const void* data, size_t size) {
    Elf64_Ehdr header;
    if (size < sizeof header || std::memcmp(data, ELFMAG, SELFMAG) != 0) {
        char start[16] = "";
        for (size_t i = 0; i < std::min<size_t>(size, 4); ++i)
            std::snprintf(start + 3 * i, 4, "%02x ", static_cast<const unsigned char*>(data)[i]);
        return "it is no ELF file (" + std::to_string(size) + " bytes that begin with " + start + ")";
    }
    std::memcpy(&header, data, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kHostMachine) {
        std::string what = "it is code for machine " + std::to_string(header.e_machine) + ", not for this host's " +
                           std::to_string(kHostMachine) + ": the simulated NPU runs what its own bishengir-compile makes";
        // Code of a real NPU that a library brings along: the generator dvm, for one, keeps the error to itself.
        tell("a kernel's binary cannot be loaded: " + what);
        return what;
    }
    if (header.e_type != ET_DYN) return "it is no shared object (ELF type " + std::to_string(header.e_type) + ")";
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > size ||
        header.e_phnum > (size - header.e_phoff) / sizeof(Elf64_Phdr))
        return "its program headers lie outside its " + std::to_string(size) + " bytes";
    for (size_t i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr part;
        std::memcpy(&part, static_cast<const char*>(data) + header.e_phoff + i * sizeof part, sizeof part);
        if (part.p_type == PT_LOAD && (part.p_offset > size || part.p_filesz > size - part.p_offset))
            return "it is cut off: " + std::to_string(size) + " bytes, " + std::to_string(part.p_offset + part.p_filesz) + " needed";
    }
    return {};
}

// Why the bytes are not what the compiler wrote, empty if they are.
std::string damage(const void* data, size_t size) {
    constexpr char kMark[] = SIMNPU_KERNEL_SEAL;
    simnpu_kernel_seal seal;
    const char* const remedy = ". Remedy: clear Triton's cache (TRITON_CACHE_DIR), so that it is compiled again";
    if (size < sizeof seal) return std::string("it has no checksum") + remedy;
    const auto* end = static_cast<const char*>(data) + size - sizeof seal;
    std::memcpy(&seal, end, sizeof seal);
    if (std::memcmp(seal.mark, kMark, sizeof kMark) != 0)
        return std::string("it does not end with a checksum: it was cut off, or made by an older simulator") + remedy;
    if (seal.checksum != simnpu_kernel_checksum(data, size - sizeof seal))
        return std::string("its checksum is wrong: the file was damaged after the compiler had written it") + remedy;
    return {};
}

// The first kernel that the bytes name, " of NAME", empty if they name none; they may be anything.
std::string named_in(const void* data, size_t size) {
    const std::string_view text(static_cast<const char*>(data), size);
    const std::string_view prefix = SIMNPU_KERNEL_PREFIX;
    const size_t at = text.find(prefix);
    if (at == std::string_view::npos) return {};
    size_t end = at + prefix.size();
    while (end < size && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
    return " of " + std::string(text.substr(at + prefix.size(), end - at - prefix.size()));
}

aclError load(const void* data, size_t size, void** handle) {
    if (!handle) return is_null("the handle pointer");
    *handle = nullptr;
    if (!data || size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "the binary is null or has 0 bytes");
    if (!current_context()) return thread_errors().last;
    std::string why = unfit(data, size);
    if (why.empty()) why = damage(data, size);
    if (!why.empty())
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the kernel's binary%s cannot be loaded: %s", named_in(data, size).c_str(),
                    why.c_str());
    auto binary = std::make_shared<Binary>();
    binary->fd = ::memfd_create("simnpu-kernel", MFD_CLOEXEC);
    size_t written = 0;
    while (binary->fd >= 0 && written < size) {
        const ssize_t more = ::write(binary->fd, static_cast<const char*>(data) + written, size - written);
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) break;
        written += static_cast<size_t>(more);
    }
    if (written < size)
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no room for the kernel's %zu bytes: %s", size, std::strerror(errno));
    // The file stays open: the loader knows what it has loaded by path, and a number used again would be taken for this binary.
    binary->library = ::dlopen(path_of(binary->fd).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!binary->library) return fail(ACL_ERROR_RT_PARAM_INVALID, "the kernel's binary cannot be loaded: %s", ::dlerror());
    *handle = binaries().add(std::move(binary));
    return ACL_SUCCESS;
}

aclError unload(void* handle) {
    const auto binary = binaries().take(handle);
    if (!binary) return fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no loaded binary (unloaded before, or never one)", handle);
    functions().take_if([&](const Kernel& kernel) { return kernel.binary == binary; });
    auto& all = registry();
    std::unique_lock lock(all.mutex);
    std::erase_if(all.stubs, [&](const auto& stub) { return stub.second->binary == binary; });
    return ACL_SUCCESS;
}

aclError kernel_in(void* handle, const char* name, std::shared_ptr<const Kernel>& out) {
    if (!name || !*name) return fail(ACL_ERROR_RT_PARAM_INVALID, "the kernel's name is null or empty");
    auto binary = binaries().find(handle);
    if (!binary)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: %p is no loaded binary (unloaded before, or never one)", name, handle);
    const std::string symbol = std::string(SIMNPU_KERNEL_PREFIX) + name;
    const auto* code = static_cast<const simnpu_kernel*>(::dlsym(binary->library, symbol.c_str()));
    if (!code) return fail(ACL_ERROR_RT_KERNEL_LOOKUP, "the binary has no kernel %s (no symbol %s)", name, symbol.c_str());
    if (code->abi != SIMNPU_KERNEL_ABI)
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "kernel %s was compiled for version %u of the kernels' interface, this simulator has %u. Remedy: clear Triton's "
                    "cache (TRITON_CACHE_DIR), so that it is compiled again",
                    name, code->abi, SIMNPU_KERNEL_ABI);
    if (!code->run || !code->finish || code->args_size < 8)
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "kernel %s is incomplete: its description lacks a function, or has %u bytes of arguments", name, code->args_size);
    out = std::make_shared<Kernel>(Kernel{std::move(binary), code, name});
    return ACL_SUCCESS;
}

std::shared_ptr<const Kernel> look_up(const void* stub_or_handle) {
    auto& all = registry();
    {
        std::shared_lock lock(all.mutex);
        if (auto at = all.stubs.find(stub_or_handle); at != all.stubs.end()) return at->second;
    }
    return functions().find(stub_or_handle);
}

} // namespace

Binary::~Binary() {
    if (library) {
        const std::string path = path_of(fd);
        ::dlclose(library);
        // Some libraries never go, those with unique symbols for example: then their path must not be used again.
        if (void* still = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
            ::dlclose(still);
            return;
        }
    }
    if (fd >= 0) ::close(fd);
}

std::shared_ptr<const Kernel> find_kernel(const void* stub_or_handle) {
    if (auto kernel = look_up(stub_or_handle)) return kernel;
    if (stub_or_handle) {
        fail(ACL_ERROR_RT_KERNEL_LOOKUP,
             "%p is no kernel: neither a stub given to rtFunctionRegister nor a handle of aclrtBinaryGetFunction, or its binary was "
             "unloaded", stub_or_handle);
        return nullptr;
    }
    std::string reasons;
    {
        auto& all = registry();
        std::shared_lock lock(all.mutex);
        for (auto at = all.failures.rbegin(); at != all.failures.rend(); ++at) reasons += (reasons.empty() ? "" : "; before that: ") + *at;
    }
    if (reasons.empty())
        fail(ACL_ERROR_RT_KERNEL_LOOKUP, "the kernel's stub is null, although no binary failed to load");
    else
        fail(ACL_ERROR_RT_KERNEL_LOOKUP, "the kernel's stub is null because its binary could not be loaded. What failed last: %s",
             reasons.c_str());
    return nullptr;
}

std::string kernel_name(const void* stub_or_handle) {
    const auto kernel = look_up(stub_or_handle);
    return kernel ? kernel->name : "?";
}

} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT rtError_t rtDevBinaryRegister(const rtDevBinary_t* binary, void** handle) {
    SIMNPU_CALL_OR(remembered(simnpu_call_.refusal()), "rtDevBinaryRegister", "bytes=%llu",
                   binary ? static_cast<unsigned long long>(binary->length) : 0);
    if (!binary) return remembered(is_null("the binary"));
    return remembered(load(binary->data, binary->length, handle));
}

SIMNPU_EXPORT rtError_t rtDevBinaryUnRegister(void* handle) {
    SIMNPU_CALL("rtDevBinaryUnRegister", "handle=%p", handle);
    return unload(handle);
}

SIMNPU_EXPORT rtError_t rtFunctionRegister(void* binary, const void* stub, const char*, const void* kernel_name, uint32_t) {
    const auto* name = static_cast<const char*>(kernel_name);
    SIMNPU_CALL_OR(remembered(simnpu_call_.refusal()), "rtFunctionRegister", "binary=%p stub=%p kernel=%s", binary, stub,
                   name ? name : "");
    if (!stub) return remembered(is_null("the stub"));
    std::shared_ptr<const Kernel> kernel;
    if (auto result = kernel_in(binary, name, kernel)) return remembered(result);
    auto& all = registry();
    std::unique_lock lock(all.mutex);
    const auto [at, added] = all.stubs.emplace(stub, kernel);
    if (added) return ACL_SUCCESS;
    const std::string other = at->second->name;
    lock.unlock();
    return remembered(fail(ACL_ERROR_RT_KERNEL_DUPLICATE, "kernel %s: the stub %p stands for kernel %s already", name, stub,
                           other.c_str()));
}

SIMNPU_EXPORT aclError aclrtBinaryLoadFromData(const void* data, size_t length, const aclrtBinaryLoadOptions*, aclrtBinHandle* binHandle) {
    SIMNPU_CALL_OR(remembered(simnpu_call_.refusal()), "aclrtBinaryLoadFromData", "bytes=%zu", length);
    return remembered(load(data, length, binHandle));
}

SIMNPU_EXPORT aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle) {
    SIMNPU_CALL("aclrtBinaryUnLoad", "handle=%p", binHandle);
    return unload(binHandle);
}

SIMNPU_EXPORT aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char* kernelName, aclrtFuncHandle* funcHandle) {
    SIMNPU_CALL_OR(remembered(simnpu_call_.refusal()), "aclrtBinaryGetFunction", "binary=%p kernel=%s", binHandle,
                   kernelName ? kernelName : "");
    if (!funcHandle) return remembered(is_null("the handle pointer"));
    *funcHandle = nullptr;
    std::shared_ptr<const Kernel> kernel;
    if (auto result = kernel_in(binHandle, kernelName, kernel)) return remembered(result);
    auto binary = binaries().find(binHandle);
    if (!binary) return fail(ACL_ERROR_RT_PARAM_INVALID, "the binary was unloaded meanwhile");
    std::unique_lock lock(registry().mutex);
    auto& known = binary->functions[kernelName];
    if (!known) known = functions().add(std::move(kernel));
    *funcHandle = known;
    return ACL_SUCCESS;
}

// Where the code begins: the host's, for both kinds of core.
SIMNPU_EXPORT aclError aclrtGetFunctionAddr(aclrtFuncHandle funcHandle, void** aicAddr, void** aivAddr) {
    SIMNPU_CALL("aclrtGetFunctionAddr", "function=%p", funcHandle);
    if (!aicAddr || !aivAddr) return is_null("a result pointer");
    FIND_OR_RETURN(kernel, find_kernel(funcHandle));
    *aicAddr = *aivAddr = reinterpret_cast<void*>(kernel->code->run);
    return ACL_SUCCESS;
}
