"""``banditrank log report``: everything that a log tells on one page."""

from pathlib import Path
from typing import Annotated

import typer

from banditrank._cli.log.evaluate import print_evaluation
from banditrank._cli.log.source import LogSource, takes_log
from banditrank._cli.log.verdict import announce_model_compilation, print_verdict
from banditrank._cli.output import (
    JsonOption,
    announce_compilation,
    check_output_files,
    make_console,
    write_json,
)
from banditrank.errors import InvalidInputError


@takes_log
def report_command(
    log: LogSource,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="HTML page to write.")],
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Also write the figures as PNG and SVG to this directory.",
            show_default="none",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(help="Probability that an interval contains the true value.")
    ] = 0.95,
    json_file: JsonOption = None,
) -> None:
    """Write a page with everything that a log tells, and what it cannot tell.

    Verdict, data quality, worth of positions, items of each user type, which columns tell users apart, the
    price of equality, recommended rankings, what they would have earned, and drift. The page is one file that
    works offline.
    """
    check_output_files(json_file, output=output, inputs=log.inputs)
    if output.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError("--output", "must end in .html", str(output))
    if figures is not None and figures.exists() and not figures.is_dir():
        raise InvalidInputError("--figures", "must be a directory", str(figures))

    from banditrank._extras import check_extras
    from banditrank.logs import log_report

    check_extras("the report", "reports")
    cube = log.read(by_period=True)
    with announce_compilation(), announce_model_compilation():
        report = log_report(cube, level=level)
    report.save(output, figures=figures, json_file=None if json_file == "-" else json_file)
    if json_file == "-":
        write_json(report.to_dict(), json_file)
        return
    console = make_console()
    print_verdict(console, report.diagnosis)
    console.print()
    print_evaluation(console, report.evaluation)
    console.print(f"{output}: report")
