"""Settings for all tests: property tests draw the same examples every time; browsers and servers exist."""

import os

from hypothesis import settings

os.environ["RAY_AUTH_MODE"] = "disabled"  # Ray would write a token to the home of whoever runs the tests

pytest_plugins = ["helpers.browser", "helpers.servers"]

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")
