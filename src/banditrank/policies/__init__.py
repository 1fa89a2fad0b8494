"""Policies, which choose a ranking from counts."""
