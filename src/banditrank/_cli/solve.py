"""``banditrank solve``: the best equal ranking or lottery over rankings, with a certificate."""

from dataclasses import asdict, replace
from pathlib import Path
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
from banditrank._cli.plot_options import (
    PlotDpiOption,
    PlotSizeOption,
    PlotStyleOption,
    PlotTitleOption,
    check_plot_options,
)
from banditrank._cli.problem import ProblemArgument
from banditrank._cli.search_progress import exit_if_interrupted, show_search_progress
from banditrank._text import list_names
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.table import Table

    from banditrank.model._problem import Problem
    from banditrank.solvers._equality import EqualityReport
    from banditrank.solvers._lottery.guarantees import Guarantee
    from banditrank.solvers._lottery.lottery import Lottery
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
    lottery: Annotated[
        bool,
        typer.Option(
            "--lottery",
            help="Find the best lottery over rankings, with the same odds for everybody, for a concave "
            "utility or maximin.",
        ),
    ] = False,
    least_exposure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ITEM=]LEVEL",
            help="With --lottery: least share of users who look at an item, for all items or for one. "
            "May be given several times.",
        ),
    ] = None,
    keep_share: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TYPE=]SHARE",
            help="With --lottery: least value of a user type as a share of its personalized value, for all "
            "types or for one. May be given several times.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --lottery: write a plot of the lottery to a .png, .svg or .pdf file.",
        ),
    ] = None,
    plot_size: PlotSizeOption = None,
    plot_style: PlotStyleOption = None,
    plot_title: PlotTitleOption = None,
    plot_dpi: PlotDpiOption = None,
    json_file: JsonOption = None,
) -> None:
    """Find the best ranking for all user types together, or the best lottery over rankings.

    Prints the ranking with its value, an upper bound and the gap between them, its value to each user type
    beside that of personalized treatment, and the price of equality. With --lottery it prints how often each
    ranking is shown, and the price of each guarantee that binds.
    """
    from banditrank.model._catalog import load_problem
    from banditrank.solvers._equality import equality_report
    from banditrank.solvers._solve import solve
    from banditrank.utilities._utility import as_utility

    check_output_files(json_file, plot, inputs=[problem])
    plot_options = check_plot_options(plot, size=plot_size, style=plot_style, title=plot_title, dpi=plot_dpi)
    if not lottery:
        given = {"--least-exposure": least_exposure, "--keep-share": keep_share, "--plot": plot}
        for option, value in given.items():
            if value:
                raise InvalidInputError(option, "must be given together with --lottery", value)
    found = load_problem(problem)
    collective_utility = as_utility(utility)
    if lottery:
        if solver != "auto":
            raise InvalidInputError("--solver", "must be auto with --lottery", solver)
        _solve_lottery(
            found,
            collective_utility,
            _guarantees(least_exposure or [], keep_share or []),
            target_gap,
            plot,
            plot_options,
            json_file,
            time_limit,
        )
        return
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


def _guarantees(least_exposure: list[str], keep_share: list[str]) -> "list[Guarantee]":
    """Return the guarantees that options name: ``0.02`` for all, ``ad-3=0.1`` for one."""
    from banditrank.solvers._lottery.guarantees import KeptShare, LeastExposure

    found: list[Guarantee] = []
    for text in least_exposure:
        name, level = _named_number("--least-exposure", text)
        found.append(LeastExposure(level, items=None if name is None else [name]))
    for text in keep_share:
        name, share = _named_number("--keep-share", text)
        found.append(KeptShare(share, user_types=None if name is None else [name]))
    return found


def _named_number(option: str, text: str) -> tuple[str | None, float]:
    name, separator, number = text.rpartition("=")
    try:
        return (name if separator else None), float(number)
    except ValueError:
        raise InvalidInputError(option, "must be a number, or a name and a number: NAME=0.1", text) from None


def _solve_lottery(
    problem: "Problem",
    utility: "Utility",
    guarantees: "list[Guarantee]",
    target_gap: float,
    plot: Path | None,
    plot_options: dict[str, Any],
    json_file: str | None,
    time_limit: float | None,
) -> None:
    """Solve the lottery and the fixed ranking; print, write and plot both."""
    from banditrank.solvers._equality import equality_report
    from banditrank.solvers._lottery.plot import save_lottery_plot
    from banditrank.solvers._lottery.solve import solve_lottery
    from banditrank.solvers._solve import solve

    with announce_compilation(), show_search_progress() as search:
        lottery = solve_lottery(problem, utility, guarantees=guarantees, target_gap=target_gap)
        fixed = solve(problem, utility, target_gap=target_gap, time_limit=time_limit, on_progress=search)
    report = equality_report(problem, fixed.ranking)
    if json_file is not None:
        heading = {"problem": problem.name, "utility": str(utility), "version": __version__}
        write_json({**heading, **lottery_fields(lottery, fixed, report)}, json_file)
    if plot is not None:
        save_lottery_plot(problem, lottery, fixed, plot, **plot_options)
    if json_file != "-":
        _print_lottery(problem, utility, lottery, fixed, report)
    exit_if_interrupted(search)


