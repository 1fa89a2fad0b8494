"""What the memory store does not do."""

from typing import NoReturn

import pytest

from banditrank.storage.memory import MemoryStore
from banditrank.storage.records import Event
from banditrank.testing.store_events import CLICK, shown


class NotToBeSearched(dict):
    """Fails if it is gone through."""

    def __iter__(self) -> NoReturn:
        pytest.fail("all that was ever settled is searched, by every sweep")

    items = values = keys = __iter__


def test_whoever_looks_for_open_rankings_does_not_search_those_that_are_settled() -> None:
    store = MemoryStore()
    surface = store.create_surface("home", "{}").number
    store._replica[surface].outcomes = NotToBeSearched()
    still_open = Event(shown(surface, 2), None)
    store.commit([Event(shown(surface, 1), None), still_open])
    store.commit([Event(shown(surface, 1), CLICK)])
    assert store.pending_impressions(surface, since=0, until=5000) == [still_open]
