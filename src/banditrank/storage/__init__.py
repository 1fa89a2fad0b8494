"""Where counts live: stores behind one contract."""
