"""Stands for the real Inductor."""
