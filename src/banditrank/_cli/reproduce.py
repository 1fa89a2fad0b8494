"""``banditrank reproduce``: reproduce the paper's figures, tables, lemmas and theorems."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from banditrank._cli.output import (
    AddressOption,
    BackendOption,
    SeedOption,
    WorkersOption,
    announce_compilation,
    make_console,
    make_table,
    report_interruption,
)

if TYPE_CHECKING:
    from banditrank.experiments._report import Report
    from banditrank.simulation._backends.catalog import BackendName


def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Studies to run: synthetic, kdd2012, table1, table2, regret-order, lemmas, lock-in, "
            "lotteries or all. The study of lotteries is an addition to the paper.",
            show_default="all",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run a smaller version of each study, in some minutes; the report states its size.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory to write to; finished jobs in it are not run again.",
            show_default="output/reproduction, or output/reproduction-quick",
        ),
    ] = None,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    backend: BackendOption = "joblib",
    address: AddressOption = None,
    training: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For table1: training.txt of KDD Cup 2012 track 2 (optional)."),
    ] = None,
    profiles: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For table1: userid_profile.txt, together with --training."),
    ] = None,
) -> None:
    """Reproduce the paper's figures, tables, lemmas and theorems.

    Writes data, figures, a summary (JSON) and an HTML report that shows the paper's claims beside the
    findings. Rerun the same command to resume after an interruption.
    """
    from banditrank.experiments._report import HTML_FILE
    from banditrank.experiments._reproduce import find_studies, reproduce

    studies = find_studies(names or [], training=training, profiles=profiles)
    directory = output or Path("output") / ("reproduction-quick" if quick else "reproduction")
    done: list[str] = []
    with report_interruption(done), announce_compilation(), announce_compilation("policies", "simulation"):
        report = reproduce(
            studies,
            directory,
            quick=quick,
            seed=seed,
            workers=workers,
            backend=cast("BackendName", backend),
            address=address,
            on_job=lambda name, _: done.append(name),
        )
    _print_report(report)
    typer.echo(f"report: {directory / HTML_FILE}")


def _print_report(report: "Report") -> None:
    kind = "a quick run" if report.quick else "a full run"
    table = make_table()
    table.add_column("study", no_wrap=True)
    table.add_column("", overflow="fold")
    table.add_column("agreement", no_wrap=True)
    table.add_column("checks", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    for study in report.studies:
        result = study.result
        table.add_row(
            study.study.name,
            study.study.title,
            result.agreement,
            result.checks_summary,
            f"{study.seconds:.0f}",
        )
    console = make_console()
    console.print(f"Reproducing the paper: {kind}, seed {report.seed}, banditrank {report.version}")
    console.print(table)
    console.print("checks: statements of the paper that hold here", style="dim")
    if any(study.result.agreement == "too short to tell" for study in report.studies):
        console.print(
            "too short to tell: not confirmed by a quick run; a full run can decide it", style="dim"
        )
