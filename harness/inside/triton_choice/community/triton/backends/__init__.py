"""The real package lists its backends here; without a GPU's tools none is of use."""

backends: dict = {}
