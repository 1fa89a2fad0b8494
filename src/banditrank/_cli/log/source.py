"""Click log of a command: a cube, or files with the options of their columns, shared by all commands."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank._cli.command import split_names
from banditrank._cli.log.mapping import read_mapping
from banditrank._cli.reading import MemoryLimitOption, reading_progress
from banditrank._text import plural
from banditrank.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from banditrank.counts import ClickCube
    from banditrank.evaluation._targets import EvaluationTarget

_ROLES = {"type": "user_type", "clicked-item": "clicked_item"}
_OPTIONS = {"user_type": "--type", "file_format": "--format"}
_POSITIONS = re.compile(r"(?:1-)?([1-9]\d{0,3})")
_MANY_CELLS = 1_000_000  # from which on an analysis may take minutes
_FEW_ITEMS = 1000  # that are suggested then
_MAX_POSITIONS = 62  # that of cubes, which is not imported here because it imports NumPy


@dataclass(frozen=True, slots=True)
class LogSource:
    """Values of the shared options.

    Attributes
    ----------
    paths
        A directory of a cube, or files of a log.
    columns
        Column of each role; None if not given, empty if the column is not to be used.
    reading
        Further arguments of `count_log` that were given.
    n_items, n_positions
        How many of the most shown items and of the first positions to keep; None for all.
    since, until
        First date or time, and the one after the last.
    memory_limit
        Memory limit of DuckDB.
    """

    paths: Sequence[str]
    columns: dict[str, Any]
    reading: dict[str, Any]
    n_items: int | None
    n_positions: int | None
    since: str | None
    until: str | None
    memory_limit: str
    _given: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> list[str]:
        """Files that are read, which results must not replace."""
        users = self.reading.get("users")
        return [*self.paths, *([] if users is None else [users])]

    def read(self, *, by_period: bool = False) -> "ClickCube":
        """Return the cube, counted from the files if need be; guessed columns and bad rows are announced.

        Parameters
        ----------
        by_period
            Whether to count files by periods even if their time column is guessed.

        Raises
        ------
        InvalidInputError
            If there is no such cube or log, it has too many cells, a row is bad, or an option does not apply.
        """
        from banditrank.counts._cube_files import is_cube, load_cube

        if any(is_cube(path) for path in self.paths):
            if len(self.paths) > 1:
                rule = "must be one cube, or files of a log: merge cubes with banditrank log merge"
                raise InvalidInputError("LOG", rule, " ".join(self.paths))
            if self._given:
                raise InvalidInputError(self._given[0], "must not be given for a cube", self.paths[0])
            cube = self._select_periods(load_cube(self.paths[0]))
        else:
            is_auto = by_period and self.columns["time"] is None and "period" not in self.reading
            cube = self.count(**({"period": "auto"} if is_auto else {}))
            announce_counting(cube)
        kept = self.keep(cube)
        kept.check_analysed("LOG", "--items {count}")
        if kept.n_analysed_cells > _MANY_CELLS:
            remedy = f": --items {_FEW_ITEMS} keeps the most shown" if len(kept.items) > _FEW_ITEMS else ""
            typer.echo(f"banditrank: {kept.describe_size()} may take minutes{remedy}", err=True)
        return kept

    def count(self, **options: Any) -> "ClickCube":
        """Return the cube of the files, with a progress bar.

        Parameters
        ----------
        options
            Further arguments of `count_log`.

        Raises
        ------
        InvalidInputError
            If there is no such log, a row is bad, or an option does not apply.
        """
        from banditrank.counts._cube_files import is_cube
        from banditrank.logs import LogColumns, count_log

        for path in self.paths:
            if is_cube(path):
                raise InvalidInputError("LOG", "must be files of a log, not a cube", path)

        with reading_progress("counting") as show_progress:
            return count_log(
                list(self.paths),
                LogColumns(**self.columns),
                n_positions=self.n_positions,
                since=self.since,
                until=self.until,
                memory_limit=self.memory_limit,
                on_progress=show_progress,
                **self.reading,
                **options,
            )

    def candidate(self, target: str, cube: "ClickCube") -> "EvaluationTarget":
        """Return the target of a column with the rankings of a candidate.

        Parameters
        ----------
        target
            ``column:`` and the name of the column.
        cube
            Counts of the log.

        Raises
        ------
        InvalidInputError
            If the log is a cube, or has no such column, or a ranking is not valid.
        """
        from banditrank.counts._cube_files import is_cube
        from banditrank.logs import LogColumns
        from banditrank.logs._candidate_rankings import candidate_target

        if is_cube(self.paths[0]):
            rule = "must not be a column for a cube, which has no rankings of visits: give the log"
            raise InvalidInputError("--ranking", rule, target)
        if self.since is not None or self.until is not None:
            rule = "must not be a column with --since or --until: give a file with the rankings"
            raise InvalidInputError("--ranking", rule, target)
        name = target.partition(":")[2]
        try:
            return candidate_target(
                list(self.paths),
                name,
                cube,
                LogColumns(**self.columns),
                users=self.reading.get("users"),
                file_format=self.reading.get("file_format"),
                delimiter=self.reading.get("delimiter"),
                memory_limit=self.memory_limit,
            )
        except UnknownNameError as error:
            raise UnknownNameError(f"--ranking: {error.field}", error.value, error.known) from None

    def keep(self, cube: "ClickCube") -> "ClickCube":
        """Return the cube with the selected items and positions, and the selection in its metadata."""
        items = None
        selection = list(cube.metadata.get("selection", ()))
        if self.n_items is not None and self.n_items < len(cube.items):
            items = cube.most_shown_items(self.n_items)
            selection.append(f"the {self.n_items:,} most shown of {len(cube.items):,} items")
        if self.n_positions is not None:
            selection.append(f"positions 1 to {self.n_positions}")
        if self.since is not None:
            selection.append(f"from {self.since}")
        if self.until is not None:
            selection.append(f"before {self.until}")
        kept = cube.select(items=items, n_positions=self.n_positions)
        return replace(kept, metadata={**kept.metadata, "selection": selection}) if selection else kept

    def _select_periods(self, cube: "ClickCube") -> "ClickCube":
        if self.since is None and self.until is None:
            return cube
        option, given = ("--since", self.since) if self.since is not None else ("--until", self.until)
        if len(cube.periods) < 2:
            raise InvalidInputError(option, "must be given for a cube with periods", given)
        kept = [
            number
            for number, name in enumerate(cube.periods)
            if (self.since is None or name >= self.since[: len(name)])
            and (self.until is None or name < self.until[: len(name)])
        ]
        if not kept:
            rule = f"must leave periods of the cube, {cube.periods[0]} to {cube.periods[-1]}"
            raise InvalidInputError(option, rule, given)
        return cube.select(periods=kept)


def announce_counting(cube: "ClickCube") -> None:
    """Print the guessed columns, the rows that were left out and warnings to standard error."""
    from banditrank.logs._row_groups import COUNTED, describe_rows

    guessed = cube.metadata.get("guessed", {})
    if guessed:
        columns = ", ".join(f"{role} {name}" for role, name in guessed.items())
        typer.echo(f"banditrank: guessed columns: {columns}", err=True)
    rows = cube.metadata.get("rows", {})
    for reason, count in rows.items():
        if reason != COUNTED and count:
            described = describe_rows({reason: count}, cube.metadata.get("first_rows", {}))
            typer.echo(f"banditrank: left out of {plural(sum(rows.values()), 'row')}: {described}", err=True)
    for warning in cube.metadata.get("warnings", ()):
        typer.echo(f"banditrank: warning: {warning}", err=True)


def _column(option: str, text: str) -> Any:
    return typer.Option(option, metavar="COLUMN", help=text, show_default="guessed by name")


def _source(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...",
            help="Directory of a cube; or CSV, TSV, JSONL or Parquet files, globs or directories.",
        ),
    ],
    user_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="COLUMNS",
            help="Columns of the user type, with commas.",
            show_default="guessed by name",
        ),
    ] = None,
    item: Annotated[str | None, _column("--item", "Column of the item.")] = None,
    position: Annotated[str | None, _column("--position", "Column of the position.")] = None,
    clicked: Annotated[str | None, _column("--clicked", "Column of whether it was clicked: 0 or 1.")] = None,
    session: Annotated[str | None, _column("--session", "Column of the id of the visit.")] = None,
    user: Annotated[str | None, _column("--user", "Column of the id of the user.")] = None,
    time: Annotated[str | None, _column("--time", "Column of the time.")] = None,
    propensity: Annotated[
        str | None, _column("--propensity", "Column of the probability of the display.")
    ] = None,
    displays: Annotated[
        str | None, _column("--displays", "Column of the number of displays of a row.")
    ] = None,
    clicks: Annotated[
        str | None,
        _column("--clicks", "Column of the number of clicks of a row, or of the list of a visit's clicks."),
    ] = None,
    items: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBER|COLUMNS",
            help="Number of items to keep, the most shown ones; or the column of the list of a visit's "
            "items, or one column for each position, with commas.",
            show_default="all; columns guessed by name",
        ),
    ] = None,
    clicked_item: Annotated[
        str | None, _column("--clicked-item", "Column of the clicked items of a visit.")
    ] = None,
    users: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File with a row for each user, whose columns may be user types; joined by --user.",
            show_default="none",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='TOML file with values of these options, such as item = "sku"; those on the command line '
            "take precedence.",
            show_default="none",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTIONS", help="Columns not to guess, by option: session,user.", show_default="none"
        ),
    ] = None,
    positions: Annotated[
        str | None,
        typer.Option(metavar="1-NUMBER", help="Positions to keep, such as 1-5.", show_default="all"),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="First date or time to keep.", show_default="the first"),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="DATE", help="Date or time before which rows are kept.", show_default="after the last"
        ),
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="csv, tsv, jsonl, parquet, open-bandit, yandex or kdd2012.",
            show_default="by the file names",
        ),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Delimiter of CSV files.", show_default="that of the header")
    ] = None,
    first_position: Annotated[
        int | None,
        typer.Option(help="Number of the first position: 0 or 1.", show_default="0 if there is one"),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(
            help="Length of periods: hour, day, week, month or auto.", show_default="day, with --time"
        ),
    ] = None,
    bad_rows: Annotated[
        str | None,
        typer.Option(help="What to do with bad rows: refuse or drop.", show_default="refuse"),
    ] = None,
    memory_limit: MemoryLimitOption = "2GB",
) -> LogSource:
    """Return the values of the shared options."""
    mapped = {} if mapping is None else read_mapping(mapping)
    n_items, item_columns = _split_items(split_names(items))
    columns: dict[str, Any] = {
        "user_type": split_names(user_type) if user_type else None,
        "item": item,
        "position": position,
        "clicked": clicked,
        "session": session,
        "user": user,
        "time": time,
        "propensity": propensity,
        "displays": displays,
        "clicks": clicks,
        "items": item_columns,
        "clicked_item": clicked_item,
    }
    columns = {role: mapped.get(role) if value is None else value for role, value in columns.items()}
    _leave_out(columns, [*split_names(without), *mapped.get("without", [])])
    reading: dict[str, Any] = {
        "users": users,
        "file_format": file_format,
        "delimiter": delimiter,
        "first_position": first_position,
        "period": period,
        "bad_rows": bad_rows,
    }
    reading = {
        name: mapped.get(name) if value is None else value
        for name, value in reading.items()
        if value is not None or name in mapped
    }
    given = [_option(name) for name, value in columns.items() if value is not None]
    return LogSource(
        paths,
        columns,
        reading,
        n_items,
        _parse_positions(positions),
        since,
        until,
        memory_limit,
        [*(["--mapping"] if mapping is not None else []), *given, *map(_option, reading)],
    )


def takes_log(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the shared options, which calls a function whose first argument is a `LogSource`.

    The options of the command come first in its help, then the shared ones.
    """
    shared = signature(_source).parameters
    _, *own = signature(command).parameters.values()

    @wraps(command)
    def run(**values: Any) -> None:
        log = _source(**{name: values.pop(name) for name in shared})
        command(log, **values)

    paths, *options = shared.values()
    merged = [paths, *own, *options]
    keyword = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in merged]
    run.__signature__ = signature(run).replace(parameters=keyword)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in merged}
    return run


