"""Clients: requests, results, errors and retries."""

import asyncio
import inspect
from collections.abc import Callable, Iterator

import httpx
import pytest
from helpers.running_service import Running, running

from banditrank import Feedback, Ranker, ServiceError
from banditrank.client import AsyncClient, Client
from banditrank.client import _asynchronous as asynchronous
from banditrank.client import _retries as retries
from banditrank.client import _synchronous as synchronous
from banditrank.errors import (
    ConflictingFeedbackError,
    ExpiredRankingError,
    InvalidInputError,
    UnknownRankingError,
)

ADS = {"items": ["ad 1", "ad/2", "ad-3"], "n_positions": 2, "user_types": ["new", "old"]}


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "backoff_seconds", lambda *_: 0.0)


@pytest.fixture
def service() -> Iterator[Running]:
    with running() as service:
        yield service


def test_all_methods_of_the_synchronous_client(service: Running) -> None:
    with Client(service.address, timeout_seconds=120) as client:
        assert client.create_surface("ads", **ADS)["rounds"] == 0
        shown = client.rank("ads", "new")
        assert client.feedback(shown.id, clicked=shown.items[0], reward=0.5) == "counted"
        assert client.feedback(shown.id, clicked=shown.items[0], reward=0.5) == "repeated"
        with pytest.raises(ConflictingFeedbackError):
            client.feedback(shown.id)
        with pytest.raises(UnknownRankingError):
            client.feedback("forged")
        several = client.rank_batch("ads", ["new", "old", "new"])
        assert [len(one.items) for one in several] == [len(shown.items)] * 3
        assert [client.feedback(one.id) for one in several] == ["counted"] * 3
        with pytest.raises(ServiceError, match="user_type"):
            client.rank_batch("ads", ["new", "unknown"])
        second = client.rank("ads", "old")
        results = client.feedback_batch([Feedback(second.id), Feedback("forged"), Feedback(shown.id)])
        assert results[0] == "counted"
        assert isinstance(results[1], UnknownRankingError)
        assert isinstance(results[2], ConflictingFeedbackError)
        assert client.add_items("ads", ["ad-4"])["items"][3] == {"name": "ad-4", "retired": False}
        assert client.retire_items("ads", ["ad/2"])["items"][1] == {"name": "ad/2", "retired": True}
        synced = client.sync_items("ads", ["ad 1", "ad/2", "ad-5"])
        assert synced["changes"] == {
            "added": ["ad-5"],
            "revived": ["ad/2"],
            "retired": ["ad-3", "ad-4"],
            "unchanged": 1,
        }
        assert client.add_items("ads", ["ad-5"])["changes"] == {
            "added": [],
            "revived": [],
            "retired": [],
            "unchanged": 3,
        }
        assert client.update_surface("ads", policy="ucb-rank")["policy"] == "ucb-rank"
        assert client.surface("ads") in client.surfaces()
        assert client.estimates("ads", level=0.8)["level"] == 0.8
        assert client.equality("ads")["surface"] == "ads"
        assert client.dashboard("ads")["surface"]["name"] == "ads"
        assert client.explain(shown.id)["items"] == list(shown.items)
        client.delete_surface("ads")
        with pytest.raises(ServiceError, match="Surface not found") as refused:
            client.surface("ads")
        assert (refused.value.status, refused.value.error_type) == (404, "unknown-surface")
        assert refused.value.request_id


def test_the_asynchronous_client_sends_concurrent_requests(service: Running) -> None:
    async def ask() -> list[str]:
        async with AsyncClient(service.address, timeout_seconds=120) as client:
            await client.create_surface("ads", **ADS)
            shown = await asyncio.gather(*(client.rank("ads", "new") for _ in range(20)))
            return await asyncio.gather(*(client.feedback(one.id, clicked=one.items[0]) for one in shown))

    assert asyncio.run(ask()) == ["counted"] * 20


def client_of(answer: Callable[[int], httpx.Response], asked: list[httpx.Request]) -> Client:
    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return answer(len(asked))

    return Client("http://service", max_retries=3, transport=httpx.MockTransport(handle))


