"""From counts to beliefs: the paper's estimators and their confidence radii."""
