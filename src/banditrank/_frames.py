"""Data frames of results, with pandas or Polars."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import NDArray

from banditrank._extras import requires
from banditrank.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FrameBackend: TypeAlias = Literal["pandas", "polars"]
"""Library of a data frame."""

Columns: TypeAlias = dict[str, NDArray[Any] | list[Any]]
"""Columns of equal length, by name."""


class Tabular:
    """An object that can be converted to a data frame."""

    __slots__ = ()
    _key_column = "name"  # column of the keys of a mapping in `to_frame`

    @overload
    def to_frame(self, *, backend: Literal["pandas"] = "pandas") -> "pd.DataFrame": ...

    @overload
    def to_frame(self, *, backend: Literal["polars"]) -> "pl.DataFrame": ...

    def to_frame(self, *, backend: FrameBackend = "pandas") -> "pd.DataFrame | pl.DataFrame":
        """Return the object as a data frame; the class describes its rows and columns.

        Parameters
        ----------
        backend
            ``pandas`` or ``polars``.

        Raises
        ------
        MissingDependencyError
            If the library is not installed.
        UnknownNameError
            If there is no backend of this name.
        """
        return make_frame(self._columns(), backend)

    def _columns(self) -> Columns:
        raise NotImplementedError

    @classmethod
    def _distinct_keys(cls, results: Sequence[Any]) -> Sequence[str | None]:
        """Return the keys of several objects of this kind without names; None for their own."""
        return [None] * len(results)


class NamedTabular(Tabular):
    """An object of user types and items without names that can be converted to a data frame."""

    __slots__ = ()

    @overload
    def to_frame(
        self,
        *,
        user_types: Sequence[str] | None = None,
        items: Sequence[str] | None = None,
        backend: Literal["pandas"] = "pandas",
    ) -> "pd.DataFrame": ...

    @overload
    def to_frame(
        self,
        *,
        user_types: Sequence[str] | None = None,
        items: Sequence[str] | None = None,
        backend: Literal["polars"],
    ) -> "pl.DataFrame": ...

    def to_frame(
        self,
        *,
        user_types: Sequence[str] | None = None,
        items: Sequence[str] | None = None,
        backend: FrameBackend = "pandas",
    ) -> "pd.DataFrame | pl.DataFrame":
        """Return the object as a data frame; the class describes its rows and columns.

        Parameters
        ----------
        user_types, items
            Names; ``type-1``, … and ``item-1``, … by default.
        backend
            ``pandas`` or ``polars``.

        Raises
        ------
        InvalidInputError
            If the number of names is another one.
        MissingDependencyError
            If the library is not installed.
        UnknownNameError
            If there is no backend of this name.
        """
        return make_frame(self._columns(user_types, items), backend)

    def _columns(
        self, user_types: Sequence[str] | None = None, items: Sequence[str] | None = None
    ) -> Columns:
        raise NotImplementedError


@overload
def to_frame(
    results: Iterable[Tabular] | Mapping[str, Tabular], *, backend: Literal["pandas"] = "pandas"
) -> "pd.DataFrame": ...


@overload
def to_frame(
    results: Iterable[Tabular] | Mapping[str, Tabular], *, backend: Literal["polars"]
) -> "pl.DataFrame": ...


def to_frame(
    results: Iterable[Tabular] | Mapping[str, Tabular], *, backend: FrameBackend = "pandas"
) -> "pd.DataFrame | pl.DataFrame":
    """Return several objects of one kind as one data frame, with the columns of their own ``to_frame``.

    Parameters
    ----------
    results
        Simulation results, points of a frontier, solutions, estimates, counts or problems. The keys of a
        mapping are the column ``policy`` of simulation results, and a first column ``name`` of others.
        Without a mapping, policies of one label have the parameters and settings that differ appended.
    backend
        ``pandas`` or ``polars``.

    Raises
    ------
    InvalidInputError
        If there are no results, their columns differ, or labels, problems and seeds of simulation results are
        the same.
    MissingDependencyError
        If the library is not installed.
    UnknownNameError
        If there is no backend of this name.

    Examples
    --------
    >>> from banditrank import kdd2012, simulate, to_frame
    >>> results = [simulate(name, kdd2012(), 500, replications=2) for name in ("ucb-rank", "random")]
    >>> to_frame(results).groupby("policy")["replication"].nunique().to_dict()
    {'random-personalized': 2, 'ucb-rank-personalized-0.25': 2}
    """
    tables = []
    values = list(results.values() if isinstance(results, Mapping) else results)
    for result in values:
        if not isinstance(result, Tabular):
            raise InvalidInputError("results", "must be objects with a method to_frame", result)
    names: Sequence[str | None] = [None] * len(values)
    if isinstance(results, Mapping):
        names = list(results)
    elif len({type(result) for result in values}) == 1:
        names = type(values[0])._distinct_keys(values)  # noqa: SLF001 - of the class above
    for name, result in zip(names, values, strict=True):
        columns = result._columns()  # noqa: SLF001 - of the class above
        if name is not None:
            key = result._key_column  # noqa: SLF001 - of the class above
            keyed: Columns = {key: [name] * len(next(iter(columns.values())))}
            columns = {**keyed, **{column: columns[column] for column in columns if column != key}}
        tables.append(columns)
    if not tables:
        raise InvalidInputError("results", "must hold at least one result", results)
    for columns in tables:
        if list(columns) != list(tables[0]):
            rule = f"must all have the columns {', '.join(tables[0])}"
            raise InvalidInputError("results", rule, ", ".join(columns))
    return make_frame(
        {column: _concatenate([one[column] for one in tables]) for column in tables[0]}, backend
    )


def make_frame(columns: Columns, backend: FrameBackend) -> "pd.DataFrame | pl.DataFrame":
    """Return a data frame of columns.

    Raises
    ------
    MissingDependencyError
        If the library is not installed.
    UnknownNameError
        If there is no backend of this name.
    """
    if backend == "pandas":
        with requires("frames", "data frames"):
            import pandas as pd  # noqa: PLC0415 - heavy, and optional

        return pd.DataFrame(columns)
    if backend == "polars":
        with requires("polars", "data frames of Polars"):
            import polars as pl  # noqa: PLC0415 - heavy, and optional

        return pl.DataFrame(columns)
    raise UnknownNameError("backend", backend, get_args(FrameBackend))


def names_or_default(field: str, names: Sequence[str] | None, prefix: str, count: int) -> list[str]:
    """Return names, by default numbered ones as ``item-1``.

    Raises
    ------
    InvalidInputError
        If the number of names is another one.
    """
    if names is None:
        return [f"{prefix}-{number}" for number in range(1, count + 1)]
    if isinstance(names, str) or len(names) != count:
        raise InvalidInputError(field, f"must hold {count} names", names)
    return list(names)


def cell_columns(user_types: Sequence[str], n_positions: int, items: Sequence[str]) -> Columns:
    """Return the columns user_type, position (from 1) and item of all cells, items fastest."""
    n, k, m = len(user_types), n_positions, len(items)
    return {
        "user_type": np.repeat(np.array(user_types, dtype=object), k * m).tolist(),
        "position": np.tile(np.repeat(np.arange(1, k + 1), m), n),
        "item": list(items) * (n * k),
    }


def _concatenate(parts: Sequence[NDArray[Any] | list[Any]]) -> NDArray[Any] | list[Any]:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return list(chain.from_iterable(parts))
