"""Kernels as programs, in one process: starting it costs more than a file's cases."""

from __future__ import annotations

import language_ascend
import language_atomics
import language_control
import language_drawn
import language_grids
import language_memory
import language_random
import language_requests
from language_cases import Case

CASES: list[Case] = [
    case
    for subject in (
        language_memory,
        language_grids,
        language_control,
        language_atomics,
        language_random,
        language_requests,
        language_ascend,
        language_drawn,
    )
    for case in subject.CASES
]
