"""Long-running checks of a running service, and what they are made of."""
