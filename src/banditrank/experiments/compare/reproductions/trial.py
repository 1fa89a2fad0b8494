"""A reproduction of one kind: a few policies on a few worlds, and statements about their regrets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank.experiments.comparison import BY_RANKS, compare
from banditrank.experiments.curves import SPREAD, at_round, draw_curves, spread
from banditrank.experiments.part import Part
from banditrank.experiments.simulation_part import SimulationPart
from banditrank.experiments.study import Check, Frames, Picture, Reading, Study, Table
from banditrank.experiments.words import listed
from banditrank.model.click_models import ClickModel
from banditrank.model.problem import Problem
from banditrank.policies.base import CompiledPolicy
from banditrank.policies.catalog import make_policy
from banditrank.simulation.simulate import default_checkpoints

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

ITS_PAPER = "Its paper says"
LOGARITHMIC = 2.0  # growth over the last tenfold of rounds over that before: 1 if logarithmic, 3.2 for a root
_PANELS = 3  # in a row


@dataclass(frozen=True, kw_only=True)
class Run:
    """A policy on a world.

    Parameters
    ----------
    label
        What to call it in the figure and the table.
    policy
        Returns the policy, given the horizon.
    panel
        The heading of the part of the figure that it is drawn in.
    """

    label: str
    policy: Callable[[int], CompiledPolicy]
    problem: Problem
    click_model: ClickModel
    panel: str = ""
    microseconds: float = 2.0


def named(
    name: str, problem: Problem, click_model: ClickModel, panel: str = "", microseconds: float = 2.0
) -> Run:
    """Return a run of a policy of the catalog, told what it takes for known."""
    return Run(
        label=name,
        policy=lambda horizon: make_policy(name, problem, click_model=click_model, horizon=horizon),
        problem=problem,
        click_model=click_model,
        panel=panel,
        microseconds=microseconds,
    )


@dataclass(frozen=True)
class Results:
    """The data of a trial's runs, by name."""

    frames: Frames

    @property
    def horizon(self) -> int:
        """Rounds of each run."""
        return int(next(iter(self.frames.values()))["round"].max())

    def final(self, run: str) -> Floats:
        """Return regret at the end, one a replication."""
        return at_round(self.frames[run], self.horizon)

    def median(self, run: str) -> float:
        """Return the median regret at the end."""
        return float(np.median(self.final(run)))

    def less(self, first: str, second: str, statement: str) -> Check:
        """Return the check that one run has less regret than another."""
        found = compare(self.final(first), self.final(second))
        return Check(
            f"{statement}, {BY_RANKS} over the replications.",
            found.less,
            f"median {self.median(first):,.0f} against {self.median(second):,.0f}, {found}",
        )

    def slowdown(self, run: str) -> float:
        """Return how much the median grew over the last tenfold of rounds, over that before."""
        regret = [float(np.median(at_round(self.frames[run], t))) for t in tenfolds(self.horizon)]
        return (regret[2] - regret[1]) / max(regret[1] - regret[0], 1e-9)

    def logarithmic(self, run: str, statement: str) -> Check:
        """Return the check that the regret of a run grows like the logarithm of rounds."""
        found = self.slowdown(run)
        return Check(
            f"{statement}: over the last tenfold of rounds the median grows by at most {LOGARITHMIC:g} times "
            "what it grew by over the tenfold before (logarithmic growth: once, a square root: 3.2 times).",
            found <= LOGARITHMIC,
            f"{found:.2f} times",
        )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A reproduction: runs and statements about them.

    Parameters
    ----------
    policy
        Whose.
    title, claim
        As for a `Study`.
    setting
        What world it was, and what is changed from the paper, as a sentence.
    runs
        By name.
    checks
        Returns what follows from the claim, given the results.
    """

    policy: str
    title: str
    claim: str
    setting: str
    runs: Mapping[str, Run]
    checks: Callable[[Results], Sequence[Check]]
    horizon: int = 100_000
    replications: int = 16
    quick_horizon: int = 20_000
    quick_replications: int = 5

    def study(self) -> Study:
        """Return it as a study."""
        cut = (
            f"{self.quick_replications} of {self.replications} replications of {self.quick_horizon:,} of "
            f"{self.horizon:,} rounds"
        )
        name = f"paper-{self.policy}"
        return Study(name, self.title, self.claim, self.sweep, self.read, cut, heading=ITS_PAPER)

    def sweep(self, seed: int, *, quick: bool) -> list[Part]:
        """Return the parts, one a run."""
        horizon = self.quick_horizon if quick else self.horizon
        return [
            SimulationPart(
                name=name,
                policy=run.policy(horizon),
                problems=(run.problem,),
                horizon=horizon,
                replications=self.quick_replications if quick else self.replications,
                seed=seed,
                click_model=run.click_model,
                checkpoints=sorted({*default_checkpoints(horizon).tolist(), *tenfolds(horizon)}),
                microseconds=run.microseconds,
            )
            for name, run in self.runs.items()
        ]

    def read(self, frames: Frames) -> Reading:
        """Return what the regrets say."""
        results = Results(frames)
        medians = {name: results.median(name) for name in self.runs}
        lost = listed(f"{self._name(name)} {medians[name]:,.0f}" for name in self.runs)
        findings = f"After {results.horizon:,} rounds the median regrets are: {lost}. {self.setting}"
        rows = [
            [self._name(name), *spread(results.final(name)), f"{results.slowdown(name):.2f}"]
            for name in self.runs
        ]
        caption = (
            f"Regret after {results.horizon:,} rounds, and by how many times what it grew by in the tenfold "
            "of rounds before it grew in the last"
        )
        return Reading(
            findings,
            self.checks(results),
            [self._picture(frames)],
            [Table(caption, ["run", *SPREAD, "times"], rows)],
            {"regret": medians},
        )

    def _name(self, run: str) -> str:
        panel = self.runs[run].panel
        return f"{self.runs[run].label} ({panel})" if panel else self.runs[run].label

    def _picture(self, frames: Frames) -> Picture:
        panels: dict[str, dict[str, pd.DataFrame]] = {}
        for name, run in self.runs.items():
            panels.setdefault(run.panel, {})[run.label] = frames[name]
        columns = min(len(panels), _PANELS)
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
        return Picture("regret", caption, draw, width=6.0 if columns == 1 else 9.0, height=3.6 * rows)


def tenfolds(horizon: int) -> tuple[int, int, int]:
    """Return the ends of the last two tenfolds of rounds, and the round before them."""
    return max(horizon // 100, 1), max(horizon // 10, 1), horizon
