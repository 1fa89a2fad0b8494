"""Comparison of policies on suites of problems, and reproductions of their own papers."""
