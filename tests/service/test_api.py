"""Routes of surfaces, rankings and feedback."""

from collections.abc import Iterator

import pytest
from helpers.running_service import Running, running

ADS = {"name": "ads", "items": ["ad 1", "ad/2", "ad-3"], "n_positions": 2, "user_types": ["new", "old"]}


@pytest.fixture
def service() -> Iterator[Running]:
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        yield service


def problem(service: Running, *request: object, status: int, kind: str, **options: object) -> str:
    response = service.ask(*request, **options)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == status
    assert document["type"] == f"urn:banditrank:problem:{kind}"
    return document["detail"]


def shown(service: Running, user_type: str = "new") -> dict:
    response = service.ask("POST", "/v1/surfaces/ads/rankings", {"user_type": user_type})
    assert response.status_code == 200
    return response.json()


def rounds(service: Running) -> int:
    service.engine.surface("ads").refresh()
    return service.ask("GET", "/v1/surfaces/ads").json()["rounds"]


def test_a_ranking_and_its_feedback_are_counted_once(service: Running) -> None:
    ranking = shown(service)
    assert len(set(ranking["items"])) == 2
    feedback = {"ranking": ranking["id"], "clicked": ranking["items"][1], "reward": 0.5}
    assert service.ask("POST", "/v1/feedback", feedback).json() == {"status": "counted"}
    assert service.ask("POST", "/v1/feedback", feedback).json() == {"status": "repeated"}
    assert rounds(service) == 1


def test_contradicting_feedback_is_a_conflict(service: Running) -> None:
    ranking = shown(service)["id"]
    service.ask("POST", "/v1/feedback", {"ranking": ranking})
    said = {"ranking": ranking, "clicked": "ad-3"}
    clicked = service.engine.issued_ranking(ranking)[1].impression.items
    if 2 not in clicked:
        said["clicked"] = "ad 1"
    problem(service, "POST", "/v1/feedback", said, status=409, kind="conflicting-feedback")
    assert rounds(service) == 1


@pytest.mark.parametrize("forged", ["x", "A" * 76, "é", "AQEAAAABAAAA====", "a" * 1000])
def test_a_forged_ranking_id_is_unknown(service: Running, forged: str) -> None:
    problem(service, "POST", "/v1/feedback", {"ranking": forged}, status=404, kind="unknown-ranking")
    assert rounds(service) == 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "ranking must be given, got []"),
        ({"ranking": 5}, "ranking must be a string of 1 to 4,096 characters, got 5"),
        ({"ranking": "x", "reward": 1.5}, "reward"),
        ({"ranking": "x", "reward": -1}, "reward"),
        ({"ranking": "x", "colour": "red"}, "colour"),
        ({"ranking": "y" * 5000}, "ranking"),
    ],
)
def test_invalid_feedback_is_refused(service: Running, body: dict, said: str) -> None:
    assert said in problem(service, "POST", "/v1/feedback", body, status=422, kind="invalid")


@pytest.mark.parametrize("said", [{"clicked": None, "reward": 0.5}, {"reward": 0}, {"reward": 0.999999999}])
def test_a_reward_needs_a_click(service: Running, said: dict) -> None:
    ranking = shown(service)["id"]
    feedback = {"ranking": ranking, **said}
    detail = problem(service, "POST", "/v1/feedback", feedback, status=422, kind="invalid")
    assert detail.startswith("reward must be left out without a click, got")
    assert rounds(service) == 0
    feedback = {"ranking": ranking, "clicked": None, "reward": 1}
    assert service.ask("POST", "/v1/feedback", feedback).json() == {"status": "counted"}


@pytest.mark.parametrize("path", ["/healthz", "/v1/surfaces", "/openapi.json", "/docs", "/nowhere"])
def test_head_has_the_headers_of_get(service: Running, path: str) -> None:
    whole, head = service.ask("GET", path), service.ask("HEAD", path)
    assert head.status_code == whole.status_code
    assert head.content == b""
    assert len(whole.content) == int(head.headers["content-length"])
    assert head.headers["content-type"] == whole.headers["content-type"]


def test_an_item_that_was_not_shown_cannot_be_clicked(service: Running) -> None:
    ranking = shown(service)
    (other,) = {"ad 1", "ad/2", "ad-3"} - set(ranking["items"])
    said = {"ranking": ranking["id"], "clicked": other}
    assert "clicked must be one of" in problem(
        service, "POST", "/v1/feedback", said, status=422, kind="invalid"
    )
    assert rounds(service) == 0


