"""Solvers: from scores to rankings, without learning."""
