"""Processes of tests: however one ends, its test is told, and the next finds torch imported and no device touched."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import isolated
import pytest
from isolated import on_simulator


@on_simulator(torch=True)
def works() -> None:
    import torch

    assert not torch.npu.is_initialized()
    assert (torch.ones(2, device="npu") + 1).tolist() == [2.0, 2.0]


@on_simulator(torch=True)
def fails() -> None:
    print("what it prints")
    raise AssertionError("what it raises")


@on_simulator(torch=True)
def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@on_simulator(torch=True)
def ends_early() -> None:
    os._exit(0)


@on_simulator(torch=True)
def hangs() -> None:
    signal.pause()


@pytest.mark.parametrize(
    ("test", "told"),
    [
        (fails, "(?s)ended with 1.*what it prints.*what it raises"),
        (is_killed, "ended with -9"),
        (ends_early, "ended early"),
    ],
)
def test_a_bad_end_is_told_and_harms_nobody_else(test: Callable[[], None], told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        test()
    works()
    works()


def test_a_test_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    works()
    monkeypatch.setattr(isolated, "TORCH_SECONDS", 1)
    with pytest.raises(AssertionError, match="not done after 1 s"):
        hangs()
    monkeypatch.undo()
    works()
