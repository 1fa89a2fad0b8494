"""The JavaScript client in Node: rankings, default rankings, feedback and errors."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from helpers.javascript import run_node
from helpers.running_service import Running, running
from helpers.servers import free_port

from banditrank import ServiceError, ShownRanking
from banditrank.client._default_rankings import DefaultRankings
from banditrank.engine._api_keys import create_key
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

ADS = {"name": "ads", "items": ["ad 1", "ad/2", "ad-3"], "n_positions": 2, "user_types": ["new", "old"]}


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[Running, dict[str, str]]]:
    store = MemoryStore()
    keys = {
        "rank": create_key(store, "page", ["rank"]),
        "all": create_key(store, "all", ["rank", "read", "administer"]),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "open_store", lambda _: store)
        with running(require_keys=True) as service:
            headers = {"authorization": f"Bearer {keys['all']}"}
            assert service.ask("POST", "/v1/surfaces", ADS, headers=headers).status_code == 201
            yield service, keys


def test_a_ranking_and_its_feedback(service: tuple[Running, dict[str, str]], tmp_path: Path) -> None:
    running_service, keys = service
    printed = run_node(
        tmp_path,
        """
        const client = new BanditRank({ url: given.url + "/", apiKey: given.key, timeoutMs: 300_000 });
        const ranking = await client.rank("ads", "new");
        const { id, items, expiresAt, isDefault } = ranking;
        const feedback = { clicked: items[1], reward: 0.5 };
        const statuses = [await client.feedback(ranking, feedback), await client.feedback(ranking, feedback)];
        const conflict = await client.feedback(ranking).catch((error) => error);
        const other = await client.rank("ads", "old");
        statuses.push(await client.feedback({ id: other.id }));
        const isFuture = new Date(expiresAt) > new Date();
        print({ id, items, isDefault, isFuture, statuses, conflict, text: `${conflict}` });
        """,
        url=running_service.address,
        key=keys["rank"],
    )
    assert printed["statuses"] == ["counted", "repeated", "counted"]
    assert printed["id"]
    assert (printed["isDefault"], printed["isFuture"]) == (False, True)
    assert len(printed["items"]) == 2
    assert set(printed["items"]) <= set(ADS["items"])
    assert printed["conflict"]["status"] == 409
    assert printed["conflict"]["type"] == "urn:banditrank:problem:conflicting-feedback"
    assert printed["text"] == f"BanditRankError: {printed['conflict']['detail']}"
    counts = running_service.engine.surface("ads").counts().counts
    assert (counts.rounds, counts.rewards.sum()) == (2, 0.5)


def test_options_restrict_a_ranking_and_keep_a_visitor_in_its_arm(
    service: tuple[Running, dict[str, str]], tmp_path: Path
) -> None:
    running_service, keys = service
    headers = {"authorization": f"Bearer {keys['all']}"}
    arms = [{"name": "hold-out", "share": 0.5}]
    shelf = {**ADS, "name": "shelf", "items": list("abcde"), "experiment": {"name": "autumn", "arms": arms}}
    assert running_service.ask("POST", "/v1/surfaces", shelf, headers=headers).status_code == 201
    printed = run_node(
        tmp_path,
        """
        const client = new BanditRank({ url: given.url, apiKey: given.key, timeoutMs: 300_000 });
        const options = { candidates: ["b", "c", "d"], exclude: ["d"], pinned: { 2: "e" } };
        const rankings = [];
        for (const visitor of given.visitors)
          for (const userType of ["new", "old"])
            rankings.push(await client.rank("shelf", userType, { ...options, visitor }));
        const { error: only } = await client.rank("shelf", "new", { candidates: ["a"] });
        const stale = await client.rank("shelf", "new", { candidates: ["a", "b", "z"], exclude: ["y"] });
        print({ rankings, only, stale });
        """,
        url=running_service.address,
        key=keys["rank"],
        visitors=[f"visitor-{number}" for number in range(10)],
    )
    rankings = printed["rankings"]
    assert {tuple(one["items"]) for one in rankings} <= {("b", "e"), ("c", "e")}
    assert not any(one["isDefault"] for one in rankings)
    arms_of_visitors = [
        (one["arm"], other["arm"]) for one, other in zip(rankings[::2], rankings[1::2], strict=True)
    ]
    assert set(arms_of_visitors) == {("policy", "policy"), ("hold-out", "hold-out")}
    assert (printed["only"]["status"], printed["only"]["field"]) == (422, "candidates")
    assert (sorted(printed["stale"]["items"]), printed["stale"]["ignored"]) == (["a", "b"], ["z", "y"])
    explained = running_service.ask("GET", f"/v1/rankings/{rankings[0]['id']}", headers=headers).json()
    assert (explained["candidates"], explained["pinned"]) == (["b", "c"], {"2": "e"})


def test_refused_requests_are_answered_with_the_default_order_and_reported(
    service: tuple[Running, dict[str, str]], tmp_path: Path
) -> None:
    """Finding 12: any failure, 4xx included, returns the default order and is reported."""
    running_service, keys = service
    printed = run_node(
        tmp_path,
        """
        const reports = [];
        const onDefault = (...report) => reports.push(report);
        const settings = { url: given.url, defaultOrder: ["a"], timeoutMs: 300_000, onDefault };
        const client = new BanditRank({ ...settings, apiKey: given.key });
        const rankings = [
          await client.rank("../ads", "new"),
          await client.rank("ads", "nwe"),
          await new BanditRank(settings).rank("ads", "new"),
        ];
        const refused = await client.feedback({ id: "" }).catch((error) => error);
        const errors = [...reports.map(([, error]) => error), refused];
        const described = errors.map((error) => ({ ...error, isOurs: error instanceof BanditRankError }));
        print({ described, messages: reports.map(([message]) => message), rankings });
        """,
        url=running_service.address,
        key=keys["all"],
    )
    errors = printed["described"]
    unknown_surface, unknown_type, *_ = errors
    assert [error["status"] for error in errors] == [404, 422, 401, 422]
    assert [(each["id"], each["items"], each["isDefault"]) for each in printed["rankings"]] == [
        (None, ["a"], True)
    ] * 3
    assert printed["messages"] == [f"default ranking: {surface}" for surface in ("../ads", "ads", "ads")]
    for ranking, error in zip(printed["rankings"], errors, strict=False):
        received = ranking["error"]
        assert received.pop("message") == error["detail"]
        assert received == {
            name: error[name]
            for name in ("name", "status", "type", "title", "field", "request_id")
            if name in error
        }
    assert unknown_surface["type"] == "urn:banditrank:problem:unknown-surface"
    assert unknown_type["field"] == "user_type"
    assert "did you mean new?" in unknown_type["detail"]
    assert all(error["isOurs"] and error["request_id"] for error in errors)


@pytest.mark.parametrize("is_known", [True, False])
def test_rankings_are_plain_json(
    is_known: bool,  # noqa: FBT001
    service: tuple[Running, dict[str, str]],
    tmp_path: Path,
) -> None:
    """A server component can pass them to a client component: no Date, no Error, no undefined field."""
    running_service, keys = service
    are_equal, prototypes, ranking = run_node(
        tmp_path,
        """
        import { isDeepStrictEqual } from "node:util";
        const client = new BanditRank({ url: given.url, apiKey: given.key, timeoutMs: 300_000 });
        const ranking = await client.rank(given.surface, "new");
        const objects = [ranking, ranking.items, ranking.error ?? {}];
        const prototypes = objects.map((each) => Object.getPrototypeOf(each).constructor.name);
        print([isDeepStrictEqual(JSON.parse(JSON.stringify(ranking)), ranking), prototypes, ranking]);
        """,
        url=running_service.address,
        key=keys["rank"],
        surface="ads" if is_known else "unknown",
    )
    assert (are_equal, prototypes) == (True, ["Object", "Array", "Object"])
    assert ranking["isDefault"] is not is_known


def test_requests_are_never_cached(tmp_path: Path) -> None:
    """Next.js would otherwise show one ranking of the build to all visitors."""
    caches = run_node(
        tmp_path,
        """
        const caches = [];
        const issued = { id: "1", items: ["a"], expires_at: "2026-11-17T12:00:00Z", status: "counted" };
        globalThis.fetch = async (url, { cache }) => (caches.push(cache), Response.json(issued));
        const client = new BanditRank({ url: "http://s" });
        await client.feedback(await client.rank("ads", "new"));
        print(caches);
        """,
    )
    assert caches == ["no-store"] * 2


@pytest.mark.parametrize(
    "answer",
    [
        "[500, {detail: 'no'}]",
        "[503, '']",
        "[429, {}]",
        "[408, {}]",
        "[0]",
        "[]",  # never
        "[200, '<h1>Welcome</h1>']",
        "[200, {hello: 'world'}]",
        *(f"[{status}, {{detail: 'no'}}]" for status in (304, 401, 404, 422)),
        "[200, null]",
        "[200, {id: 5, items: ['a']}]",
        "[200, {id: '1', items: 'ab'}]",
        "[200, {id: '1', items: [{}]}]",
        '[200, \'{"id": "1", "items": [\']',
    ],
)
def test_the_default_order_is_returned_on_every_failure(answer: str, tmp_path: Path) -> None:
    """Finding 12: the default order is shown on every failure."""
    is_silent = answer == "[]"
    timeout_ms = 200 if is_silent else 300_000
    printed = run_node(
        tmp_path,
        f"""
        const service = await serve(() => {answer});
        const settings = {{ timeoutMs: {timeout_ms}, defaultOrder: ["a", "b"] }};
        const client = new BanditRank({{ url: service.url, ...settings }});
        const ranking = await client.rank("ads", "new");
        const status = await client.feedback(ranking, {{ clicked: "a" }});
        service.close();
        const error = ranking.error.name && ranking.error.message;
        print({{ ...ranking, error, status, n: service.requests.length }});
        """,
    )
    assert printed.pop("error")
    n_requests = printed.pop("n")
    assert n_requests == 1 or (is_silent and n_requests == 0)  # it may be late on a busy machine
    expected = {"id": None, "items": ["a", "b"], "expiresAt": None, "isDefault": True}
    assert printed == {**expected, "status": "ignored"}


def test_a_default_ranking_is_returned_whatever_the_caller_and_its_callback_do(tmp_path: Path) -> None:
    """Finding 12: no failure before or after the request rejects."""
    printed = run_node(
        tmp_path,
        """
        const warnings = [];
        console.warn = (message, error) => warnings.push([message, error.name]);
        const settings = { url: "http://127.0.0.1:" + given.port, defaultOrder: ["a", "b"] };
        const client = new BanditRank(settings);
        const throwing = new BanditRank({ ...settings, onDefault: () => { throw new Error("no"); } });
        const rejecting = new BanditRank({ ...settings, onDefault: async () => { throw new Error("no"); } });
        const circular = {};
        circular.self = circular;
        const rankings = [
          await client.rank("\\ud800", "new"),
          await client.rank("ads", "new", { candidates: null, exclude: null, pinned: null }),
          await client.rank("ads", "new", { circular }),
          await throwing.rank("ads", "new"),
          await rejecting.rank("ads", "new"),
        ];
        print({ items: rankings.map(({ items }) => items), warnings });
        """,
        port=free_port(),
    )
    assert printed["items"] == [["a", "b"]] * 5
    names = [name for _, name in printed["warnings"]]
    assert names == ["URIError", "TypeError", "TypeError"]


def test_an_unreachable_port_leads_to_a_default_ranking(tmp_path: Path) -> None:
    printed = run_node(
        tmp_path,
        """
        const client = new BanditRank({ url: given.url });
        print([await client.rank("ads", "new"), await client.rank("ads", "new", { defaultOrder: ["c"] })]);
        """,
        url=f"http://127.0.0.1:{free_port()}",
    )
    assert [(one["items"], one["isDefault"]) for one in printed] == [([], True), (["c"], True)]


def test_a_stored_order_may_be_missing(tmp_path: Path) -> None:
    """Finding 12: an order of null, as an empty sessionStorage has it, is that of the client, or none."""
    printed = run_node(
        tmp_path,
        """
        const stored = JSON.parse("null");
        const client = new BanditRank({ url: given.url, defaultOrder: ["a"] });
        const bare = new BanditRank({ url: given.url, defaultOrder: stored });
        print([await client.rank("ads", "new", { defaultOrder: stored }), await bare.rank("ads", "new")]);
        """,
        url=f"http://127.0.0.1:{free_port()}",
    )
    assert [ranking["items"] for ranking in printed] == [["a"], []]


def test_options_are_sent_with_the_key(tmp_path: Path) -> None:
    (ranking, feedback), headers = run_node(
        tmp_path,
        """
        const issued = { id: "1", items: ["a"], expires_at: "2026-11-17T12:00:00Z" };
        const service = await serve((n) => [200, n === 1 ? issued : { status: "recorded" }]);
        const client = new BanditRank({ url: service.url, apiKey: "br_key" });
        const options = { candidates: ["a", "b"], exclude: ["c"], pinned: { 1: "a" }, visitor: "v" };
        const ranking = await client.rank("a b/c", "new", { ...options, defaultOrder: ["x"] });
        await client.feedback(ranking, { clicked: ["a"], reward: 0.5, final: false });
        service.close();
        print([service.requests.map(({ path, body }) => [path, body]), service.requests[1].headers]);
        """,
    )
    assert ranking == [
        "/v1/surfaces/a%20b%2Fc/rankings",
        {
            "user_type": "new",
            "candidates": ["a", "b"],
            "exclude": ["c"],
            "pinned": {"1": "a"},
            "visitor": "v",
        },
    ]
    assert feedback == ["/v1/feedback", {"ranking": "1", "clicked": ["a"], "reward": 0.5, "final": False}]
    assert headers["authorization"] == "Bearer br_key"
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("answers", "result", "n_requests"),
    [
        ("[[503], [0], [200, {status: 'repeated'}]]", "repeated", 3),
        ("[[500], [429], [408], [200, {status: 'counted'}]]", "counted", 4),
        ("[[502, 'no'], [502, 'no'], [502, 'no'], [502, 'no']]", "the service responded with 502", 4),
        ("[[410, {detail: 'too late'}]]", "too late", 1),
    ],
)
def test_feedback_is_retried_where_that_may_help(
    answers: str, result: str, n_requests: int, tmp_path: Path
) -> None:
    printed = run_node(
        tmp_path,
        f"""
        const wait = globalThis.setTimeout;
        const delays = [];
        globalThis.setTimeout = (callback, ms, ...rest) => {{
          if (callback.name || !ms || ms >= 10_000) return wait(callback, ms, ...rest); // of fetch
          delays.push(ms);
          return wait(callback, 0);
        }};
        const answers = {answers};
        const service = await serve((n) => answers[n - 1]);
        const client = new BanditRank({{ url: service.url }});
        const sent = client.feedback({{ id: "1" }}, {{ clicked: "a" }});
        const result = await sent.catch((error) => error.message);
        service.close();
        print({{ result, delays, bodies: service.requests.map(({{ body }}) => JSON.stringify(body)) }});
        """,
    )
    assert printed["result"] == result
    assert printed["bodies"] == ['{"ranking":"1","clicked":"a"}'] * n_requests
    assert len(printed["delays"]) == n_requests - 1
    assert all(100 * 4**n <= delay <= 300 * 4**n for n, delay in enumerate(printed["delays"]))


def test_the_memory_of_rankings_is_bounded(tmp_path: Path) -> None:
    items = run_node(
        tmp_path,
        """
        const ranking = { id: "1", items: ["x"], expires_at: "2026-11-17T12:00:00Z" };
        const service = await serve((n) => (n <= 102 ? [200, ranking] : [500]));
        const client = new BanditRank({ url: service.url, defaultOrder: ["a"], timeoutMs: 300_000 });
        for (let type = 0; type < 100; type++) await client.rank("ads", `${type}`);
        await client.rank("ads", "0");
        await client.rank("ads", "100");
        const shown = [];
        for (const type of ["0", "1", "2", "99", "100"])
          shown.push(...(await client.rank("ads", type)).items);
        service.close();
        print(shown);
        """,
    )
    assert items == ["x", "a", "x", "x", "x"]


def test_a_key_that_cannot_be_sent_is_refused_at_once(tmp_path: Path) -> None:
    assert (
        run_node(
            tmp_path,
            """
        try { new BanditRank({ url: "http://s", apiKey: "br_€" }); print("accepted"); }
        catch (error) { print(error.name); }
        """,
        )
        == "TypeError"
    )


def _requests(rng: random.Random) -> dict[str, Any]:
    """Return rankings that were issued, and a request while the service is away."""

    def names(letters: str) -> list[str]:
        return rng.sample(letters, rng.randint(0, len(letters)))

    def options() -> dict[str, Any]:
        pins = dict(zip(names("1234")[:2], rng.sample("pqrs", 4), strict=False))
        every = {"candidates": names("abcdefgh"), "exclude": names("abcdp")[:3], "pinned": pins}
        return {name: value for name, value in every.items() if rng.random() < 0.5}

    issued = [{"items": names("abcdpq"), "options": options()} for _ in range(rng.randint(0, 2))]
    return {"issued": issued, "order": names("abcxyz"), "options": options()}


def test_both_clients_return_the_same_default_rankings(tmp_path: Path) -> None:
    rng = random.Random(1)  # noqa: S311 - reproducible, not secret
    cases = [_requests(rng) for _ in range(300)]
    shown = run_node(
        tmp_path,
        """
        let answer;
        globalThis.fetch = async () => answer;
        const results = [];
        for (const { issued, order, options } of given.cases) {
          const client = new BanditRank({ url: "http://s", defaultOrder: order });
          for (const one of issued) {
            answer = Response.json({ id: "1", items: one.items, expires_at: "2026-11-17T12:00:00Z" });
            await client.rank("ads", "new", one.options);
          }
          answer = new Response("", { status: 503 });
          results.push((await client.rank("ads", "new", options)).items);
        }
        print(results);
        """,
        cases=cases,
    )
    assert len({tuple(items) for items in shown}) > 100
    for case, items in zip(cases, shown, strict=True):
        rankings = DefaultRankings()
        for one in case["issued"]:
            ranking = ShownRanking("1", tuple(one["items"]), datetime.now(UTC))
            rankings.remember("ads", ["new"], [ranking], one["options"])
        (expected,) = rankings.make("ads", ["new"], case["order"], case["options"], ServiceError("away"))
        assert tuple(items) == expected.items, case
