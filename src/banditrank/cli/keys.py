"""``banditrank keys``: API keys of the service."""

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank.cli.command import Command
from banditrank.cli.output import JsonOption, check_targets, make_console, write_json
from banditrank.cli.store import KeptStoreOption, StoreFileOption, opened
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank.storage.records import KeyRecord

_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

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
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="When the key expires: after 30d, or at 2027-01-31T00:00:00Z.",
            show_default="never",
        ),
    ] = None,
    surfaces: Annotated[
        list[str] | None,
        typer.Option(
            "--surface",
            metavar="NAME",
            help="The only surface that the key may access; repeat it for more.",
            show_default="all surfaces",
        ),
    ] = None,
    store: KeptStoreOption = None,
    store_file: StoreFileOption = None,
) -> None:
    """Make a key and print it, this once: only its hash is kept. Running services know it within seconds."""
    from banditrank.engine.api_keys import new_api_key

    key, record = new_api_key(
        name,
        [right.strip() for right in rights.split(",")],
        expires_at_ms=None if expires is None else _milliseconds(expires),
        surfaces=surfaces or (),
    )
    with opened(store, store_file, make=True) as kept:
        kept.add_key(record)
    typer.echo(key)


@key_commands.command("list", cls=Command)
def list_command(
    store: KeptStoreOption = None,
    store_file: StoreFileOption = None,
    json_file: JsonOption = None,
) -> None:
    """List all keys by name, with their rights, surfaces and expiry."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    check_targets(json_file)
    with opened(store, store_file) as kept:
        keys = kept.api_keys()
    if json_file is not None:
        write_json({"keys": [_document(key) for key in keys]}, json_file)
    if json_file == "-":
        return
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("id", "name", "rights", "surfaces", "created", "expires", "revoked"):
        table.add_column(column, overflow="fold")
    for key in keys:
        named = (key.id, key.name, ", ".join(key.rights), ", ".join(key.surfaces) or "all")
        table.add_row(*named, _day(key.created_at_ms), _day(key.expires_at_ms), _day(key.revoked_at_ms))
    make_console().print(table)


@key_commands.command("revoke", cls=Command)
def revoke_command(
    key: Annotated[str, typer.Argument(help="The key's id, as listed.")],
    store: KeptStoreOption = None,
    store_file: StoreFileOption = None,
) -> None:
    """Revoke a key; running services refuse it within seconds."""
    with opened(store, store_file) as kept:
        if not kept.revoke_key(key, revoked_at_ms=int(time.time() * 1000)):
            raise InvalidInputError("key", "must be the id of a key in force", key)
    typer.echo(f"revoked {key}")


def _milliseconds(expires: str) -> int:
    """Return a time in milliseconds since 1970, of which ``--expires`` says how far it is or when it is."""
    if duration := re.fullmatch(r"([0-9]{1,6})([mhdw])", expires):
        return time.time_ns() // 1_000_000 + int(duration[1]) * _UNITS_MS[duration[2]]
    try:
        at = datetime.fromisoformat(expires)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        rule = "must be a duration such as 12h or 30d, or a time with its offset such as 2027-01-31T00:00:00Z"
        raise InvalidInputError("expires", rule, expires)
    return int(at.timestamp() * 1000)


def _document(key: "KeyRecord") -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "rights": list(key.rights),
        "surfaces": list(key.surfaces) or None,
        "created_at": _time(key.created_at_ms),
        "expires_at": _time(key.expires_at_ms),
        "revoked_at": _time(key.revoked_at_ms),
    }


def _time(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def _day(milliseconds: int | None) -> str:
    return (_time(milliseconds) or "")[:10]
