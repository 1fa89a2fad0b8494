"""The two surfaces of the demo and the problems that their visits are drawn from."""

from dataclasses import dataclass
from typing import Any

from banditrank.model._catalog import kdd2012
from banditrank.model._problem import Problem
from banditrank.policies._base import Treatment

_ATTRIBUTION_SECONDS = 120.0  # short, so that impressions without feedback expire soon


@dataclass(frozen=True)
class DemoSurface:
    """Surface whose true problem is known.

    Attributes
    ----------
    name, treatment, utility
        Settings of the surface.
    problem
        Problem that visits are drawn from; its user types and items are those of the surface, in order.
    """

    name: str
    problem: Problem
    treatment: Treatment
    utility: str = "utilitarian"

    @property
    def definition(self) -> dict[str, Any]:
        """Body of the request that creates the surface.

        Feedback is lost whether or not the user clicked, so impressions without feedback are discarded:
        counting them as not clicked would bias click rates down. Each ranking uses all feedback so far
        (``refresh_seconds`` 0), so that results do not depend on the speed of the machine.
        """
        return {
            "name": self.name,
            "items": list(self.problem.items),
            "n_positions": self.problem.n_positions,
            "user_types": list(self.problem.user_types),
            "treatment": self.treatment,
            "utility": self.utility,
            "attribution_seconds": _ATTRIBUTION_SECONDS,
            "unreported": "discarded",
            "refresh_seconds": 0.0,
        }


def search_ads() -> DemoSurface:
    """Return the personalized surface, with the problem of the paper's Table 1."""
    return DemoSurface("search-ads", kdd2012(), "personalized")


def home_carousel() -> DemoSurface:
    """Return the surface with equal treatment under Nash, with user types that disagree.

    Each type has a favourite item, and new users, more than half of all, like a second item that the others
    do not. The ranking with the most clicks in total shows that item and nothing for returning users; Nash
    shows theirs at the cost of some clicks. So the price of equality and the effect of a utility show.
    """
    problem = Problem(
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
    return DemoSurface(problem.name, problem, "equal", "nash")
