"""Functions written in the language."""


def _log2(i): ...
