"""What was learned on a surface of the demo, beside the truth."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from banditrank.client.asynchronous import AsyncClient
from banditrank.demo.account import UNKNOWN_ITEM, Account


@dataclass(frozen=True, slots=True)
class LearnedValue:
    """A chance that was learned: of a look at a position, or of a click on an item that is looked at."""

    user_type: str
    name: str  # such as position 1
    learned: float
    low: float
    high: float
    true: float


@dataclass(frozen=True, slots=True)
class LearnedRanking:
    """The best ranking by what was learned, and in truth."""

    user_type: str | None  # None if it is everybody's
    learned: tuple[str, ...]
    best: tuple[str, ...]
    learned_value: float  # clicks a visit that it truly brings
    best_value: float


@dataclass(frozen=True, slots=True)
class SurfaceSummary:
    """What was learned on a surface.

    Attributes
    ----------
    name, treatment, utility
        The surface's.
    visits, clicks, late, lost
        Users, their clicks, and how many reports came late or never.
    click_rate, optimum, random
        Clicks a visit: over all visits, if everybody is shown the best, if all is in random order.
    regret
        In clicks, or in collective utility under equal treatment.
    level
        Of the intervals.
    positions, items, rankings
        What was learned of each user type.
    """

    name: str
    treatment: str
    utility: str
    visits: int
    clicks: int
    late: int
    lost: int
    click_rate: float
    optimum: float
    random: float
    regret: float
    level: float
    positions: tuple[LearnedValue, ...]
    items: tuple[LearnedValue, ...]
    rankings: tuple[LearnedRanking, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


async def summarise(client: AsyncClient, account: Account) -> SurfaceSummary:
    """Ask the service what was learned on a surface, and set the truth beside it."""
    known = account.known
    estimates = await client.estimates(known.name)
    treatments = await client.equality(known.name)
    return SurfaceSummary(
        name=known.name,
        treatment=known.treatment,
        utility=known.utility,
        visits=account.visits,
        clicks=account.clicks,
        late=account.late,
        lost=account.lost,
        click_rate=account.clicks / account.visits,
        optimum=account.optimum,
        random=account.random,
        regret=account.regret,
        level=estimates["level"],
        positions=_positions(account, estimates),
        items=_items(account, estimates),
        rankings=_rankings(account, treatments),
    )


def _positions(account: Account, estimates: dict[str, Any]) -> tuple[LearnedValue, ...]:
    truth = account.known.world.position_preferences.tolist()
    return tuple(
        _value(of_type["user_type"], f"position {found['position']}", found, true)
        for of_type, row in zip(
            estimates["user_types"], truth, strict=False
        )  # types that were added come last
        for found, true in zip(of_type["positions"], row, strict=True)
    )


def _items(account: Account, estimates: dict[str, Any]) -> tuple[LearnedValue, ...]:
    truth = account.known.world.item_means.tolist()
    return tuple(
        _value(of_type["user_type"], found["item"], found, true)
        for of_type, row in zip(
            estimates["user_types"], truth, strict=False
        )  # types that were added come last
        for found, true in zip(of_type["items"], row, strict=False)  # items that were added come last
    )


def _value(user_type: str, name: str, found: dict[str, Any], true: float) -> LearnedValue:
    return LearnedValue(user_type, name, found["estimate"], found["low"], found["high"], true)


def _rankings(account: Account, treatments: dict[str, Any]) -> tuple[LearnedRanking, ...]:
    world = account.known.world
    if account.known.treatment == "equal":
        learned = treatments["equal_ranking"]
        rates = world.arrival_rates
        worth = float(rates @ account.values(_numbers(account, learned)))
        return (LearnedRanking(None, tuple(learned), _best(account, 0), worth, account.optimum),)
    rankings = []
    for i, of_type in enumerate(treatments["user_types"][: world.n_user_types]):
        learned = of_type["personalized_ranking"]
        worth = float(account.values(_numbers(account, learned))[i])
        best = float(account.best_values[i])
        rankings.append(LearnedRanking(world.user_types[i], tuple(learned), _best(account, i), worth, best))
    return tuple(rankings)


def _best(account: Account, user_type: int) -> tuple[str, ...]:
    return tuple(account.known.world.items[number] for number in account.best[user_type])


def _numbers(account: Account, ranking: Sequence[str]) -> list[int]:
    items = account.known.world.items
    return [items.index(item) if item in items else UNKNOWN_ITEM for item in ranking]
