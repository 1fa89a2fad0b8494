"""Problems, click models, rewards, and the values of rankings."""
