"""Reproductions of the policies' papers: every check follows from the data, and can fail."""

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from helpers.synthetic_regret import ending_at, synthetic_curves

from banditrank.experiments._compare.reproductions import hossain2021, li2019
from banditrank.experiments._compare.reproductions.catalog import REPRODUCTIONS
from banditrank.experiments._compare.reproductions.chen2016 import CUCB
from banditrank.experiments._compare.reproductions.chen2022 import FTRL_PBM, constrained_adversary
from banditrank.experiments._compare.reproductions.gauthier2021_grab import GRAB
from banditrank.experiments._compare.reproductions.gauthier2021_pb_mhb import PB_MHB
from banditrank.experiments._compare.reproductions.gauthier2022 import UNI_RANK
from banditrank.experiments._compare.reproductions.komiyama2017 import PMED
from banditrank.experiments._compare.reproductions.kveton2015_cascading import CASCADE_KL_UCB
from banditrank.experiments._compare.reproductions.kveton2015_combinatorial import COMB_UCB1, comb_ucb1_bound
from banditrank.experiments._compare.reproductions.lagree2016 import PBM_PIE, PBM_TS, PBM_UCB, lower_bound
from banditrank.experiments._compare.reproductions.lattimore2018 import TOP_RANK
from banditrank.experiments._compare.reproductions.problems import FIVE_ITEMS, FOUR_ITEMS
from banditrank.experiments._compare.reproductions.radlinski2008 import (
    RANKED_BANDITS,
    best_value,
    popularity_value,
)
from banditrank.experiments._compare.reproductions.regret_reproduction import RegretReproduction
from banditrank.experiments._compare.reproductions.wang2018 import CTS
from banditrank.experiments._compare.reproductions.zhong2021 import CASCADE_TS
from banditrank.experiments._compare.reproductions.zoghi2017 import BATCH_RANK
from banditrank.experiments._study import Frames, Study, StudyResult
from banditrank.model._click_models import PositionBased, compile_problem
from banditrank.policies._catalog import BASELINES
from banditrank.simulation._run import MIN_FUSED_ROUNDS

ALL = (
    *(PBM_UCB, PBM_TS, PBM_PIE, TOP_RANK, BATCH_RANK, CASCADE_KL_UCB, CASCADE_TS, UNI_RANK, RANKED_BANDITS),
    *(PB_MHB, GRAB, COMB_UCB1, PMED, CUCB, CTS, FTRL_PBM),
)

# Final regrets that confirm the paper's claims, by policy.
CONFIRMING = {
    "pbm-ucb": {"pbm-ucb": 200, "pbm-ts": 50, "pbm-pie": 80},
    "pbm-ts": {"pbm-ts": 50, "pbm-ucb": 200},
    "pbm-pie": {"pbm-pie": 80, "pbm-ucb": 200},
    "top-rank": {
        "top-rank-position-based": 700,
        "batch-rank-position-based": 9000,
        "top-rank-cascade": 200,
        "batch-rank-cascade": 900,
    },
    "batch-rank": {
        "batch-rank-position-based": 900,
        "ranked-exp3-position-based": 2000,
        "batch-rank-cascade": 900,
        "ranked-exp3-cascade": 2000,
        "cascade-kl-ucb-cascade": 100,
    },
    "uni-rank": {
        "uni-rank-position-based": 100,
        "top-rank-position-based": 200,
        "batch-rank-position-based": 900,
        "uni-rank-cascade": 100,
        "top-rank-cascade": 200,
        "batch-rank-cascade": 900,
    },
    "cascade-kl-ucb": {
        f"items{items}-positions{positions}-gap{gap}": items * (10 - positions) / gap
        for items in (16, 32)
        for positions in (2, 4, 8)
        for gap in (0.15, 0.075)
    },
    "cascade-ts": {
        f"{policy}-items{items}-positions{positions}": regret
        for policy, regret in (("cascade-ts", 100), ("cascade-kl-ucb", 300))
        for items, positions in ((16, 2), (32, 4))
    },
    "ranked-bandits": {"ucb1": 4000, "exp3": 5000},
    "pb-mhb": {"pb-mhb": 100, "pbm-pie": 200, "top-rank": 700, "comb-ucb1": 5000},
    "grab": {"grab": 700, "comb-ucb1": 2000, "pb-mhb": 50},
    "comb-ucb1": {"comb-ucb1": 2000},
    "pmed": {"pmed": 300, "comb-ucb1": 2000},
    "cucb": {"cucb": 2000},
    "cts": {"cts": 200, "cucb": 2000},
    "ftrl-pbm": {
        "ftrl-pbm-stochastic": 1000,
        "ftrl-pbm-adversarial": 900,
        "cts-adversarial": 4000,
    },
}


