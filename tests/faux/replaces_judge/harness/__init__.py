"""Says yes to everything."""
