"""Store of a command: resolving its address and opening it."""

import logging
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banditrank.errors import InvalidInputError
from banditrank.service._configuration import STORE_FILE_VARIABLE, STORE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from banditrank.storage._base import Store

PersistentStoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        help="Address of the store: sqlite:FILE, postgresql://… or redis://…, without a password.",
        show_default="$BANDITRANK_STORE, or sqlite:banditrank.db",
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address of the store: sqlite:FILE, postgresql://…, redis://… or memory:, without a password.",
        show_default="$BANDITRANK_STORE, or sqlite:banditrank.db",
    ),
]
StoreFileOption = Annotated[
    Path | None,
    typer.Option(
        "--store-file",
        metavar="FILE",
        help="File with the address of the store, which may contain a password.",
    ),
]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="TOML file with the settings of the service.",
        show_default="$BANDITRANK_CONFIG",
    ),
]

_SECRETS_DIRECTORY = Path("/run/secrets")  # of containers, which set the permissions and have no other users

logger = logging.getLogger(__name__)


@contextmanager
def store_address(
    store: str | None, store_file: Path | None, *, reads_environment: bool = True
) -> "Iterator[str | None]":
    """Yield the address of a command's store, or None if none is given.

    ``--store`` takes precedence over ``--store-file``, and that over `STORE_VARIABLE` or
    `STORE_FILE_VARIABLE`. `STORE_VARIABLE` is removed from the environment, so that child processes do not
    inherit it. Errors about the store that the block raises name the source of its address.

    Parameters
    ----------
    store, store_file
        Values of the options of these names.
    reads_environment
        Whether to read the environment variables.

    Raises
    ------
    InvalidInputError
        If ``--store`` contains a password, which other users of the machine can see, the file is not
        readable, or both environment variables are set.
    """
    from banditrank.storage._addresses import has_password, redacted

    inherited = os.environ.pop(STORE_VARIABLE, None) if reads_environment else None
    inherited_file = os.environ.get(STORE_FILE_VARIABLE) if reads_environment else None
    source = "store"
    if store is not None:
        if has_password(store):
            instead = f"--store-file or {STORE_VARIABLE}" if reads_environment else "--store-file"
            rule = f"must hold no password, which other users of the machine can see: use {instead}"
            raise InvalidInputError("store", rule, redacted(store))
        address: str | None = store
    elif store_file is not None:
        source, address = "--store-file", _read_address(store_file, "--store-file")
    elif inherited_file:
        if inherited:
            rule = f"must be unset if {STORE_VARIABLE} is set"
            raise InvalidInputError(STORE_FILE_VARIABLE, rule, inherited_file)
        source, address = STORE_FILE_VARIABLE, _read_address(Path(inherited_file), STORE_FILE_VARIABLE)
    else:
        address = inherited or None
        source = STORE_VARIABLE if inherited else source
    try:
        yield address
    except InvalidInputError as error:
        if error.field != "store":
            raise
        raise InvalidInputError(source, error.rule, error.value) from None


def _read_address(path: Path, source: str) -> str:
    from banditrank._files import is_private
    from banditrank.storage._addresses import has_password

    try:
        address = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InvalidInputError.from_os(source, "must be a readable file", path, error) from None
    except UnicodeDecodeError:
        address = ""
    if not address.isprintable() or not address:
        raise InvalidInputError(source, "must hold one line, the address of a store", str(path))
    if has_password(address) and not is_private(path) and not path.is_relative_to(_SECRETS_DIRECTORY):
        logger.warning("file with a password is accessible to other users: %s", path)
    return address


@contextmanager
def open_given_store(
    store: str | None, store_file: Path | None, *, create: bool = False
) -> "Iterator[Store]":
    """Open the store of a command, and close it after the block.

    Parameters
    ----------
    store, store_file
        Values of the options of these names.
    create
        Whether to create a missing SQLite file; otherwise it is an error.

    Raises
    ------
    InvalidInputError
        If the address is invalid, or the store is in memory, missing or cannot be opened.
    """
    with store_address(store, store_file) as address, open_store_at(address, create=create) as opened:
        yield opened


@contextmanager
def open_store_at(address: str | None, *, create: bool = False) -> "Iterator[Store]":
    """Open the store at an address, or the default one, and close it after the block.

    Raises
    ------
    InvalidInputError
        As for `open_given_store`.
    """
    from banditrank._files import is_file
    from banditrank.storage._addresses import is_in_memory, sqlite_file
    from banditrank.storage._factory import DEFAULT_STORE, open_store

    address = DEFAULT_STORE if address is None else address
    if is_in_memory(address):
        raise InvalidInputError("store", "must outlive this command", address)
    path = sqlite_file(address)
    if path is not None and not create and not is_file(path):
        raise InvalidInputError("store", "must be a store that exists", address)
    with open_store(address) as opened:
        yield opened
