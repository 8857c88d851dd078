"""A torch of a few lines: enough to be imported, and to have a compiler that can stay out."""

__version__ = "2.99.0+faux"
