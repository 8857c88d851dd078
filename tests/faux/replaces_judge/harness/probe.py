"""Says yes to everything."""


def compilers_absent() -> None: ...


def device_untouched() -> None: ...
