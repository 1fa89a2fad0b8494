"""Experiments on surfaces: settings, arms of visitors, counts apart, and results."""

import json
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.live import Clock, a_ranker, a_surface, seeded

from banditrank import Feedback, Surface
from banditrank.engine import Arm, SurfaceExperiment, export_surface, import_surface, report_experiment
from banditrank.engine._engine import Engine
from banditrank.engine._experiment import MIN_SHARE, arm_policy
from banditrank.engine._experiment_report import ExperimentReport
from banditrank.errors import InvalidInputError, NoExperimentError, UnknownNameError
from banditrank.storage._cells import Totals, decode_cells, encode_cells
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import (
    DISCARDED,
    MAX_ARM_CODE,
    NOT_CLICKED,
    REWARD_UNITS,
    Click,
    Event,
    Impression,
    Outcome,
    pack_ranking,
)

HOLD_OUT = SurfaceExperiment("autumn", [Arm("hold-out", 0.5)])
EDITORS = Arm("editors", 0.3, "fixed", ("e", "c", "a"))


def experiment_of(*shares: float, name: str = "autumn", **settings: Any) -> SurfaceExperiment:
    return SurfaceExperiment(name, [Arm(f"arm-{n}", share, **settings) for n, share in enumerate(shares)])


def changed(surface: Surface, experiment: SurfaceExperiment | None) -> Surface:
    return surface.successor(replace(surface, experiment=experiment), version=1)


# Settings


def test_surfaces_with_experiments_survive_json() -> None:
    surface = a_surface(experiment=SurfaceExperiment("autumn", [Arm("hold-out", 0.05), EDITORS], level=0.9))
    stored = json.loads(json.dumps(surface.to_dict()))
    assert Surface.from_dict(stored) == surface
    assert stored["experiment"]["arms"][1]["order"] == ["e", "c", "a"]
    assert Surface.from_definition(surface.definition) == surface
    assert a_surface().to_dict()["experiment"] is None


def test_every_share_has_codes_of_its_own() -> None:
    surface = a_surface(experiment=experiment_of(0.1))
    surface = changed(surface, experiment_of(0.2))
    surface = changed(surface, experiment_of(0.2, 0.1))
    surface = changed(surface, experiment_of(0.0, 0.1))
    assert [one.codes for one in surface.experiment_periods] == [(1, 2), (3, 4), (5, 6, 7), (8, 0, 9)]
    assert surface.learned_codes == {0, 1, 3, 5, 8}
    assert surface.codes_of_arm("arm-0") == {2, 4, 6}
    again = changed(changed(surface, None), experiment_of(0.2, 0.1))
    assert again.experiment_periods == surface.experiment_periods, "the same shares have the same codes"
    assert again.period == surface.experiment_periods[2]
    other = changed(surface, experiment_of(0.1, name="winter"))
    assert other.period is not None
    assert other.period.codes == (10, 11)
    assert other.codes_of_arm("arm-0") == {11}
    assert changed(other, None).learned_codes == {0, 1, 3, 5, 8, 10}


def test_an_arm_that_is_learned_from_is_pooled() -> None:
    surface = a_surface(experiment=experiment_of(0.1, is_learned_from=True))
    assert surface.learned_codes == {0, 1, 2}


def test_arms_have_the_click_model_of_the_surface() -> None:
    arm = Arm("other", 0.5, "thompson-rank")
    surface = a_surface(click_model="position-based", experiment=SurfaceExperiment("autumn", [arm]))
    assert arm_policy(arm, surface) == surface.compiled_policy


def test_an_experiment_continues_when_a_process_restarts() -> None:
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        ranker.set_experiment(HOLD_OUT)
    with a_ranker(store=store) as ranker:
        assert ranker.surface.experiment == HOLD_OUT
    with pytest.raises(InvalidInputError, match=r"home's experiment must be .* as in the store"):
        a_ranker(a_surface(experiment=experiment_of(0.1)), store)


