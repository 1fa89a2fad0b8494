"""Ranking ids: signed, so that a ranking need not be stored to be believed.

An id holds what was shown to whom, when its attribution window closes, and which counts and which definition
of the surface it was made of. Whoever has the store's secret can read and trust it: a replica that did not
give it out, or a process that started since. Nobody else can make one.
"""

import hashlib
import hmac
import os
import random
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from banditrank.errors import InvalidInputError
from banditrank.storage.records import KEY_BYTES, Impression, min_key

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Returns as many random bytes as it is asked for."""

_FORMAT = 1
_FOR_URLS = bytes.maketrans(b"+/", b"-_")
_FROM_URLS = bytes.maketrans(b"-_", b"+/")
_HEAD = struct.Struct(f"<BIIQ{KEY_BYTES}s")
_SIGNATURE_BYTES = 16
_LONGEST = 1024
NONCE_BYTES = 8
"""Of a key, after the time: what rankings that lapse at the same time are told apart by."""


class IssuedRanking(NamedTuple):
    """What a ranking id says."""

    shown: Impression
    revision: int  # of the surface's definition
    version: int  # of its counts


class RankingIdSigner:
    """Makes and reads ranking ids.

    Parameters
    ----------
    secret
        The store's.

    Examples
    --------
    >>> from banditrank.storage.records import pack_ranking
    >>> signer = RankingIdSigner(bytes(32))
    >>> ticket = IssuedRanking(Impression(7, new_key(1000, bytes(8)), pack_ranking(0, (2, 1))), 1, 40)
    >>> signer.read(signer.sign(ticket)) == ticket
    True
    """

    def __init__(self, secret: bytes) -> None:
        self._keyed = hashlib.blake2s(key=secret, digest_size=_SIGNATURE_BYTES)

    def sign(self, ticket: IssuedRanking) -> str:
        """Return the id of a ranking."""
        (ranking_id,) = self.sign_batch((ticket.shown,), ticket.revision, ticket.version)
        return ranking_id

    def sign_batch(self, shown: Sequence[Impression], revision: int, version: int) -> list[str]:
        """Return the ids of rankings that were made from one definition and version of the counts."""
        pack, signature = _HEAD.pack, self._signature
        said = [pack(_FORMAT, one.surface, revision, version, one.key) + one.ranking for one in shown]
        return [_encoded(one + signature(one)) for one in said]

    def read(self, text: str) -> IssuedRanking:
        """Return what an id says, or raise an error if it was not made with the same secret."""
        told = _decoded(text)
        said, signature = told[:-_SIGNATURE_BYTES], told[-_SIGNATURE_BYTES:]
        if len(said) <= _HEAD.size or not hmac.compare_digest(signature, self._signature(said)):
            raise InvalidInputError("ranking id", "must be one that was given out here", text)
        made_as, surface, revision, version, key = _HEAD.unpack_from(said)
        if made_as != _FORMAT:
            raise InvalidInputError("ranking id", "must be of a format that this version knows", text)
        return IssuedRanking(Impression(surface, key, said[_HEAD.size :]), revision, version)

    def _signature(self, said: bytes) -> bytes:
        signing = self._keyed.copy()
        signing.update(said)
        return signing.digest()


def _decoded(text: str) -> bytes:
    """Return the bytes that a text spells; nothing if it is not how they would be spelled."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return b""
    try:
        told = a2b_base64(text.encode("ascii").translate(_FROM_URLS) + b"=" * (-len(text) % 4))
    except ValueError:
        return b""
    return told if _encoded(told) == text else b""


def _encoded(told: bytes) -> str:
    return b2a_base64(told, newline=False).translate(_FOR_URLS, b"=").decode()


def seeded_bytes() -> RandomBytes:
    """Return a source of bytes that keys are told apart by; what is secret is the signature.

    Each engine has one of its own, made after its process was: processes that come of one do not share it.
    """
    return random.Random(os.urandom(32)).randbytes  # noqa: S311


def new_key(expires_at_ms: int, tail: bytes) -> bytes:
    """Return the key of a ranking that lapses at a time in milliseconds since 1970, and is told by a tail."""
    return key_prefix(expires_at_ms) + tail


def key_prefix(expires_at_ms: int) -> bytes:
    """Return the first bytes of the keys of rankings that lapse at a time in milliseconds since 1970."""
    return min_key(expires_at_ms)[:-NONCE_BYTES]


def nonce_of(key: bytes) -> bytes:
    """Return what a ranking is told from others by that lapse at the same time."""
    return key[-NONCE_BYTES:]
