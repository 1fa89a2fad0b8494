"""``banditrank demo``: run the service with simulated users."""

import shutil
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from banditrank._cli.output import (
    JsonOption,
    announce_compilation,
    check_output_files,
    make_console,
    make_table,
    write_json,
)
from banditrank._cli.store import StoreFileOption, store_address
from banditrank._extras import requires

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from banditrank._demo.demo import DemoResult
    from banditrank._demo.regret_tracker import RegretTracker
    from banditrank._demo.summary import SurfaceSummary

_FIRST_LINE_SECONDS, _MAX_PAUSE_SECONDS = 5.0, 600.0  # between progress lines without a terminal


def demo_command(
    port: Annotated[
        int | None,
        typer.Option(
            help="Port to listen on; 0 for any free port.", show_default="8420, or the next free port"
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Number of visits to each surface.", show_default="until Ctrl-C")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the simulated users.")] = 0,
    speed: Annotated[
        float, typer.Option(help="Visits per second to each surface; 0 for as fast as possible.")
    ] = 50.0,
    stay: Annotated[
        bool, typer.Option("--stay", help="Keep the service running after all visits, until Ctrl-C.")
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address of the store: sqlite:FILE, postgresql://…, redis://… or memory:. A later demo with "
            "the same store continues to learn.",
            show_default="a temporary file",
        ),
    ] = None,
    store_file: StoreFileOption = None,
    json_file: JsonOption = None,
) -> None:
    """Run the service with simulated users until Ctrl-C.

    Prints the address of the dashboard, and at the end the learned values beside the true ones. A twentieth
    of the feedback is late, and a fiftieth is lost.
    """
    with requires("client", "banditrank demo"):
        import httpx  # noqa: F401 - the service does not need it
    with requires("service", "banditrank demo"):
        import uvloop  # noqa: F401 - uvicorn would run without it, only slower

        from banditrank._demo.demo import run_demo
    check_output_files(json_file)

    progress = _Progress()

    def print_line(line: str) -> None:
        typer.echo(line, err=json_file == "-")
        sys.stdout.flush()

    def on_finished() -> None:
        progress.end()
        if stay:
            print_line("all visits finished; press Ctrl-C to stop")

    # The environment variable is ignored: it may name the store of a production service.
    with (
        store_address(store, store_file, reads_environment=False) as address,
        ExitStack() as announcement,
    ):

        def on_open(surface: str) -> None:
            announcement.close()  # that of the surface before
            announcement.enter_context(
                announce_compilation("policies", f"policy of {surface}", on_announce=progress.end)
            )

        result = run_demo(
            port=port,
            store=address,
            rounds=rounds,
            seed=seed,
            speed=speed,
            stay=stay,
            on_open=on_open,
            on_ready=lambda url: print_line(f"open {url} to watch it learn; press Ctrl-C to stop"),
            on_finished=on_finished,
            on_progress=progress.show,
        )
    progress.end()
    if result.surfaces and json_file is not None:
        write_json(result.to_dict(), json_file)
    if json_file != "-":
        _print_result(result)
    if result.is_interrupted and rounds is not None:  # without --rounds, Ctrl-C is the normal end
        visits = " and ".join(f"{surface.visits:,}" for surface in result.surfaces) or "no"
        typer.echo(f"banditrank: interrupted after {visits} visits", err=True)
        raise typer.Exit(130)


