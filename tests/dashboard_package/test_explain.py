"""Every ranking can be recomputed from the counts that it was computed from, and explained."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import pytest
from helpers.live import Clock, a_ranker, a_surface, play, seeded

from banditrank._ranker import Ranker
from banditrank.errors import PrunedError, UnknownRankingError
from banditrank.storage._memory import MemoryStore
from banditrank.storage._sqlite import SqliteStore

KINDS = [
    {"policy": "auto"},
    {"policy": "auto", "treatment": "equal", "utility": "nash"},
    {"policy": "auto", "treatment": "equal", "utility": "utilitarian"},
    {"policy": "ucb-rank"},
    {"policy": "greedy-rank", "treatment": "equal", "utility": "maximin"},
    {"policy": "random"},
]


def kind_id(kind: dict) -> str:
    return "-".join(kind.values())


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
def test_rankings_of_two_replicas_are_reproduced_after_a_restart(kind: dict, tmp_path: Path) -> None:
    surface, path = a_surface(**kind), tmp_path / "store.db"
    ids = []
    with (
        SqliteStore(path) as one,
        SqliteStore(path) as two,
        a_ranker(surface, one, sync_seconds=0.01) as first,
        a_ranker(surface, two, sync_seconds=0.01, random_bytes=seeded(2)) as second,
    ):
        for step in range(8):
            ids += play(first, 4, seed=step) + play(second, 4, seed=100 + step)
            ids += [ranker.rank(name).id for ranker in (first, second) for name in surface.user_types]
            if step == 3:
                first.add_items(["late"])
            if step == 5:
                first.retire_items(["b", "d"])
    with SqliteStore(path) as again, a_ranker(surface, again) as restarted:
        explanations = [restarted.explain(ranking_id) for ranking_id in ids]
    assert all(one.is_reproduced for one in explanations)
    assert {one.revision for one in explanations} == {1, 2, 3}
    assert any("late" in one.items for one in explanations)
    assert len({one.version for one in explanations}) > 20
    assert [one.id for one in explanations] == ids
    for one in explanations:
        assert [placed.item for placed in one.shown_items] == one.items
        assert not {left.item for left in one.omitted_items} & set(one.items)
        if one.revision == 3:
            assert not {left.item for left in one.omitted_items} & {"b", "d"}
    json.dumps([asdict(one) for one in explanations], allow_nan=False, default=datetime.isoformat)


def test_an_explanation_has_the_user_type_and_the_posterior_sample() -> None:
    clock = Clock()
    with a_ranker(a_surface(attribution_seconds=60), clock=clock) as ranker:
        play(ranker, 30, seed=1)
        shown = ranker.rank("old")
        explanation = ranker.explain(shown.id)
    assert (explanation.surface, explanation.user_type, explanation.items) == (
        "home",
        "old",
        list(shown.items),
    )
    assert explanation.issued_at.timestamp() == pytest.approx(clock.now, abs=0.002)
    assert explanation.expires_at == shown.expires_at
    assert (explanation.version, explanation.rounds, explanation.revision) == (30, 30, 1)
    assert (explanation.policy, explanation.treatment, explanation.utility) == (
        "thompson-rank",
        "personalized",
        None,
    )
    assert (explanation.basis, explanation.is_type_used) == ("posterior-sample", True)
    (belief,) = explanation.beliefs
    assert belief.user_type == "old"
    assert sum(belief.position_preferences) == pytest.approx(1)
    assert belief.position_preferences == pytest.approx([one.look for one in explanation.shown_items])
    assert belief.value == pytest.approx(sum(one.value for one in explanation.shown_items))
    by_look = sorted(explanation.shown_items, key=lambda one: -one.look)
    assert [one.mean for one in by_look] == sorted(
        [one.mean for one in explanation.shown_items], reverse=True
    )
    assert all(one.value == pytest.approx(one.look * one.mean) for one in explanation.shown_items)
    assert len(explanation.omitted_items) == 3
    assert all(one.mean <= by_look[-1].mean and one.gain <= 0 for one in explanation.omitted_items)
    assert f"users of type old look most at position {by_look[0].position}" in explanation.reason
    assert by_look[0].item in explanation.reason


@pytest.mark.parametrize("utility", ["utilitarian", "nash", "maximin"])
def test_under_equal_treatment_the_ranking_does_not_depend_on_the_user_type(utility: str) -> None:
    with a_ranker(a_surface(treatment="equal", utility=utility)) as ranker:
        play(ranker, 30, seed=2)
        new, old = (ranker.explain(ranker.rank(name).id) for name in ("new", "old"))
    assert new.items == old.items
    assert new.beliefs == old.beliefs
    assert new.reason == old.reason
    assert not new.is_type_used
    assert "all users get this ranking, whatever their user type" in new.reason
    assert f"best by the {utility} utility" in new.reason
    assert [one.user_type for one in new.beliefs] == ["new", "old"]
    assert sum(one.weight for one in new.beliefs) == pytest.approx(1)
    assert all(one.gain <= 1e-2 for one in new.omitted_items), "the solver's gap is 1% at most"


def test_policies_that_do_not_sample_are_explained_by_estimates() -> None:
    with a_ranker(a_surface(policy="ucb-rank")) as ranker:
        play(ranker, 30, seed=3)
        explanation = ranker.explain(ranker.rank("new").id)
        (belief,) = explanation.beliefs
        estimates = ranker.estimates().user_types[0]
    assert explanation.basis == "estimates"
    assert belief.position_preferences == [one.estimate for one in estimates.positions]
    assert "ucb-rank does not sample; by the estimates from counts 30" in explanation.reason


def outcome_of(ranker: Ranker, ranking_id: str) -> tuple:
    outcome = ranker.explain(ranking_id).outcome
    return outcome.state, [(one.item, one.position, one.reward) for one in outcome.clicks]


def test_an_explanation_has_the_outcome() -> None:
    with a_ranker() as ranker:
        waiting, ignored, clicked = (ranker.rank("new") for _ in range(3))
        ranker.feedback(ignored.id)
        ranker.feedback(clicked.id, clicked=clicked.items[1], reward=0.25)
        assert outcome_of(ranker, waiting.id) == ("pending", [])
        assert outcome_of(ranker, ignored.id) == ("not-clicked", [])
        assert outcome_of(ranker, clicked.id) == ("clicked", [(clicked.items[1], 2, 0.25)])


def test_an_impression_without_feedback_is_discarded_if_so_set() -> None:
    clock = Clock()
    with a_ranker(a_surface(unreported="discarded"), clock=clock) as ranker:
        shown = ranker.rank("new")
        clock.now += 10_000
        assert outcome_of(ranker, shown.id) == ("discarded", [])


def test_a_ranking_whose_counts_were_pruned_cannot_be_explained() -> None:
    clock, store = Clock(), MemoryStore()
    surface = a_surface(keep_seconds=100.0, attribution_seconds=10.0)
    with a_ranker(surface, store, clock=clock) as ranker:
        old = play(ranker, 5, seed=1)
    with a_ranker(surface, store, clock=clock) as ranker:
        clock.now += 1000
        store.prune(1, before_ms=int(clock.now - 100) * 1000)
        recent = ranker.rank("new")
        assert ranker.explain(recent.id).is_reproduced
        assert ranker.explain(old[0]).outcome.state == "pruned", "no counts are needed for the first"
        for ranking_id in old[1:]:
            with pytest.raises(
                PrunedError, match=r"the ranking cannot be explained: counts of version \d were pruned"
            ):
                ranker.explain(ranking_id)


def test_a_ranking_that_is_not_reproduced_is_of_another_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with a_ranker() as ranker:
        play(ranker, 10, seed=1)
        shown = ranker.rank("new")
        monkeypatch.setattr("banditrank.engine._policy_snapshot.PolicySnapshot.recompute", lambda *_: (0, 0))
        explanation = ranker.explain(shown.id)
    assert not explanation.is_reproduced
    assert "another version computed the one that was shown" in explanation.reason


def test_a_forged_id_is_rejected() -> None:
    with a_ranker() as ranker, a_ranker() as other:
        for ranking_id in ("", "nonsense", other.rank("new").id):
            with pytest.raises(UnknownRankingError, match="ranking id must be one that this store issued"):
                ranker.explain(ranking_id)