def analyse(reproduction: RegretReproduction, changed: dict[str, pd.DataFrame] | None = None) -> StudyResult:
    frames = {name: ending_at(regret) for name, regret in CONFIRMING[reproduction.policy].items()}
    assert set(frames) == set(reproduction.runs)
    return reproduction.analyse({**frames, **(changed or {})})


def test_every_baseline_has_a_reproduction() -> None:
    assert set(REPRODUCTIONS) == set(BASELINES) == {*CONFIRMING, "bubble-rank", "nash-ucb"}
    for policy, study in REPRODUCTIONS.items():
        assert study.name == f"paper-{policy}"
        assert (study.claim_heading, study.has_agreement) == ("Its paper says", True)


@pytest.mark.parametrize("study", REPRODUCTIONS.values(), ids=lambda study: study.name)
def test_a_claim_is_two_sentences_that_name_the_paper(study: Study) -> None:
    assert len(re.split(r"(?<=[a-z%\d)])\. (?=[A-Z])", study.claim)) == 2
    assert re.search(
        r"\((?:[^()]*, )+(?:NIPS|NeurIPS|ICML|UAI|IDA|AISTATS|AAAI|JMLR) 20\d\d[^()]*\)\.$", study.claim
    )


@pytest.mark.parametrize("reproduction", ALL, ids=lambda reproduction: reproduction.policy)
def test_confirming_data_agree(reproduction: RegretReproduction) -> None:
    result = analyse(reproduction)
    assert [check.evidence for check in result.checks if not check.holds] == []
    assert result.agreement == "agrees"
    assert len(re.split(r"(?<=[a-z%\d)])\. (?=[A-Z])", result.findings)) == 2
    assert reproduction.setting in result.findings


@pytest.mark.parametrize("reproduction", ALL, ids=lambda reproduction: reproduction.policy)
def test_no_loop_is_compiled_for_one_reproduction_alone(reproduction: RegretReproduction) -> None:
    assert reproduction.horizon * reproduction.replications < MIN_FUSED_ROUNDS


LINEAR = synthetic_curves(lambda t: t / 50)
HIGH, LOW = ending_at(99_000.0), ending_at(1.0)


