"""From click logs to counts, in bounded memory."""
