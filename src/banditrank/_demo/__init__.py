"""Demo: a service, two surfaces with known problems, and simulated users who click through the API."""
