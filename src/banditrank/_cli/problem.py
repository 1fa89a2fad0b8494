"""``banditrank problem``: show, validate and generate problems."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banditrank._cli.command import OptionErrorCommand, examples
from banditrank._cli.output import check_output_files, make_console, make_table

if TYPE_CHECKING:
    from banditrank.model._problem import Problem

problem_commands = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
)


@problem_commands.callback()
def _help(context: typer.Context) -> None:
    """Show, validate or generate ranking problems."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


ProblemArgument = Annotated[
    str,
    typer.Argument(metavar="PROBLEM", help="Built-in problem (kdd2012), carousel:DIRECTORY, or TOML file."),
]


@problem_commands.command(
    "show",
    cls=OptionErrorCommand,
    epilog=examples("banditrank problem show kdd2012", "banditrank problem show kdd2012 --toml > mine.toml"),
)
def show_command(
    problem: ProblemArgument,
    toml: Annotated[bool, typer.Option("--toml", help="Print the problem as TOML instead.")] = False,
) -> None:
    """Print a problem and its best personalized rankings.

    A problem consists of the arrival rates and position preferences of the user types, and their item means:
    click probabilities of examined items.
    """
    from banditrank.model._catalog import load_problem
    from banditrank.model._problem_file import problem_to_toml

    found = load_problem(problem)
    if toml:
        sys.stdout.write(problem_to_toml(found))
    else:
        _print_problem(found)


@problem_commands.command(
    "validate", cls=OptionErrorCommand, epilog=examples("banditrank problem validate mine.toml")
)
def validate_command(problem: ProblemArgument) -> None:
    """Check a problem file and print its size, or the first error."""
    from banditrank.model._catalog import load_problem

    found = load_problem(problem)
    typer.echo(f"{found.name}: {_size(found)}, valid")


@problem_commands.command(
    "generate",
    cls=OptionErrorCommand,
    epilog=examples("banditrank problem generate conflict --items 50 --positions 5 -o conflict.toml"),
)
def generate_command(
    family: Annotated[
        str,
        typer.Argument(
            metavar="FAMILY",
            help="synthetic, random, conflict, ties, conflict-ties, common, common-log or long-tail.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="TOML file to write.", show_default="standard output"
        ),
    ] = None,
    user_types: Annotated[int, typer.Option("--user-types", help="Number of user types, N.")] = 3,
    items: Annotated[int, typer.Option("--items", help="Number of items, M.")] = 20,
    positions: Annotated[int, typer.Option("--positions", help="Number of positions, K, at most M.")] = 4,
    seed: Annotated[
        int, typer.Option("--seed", help="Random seed; the same seed gives the same problem.")
    ] = 0,
) -> None:
    """Generate a random problem of a family."""
    from banditrank.errors import UnknownNameError
    from banditrank.model._generators import FAMILIES, make_problem
    from banditrank.model._problem_file import problem_to_toml, write_problem

    check_output_files(None, output=output)
    if family not in FAMILIES:  # a carousel, which is read and not generated
        raise UnknownNameError("family", family, FAMILIES)
    problem = make_problem(family, n_user_types=user_types, n_items=items, n_positions=positions, seed=seed)
    if output is None:
        sys.stdout.write(problem_to_toml(problem))
    else:
        write_problem(problem, output)
        typer.echo(f"{output}: {_size(problem)}")


def _size(problem: "Problem") -> str:
    counts = (
        (problem.n_user_types, "user type"),
        (problem.n_items, "item"),
        (problem.n_positions, "position"),
    )
    return ", ".join(f"{count} {noun}{'s' if count > 1 else ''}" for count, noun in counts)


def _print_problem(problem: "Problem") -> None:
    from banditrank.model._values import best_personalized_rankings, best_personalized_values

    console = make_console()
    console.print(f"{problem.name}: {_size(problem)}")
    positions = make_table("Arrival rates and position preferences")
    positions.add_column("", no_wrap=True)
    means = make_table("Item means: click probabilities when examined")
    means.add_column("item", no_wrap=True)
    for table in (positions, means):
        for name in problem.user_types:
            table.add_column(name, justify="right", overflow="fold", min_width=5)
    positions.add_row("arrival rate", *(f"{value:.3f}" for value in problem.arrival_rates), end_section=True)
    for k, row in enumerate(problem.position_preferences.T, start=1):
        positions.add_row(f"position {k}", *(f"{value:.3f}" for value in row))
    for j, name in enumerate(problem.items):
        means.add_row(name, *(f"{value:.3f}" for value in problem.item_means[:, j]))
    best = make_table("Best personalized rankings")
    best.add_column("user type", overflow="fold")
    best.add_column("clicks per visit", justify="right", no_wrap=True)
    best.add_column("items, first position first", overflow="fold")
    values = problem.click_scale * best_personalized_values(problem)
    for i, ranking in enumerate(best_personalized_rankings(problem)):
        names = ", ".join(problem.items[item] for item in ranking)
        best.add_row(problem.user_types[i], f"{values[i]:.3f}", names)
    for table in (positions, means, best):
        console.print(table)