class _Progress:
    """Progress on standard error: one updated line on a terminal, else new lines ever more rarely."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._pause = _FIRST_LINE_SECONDS
        self._next_line = time.monotonic() + self._pause
        self._width = 0

    def show(self, trackers: "Sequence[RegretTracker]") -> None:
        """Show visits and click rates so far."""
        line = _progress_line(trackers)
        if self._is_terminal:
            line = line[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write("\r" + line.ljust(self._width))
            sys.stderr.flush()
            self._width = len(line)
        elif time.monotonic() >= self._next_line:
            self._pause = min(2 * self._pause, _MAX_PAUSE_SECONDS)
            self._next_line += self._pause
            typer.echo(line, err=True)

    def end(self) -> None:
        """End the updated line."""
        if self._is_terminal and self._width:
            sys.stderr.write("\n")
            self._width = 0


def _progress_line(trackers: "Sequence[RegretTracker]") -> str:
    """Return a short line with visits and click rates."""
    if not any(tracker.visits for tracker in trackers):
        return "waiting for the first visit"
    rates = [
        f"{tracker.surface.name} "
        + (
            "deleted"
            if tracker.is_deleted
            else f"{tracker.recent_click_rate:.2f} of {tracker.optimal_click_rate:.2f}"
        )
        for tracker in trackers
    ]
    visits = sum(tracker.visits for tracker in trackers)
    return f"{visits:,} visits; click rate {', '.join(rates)}"


def _print_result(result: "DemoResult") -> None:
    console = make_console()
    for surface in result.surfaces:
        console.print(f"{_heading(surface)}, seed {result.seed}, banditrank {result.version}")
        console.print(_values_table(surface))
        learned = "lotteries" if surface.lotteries else "rankings"
        console.print(f"Learned {learned} and the best ones, by the true values")
        console.print(_lotteries_table(surface) if surface.lotteries else _rankings_table(surface))
        console.print(
            f"clicks per visit: {surface.click_rate:.3f} measured, {surface.optimal_click_rate:.3f} optimal, "
            f"{surface.random_click_rate:.3f} random"
        )
        unit = "clicks" if surface.treatment == "personalized" else f"collective utility ({surface.utility})"
        reports = f"{surface.late_reports:,} late reports, {surface.lost_reports:,} lost"
        regret = (
            "not measured under a lottery" if surface.regret is None else f"{surface.regret:,.1f} in {unit}"
        )
        console.print(f"regret: {regret}; {reports}\n")


def _heading(surface: "SurfaceSummary") -> str:
    is_equal = surface.treatment != "personalized"
    treatment = surface.treatment + (f" under {surface.utility}" if is_equal else "")
    return f"{surface.name}: {treatment}, {surface.visits:,} visits"


def _values_table(surface: "SurfaceSummary") -> "Table":
    table = make_table()
    for heading in ("user type", "value"):
        table.add_column(heading, overflow="fold")
    for heading in ("estimate", f"{surface.level:.0%} interval", "true value"):
        table.add_column(heading, justify="right", no_wrap=True)
    for values in (surface.positions, surface.items):
        for value in values:
            interval = f"{value.low:.3f}–{value.high:.3f}"
            estimate = "–" if value.estimate is None else f"{value.estimate:.3f}"
            numbers = estimate, interval, f"{value.true_value:.3f}"
            table.add_row(value.user_type, value.name, *numbers)
        table.add_section()
    return table


def _rankings_table(surface: "SurfaceSummary") -> "Table":
    table = make_table()
    for heading in ("user type", "ranking", "items"):
        table.add_column(heading, overflow="fold")
    table.add_column("clicks per visit", justify="right", no_wrap=True)
    for ranking in surface.rankings:
        user_type = "all" if ranking.user_type is None else ranking.user_type
        learned, best = ", ".join(ranking.learned_ranking), ", ".join(ranking.best_ranking)
        table.add_row(user_type, "learned", learned, f"{ranking.learned_click_rate:.3f}")
        table.add_row("", "best", best, f"{ranking.best_click_rate:.3f}")
    return table


def _lotteries_table(surface: "SurfaceSummary") -> "Table":
    table = make_table()
    for heading in ("user type", "lottery", "items"):
        table.add_column(heading, overflow="fold")
    for heading in ("probability", "clicks per visit"):
        table.add_column(heading, justify="right", no_wrap=True)
    for lottery in surface.lotteries:
        user_type = "all" if lottery.user_type is None else lottery.user_type
        for name, rankings, click_rate in (
            ("learned", lottery.learned, lottery.learned_click_rate),
            ("best", lottery.best, lottery.best_click_rate),
        ):
            for number, one in enumerate(rankings):
                labels = (user_type if name == "learned" else "", name) if number == 0 else ("", "")
                rate = f"{click_rate:.3f}" if number == 0 else ""
                table.add_row(*labels, ", ".join(one.ranking), f"{one.probability:.3f}", rate)
    return table
