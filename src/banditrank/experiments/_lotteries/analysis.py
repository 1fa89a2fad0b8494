"""Analysis: what lotteries gain, and what they cost to learn."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._report_page.elements import ReportFigure, Table
from banditrank.experiments._curves import SUBLINEAR, at_round, draw_curves, growth_exponents
from banditrank.experiments._formatting import join_words
from banditrank.experiments._lotteries.sweep import TREATMENTS, UTILITIES, conflict, job_name
from banditrank.experiments._study import Check, Frames, StudyResult
from banditrank.policies._base import Treatment
from banditrank.policies._thompson_rank import ThompsonRank
from banditrank.solvers._lottery.solve import solve_lottery
from banditrank.solvers._solve import solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _Optimum(NamedTuple):
    """Values of the best ranking and of the best lottery."""

    ranking: float
    lottery: float
    n_rankings: int

    def of(self, treatment: Treatment) -> float:
        return self.lottery if treatment == "equal-lottery" else self.ranking


def analyse(frames: Frames) -> StudyResult:
    """Return the gain of lotteries, and the values that ThompsonRank reaches."""
    optima = {utility: _optimum(utility) for utility in UTILITIES}
    horizon = int(frames[job_name("equal", UTILITIES[0])]["round"].max())
    reached = {
        (treatment, utility): _reached(frames, treatment, utility, optima[utility].of(treatment), horizon)
        for utility in UTILITIES
        for treatment in TREATMENTS
    }
    checks = [_sublinear_check(frames, utility, horizon) for utility in UTILITIES]
    gains = join_words(f"{_gain(optima[utility], utility)} under {utility}" for utility in UTILITIES)
    findings = (
        f"On this problem the best lottery is better than the best ranking by {gains}. "
        f"Lotteries in force in the last tenth of {horizon:,} rounds, which still explore, have more "
        f"utility than the rankings shown there under equal treatment by "
        f"{join_words(_difference(reached, utility) for utility in UTILITIES)}."
    )
    metrics = {
        utility: {
            **optima[utility]._asdict(),
            **{treatment: float(reached[treatment, utility].mean()) for treatment in TREATMENTS},
        }
        for utility in UTILITIES
    }
    return StudyResult(findings, checks, [_figure(frames)], [_table(optima, reached, horizon)], metrics)


def _optimum(utility: str) -> _Optimum:
    lottery = solve_lottery(conflict(), utility)
    return _Optimum(solve(conflict(), utility).value, lottery.value, len(lottery.rankings))


def _reached(
    frames: Frames, treatment: Treatment, utility: str, best: float, horizon: int
) -> NDArray[np.float64]:
    """Return the mean value over the last tenth of rounds, shape (R,)."""
    frame, first = frames[job_name(treatment, utility)], horizon - horizon // 10
    return best - (at_round(frame, horizon) - at_round(frame, first)) / (horizon - first)


def _gain(optimum: _Optimum, utility: str) -> str:
    gain = optimum.lottery - optimum.ranking  # of logarithms under Nash: a ratio of geometric means
    return f"{np.expm1(gain) if utility == 'nash' else gain / optimum.ranking:.2%}"


def _difference(reached: dict[tuple[Treatment, str], NDArray[np.float64]], utility: str) -> str:
    lottery, ranking = (float(reached[treatment, utility].mean()) for treatment in reversed(TREATMENTS))
    return f"{lottery - ranking:.4f} ({utility})"


def _sublinear_check(frames: Frames, utility: str, horizon: int) -> Check:
    frame = frames[job_name("equal-lottery", utility)]
    exponents = growth_exponents(frame, horizon // 2, horizon)
    return Check(
        f"The regret of lotteries under {utility} is sub-linear in every replication: over the second half "
        f"of rounds the growth exponent is below {SUBLINEAR}.",
        bool((exponents < SUBLINEAR).all()),
        f"at most {exponents.max():.2f}",
        claimed_by="implementation",
    )


def _table(
    optima: dict[str, _Optimum], reached: dict[tuple[Treatment, str], NDArray[np.float64]], horizon: int
) -> Table:
    rows = [
        [
            utility,
            f"{optima[utility].ranking:.4f}",
            f"{optima[utility].lottery:.4f}",
            _gain(optima[utility], utility),
            f"{optima[utility].n_rankings}",
            *(f"{reached[treatment, utility].mean():.4f}" for treatment in TREATMENTS),
        ]
        for utility in UTILITIES
    ]
    return Table(
        f"Collective utility of the best ranking and the best lottery, and of {ThompsonRank.name} in the "
        f"last tenth of {horizon:,} rounds",
        ["utility", "ranking", "lottery", "gain", "rankings", *(f"{name}, learned" for name in TREATMENTS)],
        rows,
        "The gain under Nash is that of the geometric mean of the types' values.",
    )


def _figure(frames: Frames) -> ReportFigure:
    def draw(figure: "Figure") -> None:
        for axes, utility in zip(figure.subplots(1, 2), UTILITIES, strict=True):
            draw_curves(axes, {name: frames[job_name(name, utility)] for name in TREATMENTS})
            axes.set_ylabel("regret")
            axes.set_title(utility)
            axes.legend()

    caption = (
        "Regret of thompson-rank against the best ranking (equal) and against the best lottery "
        "(equal-lottery): medians, in bands from the 10% to the 90% quantile of the replications."
    )
    return ReportFigure("lotteries", caption, draw)
