"""Components that several baselines share, and those of PMED."""
