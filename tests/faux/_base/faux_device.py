"""Stands for the device runtime: counts the calls made into it, as the simulator does."""

_counts: dict[str, int] = {}


def call(name: str) -> None:
    _counts[name] = _counts.get(name, 0) + 1


def counts() -> dict[str, int]:
    return dict(_counts)
