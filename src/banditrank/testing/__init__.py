"""Conformance suites: what every policy and click model must satisfy."""
