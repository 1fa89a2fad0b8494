"""What goes over the wire: requests are checked against these types, and the OpenAPI document shows them."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from banditrank.engine.surface import (
    MAX_ITEMS,
    MAX_NAME_LENGTH,
    MAX_POSITIONS,
    MAX_USER_TYPES,
    SURFACE_NAME,
    Surface,
    Unreported,
)
from banditrank.policies.base import Treatment

MAX_BATCH = 1000
"""Maximum number of rankings, or of feedback, in one request."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
Names = Annotated[list[Name], msgspec.Meta(min_length=1, max_length=MAX_ITEMS)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class _Settings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Settings of a surface, any of which may be left out."""

    user_types: (
        Annotated[list[Name], msgspec.Meta(min_length=1, max_length=MAX_USER_TYPES)] | msgspec.UnsetType
    ) = msgspec.UNSET
    policy: str | msgspec.UnsetType = msgspec.UNSET
    treatment: Treatment | msgspec.UnsetType = msgspec.UNSET
    utility: str | msgspec.UnsetType = msgspec.UNSET
    coefficient: float | msgspec.UnsetType | None = msgspec.UNSET
    attribution_seconds: Seconds | msgspec.UnsetType = msgspec.UNSET
    unreported: Unreported | msgspec.UnsetType = msgspec.UNSET
    refresh_seconds: Seconds | msgspec.UnsetType = msgspec.UNSET
    keep_seconds: Seconds | msgspec.UnsetType = msgspec.UNSET


class NewSurface(_Settings, kw_only=True):
    """A surface to be created. What is left out has the default of `Surface`."""

    name: Annotated[str, msgspec.Meta(pattern=f"^{SURFACE_NAME}$")]
    items: Names
    n_positions: Annotated[int, msgspec.Meta(ge=1, le=MAX_POSITIONS)]


class SurfaceChange(_Settings):
    """Settings to be changed; what is left out stays. User types may be added after those there are."""


class Item(msgspec.Struct):
    """An item of a surface."""

    name: str
    retired: bool


class SurfaceAnswer(msgspec.Struct):
    """A surface and how far it is."""

    name: str
    items: list[Item]
    n_positions: int
    user_types: list[str]
    policy: str
    treatment: str
    utility: str
    coefficient: float | None
    attribution_seconds: float
    unreported: str
    refresh_seconds: float
    keep_seconds: float
    revision: int  # of these settings
    version: int  # of the counts
    rounds: int  # rankings that were counted

    @classmethod
    def of(cls, surface: Surface, *, revision: int, version: int, rounds: int) -> "SurfaceAnswer":
        """Return a surface as it is told."""
        settings = surface.to_dict()
        retired = set(settings.pop("retired"))
        settings["items"] = [Item(name, name in retired) for name in surface.items]
        return cls(**settings, revision=revision, version=version, rounds=rounds)


class SurfaceList(msgspec.Struct):
    """All surfaces."""

    surfaces: list[SurfaceAnswer]


class NewItems(msgspec.Struct, forbid_unknown_fields=True):
    """Items to be shown from now on."""

    items: Names


class RankingRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Who is to be shown a ranking."""

    user_type: Name


class RankingBatch(msgspec.Struct, forbid_unknown_fields=True):
    """The type of each of several users that are to be shown a ranking."""

    user_types: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=MAX_BATCH)]


class RankingAnswer(msgspec.Struct):
    """What to show: items in order of positions."""

    id: str
    items: tuple[str, ...]
    expires: datetime


class Feedback(msgspec.Struct, forbid_unknown_fields=True):
    """What became of a ranking: the item that was clicked, or none."""

    ranking: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    clicked: Name | None = None
    reward: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0


class FeedbackAnswer(msgspec.Struct):
    """It is counted for good: just now, or before."""

    status: Literal["counted", "repeated"]


class FeedbackBatch(msgspec.Struct, forbid_unknown_fields=True):
    """Feedback for several rankings; each is counted or refused by itself."""

    feedback: Annotated[list[Feedback], msgspec.Meta(min_length=1, max_length=MAX_BATCH)]


class ProblemDocument(msgspec.Struct, omit_defaults=True):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    field: str | None = None


class FeedbackResult(msgspec.Struct, omit_defaults=True):
    """The status of one feedback of a batch."""

    status: Literal["counted", "repeated", "refused"]
    problem: ProblemDocument | None = None


class FeedbackBatchAnswer(msgspec.Struct):
    """The status of each feedback, in the order of the batch."""

    results: list[FeedbackResult]


class RankingBatchAnswer(msgspec.Struct):
    """A ranking for each user, in the order of the request."""

    rankings: list[RankingAnswer]


class Access(msgspec.Struct):
    """What the key that was sent may do: everything if none is demanded, nothing without a valid one."""

    keys_demanded: bool
    rights: list[str]
    surfaces: list[str] | None = None  # the only ones that the key may access; null for all
    expires_at: datetime | None = None


class Health(msgspec.Struct):
    """The service is alive, or ready."""

    status: Literal["ok"]
    version: str
