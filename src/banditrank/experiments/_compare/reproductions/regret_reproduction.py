"""Reproduction that compares the regret of a few policies on a few problems."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank._report_page.elements import ReportFigure, Table
from banditrank.experiments._compare.reproductions.problems import CLICK_MODELS
from banditrank.experiments._curves import QUANTILE_HEADINGS, at_round, draw_curves, format_quantiles
from banditrank.experiments._formatting import join_words
from banditrank.experiments._job import Job
from banditrank.experiments._significance import BY_RANK_TEST, rank_test
from banditrank.experiments._simulation_job import SimulationJob
from banditrank.experiments._study import Check, Frames, Study, StudyResult
from banditrank.model._click_models import ClickModel
from banditrank.model._problem import Problem
from banditrank.model._timeline import Timeline
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._catalog import make_policy
from banditrank.simulation._simulate import default_checkpoints

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

CLAIM_HEADING = "Its paper says"
# See `growth_ratio`: 1 for a logarithm, 3.2 for a square root, 10 for linear growth.
MAX_LOGARITHMIC_GROWTH, MAX_SQUARE_ROOT_GROWTH = 2.0, 3.5
_PANELS_PER_ROW = 3


@dataclass(frozen=True, kw_only=True)
class PolicyRun:
    """Policy on a problem.

    Parameters
    ----------
    label
        Label in the figure and the table.
    policy
        Returns the policy, given the horizon.
    problem, click_model
        Problem to simulate.
    panel
        Heading of the figure's panel that the run is drawn in.
    microseconds_per_round
        Approximate time of a round.
    """

    label: str
    policy: Callable[[int], CompiledPolicy]
    problem: Problem | Timeline
    click_model: ClickModel
    panel: str = ""
    microseconds_per_round: float = 2.0


def catalog_run(
    name: str,
    problem: Problem | Timeline,
    click_model: ClickModel,
    panel: str = "",
    microseconds_per_round: float = 2.0,
) -> PolicyRun:
    """Return a run of a policy of the catalog, with the parameters of the problem that it needs to know."""
    return PolicyRun(
        label=name,
        policy=lambda horizon: make_policy(name, problem, click_model=click_model, horizon=horizon),
        problem=problem,
        click_model=click_model,
        panel=panel,
        microseconds_per_round=microseconds_per_round,
    )


def runs_under_both_models(problem: Problem, *names: str) -> dict[str, PolicyRun]:
    """Return runs of policies under the position-based and the cascade model, by ``POLICY-MODEL``."""
    return {
        f"{name}-{panel}": catalog_run(name, problem, model, panel)
        for panel, model in CLICK_MODELS.items()
        for name in names
    }


@dataclass(frozen=True)
class RunResults:
    """Data of the runs of a reproduction, by name."""

    frames: Frames

    @property
    def horizon(self) -> int:
        """Rounds of each run."""
        return int(next(iter(self.frames.values()))["round"].max())

    def final(self, run: str) -> Floats:
        """Return the final regret, shape (R,)."""
        return at_round(self.frames[run], self.horizon)

    def median(self, run: str) -> float:
        """Return the median of the final regret."""
        return float(np.median(self.final(run)))

    def less(self, first: str, second: str, statement: str) -> Check:
        """Return the check that one run has less regret than another."""
        test = rank_test(self.final(first), self.final(second))
        return Check(
            f"{statement}, {BY_RANK_TEST} over the replications.",
            test.less,
            f"median {self.median(first):,.0f} against {self.median(second):,.0f}, {test}",
        )

    def growth_ratio(self, run: str) -> float:
        """Return the growth ratio of the median regret of a run."""
        return growth_ratio(self.frames[run], self.horizon)

    def logarithmic(self, run: str, statement: str) -> Check:
        """Return the check that the regret of a run grows like the logarithm of rounds."""
        ratio = self.growth_ratio(run)
        return Check(
            f"{statement}: over the last tenfold increase of rounds the median grows by at most "
            f"{MAX_LOGARITHMIC_GROWTH:g} times its growth over the one before (1 for a logarithm, 3.2 for a "
            "square root).",
            ratio <= MAX_LOGARITHMIC_GROWTH,
            f"{ratio:.2f} times",
        )


@dataclass(frozen=True, kw_only=True)
class RegretReproduction:
    """Reproduction made of runs and checks of their regret.

    Parameters
    ----------
    policy
        Name of the paper's policy.
    title, claim
        As for a `Study`.
    setting
        Problem, and the differences from the paper, as a sentence.
    runs
        Runs by name.
    checks
        Returns the checks of the claim, given the results.
    horizon, replications, quick_horizon, quick_replications
        Size of a full and of a quick run.
    """

    policy: str
    title: str
    claim: str
    setting: str
    runs: Mapping[str, PolicyRun]
    checks: Callable[[RunResults], Sequence[Check]]
    horizon: int = 100_000
    replications: int = 16
    quick_horizon: int = 20_000
    quick_replications: int = 5

    def study(self) -> Study:
        """Return the reproduction as a study."""
        quick_scale = (
            f"{self.quick_replications} of {self.replications} replications of {self.quick_horizon:,} of "
            f"{self.horizon:,} rounds"
        )
        return Study(
            f"paper-{self.policy}",
            self.title,
            self.claim,
            self.sweep,
            self.analyse,
            quick_scale,
            claim_heading=CLAIM_HEADING,
        )

    def sweep(self, seed: int, *, quick: bool) -> list[Job]:
        """Return one job per run."""
        horizon = self.quick_horizon if quick else self.horizon
        return [
            SimulationJob(
                name=name,
                policy=run.policy(horizon),
                problems=(run.problem,),
                horizon=horizon,
                replications=self.quick_replications if quick else self.replications,
                seed=seed,
                click_model=run.click_model,
                checkpoints=sorted({*default_checkpoints(horizon).tolist(), *tenfolds(horizon)}),
                microseconds_per_round=run.microseconds_per_round,
            )
            for name, run in self.runs.items()
        ]

    def analyse(self, frames: Frames) -> StudyResult:
        """Return the regret of each run, and the checks."""
        results = RunResults(frames)
        medians = {name: results.median(name) for name in self.runs}
        regrets = join_words(f"{self._label(name)} {medians[name]:,.0f}" for name in self.runs)
        findings = f"After {results.horizon:,} rounds the median regrets are: {regrets}. {self.setting}"
        rows = [
            [self._label(name), *format_quantiles(results.final(name)), f"{results.growth_ratio(name):.2f}"]
            for name in self.runs
        ]
        caption = (
            f"Regret after {results.horizon:,} rounds, and its growth over the last tenfold increase of "
            "rounds relative to the one before"
        )
        return StudyResult(
            findings,
            self.checks(results),
            [self._figure(frames)],
            [Table(caption, ["run", *QUANTILE_HEADINGS, "growth ratio"], rows)],
            {"median_regret": medians},
        )

    def _label(self, run: str) -> str:
        panel = self.runs[run].panel
        return f"{self.runs[run].label} ({panel})" if panel else self.runs[run].label

    def _figure(self, frames: Frames) -> ReportFigure:
        panels: dict[str, dict[str, pd.DataFrame]] = {}
        for name, run in self.runs.items():
            panels.setdefault(run.panel, {})[run.label] = frames[name]
        columns = min(len(panels), _PANELS_PER_ROW)
        rows = -(-len(panels) // columns)

        def draw(figure: "Figure") -> None:
            for axes, (heading, curves) in zip(
                figure.subplots(rows, columns, squeeze=False).flat, panels.items(), strict=False
            ):
                axes.set_xscale("log")
                draw_curves(axes, curves)
                axes.set_ylabel("regret")
                axes.set_title(heading, fontsize="medium", loc="left")
                axes.legend(frameon=False, fontsize="small")

        caption = (
            "Regret over rounds, on a logarithmic axis: medians, in bands from the 10% to the 90% quantile "
            "of the replications."
        )
        return ReportFigure("regret", caption, draw, width=6.0 if columns == 1 else 9.0, height=3.6 * rows)


def tenfolds(horizon: int) -> tuple[int, int, int]:
    """Return the rounds that bound the last two tenfold increases of rounds.

    Examples
    --------
    >>> tenfolds(50_000)
    (500, 5000, 50000)
    """
    return max(horizon // 100, 1), max(horizon // 10, 1), horizon


def growth_ratio(frame: "pd.DataFrame", horizon: int) -> float:
    """Return the growth of the median regret over the last tenfold increase of rounds over that before it.

    It is 1 for logarithmic growth, 3.2 for a square root and 10 for linear growth.
    """
    regret = [float(np.median(at_round(frame, t))) for t in tenfolds(horizon)]
    return (regret[2] - regret[1]) / max(regret[1] - regret[0], 1e-9)
