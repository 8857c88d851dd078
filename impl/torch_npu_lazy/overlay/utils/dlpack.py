"""Exchange through DLPack: only what lives on the NPU goes through the NPU's converter, and every argument is known."""

from __future__ import annotations

import functools

import torch
import torch.utils.dlpack
import torch_npu.utils.dlpack as this

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_apply_to_wheel = this._apply_dlpack_patch


def _apply_dlpack_patch() -> None:
    """The wheel's patch, with a from_dlpack that takes `device` and `copy` and leaves data of others to torch."""
    plain = torch.utils.dlpack.from_dlpack
    if getattr(plain, "_npu_plain", None) is not None:
        return
    _apply_to_wheel()
    for module in (torch, torch.utils.dlpack):
        module.from_dlpack = _from_dlpack_of(plain, module.__name__)  # type: ignore[attr-defined]


def _from_dlpack_of(plain: Callable[..., torch.Tensor], module: str) -> Callable[..., torch.Tensor]:
    @functools.wraps(plain)
    def from_dlpack(ext_tensor: Any, *, device: torch.types.Device = None, copy: bool | None = None) -> torch.Tensor:
        if not _may_be_on_npu(ext_tensor):
            return plain(ext_tensor, device=device, copy=copy)
        if not hasattr(ext_tensor, "__dlpack__") and device is None and copy is None:
            try:
                return this._from_dlpack(ext_tensor)
            except RuntimeError:
                # A capsule does not tell where its data are until it is opened.
                return plain(ext_tensor)
        if not hasattr(ext_tensor, "__dlpack__"):
            return plain(ext_tensor, device=device, copy=copy)
        shared = this._from_dlpack(ext_tensor)
        wanted = shared.device if device is None else torch.device(device)
        if wanted.type == shared.device.type and wanted.index is None:
            wanted = shared.device
        if wanted != shared.device and copy is False:
            raise ValueError(
                f"from_dlpack: data on {shared.device} cannot be had on {wanted} without a copy; leave out copy=False"
            )
        return shared.to(wanted, copy=bool(copy))

    from_dlpack.__module__ = module
    from_dlpack._npu_plain = plain  # type: ignore[attr-defined]
    return from_dlpack


def _may_be_on_npu(data: Any) -> bool:
    if isinstance(data, torch.Tensor):
        return data.device.type == "npu"
    where = getattr(data, "__dlpack_device__", None)
    if where is None:
        return True
    return where()[0] == torch.utils.dlpack.DLDeviceType.kDLExtDev
