"""Authentication by API keys, and authorization by their rights and surfaces."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from banditrank.engine.api_keys import RIGHTS, Right, verify_key
from banditrank.service.messages import RequestHeaders
from banditrank.service.problems import NO_KEY, NO_RIGHT, ProblemError

if TYPE_CHECKING:
    from banditrank.storage.records import KeyRecord

KEY_SECONDS = 0.5
"""Seconds between two reads of the keys: a new or revoked key takes effect within 2 s under any load."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request, and what it may do.

    Attributes
    ----------
    key_id
        Id of the API key, for log lines; None where the service demands no key.
    rights
        What the caller may do.
    surfaces
        The only surfaces on which the caller may do it; empty for all surfaces.
    expires_at_ms
        When the key expires, in milliseconds since 1970; None for never.

    Examples
    --------
    >>> page = Principal("4f0c", ("rank",), ("home",))
    >>> page.check("rank", "home")
    >>> page.check("rank", "ads")
    Traceback (most recent call last):
    banditrank.service.problems.ProblemError: the key must cover this surface, it is limited to home
    >>> page.check("rank")
    Traceback (most recent call last):
    banditrank.service.problems.ProblemError: the key must cover all surfaces, it is limited to home
    """

    key_id: str | None
    rights: tuple[str, ...]
    surfaces: tuple[str, ...] = ()
    expires_at_ms: int | None = None

    def covers(self, surface: str) -> bool:
        """Return whether a surface is in the scope of the key, whether or not the surface exists."""
        return not self.surfaces or surface in self.surfaces

    def check_right(self, right: Right) -> None:
        """Raise a 403 unless the caller has a right, on whichever surfaces.

        For requests whose surface is known only later, or which return a list that is filtered by `covers`.
        """
        if right not in self.rights:
            raise ProblemError(
                NO_RIGHT, f"the key must have the right to {right}, it has {', '.join(self.rights)}"
            )

    def check_surface(self, surface: str) -> None:
        """Raise a 403 unless a surface is in the scope of the key.

        The answer does not depend on whether the surface exists, and does not name it.
        """
        if not self.covers(surface):
            raise self._out_of_scope("this surface")

    def check(self, right: Right, surface: str | None = None) -> None:
        """Raise a 403 unless the caller has a right on a surface; on all surfaces if none is named."""
        self.check_right(right)
        if surface is not None:
            self.check_surface(surface)
        elif self.surfaces:
            raise self._out_of_scope("all surfaces")

    def _out_of_scope(self, what: str) -> ProblemError:
        return ProblemError(
            NO_RIGHT, f"the key must cover {what}, it is limited to {', '.join(self.surfaces)}"
        )


ANYONE = Principal(None, RIGHTS)


class Rights:
    """The API keys of the store, by which requests are authenticated.

    Parameters
    ----------
    always
        Whether a key is demanded even if there is none; otherwise one is as soon as there are any.
    """

    def __init__(self, *, always: bool) -> None:
        self._always = self.demanded = always
        self._keys: dict[str, KeyRecord] = {}
        self._principals: dict[str, Principal] = {}

    @property
    def nobody_has_any(self) -> bool:
        """Whether keys are demanded and there is no valid one."""
        now_ms = time.time_ns() // 1_000_000
        return self.demanded and not any(key.is_valid(now_ms) for key in self._keys.values())

    def find(self, headers: RequestHeaders) -> Principal | None:
        """Return the caller that sends these headers, or None without a valid key where one is demanded.

        Revoked keys are invalid from the next read of the keys, expired ones at once.
        """
        if not self.demanded:
            return ANYONE
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        record = verify_key(key.decode("latin-1"), self._keys)
        return None if record is None else self._principals[record.id]

    def authenticate(self, headers: RequestHeaders) -> Principal:
        """Return the caller that sends these headers.

        Raises
        ------
        ProblemError
            A 401 without a valid key where one is demanded.
        """
        principal = self.find(headers)
        if principal is None:
            ask = ((b"www-authenticate", b"Bearer"),)
            raise ProblemError(NO_KEY, "send a valid key: Authorization: Bearer KEY", ask)
        return principal

    def load(self, keys: Sequence["KeyRecord"]) -> None:
        """Replace the keys by those of the store."""
        self._keys = {key.id: key for key in keys}
        self._principals = {
            key.id: Principal(key.id, key.rights, key.surfaces, key.expires_at_ms) for key in keys
        }
        self.demanded = self._always or bool(keys)
