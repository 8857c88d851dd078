"""Host functions of the simulated runtime: run by the stream, or handed to a subscribed thread."""

from __future__ import annotations

import ctypes
import threading

import acl
from isolated import on_simulator

NO_BLOCK, BLOCK = 0, 1


class Reporter:
    """A thread that runs the callbacks of the streams it is subscribed to, until told to stop."""

    def __init__(self) -> None:
        self._stop = False
        self.identity = 0
        self._ready = threading.Event()
        self._subscribed = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        self._ready.wait()

    def _run(self) -> None:
        self.identity = threading.get_ident()  # pthread_self() on Linux
        self._ready.set()
        self._subscribed.wait()
        while not self._stop:
            result = acl.code("aclrtProcessReport", ctypes.c_int32(-1))
            assert result == 0, acl.text()

    def subscribe(self, stream: int) -> None:
        acl.call("aclrtSubscribeReport", ctypes.c_uint64(self.identity), stream)
        self._subscribed.set()

    def callback(self, stream: int, function, block: int = BLOCK) -> None:
        wrapped = acl.HOST_FUNCTION(lambda _: function())
        acl._keep.append(wrapped)
        acl.call("aclrtLaunchCallback", wrapped, None, block, stream)

    def end(self, stream: int) -> None:
        def stop() -> None:
            self._stop = True

        self.callback(stream, stop)
        self.thread.join()


@on_simulator()
def test_a_blocking_callback_holds_the_stream_and_runs_in_the_subscribed_thread():
    acl.set_device()
    stream, memory = acl.stream(), acl.malloc(4)
    acl.write(memory, b"0000")
    reporter = Reporter()
    reporter.subscribe(stream)
    entered, release, ran_in = threading.Event(), threading.Event(), []

    def held() -> None:
        ran_in.append(threading.get_ident())
        entered.set()
        release.wait()

    reporter.callback(stream, held)
    acl.fill(memory, ord("1"), 4, stream)
    entered.wait()
    assert acl.read(memory, 4) == b"0000"
    assert not acl.idle(stream)
    release.set()
    acl.call("aclrtSynchronizeStream", stream)
    assert acl.read(memory, 4) == b"1111"
    assert ran_in == [reporter.identity]
    reporter.end(stream)
    acl.call("aclrtUnSubscribeReport", ctypes.c_uint64(reporter.identity), stream)
    acl.refuses(
        acl.NOT_SUBSCRIBED, "not subscribed", "aclrtUnSubscribeReport", ctypes.c_uint64(reporter.identity), stream
    )


@on_simulator()
def test_a_callback_without_blocking_lets_the_stream_go_on():
    acl.set_device()
    stream = acl.stream()
    reporter = Reporter()
    reporter.subscribe(stream)
    release = threading.Event()
    reporter.callback(stream, release.wait, NO_BLOCK)
    acl.call("aclrtSynchronizeStream", stream)  # would hang if the callback held the stream
    release.set()
    reporter.end(stream)


@on_simulator()
def test_callbacks_nobody_could_run_are_refused():
    acl.set_device()
    stream = acl.stream()
    function = acl.HOST_FUNCTION(lambda _: None)
    acl.refuses(acl.NOT_SUBSCRIBED, "no thread is subscribed", "aclrtLaunchCallback", function, None, BLOCK, stream)
    acl.refuses(107012, "not subscribed", "aclrtProcessReport", ctypes.c_int32(1))
    acl.call("aclrtSubscribeReport", ctypes.c_uint64(threading.get_ident()), stream)
    acl.refuses(107011, "already", "aclrtSubscribeReport", ctypes.c_uint64(threading.get_ident()), stream)
    acl.refuses(acl.REPORT_TIMEOUT, "no callback came", "aclrtProcessReport", ctypes.c_int32(1))
    acl.refuses(acl.PARAM_INVALID, "timeout 0", "aclrtProcessReport", ctypes.c_int32(0))
    acl.refuses(acl.PARAM_INVALID, "function is null", "aclrtLaunchCallback", None, None, BLOCK, stream)
    acl.refuses(acl.PARAM_INVALID, "unknown kind", "aclrtLaunchCallback", function, None, 9, stream)
