"""Where a command's results go: a table on standard output, JSON, files; and a word to who waits for them."""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank.errors import InvalidInputError
from banditrank.figures import check_plot_path

if TYPE_CHECKING:
    from rich.console import Console

JsonOption = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE|-", help="Write the results as JSON; - for standard output."),
]

BackendOption = Annotated[
    str,
    typer.Option(help="Where replications run: joblib or ray. joblib: this machine; ray: a Ray cluster."),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Of the Ray cluster.",
        show_default="RAY_ADDRESS; without it, Ray is started on this machine",
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option(help="How many replications run at once.", show_default="one a processor")
]


def check_targets(json_file: str | None, plot: Path | None = None, output: Path | None = None) -> None:
    """Raise an error before hours of work if its results could not be written where they are wanted."""
    if output is not None:
        _check_file("--output", output)
    if plot is not None:
        check_plot_path(plot)
        _check_file("--plot", plot)
    if json_file is not None and json_file != "-":
        _check_file("--json", Path(json_file))


def _check_file(option: str, path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInputError(option, "must be a file in a directory that exists", str(path))


def write_json(document: Mapping[str, Any], target: str) -> None:
    """Write strict JSON to a file, or to standard output if the target is ``-``."""
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError.from_os("--json", "must be writable", target, error) from None


def finite(number: float) -> float | None:
    """Return a number, or None for an infinite one, which JSON cannot hold.

    Examples
    --------
    >>> finite(0.5), finite(float("-inf"))
    (0.5, None)
    """
    return float(number) if math.isfinite(number) else None


def shown(number: float) -> str:
    """Return a number as people read it.

    Examples
    --------
    >>> shown(0.12345678), shown(float("-inf"))
    ('0.123457', '−∞')
    """
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    return f"{number:.6g}"


@contextmanager
def told_of_long_compiling(package: str = "solvers.branch_and_bound", what: str = "solver") -> Iterator[None]:
    """Say on standard error when something is compiled: a minute without a word looks like a failure."""
    from banditrank.compilation import told_of_compiling

    def tell() -> None:
        typer.echo(f"banditrank: compiling the {what}, once: this may take a minute", err=True)

    with told_of_compiling(f"banditrank.{package}", tell):
        yield


def make_console() -> "Console":
    """Return a console that prints names as they are and never cuts a number."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)
    console.width = max(console.width, 80) if sys.stdout.isatty() else 120
    return console
