"""``banditrank serve``: the ranking service."""

from pathlib import Path
from typing import Annotated

import typer

from banditrank.cli.store import StoreFileOption, StoreOption, given_address, service_is_installed


def serve_command(
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on; beyond loopback API keys are demanded.", show_default="127.0.0.1"
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 takes any that is free.", show_default="8420")
    ] = None,
    store: StoreOption = None,
    store_file: StoreFileOption = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file with these and more settings; options override it."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that answer requests.", show_default="1")
    ] = None,
    require_keys: Annotated[
        bool, typer.Option("--require-keys", help="Demand API keys on the loopback address, too.")
    ] = False,
    allow_origins: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="Let pages of this origin ask, such as https://shop.example; repeat it for more. loopback "
            "stands for all on this machine.",
            show_default="none but the service's own",
        ),
    ] = None,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Log every request, not only those that fail.")
    ] = False,
) -> None:
    """Serve rankings and learn from feedback over HTTP, until Ctrl-C."""
    service_is_installed()
    from banditrank.service.server import serve
    from banditrank.service.settings import Settings

    with given_address(store, store_file) as address:
        given = {
            "host": host,
            "port": port,
            "store": address,
            "workers": workers,
            "require_keys": require_keys or None,
            "allow_origins": allow_origins or None,
            "log_requests": log_requests or None,
        }
        overriding = {name: value for name, value in given.items() if value is not None}
        settings = Settings(**overriding) if config is None else Settings.from_file(config, **overriding)  # type: ignore[arg-type]
        serve(settings)
