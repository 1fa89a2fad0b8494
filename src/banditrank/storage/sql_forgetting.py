"""What is thrown away in tables: what is old, and what is left of deleted surfaces. In portions."""

from collections.abc import Sequence
from typing import Any

from banditrank.storage.records import min_key, is_storable
from banditrank.storage.sql_pieces import SqlPieces

_PORTION = 1000  # rows that are thrown away at once: others who write wait no longer than that takes
_DELETED = "deleted surface "  # begins the name of a setting: what was learned of it is still to be deleted
_OF_SURFACES = {  # tables, and by which column there is an index of a surface's rows
    "definitions": "revision",
    "outcomes": "key",
    "shown": "first",
    "changes": "version",
    "snapshots": "version",
}


class SqlForgetting(SqlPieces):
    """A store in a database, as far as throwing away goes."""

    def prune(self, surface: int, *, before: int) -> None:
        """Throw away what is old."""
        rows = self._read(
            "SELECT max(version) FROM snapshots WHERE surface = %s AND saved < %s", [surface, before]
        )
        version, end = rows[0][0] or 0, min_key(before)
        with self._transaction() as transaction:
            if not self._lock_surfaces(transaction, [surface]):
                return  # it is deleted, and `purge_deleted` throws all of it away
            transaction.run(
                "UPDATE surfaces SET forgotten = %s WHERE number = %s AND forgotten < %s",
                [before, surface, before],
            )
            self._cut_pieces(transaction, surface, end)
        summed = "version <= %s AND version < (SELECT version FROM surfaces WHERE number = %s)"
        self._delete(surface, "shown", "number", "last < %s", [end])
        self._delete(surface, "outcomes", "key", "key < %s", [end])
        self._delete(surface, "snapshots", "version", "version < %s", [version])
        self._delete(surface, "changes", "version", summed, [version, surface])

    def _delete(self, surface: int, table: str, column: str, condition: str, values: Sequence[Any]) -> None:
        """Delete rows of a surface, portion by portion."""
        statement = _deleting(table, column, condition)
        deleted = _PORTION
        while deleted == _PORTION:
            with self._transaction() as transaction:
                self._lock_surfaces(transaction, [surface])
                deleted = len(transaction.run(statement, [surface, *values, _PORTION]))

    def delete_surface(self, name: str) -> bool:
        """Delete a surface, and leave to `purge_deleted` what was learned of it."""
        if not is_storable(name):
            return False
        with self._transaction() as transaction:
            rows = transaction.run("DELETE FROM surfaces WHERE name = %s RETURNING number", [name])
            for (number,) in rows:
                transaction.run("INSERT INTO settings VALUES (%s, %s)", [f"{_DELETED}{number}", ""])
        return bool(rows)

    def purge_deleted(self) -> bool:
        """Delete a portion of what is left of deleted surfaces."""
        left = self._read("SELECT name FROM settings WHERE name LIKE %s LIMIT 1", [f"{_DELETED}%"])
        for (name,) in left:
            self._delete_portion(name)
        return bool(left)

    def _delete_portion(self, name: str) -> None:
        with self._transaction() as transaction:
            # Whoever else tidies waits here: two at once would find less than there is.
            if not transaction.run("UPDATE settings SET value = value WHERE name = %s RETURNING 1", [name]):
                return
            number, room = int(name.removeprefix(_DELETED)), _PORTION
            for table, column in _OF_SURFACES.items():
                room -= len(transaction.run(_deleting(table, column), [number, room]))
                if room <= 0:
                    return
            transaction.run("DELETE FROM settings WHERE name = %s", [name])


def _deleting(table: str, column: str, condition: str = "1 = 1") -> str:
    """Return the statement that deletes so many of a surface's rows."""
    return (
        f"DELETE FROM {table} WHERE (surface, {column}) IN (SELECT surface, {column} FROM {table} "  # noqa: S608
        f"WHERE surface = %s AND {condition} ORDER BY {column} LIMIT %s) RETURNING 1"
    )