@pytest.mark.parametrize("name", ["", ".", ".."])
@pytest.mark.parametrize(
    ("call", "before"),
    [
        ("rank", ()),
        ("surface", ()),
        ("update_surface", ()),
        ("delete_surface", ()),
        ("add_items", ()),
        ("sync_items", ()),
        ("retire_items", ()),
        ("retire_items", ("ads",)),
        ("estimates", ()),
        ("equality", ()),
        ("explain", ()),
    ],
)
def test_names_that_would_change_the_path_are_not_sent(call: str, before: tuple, name: str) -> None:
    asked: list[httpx.Request] = []
    has_more = call in ("rank", "add_items", "sync_items") or (call == "retire_items" and not before)
    after = ("x",) if has_more else ()
    invalid = [name] if before else name  # retire_items takes a list
    with (
        client_of(lambda _: httpx.Response(200, json={}), asked) as client,
        pytest.raises(InvalidInputError, match=r"must not be empty, \. or \.\., got"),
    ):
        getattr(client, call)(*before, invalid, *after)
    assert asked == []


def unreachable(error: type[httpx.TransportError]) -> Callable[[int], httpx.Response]:
    def fail(_: int) -> httpx.Response:
        raise error("gone")

    return fail


RANK = ("rank", ("ads", "new"))
FEEDBACK = ("feedback", ("id",))
UPDATE = ("update_surface", ("ads",))
ONCE = [  # a second one is refused
    ("create_surface", ("ads",)),
    ("delete_surface", ("ads",)),
    ("retire_items", ("ads", ["ad-3"])),
]
REPEATABLE = [("add_items", ("ads", ["ad-4"])), ("sync_items", ("ads", ["ad-3", "ad-4"]))]


@pytest.mark.parametrize(
    ("call", "answer", "times"),
    [
        (FEEDBACK, unreachable(httpx.ConnectError), 4),
        (FEEDBACK, unreachable(httpx.ReadTimeout), 4),
        (FEEDBACK, lambda _: httpx.Response(503), 4),
        (FEEDBACK, lambda _: httpx.Response(502), 4),
        (FEEDBACK, lambda _: httpx.Response(500), 1),
        (FEEDBACK, lambda _: httpx.Response(422), 1),
        (RANK, unreachable(httpx.ConnectError), 4),
        (RANK, unreachable(httpx.ReadTimeout), 1),
        (RANK, lambda _: httpx.Response(503), 4),
        (RANK, lambda _: httpx.Response(502), 1),
        (UPDATE, lambda _: httpx.Response(503), 4),
        *((call, lambda _: httpx.Response(503), 4) for call in REPEATABLE),
        *((call, lambda _: httpx.Response(503), 1) for call in ONCE),
        *((call, unreachable(httpx.ReadTimeout), 1) for call in ONCE),
        *((call, unreachable(httpx.ConnectError), 4) for call in ONCE),
    ],
)
def test_requests_are_retried_where_that_is_safe(
    call: tuple[str, tuple], answer: Callable[[int], httpx.Response], times: int
) -> None:
    asked: list[httpx.Request] = []
    with client_of(answer, asked) as client, pytest.raises(ServiceError):
        getattr(client, call[0])(*call[1])
    assert len(asked) == times


def test_a_retry_can_succeed() -> None:
    asked: list[httpx.Request] = []
    answers = {3: httpx.Response(200, json={"status": "repeated"})}
    with client_of(lambda number: answers.get(number, httpx.Response(503)), asked) as client:
        assert client.feedback("id") == "repeated"
    assert len({request.content for request in asked}) == 1


@pytest.mark.parametrize(("timeout", "waited"), [(5.0, 120.0), (200.0, 200.0)])
def test_calls_that_may_compile_code_have_a_longer_timeout(timeout: float, waited: float) -> None:
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={})

    with Client("http://service", timeout_seconds=timeout, transport=httpx.MockTransport(handle)) as client:
        client.create_surface("ads")
        client.update_surface("ads")
        client.surface("ads")
    others = dict.fromkeys(("connect", "write", "pool"), timeout)
    timeouts = [request.extensions["timeout"] for request in asked]
    assert timeouts == [others | {"read": seconds} for seconds in (waited, waited, timeout)]


def test_errors_are_raised_by_their_type() -> None:
    problem = {"type": "urn:banditrank:problem:expired", "title": "t", "status": 410, "detail": "too late"}
    with (
        client_of(lambda _: httpx.Response(410, json=problem), []) as client,
        pytest.raises(ExpiredRankingError, match="too late"),
    ):
        client.feedback("id")


def test_the_key_is_sent_and_not_shown() -> None:
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(401, text="no")

    with (
        Client("http://service", api_key="br_secret", transport=httpx.MockTransport(handle)) as client,
        pytest.raises(ServiceError) as refused,
    ):
        client.surfaces()
    assert asked[0].headers["authorization"] == "Bearer br_secret"
    assert "br_secret" not in str(refused.value)


