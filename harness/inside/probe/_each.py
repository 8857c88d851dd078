"""One rule for many values: each is judged, whatever became of those before it, and a failure names its value."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ._forked import forked as in_a_copy
from ._session import CheckFailed, ProbeError, label, raised_at, session


def each(values: Mapping[str, Any] | Iterable[Any], function: Callable[..., object], *, forked: bool = False) -> None:
    """`function(value)` for every value, in order; a tuple is several arguments. What is checked meanwhile, in threads
    and forked children of the probe, too, is recorded as "label: …": the value as text, or its key in a mapping.

    A failed check ends the turn of its value and no other. So does an Exception, which is a failed check itself. After
    the last turn the first CheckFailed is raised. `forked`: each value has a copy of the process for itself, as with
    `probe.forked`, for what happens once in a process. Raises ProbeError when there is no value, or two have the same
    label. ProbeError, Unsupported, KeyboardInterrupt and SystemExit end the case at once (the last two not `forked`).
    """
    turns = list(values.items()) if isinstance(values, Mapping) else [(_text(value), value) for value in values]
    if not turns or len(dict(turns)) < len(turns):
        raise ProbeError(f"probe.each needs values, each with a label of its own; it has {[name for name, _ in turns]}")
    failures = []
    for name, value in turns:
        token = label.set(f"{label.get()}{name}: ")
        try:
            _turn(function, value if isinstance(value, tuple) else (value,), forked)
        except CheckFailed as failure:
            failures.append(failure)
        finally:
            label.reset(token)
    if failures:
        raise failures[0]


def _turn(function: Callable[..., object], args: tuple[Any, ...], forked: bool) -> None:
    @functools.wraps(function)
    def without_result() -> None:
        function(*args)

    try:
        if forked:
            in_a_copy(without_result)
        else:
            without_result()
    except (CheckFailed, ProbeError):
        raise
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
        sentence = f"{getattr(function, '__name__', repr(function))} returns"
        session().failed(sentence, expected="no exception", found=found, stack=raised_at(error))


def _text(value: Any) -> str:
    parts = value if isinstance(value, tuple) else (value,)
    return ", ".join(part if isinstance(part, str) else getattr(part, "__name__", repr(part)) for part in parts)
