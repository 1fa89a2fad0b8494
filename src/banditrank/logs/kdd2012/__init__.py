"""The click log of KDD Cup 2012 track 2: from its two files to the figures of the paper's Table 1."""
