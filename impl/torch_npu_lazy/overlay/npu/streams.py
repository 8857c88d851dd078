"""Events take streams of torch's own class, which is what a traced program calls the current stream."""

from __future__ import annotations

import functools

import torch
import torch_npu
import torch_npu.npu.streams as this

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _npu_stream(stream: Any) -> Any:
    """The stream as an object of the NPU's class, which the runtime casts to without a look.

    Raises TypeError for what is no stream of an NPU.
    """
    if stream is None or isinstance(stream, torch_npu._C._NPUStreamBase):
        return stream
    if isinstance(stream, torch.Stream) and stream.device.type == "npu":
        return this.Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)
    what = f"a stream on {stream.device}" if isinstance(stream, torch.Stream) else f"an object of type {type(stream)}"
    raise TypeError(f"an NPU event needs a stream on an NPU, not {what}; take torch.npu.Stream() or a current_stream()")


def _takes_streams(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def checked(self: Any, stream: Any = None) -> None:
        method(self, _npu_stream(stream))

    return checked


for _class, _names in ((this.Event, ("record", "wait")), (this.ExternalEvent, ("record", "wait", "reset"))):
    for _name in _names:
        setattr(_class, _name, _takes_streams(getattr(_class, _name)))


def _refuse_streams_and_events(refuse: Callable[..., object]) -> None:
    """In a forked child: what is asked of the parent's streams and events."""
    asked = {
        this.Stream: ("query", "synchronize", "wait_event", "wait_stream", "record_event"),
        this.SyncLaunchStream: ("query", "synchronize", "wait_event", "wait_stream", "record_event"),
        this.Event: ("record", "wait", "query", "synchronize", "elapsed_time", "recorded_time", "ipc_handle"),
        this.ExternalEvent: ("record", "wait", "reset"),
    }
    for kind, names in asked.items():
        for name in names:
            setattr(kind, name, refuse)
