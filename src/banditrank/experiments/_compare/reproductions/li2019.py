"""Li et al. (2019), "BubbleRank": safe improvement of a base ranking."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditrank._extras import requires
from banditrank._report_page.elements import ReportFigure, Table
from banditrank.counts._counts import Counts
from banditrank.experiments._compare.reproductions.problems import position_based_problem
from banditrank.experiments._compare.reproductions.regret_reproduction import CLAIM_HEADING
from banditrank.experiments._curves import QUANTILE_HEADINGS, at_round, draw_curves, format_quantiles
from banditrank.experiments._job import Job
from banditrank.experiments._significance import BY_RANK_TEST, rank_test
from banditrank.experiments._study import Check, Frames, Study, StudyResult
from banditrank.model._bound_click_model import BoundClickModel
from banditrank.model._click_models import PositionBased, compile_problem
from banditrank.policies._base import CompiledPolicy
from banditrank.policies.baselines._bubble_rank import BubbleRank
from banditrank.policies.baselines._top_rank import TopRank
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._progress import Advance
from banditrank.simulation._simulate import default_checkpoints

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ROUNDS, QUICK_ROUNDS = 50_000, 5_000
REPLICATIONS, QUICK_REPLICATIONS = 8, 4
QUICK_SCALE = f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_ROUNDS:,} of {ROUNDS:,} rounds"
MODEL = PositionBased()
ATTRACTION = (0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.22, 0.15, 0.1, 0.05)  # decreasing: lower ids are better
PROBLEM = position_based_problem(
    (1.0, 0.85, 0.72, 0.61, 0.52, 0.44, 0.38, 0.32, 0.27, 0.23), ATTRACTION, "re-ranked"
)
BASE = (1, 0, 2, 5, 3, 4, 7, 6, 9, 8)  # ranking of a production system: good but not optimal
LABELS = {"bubble-rank": "BubbleRank", "top-rank": "TopRank"}


def wrong_pairs(ranking: NDArray[np.integer]) -> int:
    """Return the number of pairs in the wrong order, where lower ids are better.

    Examples
    --------
    >>> wrong_pairs(np.array([1, 0, 2])), wrong_pairs(np.array([2, 1, 0]))
    (1, 3)
    """
    return int(np.triu(ranking[:, None] > ranking[None, :], 1).sum())


MAX_WRONG_PAIRS = wrong_pairs(np.array(BASE)) + len(BASE) // 2
"""Maximum of the paper's safety constraint."""


@dataclass(frozen=True, kw_only=True)
class SafetyJob(Job):
    """Simulation that inspects the ranking of each round."""

    policy: CompiledPolicy
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
            "problem": PROBLEM.to_dict(),
            "base": list(BASE),
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
        """Return wrong pairs, unsafe rounds and regret so far, one row per replication and checkpoint."""
        with requires("reports", "the study"):
            import pandas as pd  # noqa: PLC0415 - heavy, and optional

        rows: list[tuple[float, ...]] = []
        for replication, sequence in enumerate(np.random.SeedSequence(self.seed).spawn(self.replications)):
            rows += [(replication, *row) for row in self._replicate(np.random.default_rng(sequence), advance)]
        return pd.DataFrame(
            rows, columns=["replication", "round", "maximum_wrong_pairs", "unsafe_rounds", "regret"]
        )

    def _replicate(self, rng: np.random.Generator, advance: Advance) -> "list[tuple[float, ...]]":
        policy, tables = self.policy, compile_problem(PROBLEM, click_model=MODEL)
        kernel = policy.bind(Counts.empty_for(PROBLEM), rng, scratch=policy.new_scratch())
        ranking, rewards = kernel.ranking, np.zeros(PROBLEM.n_positions)
        best = float(MODEL.value(tables, 0, np.arange(PROBLEM.n_positions, dtype=np.uintp)))
        checkpoints = set(default_checkpoints(self.rounds).tolist())
        max_wrong, n_unsafe, regret = 0, 0, 0.0
        rows: list[tuple[float, ...]] = []
        draw = BoundClickModel(MODEL, tables, rng, ranking=ranking, rewards=rewards).draw
        for t, parameters in enumerate(policy.parameters(np.arange(1, self.rounds + 1)), start=1):
            kernel.rank(0, t, parameters)
            draw(0)
            kernel.observe(0, t, ranking, rewards)
            wrong = wrong_pairs(ranking)
            max_wrong = max(max_wrong, wrong)
            n_unsafe += wrong > MAX_WRONG_PAIRS
            regret += best - float(MODEL.value(tables, 0, ranking))
            if t in checkpoints:
                rows.append((t, max_wrong, n_unsafe, regret))
            if t % 1000 == 0:
                advance(1000)
        return rows


