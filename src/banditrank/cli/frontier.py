"""``banditrank frontier``: what the utilities between utilitarian and maximin give, and to whom."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank import __version__
from banditrank.cli.output import (
    JsonOption,
    check_targets,
    make_console,
    shown,
    told_of_long_compiling,
    write_json,
)
from banditrank.cli.problem import ProblemArgument
from banditrank.cli.solve import solution_fields
from banditrank.cli.watching import exit_if_stopped, watched
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank.model.problem import Problem
    from banditrank.solvers.frontier import FrontierPoint

_SHOWN_ITEMS = 5


def frontier_command(
    problem: ProblemArgument,
    alphas: Annotated[
        str, typer.Option(help="The α of the α-fair utilities, with commas between them; 1 is nash.")
    ] = "0.5,1,2,5",
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="For each utility; then take its best ranking so far.",
            show_default="as long as it takes",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the trade-off to a .png, .svg or .pdf file.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Show the trade-off between everybody's total and the worst-off user type."""
    from banditrank.model.catalog import load_problem
    from banditrank.solvers.frontier import pareto_frontier
    from banditrank.solvers.frontier_plot import save_frontier_plot

    check_targets(json_file, plot, inputs=[problem])
    world = load_problem(problem)
    chosen = _numbers(alphas)
    with told_of_long_compiling(), watched() as watch:
        points = pareto_frontier(world, alphas=chosen, time_limit=time_limit, on_progress=watch)
    if json_file is not None:
        write_json(_document(world, points), json_file)
    if plot is not None:
        save_frontier_plot(world, points, plot)
    if json_file != "-":
        _print_frontier(world, points)
    exit_if_stopped(watch)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError("--alphas", "must be numbers with commas between them", text) from None


def _document(problem: "Problem", points: "list[FrontierPoint]") -> dict[str, Any]:
    report = points[0].equality
    return {
        "problem": problem.name,
        "version": __version__,
        "personalized": {
            "total": report.personalized_total,
            "worst": float(report.personalized_values.min()),
            "worst_type": problem.user_types[report.personalized_values.argmin()],
            "user_type_values": report.personalized_values.tolist(),
        },
        "points": [
            {
                "utility": str(point.utility),
                "total": point.total,
                "worst": point.worst,
                "worst_type": problem.user_types[point.equality.worst_type],
                **solution_fields(problem, point.solution, point.equality),
            }
            for point in points
        ],
    }


def _print_frontier(problem: "Problem", points: "list[FrontierPoint]") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = f"Frontier: {problem.name}, banditrank {__version__}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("utility", no_wrap=True)
    table.add_column("ranking", overflow="fold")
    table.add_column("total", justify="right", no_wrap=True)
    table.add_column("worst off", justify="right", no_wrap=True)
    table.add_column("type", overflow="fold")
    table.add_column("gap", no_wrap=True)
    table.add_column("price", justify="right", no_wrap=True)
    for point in points:
        table.add_row(
            str(point.utility),
            _shortened([problem.items[item] for item in point.solution.ranking]),
            f"{point.total:.4f}",
            f"{point.worst:.4f}",
            problem.user_types[point.equality.worst_type],
            _certificate(point),
            f"{point.price_of_equality:.2%}",
        )
    table.add_section()
    report = points[0].equality
    table.add_row(
        "personalized",
        "one for each type",
        f"{report.personalized_total:.4f}",
        f"{report.personalized_values.min():.4f}",
        problem.user_types[report.personalized_values.argmin()],
        "",
        f"{0:.2%}",
    )
    console = make_console()
    console.print(table)
    console.print("total: click rate over all users; worst off: of the type that gets least", style="dim")
    console.print("price: of equality, the share of the personalized total that is lost", style="dim")
    if any(point.is_arbitrary for point in points):
        console.print("arbitrary: the value is −∞ and says nothing of the ranking; not in the picture")


def _shortened(names: list[str]) -> str:
    if len(names) <= _SHOWN_ITEMS:
        return ", ".join(names)
    return f"{', '.join(names[: _SHOWN_ITEMS - 1])}, … ({len(names)} items)"


def _certificate(point: "FrontierPoint") -> str:
    if point.is_arbitrary:
        return "arbitrary"
    return "certified" if point.is_certified else shown(point.solution.gap)
