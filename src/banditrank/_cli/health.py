"""``banditrank health``: check a running service, for containers and scripts."""

import json
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from banditrank._cli.store import ConfigOption
from banditrank.errors import InvalidInputError, one_line

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - replaced by loopback addresses


def health_command(
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of the service.", show_default="that of banditrank serve"),
    ] = None,
    config: ConfigOption = None,
    ready: Annotated[
        bool,
        typer.Option("--ready", help="Also check that surfaces are compiled and the store accepts writes."),
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the response.")] = 5.0,
) -> None:
    """Check that a service responds; exits with 1 if it does not.

    Without --url it is the service of this machine, at the host and port that `banditrank serve` would use.
    """
    from banditrank._checks import check_number

    check_number("timeout", timeout, 0.001, 3600.0)
    scheme, host, port = _address(url) if url is not None else ("http", *_configured_address(config))
    kind: Any = HTTPSConnection if scheme == "https" else HTTPConnection
    try:
        with closing(kind(host, port, timeout=timeout)) as connection:
            connection.request("GET", "/readyz" if ready else "/healthz")
            response = connection.getresponse()
            status, body = response.status, response.read(65_536)
    except (OSError, HTTPException, ValueError) as error:  # ValueError: not a name that can be looked up
        where = host if port is None else f"{host}:{port}"
        typer.echo(f"banditrank: the service at {where} does not respond: {one_line(error)}", err=True)
        raise typer.Exit(1) from None
    if status != 200:
        typer.echo(f"banditrank: the service returned status {status}{_detail(body)}", err=True)
        raise typer.Exit(1)
    typer.echo("ready" if ready else "ok")


def _address(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in ("http", "https") or not host:
        raise InvalidInputError("url", "must be an address such as http://127.0.0.1:8420", url)
    return scheme, host, port


def _configured_address(config: Path | None) -> tuple[str, int]:
    """Return the host and port of the service, without importing its settings, which would take longer."""
    from banditrank._checks import check_integer
    from banditrank.service._configuration import (
        DEFAULT_HOST,
        DEFAULT_PORT,
        GivenSetting,
        given_settings,
        variable_of,
    )

    given = given_settings(config)
    host = given.get("host", GivenSetting(DEFAULT_HOST, "host"))
    if not isinstance(host.value, str):
        raise InvalidInputError(host.source, "must be text", host.value)
    port = given.get("port", GivenSetting(DEFAULT_PORT, "port"))
    if port.source == variable_of("port"):  # text
        with suppress(ValueError):
            port = GivenSetting(int(port.value), port.source)
    number = check_integer(port.source, port.value, 0, 65_535)
    return _ANY_ADDRESS.get(host.value, host.value), number


def _detail(body: bytes) -> str:
    """Return the detail of a response's problem details, after a colon; nothing if there is none."""
    try:
        return f": {one_line(json.loads(body)['detail'])}"
    except (ValueError, KeyError, TypeError):
        return ""
