"""Made-up documents of the dashboard's API, of any size: what the page is shown in tests."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

START = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)
BUCKET_SECONDS = 1800
N_BUCKETS = 48

Document = dict[str, Any]
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Made:
    """A surface that was made up, and what the service says of it."""

    dashboard: Document
    series: Document
    surface: Document

    @property
    def name(self) -> str:
        return self.dashboard["surface"]["name"]


def make(
    name: str = "search-ads",
    *,
    types: tuple[str, ...] = ("Male", "Female"),
    items: tuple[str, ...] = ("Ad 1", "Ad 2", "Ad 3", "Ad 4", "Ad 5"),
    n_positions: int = 2,
    treatment: str = "personalized",
    utility: str = "utilitarian",
    truth: bool = True,
    rounds: int = 51_209,
    retired: tuple[str, ...] = (),
    seed: int = 3,
) -> Made:
    """Make up a world, estimates near it and a day of visits; without rounds nothing is known."""
    rng = np.random.default_rng(seed)
    n = len(types)
    preferences = np.sort(rng.dirichlet(np.full(n_positions, 4.0), size=n), axis=1)
    means = rng.uniform(0.05, 0.9, size=(n, len(items)))
    arrivals = rng.dirichlet(np.full(n, 8.0))
    width = 0.9 / np.sqrt(np.maximum(rounds, 4) / 30) + 0.01
    positions = _estimates(rng, preferences, width / 3, truth)
    learned = _estimates(rng, means, width * 2, truth)
    for row in learned:
        for one in row:
            one |= {"n": round(float(rng.uniform(80, 9000)), 1), "c": int(rng.integers(10, 80))}
    present = [index for index, item in enumerate(items) if item not in retired]
    estimated = (_middle(positions), _middle(learned))
    own = [_best(*estimated, np.eye(n)[i], n_positions, present) for i in range(n)]
    everyone = _best(*estimated, arrivals, n_positions, present)
    even = _best(*estimated, np.full(n, 1 / n), n_positions, present)
    fair = [
        _treatment("personalized", None, own, estimated, (preferences, means), arrivals, truth),
        _treatment("equal", "utilitarian", [everyone] * n, estimated, (preferences, means), arrivals, truth),
        _treatment(
            "equal",
            "nash" if utility == "utilitarian" else utility,
            [even] * n,
            estimated,
            (preferences, means),
            arrivals,
            truth,
        ),
    ]
    for one in fair[1:]:
        price = max(0.0, 1 - float(arrivals @ one["value"]) / float(arrivals @ fair[0]["value"]))
        one["price"] = {"m": price, "lo": max(0.0, price - 0.01), "hi": price + 0.012}
    equal = treatment == "equal"
    live = fair[0] if not equal else fair[1] if utility == "utilitarian" else fair[2]
    known = rounds > 0
    displays = rng.integers(0, 40, size=(n, n_positions, len(items)))
    for i, ranking in enumerate(live["rankings"]):
        displays[i, range(n_positions), ranking] += 4000
    return Made(
        dashboard={
            "surface": {
                "id": name,
                "name": name,
                "treatment": treatment,
                "utility": utility,
                "policy": "thompson-rank",
                "items": list(items),
                "types": list(types),
                "retired": list(retired),
                "n_positions": n_positions,
                "window_s": 1800,
                "demo": truth,
            },
            "as_of": _time(N_BUCKETS * BUCKET_SECONDS + 7),
            "level": 0.95,
            "truth": truth,
            "counts_age_s": 0.8,
            "rounds": rounds,
            "arrivals": arrivals.tolist() if known else [1 / n] * n,
            "now": _now(live, equal=equal) if known else [],
            "recent": _recent(rng, live["rankings"], n) if known else [],
            "positions": positions,
            "items": learned,
            "fair": fair if known else [],
            "fair_price": fair[2]["price"] if known else None,
            "displays": displays.tolist() if known else np.zeros_like(displays).tolist(),
            "health": _health(rng),
        },
        series=_series(
            rng, arrivals, live, means, preferences, truth=truth, n_buckets=N_BUCKETS if known else 0
        ),
        surface={
            "name": name,
            "items": [{"name": item, "retired": item in retired} for item in items],
            "n_positions": n_positions,
            "user_types": list(types),
            "policy": "auto",
            "treatment": treatment,
            "utility": utility,
            "coefficient": None,
            "attribution_seconds": 1800.0,
            "unreported": "not-clicked",
            "refresh_seconds": 0.25,
            "keep_seconds": 2592000.0,
            "revision": 1,
            "version": 12,
            "rounds": rounds,
        },
    )


def explanation(made: Made, ranking: str) -> Document:
    """Make up what the service says of one ranking."""
    surface = made.dashboard["surface"]
    shown = made.dashboard["now"][0]["ranking"]
    names = [surface["items"][item] for item in shown]
    equal = surface["treatment"] == "equal"
    preferences = [one["m"] for one in made.dashboard["positions"][0]]
    return {
        "id": ranking,
        "surface": surface["name"],
        "user_type": surface["types"][0],
        "items": names,
        "issued": (START + timedelta(hours=24)).timestamp(),
        "expires": (START + timedelta(hours=25)).timestamp(),
        "revision": 1,
        "version": 12,
        "rounds": made.dashboard["rounds"],
        "policy": "thompson-rank",
        "treatment": surface["treatment"],
        "utility": surface["utility"] if equal else None,
        "reproduced": True,
        "outcome": {"state": "clicked", "item": names[0], "reward": 1.0},
        "basis": "draw",
        "type_entered": not equal,
        "beliefs": [
            {"user_type": name, "weight": share, "position_preferences": preferences, "value": 0.71}
            for name, share in zip(surface["types"], made.dashboard["arrivals"], strict=True)
        ][: None if equal else 1],
        "shown": [
            {
                "position": k + 1,
                "item": name,
                "look": preferences[k],
                "mean": 0.61,
                "value": 0.61 * preferences[k],
            }
            for k, name in enumerate(names)
        ],
        "left_out": [
            {"item": item, "mean": 0.41, "instead_of": names[0], "gain": -0.0213}
            for item in surface["items"]
            if item not in names
        ][:5],
        "reason": f"thompson-rank drew a world from the counts of version 12, in which {names[0]} was best.",
    }


def last_bucket(series: Document) -> Document:
    """Return a series of the last bucket alone."""
    count = len(series["visits"])
    cut = {
        name: values[-1:] if isinstance(values, list) and len(values) == count else values
        for name, values in series.items()
    }
    return cut | {"start": _time((count - 1) * BUCKET_SECONDS)}


def _time(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def _estimates(
    rng: np.random.Generator,
    true: Array,
    width: float,
    truth: bool,  # noqa: FBT001 - a value of a document
) -> list[list[Document]]:
    rows = []
    for row in true.tolist():
        ones = []
        for value in row:
            middle = min(0.98, max(0.01, value + float(rng.normal()) * width / 4))
            one = {"m": middle, "lo": max(0.0, middle - width / 2), "hi": min(1.0, middle + width / 2)}
            ones.append(one | ({"t": value} if truth else {}))
        rows.append(ones)
    return rows


def _middle(rows: list[list[Document]]) -> Array:
    return np.array([[one["m"] for one in row] for row in rows])


def _best(
    preferences: Array, means: Array, weights: Array, n_positions: int, present: list[int]
) -> list[int]:
    """Return a good ranking: the items liked most, the best where most is looked at."""
    liked = weights @ means
    chosen = sorted(present, key=lambda item: -liked[item])[:n_positions]
    order = np.argsort(-(weights @ preferences), kind="stable")
    ranking = [0] * n_positions
    for item, position in zip(chosen, order.tolist(), strict=True):
        ranking[position] = item
    return ranking


def _worth(world: tuple[Array, Array], rankings: list[list[int]]) -> list[float]:
    preferences, means = world
    return [float(preferences[i] @ means[i, ranking]) for i, ranking in enumerate(rankings)]


def _treatment(
    treatment: str,
    utility: str | None,
    rankings: list[list[int]],
    estimated: tuple[Array, Array],
    true: tuple[Array, Array],
    _arrivals: Array,
    truth: bool,  # noqa: FBT001 - a value of a document
) -> Document:
    value = _worth(estimated, rankings)
    made = {
        "treatment": treatment,
        "utility": utility,
        "rankings": rankings,
        "value": value,
        "lo": [max(0.0, one - 0.011) for one in value],
        "hi": [min(1.0, one + 0.012) for one in value],
    }
    return made | ({"true": _worth(true, rankings)} if truth else {})


def _now(live: Document, *, equal: bool) -> list[Document]:
    entries = []
    for i, ranking in enumerate(live["rankings"][: 1 if equal else None]):
        pick = (lambda values: values) if equal else (lambda values, i=i: values[i])
        entries.append(
            {
                "ranking": ranking,
                "value": pick(live["value"]),
                "lo": pick(live["lo"]),
                "hi": pick(live["hi"]),
                "p_best": 0.638 if equal or i % 2 else 0.996,
                "shown_last_1000": 0.597 if equal or i % 2 else 0.993,
                "runner_up": {"ranking": ranking[::-1], "delta": -0.0618}
                | ({"lo": -0.13, "hi": 0.01} if equal or i % 2 else {"lo": -0.1, "hi": -0.02})
                if len(ranking) > 1
                else None,
            }
        )
    return entries


def _recent(rng: np.random.Generator, rankings: list[list[int]], n_types: int) -> list[Document]:
    recent = []
    for index in range(8):
        kind = int(rng.integers(n_types))
        ranking = rankings[kind]
        why = ("best", "order", "item")[index % 3]
        recent.append(
            {
                "id": f"AbCd{index:04d}{rng.bytes(12).hex()}",
                "at": _time(N_BUCKETS * BUCKET_SECONDS + 7 - 1.3 * index),
                "type": kind,
                "ranking": ranking[::-1] if why == "order" else ranking,
                "why": why,
                "feedback": "waiting" if index < 2 else "clicked" if index % 2 else "none",
                "item": ranking[0] if index >= 2 and index % 2 else None,
            }
        )
    return recent


def _series(
    rng: np.random.Generator,
    arrivals: Array,
    live: Document,
    means: Array,
    preferences: Array,
    *,
    truth: bool,
    n_buckets: int,
) -> Document:
    buckets = np.arange(n_buckets)
    totals = (120 + 30 * buckets).astype(int)
    visits = np.array([rng.multinomial(total, arrivals) for total in totals], dtype=int)
    visits = visits.reshape(n_buckets, len(arrivals))
    best = np.array(live.get("true", live["value"]))
    random = means.mean(axis=1) * preferences.sum(axis=1)
    share = np.exp(-buckets / 10)[:, None]
    clicks = rng.binomial(visits, share * random + (1 - share) * best)
    optimum = float(arrivals @ best)
    regret = np.cumsum((visits * share * np.maximum(best - random, 0.01)).sum(axis=1))
    made = {
        "start": _time(0),
        "bucket_s": BUCKET_SECONDS,
        "visits": visits.tolist(),
        "clicks": clicks.tolist(),
        "other_item": (0.6 * share[:, 0]).tolist(),
        "other_order": (0.05 + 0.2 * share[:, 0]).tolist(),
        "optimum": [optimum] * n_buckets,
        "optimum_lo": [optimum - 0.02] * n_buckets,
        "optimum_hi": [optimum + 0.02] * n_buckets,
        "random": [float(arrivals @ random)] * n_buckets,
        "optimum_by_type": best.tolist(),
        "random_by_type": random.tolist(),
        "events": [{"at": _time(25 * BUCKET_SECONDS), "t": "service restarted"}],
    }
    return made | ({"regret": regret.tolist()} if truth else {})


def _health(rng: np.random.Generator) -> list[Document]:
    checks = [
        ("Ranking age", "0.8 s", "behind the newest counts", "5 s", "ok"),
        ("Feedback delay", "95 s", "median, 74 min at the 95th percentile", "60 min", "warn"),
        ("Pending", "214", "rankings wait for feedback, oldest 22 min", "30 min", "ok"),
        ("Events", "0.8/s", "rankings, 0.8/s feedback", "none", "ok"),
        ("Refused", "3", "unknown ids, 0 conflicts in the last hour", "1% of events", "ok"),
        ("Store", "SQLite", "12.4 MB, last commit 0.2 s ago, 6 ms at the 99th percentile", "50 ms", "ok"),
    ]
    return [
        {"n": n, "v": v, "d": d, "l": limit, "s": s, "hour": rng.uniform(0, 9, 30).round(2).tolist()}
        for n, v, d, limit, s in checks
    ]
