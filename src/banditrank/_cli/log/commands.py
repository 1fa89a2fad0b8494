"""Group of the commands of click logs."""

import typer

from banditrank._cli.command import OptionErrorCommand, examples
from banditrank._cli.log.count import count_command
from banditrank._cli.log.diagnose import diagnose_command
from banditrank._cli.log.evaluate import evaluate_command
from banditrank._cli.log.fit import fit_command
from banditrank._cli.log.merge import merge_command
from banditrank._cli.log.replay import replay_command
from banditrank._cli.log.report import report_command
from banditrank._cli.log.types import types_command
from banditrank._cli.log.warm_start import warm_start_command

log_commands = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
)


@log_commands.callback()
def _help(context: typer.Context) -> None:
    """Count click logs, and learn from the counts."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


log_commands.command(
    "report",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank log report clicks.csv --output report.html",
        "banditrank log report cube --items 50 --positions 1-5 --figures figures --output report.html",
    ),
)(report_command)
log_commands.command(
    "count",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank log count clicks.csv --output cube",
        "banditrank log count clicks.csv --type segment --item item --position slot -o cube",
        "banditrank log count visits.jsonl --items shown --clicked-item chosen --bad-rows drop -o cube",
    ),
)(count_command)
log_commands.command(
    "merge",
    cls=OptionErrorCommand,
    epilog=examples("banditrank log merge monday tuesday --output week"),
)(merge_command)
log_commands.command(
    "diagnose",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank log diagnose cube",
        "banditrank log diagnose clicks.csv --target 5% --json -",
    ),
)(diagnose_command)
log_commands.command(
    "fit",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank log fit cube",
        "banditrank log fit cube --model position-based --output problem.toml",
    ),
)(fit_command)
log_commands.command(
    "types",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank log types clicks.csv --type segment,country",
        "banditrank log types cube --among segment",
    ),
)(types_command)
log_commands.command(
    "evaluate",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank log evaluate cube",
        "banditrank log evaluate cube --ranking current,personalized,equal:nash,candidate.json",
        "banditrank log evaluate cube --policy auto --treatment equal --utility nash",
    ),
)(evaluate_command)
log_commands.command(
    "replay",
    cls=OptionErrorCommand,
    epilog=examples("banditrank log replay cube --policy auto --rounds 20000"),
)(replay_command)
log_commands.command(
    "warm-start",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank log warm-start cube --surface home",
        "banditrank log warm-start cube --surface home --weight 0.2 --output home.json",
    ),
)(warm_start_command)
