"""Authentication and authorization by API keys: rights, expiry and surfaces."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from helpers.running_service import running

from banditrank.engine._api_keys import MAX_SURFACES_PER_KEY, create_key
from banditrank.errors import InvalidInputError
from banditrank.service._auth import Authenticator, Principal
from banditrank.service._http_errors import HttpError
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

HOUR_MS = 3_600_000


class Clock:
    """A manual wall clock."""

    def __init__(self) -> None:
        self.now_ms = 1_800_000_000_000

    def time_ns(self) -> int:
        return self.now_ms * 1_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", clock.time_ns)
        yield clock


def bearer(key: str) -> bytes:
    return f"Bearer {key}".encode()


def loaded(store: MemoryStore) -> Authenticator:
    authenticator = Authenticator(always_required=True)
    authenticator.load(store.api_keys())
    return authenticator


def refused(call: Any, *values: Any) -> tuple[int, str]:
    with pytest.raises(HttpError) as error:
        call(*values)
    return error.value.error_type.status, error.value.detail


def test_an_expired_key_is_refused_at_once_like_a_revoked_one(clock: Clock) -> None:
    store = MemoryStore()
    key = create_key(store, "contractor", ["read"], expires_at_ms=clock.now_ms + HOUR_MS)
    revoked = create_key(store, "former", ["read"])
    store.revoke_key(revoked.split("_")[1], revoked_at_ms=1)
    authenticator = loaded(store)
    clock.now_ms += HOUR_MS - 1
    principal = authenticator.authenticate(bearer(key))
    assert principal.key_id == key.split("_")[1]
    assert not authenticator.has_no_valid_key
    clock.now_ms += 1  # the keys are not read again
    assert refused(authenticator.authenticate, bearer(key)) == refused(
        authenticator.authenticate, bearer(revoked)
    )
    assert refused(authenticator.authenticate, bearer(key))[0] == 401
    assert authenticator.find(bearer(key)) is None
    assert authenticator.has_no_valid_key


def test_a_key_is_required_after_all_keys_expired(clock: Clock) -> None:
    store = MemoryStore()
    create_key(store, "contractor", ["read"], expires_at_ms=clock.now_ms + 1)
    clock.now_ms += 1
    authenticator = Authenticator(always_required=False)
    authenticator.load(store.api_keys())
    assert authenticator.is_required


def test_a_scoped_key_is_for_its_surfaces_only() -> None:
    store = MemoryStore()
    key = create_key(store, "page", ["rank", "read"], surfaces=["home", "ads"])
    authenticator = loaded(store)
    principal = authenticator.authenticate(bearer(key))
    for surface in ("home", "ads"):
        principal.check("rank", surface)
        assert principal.covers(surface)
    status, detail = refused(principal.check, "rank", "checkout")
    assert (status, detail) == (403, "the key must cover this surface, it is limited to home, ads")
    for other in ("hom", "home2", "HOME", "", "\0"):
        assert not principal.covers(other)
        assert refused(principal.check, "rank", other) == (status, detail), "tells nothing of the surface"
        assert refused(principal.check_surface, other) == (status, detail)


def test_a_scoped_key_is_refused_where_no_surface_is_named() -> None:
    principal = Principal("k", ("read",), ("home",))
    status, detail = refused(principal.check, "read")
    assert (status, detail) == (403, "the key must cover all surfaces, it is limited to home")
    principal.check_right("read")
    assert refused(principal.check_right, "administer")[0] == 403
    assert refused(principal.check, "administer", "home")[0] == 403


def test_anonymous_callers_have_all_rights_without_keys() -> None:
    principal = Authenticator(always_required=False).authenticate(b"")
    assert principal.key_id is None
    principal.check("administer", "home")
    principal.check("administer")


def test_access_returns_expiry_and_surfaces_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    expires = datetime(2400, 1, 31, 12, tzinfo=UTC)
    scoped = create_key(
        store, "page", ["rank"], expires_at_ms=int(expires.timestamp() * 1000), surfaces=["home"]
    )
    full = create_key(store, "all", ["read"])
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    with running() as service:

        def access(key: str) -> Any:
            return service.ask("GET", "/v1/access", headers={"authorization": f"Bearer {key}"}).json()

        assert access(scoped) == {
            "keys_required": True,
            "rights": ["rank"],
            "surfaces": ["home"],
            "expires_at": "2400-01-31T12:00:00Z",
        }
        assert access(full) == {
            "keys_required": True,
            "rights": ["read"],
            "surfaces": None,
            "expires_at": None,
        }
        assert access("wrong") == {
            "keys_required": True,
            "rights": [],
            "surfaces": None,
            "expires_at": None,
        }


@pytest.mark.parametrize(
    ("surfaces", "expires_at_ms"),
    [
        (["ads-*"], None),
        (["Home"], None),
        ([""], None),
        (["a\0"], None),
        ([f"s{number}" for number in range(MAX_SURFACES_PER_KEY + 1)], None),
        ([], 1),
        ([], 1 << 62),
    ],
)
def test_keys_with_an_invalid_scope_or_expiry_are_not_created(
    surfaces: list[str], expires_at_ms: int | None
) -> None:
    store = MemoryStore()
    with pytest.raises(InvalidInputError):
        create_key(store, "x", ["rank"], surfaces=surfaces, expires_at_ms=expires_at_ms)
    assert store.api_keys() == []
