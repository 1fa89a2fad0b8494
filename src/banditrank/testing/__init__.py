"""Conformance suites: what every policy, solver and click model must satisfy."""
