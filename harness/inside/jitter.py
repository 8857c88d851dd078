"""Random delays for soaking: they come from a seed and the place they are at, so that a repetition can be had again,
whichever thread gets to the place first."""

from __future__ import annotations

import sys
import time
from _random import Random  # `random` would load a dozen modules into the interpreter that is judged

SWITCH_INTERVAL = 1e-6  # seconds a thread may run before another one gets its turn

_seed: str | None = None
_visits: dict[str, int] = {}


def start(seed: str) -> None:
    """From now on `delay` delays, and threads take turns as often as the interpreter can."""
    global _seed  # noqa: PLW0603
    _seed = seed
    sys.setswitchinterval(SWITCH_INTERVAL)


def delay(place: str, chance: float, most: float) -> None:
    """With probability `chance` stay for up to `most` seconds, and let others run. Nothing happens before `start`."""
    if _seed is None:
        return
    visit = _visits[place] = _visits.get(place, 0) + 1
    # One generator per visit: a shared one would give each thread what another left over.
    random = Random(int.from_bytes(f"{_seed} {place} {visit}".encode("utf-8", "backslashreplace"), "big"))
    if random.random() < chance:
        time.sleep(most * random.random())
