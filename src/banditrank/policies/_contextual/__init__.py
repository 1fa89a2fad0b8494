"""Contextual policies, which learn from features of users and items."""
