"""From counts to rankings: one policy a file."""
