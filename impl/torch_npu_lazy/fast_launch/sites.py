"""What a call site does: full entry, plan, or the launcher itself.

A call that the C++ part cannot take as it is comes to `Site.enter`, which decides as follows and arms the C++ part for
the next call:

    full entry     autotuner.run: something is on that only it knows of, or the launcher has not settled
    plan           the launcher has settled, and can be planned
    negative       it has settled, and cannot: it is called itself, without its autotuner
    hooked         it is planned, and a launch hook is there: the launcher is called itself, for this call
    refused        it is planned, and this call is not for the plan: full entry, for this call

Invariants:
- What is decided here rests on dictionaries that the guard was told to watch before they were read. Whatever is changed
  in between, by whichever thread, brings the next call here again.
- Nothing is called a second time: a launch that was handed over either works or raises.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import Counter

from . import launcher as launchers
from .launcher import Unplannable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

log = logging.getLogger(__name__)
_native: Any = None
_native_lock = threading.Lock()
_tried = False
all_sites: weakref.WeakSet[Site] = weakref.WeakSet()
NOT_FULL = ("planned", "hooks", "negative")
"""Counted in `Site.reasons` as well, and no full entries."""
runs: set[Any] = set()
"""The functions `run` of autotuners whose launches are known. Another's may do anything."""


def native() -> Any:
    """The C++ part, or None: then every call is a full entry, and the log has said why, once."""
    global _native, _tried  # noqa: PLW0603
    if _tried:
        return _native
    with _native_lock:
        if not _tried:
            from . import native as building

            try:
                _native = building.load()
            except building.Unavailable as why:
                log.warning("planned fast launch is off: %s", why)
            _tried = True
    return _native


def as_data() -> list[dict[str, object]]:
    """What `explain` tells of each call site, by name: "id", "kernel", "state", how many launches went which way
    ("planned", "direct": the launcher itself, "full": by the autotuner), and "reasons" for those that were no hit."""
    found = []
    for site in sorted(all_sites, key=lambda each: each.id):
        planned, direct = site.counts
        full = Counter({reason: count for reason, count in site.reasons.items() if reason not in NOT_FULL})
        found.append(
            {
                "id": site.id,
                "kernel": site.kernel_name,
                "state": site.state,
                "planned": planned + site.reasons["planned"],
                "direct": direct + site.reasons["hooks"] + site.reasons["negative"],
                "full": full.total(),
                "reasons": dict(full) | ({"hooks": site.reasons["hooks"]} if site.reasons["hooks"] else {}),
            }
        )
    return found


