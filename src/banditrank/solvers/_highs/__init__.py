"""Solvers based on HiGHS: the paper's linear program, and outer approximation."""
