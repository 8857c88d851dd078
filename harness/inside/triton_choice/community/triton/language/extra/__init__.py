"""What belongs to one kind of device."""

from . import libdevice

__all__ = ["libdevice"]
