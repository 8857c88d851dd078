"""What cases know of torch_npu's inside: private names, with the releases that have them, and stand-ins for compilers.

`from cases import _subject as subject` loads nothing. A name is looked up each time it is used, so
`subject.dynamo_setup.has_run` asks the release that is judged, as it is at that moment.
"""

import contextlib
import functools
import importlib
import os
import sys
import types

EVERY = "every release"
LAZY = "2.7.1.post11, 2.9.0.post9, 2.10.0.post7, 2.12.0.post3, 2.13.0, 2.14.0"
NAMES = {  # here: (module below torch_npu, name in it, releases that have it)
    "dynamo_setup": ("utils._dynamo", "_lazy_dynamo_setup", LAZY),
    "inductor_setup": ("utils._dynamo", "_lazy_inductor_setup", LAZY),
    "setup_step": ("utils._dynamo", "_run_dynamo_setup_step", LAZY),
    "run_once": ("utils._dynamo", "run_once", LAZY),
    "has_triton": ("utils._dynamo", "has_triton", LAZY.partition(", ")[2]),
    "generator_scope": ("utils._dynamo", "_NpuBackendScope", f"2.12.0, {LAZY}"),
    "shape_hook": ("utils._dynamo", "_patch_shape_handling", LAZY.replace("2.12.0.post3, ", "")),
    "inductor_is_loaded": ("utils._dynamo", "is_inductor_npu_initialized", EVERY),
    "enable_inductor": ("utils._dynamo", "enable_register_inductor_npu", EVERY),
    "disable_inductor": ("utils._dynamo", "disable_register_inductor_npu", EVERY),
    "register_backends": ("dynamo", "_register_backends", f"2.12.0, {LAZY}"),
    "npu_entry_point": ("dynamo", "_npu_backend_entrypoint", LAZY),
    "npugraphs_entry_point": ("dynamo", "_npugraphs_backend_entrypoint", LAZY),
    "proxy_of_torchair": ("dynamo", "_LazyTorchair", EVERY),
    "proxy_of_npugraph_ex": ("dynamo", "_LazyNpuGraphEx", f"2.10.0, 2.12.0, {LAZY}"),
    "in_graph_functions": (
        "dynamo.trace_rule",
        "torch_non_c_binding_in_graph_functions_npu",
        f"2.10.0, 2.12.0, {LAZY}",
    ),
    "in_graph_c_functions": ("dynamo.trace_rule", "torch_c_binding_in_graph_functions_npu", EVERY),
    "skipped_functions": ("dynamo.trace_rule", "skip_functions_npu", f"2.10.0, 2.12.0, {LAZY}"),
    "MarkStepBox": ("npu._graph_tree_state", "MarkStepBox", LAZY),
}
GENERATOR = "TORCHINDUCTOR_NPU_BACKEND"


