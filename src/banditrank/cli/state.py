"""``banditrank state``: look into a store, and take surfaces out of it and into it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank.cli.command import Command
from banditrank.cli.output import JsonOption, check_targets, make_console, write_json
from banditrank.cli.store import KeptStoreOption, StoreFileOption, given_address, opened, opened_at
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.storage.addresses import redacted
from banditrank.storage.factory import DEFAULT_STORE

if TYPE_CHECKING:
    from banditrank.dashboard.estimates_report import EstimatesReport
    from banditrank.engine.counts_replica import SurfaceCounts
    from banditrank.storage.base import Store
    from banditrank.storage.records import SurfaceRecord

state_commands = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
)


@state_commands.callback()
def _help(context: typer.Context) -> None:
    """Show, export or import what surfaces have learned."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@state_commands.command("show", cls=Command)
def show_command(
    surface: Annotated[str | None, typer.Argument(help="A surface, for what it learned.")] = None,
    store: KeptStoreOption = None,
    store_file: StoreFileOption = None,
    level: Annotated[float, typer.Option(help="How probably an interval holds the truth.")] = 0.95,
    json_file: JsonOption = None,
) -> None:
    """List surfaces, or show what one has learned: estimates with their intervals."""
    from dataclasses import asdict

    from banditrank.dashboard.estimates_report import report_estimates

    check_targets(json_file)
    with opened(store, store_file) as kept:
        if surface is None:
            everything = [_known(kept, record) for record in kept.surfaces()]
        else:
            report = report_estimates(_known(kept, _record(kept, surface)), level=level)
    if json_file is not None:
        document = (
            {"surfaces": [_summary(known) for known in everything]} if surface is None else asdict(report)
        )
        write_json(document, json_file)
    if json_file == "-":
        return
    if surface is None:
        _print_surfaces(everything)
    else:
        _print_estimates(report)


@state_commands.command("export", cls=Command)
def export_command(
    surface: Annotated[str, typer.Argument(help="Its name.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; standard output if left out."),
    ] = None,
    store: KeptStoreOption = None,
    store_file: StoreFileOption = None,
) -> None:
    """Write a surface, its settings and its counts, to a file that people can read."""
    from banditrank.engine.import_export import as_text, export_surface
    from banditrank.files import replacing

    check_targets(None, output=output)
    with opened(store, store_file) as kept:
        document = export_surface(kept, surface)
    if output is None:
        sys.stdout.write(as_text(document))
        return
    try:
        with replacing(output) as path:
            path.write_text(as_text(document), encoding="utf-8")
    except OSError as error:
        raise InvalidInputError.from_os("--output", "must be writable", output, error) from None
    typer.echo(f"{output}: surface {surface}, {_cells(len(document['counts']))}")


@state_commands.command("import", cls=Command)
def import_command(
    file: Annotated[Path, typer.Argument(help="What banditrank state export wrote.")],
    name: Annotated[
        str | None, typer.Option(help="What to call the surface.", show_default="as in the file")
    ] = None,
    store: KeptStoreOption = None,
    store_file: StoreFileOption = None,
) -> None:
    """Create a surface with the settings and counts of a file."""
    from banditrank.engine.import_export import read_document, read_surface

    document = read_document(file)
    surface, cells = read_surface(document, name=name)  # before a store is made for it
    with given_address(store, store_file) as address, opened_at(address, make=True) as kept:
        kept.create_surface(surface.name, surface.definition, cells=cells)
    typer.echo(
        f"{redacted(address or DEFAULT_STORE)}: surface {surface.name}, {_cells(len(document['counts']))}"
    )


def _cells(number: int) -> str:
    return f"{number:,} cell{'' if number == 1 else 's'} of counts"


def _record(store: "Store", name: str) -> "SurfaceRecord":
    record = store.find_surface(name)
    if record is None:
        raise UnknownNameError("surface", name, [known.name for known in store.surfaces()])
    return record


def _known(store: "Store", record: "SurfaceRecord") -> "SurfaceCounts":
    from banditrank.engine.counts_replica import CountsReplica
    from banditrank.engine.surface import Surface

    surface = Surface.from_definition(record.definition)
    return CountsReplica(store, record.surface_id, surface).surface_counts(surface, record.revision)


def _summary(known: "SurfaceCounts") -> dict[str, Any]:
    surface = known.surface
    return {
        "surface": surface.name,
        "rounds": known.counts.rounds,
        "items": len(surface.active_items),
        "retired": len(surface.retired),
        "positions": surface.n_positions,
        "user_types": list(surface.user_types),
        "policy": surface.policy,
        "treatment": surface.treatment,
        "revision": known.revision,
        "version": known.version,
    }


def _print_surfaces(everything: "list[SurfaceCounts]") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    if not everything:
        typer.echo("no surfaces")
        return
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("surface", overflow="fold")
    for heading in ("rounds", "items", "retired", "positions", "types"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("policy", "treatment"):
        table.add_column(heading, no_wrap=True)
    table.add_column("version", justify="right", no_wrap=True)
    for known in everything:
        told = _summary(known)
        numbers = (told["rounds"], told["items"], told["retired"], told["positions"], len(told["user_types"]))
        row = [told["surface"], *(f"{number:,}" for number in numbers), told["policy"], told["treatment"]]
        table.add_row(*row, f"{told['version']:,}")
    make_console().print(table)


def _print_estimates(report: "EstimatesReport") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    style: dict[str, Any] = {"title_justify": "left", "box": SIMPLE_HEAD, "padding": (0, 1, 0, 0)}
    console = make_console()
    console.print(f"{report.surface}: {report.rounds:,} rounds, version {report.version:,}")
    for told in report.user_types:
        title = f"{told.user_type}: {told.arrivals:,} arrivals, {told.share:.1%}"
        table = Table(title=title, **style)
        table.add_column("", overflow="fold")
        for heading in ("estimate", f"{report.level:.0%} interval", "displays", "clicks"):
            table.add_column(heading, justify="right", no_wrap=True)
        for position in told.positions:
            interval = f"{position.low:.3f} to {position.high:.3f}"
            table.add_row(f"position {position.position}", f"{position.estimate:.3f}", interval, "", "")
        table.add_section()
        for item in told.items:
            table.add_row(
                f"{item.item} (retired)" if item.retired else item.item,
                f"{item.estimate:.3f}",
                f"{item.low:.3f} to {item.high:.3f}",
                f"{item.displays:,}",
                f"{item.rewards:,.6g}",
            )
        console.print(table)
    console.print(
        "positions: how probably users look there; items: how probably who looks clicks", style="dim"
    )
