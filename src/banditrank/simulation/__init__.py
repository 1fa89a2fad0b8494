"""The compiled loop, replications, results and figures."""
