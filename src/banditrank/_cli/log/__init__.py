"""``banditrank log``: count click logs, and learn from the counts."""
