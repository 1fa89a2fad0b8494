"""Every store keeps the contract."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from banditrank.storage.base import Store
from banditrank.storage.memory import MemoryStore
from banditrank.storage.opening import open_store
from banditrank.testing.stores import STORE_CHECKS, OpenStore


def memory(_: Path) -> OpenStore:
    store = MemoryStore()
    return lambda: store


def sqlite(directory: Path) -> OpenStore:
    return lambda: open_store(f"sqlite:{directory / 'store.db'}")


@contextmanager
def closing_all(open_one: OpenStore) -> Iterator[OpenStore]:
    opened: list[Store] = []

    def opening() -> Store:
        opened.append(open_one())
        return opened[-1]

    yield opening
    for store in opened:
        store.close()


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", [memory, sqlite], ids=lambda make: make.__name__)
def test_store_conforms(
    make: Callable[[Path], OpenStore], check: Callable[[OpenStore], None], tmp_path: Path
) -> None:
    with closing_all(make(tmp_path)) as opening:
        check(opening)
