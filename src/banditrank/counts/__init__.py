"""Additive counts, all that policies learn from."""
