"""The demo: a service, surfaces on worlds that are known, and simulated users who click through the API."""
