"""What commands that work on a store have in common."""

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from banditrank.storage.base import Store

KeptStoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        help="sqlite:FILE, postgresql://… or redis://….",
        show_default="sqlite:banditrank.db",
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="sqlite:FILE, postgresql://…, redis://… or memory:",
        show_default="sqlite:banditrank.db",
    ),
]


@contextmanager
def opened(store: str | None, *, make: bool = False) -> "Iterator[Store]":
    """Open a store that a command was told of, and close it.

    Parameters
    ----------
    store
        Its address, None for the usual one.
    make
        Whether an SQLite file that is not there is made, or refused.
    """
    from banditrank.files import is_file
    from banditrank.storage.addresses import is_in_memory, sqlite_file
    from banditrank.storage.opening import DEFAULT_STORE, open_store

    address = DEFAULT_STORE if store is None else store
    if is_in_memory(address):
        raise InvalidInputError("--store", "must outlive this command", address)
    path = sqlite_file(address)
    if path is not None and not make and not is_file(path):
        raise InvalidInputError("--store", "must be a store that exists", address)
    with open_store(address) as found:
        yield found


def service_is_installed(command: str = "banditrank serve") -> None:
    """Raise an error unless what the service is made of is there."""
    missing = [
        name
        for name in ("uvicorn", "httptools", "uvloop", "msgspec", "prometheus_client")
        if not find_spec(name)
    ]
    if missing:
        raise InvalidInputError(command, 'needs pip install "banditrank[service]"', f"no {missing[0]}")
