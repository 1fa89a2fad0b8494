"""Long-running campaigns against a service: crashes, soak and disk use."""
