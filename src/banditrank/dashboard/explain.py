"""Explanation of a single ranking: recomputed from the counts that it was computed from."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.engine.counts_replica import CountsReplica
from banditrank.engine.engine import Engine
from banditrank.engine.policy_snapshot import PolicySnapshot
from banditrank.engine.ranking_ids import IssuedRanking, nonce_of
from banditrank.engine.surface import Surface
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.errors import PrunedError
from banditrank.estimators.likelihood import likelihood_estimate
from banditrank.policies.drawn_world import DrawnWorld
from banditrank.storage.records import DISCARDED, REWARD_UNITS
from banditrank.utilities.utility import UTILITARIAN, Utility

_MAX_LEFT_OUT = 5

Places = NDArray[np.intp]

State: TypeAlias = Literal["open", "clicked", "not-clicked", "discarded", "forgotten"]


@dataclass(frozen=True, slots=True)
class RankingOutcome:
    """What became of a ranking.

    Attributes
    ----------
    state
        ``open`` while feedback is awaited; ``discarded`` if its window closed and it counts for nothing;
        ``forgotten`` if it is so old that it is only known as part of the counts.
    item, reward
        What was clicked, and what that was worth; None without a click.
    """

    state: State
    item: str | None = None
    reward: float | None = None


@dataclass(frozen=True, slots=True)
class UserTypeBelief:
    """What was taken for true of a user type when the ranking was chosen."""

    user_type: str
    weight: float  # its share of arrivals under equal treatment; 1 if it alone counts
    position_preferences: list[float]  # first position first
    value: float  # of the ranking to users of this type


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item that was shown.

    Attributes
    ----------
    position
        1 is the first.
    item
        Its name.
    look
        How probably the position is looked at.
    mean
        How probably the item is clicked by who looks at it.
    value
        What it adds to the click rate there.

    All of them are weighed over the user types that count.
    """

    position: int
    item: str
    look: float
    mean: float
    value: float