class Site:
    """The Python side of one call site."""

    __slots__ = (
        *("__weakref__", "_canonical", "_launcher", "_plan", "_reason", "_site"),
        *("id", "kernel_name", "kinds", "reasons"),
    )

    def __init__(self, id: str, kernel_name: str, kinds: tuple[str, ...] | None) -> None:
        self.id, self.kernel_name, self.kinds = id, kernel_name, kinds
        self.reasons: Counter[str] = Counter()
        """Calls that came here: full entries by reason, and those of `NOT_FULL`."""
        self._launcher: Any = None
        self._canonical: tuple[Any, ...] = ()
        """The fixed arguments that `_plan` was made with."""
        self._plan: Any = None
        self._reason: str | None = None
        """Why `_launcher` has no plan."""
        self._site: Any = None

    @classmethod
    def make(cls, *, id: str, kernel: str, kinds: tuple[str, ...] | None = None, **_: Any) -> Callable[..., Any]:
        """The callable for generated code. Later releases may know more of a site; what is unknown here is left out."""
        site = cls(id, kernel, kinds)
        all_sites.add(site)
        if native() is None:
            return site.without_plan
        site._site = _native.make_site(site.enter)
        return site._site

    def without_plan(self, kernel: Any, *args: Any, **keywords: Any) -> Any:
        """A call where the C++ part is not there."""
        return self._full_entry("c_extension_unavailable", kernel, args, keywords)

    @property
    def state(self) -> str:
        """As `explain` shows it."""
        planned, direct = self.counts
        if self._reason is not None:
            return f"negative: {self._reason}"
        return "planned" if self._plan is not None else "not planned yet" if not planned + direct else "planned before"

    @property
    def counts(self) -> tuple[int, int]:
        """Calls that a plan took, and calls of the launcher itself by the C++ part."""
        return (0, 0) if self._site is None else _native.counts(self._site)

    def enter(self, refusal: str | None, autotuner: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A call that is not a hit. Raises what launching raises."""
        try:
            guard = _guard(autotuner)
        except (TypeError, AttributeError):
            return self._full_entry("autotuner_unknown", autotuner, args, keywords)
        reason = _reason_for_full_entry(autotuner, keywords)
        if reason is None and refusal is not None:
            reason = f"refused:{refusal}"
        if reason is not None:
            return self._full_entry(reason, autotuner, args, keywords)
        if (found := _of_its_own(autotuner)) is not None:
            reason, direct = found
            self._reason = reason
            _native.arm(self._site, autotuner, guard, None, direct)
            return self._full_entry(reason, autotuner, args, keywords)
        if _settled(autotuner) is None:
            result = self._full_entry("not_settled", autotuner, args, keywords)
            # Only now: what runs once (tuning, saving of the kernel) is over.
            guard = _guard(autotuner)
            if _reason_for_full_entry(autotuner, keywords) is None:
                self._prepare(autotuner, args, guard)
            return result
        return self._launch(autotuner, args, keywords, guard)

    def _launch(self, autotuner: Any, args: tuple[Any, ...], keywords: dict[str, Any], guard: Any) -> Any:
        launcher = self._prepare(autotuner, args, guard)
        if launcher is None:
            return self._full_entry("not_settled", autotuner, args, keywords)
        if self._plan is None or launchers.hooks(launcher)[0]:
            try:
                canonical = (*args, *_fixed(autotuner, args))
            except Unplannable as error:
                return self._full_entry(error.reason, autotuner, args, keywords)
            self.reasons["hooks" if self._plan is not None else "negative"] += 1
            return launcher(*canonical, **keywords)
        plan = self._plan
        refusal = _native.launch(plan, args, keywords["stream"])
        if refusal is not None:
            return self._full_entry(f"refused:{refusal}", autotuner, args, keywords)
        self.reasons["planned"] += 1
        return None

    def _prepare(self, autotuner: Any, args: tuple[Any, ...], guard: Any) -> Any:
        """Plan the launcher if it has settled, and arm the C++ part. Returns the launcher, or None."""
        launcher = _settled(autotuner)
        if launcher is None:
            return None
        plan, reason, fixed = None, None, ()
        try:
            guard.watch(launcher.__globals__)
            active, chains = launchers.hooks(launcher)
            for chain in chains:
                guard.watch_empty(chain)
            fixed = _fixed(autotuner, args)
            if launcher is self._launcher and fixed == self._canonical:
                plan, reason = self._plan, self._reason
            if plan is None and reason is None:
                plan = self._planned(launcher, autotuner, len(args), fixed)
        except (AttributeError, TypeError):
            active, reason = False, "launcher_unknown"
        except Unplannable as error:
            active, reason = False, error.reason
            if not error.stable:
                return None
        if reason is not None and reason != self._reason:
            log.debug(
                "%s: kernel %s is launched without its autotuner and without a plan: %s",
                self.id,
                self.kernel_name,
                reason,
            )
        self._launcher, self._canonical, self._plan, self._reason = launcher, fixed, plan, reason
        if plan is not None and not active:
            _native.arm(self._site, autotuner, guard, plan)
        elif plan is None and not fixed and reason != "runtime_block_builder_missing":
            _native.arm(self._site, autotuner, guard, None, launcher)
        else:
            _native.disarm(self._site)
        return launcher

    def _planned(self, launcher: Any, autotuner: Any, count: int, fixed: tuple[Any, ...]) -> Any:
        expected = len(launchers.parameters(launcher))
        if count + len(fixed) != expected:
            raise Unplannable(f"canonical_args_size_mismatch:{count + len(fixed)}:{expected}")
        launch = launchers.describe(launcher)
        if self.kinds is not None:
            if len(self.kinds) != count:
                raise Unplannable("codegen_schema_size_conflict")
            of_launcher = launchers.kinds_of_arguments(launch)
            for position, kind in enumerate(self.kinds):
                if of_launcher.get(position, kind) != kind:
                    raise Unplannable("codegen_launcher_schema_conflict")
        return launchers.plan(_native, launch, count, fixed, _device(autotuner))

    def _full_entry(self, reason: str, autotuner: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        self.reasons[reason] += 1
        return autotuner.run(*args, **keywords)


def _guard(autotuner: Any) -> Any:
    """Watches what the decisions below rest on, as it is now. Raises TypeError or AttributeError."""
    import torch.autograd.profiler
    from torch_npu._inductor import config

    guard = _native.Guard()
    guard.watch(autotuner)
    for each in type(autotuner).__mro__[:-1]:
        guard.watch(each)
    guard.watch(vars(torch.autograd.profiler))
    guard.watch(vars(config))
    return guard


def _reason_for_full_entry(autotuner: Any, keywords: dict[str, Any]) -> str | None:
    import torch.autograd.profiler
    from torch_npu._inductor import config

    if not getattr(config, "enable_fast_launch", True):
        return "disabled"
    for name in ("dump_fx_graph", "check_accuracy"):
        if getattr(config, name, False):
            return name
    for name in ("triton_interpret", "dump_launch_params"):
        if getattr(autotuner, name, False):
            return name
    if keywords.get("benchmark_run"):
        return "benchmark_run"
    if keywords.keys() != {"stream"}:
        return "runtime_kwargs"
    if torch.autograd.profiler._is_profiler_enabled:
        return "profiler"
    return _native.unusable()


def _of_its_own(autotuner: Any) -> tuple[str, Any] | None:
    """Why an autotuner launches in a way of its own, and what is called then."""
    run = autotuner.run
    meta: Any = getattr(autotuner, "inductor_meta", None) or {}
    if meta.get("group_enabled") or hasattr(autotuner, "best_launcher_map"):
        return "grouped", run
    if getattr(run, "__func__", None) not in runs:
        return "run_replaced", run
    return None


def _settled(autotuner: Any) -> Any:
    """The launcher that an autotuner will launch from now on, or None."""
    candidates: Any = getattr(autotuner, "launchers", None) or ()
    best = getattr(autotuner, "best_launcher", None)
    if len(candidates) != 1 or best is None or best is not candidates[0] or hasattr(best, "fallback"):
        return None
    if getattr(best, "store_cubin", False) and not getattr(autotuner, "cuda_kernel_saved", False):
        return None
    return best


def _fixed(autotuner: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments that the autotuner adds behind the caller's. Raises Unplannable."""
    blocks = tuple(getattr(autotuner, "best_runtime_blocks", None) or ())
    if not blocks:
        return ()
    build: Any = getattr(autotuner, "_build_runtime_launch_args", None)
    if build is None:
        raise Unplannable("runtime_block_builder_missing")
    canonical = tuple(build(args, blocks))
    if len(canonical) < len(args) or any(mine is not given for mine, given in zip(canonical, args, strict=False)):
        raise Unplannable("runtime_blocks_reorder_arguments")
    return canonical[len(args) :]


def _device(autotuner: Any) -> int:
    device: Any = autotuner.triton_meta["device"]
    index: Any = getattr(device, "index", device)
    return int(index)
