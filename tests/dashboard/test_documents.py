"""The documents of the tests conform to the schemas of the service."""

import msgspec
import pytest
from helpers.dashboard_documents import Made, make

from banditrank.dashboard._document_schemas import DashboardDocument, SeriesDocument
from banditrank.service._schemas import SurfaceResponse

MADE = [
    make(),
    make(rounds=0),
    make(truth=False, n_positions=1, types=("all",)),
    make(treatment="equal", utility="nash", retired=("Ad 2",)),
]


@pytest.mark.parametrize("made", MADE, ids=["demo", "empty", "one type", "equal"])
def test_documents_conform_to_the_schemas(made: Made) -> None:
    # What a type does not know is left out, and would be missed.
    assert msgspec.convert(made.dashboard, DashboardDocument) == made.dashboard
    assert msgspec.convert(made.series, SeriesDocument) == made.series
    surface = msgspec.convert(made.surface, SurfaceResponse)
    assert msgspec.to_builtins(surface) == made.surface
