"""Hossain, Micha and Shah (2021), "Fair algorithms for multi-agent multi-armed bandits": Nash welfare."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditrank._extras import requires
from banditrank._report_page.elements import ReportFigure, Table
from banditrank.counts._counts import Counts
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    CLAIM_HEADING,
    MAX_SQUARE_ROOT_GROWTH,
    growth_ratio,
    tenfolds,
)
from banditrank.experiments._curves import QUANTILE_HEADINGS, at_round, draw_curves, format_quantiles
from banditrank.experiments._job import Job
from banditrank.experiments._study import Check, Frames, Study, StudyResult
from banditrank.model._problem import Problem
from banditrank.policies.baselines._nash_ucb import NashUCB, NashUCBState, nash_welfare
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._progress import Advance
from banditrank.simulation._simulate import default_checkpoints
from banditrank.solvers._lottery.solve import solve_lottery

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

ROUNDS, QUICK_ROUNDS = 100_000, 20_000
REPLICATIONS, QUICK_REPLICATIONS = 8, 4
QUICK_SCALE = f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_ROUNDS:,} of {ROUNDS:,} rounds"
TASTES = np.array([[0.9, 0.1, 0.4, 0.2], [0.1, 0.8, 0.3, 0.5]])  # (N, M)


def best_welfare() -> float:
    """Return the largest Nash welfare of any distribution over the arms.

    Examples
    --------
    >>> round(best_welfare(), 4)
    0.225
    """
    n = len(TASTES)
    problem = Problem(np.full(n, 1.0 / n), np.ones((n, 1)), TASTES)
    return float(nash_welfare(solve_lottery(problem, "nash").user_type_values))


def lottery_in_force(state: NashUCBState) -> Floats:
    """Return the distribution over arms of the last round, shape (M,), for one position."""
    lottery = np.zeros(state.means.shape[2])
    np.add.at(lottery, state.lottery.rankings[0, :, 0].astype(np.intp), state.lottery.weights[0])
    return lottery


@dataclass(frozen=True, kw_only=True)
class WelfareJob(Job):
    """Simulation that measures how much welfare the lottery of each round loses against the best one."""

    policy: NashUCB
    rounds: int
    replications: int
    seed: int

    @property
    def n_steps(self) -> int:
        """Total number of rounds."""
        return self.rounds * self.replications

    @property
    def estimated_seconds(self) -> float:
        """Approximate running time."""
        return self.n_steps * 3e-5

    def settings(self) -> dict[str, Any]:
        """Return the plain values that the data depend on."""
        return {
            "policy": self.policy.fingerprint(),
            "tastes": TASTES.tolist(),
            "rounds": self.rounds,
            "replications": self.replications,
            "seed": self.seed,
        }

    def run(
        self,
        *,
        workers: int | None,  # noqa: ARG002 - always one thread
        advance: Advance,
        backend: Backend | None = None,  # noqa: ARG002 - as above
    ) -> "pd.DataFrame":
        """Return the welfare lost so far, one row per replication and checkpoint."""
        with requires("reports", "the study"):
            import pandas as pd  # noqa: PLC0415 - heavy, and optional

        rows: list[tuple[float, ...]] = []
        for replication, sequence in enumerate(np.random.SeedSequence(self.seed).spawn(self.replications)):
            rows += [(replication, *row) for row in self._replicate(np.random.default_rng(sequence), advance)]
        return pd.DataFrame(rows, columns=["replication", "round", "regret"])

    def _replicate(self, rng: np.random.Generator, advance: Advance) -> "list[tuple[float, ...]]":
        n, m = TASTES.shape
        kernel = self.policy.bind(Counts.empty(n_user_types=n, n_items=m, n_positions=1), rng)
        best = best_welfare()
        checkpoints = {*default_checkpoints(self.rounds).tolist(), *tenfolds(self.rounds)}
        rows: list[tuple[float, ...]] = []
        regret, parameters, rewards = 0.0, np.zeros(0), np.zeros(1)
        for t in range(1, self.rounds + 1):
            user_type = int(rng.integers(n))
            item = int(kernel.rank(user_type, t, parameters)[0])
            regret += best - nash_welfare(TASTES @ lottery_in_force(kernel.state))
            rewards[0] = rng.random() < TASTES[user_type, item]
            kernel.observe(user_type, t, kernel.ranking, rewards)
            if t in checkpoints:
                rows.append((t, regret))
            if t % 1000 == 0:
                advance(1000)
        return rows


def sweep(seed: int, *, quick: bool) -> list[Job]:
    """Return one job."""
    return [
        WelfareJob(
            name="nash-ucb",
            policy=NashUCB(treatment="equal"),
            rounds=QUICK_ROUNDS if quick else ROUNDS,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
        )
    ]


def fixed_arm_loss() -> float:
    """Return the welfare that the best fixed arm loses in each round against the best lottery."""
    return float(best_welfare() - TASTES.prod(axis=0).max())


def analyse(frames: Frames) -> StudyResult:
    """Return the welfare lost against the best lottery, and the checks."""
    frame = frames["nash-ucb"]
    rounds = int(frame["round"].max())
    lost, growth = at_round(frame, rounds), growth_ratio(frame, rounds)
    median, largest = float(np.median(lost)), float(lost.max())
    fixed = rounds * fixed_arm_loss()
    checks = [
        Check(
            "The welfare that UCB loses against the best lottery grows like a square root at most: over the "
            f"last tenfold increase of rounds by at most {MAX_SQUARE_ROOT_GROWTH:g} times its growth over "
            "the one before (3.2 for a square root, 10 for linear growth).",
            growth <= MAX_SQUARE_ROOT_GROWTH,
            f"{growth:.2f} times",
        ),
        Check(
            "In every replication it loses less than the best fixed arm: a fair lottery is learned.",
            largest < fixed,
            f"at most {largest:,.1f}, and {fixed:,.1f} for the best fixed arm",
        ),
    ]
    findings = (
        f"After {rounds:,} rounds UCB has lost a median welfare of {median:,.1f} against the best "
        f"lottery, where the best fixed arm loses {fixed:,.1f}. Two user types have four arms with means "
        "of our own, and each round one of them arrives at random, where in the paper all agents observe "
        "each arm."
    )
    rows = [["nash-ucb", *format_quantiles(lost), f"{growth:.2f}"]]
    caption = f"Welfare lost after {rounds:,} rounds, and its growth over the last tenfold increase of rounds"
    table = Table(caption, ["run", *QUANTILE_HEADINGS, "growth ratio"], rows)
    metrics = {"median_regret": {"nash-ucb": median}, "fixed_arm_regret": fixed}
    return StudyResult(findings, checks, [_figure(frames)], [table], metrics)


def _figure(frames: Frames) -> ReportFigure:
    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.set_xscale("log")
        draw_curves(axes, {"nash-ucb": frames["nash-ucb"]})
        axes.set_ylabel("welfare lost")
        axes.legend(frameon=False, fontsize="small")

    caption = (
        "Welfare lost against the best lottery over rounds, on a logarithmic axis: medians, in bands from "
        "the 10% to the 90% quantile of the replications."
    )
    return ReportFigure("regret", caption, draw, width=6.0, height=3.6)


STUDY = Study(
    "paper-nash-ucb",
    "UCB for Nash welfare, over lotteries of arms",
    "The fair choice is a distribution over arms, that of the largest product of the agents' expected "
    "rewards. A UCB policy for it has regret of the order of √(T ln T) against the best distribution "
    "(Hossain, Micha and Shah, NeurIPS 2021, its theorem).",
    sweep,
    analyse,
    QUICK_SCALE,
    claim_heading=CLAIM_HEADING,
)
