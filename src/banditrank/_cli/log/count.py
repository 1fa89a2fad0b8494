"""``banditrank log count``: count a click log into a cube."""

from typing import Annotated

import typer

from banditrank._cli.log.counted import CubeOption, report_counting
from banditrank._cli.log.source import LogSource, check_cube_output, takes_log
from banditrank._cli.output import JsonOption, check_output_files
from banditrank._cli.reading import TemporaryDirectoryOption, ThreadsOption


@takes_log
def count_command(
    log: LogSource,
    output: CubeOption,
    single_click: Annotated[
        bool, typer.Option("--single-click", help="Treat several clicks in a visit as bad rows.")
    ] = False,
    max_lists: Annotated[
        int, typer.Option(help="Number of visits whose ranking lists are retained, up to 5000000.")
    ] = 20_000,
    time_zone: Annotated[str, typer.Option(help="Time zone in which periods begin.")] = "UTC",
    engine: Annotated[str, typer.Option(help="Engine that counts: duckdb or spark.")] = "duckdb",
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Spark master.", show_default="that of Spark's configuration"),
    ] = None,
    temporary_directory: TemporaryDirectoryOption = None,
    threads: ThreadsOption = None,
    json_file: JsonOption = None,
) -> None:
    """Count a click log into a cube, from which all analyses of logs start.

    Prints which columns were guessed, how many rows were counted or left out and why, and what looks wrong.
    A bad row is an error that names its file, line, rule and value, unless bad rows are dropped.
    """
    check_output_files(json_file, inputs=log.inputs)
    check_cube_output(output)
    cube = log.count(
        single_click=single_click,
        max_lists=max_lists,
        time_zone=time_zone,
        engine=engine,
        master=master,
        temporary_directory=temporary_directory,
        threads=threads,
    )
    cube = log.keep(cube)
    cube.save(output)
    report_counting(cube, output, json_file)
