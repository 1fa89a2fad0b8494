"""Log lines have the id of the request, and those of administrative actions the id of the key."""

import logging

import pytest
from helpers.live import FailingStore
from helpers.running_service import running

from banditrank.engine._api_keys import create_key
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2, "user_types": ["secret-type"]}
RANK = "/v1/surfaces/ads/rankings"


def test_every_response_has_a_unique_id() -> None:
    with running() as service:
        answers = [
            service.ask("GET", path) for path in ("/healthz", "/healthz", "/none", "/v1/surfaces/none")
        ]
        ids = [one.headers["x-request-id"] for one in answers]
        assert len(set(ids)) == len(ids)
        assert [one.json()["request_id"] for one in answers[2:]] == ids[2:]


@pytest.mark.parametrize(("sent", "is_kept"), [("proxy-7", True), ("a" * 65, False), ("a b", False)])
def test_a_valid_id_of_a_proxy_is_kept(sent: str, is_kept: bool) -> None:  # noqa: FBT001
    with running() as service:
        answer = service.ask("GET", "/healthz", headers={"x-request-id": sent})
        assert (answer.headers["x-request-id"] == sent) is is_kept


def test_failures_are_logged_with_the_id_and_without_details_for_the_client(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = FailingStore()
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        ranking = service.ask("POST", RANK, {"user_type": "secret-type"}).json()
        monkeypatch.setattr(store, "check", store.fail_if_down)
        store.down = True
        answers = [
            service.ask("POST", "/v1/feedback", {"ranking": ranking["id"]}),
            service.ask("GET", "/readyz"),
        ]
        store.down = False
    for answer in answers:
        assert answer.status_code == 503
        assert "the store is down" not in answer.text
        (record,) = [
            one for one in caplog.records if vars(one).get("request_id") == answer.headers["x-request-id"]
        ]
        assert record.message.startswith("request failed: the store is down")
        assert "the store is down" in vars(record)["error"]


def test_administrative_actions_are_logged_with_the_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    key = create_key(store, "deployment", ["administer"])
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    caplog.set_level(logging.INFO, "banditrank.service")
    actions = {
        "surface created": ("POST", "/v1/surfaces", ADS),
        "surface updated": ("PATCH", "/v1/surfaces/ads", {"keep_seconds": 1e6}),
        "items added": ("POST", "/v1/surfaces/ads/items", {"items": ["d"]}),
        "items synced": ("PUT", "/v1/surfaces/ads/items", {"items": ["a", "b", "c", "d"]}),
        "item retired": ("DELETE", "/v1/surfaces/ads/items/d", None),
        "surface deleted": ("DELETE", "/v1/surfaces/ads", None),
    }
    with running() as service:
        for action, request in actions.items():
            answer = service.ask(*request, headers={"authorization": f"Bearer {key}"})
            assert answer.is_success
            (record,) = [vars(one) for one in caplog.records if one.message == action]
            assert record["key_id"] == key.split("_")[1]
            assert record["request_id"] == answer.headers["x-request-id"]
            assert record["surface"] == "ads"
    assert key not in caplog.text


def test_user_types_are_hidden_from_keys_without_the_right_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    keys = {
        rights: create_key(store, "page", rights.split()) for rights in ("rank", "rank read", "administer")
    }
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    with running() as service:

        def ask(rights: str, path: str, body: object) -> str:
            return service.ask("POST", path, body, headers={"authorization": f"Bearer {keys[rights]}"}).text

        ask("administer", "/v1/surfaces", ADS)
        for path, body in (
            (RANK, {"user_type": "x"}),
            (f"{RANK}/batch", {"user_types": ["secret-type", "x"]}),
        ):
            assert "secret-type" not in ask("rank", path, body)
            assert "secret-type" in ask("rank read", path, body)
        committer = service.engine.committer
        assert committer.queued == committer.events == 0, "no ranking of a refused batch is noted"
