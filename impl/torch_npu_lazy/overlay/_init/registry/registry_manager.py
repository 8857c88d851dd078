"""A CANN that is installed by half does not end `import torch`: there is no NPU then, and its first use says why."""

from __future__ import annotations

import torch_npu._init.registry.registry_manager as _this
from torch_npu_lazy.core import events as _events

_wheels_check = _this._cann_package_check


def _cann_package_check() -> None:
    try:
        _wheels_check()
    except Exception as error:
        import torch_npu.npu

        _events.record("kept", "use of the NPU", _events.failure(error))
        torch_npu.npu._unusable = error  # type: ignore[attr-defined]
