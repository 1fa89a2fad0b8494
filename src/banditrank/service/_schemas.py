"""Schemas of request and response bodies.

The OpenAPI document takes its descriptions from the docstrings of these classes.
"""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

import msgspec

from banditrank.engine._experiment import MAX_ARMS, MAX_VISITOR_LENGTH
from banditrank.engine._guarantees import MAX_GUARANTEES
from banditrank.engine._ranking_ids import MAX_RANKING_ID_LENGTH
from banditrank.engine._surface import (
    ATTRIBUTION_SECONDS,
    KEEP_SECONDS,
    MAX_ITEMS,
    MAX_NAME_LENGTH,
    MAX_POSITIONS,
    MAX_USER_TYPES,
    NAME_RULE,
    REFRESH_SECONDS,
    ItemChanges,
    Surface,
    Unreported,
    name_list_rule,
)
from banditrank.engine._surface_name import SURFACE_NAME, SURFACE_NAME_RULE
from banditrank.model._click_models import RankOneClickModel
from banditrank.policies._base import Treatment
from banditrank.service._body_validation import RULE

MAX_BATCH = 1000
"""Maximum number of rankings or feedback in one request."""


def _name_list(n_max: int) -> msgspec.Meta:
    return msgspec.Meta(min_length=1, max_length=n_max, extra={RULE: name_list_rule(1, n_max)})


def _seconds(limits: tuple[float, float]) -> msgspec.Meta:
    return msgspec.Meta(ge=limits[0], le=limits[1])


Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH, extra={RULE: NAME_RULE})]
ArmName = Annotated[str, msgspec.Meta(pattern=f"^{SURFACE_NAME}$", extra={RULE: SURFACE_NAME_RULE})]
ItemNames = Annotated[list[Name], _name_list(MAX_ITEMS)]
VisitorId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_VISITOR_LENGTH)]
Position = Annotated[int, msgspec.Meta(ge=1, le=MAX_POSITIONS)]
ClickedNames = Annotated[list[Name], msgspec.Meta(max_length=MAX_POSITIONS)]


FeedbackStatus: TypeAlias = Literal["counted", "recorded", "repeated"]


class ArmSettings(msgspec.Struct, forbid_unknown_fields=True):
    """An arm of an experiment.

    Attributes
    ----------
    name
        Name of the arm; not policy, which is the surface's own.
    share
        Share of the visits; 0 stops the arm.
    policy
        random, fixed, or the name of another policy.
    order
        For policy fixed: items in the order in which they are shown.
    is_learned_from
        Whether the surface's policy learns from the arm's visits.
    """

    name: ArmName
    share: Annotated[float, msgspec.Meta(ge=0, le=1)]
    policy: str = "random"
    order: Annotated[list[Name], msgspec.Meta(max_length=MAX_ITEMS)] = []
    is_learned_from: bool = False


class ExperimentSettings(msgspec.Struct, forbid_unknown_fields=True):
    """An experiment: arms that share the visits of a surface with its policy.

    Attributes
    ----------
    name
        Name of the experiment; visitors are assigned anew under a new name.
    arms
        The arms. New ones are appended; the share 0 stops one.
    level
        Confidence level of the report.
    """

    name: ArmName
    arms: Annotated[list[ArmSettings], msgspec.Meta(min_length=1, max_length=MAX_ARMS)]
    level: Annotated[float, msgspec.Meta(ge=0.5, le=0.999)] = 0.95


class LeastExposureSettings(
    msgspec.Struct, tag_field="kind", tag="least-exposure", forbid_unknown_fields=True
):
    """A least exposure of items: the share of users who look at the position in which an item is shown.

    Attributes
    ----------
    level
        The least exposure.
    items
        Names of the items; null for all.
    is_group
        Whether the level is that of all these items together, instead of each one's.
    """

    level: Annotated[float, msgspec.Meta(ge=0, le=1)]
    items: ItemNames | None = None
    is_group: bool = False


class KeptShareSettings(msgspec.Struct, tag_field="kind", tag="kept-share", forbid_unknown_fields=True):
    """A least value of user types, as a share of their values under personalized treatment.

    Attributes
    ----------
    share
        The share.
    user_types
        Names of the user types; null for all.
    """

    share: Annotated[float, msgspec.Meta(ge=0, le=1)]
    user_types: Annotated[list[Name], _name_list(MAX_USER_TYPES)] | None = None