def test_feedback_in_a_batch_is_counted_independently(service: Running) -> None:
    one, two = shown(service), shown(service, "old")
    feedback = [
        {"ranking": one["id"], "clicked": one["items"][0]},
        {"ranking": "forged"},
        {"ranking": one["id"], "clicked": one["items"][0]},
        {"ranking": two["id"], "clicked": "nothing"},
        {"ranking": two["id"]},
        {"ranking": two["id"], "clicked": two["items"][0]},
    ]
    answer = service.ask("POST", "/v1/feedback/batch", {"feedback": feedback}).json()["results"]
    statuses = [result["status"] for result in answer]
    assert statuses == ["counted", "rejected", "repeated", "rejected", "counted", "rejected"]
    assert answer[1]["problem"]["status"] == 404
    assert answer[5]["problem"]["status"] == 409
    assert rounds(service) == 2


def test_an_error_in_a_batch_affects_one_feedback(
    service: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rankings = [shown(service)["id"] for _ in range(3)]
    submit = service.engine.committer.submit
    failures = iter([None, RuntimeError("a mistake"), None])

    def failing(*arguments: object) -> None:
        submit(*arguments)
        if (error := next(failures)) is not None:
            raise error

    monkeypatch.setattr(service.engine.committer, "submit", failing)
    feedback = [{"ranking": ranking} for ranking in rankings]
    answer = service.ask("POST", "/v1/feedback/batch", {"feedback": feedback}).json()["results"]
    assert [result["status"] for result in answer] == ["counted", "rejected", "counted"]
    assert answer[1]["problem"]["type"] == "urn:banditrank:problem:internal"
    assert "feedback is safe to repeat" in answer[1]["problem"]["detail"]
    assert [record.getMessage() for record in caplog.records if record.exc_info] == ["request failed"]
    assert rounds(service) == 3  # so the message must not say that nothing changed


def test_surfaces_are_created_changed_and_deleted(service: Running) -> None:
    """Finding 9: a surface that becomes personalized has no utility, and refuses one."""
    assert problem(service, "POST", "/v1/surfaces", ADS, status=409, kind="already-exists")
    changed = service.ask(
        "PATCH", "/v1/surfaces/ads", {"policy": "ucb-rank", "user_types": ["new", "old", "staff"]}
    )
    assert changed.json()["policy"] == "ucb-rank"
    assert changed.json()["revision"] == 2
    assert len(shown(service, "staff")["items"]) == 2
    detail = problem(
        service, "PATCH", "/v1/surfaces/ads", {"user_types": ["old"]}, status=422, kind="invalid"
    )
    assert "must start with the present ones, in order" in detail
    for settings, utility in (
        ({"treatment": "equal", "utility": "nash"}, "nash"),
        ({"treatment": "personalized"}, "utilitarian"),
    ):
        assert service.ask("PATCH", "/v1/surfaces/ads", settings).json()["utility"] == utility
    detail = problem(service, "PATCH", "/v1/surfaces/ads", {"utility": "nash"}, status=422, kind="invalid")
    assert "utility must be left out under personalized treatment" in detail
    assert service.ask("DELETE", "/v1/surfaces/ads").status_code == 204
    assert service.ask("GET", "/v1/surfaces").json() == {"surfaces": [], "is_loading": False}
    problem(service, "GET", "/v1/surfaces/ads", status=404, kind="unknown-surface")
    problem(
        service,
        "POST",
        "/v1/surfaces/ads/rankings",
        {"user_type": "new"},
        status=404,
        kind="unknown-surface",
    )


def test_items_are_added_and_retired(service: Running) -> None:
    added = service.ask("POST", "/v1/surfaces/ads/items", {"items": ["ad-4"]})
    assert [item["name"] for item in added.json()["items"]] == ["ad 1", "ad/2", "ad-3", "ad-4"]
    retired = service.ask("DELETE", "/v1/surfaces/ads/items/ad%2F2")
    assert [item["retired"] for item in retired.json()["items"]] == [False, True, False, False]
    for _ in range(40):
        assert "ad/2" not in shown(service)["items"]
    service.ask("DELETE", "/v1/surfaces/ads/items/ad%201")
    detail = problem(service, "DELETE", "/v1/surfaces/ads/items/ad-3", status=422, kind="invalid")
    assert "must leave at least 2" in detail
    problem(service, "DELETE", "/v1/surfaces/ads/items/nothing", status=422, kind="invalid")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "Ads"}, "name"),
        ({"items": ["a", "a"]}, "must all be different"),
        ({"items": []}, "items"),
        ({"n_positions": 4}, "n_positions must be a whole number from 1 to 3"),
        ({"policy": "ucb-rang"}, "did you mean ucb-rank"),
        ({"policy": "top-rank"}, "must learn from counts alone"),
        ({"treatment": "fair"}, "treatment"),
        ({"treatment": "equal", "utility": "x"}, "utility"),
        ({"coefficient": 1.0}, "coefficient must be left out"),
        ({"attribution_seconds": 0}, "attribution_seconds"),
        ({"retired": ["ad 1"]}, "retired"),
    ],
)
def test_an_invalid_surface_is_refused(service: Running, change: dict, said: str) -> None:
    body = {**ADS, "name": "other", **change}
    assert said in problem(service, "POST", "/v1/surfaces", body, status=422, kind="invalid")
    assert len(service.ask("GET", "/v1/surfaces").json()["surfaces"]) == 1


