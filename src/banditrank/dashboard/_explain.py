"""Explanation of a single ranking, recomputed from the counts that it was computed from."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard._estimated_problem import ranking_value
from banditrank.engine._allowed_items import AllowedColumns, AllowedItems
from banditrank.engine._counts_replica import CountsReplica
from banditrank.engine._engine import Engine
from banditrank.engine._experiment import FIXED
from banditrank.engine._policy_snapshot import ArmSnapshots, PolicySnapshot
from banditrank.engine._ranking_ids import IssuedRanking, nonce_of
from banditrank.engine._served_lottery import draw_point
from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import PrunedError
from banditrank.estimators._estimates import estimate
from banditrank.policies._base import is_equal
from banditrank.policies._sampled_problem import SampledProblem
from banditrank.storage._records import DISCARDED, REWARD_UNITS
from banditrank.utilities._utility import UTILITARIAN, Utility

_MAX_OMITTED = 5
_MAX_DESCRIBED_POSITIONS = 3

ItemIndices = NDArray[np.intp]  # in the active items

OutcomeState: TypeAlias = Literal["pending", "clicked", "not-clicked", "discarded", "pruned"]


@dataclass(frozen=True, slots=True)
class ClickedItem:
    """An item that was clicked."""

    item: str
    position: int  # 1 is the first
    reward: float


@dataclass(frozen=True, slots=True)
class RankingOutcome:
    """Outcome of a ranking.

    Attributes
    ----------
    state
        ``pending`` while feedback is awaited; ``discarded`` if the attribution window closed without feedback
        and the ranking was not counted; ``pruned`` if the outcome was pruned, and is only part of the
        counts.
    clicks
        The clicked items in order of positions. Of a pending ranking, those so far.
    """

    state: OutcomeState
    clicks: list[ClickedItem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UserTypeBelief:
    """Beliefs about a user type that the ranking was chosen by: a posterior sample or estimates."""

    user_type: str
    weight: float  # its arrival rate under equal treatment, 1 under personalized treatment
    position_preferences: list[float]  # in order of positions
    value: float  # of the ranking


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item of the ranking.

    Attributes
    ----------
    position
        1 is the first.
    item
        Name of the item.
    look
        Probability that a user looks at the position; if clicks are position-based, relative to the most
        looked-at position of each user type.
    mean
        Probability that a user who looks at the item clicks it.
    value
        Contribution to the clicks per visit of the ranking.

    The last three are weighted means over the user types of `Explanation.beliefs`.
    """

    position: int
    item: str
    look: float
    mean: float
    value: float


@dataclass(frozen=True, slots=True)
class OmittedItem:
    """An active item that is not in the ranking.

    Attributes
    ----------
    item
        Name of the item.
    mean
        As in `ShownItem`.
    instead_of
        The item that it would best replace.
    gain
        Increase of the maximised utility by that; None if it is not finite.
    """

    item: str
    mean: float
    instead_of: str
    gain: float | None


@dataclass(frozen=True, slots=True)
class LotteryOdds:
    """A ranking of a lottery."""

    items: list[str]  # in order of positions
    probability: float


