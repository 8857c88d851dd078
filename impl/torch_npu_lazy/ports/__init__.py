"""One table per release line: what of torch_npu is amended, deferred or watched. A new release is a new table here."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch_npu_lazy.ports.steps import Call, Step


class Late:
    """A module of the wheel that stays out until its deferral wakes.

    deferral: modules with one name wake together; those that must load when a module of torch has been imported carry
    that module's name in `Port.wakes`. calls: functions whose calls are recorded until then. public: names whose access
    wakes, and which dir() lists; may be one string. open: so does access to any other name. apart: modules below it
    that load without it.
    early: the module is amended at once, and what the overlay defines then replaces the wheel's names when its body has
    run.
    """

    __slots__ = ("apart", "calls", "deferral", "early", "open", "public")

    def __init__(
        self,
        deferral: str,
        *,
        calls: Iterable[str] = (),
        public: Iterable[str] | str = (),
        open: bool = False,
        apart: Iterable[str] = (),
        early: bool = False,
    ) -> None:
        self.public = tuple(public.split() if isinstance(public, str) else public)
        self.deferral, self.calls, self.apart, self.open, self.early = deferral, tuple(calls), tuple(apart), open, early


class Port:
    """A release line.

    torch_npu, torch: the public versions that belong together. amended: modules after whose body the overlay of the
    same path is executed in their namespace. ours: modules that are the overlay's file alone, whether the wheel has
    one of that name or not. prepared: modules before whose body "<path>_before.py" is executed. late: see `Late`.
    wakes: deferral -> module of torch whose import wakes it. imports: module -> what import statements of its body
    get instead; see `core.promise.execute`. dynamo, inductor: the steps of Dynamo's and Inductor's setup, in order.
    generators: what a code generator of Inductor needs each time it is chosen. shape_handling: whether the wheel can
    bucket shapes. fakes: modules that register fake implementations, each of which has torch look for the module of a
    file. cpu_counts_for_triton: whether has_triton looks at CPUs without being asked to. backends: backends
    of Dynamo that the wheel's metadata does not announce, name -> "module:object".
    """

    __slots__ = (
        "amended",
        "backends",
        "cpu_counts_for_triton",
        "dynamo",
        "fakes",
        "generators",
        "imports",
        "inductor",
        "late",
        "ours",
        "prepared",
        "shape_handling",
        "torch",
        "torch_npu",
        "wakes",
    )

    def __init__(
        self,
        *,
        torch_npu: str,
        torch: str,
        amended: Iterable[str],
        ours: Iterable[str] = (),
        prepared: Iterable[str] = (),
        late: Mapping[str, Late] | None = None,
        wakes: Mapping[str, str] | None = None,
        imports: Mapping[str, Mapping[str, str | tuple[str, ...]]] | None = None,
        dynamo: Iterable[Step] = (),
        inductor: Iterable[Step] = (),
        generators: Mapping[str, Iterable[Call]] | None = None,
        fakes: Iterable[str] = (),
        cpu_counts_for_triton: bool = False,
        shape_handling: bool = False,
        backends: Mapping[str, str] | None = None,
    ) -> None:
        self.torch_npu, self.torch = torch_npu, torch
        self.amended, self.late, self.wakes = frozenset(amended), dict(late or {}), dict(wakes or {})
        self.ours, self.dynamo, self.inductor = frozenset(ours), tuple(dynamo), tuple(inductor)
        self.generators = {name: tuple(calls) for name, calls in (generators or {}).items()}
        self.prepared, self.imports = frozenset(prepared), dict(imports or {})
        self.fakes = tuple(fakes)
        self.cpu_counts_for_triton, self.shape_handling = cpu_counts_for_triton, shape_handling
        self.backends = dict(backends or {})


SUPPORTED = {"2.10.0": "2.10.0", "2.13.0": "2.13.0"}
"""torch_npu version -> the torch that belongs to it. The table is ports/v<version>.py, with underscores."""


def find(torch_npu: str, torch: str) -> Port | None:
    """The table for two public versions, or None."""
    if SUPPORTED.get(torch_npu) != torch:
        return None
    port: Port = import_module(f"{__name__}.v{torch_npu.replace('.', '_')}").PORT
    return port
