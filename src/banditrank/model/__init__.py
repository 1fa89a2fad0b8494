"""The world: problems, click models, rewards, and what rankings are worth."""
