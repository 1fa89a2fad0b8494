"""Made-up documents of the dashboard's API, of any size.

They have the types of `banditrank.dashboard._document_schemas`, which a test checks.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
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
    """Documents of a made-up surface."""

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
    click_model: str = "single-look",
    truth: bool = True,
    rounds: int = 51_209,
    retired: tuple[str, ...] = (),
    seed: int = 3,
) -> Made:
    """Make up a problem, estimates near it and a day of visits; without rounds there are no estimates."""
    rng = np.random.default_rng(seed)
    n = len(types)
    preferences = np.sort(rng.dirichlet(np.full(n_positions, 4.0), size=n), axis=1)
    if click_model == "position-based":
        preferences /= preferences.max(axis=1, keepdims=True)
    means = rng.uniform(0.05, 0.9, size=(n, len(items)))
    arrivals = rng.dirichlet(np.full(n, 8.0))
    width = float(0.9 / np.sqrt(max(rounds, 4) / 30) + 0.01)
    positions = _estimates(rng, preferences, width / 3, truth)
    learned = _estimates(rng, means, width * 2, truth)
    for row in learned:
        for one in row:
            one |= {
                "expected_looks": round(float(rng.uniform(80, 9000)), 1),
                "clicks": float(rng.integers(10, 80)),
            }
    present = [index for index, item in enumerate(items) if item not in retired]
    estimated = (_middle(positions), _middle(learned))
    own = [_best(*estimated, np.eye(n)[i], n_positions, present) for i in range(n)]
    everyone = _best(*estimated, arrivals, n_positions, present)
    even = _best(*estimated, np.full(n, 1 / n), n_positions, present)
    fair = [
        _treatment(own, estimated, (preferences, means), truth=truth),
        _treatment([everyone], estimated, (preferences, means), "utilitarian", truth=truth),
        _treatment(
            [even],
            estimated,
            (preferences, means),
            "nash" if utility == "utilitarian" else utility,
            truth=truth,
        ),
    ]
    for one in fair[1:]:
        price = max(0.0, 1 - float(arrivals @ one["value"]) / float(arrivals @ fair[0]["value"]))
        one["price"] = {"estimate": price, "low": max(0.0, price - 0.01), "high": price + 0.012}
    equal = treatment == "equal"
    live = fair[0] if not equal else fair[1] if utility == "utilitarian" else fair[2]
    known = rounds > 0
    displays = rng.integers(0, 40, size=(n, n_positions, len(items)))
    rankings = live["rankings"] * n if equal else live["rankings"]
    for i, ranking in enumerate(rankings):
        displays[i, range(n_positions), ranking] += 4000
    series = _series(
        rng,
        arrivals,
        live,
        _random_order(means, preferences),
        truth=truth,
        n_buckets=N_BUCKETS if known else 0,
    )
    return Made(
        dashboard={
            "surface": {
                "name": name,
                "treatment": treatment,
                "utility": utility,
                "policy": "thompson-rank",
                "click_model": click_model,
                "items": list(items),
                "user_types": list(types),
                "retired": list(retired),
                "n_positions": n_positions,
                "attribution_seconds": 1800.0,
                "experiment": None,
            },
            "as_of": _time(N_BUCKETS * BUCKET_SECONDS + 7),
            "level": 0.95,
            "has_true_values": truth,
            "counts_age_seconds": 0.8,
            "compiling": None,
            "compiling_seconds": None,
            "estimated_from": {
                "at": _time(N_BUCKETS * BUCKET_SECONDS + 7),
                "version": 12,
                "rounds": rounds,
            },
            "version": 12,
            "rounds": rounds,
            "arrival_rates": arrivals.tolist() if known else [1 / n] * n,
            "started_at": series["start"] if known else None,
            "last_hour": _last_hour(series, n),
            "optimum": [
                {"estimate": best, "low": best - width, "high": best + width}
                for best, width in zip(
                    live.get("true_values", live["value"]), [0.0 if truth else 0.02] * n, strict=True
                )
            ],
            "is_optimum_exact": True,
            "random": _random_order(means, preferences).tolist(),
            "best_rankings": _now(live, n, equal=equal) if known else [],
            "latest_rankings": _recent(rng, rankings, n, len(items)) if known else [],
            "positions": positions,
            "items": learned,
            "treatments": fair if known else [],
            "lottery": None,
            "displays": displays.tolist() if known else np.zeros_like(displays).tolist(),
            "health": _health(rng),
        },
        series=series,
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
            "click_model": click_model,
            "allow_short_rankings": False,
            "guarantees": [],
            "experiment": None,
            "revision": 1,
            "version": 12,
            "rounds": rounds,
        },
    )


def by_lottery(made: Made) -> Made:
    """Return a surface with equal treatment as one with a lottery and guarantees."""
    document = deepcopy(made.dashboard)
    surface, (now,), fixed = document["surface"], document["best_rankings"], document["treatments"][-1]
    surface["treatment"] = "equal-lottery"
    odds, values = [0.625, 0.375], now["value"]
    rankings = [now["ranking"], now["ranking"][::-1]]
    unknown = {"probability_best": None, "loss": None, "runner_up": None}
    document["best_rankings"] = [
        now | unknown | {"ranking": ranking, "probability": probability}
        for ranking, probability in zip(rankings, odds, strict=True)
    ]
    own = {"treatment": "equal-lottery", "rankings": rankings, "probabilities": odds}
    document["treatments"].append(fixed | own)
    kept = {"level": 0.05, "expected": 0.05, "price": 0.284, "realised": 0.048, "low": 0.041, "high": 0.055}
    missed = {"level": 0.2, "expected": 0.2, "price": 0.0, "realised": 0.15, "low": 0.13, "high": 0.17}
    document["lottery"] = {
        "rankings": rankings,
        "probabilities": odds,
        "user_types": [None, None],
        "value": values,
        "summary": "By the estimates, a lottery over 2 rankings raises the geometric mean of the user types' "
        "values from 0.312, under the best fixed ranking, to 0.345 clicks per visit (+10.6%).",
        "conflict": None,
        "guarantees": [
            {"name": f"exposure of {surface['items'][0]}", **kept, "is_kept": True},
            {"name": f"value of {surface['user_types'][0]}", **missed, "is_kept": False},
        ],
    }
    return replace(made, dashboard=document, surface=made.surface | {"treatment": "equal-lottery"})


def explanation(made: Made, ranking: str) -> Document:
    """Make up what the service says of one ranking."""
    surface = made.dashboard["surface"]
    shown = made.dashboard["best_rankings"][0]["ranking"]
    names = [surface["items"][item] for item in shown]
    equal = surface["treatment"] == "equal"
    preferences = [one["estimate"] for one in made.dashboard["positions"][0]]
    return {
        "id": ranking,
        "surface": surface["name"],
        "user_type": surface["user_types"][0],
        "items": names,
        "candidates": None,
        "pinned": {},
        "issued_at": (START + timedelta(hours=24)).isoformat(),
        "expires_at": (START + timedelta(hours=25)).isoformat(),
        "revision": 1,
        "version": 12,
        "rounds": made.dashboard["rounds"],
        "arm": None,
        "policy": "thompson-rank",
        "treatment": surface["treatment"],
        "utility": surface["utility"] if equal else None,
        "is_reproduced": True,
        "outcome": {
            "state": "clicked",
            "clicks": [{"item": names[0], "position": 1, "reward": 1.0}],
        },
        "basis": "posterior-sample",
        "is_type_used": not equal,
        "beliefs": [
            {"user_type": name, "weight": share, "position_preferences": preferences, "value": 0.71}
            for name, share in zip(surface["user_types"], made.dashboard["arrival_rates"], strict=True)
        ][: None if equal else 1],
        "shown_items": [
            {
                "position": k + 1,
                "item": name,
                "look": preferences[k],
                "mean": 0.61,
                "value": 0.61 * preferences[k],
            }
            for k, name in enumerate(names)
        ],
        "omitted_items": [
            {"item": item, "mean": 0.41, "instead_of": names[0], "gain": -0.0213}
            for item in surface["items"]
            if item not in names
        ][:5],
        "reason": f"thompson-rank sampled a problem from counts 12, in which {names[0]} was best.",
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
            if value == 1.0:
                middle = 1.0  # the most looked-at position, by definition
            one = {
                "estimate": middle,
                "low": max(0.0, middle - width / 2),
                "high": min(1.0, middle + width / 2),
            }
            ones.append(one | ({"true_value": value} if truth else {}))
        rows.append(ones)
    return rows


def _middle(rows: list[list[Document]]) -> Array:
    return np.array([[one["estimate"] for one in row] for row in rows])


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


def _values(problem: tuple[Array, Array], rankings: list[list[int]]) -> list[float]:
    preferences, means = problem
    return [float(preferences[i] @ means[i, ranking]) for i, ranking in enumerate(rankings)]


def _random_order(means: Array, preferences: Array) -> Array:
    return np.asarray(means.mean(axis=1) * preferences.sum(axis=1))


def _treatment(
    rankings: list[list[int]],
    estimated: tuple[Array, Array],
    true: tuple[Array, Array],
    utility: str | None = None,
    *,
    truth: bool,
) -> Document:
    each = rankings if utility is None else rankings * len(true[0])
    value = _values(estimated, each)
    most = max(1.0, float(estimated[0].sum(axis=1).max()))  # clicks per visit
    made = {
        "treatment": "personalized" if utility is None else "equal",
        "rankings": rankings,
        "value": value,
        "low": [max(0.0, one - 0.011) for one in value],
        "high": [min(most, one + 0.012) for one in value],
    }
    made |= {} if utility is None else {"utility": utility}
    return made | ({"true_values": _values(true, each)} if truth else {})


def _now(live: Document, n_types: int, *, equal: bool) -> list[Document]:
    entries = []
    for i, ranking in enumerate(live["rankings"]):
        pick = (lambda values: values) if equal else (lambda values, i=i: values[i])
        is_open = equal or i % 2
        difference = {"difference": -0.0618} | (
            {"low": -0.13, "high": 0.01} if is_open else {"low": -0.1, "high": -0.02}
        )
        entries.append(
            {
                "ranking": ranking,
                "value": pick(live["value"]),
                "low": pick(live["low"]),
                "high": pick(live["high"]),
                "probability_best": {"estimate": 0.638, "low": 0.59, "high": 0.684}
                if is_open
                else {"estimate": 0.9975, "low": 0.986, "high": 0.9996},
                "loss": {"estimate": 0.0034, "low": 0.0, "high": 0.0168}
                if is_open
                else {"estimate": 0.00002, "low": 0.0, "high": 0.0},
                "shown": {"share": 0.597, "n_rankings": 1000}
                if is_open
                else {"share": 0.993, "n_rankings": 480},
                "runner_up": {
                    "ranking": ranking[::-1],
                    **difference,
                    "by_user_type": [-0.0618] * (n_types if equal else 1),
                }
                if len(ranking) > 1
                else None,
            }
        )
    return entries


def _recent(
    rng: np.random.Generator, rankings: list[list[int]], n_types: int, n_items: int
) -> list[Document]:
    recent = []
    for index in range(8):
        kind = int(rng.integers(n_types))
        best = ranking = rankings[kind]
        why = ("best", "order", "item")[index % 3]
        others = [item for item in range(n_items) if item not in best]
        if why == "order":
            ranking = best[::-1]
        elif why == "item" and others:
            ranking = [others[0], *best[1:]]
        clicked = index >= 2 and index % 2 == 1
        recent.append(
            {
                "id": f"AbCd{index:04d}{rng.bytes(12).hex()}",
                "at": _time(N_BUCKETS * BUCKET_SECONDS + 7 - 1.3 * index),
                "user_type": kind,
                "ranking": ranking,
                "reason": why,
                "explored_items": [item for item in ranking if item not in best],
                "feedback": "clicked"
                if clicked
                else ("pending", "not-clicked", "unreported")[index // 2 % 3],
                "clicked": [ranking[0]] if clicked else [],
            }
        )
    return recent


def _last_hour(series: Document, n_types: int) -> Document:
    """Return what the last two buckets of a series hold."""
    visits, clicks = (np.array(series[name][-2:]).reshape(-1, n_types) for name in ("visits", "clicks"))
    known = len(visits) > 0
    return {
        "visits": visits.sum(axis=0).astype(int).tolist(),
        "clicks": clicks.sum(axis=0).astype(float).tolist(),
        "other_item": series["other_item"][-1] if known else None,
        "other_order": series["other_order"][-1] if known else None,
    }


def _series(
    rng: np.random.Generator,
    arrivals: Array,
    live: Document,
    random: Array,
    *,
    truth: bool,
    n_buckets: int,
) -> Document:
    buckets = np.arange(n_buckets)
    totals = (120 + 30 * buckets).astype(int)
    visits = np.array([rng.multinomial(total, arrivals) for total in totals], dtype=int)
    visits = visits.reshape(n_buckets, len(arrivals))
    best = np.array(live.get("true_values", live["value"]))
    share = np.exp(-buckets / 10)[:, None]
    rates = share * random + (1 - share) * best
    most = np.ceil(rates.max(initial=1.0)).astype(int)  # clicks per visit
    clicks = rng.binomial(most * visits, rates / most)
    regret = np.cumsum((visits * share * np.maximum(best - random, 0.01)).sum(axis=1))
    made = {
        "start": _time(0),
        "bucket_seconds": float(BUCKET_SECONDS),
        "visits": visits.tolist(),
        "clicks": clicks.astype(float).tolist(),
        "other_item": (0.6 * share[:, 0]).tolist(),
        "other_order": (0.05 + 0.2 * share[:, 0]).tolist(),
        "events": [{"at": _time(25 * BUCKET_SECONDS), "text": "service restarted"}],
    }
    return made | ({"regret": regret.tolist()} if truth else {})


def _health(rng: np.random.Generator) -> list[Document]:
    checks = [
        ("Counts age", "0.8 s", "behind the latest counts", "5 s", "ok"),
        ("Store sync", "0.2 s", "since the last sync with the store", "5 s", "ok"),
        ("Commits", "48.3 per second", "group commits of rankings and feedback", "none", "ok"),
        ("Refused", "0.3%", "of rankings and feedback were refused in the last minute", "1%", "ok"),
        (
            "Feedback delay",
            "26 min",
            "or less for 95% of the latest feedback, 2 min or less for half of it",
            "24 min",
            "warn",
        ),
        ("Pending", "214", "rankings wait for feedback, the oldest for 22 min", "none", "ok"),
    ]
    return [
        {
            "name": n,
            "value": v,
            "description": d,
            "limit": limit,
            "status": s,
            "last_hour": rng.uniform(0, 9, 30).round(2).tolist(),
        }
        for n, v, d, limit, s in checks
    ]
