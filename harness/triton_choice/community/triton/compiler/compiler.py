"""The names that torch takes from here."""


class ASTSource: ...


class CompiledKernel: ...


def triton_key():
    return "community triton 3.5.0"
