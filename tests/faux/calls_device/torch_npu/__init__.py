"""Occupies the device when it is imported: only the device's own log tells."""

import faux_device

__version__ = "2.99.0"

faux_device.call("aclrtGetDeviceCount")
faux_device.call("aclrtSetDevice")
faux_device.call("aclrtMalloc")
