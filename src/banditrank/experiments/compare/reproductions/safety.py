"""Li et al. (2019), "BubbleRank": a list that is improved without ever getting much worse."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditrank.counts.counts import Counts
from banditrank.experiments.compare.reproductions.trial import ITS_PAPER
from banditrank.experiments.compare.reproductions.worlds import positions_world
from banditrank.experiments.comparison import BY_RANKS, compare
from banditrank.experiments.curves import SPREAD, at_round, draw_curves, spread
from banditrank.experiments.part import Part
from banditrank.experiments.study import Check, Frames, Picture, Reading, Study, Table
from banditrank.model.click_models import PositionBased, compile_problem
from banditrank.policies.base import CompiledPolicy
from banditrank.policies.baselines.bubble_rank import BubbleRank
from banditrank.policies.baselines.top_rank import TopRank
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.progress import Advance
from banditrank.simulation.simulate import default_checkpoints

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ROUNDS, QUICK_ROUNDS = 50_000, 5_000
REPLICATIONS, QUICK_REPLICATIONS = 8, 4
CUT = f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_ROUNDS:,} of {ROUNDS:,} rounds"
MODEL = PositionBased()
ATTRACTION = (0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.22, 0.15, 0.1, 0.05)  # item 1 is the best, and so on
WORLD = positions_world((1.0, 0.85, 0.72, 0.61, 0.52, 0.44, 0.38, 0.32, 0.27, 0.23), ATTRACTION, "re-ranked")
BASE = (1, 0, 2, 5, 3, 4, 7, 6, 9, 8)  # what a production system might show: not bad, not the best
LABELS = {"bubble-rank": "BubbleRank", "top-rank": "TopRank"}


def wrong_pairs(ranking: NDArray[np.integer]) -> int:
    """Return how many pairs are in the wrong order, where lower numbers are better.

    Examples
    --------
    >>> wrong_pairs(np.array([1, 0, 2])), wrong_pairs(np.array([2, 1, 0]))
    (1, 3)
    """
    return int(np.triu(ranking[:, None] > ranking[None, :], 1).sum())


ALLOWED = wrong_pairs(np.array(BASE)) + len(BASE) // 2
"""What the paper's safety constraint allows."""


@dataclass(frozen=True, kw_only=True)
class SafetyPart(Part):
    """A policy, played round by round to see what it shows."""

    policy: CompiledPolicy
    rounds: int
    replications: int
    seed: int

    @property
    def steps(self) -> int:
        """Rounds, in all."""
        return self.rounds * self.replications

    @property
    def work(self) -> float:
        """Seconds, about."""
        return self.steps * 3e-5

    def settings(self) -> dict[str, Any]:
        """Return what the data depend on."""
        return {
            "policy": self.policy.fingerprint(),
            "problem": WORLD.to_dict(),
            "base": list(BASE),
            "rounds": self.rounds,
            "replications": self.replications,
            "seed": self.seed,
        }

    def run(
        self,
        *,
        workers: int | None,  # noqa: ARG002 - always one thread, here
        advance: Advance,
        backend: Backend | None = None,  # noqa: ARG002
    ) -> "pd.DataFrame":
        """Return by replication and round the most wrong pairs, unsafe rounds and regret so far."""
        import pandas as pd  # noqa: PLC0415 - heavy

        rows: list[tuple[float, ...]] = []
        for number, sequence in enumerate(np.random.SeedSequence(self.seed).spawn(self.replications)):
            rows += [(number, *row) for row in self._replicate(np.random.default_rng(sequence), advance)]
        return pd.DataFrame(rows, columns=["replication", "round", "most_wrong", "unsafe", "regret"])

    def _replicate(self, rng: np.random.Generator, advance: Advance) -> "list[tuple[float, ...]]":
        policy, world = self.policy, compile_problem(WORLD, click_model=MODEL)
        state = policy.init_state(Counts.empty_for(WORLD), policy.new_scratch())
        kernel = policy.kernel(n_items=WORLD.n_items, n_positions=WORLD.n_positions)
        ranking, rewards = np.zeros(WORLD.n_positions, dtype=np.uintp), np.zeros(WORLD.n_positions)
        best = float(MODEL.value(world, 0, np.arange(WORLD.n_positions, dtype=np.uintp)))
        checkpoints = set(default_checkpoints(self.rounds).tolist())
        most, unsafe, regret = 0, 0, 0.0
        rows: list[tuple[float, ...]] = []
        for t, parameters in enumerate(policy.parameters(np.arange(1, self.rounds + 1)), start=1):
            kernel.rank(state, 0, t, parameters, rng, ranking)
            MODEL.draw(world, 0, ranking, rng, rewards)
            kernel.observe(state, 0, t, ranking, rewards)
            wrong = wrong_pairs(ranking)
            most = max(most, wrong)
            unsafe += wrong > ALLOWED
            regret += best - float(MODEL.value(world, 0, ranking))
            if t in checkpoints:
                rows.append((t, most, unsafe, regret))
            if t % 1000 == 0:
                advance(1000)
        return rows


