"""A ranker takes a changed definition on deployment as its argument ``update`` says."""

import logging
import threading
from typing import Any

import pytest
from helpers.live import ITEMS, a_ranker, a_surface, play, wait_until

from banditrank._ranker import Ranker
from banditrank.engine._engine import Engine
from banditrank.engine._experiment import Arm, SurfaceExperiment
from banditrank.engine._surface import Surface
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.solvers._lottery.guarantees import LeastExposure
from banditrank.storage._memory import MemoryStore

CHANGED = (*ITEMS[1:], "f")  # one item removed, and one added


@pytest.fixture
def store() -> MemoryStore:
    """Return a store with a surface that has learned something."""
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        play(ranker, 5, seed=1)
    return store


def active_items(surface: Surface, store: MemoryStore, **settings: Any) -> tuple[str, ...]:
    """Deploy a definition, and return the active items."""
    with a_ranker(surface, store, **settings) as ranker:
        assert ranker.counts().rounds == 5
        return ranker.surface.active_items


def revision(store: MemoryStore) -> int:
    found = store.find_surface("home")
    assert found is not None
    return found.revision


@pytest.mark.parametrize("settings", [{}, {"update": "items"}, {"update": "all"}], ids=str)
def test_added_and_removed_items_are_taken_alike(store: MemoryStore, settings: dict[str, Any]) -> None:
    """Finding 15: a redeployment with more and fewer items makes these the active ones, and keeps counts."""
    assert active_items(a_surface(items=CHANGED), store, **settings) == CHANGED
    deployed_at = revision(store)
    assert active_items(a_surface(items=CHANGED[::-1]), store, **settings) == CHANGED
    assert revision(store) == deployed_at, "the same definition changes nothing"
    assert active_items(a_surface(), store, **settings) == ITEMS
    with a_ranker(a_surface(items=CHANGED, retired=["f"]), store, **settings) as ranker:
        assert ranker.surface.active_items == CHANGED[:-1]


@pytest.mark.parametrize("update", ["items", "all"])
def test_items_changed_at_run_time_survive_restarts(store: MemoryStore, update: Any) -> None:
    """Finding 15: a deployment takes what its definition gained and lost, and a restart takes nothing."""
    with a_ranker(store=store) as ranker:
        ranker.add_items(["f"])
        ranker.retire_items(["a"])
    changed_at = revision(store)
    assert active_items(a_surface(), store, update=update) == ("b", "c", "d", "e", "f")
    assert revision(store) == changed_at, "a restart with the same definition changes nothing"
    # "b" removed, "g" added, and both "a" and "f" named for the first time since they changed
    assert active_items(a_surface(items=list("acdeg")), store, update=update) == ("c", "d", "e", "f", "g")
    assert active_items(a_surface(items=list("acdefg")), store, update=update) == ("c", "d", "e", "f", "g")
    assert active_items(a_surface(items=list("cdeg")), store, update=update) == ("c", "d", "e", "g")
    assert active_items(a_surface(items=list("acdeg")), store, update=update) == ("a", "c", "d", "e", "g")


@pytest.mark.parametrize("update", ["items", "all"])
def test_a_refusal_names_the_items_that_were_retired_at_run_time(store: MemoryStore, update: Any) -> None:
    """Finding 15: if too few items would be left, the error says which ones were retired at run time."""
    with a_ranker(store=store) as ranker:
        left = ranker.surface.n_positions
        ranker.retire_items(ITEMS[:-left])
    message = (
        rf"^{ranker.surface.name}'s items must leave at least {left} items besides those that were retired "
        rf"at run time, got \['a', .*\]$"
    )
    with pytest.raises(InvalidInputError, match=message):
        a_ranker(a_surface(items=ITEMS[:-1]), store, update=update)
    assert active_items(a_surface(), store, update=update) == ITEMS[-left:]


def test_the_first_deployment_to_a_surface_created_otherwise_retires_nothing() -> None:
    """Finding 15: without an earlier definition there is nothing that the deployed one lost."""
    store = MemoryStore()
    engine = Engine(store)
    engine.create_surface(a_surface(retired=["a"]))
    engine.close()
    for items, expected in (("abcx", "bcdex"), ("abc", "bcde")):
        with a_ranker(a_surface(items=list(items)), store) as ranker:
            assert ranker.surface.active_items == tuple(expected)


