"""``banditrank log merge``: add the cubes of parts of a log."""

from pathlib import Path
from typing import Annotated

import typer

from banditrank._cli.log.counted import CubeOption, report_counting
from banditrank._cli.log.source import check_cube_output
from banditrank._cli.output import JsonOption, check_output_files


def merge_command(
    cubes: Annotated[list[Path], typer.Argument(metavar="CUBES...", help="Directories of cubes.")],
    output: CubeOption,
    json_file: JsonOption = None,
) -> None:
    """Add the cubes of parts of a log, of which no visit is in two."""
    from banditrank.counts import load_cube, merge_cubes

    check_output_files(json_file, inputs=cubes)
    check_cube_output(output)
    merged = merge_cubes([load_cube(path) for path in cubes])
    merged.save(output)
    report_counting(merged, output, json_file)
