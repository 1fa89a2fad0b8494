"""Attributes of users in a table of their own, which are joined with the rows of a log by the user."""

from collections.abc import Sequence
from typing import Any

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.logs._engines.base import CountEngine
from banditrank.logs._log_columns import ColumnKind, LogColumns, guess_column


def load_with_users(
    engine: CountEngine, log: Any, users: Any, columns: LogColumns
) -> tuple[dict[str, ColumnKind], tuple[str, ...]]:
    """Create the view ``source`` of a log whose rows have the attributes of their user as well.

    Rows of users that the table does not have lack these values.

    Parameters
    ----------
    engine
        Engine that reads both.
    log, users
        Files, or tables of Arrow.
    columns
        Given columns of the log. If user types are given, only those are joined.

    Returns
    -------
    tuple
        Kinds of all columns, and the names of those that come from the table of users.

    Raises
    ------
    InvalidInputError
        If no column of the log or the table is the user, another column is in both, or a user has two rows
        that differ.
    UnknownNameError
        If a given column does not exist.
    """
    kinds, found = engine.load(log, "log_rows"), engine.load(users, "user_rows")
    user = columns.user or guess_column("user", kinds)
    if user is None:
        rule = "must be named to join the user table"
        raise InvalidInputError("user column", rule, ", ".join(list(kinds)[:12]))
    if user not in kinds:
        raise UnknownNameError("user column", user, kinds)
    key = user if user in found else guess_column("user", found)
    if key is None:
        rule = f"must have the column {user}"
        raise InvalidInputError("user table", rule, ", ".join(list(found)[:12]))
    joined = _attributes(columns, kinds, [name for name in found if name != key])
    name = engine.dialect.name
    attributes = "".join(f", {name(attribute)}" for attribute in joined)
    engine.create_view(
        "user_attributes",
        f"SELECT DISTINCT CAST({name(key)} AS STRING) AS joined_user{attributes} FROM user_rows "  # noqa: S608 - quoted names
        f"WHERE {name(key)} IS NOT NULL",
    )
    twice = engine.fetch(
        "SELECT min(joined_user) AS user FROM (SELECT joined_user FROM user_attributes "
        "GROUP BY joined_user HAVING count(*) > 1) AS twice"
    )
    contradictory = twice["user"][0].as_py()
    if contradictory is not None:
        raise InvalidInputError("user table", "must not contradict itself about a user", contradictory)
    own = ", ".join(f"log_rows.{name(column)}" for column in kinds)
    engine.create_view(
        "source",
        f"SELECT {own}{attributes} FROM log_rows LEFT JOIN user_attributes "  # noqa: S608 - quoted names
        f"ON CAST(log_rows.{name(user)} AS STRING) = user_attributes.joined_user",
    )
    return {**kinds, **{attribute: found[attribute] for attribute in joined}}, joined


def _attributes(
    columns: LogColumns, of_log: dict[str, ColumnKind], of_users: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns to join: the given user types that the log lacks, or all if none is given."""
    if columns.user_type is not None:
        given = [columns.user_type] if isinstance(columns.user_type, str) else list(columns.user_type)
        return tuple(name for name in given if name in of_users and name not in of_log)
    for name in of_users:
        if name in of_log:
            raise InvalidInputError("user table", "must have no column of the log but the user", name)
    return tuple(of_users)
