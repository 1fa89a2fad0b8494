"""A database with tables: its transactions, and how its tables are brought up to date.

Statements are written with PostgreSQL's placeholders.
"""

import secrets
from abc import abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from banditrank.errors import StoreError
from banditrank.storage.base import Store
from banditrank.storage.migrations import MIGRATIONS

Row = tuple[Any, ...]


class Transaction(Protocol):
    """A transaction under way."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return the rows that it gives."""


class SqlDatabase(Store):
    """A store in a database, as far as it does not matter what is in the tables."""

    _words: ClassVar[dict[str, str]]  # of the migrations, and what this database has for them

    @abstractmethod
    def _transaction(self, *, writes: bool = True) -> AbstractContextManager[Transaction]:
        """Begin a transaction; commit it at the end of the block, or undo all of it if the block raises."""

    @abstractmethod
    def _migration(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction in which nobody else migrates, and which may take as long as it needs."""

    @abstractmethod
    def _lock_surfaces(self, transaction: Transaction, numbers: Collection[int]) -> dict[int, int]:
        """Let nobody else write to some surfaces until the transaction ends.

        Returns of those that exist the time before which rankings are forgotten.
        """

    @abstractmethod
    def _has_settings(self, transaction: Transaction) -> bool:
        """Return whether there is a table of settings."""

    def _migrate(self, where: str) -> None:
        """Bring the tables up to date, or refuse those of a newer version."""
        with self._transaction(writes=False) as transaction:
            if self._steps_done(transaction, where) == len(MIGRATIONS):
                return  # as nearly always: within the usual time, and whoever else writes
        with self._migration() as transaction:
            done = self._steps_done(transaction, where)
            for step in MIGRATIONS[done:]:
                for statement in _in_dialect(step, self._words).split(";"):
                    transaction.run(statement)
            if done == 0:
                transaction.run("INSERT INTO settings VALUES (%s, %s)", ["secret", secrets.token_hex(32)])
                transaction.run("INSERT INTO settings VALUES (%s, %s)", ["schema", "0"])
            transaction.run(
                "UPDATE settings SET value = %s WHERE name = %s", [str(len(MIGRATIONS)), "schema"]
            )

    def _steps_done(self, transaction: Transaction, where: str) -> int:
        """Return how many of the migrations were made, or refuse tables that are not ours."""
        if not self._has_settings(transaction):
            return 0
        rows = transaction.run("SELECT value FROM settings WHERE name = %s", ["schema"])
        if not rows:
            raise StoreError(f"{where} has tables that are not banditrank's")
        done, known = int(rows[0][0]), len(MIGRATIONS)
        if done > known:
            raise StoreError(f"{where} has schema {done}, this version knows {known}: upgrade banditrank")
        return done

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._transaction(writes=False) as transaction:
            return transaction.run(statement, values)

    def secret(self) -> bytes:
        """Return random bytes."""
        ((value,),) = self._read("SELECT value FROM settings WHERE name = %s", ["secret"])
        return bytes.fromhex(value)

    def check(self) -> None:
        """Commit a new value of a setting; SQLite would not write one that is unchanged."""
        with self._transaction() as transaction:
            transaction.run(
                "INSERT INTO settings VALUES (%s, %s) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                ["check", secrets.token_hex(8)],
            )


def _in_dialect(statements: str, words: dict[str, str]) -> str:
    for word, ours in words.items():
        statements = statements.replace(word, ours)
    return statements