def test_backoff_grows_and_respects_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    delays = [retries.backoff_seconds(attempt, None) for attempt in range(1, 11)]
    assert all(0.04 < delay <= 5 for delay in delays)
    assert max(delays) > 2
    assert retries.backoff_seconds(1, "3") >= 1.5
    assert retries.backoff_seconds(1, "²") <= 0.1, "a digit, but not a number"


AWAITS = {
    "    def close": "    async def aclose",
    "_http.close()": "_http.aclose()",
    "self.close()": "await self.aclose()",
    "    def __enter__": "    async def __aenter__",
    "    def __exit__": "    async def __aexit__",
    "    def ": "    async def ",
    "    async def __init__": "    def __init__",
    "self._send(": "await self._send(",
    "self._rank(": "await self._rank(",
    "call_within(limit, self._send, call, limit)": "await asyncio.wait_for(self._send(call, limit), limit)",
    "from banditrank.client._time_limit import call_within\n": "",
    "self._http.": "await self._http.",
    "with await self._http.stream": "async with self._http.stream",
    "for part in response.iter_bytes": "async for part in response.aiter_bytes",
    "self._request(": "await self._request(",
    "time.sleep": "await asyncio.sleep",
    "import time": "import asyncio",
    "httpx.BaseTransport": "httpx.AsyncBaseTransport",
    "httpx.Client": "httpx.AsyncClient",
    '"""Synchronous client': '"""Asynchronous client',
    """    >>> with Client(transport=httpx.MockTransport(handle)) as client:
    ...     client.feedback("id", clicked="ad-1")
""": """    >>> async def send() -> str:
    ...     async with AsyncClient(transport=httpx.MockTransport(handle)) as client:
    ...         return await client.feedback("id", clicked="ad-1")
    >>> asyncio.run(send())
""",
    "class Client": "class AsyncClient",
}


def test_both_clients_have_the_same_source_except_for_await() -> None:
    expected = inspect.getsource(synchronous)
    for synchronous_code, asynchronous_code in AWAITS.items():
        assert synchronous_code in expected
        expected = expected.replace(synchronous_code, asynchronous_code)
    assert inspect.getsource(asynchronous) == expected


def test_retiring_no_items_is_refused() -> None:
    asked: list[httpx.Request] = []
    with (
        client_of(lambda _: httpx.Response(200, json={}), asked) as client,
        pytest.raises(InvalidInputError, match="items must not be empty"),
    ):
        client.retire_items("ads", [])
    assert asked == []


@pytest.mark.parametrize("call", ["add_items", "retire_items", "sync_items"])
def test_a_name_is_not_a_list_of_items(call: str) -> None:
    asked: list[httpx.Request] = []
    with (
        client_of(lambda _: httpx.Response(200, json={}), asked) as client,
        pytest.raises(InvalidInputError, match="items must be a list of names, got 'ad-1'"),
    ):
        getattr(client, call)("ads", "ad-1")
    assert asked == []


@pytest.mark.parametrize("max_retries", [-1, 101])
def test_retries_are_bounded(max_retries: int) -> None:
    with pytest.raises(InvalidInputError, match="max_retries must be a whole number from 0 to 100"):
        Client("http://service", max_retries=max_retries)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8420", "localhost:8420", "ftp://shop", "http://", "http://a:b", 8420]
)
def test_urls_that_cannot_be_requested_are_refused(kind: type, url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"base_url must be a URL such as http://127.0.0.1:8420, got"):
        kind(url, default_order=["ad-1"])


def test_ranker_and_clients_have_the_same_methods_and_arguments() -> None:
    def signatures(kind: type, *left_out: str) -> dict[str, list[tuple[str, object, object]]]:
        return {
            name: [
                (one.name, one.kind, one.default)
                for one in inspect.signature(member).parameters.values()
                if one.name not in ("self", *left_out)
            ]
            for name, member in vars(kind).items()
            if not name.startswith("_") and callable(member)
        }

    ranker = signatures(Ranker)
    # Clients have `update_surface`.
    in_process = {"counts", "close", "set_experiment", "submit_feedback", "ranks_fast"}
    assert signatures(AsyncClient) | {"close": []} == signatures(Client) | {"aclose": []}
    client = signatures(Client, "surface", "default_order")  # a ranker is never away
    assert {name: client[name] for name in ranker if name not in in_process} == {
        name: one for name, one in ranker.items() if name not in in_process
    }
