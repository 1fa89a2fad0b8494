"""Backends: where replications run, on this machine or on a cluster."""
