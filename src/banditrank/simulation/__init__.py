"""Simulation of policies: the compiled loop, replications, results and figures."""