def test_other_settings_keep_the_codes() -> None:
    surface = a_surface(experiment=experiment_of(0.1))
    assert surface.with_items(["f"]).with_retired(["a"]).experiment_periods == surface.experiment_periods
    assert surface.successor(a_surface(), version=1).experiment_periods == surface.experiment_periods
    several = surface.successor(replace(surface, click_model="position-based"), version=1)
    assert [(one.codes, one.max_reward) for one in several.experiment_periods] == [((1, 2), 1), ((3, 4), 2)]


@pytest.mark.parametrize(
    ("experiment", "message"),
    [
        (
            experiment_of(0.1),
            r"^experiment.arms must start with arm-0, arm-1 \(a share of 0 stops an arm\), got",
        ),
        (SurfaceExperiment("autumn", [Arm("b", 0.1), Arm("a", 0.1)]), "arms must start with arm-0, arm-1"),
        (
            experiment_of(0.1, 0.1, policy="ucb-rank"),
            r"experiment.arms\[0\].policy must stay random for arm arm-0: add an arm",
        ),
        (
            experiment_of(0.1, 0.1, is_learned_from=True),
            r"experiment.arms\[0\].is_learned_from must stay false for arm arm-0: add an arm, got True",
        ),
        (
            SurfaceExperiment("winter", [Arm("editors", 0.1, "fixed", ("a", "d"))]),
            r"experiment.arms\[0\].order must have at least 2 items that are not retired, got 1",
        ),
    ],
)
def test_invalid_changes_are_rejected(experiment: SurfaceExperiment, message: str) -> None:
    surface = a_surface(experiment=experiment_of(0.1, 0.2), retired=["d"])
    with pytest.raises(InvalidInputError, match=message):
        changed(surface, experiment)


def test_codes_are_not_reused() -> None:
    surface = a_surface()
    n_periods = MAX_ARM_CODE // 2
    for number in range(n_periods):
        surface = changed(surface, experiment_of(0.01 * (number + 1)))
    assert surface.experiment_periods[-1].codes[-1] == 2 * n_periods
    with pytest.raises(InvalidInputError, match=r"experiment must need at most 63 codes .* got 64"):
        changed(surface, experiment_of(0.9))


def test_fixed_orders_must_have_known_items() -> None:
    with pytest.raises(UnknownNameError, match=r"arms\[0\]\.order must be one of a, b, c, d, e, got 'z'"):
        a_surface(experiment=SurfaceExperiment("autumn", [Arm("editors", 0.1, "fixed", ("a", "z"))]))
    with pytest.raises(InvalidInputError, match="experiment must be a SurfaceExperiment, got 'autumn'"):
        a_surface(experiment="autumn")


# Cells


def an_impression(number: int, *, code: int, user_type: int = 1) -> Impression:
    return Impression(1, number.to_bytes(14), pack_ranking(user_type, (3, 1), code))


def test_visits_are_summed_by_code() -> None:
    half = REWARD_UNITS // 2
    events = [
        Event(an_impression(1, code=0), Outcome.of(0, REWARD_UNITS)),
        Event(an_impression(2, code=1), Outcome.of(0, REWARD_UNITS)),
        Event(an_impression(3, code=63), Outcome((Click(0, REWARD_UNITS), Click(1, half)))),
        Event(an_impression(4, code=63), NOT_CLICKED),
        Event(an_impression(5, code=63), DISCARDED),
        Event(an_impression(6, code=63), Outcome.of(0, half, is_final=False)),
        Event(an_impression(7, code=63, user_type=0), Outcome.of(1, half)),
    ]
    totals = Totals(n_user_types=2, n_items=4, n_positions=2)
    totals.add(encode_cells(events))
    totals.add(encode_cells(events * 100))  # merged
    assert totals.rounds == 5 * 101
    sums = totals.arm_sums(63)
    assert (sums.visits / 101).tolist() == [1, 2]
    assert (sums.rewards / 101).tolist() == [0.5, 1.5]
    assert (sums.squared_rewards / 101).tolist() == [0.25, 2.25]
    assert totals.arm_sums(1).visits.tolist() == [0, 101]
    assert totals.arm_sums(2).visits.tolist() == [0, 0]
    assert totals.counts(range(4)).rounds == 505
    assert totals.counts(range(4), {0, 1}).rounds == 202
    assert totals.counts(range(4), {0, 1}).rewards[1, 3, 0] == 202
    assert totals.counts(range(4), {63}).rewards[0].sum() == 50.5
    copy = Totals(n_user_types=1, n_items=1, n_positions=2)
    copy.add(totals.cells())
    assert sorted(decode_cells(copy.cells()).tolist()) == sorted(decode_cells(totals.cells()).tolist())
    assert copy.arm_sums(63).squared_rewards.tolist() == sums.squared_rewards.tolist()


