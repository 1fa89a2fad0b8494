"""Errors of the service name the field, the rule and the value, whichever part of it checks them."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from helpers.running_service import Running, running

from banditrank import Surface
from banditrank.engine._api_keys import create_key
from banditrank.engine._served_policies import SERVED_NAMES
from banditrank.engine._surface import Unreported
from banditrank.errors import InvalidInputError, UnknownFieldError, UnknownNameError
from banditrank.policies._base import Treatment
from banditrank.service import _body_validation as body_validation
from banditrank.service._schemas import CreateSurfaceRequest, FeedbackRequest
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2, "user_types": ["new", "old"]}
FEEDBACK = ", ".join(FeedbackRequest.__struct_fields__)
SURFACE = ", ".join(CreateSurfaceRequest.__struct_fields__)
HOSTILE = "<script>\n\x1b[31m" + "x" * 100_000

INVALID_SURFACES: list[tuple[dict[str, Any], str, str]] = [
    ({"n_positions": 0}, "n_positions", "n_positions must be a whole number from 1 to 100, got 0"),
    ({"n_positions": 101}, "n_positions", "n_positions must be a whole number from 1 to 100, got 101"),
    (
        {"n_positions": 4},
        "n_positions",
        "n_positions must be a whole number from 1 to 3, the number of active items, got 4",
    ),
    ({"n_positions": 1.5}, "n_positions", "n_positions must be a whole number from 1 to 100, got 1.5"),
    ({"n_positions": True}, "n_positions", "n_positions must be a whole number from 1 to 100, got True"),
    ({"n_positions": "2"}, "n_positions", "n_positions must be a whole number from 1 to 100, got '2'"),
    ({"n_positions": None}, "n_positions", "n_positions must be a whole number from 1 to 100, got None"),
    (
        {"n_positions": 10**30},
        "n_positions",
        "n_positions must be a whole number from 1 to 100, got 1000000000000000000000000000000",
    ),
    (
        {"name": "Ads"},
        "name",
        "name must be up to 64 of a-z, 0-9, dot, dash and underscore, a letter or digit first, got 'Ads'",
    ),
    (
        {"name": None},
        "name",
        "name must be up to 64 of a-z, 0-9, dot, dash and underscore, a letter or digit first, got None",
    ),
    ({"items": []}, "items", "items must be a list of 1 to 10,000 names, got 0"),
    ({"items": "abc"}, "items", "items must be a list of 1 to 10,000 names, got 'abc'"),
    ({"items": {"a": 1}}, "items", "items must be a list of 1 to 10,000 names, got {'a': 1}"),
    (
        {"items": [str(number) for number in range(10_001)]},
        "items",
        "items must be a list of 1 to 10,000 names, got 10001",
    ),
    ({"items": ["a", 5, "c"]}, "items[1]", "items[1] must be 1 to 200 printable characters, got 5"),
    ({"items": ["a", "b", ""]}, "items[2]", "items[2] must be 1 to 200 printable characters, got ''"),
    ({"items": ["a", "b\n"]}, "items[1]", r"items[1] must be 1 to 200 printable characters, got 'b\n'"),
    ({"items": ["a", ".."]}, "items[1]", "items[1] must not be . or .., got '..'"),
    ({"items": ["a", "b", "a"]}, "items", "items must all be different, got 'a'"),
    ({"user_types": []}, "user_types", "user_types must be a list of 1 to 1,000 names, got 0"),
    (
        {"user_types": ["x" * 201]},
        "user_types[0]",
        f"user_types[0] must be 1 to 200 printable characters, got '{'x' * 78}…",
    ),
    ({"treatment": "equa"}, "treatment", "treatment must be one of {} (did you mean equal?), got 'equa'"),
    ({"treatment": 5}, "treatment", "treatment must be one of {}, got 5"),
    (
        {"treatment": ["equal"]},
        "treatment",
        "treatment must be one of {} (did you mean equal?), got ['equal']",
    ),
    (
        {"unreported": "discard"},
        "unreported",
        "unreported must be one of {} (did you mean discarded?), got 'discard'",
    ),
    ({"policy": "ucb-rang"}, "policy", "policy must be one of {} (did you mean ucb-rank?), got 'ucb-rang'"),
    ({"coefficient": 1.0}, "coefficient", "coefficient must be left out for policy auto, got 1.0"),
    (
        {"attribution_seconds": 0.5},
        "attribution_seconds",
        "attribution_seconds must be a number from 1 to 7,776,000, got 0.5",
    ),
    (
        {"attribution_seconds": "1"},
        "attribution_seconds",
        "attribution_seconds must be a number from 1 to 7,776,000, got '1'",
    ),
    ({"refresh_seconds": -1}, "refresh_seconds", "refresh_seconds must be a number from 0 to 3,600, got -1"),
    (
        {"keep_seconds": 1e12},
        "keep_seconds",
        "keep_seconds must be a number from 60 to 315,360,000, got 1000000000000.0",
    ),
]
ALLOWED = {"treatment": get_args(Treatment), "unreported": get_args(Unreported), "policy": SERVED_NAMES}


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        yield service


def problem(service: Running, *request: object, **options: Any) -> tuple[str, str]:
    """Return the field and the detail of the problem that a request gets."""
    response = service.ask(*request, **options)
    document = response.json()
    assert (response.status_code, document["type"]) == (422, "urn:banditrank:problem:invalid"), document
    assert len(document["detail"]) < 1000
    assert document["detail"].isprintable()
    assert document["detail"].startswith(document["field"])
    return document["field"], document["detail"]


def with_sorted_names(message: str) -> str:
    """Return a message with the allowed names in alphabetical order: msgspec sorts those of a type."""
    return re.sub(
        r"must be one of ([^(]*?)(?= \(|, got|$)",
        lambda found: f"must be one of {', '.join(sorted(found[1].split(', ')))}",
        message,
    )


@pytest.mark.parametrize(("change", "field", "message"), INVALID_SURFACES)
def test_schema_and_engine_give_the_same_message(
    service: Running, change: dict[str, Any], field: str, message: str
) -> None:
    values = {**ADS, "name": "other", **change}
    expected = with_sorted_names(message.replace("{}", ", ".join(ALLOWED.get(field, ()))))
    with pytest.raises(InvalidInputError) as rejected:
        Surface.from_dict(values)
    assert (rejected.value.field, with_sorted_names(str(rejected.value))) == (field, expected)
    named, detail = problem(service, "POST", "/v1/surfaces", values)
    assert (named, with_sorted_names(detail)) == (field, expected)


def test_both_kinds_of_checks_are_compared() -> None:
    by_schema = 0
    for change, _, _ in INVALID_SURFACES:
        try:
            msgspec.convert({**ADS, **change}, CreateSurfaceRequest)
        except msgspec.ValidationError:
            by_schema += 1
    assert 15 < by_schema < len(INVALID_SURFACES) - 5


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        ("/v1/feedback", [], "body", "body must be an object, got []"),
        ("/v1/feedback", {}, "ranking", "ranking must be given, got []"),
        (
            "/v1/feedback",
            {"ranking": "r", "rewrad": 1},
            "rewrad",
            f"rewrad is not a field, must be one of {FEEDBACK} (did you mean reward?)",
        ),
        (
            "/v1/feedback",
            {"ranking": "r", "reward": 2},
            "reward",
            "reward must be a number from 0 to 1, got 2",
        ),
        (
            "/v1/feedback",
            {"ranking": "r", "clicked": 5},
            "clicked",
            "clicked must be 1 to 200 printable characters, a list of 0 to 100 elements or null, got 5",
        ),
        (
            "/v1/feedback/batch",
            {"feedback": [{"ranking": "r"}] * 3 + [{"ranking": "r", "reward": -1}]},
            "feedback[3].reward",
            "feedback[3].reward must be a number from 0 to 1, got -1",
        ),
        (
            "/v1/feedback/batch",
            {"feedback": [{"ranking": "r", "click": "a"}]},
            "feedback[0].click",
            f"feedback[0].click is not a field, must be one of {FEEDBACK} (did you mean clicked?)",
        ),
        (
            "/v1/feedback/batch",
            {"feedback": []},
            "feedback",
            "feedback must be a list of 1 to 1,000 elements, got 0",
        ),
        (
            "/v1/feedback/batch",
            {"feedback": [None]},
            "feedback[0]",
            "feedback[0] must be an object, got None",
        ),
        (
            "/v1/surfaces/ads/rankings",
            {"user_type": "odl"},
            "user_type",
            "user_type must be one of new, old (did you mean old?), got 'odl'",
        ),
        (
            "/v1/surfaces/ads/rankings/batch",
            {"user_types": ["new", "odl"]},
            "user_types[1]",
            "user_types[1] must be one of new, old (did you mean old?), got 'odl'",
        ),
        (
            "/v1/surfaces/ads/items",
            {"items": ["d", ""]},
            "items[1]",
            "items[1] must be 1 to 200 printable characters, got ''",
        ),
        (
            "/v1/surfaces",
            {**ADS, "n_position": 1},
            "n_position",
            f"n_position is not a field, must be one of {SURFACE} (did you mean n_positions?)",
        ),
        (
            "/v1/surfaces",
            {"name": "x", "items": ["a"]},
            "n_positions",
            "n_positions must be given, got ['items', 'name']",
        ),
    ],
)
def test_messages_name_field_rule_and_value(
    service: Running, path: str, body: object, field: str, message: str
) -> None:
    assert problem(service, "POST", path, body) == (field, message)


def test_errors_of_queries_paths_and_policies_name_a_field(service: Running) -> None:
    assert problem(service, "GET", "/v1/surfaces/ads/estimates?level=2")[0] == "level"
    assert problem(service, "GET", "/v1/surfaces/ads/series?since=now")[0] == "since"
    assert problem(service, "DELETE", "/v1/surfaces/ads/items/d") == (
        "items",
        "items must be one of a, b, c, got 'd'",
    )
    assert problem(service, "PUT", "/v1/surfaces/ads/items", {"items": ["a"]}) == (
        "items",
        "items must be at least 2, one for each position, got 1",
    )


def test_an_item_that_was_not_shown_is_named_in_a_batch(service: Running) -> None:
    ranking = service.ask("POST", "/v1/surfaces/ads/rankings", {"user_type": "new"}).json()
    body = {"feedback": [{"ranking": "forged"}, {"ranking": ranking["id"], "clicked": "z"}]}
    results = service.ask("POST", "/v1/feedback/batch", body).json()["results"]
    rejected = results[1]["problem"]
    assert rejected["field"] == "feedback[1].clicked"
    names = ", ".join(ranking["items"])
    assert rejected["detail"] == f"feedback[1].clicked must be one of {names}, got 'z'"
    assert "field" not in results[0]["problem"], "an unknown ranking is not invalid input"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/surfaces", HOSTILE),
        ("POST", "/v1/surfaces", {HOSTILE: 1}),
        ("POST", "/v1/surfaces", ADS | {"name": HOSTILE}),
        ("POST", "/v1/surfaces", ADS | {"policy": HOSTILE}),
        ("POST", "/v1/surfaces", ADS | {"treatment": HOSTILE}),
        ("POST", "/v1/surfaces", ADS | {"utility": HOSTILE, "treatment": "equal"}),
        ("POST", "/v1/surfaces", ADS | {"n_positions": [[HOSTILE]] * 5}),
        ("POST", "/v1/surfaces", ADS | {"items": [HOSTILE]}),
        ("PATCH", "/v1/surfaces/ads", {"unreported": {HOSTILE: HOSTILE}}),
        ("POST", "/v1/surfaces/ads/rankings", {"user_type": "\n" * 200}),
        ("POST", "/v1/feedback/batch", {"feedback": [{HOSTILE: HOSTILE}]}),
        ("DELETE", f"/v1/surfaces/ads/items/{'%0A' + 'x' * 5000}", None),
        ("GET", f"/v1/surfaces/ads/estimates?level={'9' * 5000}x", None),
    ],
)
def test_hostile_values_are_shortened(service: Running, method: str, path: str, body: object) -> None:
    problem(service, method, path, body)


def test_long_lists_of_allowed_names_are_shortened(service: Running) -> None:
    many = {**ADS, "name": "many", "items": [f"item-{number}-{'x' * 150}" for number in range(1000)]}
    assert service.ask("POST", "/v1/surfaces", many).status_code == 201
    response = service.ask("DELETE", "/v1/surfaces/many/items/item-9")
    assert " and 970 more" in response.json()["detail"]
    assert len(response.json()["detail"]) < 4000


def test_a_key_without_the_right_to_read_learns_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    keys = {rights: create_key(store, "page", rights.split()) for rights in ("rank", "administer")}
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    with running() as service:

        def headers(rights: str) -> dict[str, str]:
            return {"authorization": f"Bearer {keys[rights]}"}

        assert service.ask("POST", "/v1/surfaces", ADS, headers=headers("administer")).status_code == 201
        rank = "/v1/surfaces/ads/rankings"
        for path, body, field in (
            (rank, {"user_type": "odl"}, "user_type"),
            (f"{rank}/batch", {"user_types": ["new", "odl"]}, "user_types[1]"),
        ):
            assert problem(service, "POST", path, body, headers=headers("rank")) == (
                field,
                f"{field} must be a user type of the surface, got 'odl'",
            )


def test_a_body_without_a_known_rule_names_its_field() -> None:
    class Event(msgspec.Struct):
        at: msgspec.Raw | None = None
        code: bytes = b""

    content = b'{"code": 5}'
    with pytest.raises(msgspec.ValidationError) as rejected:
        msgspec.json.decode(content, type=Event)
    error = body_validation.body_error(Event, content, rejected.value)
    assert error.field == "code"


def test_rules_of_every_type() -> None:
    class Nested(msgspec.Struct, forbid_unknown_fields=True):
        is_on: bool = False
        names: list[str] | str | None = None
        by_position: dict[str, int] = {}

    for body, message in (
        ({"is_on": 1}, "is_on must be true or false, got 1"),
        ({"names": 5}, "names must be a list, a string or null, got 5"),
        ({"names": ["a", 1]}, "names[1] must be a string, got 1"),
        ({"by_position": {"1": "a"}}, "by_position.1 must be a whole number, got 'a'"),
        ({"by_position": []}, "by_position must be an object, got []"),
    ):
        content = msgspec.json.encode(body)
        with pytest.raises(msgspec.ValidationError) as rejected:
            msgspec.json.decode(content, type=Nested)
        assert str(body_validation.body_error(Nested, content, rejected.value)) == message


def test_errors_survive_pickling() -> None:
    import pickle

    for error in (UnknownFieldError("a.b", ["c"]), UnknownNameError("a", "b", ["c"]).within("d")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301
