"""Description of the machine, without which running times cannot be compared."""

import platform
from functools import cache
from pathlib import Path

from banditrank.simulation._backends.local import available_cpus


@cache
def describe_machine() -> str:
    """Return the processor, the number of cores, the system and the Python version."""
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
