"""Which machine it was: times mean nothing without it."""

import platform
from functools import cache
from pathlib import Path

from banditrank.simulation.backends.local import available_cpus


@cache
def machine() -> str:
    """Return the processor, how many there are, and the Python that ran, in words."""
    return (
        f"{_processor()}, {available_cpus()} cores, {platform.system()}, Python {platform.python_version()}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
