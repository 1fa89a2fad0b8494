"""Experiments over HTTP: settings, arms of visitors, results, and the clients."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from helpers.running_service import Running, running

from banditrank.client import AsyncClient, Client
from banditrank.errors import ServiceError

ITEMS = ["a", "b", "c", "d", "e"]
SURFACE = {"name": "ads", "items": ITEMS, "n_positions": 2, "user_types": ["new", "old"]}
ARMS = [
    {"name": "hold-out", "share": 0.3},
    {"name": "editors", "share": 0.3, "policy": "fixed", "order": ["e", "d"]},
]
EXPERIMENT = {"name": "autumn", "arms": ARMS}
PATH = "/v1/surfaces/ads"


def update(service: Running, experiment: Any) -> dict[str, Any]:
    response = service.ask("PATCH", PATH, {"experiment": experiment})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("refresh_seconds", [0, 3600])  # in a thread, and in the event loop
def test_an_experiment_is_run_over_http(refresh_seconds: float) -> None:
    with running() as service, Client(service.address, timeout_seconds=60) as client:
        created = service.ask("POST", "/v1/surfaces", SURFACE | {"refresh_seconds": refresh_seconds})
        assert created.json()["experiment"] is None
        with pytest.raises(ServiceError, match="surface 'ads' has no experiment") as missing:
            client.experiment("ads")
        assert (missing.value.status, missing.value.error_type) == (404, "no-experiment")
        assert client.rank("ads", "new", visitor="ann").arm is None
        settings = update(service, EXPERIMENT)["experiment"]
        assert settings["level"] == 0.95
        assert settings["arms"][0] == ARMS[0] | {"policy": "random", "order": [], "is_learned_from": False}
        visitors = [f"visitor-{n}" for n in range(100)]
        shown = client.rank_batch("ads", ["new", "old"] * 50, visitors=visitors)
        assert [client.rank("ads", "old", visitor=one).arm for one in visitors[:9]] == [
            one.arm for one in shown[:9]
        ]
        visits = Counter(one.arm for one in shown)
        assert len(visits) == 3
        assert {one.items for one in shown if one.arm == "editors"} == {("e", "d")}
        for one in shown:
            assert client.feedback(one.id, clicked=one.items[0]) == "counted"
        results = client.experiment("ads")
        assert {arm["name"]: arm["visits"] for arm in results["arms"]} == visits
        assert results["periods"] == [
            {
                "shares": [0.4, 0.3, 0.3],
                "visits": [visits[name] for name in ("policy", "hold-out", "editors")],
            }
        ]
        assert service.ask("GET", PATH).json()["rounds"] == 100
        explanation = client.explain(next(one.id for one in shown if one.arm == "editors"))
        assert (explanation["arm"], explanation["policy"]) == ("editors", "fixed")
        assert explanation["is_reproduced"]
        assert update(service, None)["experiment"] is None
        assert client.rank("ads", "new").arm is None


def test_the_asynchronous_client_sends_visitors() -> None:
    async def ask(address: str) -> tuple[str | None, str | None, int]:
        async with AsyncClient(address, timeout_seconds=60) as client:
            shown = await client.rank("ads", "new", visitor="ann")
            (other,) = await client.rank_batch("ads", ["new"], visitors=["ann"])
            return shown.arm, other.arm, (await client.experiment("ads"))["visits"]

    with running() as service:
        service.ask("POST", "/v1/surfaces", SURFACE | {"experiment": EXPERIMENT})
        arm, other, visits = asyncio.run(ask(service.address))
        assert arm == other
        assert arm in ("policy", "hold-out", "editors")
        assert visits == 0


@pytest.mark.parametrize(
    ("experiment", "field"),
    [
        ({"name": "autumn"}, "experiment"),
        ({"name": "autumn", "arms": []}, "experiment.arms"),
        ({"name": "Autumn", "arms": ARMS}, "experiment.name"),
        ({"name": "autumn", "arms": [{"name": "a", "share": 2}]}, "experiment.arms[0].share"),
        ({"name": "autumn", "arms": [{"name": "policy", "share": 0.1}]}, "experiment.arms[0].name"),
        ({"name": "autumn", "arms": [ARMS[1] | {"order": ["e", "z"]}]}, "experiment.arms[0].order"),
        ({"name": "autumn", "arms": [ARMS[0] | {"policy": "best"}]}, "experiment.arms[0].policy"),
        ({"name": "summer", "arms": ARMS[:1]}, "experiment.arms"),
    ],
)
def test_invalid_experiments_name_the_field(experiment: dict, field: str) -> None:
    with running() as service:
        service.ask("POST", "/v1/surfaces", SURFACE | {"experiment": EXPERIMENT | {"name": "summer"}})
        response = service.ask("PATCH", PATH, {"experiment": experiment})
        assert response.status_code == 422
        assert response.json()["field"].startswith(field), response.text
        assert service.ask("GET", PATH).json()["experiment"]["name"] == "summer"


def test_invalid_visitors_are_rejected() -> None:
    with running() as service:
        service.ask("POST", "/v1/surfaces", SURFACE)
        for path, body, field in [
            ("/rankings", {"user_type": "new", "visitor": ""}, "visitor"),
            ("/rankings", {"user_type": "new", "visitor": "x" * 201}, "visitor"),
            ("/rankings/batch", {"user_types": ["new", "old"], "visitors": ["ann"]}, "visitors"),
        ]:
            response = service.ask("POST", PATH + path, body)
            assert (response.status_code, response.json()["field"]) == (422, field)
