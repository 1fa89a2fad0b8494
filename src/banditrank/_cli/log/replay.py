"""``banditrank log replay``: how fast a policy would have learned."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from banditrank import __version__
from banditrank._cli.log.source import LogSource, takes_log
from banditrank._cli.log.verdict import diagnose_log, print_verdict
from banditrank._cli.output import (
    JsonOption,
    TreatmentOption,
    UtilityOption,
    announce_compilation,
    check_output_files,
    make_console,
    write_json,
)
from banditrank._text import shorten

if TYPE_CHECKING:
    from banditrank.logs._replay import WhenExhausted


@takes_log
def replay_command(
    log: LogSource,
    policy: Annotated[str, typer.Option(help="Name of the policy.")] = "auto",
    rounds: Annotated[int, typer.Option(help="Number of visits to replay.")] = 10_000,
    treatment: TreatmentOption = "personalized",
    utility: UtilityOption = "utilitarian",
    when_exhausted: Annotated[
        str, typer.Option(help="Where the displays of a cell run out: stop or resample.")
    ] = "stop",
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    json_file: JsonOption = None,
) -> None:
    """Replay a learning policy on the displays of a log.

    Each display is used at most once. The replay ends where the policy needs more displays than the log has.
    A log without click rates is not replayed.
    """
    check_output_files(json_file, inputs=log.inputs)

    from banditrank.logs import find_withheld, replay

    cube = log.read()
    diagnosis = diagnose_log(cube)
    if reason := find_withheld(diagnosis).items:
        if json_file is not None:
            refused = {"version": __version__, "diagnosis": diagnosis.to_dict(), "withheld": reason}
            write_json(refused, json_file)
        if json_file != "-":
            console = make_console()
            print_verdict(console, diagnosis)
            console.print(f"{policy} is not replayed: without click rates no policy learns.")
        return
    with announce_compilation("policies", "policy"):
        result = replay(
            cube,
            policy,
            rounds=rounds,
            when_exhausted=cast("WhenExhausted", when_exhausted),
            seed=seed,
            treatment=treatment,
            utility=utility,
        )
    if json_file is not None:
        document = {"version": __version__, "diagnosis": diagnosis.to_dict(), **result.to_dict()}
        write_json(document, json_file)
    if json_file == "-":
        return
    console = make_console()
    print_verdict(console, diagnosis)
    console.print()
    if result.rounds:
        console.print(result.summary())
    else:
        user_type, item, position = result.exhausted or ("", "", 0)
        console.print(
            f"no visit could be replayed: the log never showed {shorten(item)} at position {position} to "
            f"{shorten(user_type)}"
        )
