"""What the memory store does not do."""

from typing import NoReturn

import pytest

from banditrank.storage.memory import MemoryStore
from banditrank.storage.records import Entry
from banditrank.testing.store_events import CLICK, shown


class NotToBeSearched(dict):
    """Fails if it is gone through."""

    def __iter__(self) -> NoReturn:
        pytest.fail("all that was ever settled is searched, by every sweep")

    items = values = keys = __iter__


def test_whoever_looks_for_open_rankings_does_not_search_those_that_are_settled() -> None:
    store = MemoryStore()
    surface = store.create_surface("home", "{}").number
    store._learned[surface].outcomes = NotToBeSearched()
    still_open = Entry(shown(surface, 2), None)
    store.commit([Entry(shown(surface, 1), None), still_open])
    store.commit([Entry(shown(surface, 1), CLICK)])
    assert store.open_entries(surface, since=0, until=5000) == [still_open]
