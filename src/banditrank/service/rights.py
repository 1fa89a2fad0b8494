"""Who may ask what: API keys, as the store has them."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from banditrank.engine.keys import RIGHTS, Right, rights_of
from banditrank.errors import StoreError
from banditrank.service.messages import RawHeaders, header
from banditrank.service.problems import NO_KEY, NO_RIGHT, ProblemError
from banditrank.storage.base import Store

if TYPE_CHECKING:
    from banditrank.storage.records import KeyRecord

KEY_SECONDS = 2.0
"""After which a key that was made or revoked is known as such."""


class Rights:
    """What whoever asks may do.

    Parameters
    ----------
    always
        Whether a key is demanded even if there is none; otherwise one is as soon as there are any.
    """

    def __init__(self, *, always: bool) -> None:
        self._always = self.demanded = always
        self._keys: dict[str, KeyRecord] = {}

    @property
    def nobody_has_any(self) -> bool:
        """Whether keys are demanded and there is none in force."""
        return self.demanded and all(key.revoked is not None for key in self._keys.values())

    def of(self, headers: RawHeaders) -> tuple[str, ...]:
        """Return what whoever sends these headers may do."""
        if not self.demanded:
            return RIGHTS
        scheme, _, key = (header(headers, b"authorization") or b"").partition(b" ")
        return rights_of(key.decode("latin-1"), self._keys) if scheme.lower() == b"bearer" else ()

    def check(self, headers: RawHeaders, right: Right) -> None:
        """Raise a problem unless whoever sends these headers has a right."""
        if not self.demanded:
            return
        rights = self.of(headers)
        if not rights:
            ask = ((b"www-authenticate", b"Bearer"),)
            raise ProblemError(NO_KEY, "send a valid key: Authorization: Bearer KEY", ask)
        if right not in rights:
            raise ProblemError(
                NO_RIGHT, f"the key must have the right to {right}, it has {', '.join(rights)}"
            )

    async def read(self, store: Store) -> None:
        """Take in which keys there are."""
        keys = await asyncio.to_thread(store.api_keys)
        self._keys = {key.id: key for key in keys}
        self.demanded = self._always or bool(keys)

    async def read_again(self, store: Store) -> None:
        """Take in which keys there are, if the store can be read."""
        with contextlib.suppress(StoreError):  # the engine says so
            await self.read(store)
