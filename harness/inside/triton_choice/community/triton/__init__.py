"""Stands for community Triton on a machine without a GPU: everything can be imported, nothing can be launched.

Only what torch asks for when it finds a Triton. It knows no NPU, as the real one does not.
"""

from . import backends, compiler, language, runtime
from .runtime.autotuner import Config
from .runtime.jit import JITFunction, KernelInterface, jit

__all__ = ["Config", "JITFunction", "KernelInterface", "backends", "compiler", "jit", "language", "runtime"]
__version__ = "3.5.0"
