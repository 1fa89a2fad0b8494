"""``banditrank log evaluate``: what other rankings would have earned."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from banditrank import __version__
from banditrank._cli.command import split_names
from banditrank._cli.log.source import LogSource, takes_log
from banditrank._cli.log.verdict import announce_model_compilation, diagnose_log, print_verdict
from banditrank._cli.output import (
    JsonOption,
    TreatmentOption,
    UtilityOption,
    announce_compilation,
    check_output_files,
    make_console,
    make_table,
    write_json,
)
from banditrank._text import list_names, shorten
from banditrank.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from banditrank.evaluation import Evaluation
    from banditrank.logs import KnownEvaluation
    from banditrank.policies._base import Treatment


_COLUMN = "column:"  # prefix of the target of a column


@takes_log
def evaluate_command(
    log: LogSource,
    ranking: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGETS",
            help="What to evaluate, with commas: current, personalized, equal, equal:UTILITY, a JSON or CSV "
            "file with rankings, or column:NAME, the rankings of a candidate in a column of the log.",
            show_default="current,personalized,equal, or current with --policy",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICIES", help="Policies to evaluate, by name, with commas.", show_default="none"
        ),
    ] = None,
    treatment: TreatmentOption = "personalized",
    utility: UtilityOption = "utilitarian",
    click_model: Annotated[
        str,
        typer.Option("--model", help="Click model: auto, single-look, position-based or user-browsing."),
    ] = "auto",
    level: Annotated[
        float, typer.Option(help="Probability that an interval contains the true value.")
    ] = 0.95,
    clip: Annotated[
        float | None, typer.Option(help="Maximum importance weight.", show_default="no limit")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of policies that explore.")] = 0,
    json_file: JsonOption = None,
) -> None:
    """Estimate what other rankings and policies would have earned, in clicks per visit.

    Starts with the diagnosis. Rankings that are learned from the log are evaluated by cross-fitting. What the
    log cannot tell is not printed as a number.
    """
    check_output_files(json_file, inputs=log.inputs)

    from banditrank.logs import evaluate_known
    from banditrank.policies._catalog import POLICY_NAMES

    policies = split_names(policy)
    for name in policies:
        if name not in POLICY_NAMES:
            raise UnknownNameError("--policy", name, POLICY_NAMES)
    cube = log.read()
    diagnosis = diagnose_log(cube)
    default = ["current"] if policies else ["current", "personalized", "equal"]
    named = list(dict.fromkeys([*(split_names(ranking) or default), *policies]))
    targets = [log.candidate(name, cube) if name.startswith(_COLUMN) else name for name in named]
    with announce_compilation(), announce_model_compilation(), _name_option():
        known = evaluate_known(
            cube,
            diagnosis,
            targets,
            utility=utility,
            treatment=cast("Treatment", treatment),
            click_model=click_model,
            level=level,
            clip=clip,
            seed=seed,
        )
    if json_file is not None:
        document: dict[str, Any] = {"version": __version__, "diagnosis": diagnosis.to_dict()}
        write_json({**document, "evaluation": known.to_dict()}, json_file)
    if json_file == "-":
        return
    console = make_console()
    print_verdict(console, diagnosis)
    console.print()
    print_evaluation(console, known)


@contextmanager
def _name_option() -> Iterator[None]:
    """Name the option instead of the target in errors."""
    try:
        yield
    except InvalidInputError as error:
        if error.field != "target":
            raise
        raise InvalidInputError("--ranking", error.rule, error.value) from None


def print_evaluation(console: "Console", known: "KnownEvaluation") -> None:
    """Print the values of targets, and which targets are not evaluated and why."""
    from banditrank.logs._report_tables import describe_unlisted, format_percent

    evaluation = known.evaluation
    if evaluation is not None:
        console.print(_values(evaluation))
        console.print(
            f"clicks per visit with {evaluation.level:.0%} intervals; *: the value to use; visits: effective "
            f"number; click model {evaluation.model.describe()}; propensities {evaluation.propensities}",
            style="dim",
        )
        for target in evaluation:
            if target.headline is None:
                console.print(f"{shorten(target.name)}: not identified: {target.reason}", soft_wrap=True)
            elif note := target.describe_unpredicted():
                console.print(f"{shorten(target.name)}: {note}", soft_wrap=True)
        for price in evaluation.prices:
            console.print(
                f"Price of equality of {price.target}: {format_percent(price.price, price.low, price.high)}"
            )
        if any(target.rankings for target in evaluation):
            console.print(_rankings(evaluation))
            if note := describe_unlisted(len(evaluation.user_types)):
                console.print(note)
    for reason in dict.fromkeys(known.withheld.values()):
        withheld = [name for name, why in known.withheld.items() if why == reason]
        names = list_names(withheld, len(withheld))
        console.print(f"{names}: not identified. {reason}", soft_wrap=True)


def _values(evaluation: "Evaluation") -> "Table":
    from banditrank.logs._report_tables import format_interval

    estimators = list(evaluation.targets[0].estimates)
    table = make_table("What rankings would have earned")
    table.add_column("target", overflow="fold")
    for name in estimators:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("visits", justify="right", no_wrap=True)
    for target in evaluation:
        cells = []
        for name in estimators:
            total = target.estimates[name].total
            text = format_interval(*total)
            cells.append(f"{text}*" if name == target.headline else text)
        table.add_row(shorten(target.name), *cells, f"{target.effective_visits.sum():,.0f}")
    return table


def _rankings(evaluation: "Evaluation") -> "Table":
    from banditrank.logs._report_tables import list_ranking, most_frequent

    listed = most_frequent(evaluation.n_visits)
    table = make_table("Rankings")
    table.add_column("target", overflow="fold")
    table.add_column("user type", overflow="fold")
    table.add_column("items, first position first", overflow="fold")
    for target in evaluation:
        if len(set(target.rankings)) == 1 and len(target.rankings) > 1:
            table.add_row(shorten(target.name), "all", list_ranking(target.rankings[0]))
            continue
        if target.rankings:
            for i in listed:
                user_type, ranking = evaluation.user_types[i], target.rankings[i]
                table.add_row(shorten(target.name), shorten(user_type), list_ranking(ranking))
    return table
