"""Settings of all tests: reproducible property tests, and fixtures for a browser and servers."""

import os

from hypothesis import settings

os.environ["RAY_AUTH_MODE"] = "disabled"  # otherwise Ray writes a token to the home directory

pytest_plugins = ["helpers.browser", "helpers.servers"]

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")
