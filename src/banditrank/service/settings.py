"""How the service is set up."""

import logging
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from banditrank.checks import check_integer, check_number
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.files import is_private
from banditrank.service.hosts import is_loopback
from banditrank.service.origins import check_origins
from banditrank.storage.addresses import has_password, is_in_memory
from banditrank.storage.base import Store
from banditrank.storage.factory import DEFAULT_STORE, open_store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """What ``banditrank serve`` is told, on the command line or in a file.

    Parameters
    ----------
    host, port
        Where to listen; beyond the loopback address API keys are demanded.
    store
        Address of the store.
    workers
        Processes that answer requests.
    require_keys
        Demand API keys on the loopback address, too; they are also demanded once there are any.
    sync_seconds
        How often to look for what other processes wrote to the store.
    largest_body
        Bytes of a request.
    body_seconds
        Within which a request must arrive.
    most_streams
        Dashboards that may be open at a time, in each process.
    stream_seconds
        After which a dashboard's stream is ended, for the page to ask for another.
    bucket_seconds
        Width of the first buckets of a surface's series.
    log_requests
        Log all requests, not only those that failed.
    allow_origins
        Origins whose pages may ask, beside the service's own: such as ``https://shop.example``, or
        ``loopback`` for all on the machine itself.

    Examples
    --------
    >>> Settings(host="0.0.0.0").demands_keys
    True
    """

    host: str = "127.0.0.1"
    port: int = 8420
    store: str = field(default=DEFAULT_STORE, repr=False)  # there may be a password in it
    workers: int = 1
    require_keys: bool = False
    sync_seconds: float = 0.25
    largest_body: int = 1 << 20
    body_seconds: float = 10.0
    most_streams: int = 100
    stream_seconds: float = 3600.0
    bucket_seconds: float = 60.0
    log_requests: bool = False
    allow_origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_integer("port", self.port, 0, 65_535)
        check_integer("workers", self.workers, 1, 64)
        check_integer("largest_body", self.largest_body, 1024, 1 << 28)
        check_number("sync_seconds", self.sync_seconds, 0.01, 60.0)
        check_number("body_seconds", self.body_seconds, 0.1, 600.0)
        object.__setattr__(self, "allow_origins", check_origins(self.allow_origins))
        check_integer("most_streams", self.most_streams, 0, 10_000)
        check_number("stream_seconds", self.stream_seconds, 0.01, 86_400.0)
        check_number("bucket_seconds", self.bucket_seconds, 0.1, 86_400.0)
        if self.workers > 1 and is_in_memory(self.store):
            raise InvalidInputError("store", "must be shared by all workers", self.store)

    @property
    def demands_keys(self) -> bool:
        """Whether a key is needed whether or not there are any."""
        return self.require_keys or not is_loopback(self.host)

    def open_store(self) -> Store:
        """Open the store."""
        return open_store(self.store)

    @classmethod
    def from_file(cls, path: Path, **overriding: Any) -> "Settings":
        """Read settings from a TOML file; those given otherwise override it."""
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
            if not _is_like(value, default):
                like = "a list" if isinstance(default, tuple) else f"like {default!r}"
                told = type(value).__name__ if name == "store" else value  # there may be a password in it
                raise InvalidInputError(f"{path}: {name}", f"must be {like}", told)
        if has_password(values.get("store", "")) and not is_private(path):
            _log.warning("file with a password is accessible to other users: %s", path)
        return cls(**{**values, **overriding})


def _is_like(value: Any, default: Any) -> bool:
    """Return whether a value of a TOML file has the type of a setting."""
    if isinstance(default, tuple):
        return type(value) is list
    return type(value) is type(default) or (isinstance(default, float) and type(value) is int)
