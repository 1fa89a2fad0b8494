"""What commands that work on a store have in common."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank.storage.base import Store

StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="sqlite:FILE, postgresql://…, redis://… or memory:",
        show_default="sqlite:banditrank.db",
    ),
]


def opened(store: str | None) -> "Store":
    """Open a store that a command was told of."""
    from banditrank.storage.opening import DEFAULT_STORE, open_store

    return open_store(DEFAULT_STORE if store is None else store)


def service_is_installed(command: str = "banditrank serve") -> None:
    """Raise an error unless what the service is made of is there."""
    missing = [
        name
        for name in ("uvicorn", "httptools", "uvloop", "msgspec", "prometheus_client")
        if not find_spec(name)
    ]
    if missing:
        raise InvalidInputError(command, 'needs pip install "banditrank[service]"', f"no {missing[0]}")
