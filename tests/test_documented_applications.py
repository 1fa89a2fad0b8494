"""Applications of the guides run: FastAPI in process and mounted, Django and Flask."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import Request
from helpers.browser import OpenPage
from helpers.documentation import DOCS, code_blocks
from helpers.forks import in_a_fork
from helpers.live import MAX_WAIT_SECONDS, wait_until
from playwright.sync_api import expect

from banditrank import InvalidInputError, Ranker, StoreUnavailableError, open_store
from banditrank.client import Client
from banditrank.storage._sqlite import SqliteStore

PAGE = DOCS / "how-to" / "fastapi.md"
IN_PROCESS, MOUNTED, BOTH, DJANGO, FLASK = code_blocks(PAGE, "python")
ADS = {"name": "ads", "items": ["ad-1", "ad-2", "ad-3"], "n_positions": 2, "user_types": ["new", "returning"]}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each application in a directory of its own, where its store is."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def imported(source: str) -> Iterator[ModuleType]:
    """Import a program of the guide."""
    path = Path("shop.py")
    path.write_text(source, encoding="utf-8")
    spec = spec_from_file_location("shop", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["shop"] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["shop"]


@contextmanager
def serving(application: Any) -> Iterator[httpx.Client]:
    """Serve an application with uvicorn."""
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        (port,) = {socket.getsockname()[1] for each in server.servers for socket in each.sockets}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=MAX_WAIT_SECONDS) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def counted() -> tuple[int, float]:
    """Return the number of counted rankings and of clicks in the store of a program."""
    with imported(IN_PROCESS) as shop, open_store("sqlite:shop.db") as store:
        with Ranker(shop.ADS, store) as ranker:
            counts = ranker.counts()
        return int(counts.rounds), float(counts.rewards.sum())


def test_fastapi_ranks_in_process() -> None:
    with imported(IN_PROCESS) as shop, serving(shop.app) as client:
        shown = client.get("/ads", params={"user_type": "returning"}).json()
        assert len(shown["items"]) == 2
        click = {"ranking": shown["ranking"], "clicked": shown["items"][0]}
        assert client.post("/feedback", json=click).json() == {"status": "counted"}
        assert client.post("/feedback", json=click).json() == {"status": "repeated"}
        other = client.get("/ads").json()["ranking"]
        assert client.post("/feedback", json={"ranking": other}).json() == {"status": "counted"}
        refused = client.post("/feedback", json={"ranking": "forged"})
        assert (refused.status_code, list(refused.json())) == (422, ["detail"])
        assert client.get("/ads", params={"user_type": "nwe"}).status_code == 422
    assert counted() == (2, 1.0)


def test_fastapi_resumes_after_a_restart_and_reports_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    with imported(IN_PROCESS) as shop:
        with serving(shop.app) as client:
            before = client.get("/ads").json()["ranking"]
        with serving(shop.app) as client:
            assert client.post("/feedback", json={"ranking": before}).json() == {"status": "counted"}
            shown = client.get("/ads").json()["ranking"]
            with monkeypatch.context() as patch:
                patch.setattr(SqliteStore, "commit", _fail)
                assert client.post("/feedback", json={"ranking": shown}).status_code == 503
                assert client.get("/ads").status_code == 200
            assert client.post("/feedback", json={"ranking": shown}).json() == {"status": "counted"}


def _fail(*_: Any, **__: Any) -> None:
    raise StoreUnavailableError("the disk is full")


def test_a_cancelled_request_is_counted_once() -> None:
    """The framework cancels a handler when its time is over; a retry returns `repeated`."""
    with imported(IN_PROCESS) as shop:

        async def visit() -> str:
            async with shop.lifespan(shop.app) as state:
                shown = await state["ranker"].rank("new")
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(state["ranker"].feedback(shown.id), 0)
                task = asyncio.create_task(state["ranker"].feedback(shown.id))
                await asyncio.sleep(0)
                task.cancel()
                return str(await state["ranker"].feedback(shown.id))

        assert asyncio.run(visit()) == "repeated"
    assert counted() == (1, 0.0)


@pytest.mark.parametrize("source", [MOUNTED, BOTH], ids=["mounted", "in process, too"])
def test_the_service_is_mounted_under_a_prefix(source: str) -> None:
    with imported(source) as shop, serving(shop.app) as client:
        created = client.post("/rank/v1/surfaces", json=ADS)
        assert created.status_code == (201 if source == MOUNTED else 409)
        for path in ("/rank/", "/rank/docs"):
            page = client.get(path)
            assert page.status_code == 200, path
            assert page.headers["content-type"].startswith("text/html")
        assert client.get("/docs").status_code == 200
        shown = client.post("/rank/v1/surfaces/ads/rankings", json={"user_type": "new"}).json()
        feedback = {"ranking": shown["id"], "clicked": shown["items"][1]}
        assert client.post("/rank/v1/feedback", json=feedback).json() == {"status": "counted"}
        assert client.get("/v1/surfaces").status_code == 404
        public = client.get("/rank/v1/surfaces", headers={"host": "shop.example"})
        assert public.status_code == 421, "needs an API key"


def test_the_dashboard_shows_what_is_learned_in_process() -> None:
    with imported(BOTH) as shop:

        @shop.app.get("/visit")
        async def visit(request: Request) -> str:
            shown = await request.state.ranker.rank("new")
            return str(await request.state.ranker.feedback(shown.id))

        with serving(shop.app) as client:
            assert client.get("/visit").json() == "counted"
            estimates = "/rank/v1/surfaces/ads/estimates"
            wait_until(lambda: client.get(estimates).json()["rounds"] == 1)


def test_the_mounted_dashboard_opens_in_a_browser(open_page: OpenPage) -> None:
    with imported(BOTH) as shop, serving(shop.app) as client:
        page = open_page(f"{client.base_url}/rank/")
        page.get_by_role("link", name="ads").click()
        expect(page.get_by_role("heading", name="ads", exact=True)).to_be_visible()
        assert page.url == f"{client.base_url}/rank/surfaces/ads"
        page.goto(f"{client.base_url}/rank/docs")
        expect(page.get_by_text("/v1/feedback", exact=True)).to_be_visible()


def test_clients_use_the_address_of_the_mounted_service() -> None:
    with imported(MOUNTED) as shop, serving(shop.app) as http, Client(f"{http.base_url}/rank") as client:
        client.create_surface(**ADS)
        shown = client.rank("ads", "new")
        assert client.feedback(shown.id, clicked=shown.items[0]) == "counted"


class _Django:
    """Test client of the views of the guide."""

    def __init__(self) -> None:
        # Pytest, which looks for examples in all names of a module, would read the settings.
        import django
        from django.conf import settings
        from django.test import Client as DjangoClient
        from django.urls import clear_url_caches

        clear_url_caches()
        if not settings.configured:
            settings.configure(ROOT_URLCONF="shop", ALLOWED_HOSTS=["testserver"], SECRET_KEY="secret")  # noqa: S106
            django.setup()
        self._client = DjangoClient()

    def get(self, path: str) -> Any:
        return self._client.get(path)

    def post(self, path: str, json: Any) -> Any:
        return self._client.post(path, json, content_type="application/json")


@contextmanager
def threaded_application(source: str) -> Iterator[tuple[ModuleType, Any]]:
    """Import the program for Django or Flask, and return it with a test client."""
    with imported(source) as shop:
        if source == FLASK:
            yield shop, shop.app.test_client()
        else:
            yield shop, _Django()
        if shop.ranker.cache_info().currsize:
            shop.ranker().close()


THREADED = pytest.mark.parametrize("source", [DJANGO, FLASK], ids=["django", "flask"])


@THREADED
def test_django_and_flask_rank_in_process(source: str) -> None:
    with threaded_application(source) as (_, client):
        shown = _json(client.get("/ads?user_type=returning"))
        click = {"ranking": shown["ranking"], "clicked": shown["items"][0]}
        assert _json(client.post("/feedback", json=click)) == {"status": "counted"}
        assert _json(client.post("/feedback", json=click)) == {"status": "repeated"}
        refused = client.post("/feedback", json={"ranking": "forged"})
        assert (refused.status_code, list(_json(refused))) == (422, ["detail"])
    assert counted() == (1, 1.0)


def _json(response: Any) -> Any:
    return response.json if isinstance(response.json, dict) else response.json()


@THREADED
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_worker_that_was_forked_after_the_import_ranks(source: str) -> None:
    """Gunicorn with --preload: the application is imported once, and each worker creates its ranker."""

    def visit() -> str:
        shown = _json(client.get("/ads"))
        return str(_json(client.post("/feedback", json={"ranking": shown["ranking"]})))

    def rank_in_parents() -> str:
        try:
            return str(shop.ranker().rank("new"))
        except InvalidInputError as error:
            return str(error)

    with threaded_application(source) as (shop, client):
        assert in_a_fork(visit) == "{'status': 'counted'}"
        assert in_a_fork(visit) == "{'status': 'counted'}"
        assert visit() == "{'status': 'counted'}"
        assert "must be used in the process that created it" in in_a_fork(rank_in_parents)
    assert counted() == (3, 0.0)
