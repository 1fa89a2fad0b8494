"""Where a command's results go: a table on standard output, JSON, files; and a word to who waits for them."""

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank.errors import InvalidInputError
from banditrank.figures import check_plot_path
from banditrank.files import atomic_write

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
    int | None,
    typer.Option(help="How many replications run at once, up to 1024.", show_default="one a processor"),
]


def check_targets(
    json_file: str | None,
    plot: Path | None = None,
    output: Path | None = None,
    inputs: Sequence[str | Path] = (),
) -> None:
    """Raise an error before hours of work if its results could not be written where they are wanted.

    Parameters
    ----------
    json_file, plot, output
        What the options of these names say.
    inputs
        What is read, which no result may replace. Names that are no files do no harm.
    """
    if plot is not None:
        check_plot_path(plot)
    json_path = None if json_file in (None, "-") else Path(str(json_file))
    wanted = {"--output": output, "--plot": plot, "--json": json_path}
    targets = {option: path for option, path in wanted.items() if path is not None}
    read = {Path(name).resolve() for name in inputs if Path(name).is_file()}
    taken: dict[Path, str] = {}
    for option, path in targets.items():
        _check_file(option, path)
        place = path.resolve()
        if place in read:
            raise InvalidInputError(option, "must not be a file that is read", str(path))
        if place in taken and (place.is_file() or not place.exists()):
            raise InvalidInputError(option, f"must not be the file of {taken[place]}", str(path))
        taken[place] = option


def _check_file(option: str, path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInputError(option, "must be a file in a directory that exists", str(path))
    replaced = path.resolve()
    if not os.access(replaced if path.exists() and not path.is_file() else replaced.parent, os.W_OK):
        raise InvalidInputError(option, "must be writable", str(path))


def write_json(document: Mapping[str, Any], target: str) -> None:
    """Write strict JSON to a file, or to standard output if the target is ``-``."""
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        with atomic_write(Path(target)) as path:
            path.write_text(text, encoding="utf-8")
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
    from banditrank.compilation import notify_on_compile

    def tell() -> None:
        typer.echo(f"banditrank: compiling the {what}, once: this may take a minute", err=True)

    with notify_on_compile(f"banditrank.{package}", tell):
        yield


def make_console() -> "Console":
    """Return a console that prints names as they are and never cuts a number."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)
    console.width = max(console.width, 80) if sys.stdout.isatty() else 120
    return console
