"""Data frames of pandas and Polars as tables of Arrow.

A column whose values have no common type, because of one dirty value for example, becomes text, as it would
be in a CSV file: its dirty values are bad rows, which are refused by their number or dropped.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from banditrank._extras import requires
from banditrank.errors import InvalidInputError
from banditrank.logs._row_groups import NOT_A_NAME, as_text, is_missing

_NESTED = (dict, list, tuple, set, np.ndarray)
_LISTS = (list, tuple, np.ndarray)


def pandas_table(frame: Any) -> Any:
    """Return a frame of pandas as a table of Arrow, without its index.

    Raises
    ------
    InvalidInputError
        If two columns have the same name.
    """
    with requires("logs", "reading click logs"):
        import pyarrow as pa  # noqa: PLC0415 - heavy, and optional
    names = [str(name) for name in frame.columns]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InvalidInputError("log", "must have each column once", name)
    columns = []
    for number in range(len(names)):
        column = frame.iloc[:, number]
        try:
            columns.append(pa.Array.from_pandas(column))
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            values = column.astype(object).where(column.notna(), None).tolist()
            columns.append(pa.array(mixed_as_text(values)))
    return pa.table(columns, names=names)


def polars_table(frame: Any) -> Any:
    """Return a frame of Polars as a table of Arrow."""
    import polars as pl  # noqa: PLC0415 - heavy, and optional

    mixed = {
        name: pl.Series(name, mixed_as_text(frame[name].to_list()))
        for name, kind in frame.schema.items()
        if kind == pl.Object  # which Arrow does not know
    }
    return frame.with_columns(**mixed).to_arrow()


def mixed_as_text(values: Sequence[Any]) -> list[Any]:
    r"""Return values of several types as text, or as lists of texts if most of them are lists.

    Examples
    --------
    >>> mixed_as_text([1, 2.0, "three", None, {"id": 4}])
    ['1', '2', 'three', None, "\x01{'id': 4}"]
    >>> mixed_as_text([["a", 1], ["b"], "c"])
    [['a', '1'], ['b'], ['c']]
    >>> mixed_as_text(["a", "\udcff"])  # a byte that is not UTF-8, as Python reads it with surrogateescape
    ['a', '\x01\\udcff']
    """
    n_lists = sum(isinstance(value, _LISTS) for value in values)
    texts = [
        [_text(each) for each in value] if isinstance(value, _LISTS) else _text(value) for value in values
    ]
    if 2 * n_lists <= sum(text is not None for text in texts):
        return [_text(value) for value in values]
    return [text if text is None or isinstance(text, list) else [text] for text in texts]


def _text(value: Any) -> str | None:
    if isinstance(value, _NESTED):
        return f"{NOT_A_NAME}{_escaped(str(value))}"
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    text = None if is_missing(value) else as_text(value)
    return text if text is None or _is_encodable(text) else f"{NOT_A_NAME}{_escaped(text)}"


def _is_encodable(text: str) -> bool:
    """Return whether a text has no half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escaped(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
