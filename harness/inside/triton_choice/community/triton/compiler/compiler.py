"""The names that torch takes from here."""


class ASTSource: ...


class CompiledKernel: ...


def triton_key():
    return "community triton 3.5.0"


def make_backend(target):
    raise RuntimeError(f"0 compatible backends for target ({target.backend}) (0). There should only be one.")
