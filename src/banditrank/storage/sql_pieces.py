"""Rankings that were shown and have no outcome yet, in tables: written by the group, and seldom read."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from banditrank.errors import StoreUnavailableError
from banditrank.storage.impression_batches import ImpressionBatch, packed, unpacked
from banditrank.storage.records import Event, Outcome, ImpressionId, group_by_surface, min_key
from banditrank.storage.sql_database import SqlDatabase, Transaction

_PIECES = 64  # that are read at once
_KEYS = 1000  # that are asked for at once


class SqlPieces(SqlDatabase):
    """A store in a database, as far as rankings without an outcome go."""

    def _note(self, transaction: Transaction, events: Iterable[Event]) -> None:
        """Write rankings that were shown, those of a surface in one piece."""
        for surface, shown in group_by_surface(events).items():
            transaction.run(
                "INSERT INTO shown (surface, first, last, rankings, packed) VALUES (%s, %s, %s, %s, %s)",
                [surface, *packed([event.shown for event in shown])],
            )

    def _outcomes(self, transaction: Transaction, places: Iterable[ImpressionId]) -> dict[ImpressionId, Outcome]:
        """Return what became of rankings, of those that have an outcome."""
        keys: dict[int, list[bytes]] = {}
        for surface, key in places:
            keys.setdefault(surface, []).append(key)
        found = {}
        for surface, asked in keys.items():
            for start in range(0, len(asked), _KEYS):
                some = asked[start : start + _KEYS]
                marks = ", ".join(["%s"] * len(some))
                rows = transaction.run(
                    f"SELECT key, outcome FROM outcomes WHERE surface = %s AND key IN ({marks})",  # noqa: S608
                    [surface, *some],
                )
                found.update({(surface, key): Outcome.from_code(code) for key, code in rows})
        return found

    def pending_impressions(self, surface: int, *, since: int, until: int, limit: int = 1000) -> list[Event]:
        """Return rankings without an outcome that lapse within a time; throw away pieces without any."""
        begin, end = min_key(since), min_key(until)
        found: dict[bytes, Event] = {}
        finished: list[int] = []
        for number, piece in self._pieces(surface, begin, end):
            if len(found) >= limit and piece.first > sorted(found)[limit - 1]:
                break
            shown = unpacked(surface, piece)
            with self._transaction(writes=False) as transaction:
                settled = self._outcomes(transaction, [one.place for one in shown])
            still_open = [one for one in shown if one.place not in settled]
            if not still_open:
                finished.append(number)
            found.update({one.key: Event(one, None) for one in still_open if begin <= one.key < end})
        if finished:
            self._remove_pieces(finished)
        return [found[key] for key in sorted(found)[:limit]]

    def _pieces(self, surface: int, begin: bytes, end: bytes) -> Iterator[tuple[int, ImpressionBatch]]:
        """Give pieces of what was shown, with their numbers: those with keys in [begin, end), in order."""
        statement = (
            "SELECT number, first, last, rankings, packed FROM shown WHERE surface = %s "
            "AND last >= %s AND first < %s AND (first, number) > (%s, %s) ORDER BY first, number LIMIT %s"
        )
        after = (b"", 0)
        while rows := self._read(statement, [surface, begin, end, *after, _PIECES]):
            for number, *piece in rows:
                yield number, ImpressionBatch(*piece)
            after = (rows[-1][1], rows[-1][0])

    def _remove_pieces(self, numbers: Sequence[int]) -> None:
        with suppress(StoreUnavailableError), self._transaction() as transaction:  # the next who looks will
            for number in numbers:
                transaction.run("DELETE FROM shown WHERE number = %s", [number])

    def _cut_pieces(self, transaction: Transaction, surface: int, end: bytes) -> None:
        """Of pieces with keys before one and others, keep the others."""
        for number, *columns in transaction.run(
            "SELECT number, first, last, rankings, packed FROM shown "
            "WHERE surface = %s AND first < %s AND last >= %s",
            [surface, end, end],
        ):
            transaction.run("DELETE FROM shown WHERE number = %s", [number])
            left = [Event(one, None) for one in unpacked(surface, ImpressionBatch(*columns)) if one.key >= end]
            self._note(transaction, left)
