"""Updates of a loaded surface, and equal treatment of its users."""

import contextlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.live import ITEMS, TYPES, a_ranker, a_surface, play, seeded, wait_until

from banditrank._feedback import Feedback
from banditrank._ranker import Ranker
from banditrank.engine._engine import Engine
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.storage._memory import MemoryStore
from banditrank.storage._sqlite import SqliteStore


def shown_items(ranker: Ranker, rounds: int) -> set[str]:
    return {item for _ in range(rounds) for name in ("new", "old") for item in ranker.rank(name).items}


@pytest.mark.parametrize("policy", ["auto", "ucb-rank"])
def test_a_new_item_is_explored_and_the_others_keep_their_counts(policy: str) -> None:
    with a_ranker(a_surface(policy=policy)) as ranker:
        play(ranker, 150, seed=1)
        before = ranker.counts()
        ranker.add_items(["late"])
        after = ranker.counts()
        assert (after.displays[:, :5] == before.displays).all()
        assert (after.rewards[:, :5] == before.rewards).all()
        assert after.rounds == before.rounds == 150
        assert after.displays[:, 5].sum() == 0
        assert "late" in shown_items(ranker, 100)
        play(ranker, 60, seed=2)
        assert ranker.counts().displays[:, 5].sum() > 0


def test_a_retired_item_is_not_shown_and_its_counts_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as one, SqliteStore(path) as two, a_ranker(store=one) as first:
        play(first, 60, seed=1)
        displays = {item.item: item.displays for item in first.estimates().user_types[0].items}
        with a_ranker(store=two, sync_seconds=0.01, random_bytes=seeded(2)) as second:
            pending = second.rank("new")
            first.retire_items([pending.items[0], "e" if pending.items[0] != "e" else "d"])
            retired = set(first.surface.retired)
            assert not shown_items(first, 100) & retired
            wait_until(lambda: set(second.surface.retired) == retired)
            second._runtime.refresh()
            assert not shown_items(second, 100) & retired
            assert second.feedback(pending.id, clicked=pending.items[0]) == "counted", "it was shown"
            assert first.counts().n_items == 3
    with SqliteStore(path) as store, a_ranker(store=store) as restarted:
        assert not shown_items(restarted, 100) & retired
        again = {item.item: item.displays for item in restarted.estimates().user_types[0].items}
        assert again == {item: displays[item] + (item in pending.items) for item in ITEMS}
        restarted.add_items(retired)
        assert restarted.counts().rounds == 61
        assert restarted.counts().n_items == 5


def test_an_item_that_another_replica_added_can_be_clicked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    surface = a_surface(policy="random")
    with (
        SqliteStore(path) as one,
        SqliteStore(path) as two,
        a_ranker(surface, one) as first,
        a_ranker(surface, two, sync_seconds=3600.0) as second,
    ):
        first.add_items(["late"])
        shown = next(shown for shown in iter(lambda: first.rank("new"), None) if "late" in shown.items)
        assert second.feedback(shown.id, clicked="late") == "counted"
        assert "late" in second.surface.items


def test_feedback_for_a_new_item_can_be_read_as_soon_as_its_revision_is_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    surface = a_surface(policy="random")
    with a_ranker(surface, store) as one, a_ranker(surface, store) as two:
        two._engine._sync_loop.close()  # it reads the store for feedback alone
        one.add_items(["late"])
        shown = next(shown for _ in range(1000) if "late" in (shown := one.rank("new")).items)
        validator, read = two._runtime.validator, []
        add = validator.add

        def add_and_read(*args: Any) -> None:
            add(*args)
            if cached := two._engine.cached_ranking(shown.id):
                read.append(cached[0].event(cached[1], Feedback(shown.id, "late")))

        monkeypatch.setattr(validator, "add", add_and_read)
        assert two.feedback(shown.id, clicked="late") == "counted"
        assert len(read) == 1


def cpu_seconds(call: Callable[[], object]) -> float:
    started = time.thread_time()
    call()
    return time.thread_time() - started


def update_seconds(n_items: int) -> list[float]:
    """Return the CPU time to update a surface of many items, to read each update, and to open it."""
    surface = a_surface(items=[f"item-{number}" for number in range(n_items)], user_types=TYPES[:1])
    store = MemoryStore()
    engine, replica = Engine(store), Engine(store)
    with contextlib.closing(engine), contextlib.closing(replica):
        for one in (engine, replica):
            one._sync_loop.close()  # nothing else works on the surface
        engine.create_surface(surface)
        runtime = replica.surface("home")
        half = surface.items[: n_items // 2]
        seconds = [
            cpu_seconds(partial(step, *arguments))
            for change in (
                lambda surface: surface.with_items(["late"]),
                lambda surface: surface.with_retired(["late"]),
                lambda surface: surface.with_retired(half),
                lambda surface: surface.with_items(half),
            )
            for step, *arguments in (
                (engine.update_surface, "home", change),
                (replica._registry.update_definition, runtime),
            )
        ]
        assert runtime.revision == 5
    return [*seconds, cpu_seconds(lambda: a_ranker(surface, store).close())]


def test_the_time_of_an_update_is_linear_in_the_number_of_items() -> None:
    few, many = (
        [min(times) for times in zip(*(update_seconds(n) for _ in range(3)), strict=True)]
        for n in (1000, 4000)
    )
    # 16 times as much if each item is searched in a list of all
    assert [many_one < 10 * few_one for few_one, many_one in zip(few, many, strict=True)] == [True] * 9


def test_invalid_and_unknown_items_are_rejected() -> None:
    with a_ranker() as ranker:
        with pytest.raises(UnknownNameError, match="items must be one of a, b"):
            ranker.retire_items(["a", "z"])
        with pytest.raises(InvalidInputError, match="must leave at least 2"):
            ranker.retire_items(["a", "b", "c", "d"])
        for names in ([], "abc", [""], ["x", "x"], [1]):
            for update in (ranker.add_items, ranker.sync_items):
                with pytest.raises(InvalidInputError, match=r"items(\[0\])? must"):
                    update(names)
        assert ranker.surface == a_surface()


@pytest.mark.parametrize("utility", ["utilitarian", "nash"])
def test_equal_treatment_shows_one_ranking_to_all_user_types(utility: str) -> None:
    surface = a_surface(treatment="equal", utility=utility, items=[f"i{n}" for n in range(9)])
    with a_ranker(surface) as ranker:
        rankings = []
        for step in range(25):
            same = {ranker.rank(name).items for name in ("new", "old") * 4}
            assert len(same) == 1, "the same counts gave two rankings"
            rankings += same
            play(ranker, 1, seed=step)
    assert len(set(rankings)) > 5, "it does not explore"


def test_replicas_treat_users_equally_under_the_same_counts(tmp_path: Path) -> None:
    path, surface = tmp_path / "store.db", a_surface(treatment="equal", utility="nash")
    with SqliteStore(path) as one, SqliteStore(path) as two, a_ranker(surface, one) as first:
        play(first, 20, seed=1)
        with a_ranker(surface, two, random_bytes=seeded(2)) as second:
            for _ in range(5):
                play(first, 1, seed=2)
                wait_until(lambda: second.counts().rounds == first.counts().rounds)
                assert second.rank("old").items == first.rank("new").items


def test_personalized_rankings_explore_under_the_same_counts() -> None:
    with a_ranker() as ranker:
        assert len({ranker.rank("new").items for _ in range(50)}) > 5
