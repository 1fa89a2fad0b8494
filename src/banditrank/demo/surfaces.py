"""The two surfaces of the demo, and the worlds that their users live in."""

from dataclasses import dataclass
from typing import Any

from banditrank.model.catalog import kdd2012
from banditrank.model.problem import Problem
from banditrank.policies.base import Treatment

_ATTRIBUTION_SECONDS = 120.0  # short, so that rankings which are never reported do not wait for long


@dataclass(frozen=True)
class KnownSurface:
    """A surface whose truth is known.

    Attributes
    ----------
    name, treatment, utility
        The surface's.
    world
        Where its users live: its user types and items are the world's, in the same order.
    """

    name: str
    world: Problem
    treatment: Treatment
    utility: str = "utilitarian"

    @property
    def definition(self) -> dict[str, Any]:
        """What the service is told.

        Reports get lost whatever they would have said: to count those users as not clicking would teach click
        rates that are too low, so they count for nothing. Every ranking follows all that was reported: what
        is learned from so many users does not depend on how fast they come and the machine is.
        """
        return {
            "name": self.name,
            "items": list(self.world.items),
            "n_positions": self.world.n_positions,
            "user_types": list(self.world.user_types),
            "treatment": self.treatment,
            "utility": self.utility,
            "attribution_seconds": _ATTRIBUTION_SECONDS,
            "unreported": "discarded",
            "refresh_seconds": 0.0,
        }


def search_ads() -> KnownSurface:
    """Return the personalized surface, on the world of the paper's Table 1."""
    return KnownSurface("search-ads", kdd2012(), "personalized")


def home_carousel() -> KnownSurface:
    """Return the equal surface, under Nash, on a world where user types disagree.

    Each type has a favourite of its own, and new users, who are more than half, like a second item that the
    others do not care for. The best total shows that one, and nothing for returning users; Nash gives up some
    clicks so that these get theirs. So equality has a price to see, and so has the choice of a utility.
    """
    world = Problem(
        [0.55, 0.25, 0.2],
        [[0.55, 0.30, 0.15], [0.30, 0.50, 0.20], [0.20, 0.30, 0.50]],
        [
            [0.80, 0.10, 0.70, 0.35, 0.25, 0.15],
            [0.15, 0.65, 0.15, 0.10, 0.20, 0.35],
            [0.20, 0.10, 0.10, 0.80, 0.15, 0.30],
        ],
        user_types=["new", "returning", "member"],
        items=["sneakers", "novels", "coffee", "headsets", "jackets", "plants"],
        name="home-carousel",
    )
    return KnownSurface(world.name, world, "equal", "nash")
