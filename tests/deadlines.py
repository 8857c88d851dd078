"""How long a test waits for a process of its own: so long that only a hang meets it, whatever else the machine does."""

from __future__ import annotations

HANG = 1800.0
"""Seconds."""
