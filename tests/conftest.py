"""Settings of all tests: reproducible property tests, campaigns, and fixtures for a browser and servers."""

import gc
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

if "--campaign" not in sys.argv:
    # Set before Numba is imported: compiles in two thirds of the time, with the same results to the last bit.
    # Machine code for any processor is cached apart, so that nothing else uses it.
    os.environ.setdefault("NUMBA_OPT", "1")
    os.environ.setdefault("NUMBA_CPU_NAME", "generic")
os.environ["RAY_AUTH_MODE"] = "disabled"  # otherwise Ray writes a token to the home directory
# 15 by default: the processes of Ray would wait for those of all other tests.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray's spelling

# Half a million objects of the tests stay: searching them for garbage as often as by default takes seconds.
gc.set_threshold(50_000, 20, 100)

pytest_plugins = ["helpers.browser", "helpers.left_processes", "helpers.servers"]

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--campaign", action="store_true", help="run the tests in depth, too")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--campaign"):
        settings.register_profile("campaign", settings.get_profile("repeatable"), max_examples=2000)
        settings.load_profile("campaign")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--campaign"):
        return
    in_depth = [item for item in items if item.get_closest_marker("campaign")]
    config.hook.pytest_deselected(items=in_depth)
    items[:] = [item for item in items if not item.get_closest_marker("campaign")]


@pytest.fixture
def default_interrupt() -> Iterator[None]:
    """Let Ctrl-C raise an exception, also if the parent of the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
