"""Backends by name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias, get_args

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._backends.local import LocalBackend

BackendName: TypeAlias = Literal["joblib", "ray"]


def make_backend(
    backend: BackendName | Backend = "joblib", *, workers: int | None = None, address: str | None = None
) -> Backend:
    """Return a backend by name.

    Parameters
    ----------
    backend
        ``joblib`` for this machine, ``ray`` for a cluster, or a `Backend`, which is returned unchanged.
    workers
        Maximum number of concurrent replications; the number of processors by default.
    address
        Address of the Ray cluster: see `banditrank.simulation._backends.ray_cluster.RayBackend`.

    Raises
    ------
    UnknownNameError
        If there is no backend of that name.
    InvalidInputError
        If an option does not apply to the backend, or is out of range.

    Examples
    --------
    >>> make_backend("joblib", workers=3).workers
    3
    >>> make_backend("spark")
    Traceback (most recent call last):
    banditrank.errors.UnknownNameError: backend must be one of joblib, ray, got 'spark'
    """
    if isinstance(backend, Backend):
        for field, value in (("workers", workers), ("address", address)):
            if value is not None:
                raise InvalidInputError(field, "must be left out if backend is a Backend", value)
        return backend
    if backend == "ray":
        from banditrank.simulation._backends.ray_cluster import RayBackend  # noqa: PLC0415 - an optional dependency

        return RayBackend(address, workers)
    if backend != "joblib":
        raise UnknownNameError("backend", backend, get_args(BackendName))
    if address is not None:
        raise InvalidInputError("address", "must be left out unless the backend is ray", address)
    return LocalBackend(workers)


@contextmanager
def open_backend(
    backend: BackendName | Backend, *, workers: int | None = None, address: str | None = None
) -> Iterator[Backend]:
    """Yield the backend that `make_backend` returns, open.

    A backend that is passed as an object is opened and closed by its owner.
    """
    made = make_backend(backend, workers=workers, address=address)
    if made is backend:
        yield made
    else:
        with made:
            yield made
