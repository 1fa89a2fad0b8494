"""Settings for all tests: property tests draw the same examples every time; browsers are to be had."""

from hypothesis import settings

pytest_plugins = ["browser"]

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")
