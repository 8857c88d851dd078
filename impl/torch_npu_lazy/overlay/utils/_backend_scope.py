"""The code generator of one compilation, kept apart from those of other threads and from what the user has set."""

from __future__ import annotations

import os

# While its body runs, which imports this: its functions are looked up when a scope is entered, by name, since they may
# have been replaced.
import torch_npu.utils._dynamo as dynamo
from torch_npu_lazy.core import locks
from torch_npu_lazy.profiles.steps import perform
from torch_npu_lazy.wheel import bootstrap

assert bootstrap.profile is not None
VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"

_GENERATORS = bootstrap.profile.generators
_values_before: list[str | None] = []
"""The variable before each of the scopes that a thread is in, outermost first. One list for all: scopes in generators
may end out of order, and the variable has to be the user's after the last."""


class _PutBack:
    """In a child that another thread's scope was forked into, nobody else puts the user's value back."""

    def after_fork(self, thread: int) -> None:
        if _values_before and _scope_lock.owner != thread:
            _put_back(_values_before[0])
            _values_before.clear()


# Before the lock, which forgets in a child who had it.
locks.at_fork(_PutBack())
_scope_lock = locks.ScopeLock("the NPU backend scope")


# get() and pop() of os.environ take as long as all the rest of a scope.


def chosen(otherwise: str | None = None) -> str | None:
    """What the environment names, if it does."""
    try:
        return os.environ[VARIABLE]
    except KeyError:
        return otherwise


def _put_back(value: str | None) -> None:
    if value is not None:
        os.environ[VARIABLE] = value
        return
    try:
        del os.environ[VARIABLE]
    except KeyError:
        return


class _NpuBackendScope:
    """The code generator of one compilation, in the environment of the process, where NPU Inductor looks for it.

    One thread at a time is inside; scopes of one thread nest. The variable is as it was afterwards, whatever happens,
    and in a child that another thread's scope was forked into. Raises TypeError if the name is no string, and what
    loading NPU Inductor raises.
    """

    __slots__ = ("backend",)

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __enter__(self) -> _NpuBackendScope:
        _scope_lock.__enter__()
        old = chosen()
        # Noted before anything changes, since a fork may come at any time.
        _values_before.append(old)
        try:
            if old != self.backend:
                os.environ[VARIABLE] = self.backend
            dynamo.register_inductor_npu()
            dynamo._lazy_inductor_setup()
            if self.backend in _GENERATORS:
                perform(_GENERATORS[self.backend])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> bool:
        old = _values_before[-1]
        try:
            # It is most often what it was.
            if old != self.backend or chosen() != old:
                _put_back(old)
        finally:
            _values_before.pop()
            _scope_lock.__exit__()
        return False
