"""Shell lines of the documentation run: commands, requests, and pages that need a service."""

import doctest
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.carousel_files import write_carousel
from helpers.command_line import run
from helpers.csv_logs import write_sample_csv
from helpers.documentation import ROOT, SITE_PAGES, page_id
from helpers.running_service import Running, running

from banditrank import kdd2012
from banditrank._cli.main import command_line
from banditrank.logs.kdd2012 import write_sample_log

ADDRESS = r"(?:http://)?(?:127\.0\.0\.1|localhost):8420"
SKIPPED = "  # doctest: +SKIP"

# Other programs, which need a network, a cluster or a container engine.
ELSEWHERE = {"docker", "install", "kubectl", "npm", "npx", "python3", "ray", "uvicorn"}

# Commands that the tests of the README and of the command line run, because they take long or do not end.
LONG = {"compare", "demo", "reproduce", "serve", "warm"}
LONG |= {"--install-completion"}  # writes to the home directory


def _lines(page: Path) -> list[str]:
    """Return the commands in the shell blocks of a page; a command may span lines."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found, waiting = [], ""
    for line in "\n".join(blocks).replace("\\\n", "").splitlines():
        waiting += line + "\n"
        try:
            words = shlex.split(waiting, comments=True)
        except ValueError:  # a quote is open
            continue
        if words:
            found.append(waiting.strip())
        waiting = ""
    assert not waiting, page
    return found


LINES = [(page, line) for page in SITE_PAGES for line in _lines(page)]
REQUESTS = [(page, line) for page, line in LINES if line.startswith("curl") and not line.endswith("…")]


def _examples(command: object) -> Iterator[str]:
    """Yield the examples in the help of all commands, which the site shows, too."""
    for inner in getattr(command, "commands", {}).values():
        yield from _examples(inner)
        yield from re.findall(r"^  (banditrank .*)$", inner.epilog or "", re.MULTILINE)


def test_every_program_is_known() -> None:
    programs = {shlex.split(line)[0] for _, line in LINES}
    assert programs == {"banditrank", "curl", "make", "pip", "python", *ELSEWHERE}


def test_packages_and_targets_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for _, line in LINES:
        program, *words = shlex.split(line, comments=True)
        if program == "pip":
            (given,) = re.findall(r"^(?:banditrank|\.)(?:\[(.*)\])?$", words[-1])
            assert set(given.split(",")) <= set(extras), line
        if program == "make":
            assert words[0] in targets, line
        for path in re.findall(r"deploy/[\w./-]+", line):
            assert (ROOT / path).exists() or path == "deploy/banditrank", line


@pytest.mark.parametrize("line", sorted({line for _, line in LINES if line.startswith("banditrank ")}))
def test_options_of_commands_exist(line: str) -> None:
    _parse(shlex.split(line, comments=True))


def test_options_of_examples_exist() -> None:
    examples = list(_examples(command_line()))
    assert len(examples) > 20
    for example in examples:
        _parse(shlex.split(example.partition(">")[0]))


def _parse(words: list[str]) -> None:
    """Parse a command without running it."""
    command, (name, *rest) = command_line(), words
    while getattr(command, "commands", None):
        name, *rest = rest
        if name.startswith("--"):  # an option that is run when it is parsed
            assert name in [option for parameter in command.params for option in parameter.opts]
            return
        command = command.commands[name]
    with command.make_context(name, rest):
        pass


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """Run each command with few rounds, in this process, because each would import everything again."""
    monkeypatch.chdir(tmp_path)
    for name in ("problem.toml", "shop.toml"):
        kdd2012().save(name)
    log = write_sample_log(kdd2012(), tmp_path, n_rows=2_000, seed=1)
    Path(log.training).rename("training.txt")
    Path(log.profiles).rename("userid_profile.txt")
    write_sample_csv(Path("clicks.csv"))
    write_carousel(Path("DIRECTORY"))
    commands = {line for _, line in LINES if line.startswith("banditrank ") and "--backend ray" not in line}
    for line in sorted(commands):  # creates keys before it lists and revokes them
        _, name, *words = shlex.split(re.sub(r"--horizon \d+|--replications \d+", "", line), comments=True)
        if name in LONG or words[:1] == ["revoke"]:
            continue
        if name == "simulate":
            words += ["--horizon", "300", "--replications", "2"]
        status, _, complaint = run(capsys, name, *words)
        expected = (0, 1) if words[:1] == ["diagnose"] else (0,)  # 1: warnings
        assert status in expected, f"{line}: {complaint}"
    _, listed, _ = run(capsys, "keys", "list", "--json", "-")
    keys = json.loads(listed)["keys"]
    assert {"analysts", "shop window"} <= {key["name"] for key in keys}
    status, _, complaint = run(capsys, "keys", "revoke", keys[0]["id"])
    assert status == 0, complaint


@pytest.mark.parametrize("line", [line for _, line in LINES if line.startswith("python ")])
def test_programs_run(line: str, capsys: pytest.CaptureFixture) -> None:
    """Run them in this process with few rounds."""
    _, option, program = shlex.split(line)
    assert option == "-c"
    few = re.sub(r"horizon=[\d_]+, replications=\d+", "horizon=300, replications=2", program)
    assert few != program
    exec(compile(few, "program", "exec"), {})  # noqa: S102 - a program of the documentation
    assert capsys.readouterr().out


@pytest.fixture
def service() -> Iterator[Running]:
    with running() as service:
        yield service


@pytest.mark.parametrize("page", sorted({page for page, _ in REQUESTS}), ids=page_id)
def test_requests_are_accepted(page: Path, service: Running) -> None:
    ranking: dict[str, object] = {}
    for line in (line for one, line in REQUESTS if one == page):
        method, address, *_, body = shlex.split(line)[2:]
        path = re.sub(f"^{ADDRESS}", "", address)
        document = json.loads(body)
        if method == "PATCH":
            surface = {"name": path.rpartition("/")[2], "items": ["ad-1", "ad-2", "ad-3"], "n_positions": 2}
            assert service.ask("POST", "/v1/surfaces", surface).is_success
        if document.get("ranking") == "RANKING_ID":
            document = {"ranking": ranking["id"], "clicked": ranking["items"][0]}
        response = service.ask(method, path, document)
        assert response.is_success, f"{line}: {response.text}"
        if path.endswith("/rankings"):
            ranking = response.json()
        if path == "/v1/feedback":
            assert response.json()["status"] == "counted"


SKIPPING = [page for page in SITE_PAGES if SKIPPED in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", SKIPPING, ids=page_id)
def test_examples_that_need_a_service_or_write_files_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the whole page with a service of its own in a temporary directory, without skipping anything."""
    monkeypatch.chdir(tmp_path)
    items = ["ad-1", "ad-2", "ad-3"]
    with running() as service:
        for name in ("ads", "home"):
            surface = {"name": name, "items": items, "n_positions": 2, "user_types": ["new", "returning"]}
            assert service.ask("POST", "/v1/surfaces", surface).is_success
        text = page.read_text(encoding="utf-8").replace(SKIPPED, "")
        text = re.sub(f'"{ADDRESS}"', f'"{service.address}"', text).replace(', api_key="br_…"', "")
        test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
        failures: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=failures.append)
    assert not runner.failures, "".join(failures)