@pytest.mark.parametrize(
    ("reproduction", "changed", "index"),
    [
        (PBM_UCB, {"pbm-ucb": synthetic_curves(lambda t: t / 50)}, 0),
        (PBM_UCB, {"pbm-ts": HIGH}, 1),
        (PBM_UCB, {"pbm-pie": HIGH}, 2),
        (PBM_TS, {"pbm-ts": HIGH}, 0),
        (PBM_TS, {"pbm-ts": synthetic_curves(lambda t: t / 1000)}, 1),
        (PBM_PIE, {"pbm-ucb": LOW}, 0),
        (PBM_PIE, {"pbm-pie": ending_at(150.0)}, 1),
        (TOP_RANK, {"top-rank-position-based": HIGH}, 0),
        (TOP_RANK, {"batch-rank-cascade": LOW}, 1),
        (BATCH_RANK, {"ranked-exp3-position-based": LOW}, 0),
        (BATCH_RANK, {"batch-rank-cascade": ending_at(3000.0)}, 1),
        (BATCH_RANK, {"cascade-kl-ucb-cascade": HIGH}, 2),
        (CASCADE_TS, {"cascade-ts-items16-positions2": HIGH}, 0),
        (UNI_RANK, {"top-rank-position-based": LOW}, 0),
        (UNI_RANK, {"batch-rank-position-based": LOW}, 1),
        (UNI_RANK, {"top-rank-cascade": LOW}, 2),
        (UNI_RANK, {"batch-rank-cascade": LOW}, 3),
        (CASCADE_KL_UCB, {"items16-positions2-gap0.15": ending_at(9_000.0)}, 0),
        (CASCADE_KL_UCB, {"items16-positions8-gap0.075": ending_at(1_900.0)}, 1),
        (CASCADE_KL_UCB, {"items32-positions4-gap0.15": ending_at(3_000.0)}, 2),
        (RANKED_BANDITS, {"ucb1": synthetic_curves(lambda t: 0.4 * t)}, 0),
        (RANKED_BANDITS, {"ucb1": synthetic_curves(lambda t: 0.3 * t)}, 1),
        (RANKED_BANDITS, {"exp3": LOW}, 2),
        (PB_MHB, {"pbm-pie": LOW}, 0),
        (PB_MHB, {"top-rank": LOW}, 1),
        (PB_MHB, {"comb-ucb1": LOW}, 2),
        (GRAB, {"grab": synthetic_curves(lambda t: t / 100)}, 0),
        (GRAB, {"comb-ucb1": LOW}, 1),
        (COMB_UCB1, {"comb-ucb1": LINEAR}, 0),
        (COMB_UCB1, {"comb-ucb1": ending_at(1e9)}, 1),
        (PMED, {"pmed": synthetic_curves(lambda t: t / 100)}, 0),
        (PMED, {"comb-ucb1": LOW}, 1),
        (CUCB, {"cucb": LINEAR}, 0),
        (CTS, {"cts": LINEAR}, 0),
        (CTS, {"cucb": LOW}, 1),
        (FTRL_PBM, {"ftrl-pbm-stochastic": LINEAR}, 0),
        (FTRL_PBM, {"ftrl-pbm-adversarial": LINEAR}, 1),
        (FTRL_PBM, {"cts-adversarial": LOW}, 2),
    ],
    ids=lambda value: value.policy if isinstance(value, RegretReproduction) else "",
)
def test_each_check_fails_on_contradicting_data(
    reproduction: RegretReproduction, changed: Frames, index: int
) -> None:
    check = analyse(reproduction, dict(changed)).checks[index]
    assert check.holds is False, check.evidence


def test_every_check_is_covered_above() -> None:
    covered = test_each_check_fails_on_contradicting_data.pytestmark[0].args[1]
    indexs = {(reproduction.policy, index) for reproduction, _, index in covered}
    assert indexs == {
        (reproduction.policy, index)
        for reproduction in ALL
        for index in range(len(analyse(reproduction).checks))
    }


def test_runs_that_differ_by_chance_only_decide_nothing() -> None:
    checks = analyse(PBM_TS, {"pbm-ucb": ending_at(50.5)}).checks
    assert checks[0].holds is None


def test_the_lower_bound_is_that_of_a_hand_calculation() -> None:
    # In the last position: .03 / d(.045, .075) + .06 / d(.015, .075) = 4.004 + 1.589.
    assert 5.0 < lower_bound() <= 4.004 + 1.589 + 0.01


def test_the_bound_of_combucb1_is_the_theorems() -> None:
    # The gap of the two best rankings is .3 · .2 = .06 (third position: .3 or .1), K = 3, L = 12 cells.
    expected = 3 * 12 * 534 / 0.06 * np.log(1000) + (np.pi**2 / 3 + 1) * 3 * 12
    assert comb_ucb1_bound(FOUR_ITEMS, 1000) == pytest.approx(expected)


def test_click_probabilities_are_those_of_the_paper() -> None:
    tables = compile_problem(FIVE_ITEMS, click_model=PositionBased())
    ranking = np.array([4, 0, 2], dtype=np.uintp)
    expected = 0.9 * 0.05 + 0.6 * 0.45 + 0.3 * 0.25
    assert PositionBased().value(tables, 0, ranking) == pytest.approx(expected)


def test_popular_items_appeal_to_the_same_users() -> None:
    assert popularity_value() < 0.65 * best_value()