def test_unknown_paths_and_methods_are_refused(service: Running) -> None:
    problem(service, "GET", "/v2", status=404, kind="not-found")
    problem(service, "GET", "/v1/feedback", status=405, kind="wrong-method")
    assert service.ask("GET", "/v1/feedback").headers["allow"] == "POST"


def test_a_body_must_be_small_json(service: Running) -> None:
    where = ("POST", "/v1/feedback")
    problem(service, *where, status=415, kind="wrong-content-type", content=b"{}")
    json_type = {"content-type": "application/json"}
    problem(service, *where, status=400, kind="malformed", content=b"{", headers=json_type)
    problem(service, *where, status=400, kind="malformed", content=b"\xff", headers=json_type)
    nested = b"[" * 100_000
    problem(service, *where, status=422, kind="invalid", content=nested, headers=json_type)
    large = b" " * (1 << 20) + b"{}"
    problem(service, *where, status=413, kind="too-large", content=large, headers=json_type)
    parts = iter([b" " * (1 << 19)] * 3)
    problem(service, *where, status=413, kind="too-large", content=parts, headers=json_type)


def test_health_readiness_and_metrics(service: Running) -> None:
    shown(service)
    assert service.ask("GET", "/healthz").json()["status"] == "ok"
    assert service.ask("GET", "/readyz").json()["status"] == "ok"
    metrics = service.ask("GET", "/metrics").text
    assert 'banditrank_requests_total{operation="rank",status="200"} 1.0' in metrics
    assert 'banditrank_counts_age_seconds{surface="ads"}' in metrics
    assert "banditrank_surfaces_out_of_sync 0.0" in metrics


def test_security_headers(service: Running) -> None:
    for path in ("/healthz", "/v1/surfaces", "/nowhere", "/openapi.json"):
        headers = service.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_equal_treatment_gives_all_users_the_same_ranking(service: Running) -> None:
    equal = {**ADS, "name": "equal", "treatment": "equal", "utility": "nash"}
    assert service.ask("POST", "/v1/surfaces", equal).status_code == 201
    asked = [
        service.ask("POST", "/v1/surfaces/equal/rankings", {"user_type": kind}).json()["items"]
        for kind in ("new", "old") * 5
    ]
    assert all(items == asked[0] for items in asked)


def test_a_surface_deleted_by_another_process_is_unknown(service: Running) -> None:
    for request in (("PATCH", {"keep_seconds": 90.0}), ("DELETE", None)):
        service.ask("POST", "/v1/surfaces", ADS | {"name": "gone"})
        service.engine.store.delete_surface("gone")
        problem(service, request[0], "/v1/surfaces/gone", request[1], status=404, kind="unknown-surface")


def test_an_unreadable_surface_can_be_deleted(service: Running) -> None:
    service.engine.store.create_surface("newer", '{"setting": 1}')
    problem(service, "GET", "/v1/surfaces/newer", status=503, kind="unavailable")
    assert service.ask("DELETE", "/v1/surfaces/newer").status_code == 204
    problem(service, "GET", "/v1/surfaces/newer", status=404, kind="unknown-surface")
