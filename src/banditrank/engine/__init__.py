"""Live: ask for a ranking, tell what was clicked."""