@dataclass(frozen=True, slots=True)
class OmittedItem:
    """An item that could have been shown.

    Attributes
    ----------
    item
        Its name.
    mean
        As for items that were shown.
    instead_of
        The item in whose place it would have done least harm, or most good.
    gain
        What that would have added to what is maximised; None if there is no telling.
    """

    item: str
    mean: float
    instead_of: str
    gain: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one ranking was made of, and why it came out as it did.

    Attributes
    ----------
    id, surface, user_type, items
        What was shown to whom, where.
    issued, expires
        When it was made, and when feedback was or will be no longer accepted, in seconds since 1970.
    revision, version, rounds
        Of the surface's definition, of the counts, and how many rankings these held.
    policy, treatment, utility
        As defined at the time; the utility is None under personalized treatment.
    reproduced
        Whether the same ranking comes out when it is made again from the same counts.
    outcome
        What became of it.
    basis
        ``draw``: the policy drew the world below, and this ranking was best in it. ``estimates``: the policy
        has rules of its own, and the world below is what the counts said at the time.
    type_entered
        Whether it mattered who asked; never under equal treatment.
    beliefs
        Of the user types that count: who asked, or everybody under equal treatment.
    shown, left_out
        Why these items, and not those that came nearest.
    reason
        The same in a sentence.
    """

    id: str
    surface: str
    user_type: str
    items: list[str]
    issued: float
    expires: float
    revision: int
    version: int
    rounds: int
    policy: str
    treatment: str
    utility: str | None
    reproduced: bool
    outcome: RankingOutcome
    basis: Literal["draw", "estimates"]
    type_entered: bool
    beliefs: list[UserTypeBelief]
    shown: list[ShownItem]
    left_out: list[OmittedItem]
    reason: str


def explain(engine: Engine, ranking_id: str) -> Explanation:
    """Return what a ranking was made of and why it came out as it did.

    Raises `UnknownRankingError` for an id that was not given out here, and `PrunedError` for a ranking
    whose counts were thrown away since (see `Surface.keep_seconds`).
    """
    runtime, issued = engine.issued_ranking(ranking_id)
    snapshot = _policy_snapshot(engine, runtime, issued)
    surface, impression = snapshot.surface, issued.impression
    user_type, numbers = impression.user_type, impression.items
    again = snapshot.recompute(user_type, nonce_of(impression.key))
    drawn = snapshot.drawn_world(user_type, nonce_of(impression.key))
    equal = surface.treatment == "equal"
    utility = snapshot.surface.compiled_policy.utility if equal else UTILITARIAN
    world = _estimated(snapshot, None if equal else user_type) if drawn is None else drawn
    place_of = {number: place for place, number in enumerate(snapshot.numbers)}
    places = np.array([place_of[number] for number in numbers], dtype=np.intp)
    types = list(surface.user_types) if equal else [surface.user_types[user_type]]
    placed, left_out = _placed(surface, world, places), _left_out(surface, world, places, utility)
    values = (world.position_preferences * world.item_means[:, places]).sum(axis=1)
    beliefs = [
        UserTypeBelief(name, *numbers_of)
        for name, *numbers_of in zip(
            types,
            world.arrival_rates.tolist(),
            world.position_preferences.tolist(),
            values.tolist(),
            strict=True,
        )
    ]
    reproduced, type_entered = (
        again == numbers,
        not equal and surface.compiled_policy.distinguishes_user_types,
    )
    reason = reason_for(
        policy=surface.compiled_policy.name,
        utility=str(utility) if equal else None,
        user_type=types[0] if type_entered else None,
        version=snapshot.version,
        drawn=drawn is not None,
        reproduced=reproduced,
        shown=placed,
        left_out=left_out,
    )
    return Explanation(
        id=ranking_id,
        surface=surface.name,
        user_type=surface.user_types[user_type],
        items=[surface.items[number] for number in numbers],
        issued=impression.expires_at_ms / 1000 - surface.attribution_seconds,
        expires=impression.expires_at_ms / 1000,
        revision=snapshot.revision,
        version=snapshot.version,
        rounds=snapshot.counts.rounds,
        policy=surface.compiled_policy.name,
        treatment=surface.treatment,
        utility=str(utility) if equal else None,
        reproduced=reproduced,
        outcome=_outcome(engine, runtime, issued),
        basis="estimates" if drawn is None else "draw",
        type_entered=type_entered,
        beliefs=beliefs,
        shown=placed,
        left_out=left_out,
        reason=reason,
    )


def _policy_snapshot(engine: Engine, runtime: SurfaceRuntime, issued: IssuedRanking) -> PolicySnapshot:
    """Return what the ranking was made from."""
    definition = engine.store.definition(runtime.surface_id, revision=issued.revision)
    if definition is None:
        raise PrunedError(
            f"revision {issued.revision} of surface {runtime.surface.name} is not kept any more"
        )
    surface = Surface.from_definition(definition)
    try:
        replica = CountsReplica(engine.store, runtime.surface_id, surface, up_to=issued.version)
    except PrunedError as error:
        days = runtime.surface.keep_seconds / 86_400
        raise PrunedError(
            f"the ranking cannot be explained any more: {error} (keep_seconds is {days:g} days)"
        ) from None
    version, counts = replica.counts(surface, surface.active_numbers)
    return PolicySnapshot(surface, issued.revision, version, counts)


def _estimated(snapshot: PolicySnapshot, user_type: int | None) -> DrawnWorld:
    """Return what the counts said: of one type, or of all if there is none."""
    estimates = likelihood_estimate(snapshot.counts)
    means = estimates.item_means.clip(0.0, 1.0)
    if user_type is None:
        return DrawnWorld(estimates.arrival_rates, estimates.position_preferences, means)
    row = slice(user_type, user_type + 1)
    return DrawnWorld(np.ones(1), estimates.position_preferences[row], means[row])


def _placed(surface: Surface, world: DrawnWorld, places: Places) -> list[ShownItem]:
    names, weights = surface.active_items, world.arrival_rates
    looks = weights @ world.position_preferences  # (K,)
    means = weights @ world.item_means[:, places]
    values = weights @ (world.position_preferences * world.item_means[:, places])
    return [
        ShownItem(k + 1, names[place], float(looks[k]), float(means[k]), float(values[k]))
        for k, place in enumerate(places.tolist())
    ]


def _left_out(surface: Surface, world: DrawnWorld, places: Places, utility: Utility) -> list[OmittedItem]:
    """Return the best items that were not shown, and what each would have added where it fits best."""
    names, weights, preferences = surface.active_items, world.arrival_rates, world.position_preferences
    means = weights @ world.item_means  # (M,)
    best_first = np.argsort(-means, kind="stable").tolist()
    taken = set(places.tolist())
    candidates = [place for place in best_first if place not in taken][:_MAX_LEFT_OUT]
    values = (preferences * world.item_means[:, places]).sum(axis=1)  # (n,)
    present = utility.collective(weights, values)
    left_out = []
    for place in candidates:
        changed = values[:, None] + preferences * (
            world.item_means[:, [place]] - world.item_means[:, places]
        )  # (n, K): with the item in each position
        gains = [utility.collective(weights, changed[:, k].clip(0.0)) - present for k in range(len(places))]
        gains = [gain if isfinite(gain) else -np.inf for gain in gains]
        k = int(np.argmax(gains))
        gain = float(gains[k]) if isfinite(gains[k]) else None
        left_out.append(OmittedItem(names[place], float(means[place]), names[places[k]], gain))
    return left_out


def _outcome(engine: Engine, runtime: SurfaceRuntime, issued: IssuedRanking) -> RankingOutcome:
    impression = issued.impression
    outcome = engine.store.outcome(runtime.surface_id, impression.key)
    if outcome is None:
        if not runtime.has_expired(issued):
            return RankingOutcome("open")
        if runtime.is_pruned(issued):
            return RankingOutcome("forgotten")
        return RankingOutcome("discarded" if runtime.surface.unreported == "discarded" else "open")
    if outcome == DISCARDED:
        return RankingOutcome("discarded")
    if outcome.position < 0:
        return RankingOutcome("not-clicked")
    item = runtime.surface.items[impression.items[outcome.position]]
    return RankingOutcome("clicked", item, outcome.reward / REWARD_UNITS)


def reason_for(
    *,
    policy: str,
    utility: str | None,
    user_type: str | None,
    version: int,
    drawn: bool,
    reproduced: bool,
    shown: Sequence[ShownItem],
    left_out: Sequence[OmittedItem],
) -> str:
    """Return the sentence.

    Parameters
    ----------
    policy
        Its name.
    utility
        What equal treatment maximises; None under personalized treatment.
    user_type
        Who asked; None if that did not enter.
    version
        Of the counts.
    drawn
        Whether the figures are those of a world that the policy drew, or estimates.
    reproduced
        Whether the ranking was found again.
    shown, left_out
        The items, with these figures.

    Examples
    --------
    >>> shown = [ShownItem(1, "a", 0.3, 0.5, 0.15), ShownItem(2, "b", 0.7, 0.9, 0.63)]
    >>> print(reason_for(policy="thompson-rank", utility=None, user_type="new", version=7, drawn=True,
    ...                  reproduced=True, shown=shown, left_out=[OmittedItem("c", 0.4, "a", -0.03)]))
    in the world that thompson-rank drew from counts 7 for this ranking, users of type new look most at
    position 2 (0.70), where b stands (mean 0.90), then at position 1 (0.30): a (0.50); of the items left
    out c came nearest (0.40).
    """
    if not reproduced:
        return (
            "made again from the same counts another ranking comes out: it was made by another version of "
            "banditrank, and the figures are this version's."
        )
    if utility is not None:
        everybody = f"everybody who asks under counts {version} is shown this, and who asked did not enter"
        chosen = (
            f"it is best by the {utility} utility in the world that {policy} drew from these counts"
            if drawn
            else f"{policy} chose it by rules of its own and the {utility} utility; by these counts"
        )
        link = ", where" if drawn else ""
        return f"{everybody}: {chosen}{link} users look most at {_places(shown)}{_nearest(left_out)}."
    source = (
        f"in the world that {policy} drew from counts {version} for this ranking,"
        if drawn
        else f"{policy} chose it by rules of its own; by counts {version}"
    )
    who = "users" if user_type is None else f"users of type {user_type}"
    return f"{source} {who} look most at {_places(shown)}{_nearest(left_out)}."


def _places(shown: Sequence[ShownItem]) -> str:
    """Return up to three positions, the one that is looked at most first."""
    first, *others = sorted(shown, key=lambda placed: -placed.look)[:3]
    told = f"position {first.position} ({first.look:.2f}), where {first.item} stands (mean {first.mean:.2f})"
    for other in others:
        told += f", then at position {other.position} ({other.look:.2f}): {other.item} ({other.mean:.2f})"
    return told


def _nearest(left_out: Sequence[OmittedItem]) -> str:
    if not left_out:
        return "; no item was left out"
    nearest = max(left_out, key=lambda item: float("-inf") if item.gain is None else item.gain)
    return f"; of the items left out {nearest.item} came nearest ({nearest.mean:.2f})"
