"""Configuration in the documentation is accepted by the program that reads it."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import httpx
import pytest
import typer
from helpers.documentation import PAGES, ROOT, page_id
from helpers.running_service import running
from helpers.servers import NginxServer, free_port, private_directory

from banditrank import Problem
from banditrank._cli.log.mapping import read_mapping
from banditrank._cli.main import application
from banditrank.service._configuration import CONFIG_VARIABLE, PREFIX, STORE_FILE_VARIABLE, variable_of
from banditrank.service._settings import Settings

TESTED_ELSEWHERE = {
    "bibtex",
    "html",
    "js",
    "jsx",
    "python",
    "sh",
    "text",
}  # not configuration; text is an excerpt of a log


def _blocks() -> Iterator[tuple[str, str, str]]:
    """Yield where each block of the documentation stands, its language and its text."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{page_id(page)}:{line}", match[1], match[2]


BLOCKS = list(_blocks())


def _in(language: str) -> list[object]:
    found = [pytest.param(text, id=where) for where, one, text in BLOCKS if one == language]
    assert found, f"no {language} blocks"
    return found


def test_every_language_of_the_documentation_is_tested() -> None:
    assert {language for _, language, _ in BLOCKS} == {"json", "nginx", "toml", *TESTED_ELSEWHERE}


@pytest.mark.parametrize("text", _in("json"))
def test_json_is_an_object(text: str) -> None:
    assert isinstance(json.loads(text), dict)


@pytest.mark.parametrize("text", _in("toml"))
def test_toml_files_are_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "documented.toml"
    path.write_text(text, encoding="utf-8")
    if "item_means" in tomllib.loads(text):
        assert Problem.load(path).n_items
        return
    if "item" in tomllib.loads(text):
        assert read_mapping(path)
        return
    assert Settings.from_file(path) == Settings(), "the page shows the defaults"
    assert set(tomllib.loads(text)) == {setting.name for setting in fields(Settings)}


@contextmanager
def _nginx(text: str, service: str) -> Iterator[tuple[NginxServer, int]]:
    """Give nginx a block of the documentation; only what is not on this machine is replaced."""
    port = free_port()
    with private_directory() as directory:
        _make_certificate(directory)
        text = re.sub(r"listen 443 ", f"listen 127.0.0.1:{port} ", text)
        text = re.sub(r"(ssl_certificate(_key)?)\s+/\S+;", r"\1 \1.pem;", text)
        text = re.sub(r"server 10\.0\.0\.\d:8420", f"server {service.removeprefix('http://')}", text)
        yield NginxServer(directory, text, [port]), port


def _make_certificate(directory: Path) -> None:
    """Make the files `ssl_certificate.pem` and `ssl_certificate_key.pem`."""
    program = shutil.which("openssl")
    assert program is not None, "there is no openssl: run `make servers`"
    key, certificate = directory / "ssl_certificate_key.pem", directory / "ssl_certificate.pem"
    command = [program, "req", "-x509", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    key.chmod(0o644)  # nginx may run as another user


@pytest.mark.parametrize("text", _in("nginx"))
def test_nginx_serves_with_its_configuration(text: str) -> None:
    with running(require_keys=True) as service, _nginx(text, service.address) as (nginx, port):
        assert nginx.check() == ""
        with nginx:
            response = httpx.get(f"https://127.0.0.1:{port}/healthz", verify=False)  # noqa: S501 - made above
        assert (response.status_code, response.json()["status"]) == (200, "ok")


def _settings_table() -> dict[str, list[str]]:
    """Return the row of each environment variable in the table of settings."""
    text = (ROOT / "docs" / "how-to" / "operations.md").read_text(encoding="utf-8")
    rows = [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return {row[2]: row for row in rows if len(row) == 5 and row[2].startswith(PREFIX)}


def test_the_table_of_settings_is_complete() -> None:
    table = _settings_table()
    defaults = {variable_of(setting.name): setting for setting in fields(Settings)}
    assert set(table) == {*defaults, CONFIG_VARIABLE, STORE_FILE_VARIABLE}
    for variable, setting in defaults.items():
        name, _, _, default, meaning = table[variable]
        value = setting.default
        text = str(value).lower() if isinstance(value, bool) else "" if value == () else str(value)
        assert (name, default) == (setting.name, text)
        assert meaning


def test_the_table_of_settings_names_the_options() -> None:
    serve = typer.main.get_command(application).commands["serve"]
    options = {parameter.name: parameter.opts[0] for parameter in serve.params if parameter.name != "help"}
    table = _settings_table()
    given = {row[2].removeprefix(PREFIX).lower(): row[1] for row in table.values() if row[1]}
    assert given == options
