"""Says that it is another version than the one that is installed."""

__version__ = "2.98.0"
