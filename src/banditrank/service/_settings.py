"""Settings of the service."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from banditrank._checks import check_integer, check_number
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.service._configuration import DEFAULT_HOST, DEFAULT_PORT, load_settings
from banditrank.service._cors import check_origins
from banditrank.service._host_check import is_loopback
from banditrank.storage._addresses import is_in_memory
from banditrank.storage._base import Store
from banditrank.storage._factory import DEFAULT_STORE, open_store

HttpImplementation: TypeAlias = Literal["strict", "uvicorn"]


@dataclass(frozen=True)
class Settings:
    """Settings of ``banditrank serve``, from the command line, environment variables or a TOML file.

    Parameters
    ----------
    host, port
        Address to listen on; API keys are required unless it is a loopback address.
    store
        Address of the store.
    workers
        Number of worker processes.
    http
        HTTP implementation: ``strict``, the one of banditrank, or ``uvicorn``, for use behind a proxy.
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

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    store: str = field(default=DEFAULT_STORE, repr=False)  # may contain a password
    workers: int = 1
    http: HttpImplementation = "strict"
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
        self._check_types()
        check_integer("port", self.port, 0, 65_535)
        check_integer("workers", self.workers, 1, 64)
        if self.http not in get_args(HttpImplementation):
            raise UnknownNameError("http", self.http, get_args(HttpImplementation))
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
        with load_settings(overrides, path, {}) as settings:
            return settings

    def _check_types(self) -> None:
        """Check the types of settings that have no range."""
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(one.default, bool) and not isinstance(value, bool):
                raise InvalidInputError(one.name, "must be true or false", value)
            if isinstance(one.default, tuple) and not isinstance(value, tuple | list):
                raise InvalidInputError(one.name, "must be a list", value)
            if isinstance(one.default, str) and not isinstance(value, str):
                shown = type(value).__name__ if one.name == "store" else value  # may contain a password
                raise InvalidInputError(one.name, "must be text", shown)
