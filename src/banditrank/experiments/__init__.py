"""Studies that reproduce the paper and compare policies, with their reports."""