# Rankings


def test_visitors_stay_in_their_arms() -> None:
    store, visitors = MemoryStore(), [f"visitor-{n}" for n in range(60)]
    surface = a_surface(experiment=SurfaceExperiment("autumn", [Arm("hold-out", 0.3), EDITORS]))
    with a_ranker(surface, store) as one, a_ranker(surface, store, random_bytes=seeded(2)) as replica:
        arms = [one.rank("new", visitor=visitor).arm for visitor in visitors]
        assert [replica.rank("old", visitor=visitor).arm for visitor in visitors] == arms
        assert [shown.arm for shown in one.rank_batch(["new"] * 60, visitors=visitors)] == arms
    with a_ranker(surface, store, random_bytes=seeded(3)) as restarted:
        assert [restarted.rank("new", visitor=visitor).arm for visitor in visitors] == arms
    assert set(arms) == {"policy", "hold-out", "editors"}


def test_visits_without_an_id_are_assigned_by_chance() -> None:
    experiment = SurfaceExperiment("autumn", [Arm("hold-out", 0.1), EDITORS])
    with a_ranker(a_surface(experiment=experiment)) as ranker:
        arms = Counter(shown.arm for shown in ranker.rank_batch(["new"] * 4000))
    for arm, share in zip(experiment.arm_names, experiment.shares, strict=True):
        # Within 4.5 standard deviations: error rate 2e-5 for three shares.
        assert abs(arms[arm] - 4000 * share) < 4.5 * (4000 * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("visitor", ["", "x" * 201, 7])
def test_invalid_visitors_are_rejected(visitor: Any) -> None:
    for experiment in (None, HOLD_OUT):
        with (
            a_ranker(a_surface(experiment=experiment)) as ranker,
            pytest.raises(InvalidInputError, match="visitor must be 1 to 200 characters"),
        ):
            ranker.rank("new", visitor=visitor)


def test_there_is_a_visitor_for_each_user_type() -> None:
    with a_ranker() as ranker:
        with pytest.raises(InvalidInputError, match="visitors must be 2, one for each user type, got 1"):
            ranker.rank_batch(["new", "old"], visitors=["ann"])
        assert ranker.rank("new", visitor="ann").arm is None


@pytest.mark.parametrize("settings", [{}, {"treatment": "equal"}, {"policy": "ucb-rank"}], ids=str)
def test_rankings_of_all_arms_are_explained(settings: dict[str, Any]) -> None:
    arms = [Arm("hold-out", 0.25), replace(EDITORS, share=0.25), Arm("old", 0.25, "greedy-rank")]
    policies = {"policy": settings.get("policy", "thompson-rank"), "hold-out": "random", "editors": "fixed"}
    with a_ranker(a_surface(experiment=SurfaceExperiment("autumn", arms), **settings)) as ranker:
        seen = Counter()
        for number in range(80):
            allowed = {"candidates": ["a", "c", "d"], "pinned": {2: "b"}} if number % 3 == 0 else {}
            shown = ranker.rank(["new", "old"][number % 2], **allowed)
            ranker.feedback(shown.id, clicked=shown.items[0] if number % 4 else None)
            explanation = ranker.explain(shown.id)
            assert explanation.is_reproduced
            assert explanation.arm == shown.arm
            assert explanation.policy == policies.get(shown.arm, "greedy-rank")
            assert explanation.user_type == ["new", "old"][number % 2]
            if shown.arm == "editors":
                assert shown.items == (("c", "b") if allowed else ("e", "c"))
                assert explanation.reason.startswith("the arm shows a fixed order; by the estimates from")
            elif allowed:
                assert shown.items[1] == "b"
                assert shown.items[0] in "acd"
            seen[shown.arm, bool(allowed)] += 1
        assert len(seen) == 8, "each arm, with and without candidates"


def test_fixed_orders_follow_the_catalogue() -> None:
    arm = Arm("editors", 0.99, "fixed", ("e", "c"))
    with a_ranker(a_surface(experiment=SurfaceExperiment("autumn", [arm]))) as ranker:
        ranker.retire_items(["e"])
        shown = [one.items for one in ranker.rank_batch(["new"] * 20) if one.arm == "editors"]
        assert set(shown) == {("c", "a")}, "the other items follow those of the order"
        with pytest.raises(
            InvalidInputError, match=r"arms\[0\]\.order must have at least 2 items that are not"
        ):
            ranker.set_experiment(SurfaceExperiment("autumn", [replace(arm, share=0.5)]))
        ranker.set_experiment(SurfaceExperiment("autumn", [replace(arm, share=0.0)]))
        assert {one.arm for one in ranker.rank_batch(["new"] * 20)} == {"policy"}


# Counts


def a_log(ranker: Any, n_visits: int, *, seed: int = 1, rate: Any = None) -> list[tuple[str, str, float]]:
    """Return the arm, the user type and the reward of visits that were counted."""
    rng, log = np.random.default_rng(seed), []
    for start in range(0, n_visits, 50):
        user_types = [["new", "old"][int(rng.integers(2))] for _ in range(min(50, n_visits - start))]
        batch = []
        for user_type, shown in zip(user_types, ranker.rank_batch(user_types), strict=True):
            clicked = None
            if rng.random() < (0.4 if rate is None else rate(shown.items)):
                clicked = shown.items[0]
            log.append((shown.arm, user_type, float(clicked is not None)))
            batch.append(Feedback(shown.id, clicked))
        assert set(ranker.feedback_batch(batch)) == {"counted"}
        assert set(ranker.feedback_batch(batch)) == {"repeated"}
    return log


def test_the_policy_does_not_learn_from_arms_that_are_counted_apart() -> None:
    arms = [Arm("apart", 0.3), Arm("learned", 0.3, is_learned_from=True)]
    with a_ranker(a_surface(experiment=SurfaceExperiment("autumn", arms))) as ranker:
        log = a_log(ranker, 300)
        visits = Counter(arm for arm, _, _ in log)
        assert ranker.counts().rounds == visits["policy"] + visits["learned"]
        rewards = sum(reward for arm, _, reward in log if arm != "apart")
        assert ranker.counts().rewards.sum() == rewards
        assert ranker.estimates().rounds == 300, "reports count all visits"
        ranker.set_experiment(None)
        assert ranker.counts().rounds == visits["policy"] + visits["learned"], "they stay apart"
        assert ranker.rank("new").arm is None


def test_a_policy_apart_learns_from_its_own_visits() -> None:
    arms = [Arm("apart", 0.4, "ucb-rank"), Arm("pooled", 0.3, "ucb-rank", is_learned_from=True)]
    with a_ranker(a_surface(experiment=SurfaceExperiment("autumn", arms))) as ranker:
        before = Counter(arm for arm, _, _ in a_log(ranker, 100))
        ranker.set_experiment(SurfaceExperiment("autumn", [replace(arms[0], share=0.3), arms[1]]))
        visits = before + Counter(arm for arm, _, _ in a_log(ranker, 100))
        for shown in ranker.rank_batch(["new"] * 30):
            expected = visits["apart"] if shown.arm == "apart" else visits["policy"] + visits["pooled"]
            assert ranker.explain(shown.id).rounds == expected


def test_visits_count_in_the_period_in_which_they_were_shown() -> None:
    clock = Clock()
    with a_ranker(a_surface(experiment=experiment_of(0.5)), clock=clock) as ranker:
        shown = ranker.rank_batch(["new"] * 20)
        ranker.set_experiment(experiment_of(0.1))
        ranker.feedback_batch([Feedback(one.id, one.items[0]) for one in shown])
        results = ranker.experiment()
        n_policy = sum(one.arm == "policy" for one in shown)
        assert [one.visits for one in results.periods] == [[n_policy, 20 - n_policy], [0, 0]]
        assert [one.shares for one in results.periods] == [[0.5, 0.5], [0.9, 0.1]]
        assert results.visits == 20


def test_imported_arms_have_the_visits_of_their_counts() -> None:
    store = MemoryStore()
    with a_ranker(a_surface(experiment=HOLD_OUT), store) as ranker:
        ranker.feedback_batch([Feedback(one.id) for one in ranker.rank_batch(["new"] * 10)])
    document = export_surface(store, "home")
    first, *others = document["arms"]
    for arms, message in (
        ([], "arms must have [0-9]+ visits with arm_code 1, as counts, got 0"),
        (others, "arms must have [0-9]+ visits with arm_code 1, as counts, got 0"),
        ([{**first, "arm_code": 0}, *others], r"arms\[0\].arm_code must be a whole number from 1 to 63"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            import_surface(store, {**document, "arms": arms}, name="copy")


def test_counts_survive_restarts_and_exports() -> None:
    store, surface = MemoryStore(), a_surface(experiment=HOLD_OUT)
    with a_ranker(surface, store) as ranker:
        a_log(ranker, 100)
        expected = ranker.experiment()
    with a_ranker(surface, store) as restarted:  # from the snapshot
        assert restarted.experiment() == expected
        learned = restarted.counts().rounds
    other = MemoryStore()
    document = json.loads(json.dumps(export_surface(store, "home")))
    import_surface(other, document)
    with a_ranker(surface, other) as imported:
        assert imported.experiment().arms == expected.arms
        assert imported.counts().rounds == learned < 100


# Results


def direct_report(experiment: SurfaceExperiment, log: list[tuple[str, str, float]]) -> ExperimentReport:
    sums = np.zeros((3, len(experiment.arm_names), 2))
    for arm, user_type, reward in log:
        where = experiment.arm_names.index(arm), ["new", "old"].index(user_type)
        sums[:, *where] += 1, reward, reward**2
    return report_experiment(experiment, ["new", "old"], *sums)


def test_results_equal_those_of_a_log() -> None:
    experiment = SurfaceExperiment("autumn", [Arm("hold-out", 0.3), EDITORS], level=0.9)
    with a_ranker(a_surface(experiment=experiment)) as ranker:
        report, results = direct_report(experiment, a_log(ranker, 400)), ranker.experiment()
        assert results.arms == report.arms
        assert (results.experiment, results.level, results.visits) == ("autumn", 0.9, 400)
        assert (results.surface, results.revision) == ("home", 1)


def test_several_clicks_and_graded_rewards_are_summed_by_visit() -> None:
    surface = a_surface(experiment=HOLD_OUT, click_model="position-based", user_types=["all"])
    rng, log = np.random.default_rng(1), defaultdict(list)
    with a_ranker(surface) as ranker:
        for shown in ranker.rank_batch(["all"] * 60):
            rewards = [float(one) for one in rng.choice([0.0, 0.3, 1.0], size=2)]
            for item, reward in zip(shown.items, rewards, strict=True):
                if reward:
                    ranker.feedback(shown.id, clicked=item, reward=reward)
            ranker.feedback(shown.id, final=True) if any(rewards) else ranker.feedback(shown.id)
            log[shown.arm].append(sum(round(one * REWARD_UNITS) / REWARD_UNITS for one in rewards))
        results = ranker.experiment()
    for arm in results.arms:
        assert arm.visits == len(log[arm.name])
        assert arm.reward_per_visit.estimate == pytest.approx(np.mean(log[arm.name]), abs=1e-12)
    sums = [
        [[len(log[arm])], [sum(log[arm])], [sum(x**2 for x in log[arm])]] for arm in ("policy", "hold-out")
    ]
    direct = report_experiment(HOLD_OUT, ["all"], *np.array(sums).transpose(1, 0, 2), max_reward=2)
    lift, expected = results.arms[1].lift, direct.arms[1].lift
    assert lift is not None
    assert expected is not None
    # The square of each visit's reward is rounded to a millionth.
    assert lift.absolute.low == pytest.approx(expected.absolute.low, abs=1e-4)


def test_feedback_follows_the_click_model_under_which_a_ranking_was_shown() -> None:
    with closing(Engine(MemoryStore(), random_bytes=seeded(1))) as engine:
        runtime = engine.create_surface(a_surface(experiment=HOLD_OUT))
        shown = runtime.rank("new")
        engine.update_surface(
            "home", lambda before: replace(before, experiment=None, click_model="position-based")
        )
        with pytest.raises(InvalidInputError, match="must be at most one item under click model single-look"):
            engine.feedback(shown.id, clicked=shown.items)
        several = runtime.rank("new")
        engine.update_surface(
            "home", lambda before: replace(before, experiment=HOLD_OUT, click_model="single-look")
        )
        assert engine.feedback(shown.id, clicked=shown.items[0]) == "counted"
        assert engine.feedback(several.id, clicked=several.items, final=True) == "counted"
        results = runtime.experiment_results()
        assert results.visits == 1, "several was shown without an experiment"


def test_the_smallest_share_has_results() -> None:
    with a_ranker(a_surface(experiment=experiment_of(0.5))) as ranker:
        for share in (0.5, MIN_SHARE):
            ranker.set_experiment(experiment_of(share))
            for _ in range(10):
                ranker.feedback(ranker.rank("new").id)
        results = ranker.experiment()
        assert [period.visits[0] + period.visits[1] for period in results.periods] == [10, 10]


def test_equal_graded_rewards_are_possible_sums() -> None:
    with a_ranker(a_surface(experiment=HOLD_OUT, user_types=["all"])) as ranker:
        for shown in ranker.rank_batch(["all"] * 20):
            ranker.feedback(shown.id, clicked=shown.items[0], reward=0.3)
        estimates = [arm.reward_per_visit.estimate for arm in ranker.experiment().arms]
    assert estimates == pytest.approx([0.3, 0.3], abs=1e-6)


def test_a_true_lift_is_found_and_no_other() -> None:
    arms = [Arm("hold-out", 0.4), Arm("best", 0.2, "fixed", ("a", "b"))]
    surface = a_surface(experiment=SurfaceExperiment("autumn", arms))
    with a_ranker(surface) as ranker:
        a_log(ranker, 2500, seed=3, rate=lambda items: 0.7 if items[0] == "a" else 0.1)
        _, hold_out, best = ranker.experiment().arms
        assert hold_out.lift is not None
        assert hold_out.lift.is_established
        assert hold_out.lift.absolute.low is not None
        assert 0 < hold_out.lift.absolute.low < 0.48, "the lift of a policy that knows the best item"
        assert best.lift is not None
        assert not (best.lift.is_established and best.lift.absolute.estimate > 0)
    with a_ranker(surface) as ranker:
        a_log(ranker, 1500, seed=4, rate=lambda _: 0.3)
        # Without a difference one is found with probability 0.05 at most; the seed is fixed.
        assert not any(arm.lift.is_established for arm in ranker.experiment().arms[1:])


def test_surfaces_without_an_experiment_have_no_results() -> None:
    with a_ranker() as ranker:
        with pytest.raises(NoExperimentError, match="surface 'home' has no experiment"):
            ranker.experiment()
        ranker.set_experiment(HOLD_OUT)
        assert ranker.experiment().visits == 0
        assert ranker.experiment().arms[1].lift.sentence == "policy and hold-out do not both have visits yet"


def test_replicas_follow_a_change_of_the_experiment() -> None:
    store = MemoryStore()
    engines = [Engine(store, random_bytes=seeded(n)) for n in range(2)]
    try:
        one = engines[0].create_surface(a_surface())
        other = engines[1].surface("home")
        engines[0].update_surface("home", lambda surface: replace(surface, experiment=HOLD_OUT))
        shown = next(ranking for _ in range(50) if (ranking := one.rank("new")).arm == "hold-out")
        assert engines[1].feedback(shown.id, clicked=shown.items[0]) == "counted"
        assert other.surface.experiment == HOLD_OUT, "the definition is read with the ranking's revision"
        assert other.experiment_results().visits == 1
    finally:
        for engine in engines:
            engine.close()