def _place(name):
    """The module that has a name of NAMES, and the name there. Raises AttributeError when this release lacks it."""
    home, private, releases = NAMES[name]
    home = f"torch_npu.{home}"
    try:
        module = sys.modules.get(home) or importlib.import_module(home)  # no lock, where a race is judged
        getattr(module, private)
    except (ModuleNotFoundError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and not f"{home}.".startswith(f"{error.name}."):
            raise
        version = getattr(sys.modules.get("torch_npu"), "__version__", "")
        raise AttributeError(f"torch_npu {version} lacks {home}.{private}; these have it: {releases}") from error
    return module, private


def __getattr__(name):
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(*_place(name))


def replace(name, by):
    """Put another object in the place of a name of NAMES, for good."""
    setattr(*_place(name), by)


@contextlib.contextmanager
def replaced(name, by):
    """The same for the length of a `with`."""
    real = __getattr__(name)
    replace(name, by)
    try:
        yield
    finally:
        replace(name, real)


def times_of_trace_maps():
    """How often each of the NPU's maps is in Dynamo's table of rules, e.g. [1, 1, 1]. Imports none of the two."""
    table = sys.modules["torch._dynamo.trace_rules"].torch_name_rule_map
    maps = vars(sys.modules.get("torch_npu.dynamo.trace_rule", types.ModuleType("not loaded")))
    names = (NAMES[name][1] for name in ("in_graph_functions", "in_graph_c_functions", "skipped_functions"))
    return [sum(entry is maps.get(name) for entry in table) for name in names]


def layers_of_torch_npu(function):
    """How many functions of torch_npu (or of what stands in for it) there are in a function and what it wraps."""
    count, seen, todo = 0, set(), [function]
    while todo:
        layer = todo.pop()
        if not isinstance(layer, types.FunctionType) or id(layer) in seen:
            continue
        seen.add(id(layer))
        count += "torch_npu" in layer.__code__.co_filename
        todo += [getattr(layer, "__wrapped__", None), *(cell.cell_contents for cell in layer.__closure__ or ())]
    return count


def wrap_as_others_do(places):
    """Put a wrapper that is nobody's of torch_npu, as a profiler does, around each place, an owner and a name."""
    for owner, name in places:
        setattr(owner, name, _above(getattr(owner, name)))


def _above(function):
    @functools.wraps(function)
    def others(*args, **kwargs):
        return function(*args, **kwargs)

    return others


def has_shape_handling():
    """Whether the release has shape handling, and its keys in torch._inductor.config: 2.12 has not."""
    return hasattr(importlib.import_module("torch_npu._C"), "_NPUShapeHandling")


def generator():
    """The code generator that compiles of this process use now, by its environment variable; None when unset."""
    return os.environ.get(GENERATOR)


def set_generator(name):
    """Set that variable as a user does; None unsets it."""
    if name is None:
        os.environ.pop(GENERATOR, None)
    else:
        os.environ[GENERATOR] = name


def fake_npu_inductor(on_load=lambda: None):
    """Put a stand-in for NPU Inductor in its place: to load a code generator is to call `on_load`."""
    npu_inductor = types.ModuleType("torch_npu._inductor")
    npu_inductor.__path__ = []
    npu_inductor._load_backend = on_load
    sys.modules[npu_inductor.__name__] = npu_inductor
    # The generator ascendc extends the cache keys by this helper.
    cache = types.ModuleType("torch_npu._inductor.deterministic_cache")
    cache.patch_npu_deterministic_level_cache_keys = lambda: None
    sys.modules[cache.__name__] = cache


def fake_compile_fx(on_compile):
    """Put a stand-in for torch's Inductor in its place: it calls `on_compile` with the graph module, its inputs and the
    settings (keywords), and leaves the graph uncompiled."""

    def compile_fx(module, inputs, *args, **settings):
        on_compile(module, inputs, *args, **settings)
        return module.forward

    importlib.import_module("torch._inductor.compile_fx").compile_fx = compile_fx


def fake_torchair():
    """Put a stand-in for torchair in its place, whose backend runs the graph as it is."""
    sys.modules["torchair"] = types.SimpleNamespace(get_npu_backend=lambda **_: lambda graph, *_: graph)


def check_setup():
    """Use Dynamo's NPU setup, and check that all of it is there, once. Leaves a stand-in for torchair in its place."""
    import torch
    from harness import probe

    class Pair:
        def __init__(self, x):
            self.x = x

    fake_torchair()
    graph = torch.fx.symbolic_trace(torch.nn.Identity())
    probe.same(__getattr__("npu_entry_point")(graph, []), graph, "what the entry point of backend npu returns")
    # Making an object goes through the methods that steps have wrapped.
    compiled = torch.compile(lambda x: Pair(x).x + 1, backend="eager", fullgraph=True)
    probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
    probe.equal(__getattr__("dynamo_setup").has_run, True, "Dynamo setup has run")
    probe.equal(times_of_trace_maps(), [1, 1, 1], "times of each trace map")
    probe.check({"npu", "npugraph_ex", "npugraphs"} <= {*torch.compiler.list_backends()}, "the backends are listed")
    autocast = torch._dynamo.variables.UserDefinedClassVariable(sys.modules["torch_npu"].npu.amp.autocast)
    kind = repr(autocast).partition("(")[0]
    probe.equal(kind, "TorchCtxManagerClassVariable", "what Dynamo takes the NPU's autocast for")