def sweep(seed: int, *, quick: bool) -> list[Part]:
    """Return the parts: BubbleRank, and TopRank to compare it with."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    policies = {
        "bubble-rank": BubbleRank(base_list=(BASE,), horizon=rounds),
        "top-rank": TopRank(horizon=rounds),
    }
    return [
        SafetyPart(
            name=name,
            policy=policy,
            rounds=rounds,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
        )
        for name, policy in policies.items()
    ]


def read(frames: Frames) -> Reading:
    """Return how safe they were, and what that cost."""
    rounds = int(frames["bubble-rank"]["round"].max())
    early = int(max(t for t in frames["bubble-rank"]["round"].unique() if t <= max(rounds // 50, 1)))
    most = {name: at_round(frames[name], rounds, "most_wrong") for name in LABELS}
    unsafe = {name: at_round(frames[name], rounds, "unsafe") for name in LABELS}
    at_first = {name: at_round(frames[name], early) for name in LABELS}
    found = compare(at_first["bubble-rank"], at_first["top-rank"])
    base = wrong_pairs(np.array(BASE))
    checks = [
        Check(
            f"BubbleRank never shows a list with more than {ALLOWED} pairs in the wrong order: those of its "
            f"base list, {base}, and half as many as there are positions.",
            bool((unsafe["bubble-rank"] == 0).all()),
            f"{most['bubble-rank'].max():.0f} at most in {len(most['bubble-rank'])} replications",
        ),
        Check(
            "TopRank, which starts from nothing, shows such lists in every replication.",
            bool((unsafe["top-rank"] > 0).all()),
            f"in {np.median(unsafe['top-rank']):,.0f} rounds (median), with up to "
            f"{most['top-rank'].max():.0f} wrong pairs",
        ),
        Check(
            f"At first, in {early:,} rounds, BubbleRank has less regret than TopRank, {BY_RANKS} over the "
            "replications.",
            found.less,
            f"median {np.median(at_first['bubble-rank']):,.0f} against "
            f"{np.median(at_first['top-rank']):,.0f}, {found}",
        ),
    ]
    findings = (
        f"In {rounds:,} rounds BubbleRank shows {most['bubble-rank'].max():.0f} wrong pairs at most, where "
        f"{ALLOWED} are allowed, and TopRank up to {most['top-rank'].max():.0f}. Ten items are re-ranked in "
        "ten positions, as in the paper, with click rates and a base list of our own in the place of those "
        "of a search engine."
    )
    rows = [
        [
            label,
            f"{most[name].max():.0f}",
            f"{np.median(unsafe[name]):,.0f}",
            *spread(at_round(frames[name], rounds)),
        ]
        for name, label in LABELS.items()
    ]
    table = Table(
        f"In {rounds:,} rounds: wrong pairs, unsafe rounds, and regret at the end",
        ["policy", "most wrong pairs", "unsafe rounds", *(f"regret, {heading}" for heading in SPREAD)],
        rows,
    )
    figures = {"most_wrong": {name: float(values.max()) for name, values in most.items()}, "allowed": ALLOWED}
    return Reading(findings, checks, [_picture(frames)], [table], figures)


def _picture(frames: Frames) -> Picture:
    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2)
        named = {label: frames[name] for name, label in LABELS.items()}
        for axes, column, label in (
            (left, "unsafe", "rounds with an unsafe list"),
            (right, "regret", "regret"),
        ):
            axes.set_xscale("log")
            draw_curves(axes, named, column)
            axes.set_ylabel(label)
            axes.legend(frameon=False, fontsize="small")

    caption = (
        "Rounds in which a list breaks the safety constraint (left) and regret (right), over rounds on a "
        "logarithmic axis: medians, in bands from the 10% to the 90% quantile of the replications."
    )
    return Picture("safety", caption, draw, width=9.0, height=3.6)


STUDY = Study(
    "paper-bubble-rank",
    "BubbleRank, starting from a list that is not bad",
    "BubbleRank improves a base list and is safe: what it shows has at most K/2 more pairs in the wrong "
    "order than the base list. Others, which learn from nothing, break that many times at the start, when "
    "BubbleRank's regret is below theirs (Li et al., UAI 2019, its safety lemma and the figures of its "
    "experiments).",
    sweep,
    read,
    CUT,
    heading=ITS_PAPER,
)
