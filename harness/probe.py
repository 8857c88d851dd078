"""`from harness import probe` where the runner has not started the interpreter: by hand, or in one that a case starts.
Binds the name `harness` to inside/, as the runner's child does, and hands over to the probe there."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from .inside.child import bind
from .inside.protocol import POINT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .inside.probe import *  # noqa: F403 - for editors, which see no interpreter under test


def _hand_over() -> None:
    point = None
    if POINT not in os.environ:
        from . import by_hand

        point = by_hand.point()
    for name in [name for name in sys.modules if name.startswith(f"{__package__}.")]:
        del sys.modules[name]
    bind()
    import_module(__name__)
    if point is not None:
        import_module(f"{__name__}._by_hand").begin(
            f"{point.id}: {point.case.title}", dict(point.params), point.case.timeout
        )


_hand_over()