GuaranteeSettings: TypeAlias = LeastExposureSettings | KeptShareSettings


class _SurfaceSettings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Optional settings of a surface.

    Attributes
    ----------
    user_types
        Names of the user types.
    policy
        Name of the policy; auto for the default.
    treatment
        personalized for a ranking per user type, or with guarantees a lottery; equal for one ranking for all
        users; equal-lottery for one lottery over rankings for all users.
    utility
        Collective utility that equal treatment maximises.
    coefficient
        Exploration coefficient, for policies that have one.
    attribution_seconds
        Attribution window: time for which feedback is accepted.
    unreported
        How a ranking without feedback counts after its attribution window: not-clicked, or discarded.
    refresh_seconds
        Maximum age of the counts that rankings are made from; 0 for the latest counts.
    keep_seconds
        Time for which rankings can be explained and repeated feedback is recognised.
    click_model
        How users look at a ranking: single-look, with at most one click, or position-based, with several.
    allow_short_rankings
        Whether a ranking may have fewer items than positions, if a request allows fewer.
    guarantees
        Least exposures of items and least values of user types, which the lottery of equal-lottery keeps,
        or the lotteries of the user types under personalized treatment.
    experiment
        Arms that share the visits with the policy; null without an experiment.
    """

    user_types: Annotated[list[Name], _name_list(MAX_USER_TYPES)] | msgspec.UnsetType = msgspec.UNSET
    policy: str | msgspec.UnsetType = msgspec.UNSET
    treatment: Treatment | msgspec.UnsetType = msgspec.UNSET
    utility: str | msgspec.UnsetType = msgspec.UNSET
    coefficient: float | msgspec.UnsetType | None = msgspec.UNSET
    attribution_seconds: Annotated[float, _seconds(ATTRIBUTION_SECONDS)] | msgspec.UnsetType = msgspec.UNSET
    unreported: Unreported | msgspec.UnsetType = msgspec.UNSET
    refresh_seconds: Annotated[float, _seconds(REFRESH_SECONDS)] | msgspec.UnsetType = msgspec.UNSET
    keep_seconds: Annotated[float, _seconds(KEEP_SECONDS)] | msgspec.UnsetType = msgspec.UNSET
    click_model: RankOneClickModel | msgspec.UnsetType = msgspec.UNSET
    allow_short_rankings: bool | msgspec.UnsetType = msgspec.UNSET
    guarantees: (
        Annotated[list[GuaranteeSettings], msgspec.Meta(max_length=MAX_GUARANTEES)] | msgspec.UnsetType
    ) = msgspec.UNSET
    experiment: ExperimentSettings | msgspec.UnsetType | None = msgspec.UNSET


class CreateSurfaceRequest(_SurfaceSettings, kw_only=True):
    """A surface to create. Omitted settings have their defaults.

    Attributes
    ----------
    name
        Name of the surface; it cannot be changed later.
    items
        Names of the items.
    n_positions
        Number of items in a ranking; it cannot be changed later.
    """

    name: Annotated[str, msgspec.Meta(pattern=f"^{SURFACE_NAME}$", extra={RULE: SURFACE_NAME_RULE})]
    items: ItemNames
    n_positions: Annotated[int, msgspec.Meta(ge=1, le=MAX_POSITIONS)]


class UpdateSurfaceRequest(_SurfaceSettings):
    """Settings to change. Omitted settings keep their values; user types can only be appended."""


class SurfaceItem(msgspec.Struct):
    """An item of a surface.

    Attributes
    ----------
    name
        Name of the item.
    retired
        Whether the item is retired and therefore never ranked.
    """

    name: str
    retired: bool


class SurfaceResponse(msgspec.Struct):
    """A surface: its settings and its progress.

    Attributes
    ----------
    name
        Name of the surface.
    items
        All items, in the order in which they were added.
    n_positions
        Number of items in a ranking.
    user_types
        Names of the user types.
    policy
        Name of the policy.
    treatment
        personalized for a ranking per user type, or with guarantees a lottery; equal for one ranking for all
        users; equal-lottery for one lottery over rankings for all users.
    utility
        Collective utility that equal treatment maximises.
    coefficient
        Exploration coefficient; null for the default.
    attribution_seconds
        Attribution window: time for which feedback is accepted.
    unreported
        How a ranking without feedback counts after its attribution window: not-clicked, or discarded.
    refresh_seconds
        Maximum age of the counts that rankings are made from.
    keep_seconds
        Time for which rankings can be explained and repeated feedback is recognised.
    click_model
        How users look at a ranking: single-look, with at most one click, or position-based, with several.
    allow_short_rankings
        Whether a ranking may have fewer items than positions, if a request allows fewer.
    guarantees
        Least exposures of items and least values of user types, which the lottery of equal-lottery keeps,
        or the lotteries of the user types under personalized treatment.
    experiment
        Arms that share the visits with the policy; null without an experiment.
    revision
        Revision of the settings.
    version
        Version of the counts.
    rounds
        Number of counted rankings.
    """

    name: str
    items: list[SurfaceItem]
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
    click_model: str
    allow_short_rankings: bool
    guarantees: list[GuaranteeSettings]
    experiment: ExperimentSettings | None
    revision: int
    version: int
    rounds: int

    @classmethod
    def from_surface(cls, surface: Surface, *, revision: int, version: int, rounds: int) -> "SurfaceResponse":
        """Return the response for a surface."""
        settings = surface.to_dict()
        retired = set(settings.pop("retired"))
        for kept_by_engine in ("experiment_periods", "guarantees_since_version", "deployed_items"):
            del settings[kept_by_engine]
        settings["items"] = [SurfaceItem(name, name in retired) for name in surface.items]
        settings["guarantees"] = msgspec.convert(settings["guarantees"], list[GuaranteeSettings])
        settings["experiment"] = msgspec.convert(settings["experiment"], ExperimentSettings | None)
        return cls(**settings, revision=revision, version=version, rounds=rounds)


class SurfaceListResponse(msgspec.Struct):
    """A list of surfaces.

    Attributes
    ----------
    surfaces
        All surfaces that the key covers.
    is_loading
        Whether the list may be incomplete, because code of surfaces is compiled after a start.
    """

    surfaces: list[SurfaceResponse]
    is_loading: bool = False


class ItemChangesResponse(msgspec.Struct):
    """Changes of the items of a surface.

    Attributes
    ----------
    added
        New items.
    revived
        Items that were retired before, and are active now.
    retired
        Items that were active before, and are retired now.
    unchanged
        Number of items that were and are active.
    """

    added: list[str]
    revived: list[str]
    retired: list[str]
    unchanged: int


class ItemsResponse(SurfaceResponse):
    """A surface after an update of its items.

    Attributes
    ----------
    changes
        Changes of the items by this request.
    """

    changes: ItemChangesResponse

    @classmethod
    def from_changes(cls, surface: SurfaceResponse, changes: ItemChanges) -> "ItemsResponse":
        """Return the response for an updated surface."""
        added, revived, retired, unchanged = changes
        return cls(
            **msgspec.structs.asdict(surface),
            changes=ItemChangesResponse(list(added), list(revived), list(retired), unchanged),
        )


class AddItemsRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Items to add to a surface.

    Attributes
    ----------
    items
        Names of new, retired or active items; active ones stay.
    """

    items: ItemNames


class SyncItemsRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The catalogue of a surface.

    Attributes
    ----------
    items
        Names of all items that the surface is to show; its other items are retired.
    """

    items: ItemNames


class RankingRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A request for a ranking for one user.

    Attributes
    ----------
    user_type
        User type of the user.
    candidates
        Items that may be shown; null for all active items. Retired and unknown ones are ignored.
    exclude
        Items that must not be shown. Retired and unknown ones are ignored.
    pinned
        Items that must be shown, by position: 1 is the first. They need not be candidates.
    visitor
        Id of the visitor, who stays in the same arm of an experiment; null to assign by chance. Not stored.
    """

    user_type: Name
    candidates: ItemNames | None = None
    exclude: Annotated[list[Name], msgspec.Meta(max_length=MAX_ITEMS)] = []
    pinned: Annotated[dict[Position, Name], msgspec.Meta(max_length=MAX_POSITIONS)] = {}
    visitor: VisitorId | None = None


class RankingBatchRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A request for a ranking for each of several users.

    Attributes
    ----------
    user_types
        User type of each user.
    candidates
        Items that may be shown; null for all active items. Retired and unknown ones are ignored.
    exclude
        Items that must not be shown. Retired and unknown ones are ignored.
    pinned
        Items that must be shown, by position: 1 is the first. They need not be candidates.
    visitors
        Id of each visitor, in the order of user_types; null to assign to the arms of an experiment by chance.
    """

    user_types: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=MAX_BATCH)]
    candidates: ItemNames | None = None
    exclude: Annotated[list[Name], msgspec.Meta(max_length=MAX_ITEMS)] = []
    pinned: Annotated[dict[Position, Name], msgspec.Meta(max_length=MAX_POSITIONS)] = {}
    visitors: Annotated[list[VisitorId | None], msgspec.Meta(max_length=MAX_BATCH)] | None = None


class BatchRanking(msgspec.Struct):
    """A ranking for one of several users.

    Attributes
    ----------
    id
        Id of the ranking, for its feedback.
    items
        Items in order of positions.
    expires_at
        End of the attribution window, after which feedback is rejected.
    arm
        Arm of the surface's experiment: policy for the surface's own; null without an experiment.
    """

    id: str
    items: tuple[str, ...]
    expires_at: datetime
    arm: str | None = None


class RankingResponse(BatchRanking):
    """A ranking for one user.

    Attributes
    ----------
    ignored
        Items in candidates and exclude that are retired or unknown, and were ignored.
    """

    ignored: tuple[str, ...] = ()


class FeedbackRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Feedback for a ranking.

    Attributes
    ----------
    ranking
        Id of the ranking.
    clicked
        The item that was clicked, or a list of items under click model position-based; null if none was.
    reward
        Value of a click; must be omitted without a click. A larger one for the same item replaces it until
        the ranking is counted.
    final
        Whether to count the ranking now, with the clicks recorded before. Otherwise it is counted when its
        attribution window closes, and more clicks and rewards may follow. By default true, except for clicks
        under click model position-based.
    """

    ranking: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_RANKING_ID_LENGTH)]
    clicked: Name | ClickedNames | None = None
    reward: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    final: bool | None = None


