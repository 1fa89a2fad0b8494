"""Signed ranking ids.

An id carries the impression, the versions of the counts and of the surface's definition behind it, and the
items that the request allowed, so that the ranking can be recomputed. It is signed with the store's
secret, so every process that opens the store can verify it, and no ranking has to be stored before its
feedback arrives.
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
from banditrank.storage._records import KEY_BYTES, Impression

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Returns the given number of random bytes."""

_FORMAT = 1
_RESTRICTED_FORMAT = 2  # the length of the ranking follows the header, and the allowed items the ranking
_LENGTH = struct.Struct("<H")
_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_HEADER = struct.Struct(f"<BIIQ{KEY_BYTES}s")
_SIGNATURE_BYTES = 16
MAX_RANKING_ID_LENGTH = 4096
NONCE_BYTES = 8
"""Length of the end of an impression's key, which distinguishes impressions that expire together."""


class IssuedRanking(NamedTuple):
    """Content of a ranking id."""

    impression: Impression
    revision: int  # of the surface's definition
    version: int  # of its counts
    allowed: bytes = b""  # see `AllowedItems.encode`


class RankingIdSigner:
    """Signs and verifies ranking ids.

    Parameters
    ----------
    secret
        The store's secret.

    Examples
    --------
    >>> from banditrank.storage._records import pack_ranking
    >>> signer = RankingIdSigner(bytes(32))
    >>> issued = IssuedRanking(Impression(7, new_key(1000, bytes(8)), pack_ranking(0, (2, 1))), 1, 40)
    >>> signer.verify(signer.sign(issued)) == issued
    True
    """

    def __init__(self, secret: bytes) -> None:
        self._keyed_hash = hashlib.blake2s(key=secret, digest_size=_SIGNATURE_BYTES)

    def sign(self, issued: IssuedRanking) -> str:
        """Return the id of a ranking."""
        shared = issued.revision, issued.version, issued.allowed
        (ranking_id,) = self.sign_batch((issued.impression,), *shared)
        return ranking_id

    def sign_batch(
        self, impressions: Sequence[Impression], revision: int, version: int, allowed: bytes = b""
    ) -> list[str]:
        """Return the ids of impressions that share the versions behind them, and the allowed items."""
        pack, signature = _HEADER.pack, self._signature
        if allowed:
            contents = [
                pack(_RESTRICTED_FORMAT, one.surface_id, revision, version, one.key)
                + _LENGTH.pack(len(one.ranking))
                + one.ranking
                + allowed
                for one in impressions
            ]
        else:
            contents = [
                pack(_FORMAT, one.surface_id, revision, version, one.key) + one.ranking for one in impressions
            ]
        return [_encode(content + signature(content)) for content in contents]

    def verify(self, ranking_id: str) -> IssuedRanking:
        """Return the content of an id.

        Raises
        ------
        InvalidInputError
            If the id was not signed with this secret, or has an unknown format.
        """
        decoded = _decode(ranking_id)
        content, signature = decoded[:-_SIGNATURE_BYTES], decoded[-_SIGNATURE_BYTES:]
        if len(content) <= _HEADER.size or not hmac.compare_digest(signature, self._signature(content)):
            raise InvalidInputError("ranking id", "must be one that this store issued", ranking_id)
        id_format, surface_id, revision, version, key = _HEADER.unpack_from(content)
        ranking, allowed = content[_HEADER.size :], b""
        if id_format == _RESTRICTED_FORMAT:
            (length,) = _LENGTH.unpack_from(ranking)
            ranking, allowed = ranking[_LENGTH.size :][:length], ranking[_LENGTH.size + length :]
        elif id_format != _FORMAT:
            raise InvalidInputError("ranking id", "must have a format that this version reads", ranking_id)
        return IssuedRanking(Impression(surface_id, key, ranking), revision, version, allowed)

    def _signature(self, content: bytes) -> bytes:
        keyed_hash = self._keyed_hash.copy()
        keyed_hash.update(content)
        return keyed_hash.digest()


def _decode(text: str) -> bytes:
    """Return the decoded bytes; empty if the text is not their canonical encoding."""
    if not isinstance(text, str) or len(text) > MAX_RANKING_ID_LENGTH:
        return b""
    try:
        decoded = a2b_base64(text.encode("ascii").translate(_FROM_URL_SAFE) + b"=" * (-len(text) % 4))
    except ValueError:
        return b""
    return decoded if _encode(decoded) == text else b""


def _encode(content: bytes) -> str:
    return b2a_base64(content, newline=False).translate(_TO_URL_SAFE, b"=").decode()


def seeded_bytes() -> RandomBytes:
    """Return a source of random bytes, seeded by the operating system.

    Not a secret: the signature protects ids. Each engine creates its own, so forked processes do not share
    one.
    """
    return random.Random(os.urandom(32)).randbytes  # noqa: S311


def new_key(expires_at_ms: int, nonce: bytes) -> bytes:
    """Return the key of an impression that expires at a time in milliseconds since 1970."""
    return key_prefix(expires_at_ms) + nonce


def key_prefix(expires_at_ms: int) -> bytes:
    """Return the start of the keys of impressions that expire at a time in milliseconds since 1970."""
    return expires_at_ms.to_bytes(KEY_BYTES - NONCE_BYTES, "big")


def nonce_of(key: bytes) -> bytes:
    """Return the end of a key, which distinguishes impressions that expire together."""
    return key[-NONCE_BYTES:]
