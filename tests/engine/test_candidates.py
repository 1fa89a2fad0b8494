"""Rankings of candidates and pinned items, in process."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from helpers.live import Clock, a_ranker, a_surface, seeded
from hypothesis import given
from hypothesis import strategies as st

from banditrank import make_problem
from banditrank._ranker import Ranker
from banditrank.engine._allowed_items import ALL_ITEMS, AllowedItems
from banditrank.engine._policy_snapshot import PolicySnapshot
from banditrank.engine._served_policies import SERVED_NAMES
from banditrank.engine._surface import Surface
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.storage._memory import MemoryStore
from banditrank.testing._policies import dense_counts

ITEMS = [f"item-{number}" for number in range(6)]


def learned_ranker(**settings: Any) -> Ranker:
    """Return a ranker that has learned something."""
    surface = a_surface(items=ITEMS, n_positions=3, **settings)
    ranker = a_ranker(surface)
    for number in range(30):
        shown = ranker.rank(surface.user_types[number % 2])
        ranker.feedback(shown.id, clicked=shown.items[number % 3] if number % 4 else None)
    return ranker


SETTINGS = [
    {},
    {"treatment": "equal"},
    {"treatment": "equal", "utility": "nash"},
    {"policy": "ucb-rank"},
    {"policy": "random"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_candidates_and_pins_are_never_violated(settings: dict[str, Any]) -> None:
    with learned_ranker(**settings) as ranker:
        rng = np.random.default_rng(1)
        for _ in range(40):
            candidates = [str(one) for one in rng.permutation(ITEMS)[: rng.integers(3, 7)]]
            excluded = [candidates[0]] if len(candidates) > 4 else []
            pinned = (
                {int(rng.integers(1, 4)): ITEMS[5]} if rng.random() < 0.5 and ITEMS[5] not in excluded else {}
            )
            shown = ranker.rank("new", candidates=candidates, exclude=excluded, pinned=pinned)
            allowed = set(candidates) - set(excluded)
            assert len(set(shown.items)) == 3
            for position, item in enumerate(shown.items, start=1):
                assert item == pinned[position] if position in pinned else item in allowed
            explanation = ranker.explain(shown.id)
            assert explanation.is_reproduced
            assert explanation.candidates == [one for one in ITEMS if one in allowed]
            assert explanation.pinned == pinned
            assert {one.item for one in explanation.omitted_items} <= allowed - set(shown.items)
            assert ranker.feedback(shown.id, clicked=shown.items[0]) == "counted"


@pytest.mark.parametrize("utility", ["utilitarian", "nash", "maximin"])
def test_equal_treatment_is_equal_for_the_same_candidates(utility: str) -> None:
    with learned_ranker(treatment="equal", utility=utility) as ranker:
        for allowed in ({"candidates": ITEMS[1:5]}, {"exclude": [ITEMS[0]]}, {"pinned": {2: ITEMS[3]}}):
            shown = {ranker.rank(user_type, **allowed).items for user_type in ("new", "old") * 3}
            assert len(shown) == 1


@pytest.mark.parametrize("policy", ["thompson-rank", "greedy-rank"])
def test_a_restricted_ranking_is_the_best_of_the_sampled_problem(policy: str) -> None:
    surface = a_surface(items=ITEMS, n_positions=2, treatment="equal", utility="nash", policy=policy)
    counts = dense_counts(make_problem("random", n_user_types=2, n_items=6, n_positions=2, seed=3))
    snapshot = PolicySnapshot(surface, 1, 1, counts)
    allowed = AllowedItems.of(surface, candidates=ITEMS[:4], pinned={1: ITEMS[5]})
    ranking = snapshot.recompute(0, bytes(8), allowed)
    assert ranking[0] == 5
    assert ranking[1] in range(4)
    sampled = snapshot.sampled_problem(0, bytes(8), allowed)
    if sampled is None:
        return

    def nash(items: tuple[int, ...]) -> float:
        values = (sampled.position_preferences * sampled.item_means[:, list(items)]).sum(axis=1)
        return float(sampled.arrival_rates @ np.log(values))

    best = max((one for one in permutations(range(6), 2) if allowed.allows(one)), key=nash)
    assert nash(ranking) >= nash(best) - 0.02 * abs(nash(best))


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (
            {"candidates": ["a", "item-1", "b\n", "a"]},
            r"candidates must leave at least 3 items, one .* \(ignored: 'a', 'b\\n'\), got 1",
        ),
        ({"candidates": [5, *ITEMS]}, "candidates must be a list of names, got 5"),
        (
            {"candidates": ITEMS[:2]},
            "candidates must leave at least 3 items, one for each position that is not pinned, got 2",
        ),
        ({"candidates": []}, "candidates must leave at least 3 items"),
        ({"candidates": "item-1"}, "candidates must be a list of names"),
        ({"exclude": ITEMS[:4]}, "exclude must leave at least 3 items"),
        ({"pinned": {1: "gone"}}, "pinned must be one of item-0"),
        ({"pinned": {0: ITEMS[0]}}, "pinned.0 must be a whole number from 1 to 3, got 0"),
        ({"pinned": {4: ITEMS[0]}}, "pinned.4 must be a whole number from 1 to 3, got 4"),
        ({"pinned": {1: ITEMS[0], 2: ITEMS[0]}}, "pinned must have each item once"),
        ({"pinned": {1: ITEMS[0]}, "exclude": [ITEMS[0]]}, "pinned must not be excluded"),
        ({"pinned": ["item-0"]}, "pinned must map positions to items"),
    ],
)
def test_invalid_restrictions_are_rejected(allowed: dict[str, Any], message: str) -> None:
    with a_ranker(a_surface(items=ITEMS, n_positions=3)) as ranker:
        with pytest.raises((InvalidInputError, UnknownNameError), match=message):
            ranker.rank("new", **allowed)
        assert ranker.counts().rounds == 0


@pytest.mark.parametrize("settings", [{}, {"treatment": "equal"}], ids=str)
def test_retired_and_unknown_items_are_ignored_and_named(settings: dict[str, Any]) -> None:
    """Finding 12: stale ids in candidates and exclude are ignored, and the ranking is reproduced."""
    with learned_ranker(**settings) as ranker:
        ranker.retire_items([ITEMS[0]])
        shown = ranker.rank("new", candidates=[*ITEMS[:5], "gone"], exclude=["old", ITEMS[4], ITEMS[0]])
        assert shown.ignored == (ITEMS[0], "gone", "old")
        assert set(shown.items) == set(ITEMS[1:4])
        explanation = ranker.explain(shown.id)
        assert explanation.is_reproduced
        assert explanation.candidates == ITEMS[1:4]
        assert ranker.feedback(shown.id, clicked=shown.items[0]) == "counted"
        assert ranker.feedback(shown.id, clicked=shown.items[0]) == "repeated"
        several = ranker.rank_batch(["new", "old"], exclude=["gone"])
        assert [each.ignored for each in several] == [("gone",)] * 2
        assert ranker.rank("new", candidates=ITEMS[1:]).ignored == ()
        with pytest.raises(UnknownNameError, match=r"pinned must be one of item-1, .* got 'item-0'"):
            ranker.rank("new", pinned={1: ITEMS[0]})


def test_a_ranking_of_ignored_items_alone_is_that_of_all_items() -> None:
    """Finding 12: an exclusion of stale ids restricts nothing, also where restrictions are refused."""
    surface = a_surface(items=ITEMS, n_positions=1, treatment="equal-lottery", utility="nash")
    with a_ranker(surface) as ranker:
        shown = ranker.rank("new", exclude=["gone"])
        explanation = ranker.explain(shown.id)
        assert (shown.ignored, explanation.candidates) == (("gone",), None)
        assert explanation.is_reproduced
        with pytest.raises(InvalidInputError, match="exclude"):
            ranker.rank("new", exclude=["gone", ITEMS[0]])


def test_an_item_that_is_retired_after_a_ranking_still_explains_it() -> None:
    """Finding 12: the id of a ranking keeps the candidates of its time."""
    with learned_ranker() as ranker:
        shown = ranker.rank("new", candidates=ITEMS[:4])
        ranker.retire_items([ITEMS[0]])
        explanation = ranker.explain(shown.id)
        assert (explanation.is_reproduced, explanation.candidates) == (True, ITEMS[:4])


@pytest.mark.parametrize("treatment", ["personalized", "equal"])
def test_short_rankings_are_allowed_by_the_surface(treatment: Any) -> None:
    surface = a_surface(items=ITEMS, n_positions=3, allow_short_rankings=True, treatment=treatment)
    with a_ranker(surface) as ranker:
        shown = ranker.rank("new", candidates=ITEMS[2:4])
        assert sorted(shown.items) == ITEMS[2:4]
        assert ranker.feedback(shown.id, clicked=shown.items[1]) == "counted"
        pinned = ranker.rank("old", candidates=ITEMS[2:3], pinned={2: ITEMS[5]})
        assert pinned.items == (ITEMS[2], ITEMS[5])
        assert ranker.explain(pinned.id).is_reproduced
        assert ranker.feedback(pinned.id) == "counted"
        with pytest.raises(InvalidInputError, match=r"pinned.3 must be a position from 1 to 2, .* got 3"):
            ranker.rank("old", candidates=ITEMS[2:3], pinned={3: ITEMS[5]})
        with pytest.raises(InvalidInputError, match="candidates must leave at least one item"):
            ranker.rank("old", candidates=[])
        counts = ranker.counts()
        assert counts.rounds == 2
        assert counts.displays[:, :, 2].sum() == 0
        assert len(ranker.rank("new").items) == 3


# The others compile for seconds each; tests/policies/ checks the restrictions of every policy.
RESTRICTED_IN_SHORT = {"auto", "thompson-rank", "greedy-rank", "ucb-rank", "random", "pbm-ucb"}


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(name, marks=() if name in RESTRICTED_IN_SHORT else pytest.mark.campaign)
        for name in SERVED_NAMES
    ],
)
def test_every_served_policy_restricts_its_rankings(policy: str) -> None:
    with a_ranker(a_surface(items=ITEMS, n_positions=2, policy=policy)) as ranker:
        assert set(ranker.rank("new", candidates=ITEMS[:2]).items) == set(ITEMS[:2])


def test_a_restricted_id_is_read_by_another_process() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(items=ITEMS, n_positions=2)
    with a_ranker(surface, store, clock=clock) as one, a_ranker(surface, store, clock=clock) as two:
        shown = one.rank("new", candidates=ITEMS[1:4], pinned={1: ITEMS[0]})
        assert two.feedback(shown.id, clicked=shown.items[1]) == "counted"
        assert two.explain(shown.id).pinned == {1: ITEMS[0]}


NUMBERS = st.sets(st.integers(0, 299), max_size=300)
PINS = st.dictionaries(st.integers(0, 99), st.integers(0, 299), max_size=5)


@given(candidates=st.none() | NUMBERS, pins=PINS)
def test_encoding_is_lossless(candidates: set[int] | None, pins: dict[int, int]) -> None:
    numbers = None if candidates is None else tuple(sorted(candidates))
    allowed = AllowedItems(numbers, tuple(sorted(pins.items())))
    encoded = allowed.encode(300)
    assert AllowedItems.decode(encoded, 300) == allowed
    assert len(encoded) <= 2 + 3 * len(pins) + 38
    assert (encoded == b"") == (allowed == ALL_ITEMS)


def test_an_id_of_the_largest_surface_is_accepted() -> None:
    items = [f"{number}" for number in range(10_000)]
    surface = Surface("large", items=items, n_positions=1)
    with Ranker(surface, random_bytes=seeded(1)) as ranker:
        shown = ranker.rank("everybody", candidates=items[::2])
        assert len(shown.id) < 2000
        assert ranker.feedback(shown.id) == "counted"