@dataclass(frozen=True, slots=True)
class ExplainedLottery:
    """The lottery that a ranking was drawn from.

    Attributes
    ----------
    rankings
        The rankings and their probabilities, the most probable first: the same for all users, or for those of
        a type if `Explanation.is_type_used`.
    draw
        The number in [0, 1) that the ranking's id draws. It draws the first ranking for which the sum of the
        probabilities so far exceeds it.
    drawn
        Number of the ranking that was drawn; 1 is the first.
    values
        Expected value of the lottery to each user type, by `Explanation.beliefs`.
    kept_factor
        Share of all guarantees that the lottery keeps by the beliefs that it was made from; 1 unless they
        cannot be kept together there.
    """

    rankings: list[LotteryOdds]
    draw: float
    drawn: int
    values: list[float]
    kept_factor: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of a ranking.

    Attributes
    ----------
    id, surface, user_type, items
        The ranking id, and the names of the surface, the user type and the items in order of positions.
    candidates, pinned
        The items that the request allowed, None for all active ones, and those that it pinned, by position: 1
        is the first.
    issued_at, expires_at
        When the ranking was issued, and when its attribution window closes.
    revision, version, rounds
        Versions of the surface's definition and of its counts, and number of rankings counted in them.
    arm
        Arm of the surface's experiment: ``policy`` for the surface's own; None without an experiment.
    policy, treatment, utility
        As defined at the time, the policy by the arm if there is one; the utility is None under personalized
        treatment.
    is_reproduced
        Whether recomputing the ranking from the same counts gives the same ranking.
    outcome
        Its outcome.
    basis
        ``posterior-sample``: the ranking is optimal for the posterior sample in `beliefs`.
        ``estimates``: the policy does not sample; `beliefs` are estimates from the counts.
    is_type_used
        Whether the ranking depends on the user type; never under equal treatment.
    beliefs
        Parameters of the user type, or of all user types under equal treatment.
    shown_items, omitted_items
        The items of the ranking, and the best of the other candidates.
    lottery
        The lottery that the ranking was drawn from, and the draw; None unless the treatment is a lottery.
    reason
        The explanation in a sentence.
    """

    id: str
    surface: str
    user_type: str
    items: list[str]
    candidates: list[str] | None
    pinned: dict[int, str]
    issued_at: datetime
    expires_at: datetime
    revision: int
    version: int
    rounds: int
    arm: str | None
    policy: str
    treatment: str
    utility: str | None
    is_reproduced: bool
    outcome: RankingOutcome
    basis: Literal["posterior-sample", "estimates"]
    is_type_used: bool
    beliefs: list[UserTypeBelief]
    shown_items: list[ShownItem]
    omitted_items: list[OmittedItem]
    lottery: ExplainedLottery | None
    reason: str


def explain(engine: Engine, ranking_id: str) -> Explanation:
    """Return the explanation of a ranking.

    Raises
    ------
    UnknownRankingError
        If the ranking was not issued from this store.
    PrunedError
        If the counts or the definition that it was computed from were pruned; see `Surface.keep_seconds`.
    """
    runtime, issued = engine.issued_ranking(ranking_id)
    snapshot = _restore_snapshot(engine, runtime, issued)
    surface, impression = snapshot.surface, issued.impression
    user_type, numbers, nonce = impression.user_type, impression.items, nonce_of(impression.key)
    allowed = AllowedItems.decode(issued.allowed, len(surface.items))
    for_all = is_equal(surface.treatment)
    policy = snapshot.policy
    utility = policy.utility if for_all else UTILITARIAN
    is_reproduced = snapshot.recompute(user_type, nonce, allowed) == numbers
    is_fixed = snapshot.policy_name == FIXED
    is_type_used = not for_all and not is_fixed and policy.distinguishes_user_types
    sample = snapshot.sampled_problem(user_type, nonce, allowed)
    beliefs = _estimates(snapshot) if sample is None else sample
    if not for_all and len(beliefs.arrival_rates) > 1:
        beliefs = _of_user_type(beliefs, user_type)
    ranking = np.array([snapshot.column_of[number] for number in numbers], dtype=np.intp)
    beliefs = replace(beliefs, position_preferences=beliefs.position_preferences[:, : len(ranking)])
    user_types = list(surface.user_types) if for_all else [surface.user_types[user_type]]
    shown = _shown_items(surface, beliefs, ranking)
    columns = allowed.columns(snapshot.column_of)
    lottery = _explained_lottery(snapshot, beliefs, user_type, nonce)
    omitted = _omitted_items(surface, beliefs, ranking, utility, columns, lottery)
    expires_at = datetime.fromtimestamp(impression.expires_at_ms / 1000, UTC)
    return Explanation(
        id=ranking_id,
        surface=surface.name,
        user_type=surface.user_types[user_type],
        items=[surface.items[number] for number in numbers],
        candidates=None if allowed.candidates is None else [surface.items[one] for one in allowed.candidates],
        pinned={position + 1: surface.items[number] for position, number in allowed.pinned},
        issued_at=expires_at - timedelta(seconds=surface.attribution_seconds),
        expires_at=expires_at,
        revision=snapshot.revision,
        version=snapshot.version,
        rounds=snapshot.counts.rounds,
        arm=snapshot.arm_name,
        policy=snapshot.policy_name,
        treatment=surface.treatment,
        utility=str(utility) if for_all else None,
        is_reproduced=is_reproduced,
        outcome=_outcome(engine, runtime, issued),
        basis="estimates" if sample is None else "posterior-sample",
        is_type_used=is_type_used,
        beliefs=[
            UserTypeBelief(name, *parameters)
            for name, *parameters in zip(
                user_types,
                beliefs.arrival_rates.tolist(),
                beliefs.position_preferences.tolist(),
                ranking_value(beliefs, ranking).tolist(),
                strict=True,
            )
        ],
        shown_items=shown,
        omitted_items=omitted,
        lottery=lottery,
        reason=_reason(
            policy=snapshot.policy_name,
            utility=str(utility) if for_all else None,
            lottery=lottery,
            user_type=user_types[0] if is_type_used else None,
            version=snapshot.version,
            is_sampled=sample is not None,
            is_reproduced=is_reproduced,
            shown=shown,
            omitted=omitted,
        ),
    )


def _restore_snapshot(engine: Engine, runtime: SurfaceRuntime, issued: IssuedRanking) -> PolicySnapshot:
    """Return the snapshot that the ranking was computed from."""
    name = runtime.surface.name
    definition = engine.store.definition(runtime.surface_id, revision=issued.revision)
    if definition is None:
        raise PrunedError(f"revision {issued.revision} of surface {name} was pruned")
    surface = Surface.from_definition(definition)
    try:
        replica = CountsReplica(engine.store, runtime.surface_id, surface, up_to=issued.version)
    except PrunedError as error:
        days = runtime.surface.keep_seconds / 86_400
        raise PrunedError(
            f"the ranking cannot be explained: {error} (keep_seconds is {days:g} days)"
        ) from None
    return ArmSnapshots.of_replica(surface, issued.revision, replica).of_code(issued.impression.arm_code)


def _estimates(snapshot: PolicySnapshot) -> SampledProblem:
    """Return the estimates from the counts, of all user types."""
    click_model = snapshot.surface.click_model
    estimates = estimate(snapshot.counts, method="likelihood", click_model=click_model)
    means = estimates.item_means.clip(0.0, 1.0)
    return SampledProblem(estimates.arrival_rates, estimates.position_preferences, means)


def _of_user_type(beliefs: SampledProblem, user_type: int) -> SampledProblem:
    """Return the beliefs about one user type."""
    row = slice(user_type, user_type + 1)
    return SampledProblem(np.ones(1), beliefs.position_preferences[row], beliefs.item_means[row])


def _shown_items(surface: Surface, beliefs: SampledProblem, ranking: ItemIndices) -> list[ShownItem]:
    names, weights, preferences = surface.active_items, beliefs.arrival_rates, beliefs.position_preferences
    means = beliefs.item_means[:, ranking]  # (n, K)
    rows = zip(weights @ preferences, weights @ means, weights @ (preferences * means), strict=True)
    return [
        ShownItem(k, names[index], float(look), float(mean), float(value))
        for k, (index, (look, mean, value)) in enumerate(zip(ranking.tolist(), rows, strict=True), start=1)
    ]


def _explained_lottery(
    snapshot: PolicySnapshot, beliefs: SampledProblem, user_type: int, nonce: bytes
) -> ExplainedLottery | None:
    if snapshot.lotteries is None:
        return None
    lottery = snapshot.lotteries[user_type]
    columns = [[snapshot.column_of[number] for number in ranking] for ranking in lottery.rankings]
    values = [ranking_value(beliefs, np.array(ranking, dtype=np.intp)) for ranking in columns]  # (S, N)
    names = snapshot.surface.items
    return ExplainedLottery(
        rankings=[
            LotteryOdds([names[number] for number in ranking], probability)
            for ranking, probability in zip(lottery.rankings, lottery.probabilities, strict=True)
        ],
        draw=draw_point(nonce),
        drawn=lottery.draw(nonce) + 1,
        values=np.average(values, axis=0, weights=lottery.probabilities).tolist(),
        kept_factor=lottery.kept_factor,
    )


def _omitted_items(
    surface: Surface,
    beliefs: SampledProblem,
    ranking: ItemIndices,
    utility: Utility,
    allowed: AllowedColumns,
    lottery: ExplainedLottery | None,
) -> list[OmittedItem]:
    """Return the candidates of largest mean that are not shown, each with its best replacement.

    Items that are pinned are not replaced. In a ranking of a lottery, a replacement changes expected values
    by its probability.
    """
    free = [k for k in range(len(ranking)) if k not in allowed.pinned]
    if not free:
        return []
    names, weights, preferences = surface.active_items, beliefs.arrival_rates, beliefs.position_preferences
    means = weights @ beliefs.item_means  # (M,)
    best_first = np.argsort(-means, kind="stable").tolist()
    eligible = set(best_first if allowed.candidates is None else allowed.candidates.tolist())
    eligible -= set(ranking.tolist())
    candidates = [index for index in best_first if index in eligible][:_MAX_OMITTED]
    values, probability = ranking_value(beliefs, ranking), 1.0
    if lottery is not None:
        values, probability = np.array(lottery.values), lottery.rankings[lottery.drawn - 1].probability
    present = utility.collective(weights, values)
    omitted = []
    for index in candidates:
        changed = values[:, None] + probability * preferences * (
            beliefs.item_means[:, [index]] - beliefs.item_means[:, ranking]
        )  # (n, K): values with the item at each position
        gains = [utility.collective(weights, changed[:, k].clip(0.0)) - present for k in free]
        gains = [gain if isfinite(gain) else -np.inf for gain in gains]
        best = int(np.argmax(gains))
        k, gain = free[best], float(gains[best]) if isfinite(gains[best]) else None
        omitted.append(OmittedItem(names[index], float(means[index]), names[ranking[k]], gain))
    return omitted


def _outcome(engine: Engine, runtime: SurfaceRuntime, issued: IssuedRanking) -> RankingOutcome:
    impression = issued.impression
    outcome = engine.store.outcome(runtime.surface_id, impression.key)
    if outcome is None:
        if not runtime.has_expired(issued):
            return RankingOutcome("pending")
        if runtime.is_pruned(issued):
            return RankingOutcome("pruned")
        return RankingOutcome("discarded" if runtime.surface.unreported == "discarded" else "pending")
    if outcome == DISCARDED:
        return RankingOutcome("discarded")
    names = [runtime.surface.items[number] for number in impression.items]
    clicks = [ClickedItem(names[k], k + 1, reward / REWARD_UNITS) for k, reward in outcome.clicks]
    if not outcome.is_final:
        return RankingOutcome("pending", clicks)
    return RankingOutcome("clicked" if clicks else "not-clicked", clicks)


def _reason(
    *,
    policy: str,
    utility: str | None,
    lottery: ExplainedLottery | None,
    user_type: str | None,
    version: int,
    is_sampled: bool,
    is_reproduced: bool,
    shown: Sequence[ShownItem],
    omitted: Sequence[OmittedItem],
) -> str:
    """Return the explanation in a sentence.

    Parameters
    ----------
    policy
        Name of the policy.
    utility
        The utility that equal treatment maximises; None under personalized treatment.
    lottery
        The lottery that the ranking was drawn from, if there is one.
    user_type
        Name of the user type; None if the ranking does not depend on it.
    version
        Version of the counts.
    is_sampled
        Whether the values are those of a posterior sample; they are estimates otherwise.
    is_reproduced
        Whether recomputing gives the same ranking.
    shown, omitted
        The items.

    Examples
    --------
    >>> shown = [ShownItem(1, "a", 0.3, 0.5, 0.15), ShownItem(2, "b", 0.7, 0.9, 0.63)]
    >>> print(_reason(policy="thompson-rank", utility=None, lottery=None, user_type="new", version=7,
    ...               is_sampled=True, is_reproduced=True, shown=shown,
    ...               omitted=[OmittedItem("c", 0.4, "a", -0.03)]))
    in the problem that thompson-rank sampled from counts 7 for this ranking, users of type new look most at
    position 2 (0.70), which shows b (mean 0.90), then at position 1 (0.30): a (0.50); of the items not
    shown, c is the closest (mean 0.40).
    """
    if not is_reproduced:
        return (
            "this version of banditrank computes another ranking from the same counts: another version "
            "computed the one that was shown. The values are those of this version."
        )
    details = _describe_shown(shown) + _describe_omitted(omitted)
    if policy == FIXED:
        source = f"the arm shows a fixed order; by the estimates from counts {version}"
        return f"{source} users look most at {details}."
    if lottery is not None:
        described = _describe_lottery(policy, utility, lottery, user_type, version, is_sampled=is_sampled)
        return f"{described} {details}."
    if utility is not None:
        audience = f"under counts {version} all users get this ranking, whatever their user type"
        chosen = (
            f"it is best by the {utility} utility in the problem that {policy} sampled from these counts"
            if is_sampled
            else f"{policy} does not sample, and maximises the {utility} utility; "
            "by the estimates from these counts"
        )
        link = ", where" if is_sampled else ""
        return f"{audience}: {chosen}{link} users look most at {details}."
    source = (
        f"in the problem that {policy} sampled from counts {version} for this ranking,"
        if is_sampled
        else f"{policy} does not sample; by the estimates from counts {version}"
    )
    who = "users" if user_type is None else f"users of type {user_type}"
    return f"{source} {who} look most at {details}."


def _describe_lottery(
    policy: str,
    utility: str | None,
    lottery: ExplainedLottery,
    user_type: str | None,
    version: int,
    *,
    is_sampled: bool,
) -> str:
    """Return the odds and the draw in words, up to the positions that users look at most."""
    drawn = lottery.rankings[lottery.drawn - 1]
    count = len(lottery.rankings)
    audience = "all users have the same odds, whatever their user type"
    who, best, goal = "users", f"by the {utility} utility", f"the {utility} utility of expected values"
    if utility is None:
        audience = "all users of a type have the same odds, which keep the guarantees"
        best, goal = "for users of each type that keeps the guarantees", "clicks under the guarantees"
        who = who if user_type is None else f"users of type {user_type}"
    draw = (
        f"under counts {version} {audience}: this ranking has "
        f"probability {drawn.probability:.3f}, as number {lottery.drawn} of {count} in the lottery, and the "
        f"ranking's id drew {lottery.draw:.3f}; "
    )
    if is_sampled:
        chosen = f"the lottery is best {best} in the problem that {policy} sampled"
        return f"{draw}{chosen} from these counts, where {who} look most at"
    chosen = f"{policy} does not sample, and maximises {goal}"
    return f"{draw}{chosen}; by the estimates from these counts {who} look most at"


def _describe_shown(shown: Sequence[ShownItem]) -> str:
    """Return the positions that users look at most, in decreasing order."""
    first, *others = sorted(shown, key=lambda item: -item.look)[:_MAX_DESCRIBED_POSITIONS]
    text = f"position {first.position} ({first.look:.2f}), which shows {first.item} (mean {first.mean:.2f})"
    for other in others:
        text += f", then at position {other.position} ({other.look:.2f}): {other.item} ({other.mean:.2f})"
    return text


def _describe_omitted(omitted: Sequence[OmittedItem]) -> str:
    if not omitted:
        return "; no other item could be shown"
    nearest = max(omitted, key=lambda item: float("-inf") if item.gain is None else item.gain)
    return f"; of the items not shown, {nearest.item} is the closest (mean {nearest.mean:.2f})"
