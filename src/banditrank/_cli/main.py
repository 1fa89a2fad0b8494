"""Entry point of the command line, which turns errors into one line and an exit status."""

import os
import sys
from collections.abc import Sequence
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from banditrank import __version__
from banditrank._cli.command import CommandInterrupted, InterruptibleGroup, OptionErrorCommand, examples
from banditrank._cli.compare import compare_command
from banditrank._cli.data import data_commands
from banditrank._cli.demo import demo_command
from banditrank._cli.frontier import frontier_command
from banditrank._cli.health import health_command
from banditrank._cli.keys import key_commands
from banditrank._cli.log.commands import log_commands
from banditrank._cli.problem import problem_commands
from banditrank._cli.reproduce import reproduce_command
from banditrank._cli.serve import serve_command
from banditrank._cli.simulate import simulate_command
from banditrank._cli.solve import solve_command
from banditrank._cli.state import state_commands
from banditrank._cli.warm import warm_command
from banditrank.errors import BanditRankError, one_line

application = typer.Typer(
    name="banditrank",
    cls=InterruptibleGroup,
    help="Learn from clicks which item to show in which position to which type of user.",
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Run banditrank COMMAND --help for the options of a command.",
)
application.command(
    "simulate",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank simulate",
        "banditrank simulate problem.toml --policy ucb-rank,top-rank --plot regret.png",
        "banditrank simulate --treatment equal --utility nash --json results.json",
    ),
)(simulate_command)
application.command(
    "solve",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank solve kdd2012 --utility nash",
        "banditrank solve problem.toml --utility maximin --time-limit 60 --json -",
    ),
)(solve_command)
application.command(
    "frontier",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank frontier kdd2012",
        "banditrank frontier problem.toml --alphas 0.5,1,2 --plot frontier.svg",
    ),
)(frontier_command)
application.command(
    "reproduce",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank reproduce --quick",
        "banditrank reproduce table2 lemmas --output runs/tables",
    ),
)(reproduce_command)
application.command(
    "compare",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank compare --quick",
        "banditrank compare --suite table1,cascade --policy ucb-rank,grab,random",
        "banditrank compare --suite my_problem.toml --policy my_module:MyPolicy,auto,random",
    ),
)(compare_command)
application.command(
    "serve",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank serve",
        "banditrank serve --host 0.0.0.0 --store-file /run/secrets/store --workers 4",
    ),
)(serve_command)
application.command(
    "warm",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank warm",
        "banditrank warm --store sqlite:banditrank.db",
        "banditrank warm --policy ucb-rank --treatment equal --utility nash,maximin",
    ),
)(warm_command)
application.command(
    "health",
    cls=OptionErrorCommand,
    epilog=examples("banditrank health", "banditrank health --ready --url http://10.0.0.1:8420"),
)(health_command)
application.command(
    "demo",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank demo",
        "banditrank demo --rounds 2000 --speed 0 --json result.json",
    ),
)(demo_command)
application.add_typer(key_commands, name="keys")
application.add_typer(problem_commands, name="problem")
application.add_typer(data_commands, name="data")
application.add_typer(log_commands, name="log")
application.add_typer(state_commands, name="state")


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"banditrank {__version__}")
        raise typer.Exit


@application.callback()
def _options(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Learn from clicks which item to show in which position to which type of user."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache
def command_line() -> Any:
    """Return the command line, which takes 25 ms to build: once in a process that runs several commands."""
    return typer.main.get_command(application)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Bad input is one line on standard error and exit status 2; an interruption is status 130.

    Raises
    ------
    SystemExit
        Always, with the exit status.
    """
    os.environ.setdefault("NUMBA_OPT", "1")  # compiles a quarter faster than 3, to code of the same speed
    if sys.stdout is None or sys.stderr is None:  # closed by the parent process
        nowhere = Path(os.devnull).open("w")  # noqa: SIM115 - open as long as the program runs
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names may contain characters that the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        status = command_line().main(arguments, prog_name="banditrank", standalone_mode=False)
    except typer.TyperException as error:
        _print_error(error.format_message() + _given_value(error))
        status = error.exit_code
    except BanditRankError as error:
        _print_error(str(error))
        status = 2
    except (CommandInterrupted, KeyboardInterrupt):
        _print_error("interrupted")
        status = 130
    except OSError as error:  # errors of files are handled where they are written: this is standard output
        _print_error(f"standard output must be writable ({(error.strerror or 'failed').lower()})")
        status = 2
    except Exception as error:
        from banditrank.policies._failures import failure_note

        message = failure_note(error)
        if message is None:
            raise
        _print_error(message)
        status = 2
    sys.exit(status or 0)


def _print_error(message: str) -> None:
    typer.echo(f"banditrank: {one_line(message)}", err=True)


def _given_value(error: typer.TyperException) -> str:
    """Return the rejected value of an option, which is missing in Typer's own message."""
    details: list[dict[str, object]] = getattr(error.__cause__, "errors", list)()
    return f", got {details[0]['input']!r}" if details else ""
