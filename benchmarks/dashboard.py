"""Cost of open dashboards: throughput of the service with ten of them and without."""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from interleaving import interleave, ratio
from service import background, load, our_service, surface

PAGES = 10
NASH = {"treatment": "equal", "utility": "nash"}


def measure_dashboard() -> Iterator[dict[str, float]]:
    """Measure a personalized surface and an equal one, with and without pages, taking turns."""
    surfaces = {
        "personalized, 20 items, 4 positions": surface(20, 4),
        "Nash, 6 items, 3 positions": surface(6, 3) | NASH,
    }
    for name, body in surfaces.items():
        with (
            tempfile.TemporaryDirectory() as directory,
            our_service(Path(directory) / "store.db", body) as port,
        ):
            rates = interleave({"none": lambda: _rate(port), "ten": lambda: _rate_with_pages(port)})
        yield {f"{name}, requests a second": statistics.median(rates["none"])}
        yield {
            f"{name}, with {PAGES} dashboards / without (at least 0.9)": ratio(rates["ten"], rates["none"])
        }


def _rate(port: int) -> float:
    return load(port)["requests_a_second"]


def _rate_with_pages(port: int) -> float:
    with background("open_pages.py", port, PAGES):
        return _rate(port)
