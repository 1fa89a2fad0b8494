"""CORS headers are sent to allowed origins only."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from helpers.command_line import check_refusal
from helpers.running_service import Running, running

from banditrank.errors import InvalidInputError
from banditrank.service._application import ROUTES
from banditrank.service._cors import check_origins
from banditrank.service._settings import Settings

SHOP = "https://shop.example"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}


@pytest.fixture(scope="module")
def local() -> Iterator[Running]:
    with running(allow_origins=["loopback"]) as service:
        yield service


def test_there_are_no_cors_headers_by_default() -> None:
    with running() as service:
        answer = service.ask("GET", "/healthz", headers={"origin": "http://localhost:8000"})
        preflight = service.ask("OPTIONS", "/v1/feedback", headers={"origin": SHOP, **PREFLIGHT})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert preflight.status_code == 405
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_every_method_of_the_api_is_allowed() -> None:
    """Finding 15: a preflight response lists the methods of all routes, PUT among them."""
    with running(allow_origins=[SHOP]) as service:
        answers = [
            service.ask("OPTIONS", path, headers={"origin": SHOP, "access-control-request-method": method})
            for path, methods in service.ask("GET", "/openapi.json").json()["paths"].items()
            for method in map(str.upper, methods)
        ]
        synced = service.ask("PUT", "/v1/surfaces/ads/items", {"items": ["a"]}, headers={"origin": SHOP})
    allowed = {answer.headers["access-control-allow-methods"] for answer in answers}
    assert (
        allowed
        == {", ".join(sorted({route.method for route in ROUTES}))}
        == {"DELETE, GET, PATCH, POST, PUT"}
    )
    assert synced.headers["access-control-allow-origin"] == SHOP


def test_an_allowed_origin_gets_cors_headers() -> None:
    with running(allow_origins=[SHOP]) as service:
        preflight = service.ask("OPTIONS", "/v1/feedback", headers={"origin": SHOP, **PREFLIGHT})
        answer = service.ask("GET", "/healthz", headers={"origin": SHOP})
        refusal = service.ask("POST", "/v1/feedback", {"ranking": "x"}, headers={"origin": SHOP})
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == SHOP
    assert "POST" in preflight.headers["access-control-allow-methods"]
    allowed = preflight.headers["access-control-allow-headers"].lower().split(", ")
    assert {"authorization", "content-type"} <= set(allowed)
    assert "access-control-allow-credentials" not in preflight.headers
    for response, status in ((answer, 200), (refusal, 404)):
        assert response.status_code == status
        assert (response.headers["access-control-allow-origin"], response.headers["vary"]) == (SHOP, "Origin")


@pytest.mark.parametrize("origin", ["https://other.example", "null", "http://shop.example", f"{SHOP}:8443"])
def test_other_origins_get_no_cors_headers(origin: str) -> None:
    with running(allow_origins=[SHOP]) as service:
        preflight = service.ask("OPTIONS", "/v1/feedback", headers={"origin": origin, **PREFLIGHT})
        answer = service.ask("GET", "/healthz", headers={"origin": origin})
        without = service.ask("GET", "/healthz")
    assert preflight.status_code == 400
    for response in (preflight, answer, without):
        assert "access-control-allow-origin" not in response.headers
        # What is kept for one origin is not shown to another.
        assert "Origin" in response.headers["vary"].split(", ")


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:8000", True),
        ("http://127.0.0.1", True),
        ("https://[::1]:1", True),
        ("null", False),
        ("http://localhost.example", False),
        ("http://127.0.0.1.example", False),
        ("http://192.168.0.1", False),
        ("file://localhost", False),
        ("http://[", False),
        ("http://localhost/behind", False),
        ("", False),
    ],
)
def test_loopback_allows_only_origins_on_this_machine(
    local: Running,
    origin: str,
    allowed: bool,  # noqa: FBT001
) -> None:
    answer = local.ask("GET", "/healthz", headers={"origin": origin})
    assert answer.headers.get("access-control-allow-origin") == (origin if allowed else None)


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "null",
        "shop.example",
        f"{SHOP}/",
        f"{SHOP}:x",
        "https://",
        "ftp://shop.example",
        "https://a@b.c",
        7,
        "",
    ],
)
def test_invalid_origins_are_refused(origin: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^allow_origins must be origins such as"):
        check_origins([origin])


def test_origins_are_normalized_as_browsers_send_them() -> None:
    given = ["HTTPS://Shop.Example:443", "http://shop.example:8080", "http://[::1]:80"]
    assert check_origins(given) == (SHOP, "http://shop.example:8080", "http://[::1]")


def test_origins_are_read_from_a_file_and_passed_to_workers(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text('allow_origins = ["https://shop.example", "loopback"]')
    settings = Settings.from_file(file)
    assert settings.allow_origins == (SHOP, "loopback")
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 - as workers get it
    file.write_text('allow_origins = "https://shop.example"')
    with pytest.raises(InvalidInputError, match="allow_origins must be a list"):
        Settings.from_file(file)


def test_an_invalid_option_is_named(
    capsys: pytest.CaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refusal(
        capsys, ["serve", "--allow-origin", "shop"], "--allow-origin must be origins such as .* got 'shop'"
    )


def test_keys_are_required_across_origins() -> None:
    with running(allow_origins=[SHOP], require_keys=True) as service:
        refused = service.ask("GET", "/v1/surfaces", headers={"origin": SHOP})
    assert isinstance(refused, httpx.Response)
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, SHOP)
