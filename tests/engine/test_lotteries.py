"""Equal treatment by a lottery: the same odds for all, drawn by the ranking's own id."""

import json
from collections import Counter
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from helpers.live import a_ranker, a_surface, seeded

from banditrank import InvalidInputError, KeptShare, LeastExposure, UnsolvableError
from banditrank._ranker import Ranker
from banditrank.engine._guarantees import active_guarantees
from banditrank.engine._import_export import export_surface, import_surface
from banditrank.engine._surface import Surface
from banditrank.solvers._lottery.guarantees import Guarantee
from banditrank.storage._memory import MemoryStore

FAVOURITES = {"new": "a", "old": "b"}
GUARANTEES: tuple[Guarantee, ...] = (LeastExposure(0.05), KeptShare(0.3, user_types=["old"]))

TOO_MUCH = (
    "guarantees must have least exposures that sum to at most 1, the exposure of all positions, got 1.5"
)
NO_LOTTERY = (
    "policy must be one of auto, thompson-rank, greedy-rank, ucb-rank if there are guarantees, got 'random'"
)


def a_lottery(**settings: Any) -> Surface:
    return a_surface(
        **{"treatment": "equal-lottery", "utility": "maximin", "n_positions": 1, "guarantees": GUARANTEES}
        | settings
    )


def play_favourites(ranker: Ranker, rounds: int) -> None:
    for number in range(rounds):
        user_type = ("new", "old")[number % 2]
        shown = ranker.rank(user_type)
        liked = FAVOURITES[user_type]
        ranker.feedback(shown.id, clicked=liked if liked in shown.items else None)


@pytest.mark.parametrize("policy", ["auto", "ucb-rank"])
def test_all_users_have_the_same_odds_and_each_draw_can_be_audited(policy: str) -> None:
    store = MemoryStore()
    with a_ranker(a_lottery(policy=policy), store) as ranker:
        play_favourites(ranker, 60)
        shown = {name: [ranker.rank(name) for _ in range(300)] for name in FAVOURITES}
        first = ranker.explain(shown["new"][0].id)
    with a_ranker(a_lottery(policy=policy), store, random_bytes=seeded(2)) as ranker:  # another process
        explained = [ranker.explain(one.id) for name in FAVOURITES for one in shown[name][:8]]
    assert explained[0] == first
    lottery = first.lottery
    assert lottery is not None
    odds = {tuple(one.items): one.probability for one in lottery.rankings}
    assert sum(odds.values()) == pytest.approx(1)
    assert list(odds.values()) == sorted(odds.values(), reverse=True)
    assert lottery.kept_factor == 1.0
    assert min(odds.values()) >= 0.05 - 1e-9  # with one position, exposure is the probability
    for one in explained:
        assert one.is_reproduced
        assert not one.is_type_used
        assert one.lottery is not None
        assert one.lottery.rankings == lottery.rankings
        assert one.lottery.rankings[one.lottery.drawn - 1].items == one.items
        ends = list(accumulate(odds.values()))
        assert ends[one.lottery.drawn - 1] > one.lottery.draw
        assert one.lottery.drawn == 1 or ends[one.lottery.drawn - 2] <= one.lottery.draw
        assert "all users have the same odds" in one.reason
    # 4.5 standard deviations: an error rate below 1e-4 over all rankings and types; the seed is fixed.
    for rankings in shown.values():
        counts = Counter(one.items for one in rankings)
        assert set(counts) <= set(odds)
        for items, probability in odds.items():
            margin = 4.5 * (300 * probability * (1 - probability)) ** 0.5
            assert counts[items] == pytest.approx(300 * probability, abs=margin)


@pytest.mark.parametrize("policy", ["auto", "ucb-rank"])
def test_personalized_lotteries_keep_guarantees_and_each_draw_can_be_audited(policy: str) -> None:
    store, guarantees = MemoryStore(), (LeastExposure(0.1),)
    surface = a_lottery(treatment="personalized", utility="utilitarian", policy=policy, guarantees=guarantees)
    with a_ranker(surface, store) as ranker:
        play_favourites(ranker, 60)
        shown = {name: ranker.rank(name) for name in FAVOURITES}
        report = ranker.equality()
    with a_ranker(surface, store, random_bytes=seeded(2)) as ranker:  # another process
        explained = {name: ranker.explain(one.id) for name, one in shown.items()}
    exposures = Counter[str]()
    for name, one in explained.items():
        assert one.is_reproduced
        assert one.is_type_used
        assert one.lottery is not None
        assert one.lottery.rankings[one.lottery.drawn - 1].items == one.items
        assert f"users of type {name} look most" in one.reason
        assert len(one.beliefs) == len(one.lottery.values) == 1
        for ranking in one.lottery.rankings:  # both types arrived equally often
            exposures[ranking.items[0]] += ranking.probability / 2
    assert set(exposures) == set(surface.items)
    assert min(exposures.values()) >= 0.1 - 1e-9  # with one position, exposure is the probability
    assert report.lottery is not None
    by_type = [one for one in report.lottery.rankings if one.user_type == "new"]
    assert sum(one.probability for one in by_type) == pytest.approx(1)
    assert by_type[0].ranking == ["a"]
    assert report.lottery.summary.startswith("By the estimates, the guarantees cost ")
    assert sum(one.lottery.looks for one in report.items if one.lottery) == pytest.approx(1)