def sweep(seed: int, *, quick: bool) -> list[Job]:
    """Return one job for BubbleRank and one for TopRank."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    policies = {
        "bubble-rank": BubbleRank(base_list=(BASE,), horizon=rounds),
        "top-rank": TopRank(horizon=rounds),
    }
    return [
        SafetyJob(
            name=name,
            policy=policy,
            rounds=rounds,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
        )
        for name, policy in policies.items()
    ]


def analyse(frames: Frames) -> StudyResult:
    """Return whether the policies were safe, and their regret."""
    rounds = int(frames["bubble-rank"]["round"].max())
    early = int(max(t for t in frames["bubble-rank"]["round"].unique() if t <= max(rounds // 50, 1)))
    max_wrong = {name: at_round(frames[name], rounds, "maximum_wrong_pairs") for name in LABELS}
    unsafe = {name: at_round(frames[name], rounds, "unsafe_rounds") for name in LABELS}
    early_regret = {name: at_round(frames[name], early) for name in LABELS}
    test = rank_test(early_regret["bubble-rank"], early_regret["top-rank"])
    base = wrong_pairs(np.array(BASE))
    checks = [
        Check(
            f"BubbleRank never shows a ranking with more than {MAX_WRONG_PAIRS} pairs in the wrong order: "
            f"the {base} of its base ranking, and half the number of positions.",
            bool((unsafe["bubble-rank"] == 0).all()),
            f"at most {max_wrong['bubble-rank'].max():.0f} in {len(max_wrong['bubble-rank'])} replications",
        ),
        Check(
            "TopRank, which starts without a base ranking, shows such rankings in every replication.",
            bool((unsafe["top-rank"] > 0).all()),
            f"in {np.median(unsafe['top-rank']):,.0f} rounds (median), with up to "
            f"{max_wrong['top-rank'].max():.0f} wrong pairs",
        ),
        Check(
            f"In the first {early:,} rounds BubbleRank has less regret than TopRank, {BY_RANK_TEST} over "
            "the replications.",
            test.less,
            f"median {np.median(early_regret['bubble-rank']):,.0f} against "
            f"{np.median(early_regret['top-rank']):,.0f}, {test}",
        ),
    ]
    findings = (
        f"In {rounds:,} rounds BubbleRank shows at most {max_wrong['bubble-rank'].max():.0f} wrong pairs "
        f"({MAX_WRONG_PAIRS} are allowed), and TopRank up to {max_wrong['top-rank'].max():.0f}. Ten items "
        "are ranked in ten positions, as in the paper, with click rates and a base ranking of our own "
        "instead of those of a search engine."
    )
    rows = [
        [
            label,
            f"{max_wrong[name].max():.0f}",
            f"{np.median(unsafe[name]):,.0f}",
            *format_quantiles(at_round(frames[name], rounds)),
        ]
        for name, label in LABELS.items()
    ]
    table = Table(
        f"In {rounds:,} rounds: wrong pairs, unsafe rounds, and regret at the end",
        [
            "policy",
            "maximum wrong pairs",
            "unsafe rounds",
            *(f"regret, {heading}" for heading in QUANTILE_HEADINGS),
        ],
        rows,
    )
    metrics = {
        "maximum_wrong_pairs": {name: float(values.max()) for name, values in max_wrong.items()},
        "allowed_wrong_pairs": MAX_WRONG_PAIRS,
    }
    return StudyResult(findings, checks, [_figure(frames)], [table], metrics)


def _figure(frames: Frames) -> ReportFigure:
    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2)
        curves = {label: frames[name] for name, label in LABELS.items()}
        for axes, column, label in (
            (left, "unsafe_rounds", "rounds with an unsafe ranking"),
            (right, "regret", "regret"),
        ):
            axes.set_xscale("log")
            draw_curves(axes, curves, column)
            axes.set_ylabel(label)
            axes.legend(frameon=False, fontsize="small")

    caption = (
        "Rounds whose ranking violates the safety constraint (left) and regret (right), over rounds on a "
        "logarithmic axis: medians, in bands from the 10% to the 90% quantile of the replications."
    )
    return ReportFigure("safety", caption, draw, width=9.0, height=3.6)


STUDY = Study(
    "paper-bubble-rank",
    "BubbleRank, from a good base ranking",
    "BubbleRank improves a base ranking and is safe: its rankings have at most K/2 more pairs in the wrong "
    "order than the base ranking. Policies without a base ranking violate that many times at the start, when "
    "BubbleRank's regret is lower (Li et al., UAI 2019, its safety lemma and the figures of its "
    "experiments).",
    sweep,
    analyse,
    QUICK_SCALE,
    claim_heading=CLAIM_HEADING,
)
