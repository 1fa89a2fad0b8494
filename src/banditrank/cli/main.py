"""The command line: one file a command, and one place where errors become a line and a status."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from banditrank import __version__
from banditrank.cli.command import Command, Group, Interruption
from banditrank.cli.compare import compare_command
from banditrank.cli.data import data_commands
from banditrank.cli.demo import demo_command
from banditrank.cli.frontier import frontier_command
from banditrank.cli.keys import key_commands
from banditrank.cli.problem import problem_commands
from banditrank.cli.reproduce import reproduce_command
from banditrank.cli.serve import serve_command
from banditrank.cli.simulate import simulate_command
from banditrank.cli.solve import solve_command
from banditrank.cli.state import state_commands
from banditrank.errors import BanditRankError, one_line

application = typer.Typer(
    name="banditrank",
    cls=Group,
    help="Learn from clicks alone which item to show in which position to which kind of user.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
application.command("simulate", cls=Command)(simulate_command)
application.command("solve", cls=Command)(solve_command)
application.command("frontier", cls=Command)(frontier_command)
application.command("reproduce", cls=Command)(reproduce_command)
application.command("compare", cls=Command)(compare_command)
application.command("serve", cls=Command)(serve_command)
application.command("demo", cls=Command)(demo_command)
application.add_typer(key_commands, name="keys")
application.add_typer(problem_commands, name="problem")
application.add_typer(data_commands, name="data")
application.add_typer(state_commands, name="state")


def _print_version(wanted: bool) -> None:
    if wanted:
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
    """Learn from clicks alone which item to show in which position to which kind of user."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Bad input is one line on standard error and status 2."""
    if sys.stdout is None or sys.stderr is None:  # closed by whoever started us
        nowhere = Path(os.devnull).open("w")  # noqa: SIM115 - open as long as the program runs
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names may have letters that the terminal does not
            stream.reconfigure(errors="backslashreplace")
    try:
        command = typer.main.get_command(application)
        status = command.main(arguments, prog_name="banditrank", standalone_mode=False)
    except typer.TyperException as error:
        _complain(error.format_message() + _received(error))
        status = error.exit_code
    except BanditRankError as error:
        _complain(str(error))
        status = 2
    except (Interruption, KeyboardInterrupt):
        _complain("interrupted")
        status = 130
    except OSError as error:  # files are checked where they are written: this is standard output
        _complain(f"standard output must be writable ({(error.strerror or 'failed').lower()})")
        status = 2
    sys.exit(status or 0)


def _complain(message: str) -> None:
    typer.echo(f"banditrank: {one_line(message)}", err=True)


def _received(error: typer.TyperException) -> str:
    """Return the value that an option could not take, which Typer's own message leaves out."""
    details: list[dict[str, object]] = getattr(error.__cause__, "errors", list)()
    return f", got {details[0]['input']!r}" if details else ""
