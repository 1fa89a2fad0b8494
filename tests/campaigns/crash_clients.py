"""Clients of services that are killed, which record all acknowledgements.

Users click up to three times, and some clicks become purchases: each is feedback of its own. The ranking is
counted with the last feedback or, where impressions expire, perhaps when its window closes.
"""

import random
import threading
import time
from dataclasses import dataclass, field

import httpx

USER_TYPES = ("new", "old")
ITEMS = tuple(f"item-{number}" for number in range(6))
N_POSITIONS = 3
WINDOW = 2.0  # seconds until impressions expire
_SILENT = 0.2  # share of expiring impressions without feedback
_LATE = 0.2  # share of expiring impressions with feedback near their expiry
_OPEN = 0.3  # share of expiring impressions with clicks and no final feedback
CLICK, PURCHASE = 0.25, 1.0  # rewards


def surface(*, expiring: bool) -> dict:
    """Return the surface of the clients; expired impressions count or are discarded."""
    shape = {"name": "crash", "items": ITEMS, "n_positions": N_POSITIONS, "user_types": USER_TYPES}
    shape["click_model"] = "position-based"
    if expiring:
        return {**shape, "unreported": "not-clicked", "attribution_seconds": WINDOW}
    return {**shape, "unreported": "discarded"}


@dataclass
class Ranking:
    """Ranking that a client received, with the state of its feedback."""

    id: str
    user_type: str
    items: tuple[str, ...]
    clicks: list[tuple[str, float]]  # items and rewards, in the order in which they are reported
    is_final: bool = True  # whether the last feedback counts the ranking
    due: float = 0.0  # when it is reported
    acknowledged: bool = False  # whether the last feedback was
    rewards: dict[str, float] = field(default_factory=dict)  # the largest acknowledged ones, by item


class Client(threading.Thread):
    """Client that ranks and reports in a loop; feedback is retried until it is acknowledged or expired."""

    def __init__(self, addresses: list[str], seed: int, *, expiring: bool) -> None:
        super().__init__(daemon=True)
        self.addresses = addresses
        self.random = random.Random(seed)  # noqa: S311 - no secret
        self.expiring = expiring
        self.finished = threading.Event()  # start no new requests
        self.aborted = threading.Event()  # do not wait for pending requests
        self.asked = 0  # requested rankings, with or without a response
        self.rankings: list[Ranking] = []
        self.repeated = 0  # acknowledged as counted before: the first acknowledgement was lost
        self.refusals: list[str] = []

    def run(self) -> None:
        """Rank and report until the run ends."""
        late: list[Ranking] = []
        with httpx.Client(timeout=5, verify=False) as http:  # noqa: S501 - no TLS
            while not (self.finished.is_set() or self.aborted.is_set() or self.refusals):
                ranking = self.rank(http)
                if ranking is None:
                    continue
                self.rankings.append(ranking)
                lot = self.random.random() if self.expiring else 1.0
                if lot < _LATE:
                    ranking.due = time.monotonic() + self.random.uniform(0.0, 2 * WINDOW)
                    late.append(ranking)
                elif lot >= _LATE + _SILENT:
                    self.report(http, ranking)
                while late and late[0].due < time.monotonic():
                    self.report(http, late.pop(0))

    def rank(self, http: httpx.Client) -> Ranking | None:
        """Request a ranking."""
        user_type = self.random.choice(USER_TYPES)
        self.asked += 1
        shown = self.ask(http, "/v1/surfaces/crash/rankings", {"user_type": user_type})
        if shown is None:
            return None
        items = tuple(shown["items"])
        clicks = [(self.random.choice(items), CLICK) for _ in range(self.random.randrange(4))]
        clicks += [(item, PURCHASE) for item, _ in clicks if self.random.random() < 0.3]
        is_open = self.expiring and bool(clicks) and self.random.random() < _OPEN
        return Ranking(shown["id"], user_type, items, clicks, not is_open)

    def report(self, http: httpx.Client, ranking: Ranking) -> None:
        """Send each click, and that nothing more follows, until it is acknowledged or expired."""
        sent: set[tuple[str, float]] = set()
        for item, reward in ranking.clicks:
            status = self.send(http, {"ranking": ranking.id, "clicked": [item], "reward": reward})
            if status is not None:
                ranking.rewards[item] = max(reward, ranking.rewards.get(item, 0.0))
                is_expected = (item, reward) in sent or (item, PURCHASE) in sent
                self.repeated += status == "repeated" and not is_expected
            sent.add((item, reward))
        if ranking.is_final:
            status = self.send(http, {"ranking": ranking.id})
            ranking.acknowledged = status is not None
            self.repeated += status == "repeated"

    def send(self, http: httpx.Client, feedback: dict) -> str | None:
        """Send feedback until it is acknowledged, and return its status; None if it expired."""
        told = None
        while told is None and not self.aborted.is_set() and not self.refusals:
            told = self.ask(http, "/v1/feedback", feedback)
        return None if told is None else told.get("status")

    def ask(self, http: httpx.Client, path: str, body: dict) -> dict | None:
        """Return the response, or None if there is none."""
        try:
            response = http.post(self.random.choice(self.addresses) + path, json=body)
        except httpx.TransportError:
            time.sleep(0.02)
            return None
        if response.status_code == 503:
            return None
        if self.expiring and response.status_code in {409, 410}:  # expired: counted without a click
            return {}
        if response.status_code != 200:
            self.refusals.append(response.text)
            return None
        return dict(response.json())
