"""The guide to Next.js: with stand-ins for React and Next.js, and in depth with the real ones."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deno import find_deno_bin
from helpers.documentation import code_blocks
from helpers.javascript import CLIENT, TIMEOUT_SECONDS
from helpers.nextjs import PAGE, guide_blocks, write_application
from helpers.running_service import Running, running
from helpers.servers import free_port

from banditrank.engine._api_keys import create_key
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

ADS = {"name": "ads", "items": ["ad-1", "ad-2", "ad-3"], "n_positions": 2, "user_types": ["new", "returning"]}

# Renders the page as the server and the browser do, and clicks on an item.
_VISIT = """
import Page from "./app/page.jsx";
import Layout from "./app/layout.jsx";
import { POST } from "./app/banditrank/v1/feedback/route.js";
import { effects, list, n_connections } from "./stand-ins.js";

const [click, isDirect] = JSON.parse(Deno.args[0]);
globalThis.window = new EventTarget();
globalThis.document = Object.assign(new EventTarget(), { hidden: false });
const send = globalThis.fetch;
const responses = [];
globalThis.fetch = async (url, options) => {
  const isOwn = url.startsWith("/");
  const response = isOwn
    ? await POST(new Request(`http://shop.example${url}`, { ...options, signal: undefined }))
    : await send(url, options);
  if (url.endsWith("/v1/feedback") && (isOwn || isDirect)) {
    responses.push([url, response.status, await response.clone().json()]);
  }
  return response;
};
const render = (element) => (typeof element.type === "function" ? element.type(element.props) : element);
const page = await Page();
const props = JSON.parse(JSON.stringify(page.props));
const shown = render({ ...page, props });
const links = shown.props.children.map((entry) => entry.props.children.props);
list.current = { children: props.ranking.items.map(() => new EventTarget()) };
const stop = effects.map((effect) => effect());
await null;
if (click >= 0) list.current.children[click].dispatchEvent(Object.assign(new Event("click"), { button: 0 }));
stop.forEach((each) => each());
const wait = new Promise((resolve) => setTimeout(resolve, 100));
while (!props.ranking.isDefault && !responses.length) await new Promise((resolve) => setTimeout(resolve, 10));
await wait;
const html = Layout({ children: shown });
console.log(JSON.stringify({ ranking: props.ranking, links, responses, n_connections, root: html.type }));
"""

_STAND_INS = """
export const effects = [];
export const list = {};
export let n_connections = 0;
export const useRef = () => list;
export const useEffect = (effect) => effects.push(effect);
export const connection = async () => { n_connections += 1; };
export const jsx = (type, props, key) => ({ type, props, key });
export const jsxs = jsx;
"""


def visit(directory: Path, *, click: int = -1, is_direct: bool = False, **environment: str) -> dict[str, Any]:
    """Run the components of the guide for one visit."""
    write_application(directory, is_direct=is_direct)
    (directory / "stand-ins.js").write_text(_STAND_INS)
    (directory / "visit.js").write_text(_VISIT)
    names = ("react", "react/jsx-runtime", "next/server")
    imports = {**dict.fromkeys(names, "./stand-ins.js"), "banditrank": (CLIENT / "index.js").as_uri()}
    options = {"jsx": "react-jsx", "jsxImportSource": "react"}
    (directory / "deno.json").write_text(json.dumps({"imports": imports, "compilerOptions": options}))
    done = subprocess.run(
        [
            os.fsdecode(find_deno_bin()),
            "run",
            "--quiet",
            "--no-remote",
            "--allow-all",
            "visit.js",
            json.dumps([click, is_direct]),
        ],
        cwd=directory,
        env={
            **os.environ,
            "DENO_DIR": str(directory / "cache"),
            "DENO_NO_UPDATE_CHECK": "1",
            "NO_COLOR": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def service() -> Iterator[tuple[Running, str]]:
    store = MemoryStore()
    administrator = create_key(store, "administrator", ["administer"])
    key = create_key(store, "shop window", ["rank"], surfaces=["ads"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "open_store", lambda _: store)
        with running(require_keys=True) as started:
            headers = {"authorization": f"Bearer {administrator}"}
            assert started.ask("POST", "/v1/surfaces", ADS, headers=headers).status_code == 201
            yield started, key


def counted(service: Running) -> tuple[int, float]:
    """Return the number of counted rankings and of clicks."""
    counts = service.engine.surface("ads").counts().counts
    return int(counts.rounds), float(counts.rewards.sum())


def test_every_block_has_a_file() -> None:
    assert [name for name, _ in guide_blocks()] == [
        "app/ranking.js",
        "app/page.jsx",
        "app/ads.jsx",
        "app/banditrank/v1/feedback/route.js",
        "app/layout.jsx",
        "app/ads.jsx",
    ]
    commands = "".join(code_blocks(PAGE, "sh"))
    assert "npm install next react react-dom\n" in commands
    assert "npx next build\nnpx next start " in commands


@pytest.mark.parametrize(("click", "rewards"), [(1, 1.0), (-1, 0.0)], ids=["click", "no click"])
def test_a_visit_is_ranked_and_counted(
    click: int, rewards: float, service: tuple[Running, str], tmp_path: Path
) -> None:
    running_service, key = service
    shown = visit(tmp_path, click=click, RANKING_URL=running_service.address, RANKING_API_KEY=key)
    items = shown["ranking"]["items"]
    assert (shown["ranking"]["isDefault"], shown["n_connections"], shown["root"]) == (False, 1, "html")
    titles = {"ad-1": "The first ad", "ad-2": "The second ad", "ad-3": "The third ad"}
    assert [(link["href"], link["children"]) for link in shown["links"]] == [
        (f"/ads/{item}", titles[item]) for item in items
    ]
    assert shown["responses"] == [["/banditrank/v1/feedback", 200, {"status": "counted"}]]
    assert counted(running_service) == (1, rewards)


def test_a_visit_without_a_route_handler_is_counted(service: tuple[Running, str], tmp_path: Path) -> None:
    running_service, key = service
    variables = {
        f"{prefix}{name}": value
        for prefix in ("", "NEXT_PUBLIC_")
        for name, value in {"RANKING_URL": running_service.address, "RANKING_API_KEY": key}.items()
    }
    shown = visit(tmp_path, click=0, is_direct=True, **variables)
    assert shown["responses"] == [[f"{running_service.address}/v1/feedback", 200, {"status": "counted"}]]
    assert counted(running_service) == (1, 1.0)


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "unavailable"])
def test_the_default_order_is_shown(
    is_refused: bool,  # noqa: FBT001
    service: tuple[Running, str],
    tmp_path: Path,
) -> None:
    url = service[0].address if is_refused else f"http://127.0.0.1:{free_port()}"
    shown = visit(tmp_path, click=0, RANKING_URL=url, RANKING_API_KEY="br_wrong")
    assert (shown["ranking"]["items"], shown["ranking"]["isDefault"]) == (["ad-1", "ad-2"], True)
    assert shown["ranking"]["error"]["message"]
    assert shown["responses"] == []
    assert counted(service[0]) == (0, 0.0)
