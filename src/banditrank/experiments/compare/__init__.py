"""Policies side by side on suites of problems, and what their own papers report of them."""