def test_a_lottery_ranks_all_items() -> None:
    rule = "must be left out under equal-lottery treatment, which ranks all items"
    with a_ranker(a_lottery()) as ranker:
        for given in ({"candidates": ["a", "b"]}, {"exclude": ["c"]}, {"pinned": {1: "d"}}):
            ((field, value),) = given.items()
            with pytest.raises(InvalidInputError) as error:
                ranker.rank("new", **given)
            assert str(error.value) == f"{field} {rule}, got {value!r}"  # names, not the engine's numbers
    surface = a_lottery(treatment="personalized", utility="utilitarian", guarantees=[LeastExposure(0.1)])
    with a_ranker(surface) as ranker, pytest.raises(InvalidInputError, match="if there are guarantees"):
        ranker.rank("new", candidates=["a", "b"])


def test_exposure_is_judged_since_the_guarantee_is_in_force() -> None:
    store = MemoryStore()
    with a_ranker(a_lottery(guarantees=()), store) as ranker:
        play_favourites(ranker, 40)
        ranker._engine.update_surface(
            "home", lambda surface: replace(surface, guarantees=(LeastExposure(0.1, ["e"]),))
        )
        assert ranker.surface.guarantees_since_version == 40
        assert [one.realised for one in ranker.equality().lottery.guarantees] == [None]
        before = ranker.counts().displays[:, 4].sum()
        play_favourites(ranker, 60)
        (exposure,) = ranker.equality().lottery.guarantees
        shown = ranker.counts().displays[:, 4].sum() - before
        assert exposure.realised == pytest.approx(shown / 60)
        ranker.add_items(["f"])  # not covered by the guarantee
        assert ranker.surface.guarantees_since_version == 40
    with a_ranker(ranker.surface, store) as restarted:
        (exposure,) = restarted.equality().lottery.guarantees
        assert exposure.realised == pytest.approx(shown / 60)
    other = MemoryStore()
    import_surface(other, export_surface(store, "home"))
    assert Surface.from_definition(other.surfaces()[0].definition).guarantees_since_version == 1


def test_guarantees_survive_the_store_and_an_export() -> None:
    surface, store, other = a_lottery(), MemoryStore(), MemoryStore()
    with a_ranker(surface, store):
        assert Surface.from_definition(store.surfaces()[0].definition) == surface
    exported = json.loads(json.dumps(export_surface(store, "home")))
    import_surface(other, exported)
    assert Surface.from_definition(other.surfaces()[0].definition).guarantees == GUARANTEES


def test_a_definition_of_an_earlier_version_has_no_guarantees() -> None:
    settings = a_surface().to_dict()
    del settings["guarantees"]
    assert Surface.from_definition(json.dumps(settings)) == a_surface()


def test_a_retired_item_is_left_out_of_its_guarantees() -> None:
    both = LeastExposure(0.3, ["a", "b"], is_group=True)
    surface = a_lottery(guarantees=[LeastExposure(0.1, ["a"]), both, LeastExposure(0.02)])
    assert active_guarantees(surface.with_retired(["a"])) == (
        LeastExposure(0.3, [0], is_group=True),
        LeastExposure(0.02),
    )
    assert surface.with_retired(["a"]).with_items(["a"]).guarantees == surface.guarantees


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"guarantees": [LeastExposure(0.3)]},
            TOO_MUCH,
        ),
        (
            {"guarantees": [LeastExposure(0.1, ["z"])]},
            "guarantees[0].items must be one of a, b, c, d, e, got 'z'",
        ),
        (
            {"guarantees": [KeptShare(0.5, ["young"])]},
            "guarantees[0].user_types must be one of new, old, got 'young'",
        ),
        (
            {"treatment": "equal"},
            "treatment must be personalized or equal-lottery if there are guarantees, got 'equal'",
        ),
        ({"guarantees": 0.1}, "guarantees must be a list of LeastExposure and KeptShare, got 0.1"),
        (
            {"policy": "random"},
            NO_LOTTERY,
        ),
    ],
)
def test_settings_that_no_lottery_keeps_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        a_lottery(**settings)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("guarantee", "message"),
    [
        ({"kind": "floor"}, "guarantees[0].kind must be one of least-exposure, kept-share, got 'floor'"),
        ({"kind": "least-exposure"}, "guarantees[0].level must be given, got []"),
        (
            {"kind": "kept-share", "share": 1.1},
            "guarantees[0].share must be a number from 0 to 1, got 1.1",
        ),
        (
            {"kind": "kept-share", "share": 0.5, "user_types": "new"},
            "guarantees[0].user_types must be a list of names, got 'new'",
        ),
        (
            {"kind": "least-exposure", "level": 0.1, "items": ["a", "a"]},
            "guarantees[0].items must be different names or numbers, at least one, got ['a', 'a']",
        ),
        ([], "guarantees[0] must be an object, got []"),
    ],
)
def test_stored_guarantees_are_checked(guarantee: Any, message: str) -> None:
    settings = a_lottery().to_dict() | {"guarantees": [guarantee]}
    with pytest.raises(InvalidInputError) as error:
        Surface.from_dict(settings)
    assert str(error.value) == message


def test_a_utility_without_a_best_lottery_is_refused() -> None:
    with pytest.raises(UnsolvableError, match="needs a concave utility or maximin"):
        a_lottery(utility="ramp:0.2:0.4")


def test_an_item_that_exceeds_the_exposure_of_all_positions_is_not_added() -> None:
    surface = a_lottery(guarantees=[LeastExposure(0.2)])
    with pytest.raises(InvalidInputError, match="sum to at most 1"):
        surface.with_items(["f"])


def test_too_many_guarantees_are_refused_before_they_are_stored() -> None:
    items = [f"item-{number}" for number in range(2_001)]
    with pytest.raises(InvalidInputError, match="guarantees must be of at most 2,000 items"):
        a_surface(items=items, treatment="equal-lottery", guarantees=[LeastExposure(1e-6)])
    repeated = [LeastExposure(1e-6)] * 1_000
    assert len(a_surface(treatment="equal-lottery", guarantees=repeated).guarantees) == 1_000
