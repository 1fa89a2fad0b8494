"""Settings of the service."""

import logging
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from banditrank._checks import check_integer, check_number
from banditrank._files import is_private
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.service._cors import check_origins
from banditrank.service._host_check import is_loopback
from banditrank.storage._addresses import has_password, is_in_memory
from banditrank.storage._base import Store
from banditrank.storage._factory import DEFAULT_STORE, open_store

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """Settings of ``banditrank serve``, from the command line or a TOML file.

    Parameters
    ----------
    host, port
        Address to listen on; API keys are required unless it is a loopback address.
    store
        Address of the store.
    workers
        Number of worker processes.
    require_keys
        Require API keys on a loopback address, too; they are also required once the store has any.
    sync_seconds
        Seconds between two syncs with what other processes wrote to the store.
    max_body_bytes
        Maximum size of a request body.
    body_timeout_seconds
        Time within which a request body must arrive.
    max_streams
        Maximum number of open dashboard streams of each process.
    max_stream_seconds
        Maximum duration of a dashboard stream; the page then opens another.
    bucket_seconds
        Initial width of the buckets of a surface's time series.
    log_requests
        Log all requests, not only failed ones.
    allow_origins
        Other origins whose pages may send requests, such as ``https://shop.example``, or ``loopback`` for
        all origins on this machine.

    Raises
    ------
    InvalidInputError
        If a setting is out of range, or several workers share a store in memory.

    Examples
    --------
    >>> Settings(host="0.0.0.0").keys_required
    True
    """

    host: str = "127.0.0.1"
    port: int = 8420
    store: str = field(default=DEFAULT_STORE, repr=False)  # may contain a password
    workers: int = 1
    require_keys: bool = False
    sync_seconds: float = 0.25
    max_body_bytes: int = 1 << 20
    body_timeout_seconds: float = 10.0
    max_streams: int = 100
    max_stream_seconds: float = 3600.0
    bucket_seconds: float = 60.0
    log_requests: bool = False
    allow_origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_integer("port", self.port, 0, 65_535)
        check_integer("workers", self.workers, 1, 64)
        check_integer("max_body_bytes", self.max_body_bytes, 1024, 1 << 28)
        check_number("sync_seconds", self.sync_seconds, 0.01, 60.0)
        check_number("body_timeout_seconds", self.body_timeout_seconds, 0.1, 600.0)
        object.__setattr__(self, "allow_origins", check_origins(self.allow_origins))
        check_integer("max_streams", self.max_streams, 0, 10_000)
        check_number("max_stream_seconds", self.max_stream_seconds, 0.01, 86_400.0)
        check_number("bucket_seconds", self.bucket_seconds, 0.1, 86_400.0)
        if self.workers > 1 and is_in_memory(self.store):
            raise InvalidInputError("store", "must be shared by all workers", self.store)

    @property
    def keys_required(self) -> bool:
        """Whether API keys are required even if the store has none."""
        return self.require_keys or not is_loopback(self.host)

    def open_store(self) -> Store:
        """Return the opened store.

        Raises
        ------
        InvalidInputError
            If its address is invalid.
        StoreError
            If it cannot be opened.
        """
        return open_store(self.store)

    @classmethod
    def from_file(cls, path: Path, **overrides: Any) -> "Settings":
        """Return the settings of a TOML file.

        Parameters
        ----------
        path
            The file.
        **overrides
            Settings that replace those of the file.

        Raises
        ------
        InvalidInputError
            If the file cannot be read, or a setting is unknown or invalid.
        """
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidInputError.from_os("--config", "must be a readable file", path, error) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInputError("--config", f"must be a TOML file ({error})", str(path)) from None
        known = {one.name: one for one in fields(cls)}
        for name, value in values.items():
            if name not in known:
                raise UnknownNameError(f"{path}", name, known)
            default = known[name].default
            if not _has_type_of(value, default):
                expected = "a list" if isinstance(default, tuple) else f"like {default!r}"
                shown = type(value).__name__ if name == "store" else value  # may contain a password
                raise InvalidInputError(f"{path}: {name}", f"must be {expected}", shown)
        if has_password(values.get("store", "")) and not is_private(path):
            logger.warning("file with a password is accessible to other users: %s", path)
        return cls(**{**values, **overrides})


def _has_type_of(value: Any, default: Any) -> bool:
    """Return whether a value of a TOML file has the type of a setting."""
    if isinstance(default, tuple):
        return type(value) is list
    return type(value) is type(default) or (isinstance(default, float) and type(value) is int)
