"""Routes of reports."""

import math
from collections.abc import Iterator

import pytest
from helpers.running_service import Running, running

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2, "user_types": ["new", "old"]}


@pytest.fixture
def service() -> Iterator[Running]:
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", {**ADS, "refresh_seconds": 0}).status_code == 201
        yield service


def play(service: Running, rounds: int) -> list[dict]:
    """Simulate users who click "a" at any position."""
    shown = []
    for number in range(rounds):
        ranking = service.ask(
            "POST", "/v1/surfaces/ads/rankings", {"user_type": ADS["user_types"][number % 2]}
        ).json()
        clicked = "a" if "a" in ranking["items"] else None
        service.ask("POST", "/v1/feedback", {"ranking": ranking["id"], "clicked": clicked})
        shown.append(ranking)
    return shown


@pytest.mark.parametrize("rounds", [0, 40])
def test_estimates_have_intervals(service: Running, rounds: int) -> None:
    play(service, rounds)
    report = service.ask("GET", "/v1/surfaces/ads/estimates?level=0.9").json()
    assert report["level"] == 0.9
    assert report["rounds"] == rounds
    for user_type in report["user_types"]:
        assert math.isclose(sum(position["estimate"] for position in user_type["positions"]), 1)
        shown = [each for each in user_type["items"] if each["displays"]]
        for estimate in (*user_type["positions"], *shown):
            assert 0 <= estimate["low"] <= estimate["estimate"] <= estimate["high"] <= 1
        for each in user_type["items"]:
            assert (each["estimate"] is None) == (each not in shown)
    if rounds:
        for user_type in report["user_types"]:
            a, *others = [each for each in user_type["items"] if each["displays"]]
            assert (a["item"], max(each["estimate"] for each in others)) == ("a", 0)
            assert a["estimate"] > 0


def test_limits_of_levels_are_those_of_the_openapi_document(service: Running) -> None:
    operation = service.ask("GET", "/openapi.json").json()["paths"]["/v1/surfaces/{surface}/estimates"]["get"]
    (level,) = [one["schema"] for one in operation["parameters"] if one["name"] == "level"]
    for limit, beyond in ((level["minimum"], 0.0), (level["maximum"], 1.0)):
        just_beyond = math.nextafter(limit, beyond)
        for asked, status in ((limit, 200), (just_beyond, 422)):
            response = service.ask("GET", f"/v1/surfaces/ads/estimates?level={asked!r}")
            assert response.status_code == status


@pytest.mark.parametrize("level", ["x", "2", "-1", "nan"])
def test_an_invalid_level_is_refused(service: Running, level: str) -> None:
    assert service.ask("GET", f"/v1/surfaces/ads/estimates?level={level}").status_code == 422


@pytest.mark.parametrize("rounds", [0, 40])
def test_equality_has_a_price(service: Running, rounds: int) -> None:
    play(service, rounds)
    report = service.ask("GET", "/v1/surfaces/ads/equality").json()
    assert 0 <= report["price_of_equality"] <= 1
    for user_type in report["user_types"]:
        assert user_type["equal_value"] <= user_type["personalized_value"] + 1e-12
    for treatment in ("personalized", "equal"):
        assert math.isclose(sum(item[treatment]["displays"] for item in report["items"]), 1)


def test_every_ranking_is_explained(service: Running) -> None:
    shown = play(service, 10)
    for ranking in shown:
        explained = service.ask("GET", f"/v1/rankings/{ranking['id']}").json()
        assert explained["items"] == ranking["items"]
        assert explained["is_reproduced"]
        assert explained["outcome"]["state"] in ("clicked", "not-clicked")
        assert explained["reason"].endswith(".")
    assert service.ask("GET", "/v1/rankings/forged").status_code == 404
