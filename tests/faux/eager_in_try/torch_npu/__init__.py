"""Loads Dynamo under cover of an except that would also swallow the error of a blocked import."""

import contextlib

__version__ = "2.99.0"


def _probe_backend() -> bool:
    with contextlib.suppress(Exception):
        import torch._dynamo as dynamo

        return bool(dynamo.BACKENDS)
    return False


HAS_BACKENDS = _probe_backend()
