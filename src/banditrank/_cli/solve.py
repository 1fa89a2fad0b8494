"""``banditrank solve``: the best equal ranking, with a certificate."""

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from banditrank import __version__
from banditrank._cli.output import (
    JsonOption,
    announce_compilation,
    check_output_files,
    finite_or_none,
    format_number,
    make_console,
    make_table,
    write_json,
)
from banditrank._cli.problem import ProblemArgument
from banditrank._cli.search_progress import exit_if_interrupted, show_search_progress

if TYPE_CHECKING:
    from rich.table import Table

    from banditrank.model._problem import Problem
    from banditrank.solvers._equality import EqualityReport
    from banditrank.solvers._solution import Solution
    from banditrank.solvers._solve import SolverName
    from banditrank.utilities._utility import Utility


def solve_command(
    problem: ProblemArgument,
    utility: Annotated[
        str,
        typer.Option(
            help="Utility to maximise: utilitarian, nash, alpha:2 (0 to 1000), maximin, "
            "sigmoid:STEEPNESS:MIDPOINT or ramp:BEGIN:END."
        ),
    ] = "utilitarian",
    solver: Annotated[
        str,
        typer.Option(
            help="auto selects a method by the utility; or assignment, branch-and-bound, spatial, "
            "enumeration, sampling, permutation-lp, outer-approximation."
        ),
    ] = "auto",
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Stop after this time with the best ranking so far.",
            show_default="no limit",
        ),
    ] = None,
    target_gap: Annotated[
        float, typer.Option(help="Relative gap at which a ranking is certified as the best.")
    ] = 1e-10,
    share: Annotated[float, typer.Option(help="For sampling: share of rankings to try.")] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="For sampling: random seed.")] = 0,
    json_file: JsonOption = None,
) -> None:
    """Find the best ranking for all user types together.

    Prints the ranking with its value, an upper bound and the gap between them, its value to each user type
    beside that of personalized treatment, and the price of equality.
    """
    from banditrank.model._catalog import load_problem
    from banditrank.solvers._equality import equality_report
    from banditrank.solvers._solve import solve
    from banditrank.utilities._utility import as_utility

    check_output_files(json_file, inputs=[problem])
    found = load_problem(problem)
    collective_utility = as_utility(utility)
    with announce_compilation(), show_search_progress() as search:
        solution = solve(
            found,
            collective_utility,
            solver=cast("SolverName", solver),
            time_limit=time_limit,
            target_gap=target_gap,
            share=share,
            seed=seed,
            on_progress=search,
        )
    report = equality_report(found, solution.ranking)
    if json_file is not None:
        sampling = {"share": share, "seed": seed} if solution.solver == "sampling" else {}
        heading = {"problem": found.name, "utility": str(collective_utility), "version": __version__}
        write_json({**heading, **sampling, **solution_fields(found, solution, report)}, json_file)
    if json_file != "-":
        _print_solution(found, collective_utility, solution, report)
    exit_if_interrupted(search)


def solution_fields(problem: "Problem", solution: "Solution", report: "EqualityReport") -> dict[str, Any]:
    """Return a solution as values for JSON, with None for infinite numbers."""
    return {
        "ranking": [problem.items[item] for item in solution.ranking],
        "value": finite_or_none(solution.value),
        "upper_bound": finite_or_none(solution.upper_bound),
        "gap": finite_or_none(solution.gap),
        "is_certified": bool(solution.is_certified),
        "solver": solution.solver,
        "nodes": int(solution.nodes),
        "seconds": solution.seconds,
        "user_type_values": report.user_type_values.tolist(),
        "personalized_values": report.personalized_values.tolist(),
        "price_of_equality": report.price_of_equality,
    }


def _print_solution(
    problem: "Problem", utility: "Utility", solution: "Solution", report: "EqualityReport"
) -> None:
    from rich.table import Table

    ranking = make_table()
    ranking.add_column("position", justify="right")
    ranking.add_column("item", overflow="fold")
    for position, item in enumerate(solution.ranking, start=1):
        ranking.add_row(str(position), problem.items[item])
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_row("value", format_number(solution.value))
    facts.add_row("upper bound", format_number(solution.upper_bound))
    facts.add_row(
        "gap", f"{format_number(solution.gap)}, {'certified' if solution.is_certified else 'not certified'}"
    )
    facts.add_row("solver", f"{solution.solver}, nodes {solution.nodes:,}, seconds {solution.seconds:.3f}")
    console = make_console()
    kind = "best ranking" if solution.is_certified else "best ranking found"
    console.print(f"{problem.name}: {kind} for all user types, {utility}, banditrank {__version__}")
    console.print(ranking)
    console.print(facts)
    console.print(_types_table(problem, report))
    console.print(f"price of equality {report.price_of_equality:.2%}")
    console.print("equal, personalized: click rates; lost: share of the personalized click rate", style="dim")
    if solution.value == float("-inf"):
        console.print("the ranking is arbitrary: its value is −∞, so all rankings are equally good")


def _types_table(problem: "Problem", report: "EqualityReport") -> "Table":
    table = make_table()
    table.add_column("user type", overflow="fold")
    for heading in ("arrival rate", "equal", "personalized", "lost"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = zip(
        problem.user_types,
        report.arrival_rates,
        report.user_type_values,
        report.personalized_values,
        report.shares_lost,
        strict=True,
    )
    for name, rate, value, best, lost in rows:
        table.add_row(name, f"{rate:.3f}", f"{value:.4f}", f"{best:.4f}", f"{lost:.2%}")
    table.add_section()
    total, best = report.total, report.personalized_total
    table.add_row("all", "1.000", f"{total:.4f}", f"{best:.4f}", f"{report.price_of_equality:.2%}")
    return table