def lottery_fields(lottery: "Lottery", fixed: "Solution", report: "EqualityReport") -> dict[str, Any]:
    """Return a lottery, and the best fixed ranking, as values for JSON, with None for infinite numbers."""
    return {
        "treatment": lottery.treatment,
        "rankings": [
            {"probability": float(probability), "ranking": [lottery.items[item] for item in ranking]}
            for probability, ranking in zip(lottery.probabilities, lottery.rankings, strict=True)
        ],
        "value": finite_or_none(lottery.value),
        "upper_bound": finite_or_none(lottery.upper_bound),
        "gap": finite_or_none(lottery.gap),
        "is_certified": bool(lottery.is_certified),
        "unguaranteed_value": finite_or_none(lottery.unguaranteed_value),
        "assignments": lottery.assignments,
        "seconds": lottery.seconds,
        "user_type_values": lottery.user_type_values.tolist(),
        "personalized_values": report.personalized_values.tolist(),
        "price_of_equality": _lottery_report(lottery, report).price_of_equality,
        "exposures": dict(zip(lottery.items, lottery.exposures.tolist(), strict=True)),
        "guarantees": [asdict(guarantee) for guarantee in lottery.guarantees],
        "fixed": {
            "ranking": list(fixed.items),
            "value": finite_or_none(fixed.value),
            "gap": finite_or_none(fixed.gap),
            "is_certified": bool(fixed.is_certified),
            "user_type_values": report.user_type_values.tolist(),
        },
    }


def _lottery_report(lottery: "Lottery", report: "EqualityReport") -> "EqualityReport":
    """Return the values of a lottery compared with personalized treatment, as those of a ranking are."""
    return replace(report, user_type_values=lottery.user_type_values)


def _print_lottery(
    problem: "Problem", utility: "Utility", lottery: "Lottery", fixed: "Solution", report: "EqualityReport"
) -> None:
    from rich.table import Table

    rankings = make_table()
    rankings.add_column("probability", justify="right", no_wrap=True)
    rankings.add_column("ranking", overflow="fold")
    for probability, ranking in zip(lottery.probabilities, lottery.rankings, strict=True):
        rankings.add_row(f"{probability:.2%}", ", ".join(problem.items[item] for item in ranking))
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_row("value", format_number(lottery.value))
    facts.add_row("upper bound", format_number(lottery.upper_bound))
    proof = "certified" if lottery.is_certified else "not certified"
    facts.add_row("gap", f"{format_number(lottery.gap)}, {proof}")
    if lottery.guarantees:
        facts.add_row("without guarantees", format_number(lottery.unguaranteed_value))
    gap = "" if fixed.is_certified else f", gap {format_number(fixed.gap)}"
    unbound = ", without guarantees" if lottery.guarantees else ""
    facts.add_row(
        f"best fixed ranking{unbound}", f"{format_number(fixed.value)}{gap}: {', '.join(fixed.items)}"
    )
    facts.add_row("assignments", f"{lottery.assignments:,}, seconds {lottery.seconds:.3f}")
    console = make_console()
    console.print(f"{problem.name}: best lottery for all user types, {utility}, banditrank {__version__}")
    console.print(rankings)
    console.print(facts)
    console.print(_lottery_types_table(problem, lottery, report))
    if binding := [guarantee for guarantee in lottery.guarantees if guarantee.is_binding]:
        prices = make_table()
        prices.add_column("guarantee", overflow="fold")
        for heading in ("least", "price"):
            prices.add_column(heading, justify="right", no_wrap=True)
        for guarantee in binding:
            price = "unknown" if guarantee.price is None else format_number(guarantee.price)
            prices.add_row(guarantee.name, f"{guarantee.level:.4f}", price)
        console.print(prices)
        console.print("price: loss of value for each unit of the guarantee", style="dim")
    for heading, found in (
        ("kept and not binding", [one for one in lottery.guarantees if one.is_kept and not one.is_binding]),
        ("not kept", [one for one in lottery.guarantees if not one.is_kept]),
    ):
        if found:
            console.print(f"{heading}: {list_names([guarantee.name for guarantee in found])}")
    console.print(f"price of equality {_lottery_report(lottery, report).price_of_equality:.2%}")
    console.print("lottery, fixed, personalized: expected clicks per visit", style="dim")
    if lottery.value == float("-inf"):
        console.print("the lottery is arbitrary: its value is −∞, so all lotteries are equally good")


def _lottery_types_table(problem: "Problem", lottery: "Lottery", report: "EqualityReport") -> "Table":
    table = make_table()
    table.add_column("user type", overflow="fold")
    for heading in ("arrival rate", "lottery", "fixed", "personalized"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = zip(
        problem.user_types,
        report.arrival_rates,
        lottery.user_type_values,
        report.user_type_values,
        report.personalized_values,
        strict=True,
    )
    for name, *numbers in rows:
        table.add_row(name, f"{numbers[0]:.3f}", *(f"{number:.4f}" for number in numbers[1:]))
    table.add_section()
    totals = (_lottery_report(lottery, report).total, report.total, report.personalized_total)
    table.add_row("all", "1.000", *(f"{total:.4f}" for total in totals))
    return table


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
    console.print("equal, personalized: clicks per visit; lost: share of the personalized ones", style="dim")
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
