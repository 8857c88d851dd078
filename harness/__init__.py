"""The judge: starts a fresh interpreter per matrix point and says what came of it."""

__version__ = "0.1.0"
