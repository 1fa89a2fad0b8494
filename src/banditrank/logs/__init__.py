"""Counts from click logs, in bounded memory."""
