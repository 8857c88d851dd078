"""Six threads call the simulated runtime at random, with good, stale and foreign handles: no crash, no hang."""

from __future__ import annotations

import ctypes
import random
import threading

import acl
import pytest
from isolated import on_simulator

STEPS = 4000


class Chaos:
    """Handles that all threads share, so that each finds them gone now and then."""

    def __init__(self) -> None:
        self.live: dict[str, list[int]] = {"stream": [], "event": [], "memory": [], "graph": []}
        self.codes: set[int] = set()

    def step(self, choose: random.Random) -> None:
        place = ctypes.c_void_p()
        out = ctypes.byref(place)

        def some(kind: str) -> int:
            # Now and then a handle of another kind, or of none.
            kinds = [kind] * 20 + list(self.live)
            handles = self.live[choose.choice(kinds)]
            return choose.choice([*handles[-12:], 0])

        def size() -> int:
            return choose.randrange(6000)

        short = ctypes.c_int(50)
        creations = {
            "stream": ("aclrtCreateStream", out),
            "event": ("aclrtCreateEventExWithFlag", out, acl.TIME_LINE),
            "memory": ("aclrtMalloc", out, 1 + size(), 0),
        }
        ends = {"stream": "aclrtDestroyStream", "event": "aclrtDestroyEvent", "memory": "aclrtFree"}
        actions = [
            lambda: ("aclrtMemsetAsync", some("memory"), size(), 1, size(), some("stream")),
            lambda: ("aclrtMemcpyAsync", some("memory"), size(), some("memory"), size(), 3, some("stream")),
            lambda: ("aclrtMemset", some("memory"), size(), 1, size()),
            lambda: ("aclrtRecordEvent", some("event"), some("stream")),
            lambda: ("aclrtStreamWaitEvent", some("stream"), some("event")),
            lambda: ("aclrtSynchronizeStreamWithTimeout", some("stream"), short),
            lambda: ("aclrtSynchronizeEventWithTimeout", some("event"), short),
            lambda: ("aclrtStreamQuery", some("stream"), out),
            lambda: ("aclmdlRICaptureBegin", some("stream"), choose.randrange(3)),
            lambda: ("aclmdlRIExecuteAsync", some("graph"), some("stream")),
            lambda: ("aclrtSynchronizeDeviceWithTimeout", short),
            lambda: ("aclrtSetDevice", choose.randrange(2)),
        ]
        roll = choose.random()
        if roll < 0.2:
            kind = choose.choice(list(creations))
            if self.note(acl.code(*creations[kind])) == 0:
                assert place.value is not None
                self.live[kind].append(place.value)
            if len(self.live[kind]) > 12:
                self.note(acl.code(ends[kind], self.live[kind].pop(0)))
        elif roll < 0.25:
            if self.note(acl.code("aclmdlRICaptureEnd", some("stream"), out)) == 0:
                assert place.value is not None
                self.live["graph"].append(place.value)
        elif roll < 0.251:
            self.note(acl.code("aclrtResetDeviceForce", choose.randrange(2)))
            self.note(acl.code("aclrtSetDevice", choose.randrange(2)))
        else:
            self.note(acl.code(*choose.choice(actions)()))

    def note(self, code: int) -> int:
        text = acl.text()
        # A failed task's error comes with the call that reports it, so a text there is in any case.
        assert code == 0 or text, f"error {code} without a text"
        self.codes.add(code)
        return code


@pytest.mark.parametrize("seed", [1, 2])
@on_simulator()
def test_random_calls_from_many_threads(seed: int):
    chaos = Chaos()
    problems: list[BaseException] = []

    def work(number: int) -> None:
        choose = random.Random(f"{seed} {number}")
        try:
            acl.set_device(number % 2)
            for _ in range(STEPS):
                chaos.step(choose)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert {0, acl.PARAM_INVALID} <= chaos.codes
    # After a reset the devices are as new.
    for device in (0, 1):
        acl.code("aclrtResetDeviceForce", device)
    for device in (0, 1):
        acl.set_device(device)
        stream, memory = acl.stream(), acl.malloc(8)
        acl.fill(memory, 9, 8, stream)
        acl.call("aclrtSynchronizeStream", stream)
        assert acl.read(memory, 8) == b"\x09" * 8
