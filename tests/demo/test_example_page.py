"""The page in ``examples/`` requests a ranking from another origin, and reports the click."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from helpers.browser import OpenPage
from helpers.running_service import Running, running

from banditrank._demo.surfaces import search_ads

EXAMPLES = Path(__file__).parents[2] / "examples"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def pages() -> Iterator[str]:
    handler = partial(_Quiet, directory=str(EXAMPLES))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def service() -> Iterator[Running]:
    with running(allow_origins=["loopback"]) as service:
        assert service.ask("POST", "/v1/surfaces", search_ads().definition).status_code == 201
        yield service


def test_a_click_on_the_page_is_counted(open_page: OpenPage, pages: str, service: Running) -> None:
    page = open_page(f"{pages}/page.html?service={service.address}")
    buttons = page.locator("button")
    buttons.nth(1).wait_for()
    items = buttons.all_inner_texts()
    assert len(items) == 2
    assert set(items) <= set(search_ads().problem.items)
    buttons.nth(1).click()
    page.get_by_text("counted").wait_for()
    live = service.application.engine.surface("search-ads")
    counts = live.counts().counts
    assert (counts.rounds, counts.rewards.sum()) == (1, 1)
    assert counts.rewards[1, search_ads().problem.items.index(items[1]), 1] == 1


def test_the_page_uses_the_default_port_of_the_service() -> None:
    from banditrank.service._settings import Settings

    assert f'"http://127.0.0.1:{Settings().port}"' in (EXAMPLES / "page.html").read_text()
