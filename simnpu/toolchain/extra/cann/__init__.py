"""`triton.language.extra.cann` for a triton-ascend that calls it `ascend`: NPU Inductor names it in its kernels."""

from . import extension, libdevice

__all__ = ["extension", "libdevice"]
