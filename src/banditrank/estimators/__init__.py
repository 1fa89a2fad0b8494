"""Estimators: from counts to arrival rates, position preferences and item means, with confidence sets."""
