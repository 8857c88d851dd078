"""The registration of the device interface that runs once, whoever asks for it: this module's is called by a package
file that is not lazy."""

from torch_npu.utils._dynamo import _dynamo_register_interface_for_device  # noqa: F401
