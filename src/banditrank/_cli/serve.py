"""``banditrank serve``: run the ranking service."""

from pathlib import Path
from typing import Annotated

import typer

from banditrank._cli.store import StoreFileOption, StoreOption, store_address
from banditrank._extras import requires


def serve_command(
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on; other than loopback, API keys are required.", show_default="127.0.0.1"
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 for any free port.", show_default="8420")
    ] = None,
    store: StoreOption = None,
    store_file: StoreFileOption = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with these and further settings; options and environment variables override it.",
            show_default="$BANDITRANK_CONFIG",
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Number of processes.", show_default="1")] = None,
    http: Annotated[
        str | None,
        typer.Option(
            help="HTTP implementation: strict, or uvicorn's own for use behind a proxy.",
            show_default="strict",
        ),
    ] = None,
    require_keys: Annotated[
        bool | None,
        typer.Option(
            "--require-keys/--no-require-keys",
            help="Require API keys also on the loopback address.",
            show_default="no-require-keys",
        ),
    ] = None,
    allow_origins: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="Allow requests from pages of this origin (CORS), such as https://shop.example; repeat for "
            "several. loopback allows all origins of this machine.",
            show_default="only the service's own",
        ),
    ] = None,
    log_requests: Annotated[
        bool | None,
        typer.Option(
            "--log-requests/--no-log-requests",
            help="Log all requests, not only failed ones.",
            show_default="no-log-requests",
        ),
    ] = None,
) -> None:
    """Serve rankings and learn from feedback over HTTP.

    Runs until Ctrl-C or SIGTERM, then finishes open requests and writes pending feedback. Logs JSON lines to
    standard error. Environment variables set what options do not: BANDITRANK_PORT is --port, and so on.
    """
    with requires("service", "banditrank serve"):
        import uvloop  # noqa: F401 - uvicorn would run without it, only slower

        from banditrank.service._configuration import load_settings
        from banditrank.service._server import serve

    with store_address(store, store_file) as address:
        given = {
            "host": host,
            "port": port,
            "store": address,
            "workers": workers,
            "http": http,
            "require_keys": require_keys,
            "allow_origins": allow_origins or None,
            "log_requests": log_requests,
        }
        options = {name: value for name, value in given.items() if value is not None}
        with load_settings(options, config) as settings:
            serve(settings)
