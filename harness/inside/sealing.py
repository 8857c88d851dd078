"""The seal on each record between the interpreter under test and the runner: one that is lost, changed, repeated, or
added by somebody else, shows."""

from __future__ import annotations

import hashlib

KEY_BYTES = 16


class Chain:
    """Both ends make one from the same key, and seal the same records in the same order."""

    def __init__(self, key: bytes) -> None:
        self._digest = hashlib.blake2b(key=key, digest_size=8)

    def seal(self, record: bytes) -> bytes:
        """The seal of the next record, 16 hexadecimal digits: it depends on all records so far."""
        self._digest.update(record)
        return self._digest.hexdigest().encode()
