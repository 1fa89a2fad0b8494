"""The click log of KDD Cup 2012 track 2: extraction, estimation and diagnosis of the paper's Table 1."""
