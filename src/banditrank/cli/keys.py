"""``banditrank keys``: API keys of the service."""

import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from banditrank.cli.command import Command
from banditrank.cli.output import make_console
from banditrank.cli.store import KeptStoreOption, opened
from banditrank.errors import InvalidInputError

key_commands = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@key_commands.callback()
def _help(context: typer.Context) -> None:
    """Create, list or revoke API keys of the service."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@key_commands.command("create", cls=Command)
def create_command(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    rights: Annotated[
        str, typer.Option(help="Some of rank, read, administer, with commas between them.")
    ] = "rank",
    store: KeptStoreOption = None,
) -> None:
    """Make a key and print it, this once: only its hash is kept. Running services know it within seconds."""
    from banditrank.engine.keys import new_api_key

    key, record = new_api_key(name, [right.strip() for right in rights.split(",")])
    with opened(store, make=True) as kept:
        kept.add_key(record)
    typer.echo(key)


@key_commands.command("list", cls=Command)
def list_command(store: KeptStoreOption = None) -> None:
    """List all keys by name, with their rights."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    with opened(store) as kept:
        keys = kept.api_keys()
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("id", "name", "rights", "created", "revoked"):
        table.add_column(column, overflow="fold")
    for key in keys:
        table.add_row(key.id, key.name, ", ".join(key.rights), _day(key.created), _day(key.revoked))
    make_console().print(table)


@key_commands.command("revoke", cls=Command)
def revoke_command(
    key: Annotated[str, typer.Argument(help="The key's id, as listed.")], store: KeptStoreOption = None
) -> None:
    """Revoke a key; running services refuse it within seconds."""
    with opened(store) as kept:
        if not kept.revoke_key(key, at=int(time.time() * 1000)):
            raise InvalidInputError("key", "must be the id of a key in force", key)
    typer.echo(f"revoked {key}")


def _day(milliseconds: int | None) -> str:
    return (
        "" if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d")
    )
