"""Backends by name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias, get_args

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.backends.local import LocalBackend

BackendName: TypeAlias = Literal["joblib", "ray"]


def make_backend(
    backend: BackendName | Backend = "joblib", *, workers: int | None = None, address: str | None = None
) -> Backend:
    """Return a backend by name.

    Parameters
    ----------
    backend
        ``joblib`` for this machine, ``ray`` for a cluster, or a backend, which is returned as it is.
    workers
        How many replications run at once; as many as there are processors when left out.
    address
        Of the Ray cluster: see `banditrank.simulation.backends.ray_cluster.RayBackend`.

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
                raise InvalidInputError(field, "must be left out where the backend is no name", value)
        return backend
    if backend == "ray":
        from banditrank.simulation.backends.ray_cluster import RayBackend  # noqa: PLC0415 - an optional dependency

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
    """Give what `make_backend` returns, open. A backend that is given is its owner's to open and close."""
    found = make_backend(backend, workers=workers, address=address)
    if found is backend:
        yield found
    else:
        with found:
            yield found
