"""Replay of a learning policy on a log: how fast it would have learned.

Each display of the log is used at most once. For every user type, item and position the log has a queue of
displays in random order, of which some were clicked. In each round a user type arrives as often as in the
log, the policy ranks, and each item of its ranking takes the next display of its queue. This is the replay of
Li et al. (2011) cell by cell: a whole ranking need not match. The queues depend on counts alone, so that a
replay of a billion rows is as fast as that of a thousand.

A replay ends where a queue is empty: that the policy shows a cell more often than the log did is what a log
cannot answer. For longer horizons, simulate problems with the estimates of the log.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank._frames import Columns, Tabular
from banditrank._text import shorten
from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.policies._base import Policy, policy_label
from banditrank.policies._catalog import make_policy

Floats = NDArray[np.float64]

WhenExhausted: TypeAlias = Literal["stop", "resample"]
"""What a replay does where the displays of a cell run out."""


@dataclass(frozen=True, slots=True, eq=False)
class Replay(Tabular):
    """Result of a replay.

    ``to_frame`` returns a row for each round, with the columns ``round`` (from 1), ``user_type``, ``clicks``
    and ``cumulative_clicks``.

    Attributes
    ----------
    policy
        Name of the policy.
    user_types
        Names of the user types.
    arrivals
        Index of the user type of each round, shape (R,).
    clicks
        Number of clicks of each round, shape (R,).
    logged_clicks
        Clicks per visit of the log with the same shares of user types, to compare with.
    requested_rounds
        Number of rounds that were asked for.
    exhausted
        First cell whose displays ran out: names of user type and item, and the position from 1; None if none
        did.
    exhausted_after
        Number of rounds before that; None if no cell ran out.
    resampled
        Number of displays that were drawn again from a cell whose displays had run out.
    """

    policy: str
    user_types: tuple[str, ...]
    arrivals: NDArray[np.int64]
    clicks: Floats
    logged_clicks: float
    requested_rounds: int
    exhausted: tuple[str, str, int] | None
    exhausted_after: int | None
    resampled: int

    @property
    def rounds(self) -> int:
        """Number of rounds that were replayed."""
        return int(self.clicks.size)

    @property
    def is_complete(self) -> bool:
        """Whether all rounds were replayed, each with displays of its own."""
        return self.rounds == self.requested_rounds and self.resampled == 0

    @property
    def mean_clicks(self) -> float:
        """Clicks per visit over all rounds; NaN without rounds."""
        return float(self.clicks.mean()) if self.clicks.size else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of `mean_clicks`; NaN with fewer than two rounds."""
        return float(self.clicks.std(ddof=1) / math.sqrt(self.rounds)) if self.rounds > 1 else math.nan

    def summary(self) -> str:
        """Return the result as text."""
        spread = f" ± {self.standard_error:.2g} (standard error)" if self.rounds > 1 else ""
        lines = [
            (
                f"{self.policy}: {self.rounds:,} of {self.requested_rounds:,} rounds, "
                f"{self.mean_clicks:.4g}{spread} clicks per visit; the log has {self.logged_clicks:.4g}"
            )
        ]
        if self.exhausted is not None:
            user_type, item, position = self.exhausted
            lines.append(
                f"After {self.exhausted_after:,} rounds the log has no more displays of {shorten(item)} at "
                f"position {position} to {shorten(user_type)}: simulate a problem with the estimates of "
                "the log to go further."
            )
        if self.resampled:
            lines.append(f"{self.resampled:,} displays were drawn again from cells without displays left.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-compatible values, clicks summed over at most 100 intervals of rounds."""
        parts = np.array_split(self.clicks, min(100, max(1, self.rounds)))
        ends = np.cumsum([part.size for part in parts]).tolist()
        return {
            "policy": self.policy,
            "rounds": self.rounds,
            "requested_rounds": self.requested_rounds,
            "clicks_per_visit": self.mean_clicks if self.rounds else None,
            "standard_error": self.standard_error if self.rounds > 1 else None,
            "logged_clicks_per_visit": self.logged_clicks,
            "exhausted": None
            if self.exhausted is None
            else dict(zip(("user_type", "item", "position"), self.exhausted, strict=True)),
            "exhausted_after": self.exhausted_after,
            "resampled": self.resampled,
            "curve": [
                {"round": end, "clicks_per_visit": float(part.mean())}
                for end, part in zip(ends, parts, strict=True)
                if part.size
            ],
        }

    def _columns(self) -> Columns:
        names = np.array(self.user_types, dtype=object)
        return {
            "round": np.arange(1, self.rounds + 1),
            "user_type": names[self.arrivals].tolist(),
            "clicks": self.clicks,
            "cumulative_clicks": self.clicks.cumsum(),
        }


class _Queues:
    """Displays of each cell in random order, without replacement: only how many are left matters."""

    def __init__(self, displays: Floats, clicks: Floats, rng: np.random.Generator) -> None:
        self._displays = np.rint(displays)  # (N, M, K)
        self._clicks = np.minimum(np.rint(clicks), self._displays)
        self._rates = np.divide(clicks, displays, out=np.zeros_like(clicks), where=displays > 0)
        self._was_shown = self._displays > 0
        self._rng = rng
        self.resampled = 0

    def empty_cell(self, user_type: int, ranking: NDArray[np.intp], *, is_resampling: bool) -> int | None:
        """Return the first position whose cell has no display to take; None if all have."""
        positions = np.arange(ranking.size)
        left = self._was_shown if is_resampling else self._displays
        empty = np.flatnonzero(left[user_type, ranking, positions] <= 0)
        return int(empty[0]) if empty.size else None

    def take(self, user_type: int, ranking: NDArray[np.intp]) -> Floats:
        """Return the clicks on the next display of each cell of a ranking, shape (K,)."""
        rewards = np.zeros(ranking.size)
        uniforms = self._rng.random(ranking.size)
        for position, item in enumerate(ranking):
            cell = (user_type, item, position)
            left = self._displays[cell]
            if left <= 0:
                self.resampled += 1
                rewards[position] = uniforms[position] < self._rates[cell]
                continue
            is_clicked = uniforms[position] * left < self._clicks[cell]
            self._displays[cell] -= 1
            self._clicks[cell] -= is_clicked
            rewards[position] = is_clicked
        return rewards


def replay(
    cube: ClickCube,
    policy: Policy | str = "auto",
    *,
    rounds: int = 10_000,
    when_exhausted: WhenExhausted = "stop",
    seed: int = 0,
    **options: Any,
) -> Replay:
    """Replay a learning policy on the displays of a log, from no counts.

    Parameters
    ----------
    cube
        Counts of the log.
    policy
        A policy, or its name.
    rounds
        Number of rounds.
    when_exhausted
        Where the displays of a cell run out: ``stop``, or ``resample`` by its click rate in the log. A cell
        that the log never showed ends the replay in any case.
    seed
        Seed of arrivals, queues and policy.
    **options
        Options of `make_policy` for a policy that is given by name, such as ``treatment`` and ``utility``.

    Raises
    ------
    InvalidInputError
        If an argument is not valid, or the log is empty.
    UnknownNameError
        If there is no such policy.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> items = np.argsort(rng.random((20_000, 3)), axis=1)[:, :2]  # random rankings of two of three items
    >>> chances = np.array([0.1, 0.3, 0.2])[items] * [1.0, 0.5]
    >>> cube = ClickCube.from_visits(np.zeros(20_000), items, rng.random(items.shape) < chances)
    >>> result = replay(cube, "auto", rounds=2000, click_model="position-based")
    >>> result.is_complete, result.mean_clicks > result.logged_clicks
    (True, True)
    """
    rounds = check_integer("rounds", rounds, 1, 100_000_000)
    if when_exhausted not in get_args(WhenExhausted):
        raise UnknownNameError("when_exhausted", when_exhausted, get_args(WhenExhausted))
    if isinstance(policy, Policy):
        if options:
            raise InvalidInputError("options", "must be left out if a policy is given", sorted(options))
        chosen = policy
    else:
        chosen = make_policy(policy, **options)
    counts = cube.counts()
    if counts.arrivals.sum() <= 0:
        raise InvalidInputError("cube", "must have displays", "an empty cube")
    streams = np.random.SeedSequence(check_integer("seed", seed, 0)).spawn(3)
    arriving, drawing, ranking_rng = (np.random.default_rng(stream) for stream in streams)
    rates = counts.arrivals / counts.arrivals.sum()
    arrivals = _draw_arrivals(counts.arrivals, rounds, arriving)
    queues = _Queues(counts.displays, counts.rewards, drawing)
    learner = chosen.start(
        n_user_types=counts.n_user_types,
        n_items=counts.n_items,
        n_positions=counts.n_positions,
        rng=ranking_rng,
    )
    clicks = np.zeros(rounds)
    exhausted: tuple[str, str, int] | None = None
    exhausted_after: int | None = None
    done = rounds
    for number, user_type in enumerate(arrivals.tolist()):
        ranking = learner.rank(user_type)
        position = None
        if exhausted is None or when_exhausted == "stop":
            position = queues.empty_cell(user_type, ranking, is_resampling=False)
        if position is not None:
            exhausted = (cube.user_types[user_type], cube.items[ranking[position]], position + 1)
            exhausted_after = number
        is_ending = position is not None and when_exhausted == "stop"
        if is_ending or queues.empty_cell(user_type, ranking, is_resampling=True) is not None:
            done = number
            break
        rewards = queues.take(user_type, ranking)
        learner.update(user_type, ranking, rewards=rewards)
        clicks[number] = rewards.sum()
    logged = np.divide(
        counts.rewards.sum(axis=(1, 2)), counts.arrivals, out=np.zeros_like(rates), where=counts.arrivals > 0
    )
    return Replay(
        policy=policy_label(chosen.describe()),
        user_types=cube.user_types,
        arrivals=arrivals[:done],
        clicks=clicks[:done],
        logged_clicks=float(rates @ logged),
        requested_rounds=rounds,
        exhausted=exhausted,
        exhausted_after=exhausted_after,
        resampled=queues.resampled,
    )


def _draw_arrivals(arrivals: Floats, rounds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return user types in random order: those of the log without replacement, as long as there are any."""
    whole = np.rint(arrivals).astype(np.int64)
    if rounds > whole.sum():
        return rng.choice(arrivals.size, rounds, p=arrivals / arrivals.sum()).astype(np.int64)
    chosen = rng.multivariate_hypergeometric(whole, rounds) if whole.size > 1 else np.array([rounds])
    return np.asarray(rng.permutation(np.repeat(np.arange(arrivals.size), chosen)), dtype=np.int64)
