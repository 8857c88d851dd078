"""The compiler, which compiles nothing."""

from .compiler import ASTSource, CompiledKernel

__all__ = ["ASTSource", "CompiledKernel"]
