"""``banditrank demo``: see the service learn from simulated users."""

import shutil
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from banditrank.cli.output import JsonOption, check_targets, make_console, told_of_long_compiling, write_json
from banditrank.cli.store import StoreFileOption, given_address, service_is_installed
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from banditrank.demo.account import Account
    from banditrank.demo.demo import DemoResult
    from banditrank.demo.summary import SurfaceSummary

_FIRST_LINE, _LONGEST_SILENCE = 5.0, 600.0  # seconds, where there is no terminal


def demo_command(
    port: Annotated[
        int | None,
        typer.Option(
            help="Port to listen on; 0 takes any that is free.", show_default="8420, or the next that is free"
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Visits to each surface, then it ends.", show_default="until Ctrl-C")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same users.")] = 0,
    speed: Annotated[
        float, typer.Option(help="Visits a second to each surface; 0 for as fast as they are answered.")
    ] = 50.0,
    stay: Annotated[
        bool, typer.Option("--stay", help="Keep the service and its page when all visits are over.")
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="sqlite:FILE, postgresql://…, redis://… or memory:; a later demo goes on with it.",
            show_default="a temporary file",
        ),
    ] = None,
    store_file: StoreFileOption = None,
    json_file: JsonOption = None,
) -> None:
    """Let simulated users click through a service until Ctrl-C; then set what was learned beside the truth.

    Reports of a twentieth of the users come late, and of a fiftieth never, as in life.
    """
    service_is_installed("banditrank demo")
    if not find_spec("httpx"):
        raise InvalidInputError("banditrank demo", 'needs pip install "banditrank[client]"', "no httpx")
    check_targets(json_file)
    from banditrank.demo.demo import run_demo

    progress = _Progress()

    def tell(line: str) -> None:
        typer.echo(line, err=json_file == "-")
        sys.stdout.flush()

    def came() -> None:
        progress.end()
        if stay:
            tell("all visits are over; Ctrl-C ends it")

    # Not from the environment, which may name the store of the real service.
    with (
        given_address(store, store_file, variable=None) as address,
        told_of_long_compiling("policies", "policies"),
    ):
        result = run_demo(
            port=port,
            store=address,
            rounds=rounds,
            seed=seed,
            speed=speed,
            stay=stay,
            ready=lambda address: tell(f"open {address} and see it learn; Ctrl-C ends it"),
            came=came,
            watch=progress.show,
        )
    progress.end()
    if result.surfaces and json_file is not None:
        write_json(result.to_dict(), json_file)
    if json_file != "-":
        _print_result(result)
    if result.interrupted and rounds is not None:  # without rounds to come, Ctrl-C is how it ends
        visits = " and ".join(f"{surface.visits:,}" for surface in result.surfaces) or "no"
        typer.echo(f"banditrank: interrupted after {visits} visits", err=True)
        raise typer.Exit(130)


class _Progress:
    """How far it has come, on standard error: a line that changes, or now and then a new one."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._pause, self._next = _FIRST_LINE, time.monotonic() + _FIRST_LINE
        self._width = 0

    def show(self, accounts: "Sequence[Account]") -> None:
        """Tell what became of users so far."""
        line = _in_short(accounts)
        if self._terminal:
            line = line[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write("\r" + line.ljust(self._width))
            sys.stderr.flush()
            self._width = len(line)
        elif time.monotonic() >= self._next:
            self._pause = min(2 * self._pause, _LONGEST_SILENCE)
            self._next += self._pause
            typer.echo(line, err=True)

    def end(self) -> None:
        """Leave the line that changes."""
        if self._terminal and self._width:
            sys.stderr.write("\n")
            self._width = 0


def _in_short(accounts: "Sequence[Account]") -> str:
    """Return a line that a narrow terminal has room for."""
    if not any(account.visits for account in accounts):
        return "waiting for the first visit"
    rates = [
        f"{account.known.name} "
        + ("deleted" if account.deleted else f"{account.latest_rate:.2f} of {account.optimum:.2f}")
        for account in accounts
    ]
    visits = sum(account.visits for account in accounts)
    return f"{visits:,} visits; click rate {', '.join(rates)}"


def _print_result(result: "DemoResult") -> None:
    console = make_console()
    for surface in result.surfaces:
        console.print(f"{_heading(surface)}, seed {result.seed}, banditrank {result.version}")
        console.print(_values_table(surface))
        console.print("Best rankings, and the clicks a visit that they truly bring")
        console.print(_rankings_table(surface))
        rates = (
            f"{surface.click_rate:.3f} clicks a visit so far; the best rankings bring {surface.optimum:.3f}"
        )
        console.print(f"{rates}, random order {surface.random:.3f}")
        unit = "clicks" if surface.treatment == "personalized" else f"collective utility ({surface.utility})"
        reports = f"{surface.late:,} reports came late, {surface.lost:,} never"
        console.print(f"regret: {surface.regret:,.1f} in {unit}; {reports}\n")


def _heading(surface: "SurfaceSummary") -> str:
    treatment = surface.treatment + (f" under {surface.utility}" if surface.treatment == "equal" else "")
    return f"{surface.name}: {treatment}, {surface.visits:,} visits"


def _values_table(surface: "SurfaceSummary") -> "Table":
    table = _table()
    for heading in ("user type", "what"):
        table.add_column(heading, overflow="fold")
    for heading in ("learned", f"{surface.level:.0%} interval", "true"):
        table.add_column(heading, justify="right", no_wrap=True)
    for values in (surface.positions, surface.items):
        for value in values:
            interval = f"{value.low:.3f}–{value.high:.3f}"
            table.add_row(value.user_type, value.name, f"{value.learned:.3f}", interval, f"{value.true:.3f}")
        table.add_section()
    return table


def _rankings_table(surface: "SurfaceSummary") -> "Table":
    table = _table()
    for heading in ("user type", "learned", "true best"):
        table.add_column(heading, overflow="fold")
    for heading in ("learned", "best"):
        table.add_column(heading, justify="right", no_wrap=True)
    for ranking in surface.rankings:
        who = "everybody" if ranking.user_type is None else ranking.user_type
        values = f"{ranking.learned_value:.3f}", f"{ranking.best_value:.3f}"
        table.add_row(who, ", ".join(ranking.learned), ", ".join(ranking.best), *values)
    return table


def _table() -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
