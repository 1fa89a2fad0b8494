"""From scores to rankings; knows nothing of learning."""
