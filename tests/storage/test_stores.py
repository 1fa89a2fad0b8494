"""Every store keeps the contract."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from banditrank.storage.base import Store
from banditrank.storage.memory import MemoryStore
from banditrank.storage.factory import open_store
from banditrank.testing.store_events import OpenStore
from banditrank.testing.stores import STORE_CHECKS


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Give what opens a store that is empty at first, and close all at the end."""
    opened: list[Store] = []
    if request.param == "memory":
        opened.append(MemoryStore())
    elif request.param == "sqlite":
        address = f"sqlite:{tmp_path / 'store.db'}"
    else:  # the server's fixture is asked for by those only that need it
        address = request.getfixturevalue(request.param).address()

    def open_one() -> Store:
        if request.param != "memory":
            opened.append(open_store(address))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_store_conforms(opening: OpenStore, check: Callable[[OpenStore], None]) -> None:
    check(opening)