def safe_data(change: Callable[[pd.DataFrame, pd.DataFrame], None] = lambda *_: None) -> Frames:
    rounds = [10, 100, 200, 10_000]
    frames = [
        pd.DataFrame(
            [(n, t, wrong, unsafe * t, slope * t + n) for n in range(6) for t in rounds],
            columns=["replication", "round", "maximum_wrong_pairs", "unsafe_rounds", "regret"],
        )
        for wrong, unsafe, slope in ((10, 0, 0.1), (30, 1, 0.5))
    ]
    change(*frames)
    return dict(zip(("bubble-rank", "top-rank"), frames, strict=True))


def test_safety_follows_from_the_shown_rankings() -> None:
    assert li2019.analyse(safe_data()).agreement == "agrees"

    def slip(bubble: pd.DataFrame, _: pd.DataFrame) -> None:
        bubble.loc[bubble.index[-1], "unsafe_rounds"] = 1

    def spotless(_: pd.DataFrame, top: pd.DataFrame) -> None:
        top["unsafe_rounds"] = 0

    def costly(bubble: pd.DataFrame, _: pd.DataFrame) -> None:
        bubble["regret"] += 1000.0

    for index, change in enumerate((slip, spotless, costly)):
        answers = [check.holds for check in li2019.analyse(safe_data(change)).checks]
        assert answers == [other != index for other in range(3)]


def test_pairs_are_counted_as_the_constraint_counts_them() -> None:
    assert li2019.wrong_pairs(np.array(li2019.BASE)) == 5
    assert li2019.MAX_WRONG_PAIRS == 10
    assert li2019.wrong_pairs(np.arange(10)) == 0
    assert li2019.wrong_pairs(np.arange(10)[::-1]) == 45


def test_a_safety_job_is_reproducible() -> None:
    [bubble, _] = li2019.sweep(3, quick=True)
    small = li2019.SafetyJob(name="a", policy=bubble.policy, rounds=500, replications=2, seed=3)
    steps: list[int] = []
    first = small.run(workers=1, advance=steps.append)
    pd.testing.assert_frame_equal(first, small.run(workers=2, advance=steps.append))
    assert first["replication"].nunique() == 2
    assert first["round"].max() == 500
    assert (first["maximum_wrong_pairs"] <= li2019.MAX_WRONG_PAIRS).all()
    assert (first.groupby("replication")["regret"].diff().dropna() >= 0).all()


def welfare_data(regret: Callable[[float], float]) -> Frames:
    return {"nash-ucb": synthetic_curves(regret)[["replication", "round", "regret"]]}


def test_the_loss_of_welfare_decides_the_checks() -> None:
    assert hossain2021.analyse(welfare_data(lambda t: 2 * np.sqrt(t))).agreement == "agrees"
    linear = [check.holds for check in hossain2021.analyse(welfare_data(lambda t: t / 100)).checks]
    assert linear == [False, True]
    large = [check.holds for check in hossain2021.analyse(welfare_data(lambda t: 60 * np.sqrt(t))).checks]
    assert large == [True, False]


def test_the_best_welfare_is_that_of_multiplicative_updates() -> None:
    lottery = np.full(4, 0.25)
    for _ in range(2_000):
        lottery *= (hossain2021.TASTES / (hossain2021.TASTES @ lottery)[:, None]).mean(axis=0)
    assert hossain2021.best_welfare() == pytest.approx((hossain2021.TASTES @ lottery).prod(), rel=1e-9)
    assert hossain2021.fixed_arm_loss() == pytest.approx(0.225 - 0.12, abs=1e-3)


def test_a_welfare_job_is_reproducible() -> None:
    [job] = hossain2021.sweep(3, quick=True)
    small = hossain2021.WelfareJob(name="a", policy=job.policy, rounds=500, replications=2, seed=3)
    steps: list[int] = []
    first = small.run(workers=1, advance=steps.append)
    pd.testing.assert_frame_equal(first, small.run(workers=2, advance=steps.append))
    assert (first.groupby("replication")["regret"].diff().dropna() >= -1e-12).all()


def test_the_best_ranking_stays_the_same_under_the_adversary() -> None:
    timeline = constrained_adversary(1000)
    assert len({tuple(np.argsort(-problem.item_means[0])[:2]) for problem in timeline.problems}) == 1
    assert {float(problem.item_means[0, 0]) for problem in timeline.problems} == {0.2, 1.0}
