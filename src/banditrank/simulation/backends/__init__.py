"""Where replications run: on this machine, or on a cluster."""
