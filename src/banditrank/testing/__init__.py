"""Conformance suites for policies, solvers, stores and click models."""
