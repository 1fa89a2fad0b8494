"""Learning over HTTP has the regret of the simulator, also with late feedback."""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
from helpers.live import seeded
from helpers.running_service import TIMEOUT_SECONDS, Running, running
from scipy.stats import ks_2samp

from banditrank import ThompsonRank, kdd2012, simulate
from banditrank.model._values import best_personalized_values, user_type_values

PROBLEM = kdd2012()
ITEMS = [f"ad-{number}" for number in range(PROBLEM.n_items)]
TYPES = ["male", "female"]
# Values of single looks; under the position-based model the most looked-at position is always looked at.
BEST = {"single-look": best_personalized_values(PROBLEM)}
LOOKS = PROBLEM.position_preferences / PROBLEM.position_preferences.max(axis=1, keepdims=True)
SCALES = 1 / PROBLEM.position_preferences.max(axis=1)
BEST["position-based"] = BEST["single-look"] * SCALES
MIN_P_VALUE = 0.001  # false-positive rate of the test over random seeds


def surface(name: str, **settings: object) -> dict:
    shape = {"items": ITEMS, "n_positions": PROBLEM.n_positions, "user_types": TYPES}
    return {"name": name, **shape, "refresh_seconds": 0, **settings}


def post(connection: HTTPConnection, path: str, body: dict) -> dict:
    """Send a request that must succeed; in a third of the time of httpx."""
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    received = response.read()
    assert response.status == 200, received
    return json.loads(received)


@contextmanager
def connected(*services: Running) -> Iterator[list[HTTPConnection]]:
    """Yield a connection to each service."""
    hosts = [service.address.removeprefix("http://") for service in services]
    connections = [HTTPConnection(host, timeout=TIMEOUT_SECONDS) for host in hosts]
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()


class Users:
    """Simulated users of Table 1, and their regret."""

    def __init__(
        self,
        name: str,
        services: list[HTTPConnection],
        seed: int,
        *,
        delay: int = 0,
        click_model: str = "single-look",
    ) -> None:
        self.name = name
        self.click_model = click_model
        self.services = services
        self.rng = np.random.default_rng(seed)
        self.delay = delay
        self.late: deque[dict] = deque()
        self.losses: list[float] = []

    def come(self, number: int) -> list[float]:
        """Simulate visits, and return the regret of each."""
        for _ in range(number):
            i = int(self.rng.choice(PROBLEM.n_user_types, p=PROBLEM.arrival_rates))
            service = self.services[int(self.rng.integers(len(self.services)))]
            shown = post(service, f"/v1/surfaces/{self.name}/rankings", {"user_type": TYPES[i]})
            numbers = [ITEMS.index(item) for item in shown["items"]]
            clicked = self.click(i, numbers)
            self.late.append({"ranking": shown["id"], "clicked": clicked, "final": True})
            scale = SCALES[i] if self.click_model == "position-based" else 1.0
            self.losses.append(BEST[self.click_model][i] - scale * user_type_values(PROBLEM, numbers)[i])
            while len(self.late) > self.delay:
                post(service, "/v1/feedback", self.late.popleft())
        return self.losses[-number:]

    def click(self, user_type: int, numbers: list[int]) -> str | list[str] | None:
        """Return what a user of a type clicks in a ranking."""
        likes = self.rng.random(len(numbers)) < PROBLEM.item_means[user_type, numbers]
        if self.click_model == "position-based":
            looks = self.rng.random(len(numbers)) < LOOKS[user_type]
            return [
                ITEMS[number] for number, is_clicked in zip(numbers, looks & likes, strict=True) if is_clicked
            ]
        k = int(self.rng.choice(PROBLEM.n_positions, p=PROBLEM.position_preferences[user_type]))
        return ITEMS[numbers[k]] if likes[k] else None


# The relative spread of the regret hardly depends on the rounds, so many short runs are better than few long
# ones: 16 runs of 60 rounds reject a service with 1.5 times the regret with a power of 0.84 and 0.90, and one
# that does not learn with 1.00. Long runs also notice if learning slows down later.
@pytest.mark.parametrize("click_model", ["single-look", "position-based"])
@pytest.mark.parametrize(("rounds", "runs"), [(60, 16), pytest.param(500, 8, marks=pytest.mark.campaign)])
def test_regret_has_the_simulators_distribution(
    monkeypatch: pytest.MonkeyPatch, rounds: int, runs: int, click_model: str
) -> None:
    monkeypatch.setattr("banditrank.engine._engine.seeded_bytes", lambda: seeded(3))
    settings = {"replications": 400, "seed": 5, "click_model": click_model}
    simulated = simulate(ThompsonRank(), PROBLEM, horizon=rounds, **settings)
    live = []
    with running() as service, connected(service) as connections:
        for seed in range(runs):
            made = surface(f"run-{seed}", click_model=click_model)
            assert service.ask("POST", "/v1/surfaces", made).status_code == 201
            users = Users(f"run-{seed}", connections, seed, click_model=click_model)
            live.append(sum(users.come(rounds)))
    assert ks_2samp(live, simulated.final_regret).pvalue > MIN_P_VALUE, np.median(live)


def test_late_feedback_to_two_replicas_still_converges(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'shared.db'}"
    with (
        running(store=store) as one,
        running(store=store) as two,
        connected(one, two) as connections,
    ):
        assert one.ask("POST", "/v1/surfaces", surface("late", refresh_seconds=0.05)).status_code == 201
        users = Users("late", connections, 1, delay=300)
        at_first = np.mean(users.come(300))
        users.come(1200)
        in_the_end = np.mean(users.come(300))
    # Of 1,000 simulated runs with such a delay the least began with 0.13; the worst ended with 0.35 of that.
    assert at_first > 0.1
    assert in_the_end < at_first / 2
