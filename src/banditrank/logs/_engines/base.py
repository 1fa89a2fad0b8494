"""What an engine does for `count_log`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from banditrank.logs._count_queries import Dialect
from banditrank.logs._log_columns import ColumnKind

if TYPE_CHECKING:
    from banditrank.logs._log_files import LogFiles

OnProgress: TypeAlias = Callable[[float], None]
"""Progress callback; takes the share of the work that is done, from 0 to 1."""


class CountEngine(Protocol):
    """Runs SQL over a log.

    Only results of aggregations leave the engine.
    """

    dialect: Dialect

    def load(self, source: "LogFiles | Any", name: str = "source") -> dict[str, ColumnKind]:
        """Create a view, with a given name, of files or a table of Arrow; return its columns."""
        ...

    def create_view(self, name: str, query: str) -> None:
        """Create a view."""
        ...

    def create_table(self, name: str, query: str, on_progress: OnProgress | None = None) -> None:
        """Create a table that is read several times."""
        ...

    def fetch(self, query: str, on_progress: OnProgress | None = None) -> Any:
        """Return the result of a query as a table of Arrow."""
        ...

    def release_memory(self) -> None:
        """Return memory that no query uses, before results are processed."""
        ...

    def drop_tables(self) -> None:
        """Drop all created tables, when no query reads them any more."""
        ...
