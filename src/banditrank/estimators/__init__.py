"""From counts to beliefs: the paper's estimators, their confidence radii, and the likelihood's."""
