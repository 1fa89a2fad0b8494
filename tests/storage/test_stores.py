"""Every store passes the conformance suite."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from banditrank.storage._base import Store
from banditrank.storage._factory import open_store
from banditrank.storage._memory import MemoryStore
from banditrank.testing._store_events import OpenStore
from banditrank.testing._stores import STORE_CHECKS


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis"])
def open_same_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Return a function that opens a store, empty at first; close what it opened at the end."""
    opened: list[Store] = []
    if request.param == "memory":
        opened.append(MemoryStore())
    elif request.param == "sqlite":
        address = f"sqlite:{tmp_path / 'store.db'}"
    else:  # starts the server on first use
        address = request.getfixturevalue(request.param).address()

    def open_one() -> Store:
        if request.param != "memory":
            opened.append(open_store(address))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_store_conforms(open_same_store: OpenStore, check: Callable[[OpenStore], None]) -> None:
    check(open_same_store)
