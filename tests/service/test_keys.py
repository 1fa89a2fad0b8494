"""API keys over HTTP: rights, revocation and defaults."""

import pytest
from helpers.live import wait_until
from helpers.running_service import Running, running

from banditrank.engine._api_keys import create_key
from banditrank.errors import InvalidInputError
from banditrank.service import _service
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

ADS = {"name": "ads", "items": ["a", "b"], "n_positions": 1}


def ask(service: Running, key: str | None, method: str, path: str, body: object = None) -> int:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return service.ask(method, path, body, headers=headers).status_code


def test_each_right_allows_its_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    keys = {right: create_key(store, right, [right]) for right in ("rank", "read", "administer")}
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    with running(require_keys=True) as service:
        assert ask(service, keys["administer"], "POST", "/v1/surfaces", ADS) == 201
        for right, key in keys.items():
            ranked = ask(service, key, "POST", "/v1/surfaces/ads/rankings", {"user_type": "everybody"})
            assert ranked == (200 if right == "rank" else 403)
            assert ask(service, key, "GET", "/v1/surfaces/ads") == (200 if right == "read" else 403)
            assert ask(service, key, "GET", "/metrics") == (200 if right == "read" else 403)
            changed = ask(service, key, "PATCH", "/v1/surfaces/ads", {})
            assert changed == (200 if right == "administer" else 403)


def test_invalid_keys_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    key = create_key(store, "all", ["rank", "read", "administer"])
    gone = create_key(store, "gone", ["read"])
    store.revoke_key(gone.split("_")[1], revoked_at_ms=1)
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    with running() as service:  # on loopback, but there are keys
        for wrong in (None, "x", key[:-1], key + "x", key.upper(), key.replace("br_", "rb_"), gone):
            assert ask(service, wrong, "GET", "/v1/surfaces") == 401
        assert ask(service, key, "GET", "/v1/surfaces") == 200
        assert ask(service, None, "GET", "/healthz") == 200
        answer = service.ask("GET", "/v1/surfaces")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert key not in answer.text


def test_a_revoked_key_is_refused_after_failed_refreshes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    key = create_key(store, "gone", ["read"])
    failures = [RuntimeError("a mistake"), RuntimeError("another")]
    read = store.api_keys

    def failing() -> list:
        if running_already and failures:
            raise failures.pop()
        return read()

    running_already: list[bool] = []
    monkeypatch.setattr(store, "api_keys", failing)
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    monkeypatch.setattr(_service, "KEY_REFRESH_SECONDS", 0.01)
    with running() as service:
        assert ask(service, key, "GET", "/v1/surfaces") == 200
        running_already.append(True)
        wait_until(lambda: not failures)
        store.revoke_key(key.split("_")[1], revoked_at_ms=1)
        wait_until(lambda: ask(service, key, "GET", "/v1/surfaces") == 401)
    logged = [(record.getMessage(), vars(record)["task"]) for record in caplog.records if record.exc_info]
    assert logged == [("periodic task failed", "refresh API keys")]


@pytest.mark.parametrize(
    ("host", "demanded"),
    [("127.0.0.1", False), ("::1", False), ("localhost", False), ("0.0.0.0", True)],  # noqa: S104
)
def test_keys_are_required_beyond_loopback(host: str, demanded: bool) -> None:  # noqa: FBT001
    assert Settings(host=host).keys_required == demanded


@pytest.mark.parametrize(
    ("demanded", "keys", "revoked", "warned"),
    [(True, 0, 0, True), (True, 2, 2, True), (True, 2, 1, False), (False, 0, 0, False)],
)
def test_a_service_without_valid_keys_logs_a_warning(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    demanded: bool,  # noqa: FBT001
    keys: int,
    revoked: int,
    warned: bool,  # noqa: FBT001
) -> None:
    store = MemoryStore()
    made = [create_key(store, f"key {number}", ["read"]) for number in range(keys)]
    for key in made[:revoked]:
        store.revoke_key(key.split("_")[1], revoked_at_ms=1)
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    with running(require_keys=demanded):
        pass
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert any("run banditrank keys create" in one for one in said) == warned


@pytest.mark.parametrize(("name", "rights"), [("x", []), ("x", ["write"]), ("", ["rank"]), ("\n", ["rank"])])
def test_invalid_keys_are_not_created(name: str, rights: list[str]) -> None:
    store = MemoryStore()
    with pytest.raises(InvalidInputError):
        create_key(store, name, rights)
    assert store.api_keys() == []


def test_only_hashes_are_stored() -> None:
    store = MemoryStore()
    key = create_key(store, "page", ["rank"])
    (record,) = store.api_keys()
    assert key.split("_", 2)[2].encode() not in record.digest
    assert len(record.digest) == 32
