"""Catalogue sync: a surface gets exactly the items of a list, in one step that can be repeated."""

import threading

import pytest
from helpers.live import a_ranker, a_surface, play, wait_until
from hypothesis import given, settings
from hypothesis import strategies as st

from banditrank import Surface
from banditrank.engine import ItemChanges
from banditrank.engine._surface import MAX_ITEMS
from banditrank.errors import InvalidInputError
from banditrank.storage._memory import MemoryStore

NAMES = st.lists(st.sampled_from("abcdefghij"), min_size=2, unique=True)


@given(before=NAMES, synced=st.lists(NAMES, min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_the_active_items_are_those_of_the_catalogue(before: list[str], synced: list[list[str]]) -> None:
    surface = Surface("home", items=before, n_positions=2)
    for catalogue in synced:
        updated = surface.with_catalogue(catalogue)
        changes = ItemChanges.between(surface, updated)
        assert set(updated.active_items) == set(catalogue)
        assert surface.successor(updated, version=1) is updated, "the counts fit"
        assert set(changes.added) == set(catalogue) - set(surface.items)
        assert set(changes.revived) == set(catalogue) & set(surface.retired)
        assert set(changes.retired) == set(surface.active_items) - set(catalogue)
        assert len(catalogue) == len(changes.added) + len(changes.revived) + changes.unchanged
        again = updated.with_catalogue(list(reversed(catalogue)))
        assert again == updated, "a repeated sync changes nothing"
        assert updated.with_items(catalogue) == updated
        surface = updated


def test_a_repeated_sync_writes_nothing_and_counts_are_kept() -> None:
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        play(ranker, 20, seed=1)
        before = ranker.counts()
        changes = ranker.sync_items(iter(["b", "c", "f"]))
        assert changes == ItemChanges(added=("f",), revived=(), retired=("a", "d", "e"), unchanged=2)
        revision = store.find_surface("home").revision
        assert revision == 2, "one update of the definition"
        assert ranker.sync_items(["f", "c", "b"]) == ItemChanges((), (), (), 3)
        assert ranker.add_items(["b"]) == ItemChanges((), (), (), 3)
        assert store.find_surface("home").revision == revision
        assert all(set(ranker.rank("new").items) <= {"b", "c", "f"} for _ in range(20))
        assert ranker.sync_items(list("abcde")).revived == ("a", "d", "e")
        assert ranker.counts() == before, "a revived item keeps its counts"


def test_concurrent_syncs_of_two_replicas_end_in_one_of_the_two_lists() -> None:
    store = MemoryStore()
    catalogues = (["a", "b", "x"], ["c", "y", "z"])
    with (
        a_ranker(store=store, sync_seconds=0.01) as one,
        a_ranker(store=store, sync_seconds=0.01) as two,
    ):
        for _ in range(10):
            start = threading.Barrier(2)

            def sync(ranker: object, catalogue: list[str], start: threading.Barrier = start) -> None:
                start.wait()
                ranker.sync_items(catalogue)

            threads = [
                threading.Thread(target=sync, args=arguments)
                for arguments in zip((one, two), catalogues, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            wait_until(lambda: one.surface == two.surface)
            assert set(one.surface.active_items) in map(set, catalogues)


@pytest.mark.parametrize(
    ("catalogue", "message"),
    [
        ([], "items must be a list of 1 to 10,000 names, got 0"),
        (["a"], "items must be at least 2, one for each position, got 1"),
        (["a", "a"], "items must all be different, got 'a'"),
        ("ab", "items must be a list of 1 to 10,000 names, got 'ab'"),
        (["a", ".."], r"items\[1\] must not be . or .., got '..'"),
        (
            [f"new-{n}" for n in range(MAX_ITEMS)],
            "items must be at most 10,000, retired ones included, got 10005",
        ),
    ],
)
def test_an_invalid_catalogue_changes_nothing(catalogue: list[str], message: str) -> None:
    with a_ranker() as ranker:
        with pytest.raises(InvalidInputError, match=message):
            ranker.sync_items(catalogue)
        assert ranker.surface == a_surface()
