"""Making a ranking again, from the counts it was made of, to explain it."""

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from banditrank.engine.engine import Engine
from banditrank.dashboard.explanation import Explanation, LeftOutItem, OutcomeSoFar, PlacedItem, TypeBelief
from banditrank.engine.counts_replica import CountsReplica
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.dashboard.reasons import reason_for
from banditrank.engine.surface import Surface
from banditrank.engine.ranking_ids import IssuedRanking, nonce_of
from banditrank.engine.policy_snapshot import PolicySnapshot
from banditrank.errors import PurgedError
from banditrank.estimators.maximum_likelihood import likelihood_estimate
from banditrank.policies.sampled_problem import SampledProblem
from banditrank.storage.records import DISCARDED, REWARD_UNITS
from banditrank.utilities.utility import UTILITARIAN, Utility

MOST_LEFT_OUT = 5

Places = NDArray[np.intp]


def explain(engine: Engine, ranking_id: str) -> Explanation:
    """Return what a ranking was made of and why it came out as it did.

    Raises `UnknownRankingError` for an id that was not given out here, and `PurgedError` for a ranking
    whose counts were thrown away since (see `Surface.keep_seconds`).
    """
    live, ticket = engine.ticket(ranking_id)
    view = _view_of(engine, live, ticket)
    surface, shown = view.surface, ticket.shown
    user_type, numbers = shown.user_type, shown.items
    again = view.rank_again(user_type, nonce_of(shown.key))
    drawn = view.sampled_problem(user_type, nonce_of(shown.key))
    equal = surface.treatment == "equal"
    utility = view.surface.compiled_policy.utility if equal else UTILITARIAN
    world = _estimated(view, None if equal else user_type) if drawn is None else drawn
    place_of = {number: place for place, number in enumerate(view.numbers)}
    places = np.array([place_of[number] for number in numbers], dtype=np.intp)
    types = list(surface.user_types) if equal else [surface.user_types[user_type]]
    placed, left_out = _placed(surface, world, places), _left_out(surface, world, places, utility)
    values = (world.position_preferences * world.item_means[:, places]).sum(axis=1)
    beliefs = [
        TypeBelief(name, *numbers_of)
        for name, *numbers_of in zip(
            types,
            world.arrival_rates.tolist(),
            world.position_preferences.tolist(),
            values.tolist(),
            strict=True,
        )
    ]
    reproduced, type_entered = again == numbers, not equal and surface.compiled_policy.distinguishes_user_types
    reason = reason_for(
        policy=surface.compiled_policy.name,
        utility=str(utility) if equal else None,
        user_type=types[0] if type_entered else None,
        version=view.version,
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
        issued=shown.expires_at_ms / 1000 - surface.attribution_seconds,
        expires=shown.expires_at_ms / 1000,
        revision=view.revision,
        version=view.version,
        rounds=view.counts.rounds,
        policy=surface.compiled_policy.name,
        treatment=surface.treatment,
        utility=str(utility) if equal else None,
        reproduced=reproduced,
        outcome=_outcome(engine, live, ticket),
        basis="estimates" if drawn is None else "draw",
        type_entered=type_entered,
        beliefs=beliefs,
        shown=placed,
        left_out=left_out,
        reason=reason,
    )


def _view_of(engine: Engine, live: SurfaceRuntime, ticket: IssuedRanking) -> PolicySnapshot:
    """Return what the ranking was made from."""
    definition = engine.store.definition(live.number, revision=ticket.revision)
    if definition is None:
        raise PurgedError(
            f"revision {ticket.revision} of surface {live.surface.name} is not kept any more"
        )
    surface = Surface.from_definition(definition)
    try:
        learned = CountsReplica(engine.store, live.number, surface, up_to=ticket.version)
    except PurgedError as error:
        days = live.surface.keep_seconds / 86_400
        raise PurgedError(
            f"the ranking cannot be explained any more: {error} (keep_seconds is {days:g} days)"
        ) from None
    version, counts = learned.counts(surface, surface.active_numbers)
    return PolicySnapshot(surface, ticket.revision, version, counts)


def _estimated(view: PolicySnapshot, user_type: int | None) -> SampledProblem:
    """Return what the counts said: of one type, or of all if there is none."""
    estimates = likelihood_estimate(view.counts)
    means = estimates.item_means.clip(0.0, 1.0)
    if user_type is None:
        return SampledProblem(estimates.arrival_rates, estimates.position_preferences, means)
    row = slice(user_type, user_type + 1)
    return SampledProblem(np.ones(1), estimates.position_preferences[row], means[row])


def _placed(surface: Surface, world: SampledProblem, places: Places) -> list[PlacedItem]:
    names, weights = surface.active_items, world.arrival_rates
    looks = weights @ world.position_preferences  # (K,)
    means = weights @ world.item_means[:, places]
    values = weights @ (world.position_preferences * world.item_means[:, places])
    return [
        PlacedItem(k + 1, names[place], float(looks[k]), float(means[k]), float(values[k]))
        for k, place in enumerate(places.tolist())
    ]


def _left_out(surface: Surface, world: SampledProblem, places: Places, utility: Utility) -> list[LeftOutItem]:
    """Return the best items that were not shown, and what each would have added where it fits best."""
    names, weights, preferences = surface.active_items, world.arrival_rates, world.position_preferences
    means = weights @ world.item_means  # (M,)
    best_first = np.argsort(-means, kind="stable").tolist()
    taken = set(places.tolist())
    candidates = [place for place in best_first if place not in taken][:MOST_LEFT_OUT]
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
        left_out.append(LeftOutItem(names[place], float(means[place]), names[places[k]], gain))
    return left_out


def _outcome(engine: Engine, live: SurfaceRuntime, ticket: IssuedRanking) -> OutcomeSoFar:
    shown = ticket.shown
    outcome = engine.store.outcome(live.number, shown.key)
    if outcome is None:
        if not live.has_expired(ticket):
            return OutcomeSoFar("open")
        if live.is_pruned(ticket):
            return OutcomeSoFar("forgotten")
        return OutcomeSoFar("discarded" if live.surface.unreported == "discarded" else "open")
    if outcome == DISCARDED:
        return OutcomeSoFar("discarded")
    if outcome.position < 0:
        return OutcomeSoFar("not-clicked")
    item = live.surface.items[shown.items[outcome.position]]
    return OutcomeSoFar("clicked", item, outcome.reward / REWARD_UNITS)
