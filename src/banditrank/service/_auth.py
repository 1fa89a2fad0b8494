"""Authentication by API keys, and authorization by their rights and surfaces."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from banditrank.engine._api_keys import RIGHTS, Right, verify_key
from banditrank.service._http_errors import NO_KEY, NO_RIGHT, HttpError
from banditrank.service._requests import JsonResponse, Request, info_of
from banditrank.service._routing import Route
from banditrank.service._schemas import AccessResponse

if TYPE_CHECKING:
    from banditrank.storage._records import KeyRecord

KEY_REFRESH_SECONDS = 0.5
"""Seconds between two reads of the keys: a new or revoked key takes effect within 2 s under any load."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated caller of a request.

    Attributes
    ----------
    key_id
        Id of the API key, for log lines; None where no key is required.
    rights
        Rights of the key.
    surfaces
        Surfaces that the key is limited to; empty for all surfaces.
    expires_at_ms
        Expiry of the key, in milliseconds since 1970; None if it does not expire.

    Examples
    --------
    >>> page = Principal("4f0c", ("rank",), ("home",))
    >>> page.check("rank", "home")
    >>> page.check("rank", "ads")
    Traceback (most recent call last):
    banditrank.service._http_errors.HttpError: the key must cover this surface, it is limited to home
    >>> page.check("rank")
    Traceback (most recent call last):
    banditrank.service._http_errors.HttpError: the key must cover all surfaces, it is limited to home
    """

    key_id: str | None
    rights: tuple[str, ...]
    surfaces: tuple[str, ...] = ()
    expires_at_ms: int | None = None

    def covers(self, surface: str) -> bool:
        """Return whether a surface is in the scope of the key, whether or not the surface exists."""
        return not self.surfaces or surface in self.surfaces

    def check_right(self, right: Right) -> None:
        """Check that the key has a right, on any surface.

        For requests whose surface is known only later, or whose response is filtered by `covers`.

        Raises
        ------
        HttpError
            A 403 if it does not.
        """
        if right not in self.rights:
            raise HttpError(
                NO_RIGHT, f"the key must have the right to {right}, it has {', '.join(self.rights)}"
            )

    def check_surface(self, surface: str) -> None:
        """Check that a surface is in the scope of the key.

        Raises
        ------
        HttpError
            A 403 if it is not. The message is the same whether or not the surface exists.
        """
        if not self.covers(surface):
            raise self._out_of_scope("this surface")

    def check(self, right: Right, surface: str | None = None) -> None:
        """Check that the key has a right on a surface; on all surfaces if `surface` is None.

        Raises
        ------
        HttpError
            A 403 if it does not.
        """
        self.check_right(right)
        # Fast path.
        if not self.surfaces:
            return
        if surface is None:
            raise self._out_of_scope("all surfaces")
        self.check_surface(surface)

    def _out_of_scope(self, required: str) -> HttpError:
        return HttpError(
            NO_RIGHT, f"the key must cover {required}, it is limited to {', '.join(self.surfaces)}"
        )


ANONYMOUS = Principal(None, RIGHTS)
"""The caller where no key is required: it has all rights."""


class Authenticator:
    """Authenticates requests by the API keys of the store.

    Parameters
    ----------
    always_required
        Whether a key is required even if the store has none; otherwise one is required as soon as the store
        has any, also if all of them expired.

    Attributes
    ----------
    is_required
        Whether a key is required now.
    """

    def __init__(self, *, always_required: bool) -> None:
        self._always_required = self.is_required = always_required
        self._keys: dict[str, KeyRecord] = {}
        self._principals: dict[str, Principal] = {}

    @property
    def has_no_valid_key(self) -> bool:
        """Whether a key is required and no key of the store is valid."""
        now_ms = time.time_ns() // 1_000_000
        return self.is_required and not any(key.is_valid(now_ms) for key in self._keys.values())

    def find(self, authorization: bytes) -> Principal | None:
        """Return the caller, or None if a key is required and the request has no valid one.

        A revoked key is invalid from the next call of `load`, an expired one at once.
        """
        if not self.is_required:
            return ANONYMOUS
        scheme, _, key = authorization.partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        record = verify_key(key.decode("latin-1"), self._keys)
        return None if record is None else self._principals[record.id]

    def authenticate(self, authorization: bytes) -> Principal:
        """Return the caller, given the ``Authorization`` header of its request, which may be empty.

        Raises
        ------
        HttpError
            A 401 if a key is required and the request has no valid one.
        """
        if not self.is_required:
            return ANONYMOUS
        principal = self.find(authorization)
        if principal is None:
            challenge = {"www-authenticate": "Bearer"}
            raise HttpError(NO_KEY, "send a valid key: Authorization: Bearer KEY", challenge)
        return principal

    def load(self, keys: Sequence["KeyRecord"]) -> None:
        """Replace the keys by those of the store."""
        self._keys = {key.id: key for key in keys}
        self._principals = {
            key.id: Principal(key.id, key.rights, key.surfaces, key.expires_at_ms) for key in keys
        }
        self.is_required = self._always_required or bool(keys)


async def _access(request: Request) -> JsonResponse:
    """Return the rights of the caller, so that pages can hide what it may not do."""
    authenticator = request.service.authenticator
    principal = authenticator.find(info_of(request.scope).headers.get(b"authorization", b""))
    access = AccessResponse(authenticator.is_required, [])
    if principal is not None:
        access.rights = list(principal.rights)
        access.surfaces = list(principal.surfaces) or None
        if principal.expires_at_ms is not None:
            access.expires_at = datetime.fromtimestamp(principal.expires_at_ms / 1000, UTC)
    return JsonResponse(access)


ROUTES = (
    Route(
        "GET",
        "/v1/access",
        "access",
        "Return the rights of the API key in this request; all rights if no key is required.",
        None,
        _access,
        response_schema=AccessResponse,
    ),
)
