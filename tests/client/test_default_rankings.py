"""Default rankings of both clients: when, which items, how soon, and what becomes of their feedback."""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Self

import httpx
import pytest
from helpers.running_service import running
from helpers.servers import free_port
from hypothesis import given
from hypothesis import strategies as st

from banditrank import Feedback, InvalidInputError, ServiceError, ShownRanking
from banditrank.client import AsyncClient, Client
from banditrank.client import _default_rankings as default_rankings
from banditrank.client import _retries as retries
from banditrank.client._default_rankings import DefaultRankings

ORDER = ("a", "b", "c")
NOW = datetime(2026, 11, 17, tzinfo=UTC)
LONG = 300.0  # seconds; a test that waits for it hangs
AWAY = ServiceError("away")
RANKING = {"id": "id", "items": ["a"], "expires_at": "2026-11-17T12:00:00Z"}

Answer = Callable[[int], httpx.Response]


class _Blocking:
    """An asynchronous client with the calls of the synchronous one, on an event loop of its own."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self._loop = asyncio.Runner()
        self._client = AsyncClient(*arguments, **settings)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)
        return lambda *arguments, **options: self._loop.run(method(*arguments, **options))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._client.aclose())
        self._loop.close()


@pytest.fixture(params=[Client, _Blocking], ids=["synchronous", "asynchronous"])
def client_class(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "backoff_seconds", lambda *_: 0.0)


def transport(answer: Answer, asked: list[httpx.Request]) -> httpx.MockTransport:
    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return answer(len(asked))

    return httpx.MockTransport(handle)


def issued(*items: str) -> httpx.Response:
    return httpx.Response(200, json=RANKING | {"items": items})


def failing(error: type[httpx.RequestError]) -> Answer:
    def fail(_: int) -> httpx.Response:
        raise error("gone")

    return fail


AWAY_ANSWERS: dict[str, Answer] = {
    "refused": failing(httpx.ConnectError),
    "slow": failing(httpx.ReadTimeout),
    "garbled": failing(httpx.DecodingError),
    **{
        str(status): lambda _, status=status: httpx.Response(status)
        for status in (302, 408, 429, 500, 502, 503)
    },
    "page of a proxy": lambda _: httpx.Response(200, text="<h1>Welcome</h1>"),
    "other JSON": lambda _: httpx.Response(200, json={"hello": "world"}),
    "deep JSON": lambda _: httpx.Response(200, content=b"[" * 200_000),
    "deep JSON of an error": lambda _: httpx.Response(500, content=b"[" * 200_000),
    **{
        f"items {items}": lambda _, items=items: httpx.Response(200, json=RANKING | {"items": items})
        for items in ("abc", [{"a": 1}], None)
    },
    "id 5": lambda _: httpx.Response(200, json=RANKING | {"id": 5}),
    "ignored abc": lambda _: httpx.Response(200, json=RANKING | {"ignored": "abc"}),
    "a list": lambda _: httpx.Response(200, json=[["id", "id"], ["items", ["a"]]]),
}


@pytest.mark.parametrize("answer", AWAY_ANSWERS.values(), ids=AWAY_ANSWERS)
def test_the_default_order_is_returned_and_marked_while_the_service_is_away(
    client_class: Any, answer: Answer
) -> None:
    asked: list[httpx.Request] = []
    with client_class("http://s", default_order=ORDER, transport=transport(answer, asked)) as client:
        shown = client.rank("ads", "new")
        several = client.rank_batch("ads", ["new", "old"], default_order=["c"])
        n_requests = len(asked)
        assert client.feedback(shown.id, clicked="a") == "ignored"
        assert client.feedback_batch([Feedback(one.id) for one in several]) == ["ignored", "ignored"]
    assert (shown.id, shown.items, shown.is_default) == ("", ORDER, True)
    assert shown.expires_at.tzinfo is UTC
    assert [(one.items, one.is_default) for one in several] == [(("c",), True)] * 2
    assert len(asked) == n_requests, "feedback for default rankings is not sent"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 421, 422])
def test_errors_of_the_caller_are_raised(client_class: Any, status: int) -> None:
    problem = {"type": "urn:banditrank:problem:invalid", "title": "Invalid", "detail": "user_type is unknown"}
    answer = transport(lambda _: httpx.Response(status, json=problem), [])
    with (
        client_class("http://s", default_order=ORDER, transport=answer) as client,
        pytest.raises(ServiceError, match="user_type is unknown") as refused,
    ):
        client.rank("ads", "nwe")
    assert refused.value.status == status


def test_without_a_default_order_errors_are_raised(client_class: Any) -> None:
    with client_class("http://s", transport=transport(lambda _: httpx.Response(500), [])) as client:
        with pytest.raises(ServiceError):
            client.rank("ads", "new")
        assert client.rank("ads", "new", default_order=[]).items == ()


def test_the_last_ranking_of_the_surface_and_user_type_comes_before_the_default_order(
    client_class: Any,
) -> None:
    answers = {1: issued("x", "y"), 2: issued("y", "x")}
    mock = transport(lambda number: answers.get(number, httpx.Response(500)), [])
    with client_class("http://s", default_order=ORDER, transport=mock) as client:
        assert not client.rank("ads", "new").is_default
        assert client.rank("ads", "old").id == "id"
        assert client.rank("ads", "new").items == ("x", "y")
        assert client.rank("ads", "old").items == ("y", "x")
        assert client.rank("other", "new").items == ORDER


def test_feedback_for_default_rankings_is_left_out_of_a_batch(client_class: Any) -> None:
    asked: list[httpx.Request] = []
    results = {"results": [{"status": "counted"}, {"status": "repeated"}]}
    mock = transport(lambda _: httpx.Response(200, json=results), asked)
    with client_class("http://s", transport=mock) as client:
        batch = [Feedback(""), Feedback("1", clicked="a"), Feedback(""), Feedback("2")]
        assert client.feedback_batch(batch) == ["ignored", "counted", "ignored", "repeated"]
    assert b'"ranking":""' not in asked[0].content


def test_an_outage_is_logged_once(client_class: Any, caplog: pytest.LogCaptureFixture) -> None:
    answers = {3: issued("a")}
    mock = transport(lambda number: answers.get(number, httpx.Response(500, text="no")), [])
    with (
        caplog.at_level(logging.WARNING),
        client_class("http://s", default_order=ORDER, transport=mock) as client,
    ):
        for _ in range(5):
            client.rank("ads", "new")
    logged = [record for record in caplog.records if record.name.startswith("banditrank")]
    message = "default ranking returned: the service responded with 500: no"
    assert [record.message for record in logged] == [message] * 2
    assert {(record.surface, record.error) for record in logged} == {
        ("ads", "the service responded with 500: no")
    }


def test_an_unreachable_port_leads_to_the_default_order(client_class: Any) -> None:
    with client_class(f"http://127.0.0.1:{free_port()}", default_order=ORDER) as client:
        assert client.rank("ads", "new").items == ORDER


def test_retries_end_with_the_time_limit(client_class: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No attempt is made whose backoff would exceed the limit: a late ranking would count as not clicked."""
    monkeypatch.setattr(retries, "backoff_seconds", lambda *_: LONG + 1)
    asked: list[httpx.Request] = []
    mock = transport(lambda _: httpx.Response(503), asked)
    with client_class("http://s", default_order=ORDER, rank_timeout_seconds=LONG, transport=mock) as client:
        assert client.rank("ads", "new").is_default
    assert len(asked) == 1


