"""``banditrank compare``: compare policies on suites of problems."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banditrank._cli.command import split_names
from banditrank._cli.output import (
    SeedOption,
    WorkersOption,
    announce_compilation,
    make_console,
    make_table,
    report_interruption,
)
from banditrank._import_path import add_current_directory, is_import_path

if TYPE_CHECKING:
    from banditrank.experiments._report import Report


def compare_command(
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="Suites to run: table1, table1-equal, table1-nash, synthetic, graded, low-clicks, "
            "many-items, long-tail, conflict, conflict-nash, conflict-lottery, maximin-lottery, exposure, "
            "position-based, cascade, item-jumps, item-drift, turnover, linear-context, logistic-context, "
            "reproductions (of the policies' own papers) or all; carousel:DIRECTORY of a carousel's files; "
            "the TOML file of a problem; or MODULE:NAME of a problem in Python. Repeat or separate with "
            "commas.",
            show_default="all",
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "--policies",
            help="Policies to compare, as for banditrank simulate, or MODULE:CLASS of a custom one in the "
            "current directory. Repeat or separate with commas.",
            show_default="all but the oracle, beside custom ones",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run a smaller version of each suite, in some minutes; the report states its size.",
        ),
    ] = False,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out",
            help="Compare on held-out copies of the suites: other problems of the same kinds, on which no "
            "constant of a policy was chosen.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory to write to; finished jobs in it are not run again.",
            show_default="output/comparison, with -held-out and -quick",
        ),
    ] = None,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
) -> None:
    """Compare policies on suites of problems.

    Writes data, figures, a summary (JSON) and an HTML report with a leaderboard, and checks what the
    policies' own papers report. Rerun the same command to resume after an interruption.
    """
    from banditrank.experiments._compare.compare import compare
    from banditrank.experiments._report import HTML_FILE

    suites, compared = split_names(suite), split_names(policies)
    if any(map(is_import_path, (*suites, *compared))):
        add_current_directory()
    name = f"comparison{'-held-out' if held_out else ''}{'-quick' if quick else ''}"
    directory = output or Path("output") / name
    done: list[str] = []
    with report_interruption(done), announce_compilation("policies", "simulation"):
        report = compare(
            suites,
            compared,
            directory,
            quick=quick,
            held_out=held_out,
            seed=seed,
            workers=workers,
            on_job=lambda name, _: done.append(name),
        )
    _print_report(report)
    typer.echo(f"report: {directory / HTML_FILE}")


def _print_report(report: "Report") -> None:
    from banditrank._report_page.elements import column_kinds

    console = make_console()
    kind = "a quick run" if report.quick else "a full run"
    console.print(f"Comparing policies: {kind}, seed {report.seed}, banditrank {report.version}")
    if report.overview is not None:
        for board in report.overview.result.tables[:-1]:  # the last table, by suite, is too wide
            table = make_table(board.caption)
            for heading, kind in zip(board.columns, column_kinds(board), strict=True):
                table.add_column(heading, justify="right" if kind in ("number", "interval") else "left")
            for column in table.columns[:2]:  # the policy, and what it knows of positions
                column.no_wrap = True
            for row in board.rows:
                table.add_row(*row)
            console.print(table)
        console.print(report.overview.study.claim, style="dim")
        for check in report.overview.result.checks:
            console.print(f"{'yes' if check.holds else 'no'}: {check.statement} {check.evidence}")
    reproductions = [study for study in report.studies if study.study.has_agreement]
    if reproductions:
        table = make_table("Reproductions of the policies' papers")
        for heading in ("reproduction", "agreement"):
            table.add_column(heading, overflow="fold")
        table.add_column("checks", justify="right", no_wrap=True)
        for study in reproductions:
            table.add_row(study.study.title, study.result.agreement, study.result.checks_summary)
        console.print(table)