def _option(name: str) -> str:
    return _OPTIONS.get(name, f"--{name.replace('_', '-')}")


def _split_items(given: list[str]) -> tuple[int | None, str | list[str] | None]:
    """Return the number of items to keep, and the columns of a visit's items."""
    numbers = [name for name in given if name.isdecimal()]
    columns = [name for name in given if not name.isdecimal()]
    if len(numbers) > 1 or any(int(number) < 1 for number in numbers):
        raise InvalidInputError("--items", "must be one number of at least 1", ",".join(numbers))
    names: str | list[str] | None = columns if len(columns) > 1 else next(iter(columns), None)
    return (int(numbers[0]) if numbers else None), names


def _parse_positions(text: str | None) -> int | None:
    if text is None:
        return None
    match = _POSITIONS.fullmatch(text.strip())
    if match is None or int(match[1]) > _MAX_POSITIONS:
        rule = f"must be a range from the first position of up to {_MAX_POSITIONS}, such as 1-5"
        raise InvalidInputError("--positions", rule, text)
    return int(match[1])


def _leave_out(columns: dict[str, Any], names: Sequence[str]) -> None:
    """Mark columns as absent, so that they are not guessed."""
    for name in names:
        role = _ROLES.get(name, name)
        if role not in columns:
            raise InvalidInputError("--without", "must be options of columns such as session,user", name)
        columns[role] = ""


def check_cube_output(output: Path) -> None:
    """Check before long computations that a cube can be written.

    Raises
    ------
    InvalidInputError
        If it cannot.
    """
    from banditrank.counts._cube_files import check_cube_path

    try:
        check_cube_path(output)
    except InvalidInputError as error:
        raise InvalidInputError("--output", error.rule, error.value) from None
