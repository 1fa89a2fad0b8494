"""``banditrank frontier``: the trade-off between total and worst-off value."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank import __version__
from banditrank._cli.output import (
    JsonOption,
    announce_compilation,
    check_output_files,
    format_number,
    make_console,
    make_table,
    write_json,
)
from banditrank._cli.plot_options import (
    PlotDpiOption,
    PlotSizeOption,
    PlotStyleOption,
    PlotTitleOption,
    check_plot_options,
)
from banditrank._cli.problem import ProblemArgument
from banditrank._cli.search_progress import exit_if_interrupted, show_search_progress
from banditrank._cli.solve import solution_fields
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank.model._problem import Problem
    from banditrank.solvers._frontier import FrontierPoint
    from banditrank.solvers._lottery.lottery import Lottery

_MAX_SHOWN_ITEMS = 5


def frontier_command(
    problem: ProblemArgument,
    alphas: Annotated[
        str, typer.Option(help="Comma-separated α of the α-fair utilities; 1 is nash.")
    ] = "0.5,1,2,5",
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Stop after this time for each utility, with its best ranking so far.",
            show_default="no limit",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a plot of the trade-off to a .png, .svg or .pdf file."),
    ] = None,
    plot_size: PlotSizeOption = None,
    plot_style: PlotStyleOption = None,
    plot_title: PlotTitleOption = None,
    plot_dpi: PlotDpiOption = None,
    json_file: JsonOption = None,
) -> None:
    """Show the trade-off between total and worst-off value.

    Solves the utilitarian, α-fair and maximin utilities and prints the clicks per visit of each ranking,
    in total and of its worst-off user type, then those of the best lottery over rankings for each utility,
    beside personalized treatment.
    """
    from banditrank.model._catalog import load_problem
    from banditrank.solvers._frontier import pareto_frontier
    from banditrank.solvers._frontier_plot import save_frontier_plot

    check_output_files(json_file, plot, inputs=[problem])
    plot_options = check_plot_options(plot, size=plot_size, style=plot_style, title=plot_title, dpi=plot_dpi)
    found = load_problem(problem)
    chosen = _parse_alphas(alphas)
    with announce_compilation(), show_search_progress() as search:
        points = pareto_frontier(found, alphas=chosen, time_limit=time_limit, on_progress=search)
    if json_file is not None:
        write_json(_document(found, points), json_file)
    if plot is not None:
        save_frontier_plot(found, points, plot, **plot_options)
    if json_file != "-":
        _print_frontier(found, points)
    exit_if_interrupted(search)


def _parse_alphas(text: str) -> list[float]:
    try:
        return [float(alpha) for alpha in text.split(",")]
    except ValueError:
        raise InvalidInputError("--alphas", "must be numbers with commas between them", text) from None


def _document(problem: "Problem", points: "list[FrontierPoint]") -> dict[str, Any]:
    report = points[0].equality
    return {
        "problem": problem.name,
        "version": __version__,
        "personalized": {
            "total_value": report.personalized_total,
            "worst_value": float(report.personalized_values.min()),
            "worst_user_type": problem.user_types[report.personalized_values.argmin()],
            "user_type_values": report.personalized_values.tolist(),
        },
        "points": [
            {
                "utility": str(point.utility),
                "total_value": point.total,
                "worst_value": point.worst,
                "worst_user_type": problem.user_types[point.equality.worst_type],
                **solution_fields(problem, point.solution, point.equality),
                "lottery": None if point.lottery is None else _lottery_fields(point, point.lottery),
            }
            for point in points
        ],
    }


def _lottery_fields(point: "FrontierPoint", lottery: "Lottery") -> dict[str, Any]:
    return {
        "total_value": point.lottery_total,
        "worst_value": point.lottery_worst,
        "price_of_equality": point.lottery_price,
        "value": lottery.value,
        "is_certified": lottery.is_certified,
        "user_type_values": lottery.user_type_values.tolist(),
        "rankings": [[lottery.items[item] for item in ranking] for ranking in lottery.rankings],
        "probabilities": lottery.probabilities.tolist(),
    }


def _print_frontier(problem: "Problem", points: "list[FrontierPoint]") -> None:
    title = f"Frontier: {problem.name}, banditrank {__version__}"
    table = make_table(title)
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
    for point in points:
        if point.lottery is not None:
            values, count = point.lottery.user_type_values, len(point.lottery.rankings)
            table.add_row(
                str(point.utility),
                "lottery gains nothing" if count == 1 else f"lottery over {count} rankings",
                f"{point.lottery_total:.4f}",
                f"{point.lottery_worst:.4f}",
                problem.user_types[values.argmin()],
                "certified" if point.lottery.is_certified else format_number(point.lottery.gap),
                f"{point.lottery_price:.2%}",
            )
    table.add_section()
    report = points[0].equality
    table.add_row(
        "personalized",
        "one per user type",
        f"{report.personalized_total:.4f}",
        f"{report.personalized_values.min():.4f}",
        problem.user_types[report.personalized_values.argmin()],
        "",
        f"{0:.2%}",
    )
    console = make_console()
    console.print(table)
    console.print(
        "total: clicks per visit over all users; worst off: those of the worst-off user type", style="dim"
    )
    console.print("price: price of equality, the share of the personalized total that is lost", style="dim")
    if any(point.is_arbitrary for point in points):
        console.print("arbitrary: the value is −∞, so all rankings are equally good; not in the plot")


def _shortened(names: list[str]) -> str:
    if len(names) <= _MAX_SHOWN_ITEMS:
        return ", ".join(names)
    return f"{', '.join(names[: _MAX_SHOWN_ITEMS - 1])}, … ({len(names)} items)"


def _certificate(point: "FrontierPoint") -> str:
    if point.is_arbitrary:
        return "arbitrary"
    return "certified" if point.is_certified else format_number(point.solution.gap)
