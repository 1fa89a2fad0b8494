"""What field policies share that are told for how many rounds they will be played."""

from dataclasses import dataclass
from typing import Any

from banditrank.policies.field.base import OrderedFieldPolicy, check_horizon


@dataclass(frozen=True, kw_only=True)
class HorizonFieldPolicy(OrderedFieldPolicy):
    """A field policy that knows the order of positions, and is as sure of itself as the horizon demands.

    Parameters
    ----------
    horizon
        T. It may be played for fewer rounds or more: it is then surer than need be, or less sure than its
        guarantee demands.
    """

    horizon: int = 10**6

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "horizon", check_horizon(self.horizon))

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        return {**super().describe(), "horizon": self.horizon}
