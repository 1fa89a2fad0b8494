"""Output of commands: files, JSON, tables, and options that several commands share."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank._extras import check_extras
from banditrank._figures import check_plot_path
from banditrank._files import atomic_write
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the results as JSON to a file; - writes only JSON to standard output.",
    ),
]

BackendOption = Annotated[
    str,
    typer.Option(help="Where replications run: joblib or ray. joblib: this machine; ray: a Ray cluster."),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Address of the Ray cluster.",
        show_default="$RAY_ADDRESS, or a local Ray instance",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        help="Number of replications that run in parallel, up to 1024.", show_default="one per processor"
    ),
]
UtilityOption = Annotated[
    str,
    typer.Option(
        help="Utility that equal treatment maximises: utilitarian, nash, alpha:2 (0 to 1000), maximin, "
        "sigmoid:STEEPNESS:MIDPOINT or ramp:BEGIN:END."
    ),
]
TreatmentOption = Annotated[str, typer.Option(help="Treatment of policies: personalized or equal.")]
SeedOption = Annotated[int, typer.Option(help="Random seed; results do not depend on the number of workers.")]


def check_output_files(
    json_file: str | None,
    plot: Path | None = None,
    output: Path | None = None,
    inputs: Sequence[str | Path] = (),
) -> None:
    """Check before long computations that their results can be written.

    Parameters
    ----------
    json_file, plot, output
        Values of the options of these names.
    inputs
        Files that are read, which results must not replace. Names that are not files are ignored.

    Raises
    ------
    InvalidInputError
        If a file cannot be written, is one of the inputs, or is given twice.
    MissingDependencyError
        If a plot is asked for and Matplotlib is not installed.
    """
    if plot is not None:
        check_plot_path(plot)
        check_extras("plotting", "plots")
    json_path = None if json_file in (None, "-") else Path(str(json_file))
    given = {"--output": output, "--plot": plot, "--json": json_path}
    targets = {option: path for option, path in given.items() if path is not None}
    read = {Path(name).resolve() for name in inputs if Path(name).is_file()}
    taken: dict[Path, str] = {}
    for option, path in targets.items():
        _check_output_file(option, path)
        resolved = path.resolve()
        if resolved in read:
            raise InvalidInputError(option, "must not be an input file", str(path))
        if resolved in taken and (resolved.is_file() or not resolved.exists()):
            raise InvalidInputError(option, f"must not be the file of {taken[resolved]}", str(path))
        taken[resolved] = option


def _check_output_file(option: str, path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInputError(option, "must be a file in a directory that exists", str(path))
    replaced = path.resolve()
    if not os.access(replaced if path.exists() and not path.is_file() else replaced.parent, os.W_OK):
        raise InvalidInputError(option, "must be writable", str(path))


def write_json(document: Mapping[str, Any], target: str) -> None:
    """Write standard JSON to a file, or to standard output if the target is ``-``.

    Raises
    ------
    InvalidInputError
        If the file cannot be written.
    """
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        with atomic_write(Path(target)) as path:
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError.from_os("--json", "must be writable", target, error) from None


def finite_or_none(number: float) -> float | None:
    """Return a number, or None if it is infinite, which JSON cannot represent.

    Examples
    --------
    >>> finite_or_none(0.5), finite_or_none(float("-inf"))
    (0.5, None)
    """
    return float(number) if math.isfinite(number) else None


def format_number(number: float) -> str:
    """Return a number with six significant digits.

    Examples
    --------
    >>> format_number(0.12345678), format_number(float("-inf"))
    ('0.123457', '−∞')
    """
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    return f"{number:.6g}"


@contextmanager
def announce_compilation(
    package: str = "solvers", what: str = "solver", on_announce: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Print a line to standard error when code is compiled, which may take a minute.

    Parameters
    ----------
    package
        Package of the code, below ``banditrank``.
    what
        What is compiled, in words.
    on_announce
        Called before the line is printed.
    """
    from banditrank._compilation import notify_on_compile

    def announce() -> None:
        on_announce()
        typer.echo(f"banditrank: compiling the {what} (first use, may take a minute)", err=True)

    with notify_on_compile(f"banditrank.{package}", announce):
        yield


@contextmanager
def report_interruption(done: Sized) -> Iterator[None]:
    """Exit with status 130 after Ctrl-C, and print how many jobs are done.

    Parameters
    ----------
    done
        Jobs that are done.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            f"banditrank: interrupted, jobs done: {len(done)}; rerun the same command to resume", err=True
        )
        raise typer.Exit(130) from None


def make_console() -> "Console":
    """Return a console that prints names without markup and never truncates numbers."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)
    console.width = max(console.width, 80) if sys.stdout.isatty() else 120
    return console


def make_table(title: str | None = None) -> "Table":
    """Return an empty table with a rule below its heading."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
