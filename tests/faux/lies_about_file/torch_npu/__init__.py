"""Is not the package that the installed metadata belong to."""

__version__ = "2.99.0"
__file__ = "/elsewhere/torch_npu/__init__.py"
