"""The memory store does not search outcomes for pending impressions."""

from typing import NoReturn

import pytest

from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import Event, Outcome
from banditrank.testing._store_events import CLICK, shown


class NotIterable(dict[bytes, Outcome]):
    """A dictionary that fails the test when it is iterated."""

    def __iter__(self) -> NoReturn:
        pytest.fail("every sweep searches all outcomes")

    items = values = keys = __iter__


def test_pending_impressions_are_found_without_a_search_of_outcomes() -> None:
    store = MemoryStore()
    surface = store.create_surface("home", "{}").surface_id
    store._states[surface].outcomes = NotIterable()
    store.commit([Event(shown(surface, 1), None), Event(shown(surface, 2), None)])
    store.commit([Event(shown(surface, 1), CLICK)])
    assert store.pending_impressions(surface, since_ms=0, until_ms=5000) == [shown(surface, 2)]