def test_a_stored_definition_is_kept_on_request(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    """Finding 15: with update='never' nothing changes, whatever differs, and a warning names it."""
    before = revision(store)
    other = a_surface(items=CHANGED, n_positions=3, policy="ucb-rank", user_types=["new"])
    assert active_items(other, store, update="never") == ITEMS
    assert active_items(a_surface(), store, update="never") == ITEMS
    assert revision(store) == before
    (record,) = [each for each in caplog.records if each.name.startswith("banditrank")]
    assert record.levelname == "WARNING"
    assert (
        record.getMessage() == "surface differs from the stored one in items, n_positions, user_types, policy"
    )


def test_other_settings_are_taken_on_request(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    """Finding 15: with update='all' the deployed settings are taken, and learning continues."""
    changed = a_surface(
        items=CHANGED,
        user_types=["new", "old", "regular"],
        policy="random",
        attribution_seconds=60.0,
        allow_short_rankings=True,
    )
    with caplog.at_level(logging.INFO), a_ranker(changed, store, update="all") as ranker:
        surface = ranker.surface
        assert (surface.policy, surface.attribution_seconds) == ("random", 60.0)
        assert surface.user_types == ("new", "old", "regular")
        assert surface.active_items == CHANGED
        assert ranker.counts().rounds == 5
        shown = ranker.rank("regular", candidates=["f"])
        assert ranker.feedback(shown.id, clicked="f") == "counted"
        assert ranker.explain(shown.id).is_reproduced
    (message,) = [each.getMessage() for each in caplog.records if "updated" in each.getMessage()]
    assert message == (
        "surface updated in items, user_types, policy, attribution_seconds, allow_short_rankings"
    )


def test_items_and_guarantees_change_together(store: MemoryStore) -> None:
    """Finding 15: a definition is taken as a whole, so that what only fits together is accepted."""
    settings = {"treatment": "equal-lottery", "utility": "nash"}
    for n_items, level in ((5, 0.2), (10, 0.1), (2, 0.5)):
        items = [f"item-{number}" for number in range(n_items)]
        guarantees = [LeastExposure(level)]
        surface = Surface("shelf", items=items, n_positions=1, guarantees=guarantees, **settings)
        with a_ranker(surface, store, update="all") as ranker:
            assert len(ranker.surface.active_items) == n_items


@pytest.mark.parametrize("update", ["items", "all"])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_positions": 1}, "home's n_positions must be 2 as in the store, got 1"),
        (
            {"user_types": ["old", "new"]},
            r"home's user_types must be \['new', 'old'\] as in the store, got \['old', 'new'\]",
        ),
        (
            {"user_types": ["new"]},
            r"home's user_types must be \['new', 'old'\] as in the store, got \['new'\]",
        ),
    ],
)
def test_settings_that_cannot_change_are_refused(
    store: MemoryStore, update: Any, changed: dict[str, Any], message: str
) -> None:
    """Finding 15: a setting that cannot change is refused with the stored and the deployed value."""
    before = revision(store)
    with pytest.raises(InvalidInputError, match=f"^{message}$"):
        a_ranker(a_surface(items=CHANGED, **changed), store, update=update)
    assert revision(store) == before, "a refused definition changes nothing"


def test_a_refusal_names_the_argument_that_takes_the_setting(store: MemoryStore) -> None:
    """Finding 15: by default only items are taken, and the error says how others are."""
    message = "home's policy must be 'auto' as in the store, unless update is 'all', got 'random'"
    with pytest.raises(InvalidInputError, match=f"^{message}$"):
        a_ranker(a_surface(policy="random"), store)


def test_an_unknown_update_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="update must be one of items, all, never, got 'some'"):
        Ranker(a_surface(), update="some")  # type: ignore[arg-type]


def test_an_experiment_is_taken_with_the_settings(store: MemoryStore) -> None:
    """Finding 15: a deployed experiment replaces the stored one, and no experiment continues it."""
    first, second = (SurfaceExperiment(name, [Arm("hold-out", 0.5)]) for name in ("autumn", "winter"))
    for experiment, expected in ((first, first), (None, first), (second, second)):
        with a_ranker(a_surface(experiment=experiment), store, update="all") as ranker:
            assert ranker.surface.experiment == expected
            assert len(ranker.surface.experiment_periods) == 1 + (expected == second)


def test_old_and_new_processes_side_by_side_do_not_flap(store: MemoryStore) -> None:
    """Finding 15: a definition is taken once, at the start; a running process does not take its own back."""
    old, new = a_surface(), a_surface(items=CHANGED)
    with a_ranker(old, store) as running:
        with a_ranker(new, store) as started:
            wait_until(lambda: running.surface.active_items == CHANGED)
            taken_at = revision(store)
            for ranker in (running, started) * 5:
                shown = ranker.rank("new", candidates=ITEMS)
                assert shown.ignored == ("a",)
                assert ranker.feedback(shown.id) == "counted"
        assert running.rank("new").items
        assert revision(store) == taken_at


def test_processes_that_deploy_at_once_agree(store: MemoryStore) -> None:
    """Finding 15: of definitions that are deployed at once, the last one that starts holds everywhere."""
    definitions = [a_surface(items=items) for items in (ITEMS, CHANGED)] * 3
    rankers: list[Ranker] = []
    threads = [
        threading.Thread(target=lambda each=each: rankers.append(a_ranker(each, store)))
        for each in definitions
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(rankers) == len(definitions)
        wait_until(lambda: len({ranker.surface for ranker in rankers}) == 1)
        assert rankers[0].surface.active_items in (ITEMS, CHANGED)
    finally:
        for ranker in rankers:
            ranker.close()