def test_timeouts_of_attempts_end_with_the_time_limit(client_class: Any) -> None:
    asked: list[httpx.Request] = []
    settings = {"default_order": ORDER, "timeout_seconds": LONG, "rank_timeout_seconds": 2.0}
    with client_class("http://s", transport=transport(lambda _: issued("a"), asked), **settings) as client:
        client.rank("ads", "new")
    assert max(asked[0].extensions["timeout"].values()) <= 2.0


@contextmanager
def dripping() -> Iterator[str]:
    """Serve a response that never ends, one byte at a time, so that no timeout of a socket applies."""
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
                try:
                    while not stopped.wait(0.005):
                        connection.sendall(b" ")
                except OSError:
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stopped.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_the_time_limit_applies_to_the_whole_response(client_class: Any) -> None:
    """The response takes over an hour; with timeouts of sockets alone this test would not end."""
    with (
        dripping() as address,
        client_class(address, default_order=ORDER, timeout_seconds=LONG, rank_timeout_seconds=0.1) as client,
    ):
        shown = client.rank("ads", "new")
    assert (shown.items, shown.is_default) == (ORDER, True)


def test_responses_without_an_end_are_not_read_on() -> None:
    """Threads that read on would take memory, and all connections of the client, also after the outage."""
    with dripping() as address, Client(address, default_order=ORDER, rank_timeout_seconds=0.1) as client:
        assert client.rank("ads", "new").is_default
        for thread in threading.enumerate():
            if thread.name == "banditrank-rank":
                thread.join(LONG)
                assert not thread.is_alive()


def test_a_service_that_comes_back_issues_rankings_again(client_class: Any) -> None:
    port = free_port()
    ads = {"items": list(ORDER), "n_positions": 2, "user_types": ["new"]}
    with client_class(
        f"http://127.0.0.1:{port}", default_order=ORDER, timeout_seconds=LONG, rank_timeout_seconds=LONG
    ) as client:
        assert client.rank("ads", "new").is_default
        with running(port=port):
            client.create_surface("ads", **ads)
            shown = client.rank("ads", "new")
            assert not shown.is_default
            assert client.feedback(shown.id, clicked=shown.items[0]) == "counted"
        again = client.rank("ads", "new")
        assert (again.id, again.items, again.is_default) == ("", shown.items, True)


