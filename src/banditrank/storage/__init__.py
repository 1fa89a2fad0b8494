"""Stores of surfaces, impressions, counts and API keys."""
