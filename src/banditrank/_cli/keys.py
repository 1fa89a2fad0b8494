"""``banditrank keys``: create, list and revoke API keys."""

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank._cli.command import OptionErrorCommand, examples
from banditrank._cli.output import JsonOption, check_output_files, make_console, make_table, write_json
from banditrank._cli.store import PersistentStoreOption, StoreFileOption, open_given_store
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank.storage._records import KeyRecord

_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

key_commands = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@key_commands.callback()
def _help(context: typer.Context) -> None:
    """Create, list or revoke API keys of the service."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@key_commands.command(
    "create",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank keys create shop-frontend",
        "banditrank keys create ops --rights read,administer --expires 90d",
        "banditrank keys create ads --surface search-ads --surface home",
    ),
)
def create_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the key, such as its purpose.")],
    rights: Annotated[
        str, typer.Option(help="Comma-separated rights of the key: rank, read, administer.")
    ] = "rank",
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="When the key expires: a duration such as 30d, or a time such as 2027-01-31T00:00:00Z.",
            show_default="never",
        ),
    ] = None,
    surfaces: Annotated[
        list[str] | None,
        typer.Option(
            "--surface",
            metavar="NAME",
            help="Limit the key to this surface; repeat for several.",
            show_default="all surfaces",
        ),
    ] = None,
    store: PersistentStoreOption = None,
    store_file: StoreFileOption = None,
) -> None:
    """Create an API key and print it.

    The key is printed only once: the store holds its hash. Running services accept it within seconds.
    """
    from banditrank.engine._api_keys import new_api_key

    key, record = new_api_key(
        name,
        [right.strip() for right in rights.split(",")],
        expires_at_ms=None if expires is None else _milliseconds(expires),
        surfaces=surfaces or (),
    )
    with open_given_store(store, store_file, create=True) as opened:
        opened.add_key(record)
    typer.echo(key)


@key_commands.command("list", cls=OptionErrorCommand)
def list_command(
    store: PersistentStoreOption = None,
    store_file: StoreFileOption = None,
    json_file: JsonOption = None,
) -> None:
    """List all API keys with their rights, surfaces and expiry."""
    check_output_files(json_file)
    with open_given_store(store, store_file) as opened:
        keys = opened.api_keys()
    if json_file is not None:
        write_json({"keys": [_document(key) for key in keys]}, json_file)
    if json_file == "-":
        return
    table = make_table()
    for column in ("id", "name", "rights", "surfaces", "created", "expires", "revoked"):
        table.add_column(column, overflow="fold")
    for key in keys:
        named = (key.id, key.name, ", ".join(key.rights), ", ".join(key.surfaces) or "all")
        table.add_row(*named, _day(key.created_at_ms), _day(key.expires_at_ms), _day(key.revoked_at_ms))
    make_console().print(table)


@key_commands.command("revoke", cls=OptionErrorCommand)
def revoke_command(
    key: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the key, as shown by banditrank keys list.")
    ],
    store: PersistentStoreOption = None,
    store_file: StoreFileOption = None,
) -> None:
    """Revoke an API key; running services reject it within seconds."""
    with open_given_store(store, store_file) as opened:
        if not opened.revoke_key(key, revoked_at_ms=int(time.time() * 1000)):
            raise InvalidInputError("key", "must be the id of a key that is not revoked", key)
    typer.echo(f"revoked {key}")


def _milliseconds(expires: str) -> int:
    """Return the value of ``--expires`` in milliseconds since 1970."""
    if duration := re.fullmatch(r"([0-9]{1,6})([mhdw])", expires):
        return time.time_ns() // 1_000_000 + int(duration[1]) * _UNITS_MS[duration[2]]
    try:
        at = datetime.fromisoformat(expires)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        rule = "must be a duration such as 12h or 30d, or a time with an offset such as 2027-01-31T00:00:00Z"
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