class FeedbackResponse(msgspec.Struct):
    """Status of feedback that was committed.

    Attributes
    ----------
    status
        ``counted``; ``recorded`` if the ranking is counted later; or ``repeated`` if the feedback adds
        nothing.
    """

    status: FeedbackStatus


class FeedbackBatchRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Feedback for several rankings; each is counted or rejected on its own.

    Attributes
    ----------
    feedback
        Feedback of each ranking.
    """

    feedback: Annotated[list[FeedbackRequest], msgspec.Meta(min_length=1, max_length=MAX_BATCH)]


class ProblemDetails(msgspec.Struct, omit_defaults=True):
    """An HTTP error as problem details (RFC 9457).

    Attributes
    ----------
    type
        URN of the type of error.
    title
        Short description of the type of error.
    status
        HTTP status.
    detail
        Message for this request.
    request_id
        Id of the request, as in the header ``x-request-id`` and in the log.
    field
        Field that has an invalid value.
    """

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    field: str | None = None


class FeedbackBatchResult(msgspec.Struct, omit_defaults=True):
    """Status of one feedback in a batch.

    Attributes
    ----------
    status
        As for a single feedback, or ``rejected``.
    problem
        Problem details of the rejection.
    """

    status: FeedbackStatus | Literal["rejected"]
    problem: ProblemDetails | None = None


class FeedbackBatchResponse(msgspec.Struct):
    """Results of a batch of feedback.

    Attributes
    ----------
    results
        Status of each feedback, in the order of the request.
    """

    results: list[FeedbackBatchResult]


class RankingBatchResponse(msgspec.Struct):
    """Rankings for several users.

    Attributes
    ----------
    rankings
        Ranking for each user, in the order of the request.
    ignored
        Items in candidates and exclude that are retired or unknown, and were ignored.
    """

    rankings: list[BatchRanking]
    ignored: tuple[str, ...] = ()


class AccessResponse(msgspec.Struct):
    """Rights of the API key in the request: all if no key is required, none without a valid key.

    Attributes
    ----------
    keys_required
        Whether the service requires an API key.
    rights
        Rights of the key.
    surfaces
        Surfaces that the key is limited to; null for all surfaces.
    expires_at
        Expiry of the key; null if it does not expire.
    """

    keys_required: bool
    rights: list[str]
    surfaces: list[str] | None = None
    expires_at: datetime | None = None


class HealthResponse(msgspec.Struct):
    """Health of the service.

    Attributes
    ----------
    status
        Always ``ok``; a service that is not ready returns an error.
    version
        Version of banditrank.
    """

    status: Literal["ok"]
    version: str
