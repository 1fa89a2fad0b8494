"""What tests show the page is what the service would tell it: made-up documents have the service's types."""

import msgspec
import pytest
from helpers.dashboard_documents import Made, make

from banditrank.dashboard.document_schemas import DashboardDocument, SeriesDocument
from banditrank.service.models import SurfaceAnswer

MADE = [
    make(),
    make(rounds=0),
    make(truth=False, n_positions=1, types=("all",)),
    make(treatment="equal", utility="nash", retired=("Ad 2",)),
]


@pytest.mark.parametrize("made", MADE, ids=["demo", "empty", "one type", "equal"])
def test_documents_are_of_the_services_types(made: Made) -> None:
    # What a type does not know is left out, and would be missed.
    assert msgspec.convert(made.dashboard, DashboardDocument) == made.dashboard
    assert msgspec.convert(made.series, SeriesDocument) == made.series
    told = msgspec.convert(made.surface, SurfaceAnswer)
    assert msgspec.to_builtins(told) == made.surface
