"""``banditrank state``: show, export and import surfaces of a store."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank._cli.command import OptionErrorCommand, examples
from banditrank._cli.output import JsonOption, check_output_files, make_console, make_table, write_json
from banditrank._cli.store import (
    PersistentStoreOption,
    StoreFileOption,
    open_given_store,
    open_store_at,
    store_address,
)
from banditrank.errors import InvalidInputError
from banditrank.storage._addresses import redacted
from banditrank.storage._factory import DEFAULT_STORE

if TYPE_CHECKING:
    from banditrank.dashboard._estimates_report import EstimatesReport
    from banditrank.engine._counts_replica import SurfaceCounts
    from banditrank.storage._base import Store
    from banditrank.storage._records import SurfaceRecord

state_commands = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
)


@state_commands.callback()
def _help(context: typer.Context) -> None:
    """Show, export or import the learned state of surfaces."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@state_commands.command(
    "show",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank state show",
        "banditrank state show home --level 0.9 --json -",
    ),
)
def show_command(
    surface: Annotated[
        str | None,
        typer.Argument(
            metavar="SURFACE",
            help="Name of a surface, to show its estimates.",
            show_default="list all surfaces",
        ),
    ] = None,
    store: PersistentStoreOption = None,
    store_file: StoreFileOption = None,
    level: Annotated[
        float, typer.Option(help="Probability that an interval contains the true value.")
    ] = 0.95,
    json_file: JsonOption = None,
) -> None:
    """List surfaces, or show the estimates of one.

    Estimates are position preferences and item means of each user type, with intervals. The store is not
    changed.
    """
    from dataclasses import asdict

    from banditrank.dashboard._estimates_report import report_estimates

    check_output_files(json_file)
    with open_given_store(store, store_file) as opened:
        if surface is None:
            surfaces = [_counts(opened, record) for record in opened.surfaces()]
        else:
            report = report_estimates(_counts(opened, opened.read_surface(surface)), level=level)
    if json_file is not None:
        document = (
            {"surfaces": [_summary(counts) for counts in surfaces]} if surface is None else asdict(report)
        )
        write_json(document, json_file)
    if json_file == "-":
        return
    if surface is None:
        _print_surfaces(surfaces)
    else:
        _print_estimates(report)


@state_commands.command(
    "export", cls=OptionErrorCommand, epilog=examples("banditrank state export home -o home.json")
)
def export_command(
    surface: Annotated[str, typer.Argument(metavar="SURFACE", help="Name of the surface.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write.", show_default="standard output"),
    ] = None,
    store: PersistentStoreOption = None,
    store_file: StoreFileOption = None,
) -> None:
    """Write the settings and counts of a surface as JSON.

    Pending impressions are not included: the store that created them accepts their feedback.
    """
    from banditrank._files import atomic_write
    from banditrank.engine._import_export import as_text, export_surface

    check_output_files(None, output=output)
    with open_given_store(store, store_file) as opened:
        document = export_surface(opened, surface)
    if output is None:
        sys.stdout.write(as_text(document))
        return
    try:
        with atomic_write(output) as path:
            path.write_text(as_text(document), encoding="utf-8")
    except OSError as error:
        raise InvalidInputError.from_os("--output", "must be writable", output, error) from None
    typer.echo(f"{output}: surface {surface}, {_n_cells(len(document['counts']))}")


@state_commands.command(
    "import",
    cls=OptionErrorCommand,
    epilog=examples("banditrank state import home.json --name home-copy"),
)
def import_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File written by banditrank state export.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the new surface.", show_default="the name in the file")
    ] = None,
    store: PersistentStoreOption = None,
    store_file: StoreFileOption = None,
) -> None:
    """Create a surface from an exported file."""
    from banditrank.engine._import_export import read_document, read_surface

    document = read_document(file)
    surface, cells = read_surface(document, name=name)  # may raise: before a store is created
    with store_address(store, store_file) as address, open_store_at(address, create=True) as opened:
        opened.create_surface(surface.name, surface.definition, cells=cells)
    typer.echo(
        f"{redacted(address or DEFAULT_STORE)}: surface {surface.name}, {_n_cells(len(document['counts']))}"
    )


def _n_cells(number: int) -> str:
    return f"{number:,} cell{'' if number == 1 else 's'} of counts"


def _counts(store: "Store", record: "SurfaceRecord") -> "SurfaceCounts":
    from banditrank.engine._counts_replica import CountsReplica
    from banditrank.engine._surface import Surface

    surface = Surface.from_definition(record.definition)
    return CountsReplica(store, record.surface_id, surface).surface_counts(surface, record.revision)


def _summary(counts: "SurfaceCounts") -> dict[str, Any]:
    surface = counts.surface
    return {
        "surface": surface.name,
        "rounds": counts.counts.rounds,
        "items": len(surface.active_items),
        "retired_items": len(surface.retired),
        "positions": surface.n_positions,
        "user_types": list(surface.user_types),
        "policy": surface.policy,
        "treatment": surface.treatment,
        "revision": counts.revision,
        "version": counts.version,
    }


def _print_surfaces(surfaces: "list[SurfaceCounts]") -> None:
    if not surfaces:
        typer.echo("no surfaces")
        return
    table = make_table()
    table.add_column("surface", overflow="fold")
    for heading in ("rounds", "items", "retired", "positions", "types"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("policy", "treatment"):
        table.add_column(heading, no_wrap=True)
    table.add_column("version", justify="right", no_wrap=True)
    for counts in surfaces:
        summary = _summary(counts)
        numbers = (
            *(summary[key] for key in ("rounds", "items", "retired_items", "positions")),
            len(summary["user_types"]),
        )
        row = [summary["surface"], *(f"{number:,}" for number in numbers)]
        table.add_row(*row, summary["policy"], summary["treatment"], f"{summary['version']:,}")
    make_console().print(table)


def _print_estimates(report: "EstimatesReport") -> None:
    console = make_console()
    console.print(f"{report.surface}: {report.rounds:,} rounds, version {report.version:,}")
    for of_type in report.user_types:
        title = f"{of_type.user_type}: {of_type.arrivals:,} arrivals, {of_type.share:.1%}"
        table = make_table(title)
        table.add_column("", overflow="fold")
        for heading in ("estimate", f"{report.level:.0%} interval", "displays", "clicks"):
            table.add_column(heading, justify="right", no_wrap=True)
        for position in of_type.positions:
            interval = f"{position.low:.3f} to {position.high:.3f}"
            table.add_row(f"position {position.position}", f"{position.estimate:.3f}", interval, "", "")
        table.add_section()
        for item in of_type.items:
            table.add_row(
                f"{item.item} (retired)" if item.retired else item.item,
                "–" if item.estimate is None else f"{item.estimate:.3f}",
                f"{item.low:.3f} to {item.high:.3f}",
                f"{item.displays:,}",
                f"{item.rewards:,.6g}",
            )
        console.print(table)
    console.print(
        "positions: probability of examination; items: click probability when examined", style="dim"
    )
