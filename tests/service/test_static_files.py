"""Static files of the dashboard."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from flit_core import buildapi
from helpers.running_service import Running, running

from banditrank.service import _static_files as static_files

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "banditrank" / "service"
SCRIPT = "export const greeting = 'é';\n"


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    directory = tmp_path / "static"
    directory.mkdir()
    (directory / "index.html").write_text("<!doctype html><title>surfaces</title>")
    (directory / "surface.html").write_text("<!doctype html><title>one</title>")
    (directory / "docs.html").write_text("<!doctype html><title>api</title>")
    (directory / "page.js").write_text(SCRIPT, encoding="utf-8")
    (directory / "page.css").write_text("p { margin: 0 }")
    (directory / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (directory / "notes.txt").write_text("not for everybody")
    (tmp_path / "secret.js").write_text("secret")
    monkeypatch.setattr(static_files._files, "all_directories", [directory, SOURCES / "swagger_ui"])
    with running(require_keys=True) as service:
        yield service


@pytest.mark.parametrize(
    ("path", "kind", "content"),
    [
        ("/", "text/html; charset=utf-8", "<title>surfaces</title>"),
        ("/surfaces/ads", "text/html; charset=utf-8", "<title>one</title>"),
        ("/surfaces/unheard-of", "text/html; charset=utf-8", "<title>one</title>"),
        ("/docs", "text/html; charset=utf-8", "<title>api</title>"),
        ("/assets/swagger-ui.css", "text/css; charset=utf-8", ".swagger-ui"),
        ("/assets/page.js", "text/javascript; charset=utf-8", SCRIPT),
        ("/assets/page.css", "text/css; charset=utf-8", "margin"),
        ("/assets/icon.svg", "image/svg+xml", "<svg"),
    ],
)
def test_files_need_no_key_and_have_a_strict_content_policy(
    service: Running, path: str, kind: str, content: str
) -> None:
    response = service.ask("GET", path)
    assert response.status_code == 200
    assert content in response.text
    assert response.headers["content-type"] == kind
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-cache"
    policy = dict(
        part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    tag = response.headers["etag"]
    again = service.ask("GET", path, headers={"if-none-match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    head = service.ask("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/assets/index.html",
        "/assets/LICENSE",
        "/assets/SHA256SUMS",
        "/assets/swagger-ui-bundle.js.LICENSE.txt",
        "/assets/notes.txt",
        "/assets/missing.js",
        "/assets/..%2Fsecret.js",
        "/assets/%2e%2e%2fsecret.js",
        "/assets/",
        "/surfaces/",
        "/index.html",
    ],
)
def test_other_files_are_not_served(service: Running, path: str) -> None:
    response = service.ask("GET", path)
    assert response.status_code == 404
    assert "secret" not in response.text


def test_the_package_has_all_files_that_pages_load() -> None:
    files = list((SOURCES / "static").iterdir())
    names = {file.name for file in (*files, *(SOURCES / "swagger_ui").iterdir())}
    for file in files:
        text = file.read_text(encoding="utf-8")
        for name in re.findall(r'(?:assets/|from "\./|import "\./)([\w.-]+)', text):
            assert name in names


def test_the_wheel_contains_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with ZipFile(tmp_path / buildapi.build_wheel(str(tmp_path))) as wheel:
        packed = set(wheel.namelist())
    for directory in ("static", "swagger_ui"):
        shipped = [file.name for file in (ROOT / "src/banditrank/service" / directory).iterdir()]
        assert {f"banditrank/service/{directory}/{name}" for name in shipped} <= packed


def test_swagger_ui_is_the_pinned_release() -> None:
    directory = ROOT / "src/banditrank/service/swagger_ui"
    hashes = dict(reversed(line.split()) for line in (directory / "SHA256SUMS").read_text().splitlines())
    assert {file.name for file in directory.iterdir()} == {*hashes, "SHA256SUMS"}
    for name, digest in hashes.items():
        assert hashlib.sha256((directory / name).read_bytes()).hexdigest() == digest, name
    script = (ROOT / "tools/update_swagger_ui").read_text()
    version = re.search(r"^version=(\S+)$", script, re.MULTILINE)
    bundle = (directory / "swagger-ui-bundle.js").read_text(encoding="utf-8")
    assert f'"{version[1]}"' in bundle
