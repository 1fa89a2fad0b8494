"""``banditrank simulate``: simulate policies and compare their regret."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from banditrank._cli.command import split_names
from banditrank._cli.output import (
    AddressOption,
    BackendOption,
    JsonOption,
    SeedOption,
    UtilityOption,
    WorkersOption,
    announce_compilation,
    check_output_files,
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
from banditrank._import_path import add_current_directory, is_import_path
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank.model._click_models import ClickModel
    from banditrank.model._contextual_problem import ContextualProblem
    from banditrank.model._problem import Problem
    from banditrank.model._rewards import Rewards
    from banditrank.model._timeline import Timeline
    from banditrank.policies._base import Policy, Treatment
    from banditrank.simulation._backends.base import Backend
    from banditrank.simulation._backends.catalog import BackendName
    from banditrank.simulation._result import SimulationResult
    from banditrank.simulation._simulate import AnyPolicy


def simulate_command(
    problem: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM",
            help="Built-in problem (kdd2012; linear-context or logistic-context with features), "
            "carousel:DIRECTORY of a carousel's files, or TOML file.",
            show_default="kdd2012",
        ),
    ] = "kdd2012",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="auto, thompson-rank, greedy-rank, ucb-rank, type-blind-ucb, type-blind-thompson-rank, "
            "random, oracle; a baseline such as top-rank (see docs/reference/policies.md), or one with the "
            "prefix type-blind-; or MODULE:CLASS of a custom policy in the current directory. Repeat or "
            "separate with commas to compare several.",
            show_default="auto, and the paper's four policies and its baseline",
        ),
    ] = None,
    treatment: Annotated[
        list[str] | None,
        typer.Option(
            help="personalized, equal or equal-lottery; repeat or separate with commas for several.",
            show_default="personalized; without --policy, personalized and equal",
        ),
    ] = None,
    utility: UtilityOption = "utilitarian",
    coefficient: Annotated[
        float | None,
        typer.Option(
            help="Exploration coefficient c of the paper's policies: ε_t = min(1, c/√t) or a_t = c.",
            show_default="0.25 personalized, 0.5 otherwise, as in the paper",
        ),
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            help="Solver of equal treatment: auto, assignment, branch-and-bound, spatial, enumeration "
            "or sampling."
        ),
    ] = "auto",
    estimator: Annotated[
        str, typer.Option(help="Estimator of greedy-rank and ucb-rank: paper (Algorithm 1) or likelihood.")
    ] = "paper",
    smoothed: Annotated[
        bool,
        typer.Option(
            "--smoothed",
            help="Start greedy-rank and ucb-rank with pseudo-counts instead of an initial phase.",
        ),
    ] = False,
    rewards: Annotated[
        str,
        typer.Option(help="Rewards: bernoulli, or beta:CONCENTRATION:SCALE for graded rewards."),
    ] = "bernoulli",
    click_model: Annotated[
        str,
        typer.Option(
            help="Click model: single-look, position-based, cascade or dependent-click:SATISFACTION."
        ),
    ] = "single-look",
    changes: Annotated[
        str | None,
        typer.Option(
            help="Changes of the problem over time: item-jumps:TIMES, position-jumps:TIMES, "
            "item-drift:TIMES, position-drift:TIMES or turnover:TIMES.",
            show_default="none",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Past rounds that policies learn from: window:ROUNDS or discount:ROUNDS.",
            show_default="all",
        ),
    ] = None,
    delay: Annotated[int, typer.Option(help="Number of rounds after which a reward is observed.")] = 0,
    limit: Annotated[
        float | None,
        typer.Option(
            metavar="GAP",
            help="Print the slope of regret per ln t, and the least one that is possible in the long run "
            "(Graves–Lai), with differences of means below GAP ignored.",
            show_default="not printed",
        ),
    ] = None,
    horizon: Annotated[int, typer.Option(help="Number of rounds in a replication.")] = 300_000,
    replications: Annotated[int, typer.Option(help="Number of independent replications.")] = 20,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    backend: BackendOption = "joblib",
    address: AddressOption = None,
    json_file: JsonOption = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a plot of regret to a .png, .svg or .pdf file.")
    ] = None,
    plot_band: Annotated[
        str | None,
        typer.Option(
            metavar="BAND",
            help="Spread in the plot: replications (each one, and the median), quantiles (10% to 90%, and "
            "the median) or confidence (95% confidence band of the mean).",
            show_default="replications",
        ),
    ] = None,
    plot_x_scale: Annotated[
        str | None,
        typer.Option(metavar="SCALE", help="Scale of rounds: log or linear.", show_default="log"),
    ] = None,
    plot_y_scale: Annotated[
        str | None,
        typer.Option(metavar="SCALE", help="Scale of regret: log or linear.", show_default="log"),
    ] = None,
    plot_size: PlotSizeOption = None,
    plot_style: PlotStyleOption = None,
    plot_title: PlotTitleOption = None,
    plot_dpi: PlotDpiOption = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Save results to DIR/POLICY/; rerun the same command to resume.",
        ),
    ] = None,
) -> None:
    """Simulate policies and compare their regret.

    Each replication learns from scratch. Prints the median, quantiles, mean and maximum of regret at the
    horizon, the share of replications whose regret is steep over the last half of rounds, the rate of
    optimal rankings and the duration of the initial phase.
    """
    from banditrank.model._catalog import load_any_problem
    from banditrank.model._changes import make_timeline
    from banditrank.model._click_models import as_click_model
    from banditrank.model._contextual_problem import ContextualProblem
    from banditrank.model._rewards import as_rewards
    from banditrank.policies._catalog import non_default_options
    from banditrank.simulation._backends.catalog import make_backend
    from banditrank.simulation._component_identities import own_parameters
    from banditrank.simulation._labels import policy_labels
    from banditrank.simulation._plots import save_plot

    check_output_files(json_file, plot, inputs=[problem])
    plot_options = check_plot_options(
        plot,
        band=plot_band,
        x_scale=plot_x_scale,
        y_scale=plot_y_scale,
        size=plot_size,
        style=plot_style,
        title=plot_title,
        dpi=plot_dpi,
    )
    start = load_any_problem(problem)
    reward_family, model = as_rewards(rewards), as_click_model(click_model)
    options = non_default_options(
        coefficient=coefficient, solver=solver, estimator=estimator, smoothed=smoothed
    )
    simulated: Problem | Timeline | ContextualProblem = start
    least_slope: float | None = None
    compared: list[AnyPolicy]
    if isinstance(start, ContextualProblem):
        given = None if utility == "utilitarian" else utility
        options |= {"utility": given, "changes": changes, "memory": memory, "limit": limit}
        _check_contextual_options(options, treatment)
        compared = _make_contextual_policies(start, policy, rewards=reward_family, click_model=model)
    else:
        simulated = start if changes is None else make_timeline(start, changes, horizon, seed)
        least_slope = None if limit is None else _least_slope(simulated, reward_family, model, limit)
        compared = [
            *_make_policies(
                simulated,
                policy,
                treatment,
                options,
                utility=utility,
                rewards=reward_family,
                click_model=model,
                horizon=horizon,
                memory=memory,
            )
        ]
    labels = policy_labels(compared, [own_parameters(policy) for policy in compared])
    made = make_backend(cast("BackendName", backend), workers=workers, address=address)
    with redirect_stdout(sys.stderr), made as opened:  # Ray and custom policies may print
        results = _simulate_all(
            compared,
            labels,
            save,
            problem=simulated,
            horizon=horizon,
            replications=replications,
            seed=seed,
            rewards=reward_family,
            click_model=model,
            delay=delay,
            backend=opened,
            workers=workers,
        )
    if results and json_file is not None:
        write_json(_document(results, labels, replications, changes, limit, least_slope), json_file)
    if results and json_file != "-":
        _print_table(results, labels, changes)
    if results and least_slope is not None and json_file != "-":
        _print_slopes(results, labels, limit, least_slope)
    if results and plot is not None:
        save_plot(results, plot, changes, **plot_options)
    finished, requested = (
        sum(len(result.replications) for result in results),
        replications * len(compared),
    )
    if finished < requested:
        typer.echo(f"banditrank: interrupted after {finished} of {requested} replications", err=True)
        raise typer.Exit(130)


def _check_contextual_options(options: dict[str, Any], treatments: Sequence[str] | None) -> None:
    """Refuse options that do not apply to contextual problems."""
    for option, value in options.items():
        if value is not None:
            raise InvalidInputError(option, "must be left out for a contextual problem", value)
    for name in split_names(treatments):
        if name != "personalized":
            raise InvalidInputError("treatment", "must be personalized for a contextual problem", name)


def _make_contextual_policies(
    problem: "ContextualProblem", policies: Sequence[str] | None, **settings: Any
) -> "list[AnyPolicy]":
    """Return the policies for a contextual problem; by default all that use features, and two others."""
    from banditrank.policies._contextual.catalog import make_contextual_policy

    names = split_names(policies) or ["auto", "lin-ucb", "lin-ts", "thompson-rank-8-clusters", "random"]
    return [make_contextual_policy(name, problem, **settings) for name in dict.fromkeys(names)]


def _make_policies(
    problem: "Problem | Timeline",
    policies: Sequence[str] | None,
    treatments: Sequence[str] | None,
    options: dict[str, Any],
    *,
    rewards: "Rewards",
    **settings: Any,
) -> "list[Policy]":
    """Return each policy under each treatment, with the options that it accepts.

    Without a policy, return the default policies that accept all options.
    """
    from banditrank.policies._base import check_treatment, check_utility, is_equal
    from banditrank.policies._catalog import DEFAULT_POLICIES, LOTTERY_POLICIES, accepts_option
    from banditrank.simulation._simulate import check_simulation
    from banditrank.utilities._utility import UTILITARIAN

    chosen = [check_treatment(name) for name in split_names(treatments)]
    if policies:
        pairs = [
            (name, treatment) for treatment in chosen or ["personalized"] for name in split_names(policies)
        ]
    else:
        known = (*DEFAULT_POLICIES, *LOTTERY_POLICIES)
        default = [pair for pair in known if pair[1] in (chosen or ("personalized", "equal"))]
        pairs = [
            pair for pair in default if all(accepts_option(option, *pair) for option in options)
        ] or default
    if not any(is_equal(treatment) for _, treatment in pairs):
        check_utility(settings["utility"], "personalized")  # none of the policies would use it
    made = []
    for pair in dict.fromkeys(pairs):
        accepted = {option: value for option, value in options.items() if accepts_option(option, *pair)}
        name, treatment = pair
        own = settings if is_equal(treatment) else {**settings, "utility": UTILITARIAN}
        made.append(_make_policy(name, problem, treatment, rewards=rewards, **accepted, **own))
    for option, value in options.items():
        if not any(accepts_option(option, *pair) for pair in pairs):
            raise InvalidInputError(option, "must be left out: none of the policies accepts it", value)
    for policy in made:
        check_simulation(policy, problem, rewards, settings["click_model"])
    return made


def _make_policy(
    name: str, problem: "Problem | Timeline", treatment: "Treatment", **settings: Any
) -> "Policy":
    """Return a built-in policy by name, or a custom one by import path."""
    from banditrank.policies._base import CompiledPolicy
    from banditrank.policies._catalog import make_policy
    from banditrank.policies._custom import CustomPolicy
    from banditrank.policies._forgetful import Forgetful
    from banditrank.utilities._utility import as_utility

    if not is_import_path(name):
        return make_policy(name, problem, treatment=treatment, **settings)
    add_current_directory()
    policy = CustomPolicy.from_import_path(name).make_policy(
        treatment=treatment, utility=as_utility(settings["utility"]), horizon=settings["horizon"]
    )
    if policy.treatment != treatment:
        rule = f"must be one that {name} has, {policy.treatment}"
        raise InvalidInputError("treatment", rule, treatment)
    if settings["memory"] is None:
        return policy
    if not isinstance(policy, CompiledPolicy):
        raise InvalidInputError("memory", f"must be left out: {name} is not compiled", settings["memory"])
    return Forgetful(policy, settings["memory"])


def _simulate_all(
    policies: "list[AnyPolicy]",
    labels: Sequence[str],
    directory: Path | None,
    *,
    backend: "Backend",
    workers: int | None,
    **settings: Any,
) -> "list[SimulationResult]":
    """Simulate one policy after the other; Ctrl-C returns the finished replications."""
    from banditrank.simulation._compilation_ahead import compile_ahead
    from banditrank.simulation._simulate import make_experiment, simulate

    results: list[SimulationResult] = []
    with compile_ahead(lambda: [make_experiment(policy, **settings) for policy in policies], workers):
        for policy, label in zip(policies, labels, strict=True):
            save_to = None if directory is None else directory / label
            try:
                with announce_compilation("policies", f"simulation of {policy.name}, {policy.treatment}"):
                    results.append(simulate(policy, save_to=save_to, backend=backend, **settings))
            except KeyboardInterrupt:  # before the first replication of this policy
                break
            if not results[-1].is_complete:
                break
            if policy is not policies[-1]:
                _show_finished(results[-1], label)
    return results


def _show_finished(result: "SimulationResult", label: str) -> None:
    """Print the regret of a policy on a terminal, because others may have to be compiled before the table."""
    if sys.stderr.isatty():
        regret = f"{result.median[-1]:,.0f}"
        typer.echo(f"banditrank: {label} is finished: median regret {regret}", err=True)


def _least_slope(
    problem: "Problem | Timeline", rewards: "Rewards", click_model: "ClickModel", min_gap: float
) -> float:
    """Return the Graves–Lai constant of a problem."""
    from banditrank.model._problem import Problem
    from banditrank.simulation._graves_lai import graves_lai_constant

    if not isinstance(problem, Problem):
        raise InvalidInputError("limit", "must be left out for problems that change", min_gap)
    if rewards.concentration > 0:
        raise InvalidInputError("limit", "must be left out for graded rewards", min_gap)
    return float(graves_lai_constant(problem, click_model=click_model, min_gap=min_gap).sum())


def _print_slopes(
    results: "list[SimulationResult]", labels: Sequence[str], min_gap: float | None, least_slope: float
) -> None:
    table = make_table("Slope of regret per ln t over the last tenfold of rounds")
    table.add_column("policy", overflow="fold")
    for heading in ("slope", "95% interval", "× the limit"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result, label in zip(results, labels, strict=False):
        mean, low, high = result.log_slope()
        is_personalized = result.policy["treatment"] == "personalized"
        ratio = f"{mean / least_slope:,.2f}" if is_personalized and least_slope > 0 else "–"
        table.add_row(label, f"{mean:,.1f}", f"{low:,.1f} to {high:,.1f}", ratio)
    console = make_console()
    console.print(table)
    console.print(
        f"limit: {least_slope:,.1f}, the least slope of consistent policies in the long run under "
        f"personalized treatment (Graves–Lai constant; differences below {min_gap:g} are ignored)",
        style="dim",
    )


def _document(
    results: "list[SimulationResult]",
    labels: Sequence[str],
    replications: int,
    changes: str | None,
    min_gap: float | None,
    least_slope: float | None,
) -> dict[str, Any]:
    first = results[0]
    names = ("mean", "low", "high")
    slopes = None
    if least_slope is not None:
        slopes = {
            "least": least_slope,
            "min_gap": min_gap,
            "runs": [dict(zip(names, result.log_slope(), strict=True)) for result in results],
        }
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
        **({} if slopes is None else {"slopes": slopes}),
        "runs": [
            {"label": label, **result.to_dict()} for label, result in zip(labels, results, strict=False)
        ],
    }


def _steep_shares(results: "list[SimulationResult]") -> list[str] | None:
    """Return the share of steep replications of each result; None if all are unknown."""
    with announce_compilation("policies", "search for the least slope of regret"):
        shares = [result.steep_share for result in results]
    if all(share is None for share in shares):
        return None
    return ["–" if share is None else f"{share:.1%}" for share in shares]


def _print_table(results: "list[SimulationResult]", labels: Sequence[str], changes: str | None) -> None:
    from banditrank.simulation._steep_runs import STEEP_FACTOR

    first = results[0]
    rounds = f"{first.horizon:,} rounds, seed {first.seed}, banditrank {first.version}"
    caption = f"{first.problem_summary(changes)}, {rounds}"
    table = make_table(f"Regret: {caption}")
    table.add_column("policy", overflow="fold")
    steep_shares = _steep_shares(results)
    steep = [] if steep_shares is None else ["steep"]
    for heading in ("median", "10%", "90%", "mean", "max", *steep, "optimal", "initial", "M/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row, (result, label) in enumerate(zip(results, labels, strict=False)):  # fewer after an interruption
        final = result.final_regret
        table.add_row(
            label + ("" if result.is_complete else f" ({len(result.replications)} replications)"),
            f"{result.median[-1]:,.0f}",
            f"{result.quantile(0.1)[-1]:,.0f}",
            f"{result.quantile(0.9)[-1]:,.0f}",
            f"{final.mean():,.0f}",
            f"{final.max():,.0f}",
            *([] if steep_shares is None else [steep_shares[row]]),
            f"{result.optimal_rate[:, -1].mean():.1%}",
            f"{result.initial_rounds.mean():,.0f}",
            f"{result.rounds_per_second / 1e6:.1f}",
        )
    console = make_console()
    console.print(table)
    notes = "optimal: rate of optimal rankings; initial: rounds of the initial phase"
    console.print(f"{notes}; M/s: million rounds per second", style="dim")
    if steep_shares is not None:
        unknown = "; –: unknown" if "–" in steep_shares else ""
        console.print(
            "steep: share of replications whose slope per ln t over the last half of rounds exceeds "
            f"{STEEP_FACTOR:g} times the least one in the long run, as linear regret does{unknown}",
            style="dim",
        )
    if len({result.policy["treatment"] for result in results}) > 1:
        console.print("personalized and equal regret are relative to different optima", style="dim")
    for note in dict.fromkeys(note for result in results for note in result.violations):
        console.print(note)
    for result, label in zip(results, labels, strict=False):
        unfinished = int((result.initial_rounds >= result.horizon).sum())
        if unfinished:
            count = f"{unfinished} of {len(result.replications)} replications"
            console.print(f"{label}: the initial phase of {count} did not end, so they learned nothing")