@pytest.mark.parametrize("default_order", ["ad-1", ["a", "a"], ["a", ""], [1]])
def test_invalid_default_orders_are_refused(default_order: Any) -> None:
    message = "default_order must be a list of different names, got"
    with pytest.raises(InvalidInputError, match=message):
        Client("http://s", default_order=default_order)
    with Client("http://s") as client, pytest.raises(InvalidInputError, match=message):
        client.rank("ads", "new", default_order=default_order)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 3601])
def test_the_time_limit_is_bounded(seconds: float) -> None:
    with pytest.raises(
        InvalidInputError, match=r"rank_timeout_seconds must be a number from 0\.001 to 3,600"
    ):
        Client("http://s", rank_timeout_seconds=seconds)


def default_items(
    known: Sequence[Sequence[str]], order: Sequence[str], options: Mapping[str, Any]
) -> tuple[str, ...]:
    rankings = DefaultRankings()
    for items in known:
        rankings.remember("ads", ["new"], [ShownRanking("id", tuple(items), NOW)], {})
    (ranking,) = rankings.make("ads", ["new"], order, options, AWAY)
    return ranking.items


@pytest.mark.parametrize(
    ("known", "order", "options", "items"),
    [
        ([], "abc", {}, "abc"),
        ([], "", {}, ""),
        ([], "", {"candidates": "ab"}, "ab"),
        ([], "abc", {"candidates": "dcb"}, "bcd"),
        (["xy"], "abc", {}, "xy"),
        (["xy"], "abc", {"exclude": "x"}, "ya"),
        (["xy"], "abc", {"candidates": "cy"}, "yc"),
        (["xy"], "abc", {"candidates": "de"}, "de"),
        (["xyz", "x"], "abc", {}, "xab"),
        ([], "abc", {"pinned": {"2": "p"}}, "apb"),
        (["xy"], "abc", {"pinned": {"1": "y"}}, "yx"),
        (["xy"], "abc", {"pinned": {"2": "q", "1": "p"}}, "pq"),
        ([], "", {"pinned": {"3": "p"}}, "p"),
        ([], "a", {"pinned": {"3": "p"}}, "ap"),
    ],
)
def test_default_items_follow_candidates_exclusions_and_pins(
    known: list[str], order: str, options: dict[str, Any], items: str
) -> None:
    assert "".join(default_items(known, order, options)) == items


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "candidates": NAMES,
        "exclude": NAMES,
        "pinned": st.dictionaries(st.integers(1, 4).map(str), st.sampled_from("pqrs"), max_size=3).filter(
            lambda pinned: len(set(pinned.values())) == len(pinned)
        ),
    },
)


@given(st.lists(NAMES, max_size=2), NAMES, OPTIONS)
def test_candidates_exclusions_and_pins_are_never_violated(
    known: list[list[str]], order: list[str], options: dict[str, Any]
) -> None:
    items = default_items(known, order, options)
    pinned = options.get("pinned", {})
    assert len(set(items)) == len(items)
    for position, item in pinned.items():
        assert item in items
        later = sum(int(other) > int(position) for other in pinned)
        assert items.index(item) == int(position) - 1 or len(items) - later < int(position)
    free = set(items) - set(pinned.values())
    assert not free & set(options.get("exclude", ()))
    if options.get("candidates"):
        assert free <= set(options["candidates"])


def test_pinned_items_are_not_remembered() -> None:
    """A paid item is shown only while it is paid for."""
    rankings = DefaultRankings()
    rankings.remember("ads", ["new"], [ShownRanking("id", ("p", "x"), NOW)], {"pinned": {"1": "p"}})
    (ranking,) = rankings.make("ads", ["new"], ["a", "b"], {}, AWAY)
    assert ranking.items == ("x", "a")


def test_the_memory_of_rankings_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_rankings, "MAX_KNOWN", 3)
    rankings = DefaultRankings()
    for user_type in "123145":  # the oldest are forgotten, in order of their last ranking
        rankings.remember("ads", [user_type], [ShownRanking("id", ("x",), NOW)], {})
    shown = rankings.make("ads", list("12345"), ["a"], {}, AWAY)
    assert ["".join(one.items) for one in shown] == ["x", "a", "a", "x", "x"]


def test_threads_share_a_client() -> None:
    answers = [issued("x", "y"), httpx.Response(500)]
    mock = transport(lambda number: answers[number % 2], [])
    with Client("http://s", default_order=("x", "y"), transport=mock) as client:
        shown: list[ShownRanking] = []
        threads = [
            threading.Thread(target=lambda: shown.extend(client.rank("ads", "new") for _ in range(25)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [one.items for one in shown] == [("x", "y")] * 100
