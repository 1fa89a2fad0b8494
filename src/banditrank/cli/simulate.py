"""``banditrank simulate``: let policies learn a problem, and compare them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from banditrank.cli.command import split_names
from banditrank.cli.output import (
    AddressOption,
    BackendOption,
    JsonOption,
    WorkersOption,
    check_targets,
    make_console,
    told_of_long_compiling,
    write_json,
)
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank.model.problem import Problem
    from banditrank.model.rewards import Rewards
    from banditrank.model.timeline import Timeline
    from banditrank.policies.base import CompiledPolicy
    from banditrank.simulation.backends.catalog import BackendName
    from banditrank.simulation.result import SimulationResult


def simulate_command(
    problem: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM", help="A built-in name (kdd2012) or a TOML file.", show_default="kdd2012"
        ),
    ] = "kdd2012",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="auto, thompson-rank, greedy-rank, ucb-rank, type-blind-ucb, random, oracle; or one of the "
            "field's, such as top-rank (docs/policies.md lists them); give several to compare them. Left "
            "out: auto, and the paper's four policies and its baseline to compare it with."
        ),
    ] = None,
    treatment: Annotated[
        list[str] | None,
        typer.Option(
            help="personalized or equal; give both to compare them.",
            show_default="personalized; without --policy, both",
        ),
    ] = None,
    utility: Annotated[
        str,
        typer.Option(
            help="What equal treatment maximises: utilitarian, nash, alpha:2 (0 to 1000), maximin, "
            "sigmoid:STEEPNESS:MIDPOINT or ramp:BEGIN:END."
        ),
    ] = "utilitarian",
    coefficient: Annotated[
        float | None,
        typer.Option(
            help="c of ε_t = min(1, c/√t) or a_t = c.",
            show_default="the paper's: 0.25 personalized, 0.5 equal",
        ),
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            help="How equal treatment is solved: auto, assignment, branch-and-bound, spatial, enumeration "
            "or sampling."
        ),
    ] = "auto",
    estimator: Annotated[
        str, typer.Option(help="What greedy-rank and ucb-rank estimate by: paper or likelihood.")
    ] = "paper",
    smoothed: Annotated[
        bool,
        typer.Option("--smoothed", help="Start them with pseudo-counts instead of an initial phase."),
    ] = False,
    rewards: Annotated[
        str, typer.Option(help="bernoulli, or beta:CONCENTRATION:SCALE for graded rewards.")
    ] = "bernoulli",
    click_model: Annotated[
        str,
        typer.Option(
            help="How users look and click: single-look, position-based, cascade or "
            "dependent-click:SATISFACTION."
        ),
    ] = "single-look",
    changes: Annotated[
        str | None,
        typer.Option(
            help="How the world changes: item-jumps:TIMES, position-jumps:TIMES, item-drift:TIMES, "
            "position-drift:TIMES or turnover:TIMES.",
            show_default="it does not",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="What of the past policies learn from: window:ROUNDS or discount:ROUNDS.",
            show_default="all of it",
        ),
    ] = None,
    delay: Annotated[int, typer.Option(help="Rounds after which a policy learns what it earned.")] = 0,
    horizon: Annotated[int, typer.Option(help="Rounds in a replication.")] = 300_000,
    replications: Annotated[int, typer.Option(help="How many times to learn from nothing.")] = 20,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result, whatever the workers.")] = 0,
    workers: WorkersOption = None,
    backend: BackendOption = "joblib",
    address: AddressOption = None,
    json_file: JsonOption = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the regret to a .png, .svg or .pdf file.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep results here, a directory a policy; the same command goes on from there.",
        ),
    ] = None,
) -> None:
    """Simulate policies on a problem and print their regrets."""
    from banditrank.model.catalog import load_problem
    from banditrank.model.changes import make_timeline
    from banditrank.model.click_models import as_click_model
    from banditrank.model.rewards import as_rewards
    from banditrank.policies.catalog import non_default_options
    from banditrank.simulation.backends.catalog import make_backend
    from banditrank.simulation.plots import save_plot

    check_targets(json_file, plot, inputs=[problem])
    start = load_problem(problem)
    world = start if changes is None else make_timeline(start, changes, horizon, seed)
    reward_family, model = as_rewards(rewards), as_click_model(click_model)
    line_up = _line_up(
        world,
        policy,
        treatment,
        non_default_options(coefficient=coefficient, solver=solver, estimator=estimator, smoothed=smoothed),
        utility=utility,
        rewards=reward_family,
        click_model=model,
        horizon=horizon,
        memory=memory,
    )
    with make_backend(cast("BackendName", backend), workers=workers, address=address) as place:
        results = _simulate_all(
            line_up,
            save,
            problem=world,
            horizon=horizon,
            replications=replications,
            seed=seed,
            rewards=reward_family,
            click_model=model,
            delay=delay,
            backend=place,
        )
    if results and json_file is not None:
        write_json(_document(results, replications, changes), json_file)
    if results and json_file != "-":
        _print_table(results, changes)
    if results and plot is not None:
        save_plot(results, plot, changes)
    finished, wanted = sum(len(result.replications) for result in results), replications * len(line_up)
    if finished < wanted:
        typer.echo(f"banditrank: interrupted after {finished} of {wanted} replications", err=True)
        raise typer.Exit(130)


def _line_up(
    problem: "Problem | Timeline",
    policies: Sequence[str] | None,
    treatments: Sequence[str] | None,
    options: dict[str, Any],
    *,
    rewards: "Rewards",
    **settings: Any,
) -> "list[CompiledPolicy]":
    """Return each policy under each treatment, told of the options those that it has a use for.

    Without a policy, those that are shown by default and have a use for all options.
    """
    from banditrank.policies.base import check_treatment
    from banditrank.policies.catalog import DEFAULT_POLICIES, accepts_option, make_policy
    from banditrank.simulation.simulate import check_simulation

    wanted = [check_treatment(name) for name in split_names(treatments)]
    if policies:
        pairs = [
            (name, treatment) for treatment in wanted or ["personalized"] for name in split_names(policies)
        ]
    else:
        shown = [pair for pair in DEFAULT_POLICIES if not wanted or pair[1] in wanted]
        pairs = [pair for pair in shown if all(accepts_option(option, *pair) for option in options)] or shown
    line_up = []
    for pair in dict.fromkeys(pairs):
        told = {option: value for option, value in options.items() if accepts_option(option, *pair)}
        name, treatment = pair
        line_up.append(make_policy(name, problem, treatment=treatment, rewards=rewards, **told, **settings))
    for option, value in options.items():
        if not any(accepts_option(option, *pair) for pair in pairs):
            raise InvalidInputError(option, "must be left out: no policy here has a use for it", value)
    for policy in line_up:
        check_simulation(policy, problem, rewards, settings["click_model"])
    return line_up


def _simulate_all(
    line_up: "list[CompiledPolicy]", directory: Path | None, **settings: Any
) -> "list[SimulationResult]":
    """Simulate one policy after the other; Ctrl-C keeps what is finished."""
    from banditrank.policies.base import policy_label
    from banditrank.simulation.simulate import simulate

    results: list[SimulationResult] = []
    for policy in line_up:
        save_to = None if directory is None else directory / policy_label(policy.describe())
        try:
            with told_of_long_compiling("simulation", f"loop of {policy.name}, {policy.treatment}"):
                results.append(simulate(policy, save_to=save_to, **settings))
        except KeyboardInterrupt:  # before the first replication of this policy was finished
            break
        if not results[-1].is_complete:
            break
    return results


def _document(results: "list[SimulationResult]", replications: int, changes: str | None) -> dict[str, Any]:
    first = results[0]
    return {
        "problem": first.problem.name,
        "seed": first.seed,
        "horizon": first.horizon,
        "replications": replications,
        "rewards": first.rewards,
        "click_model": first.click_model,
        "changes": changes,
        "delay": first.delay,
        "version": first.version,
        "runs": [result.to_dict() for result in results],
    }


def _print_table(results: "list[SimulationResult]", changes: str | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    first = results[0]
    rounds = f"{first.horizon:,} rounds, seed {first.seed}, banditrank {first.version}"
    caption = f"{first.problem_summary(changes)}, {rounds}"
    table = Table(title=f"Regret: {caption}", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("policy", overflow="fold")
    for heading in ("median", "10%", "90%", "mean", "max", "optimal", "initial", "M/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        final = result.final_regret
        table.add_row(
            result.label + ("" if result.is_complete else f" ({len(result.replications)} replications)"),
            f"{result.median[-1]:,.0f}",
            f"{result.quantile(0.1)[-1]:,.0f}",
            f"{result.quantile(0.9)[-1]:,.0f}",
            f"{final.mean():,.0f}",
            f"{final.max():,.0f}",
            f"{result.optimal_rate[:, -1].mean():.1%}",
            f"{result.initial_rounds.mean():,.0f}",
            f"{result.rounds_per_second / 1e6:.1f}",
        )
    console = make_console()
    console.print(table)
    notes = "optimal: share of rounds with a best ranking; initial: rounds of the initial phase"
    console.print(f"{notes}; M/s: million rounds a second", style="dim")
    if len({result.policy["treatment"] for result in results}) > 1:
        console.print("personalized and equal regret are measured against optima of their own", style="dim")
    for note in dict.fromkeys(note for result in results for note in result.violations):
        console.print(note)
    for result in results:
        stuck = int((result.initial_rounds >= result.horizon).sum())
        if stuck:
            count = f"{stuck} of {len(result.replications)} replications"
            console.print(f"{result.label}: {count} learned nothing: their initial phase did not end")
