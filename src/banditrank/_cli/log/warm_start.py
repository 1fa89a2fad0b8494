"""``banditrank log warm-start``: a surface that starts with the counts of a log."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from banditrank._cli.log.source import LogSource, takes_log
from banditrank._cli.log.verdict import diagnose_log, print_verdict
from banditrank._cli.output import check_output_files, make_console
from banditrank._cli.store import PersistentStoreOption, StoreFileOption, open_store_at, store_address
from banditrank.errors import InvalidInputError


@takes_log
def warm_start_command(
    log: LogSource,
    surface: Annotated[str, typer.Option(metavar="NAME", help="Name of the surface.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write a file for banditrank state import instead.",
            show_default="create the surface in the store",
        ),
    ] = None,
    store: PersistentStoreOption = None,
    store_file: StoreFileOption = None,
    weight: Annotated[
        float, typer.Option(help="Weight of a display of the log, relative to one of the surface.")
    ] = 1.0,
    max_visits: Annotated[
        int | None, typer.Option(help="Maximum number of visits to start with.", show_default="no limit")
    ] = None,
    half_life: Annotated[
        float | None,
        typer.Option(help="Number of periods after which a display counts half.", show_default="no discount"),
    ] = None,
    click_model: Annotated[
        str,
        typer.Option(
            "--model", help="Click model: auto, single-look or position-based. auto chooses by the clicks."
        ),
    ] = "auto",
    policy: Annotated[str, typer.Option(help="Policy of the surface.")] = "auto",
    treatment: Annotated[
        str, typer.Option(help="Treatment of the surface: personalized or equal.")
    ] = "personalized",
    utility: Annotated[
        str, typer.Option(help="Utility that equal treatment maximises, as for banditrank solve.")
    ] = "utilitarian",
) -> None:
    """Create a surface that starts with the counts of a log.

    Counts are discounted by age, weighted or capped. The surface is created in a store, or written to a file
    that banditrank state import reads.
    """
    check_output_files(None, output=output, inputs=log.inputs)
    if output is not None and (store is not None or store_file is not None):
        given = "--store" if store is not None else "--store-file"
        raise InvalidInputError(given, "must not be given together with --output", str(output))

    from banditrank.logs import warm_start
    from banditrank.storage._addresses import redacted
    from banditrank.storage._factory import DEFAULT_STORE

    settings: dict[str, Any] = {"policy": policy, "treatment": treatment, "utility": utility}
    cube = log.read()
    try:
        start = warm_start(
            cube,
            surface,
            weight=weight,
            max_visits=max_visits,
            half_life=half_life,
            click_model=click_model,
            **settings,
        )
    except InvalidInputError as error:
        if error.field != "name":
            raise
        raise InvalidInputError("--surface", error.rule, error.value) from None
    diagnosis = diagnose_log(cube)
    if output is not None:
        start.save(output)
        where = str(output)
        hint = f"Create the surface with: banditrank state import {shlex.quote(str(output))}"
    else:
        with store_address(store, store_file) as address, open_store_at(address, create=True) as opened:
            start.create_in(opened)
        where = redacted(address or DEFAULT_STORE)
        options = [] if store is None else ["--store", redacted(store)]
        options += [] if store_file is None else ["--store-file", str(store_file)]
        hint = f"Serve it with: {shlex.join(['banditrank', 'serve', *options])}"
    print_verdict(make_console(), diagnosis)
    for warning in start.warnings:
        typer.echo(f"banditrank: warning: {warning}", err=True)
    typer.echo(f"{where}: {start.summary()}")
    typer.echo(hint)
