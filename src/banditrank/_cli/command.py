"""Command and group classes: errors that name options, Ctrl-C, and examples in the help."""

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from banditrank.errors import InvalidInputError

_RULES = {
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "greater_than_equal": "must be at least {ge}",
}


_SECRET_OPTIONS = ("store",)  # errors show the library's redacted value instead of the given one


class CommandInterrupted(Exception):  # noqa: N818 - not an error
    """Ctrl-C; Typer would turn KeyboardInterrupt into a status without a message."""


class InterruptibleGroup(TyperGroup):
    """Group of commands that raises `CommandInterrupted` on Ctrl-C."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """Parse the arguments."""
        try:
            return super().make_context(*arguments, **settings)
        except KeyboardInterrupt:
            raise CommandInterrupted from None

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise CommandInterrupted from None


class OptionErrorCommand(TyperCommand):
    """Command whose errors name the option ``--time-limit`` instead of the parameter ``time_limit``.

    Options have the names of the library's parameters.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments and reject empty ones, which would mean the current directory as a path."""
        for index, argument in enumerate(args):
            option, equals, value = argument.partition("=")
            if equals and not value and option.startswith("--"):
                raise InvalidInputError(option, "must not be empty", "")
            if not argument:
                before = args[index - 1] if index else ""
                name = before if before.startswith("-") else "argument"
                raise InvalidInputError(name, "must not be empty", "")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if (short := _short_error(error)) is None:
                raise
            raise short from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InvalidInputError as error:
            for option in self.params:
                if isinstance(option, TyperOption) and option.name == error.field:
                    given = ctx.params.get(option.name)
                    shows_given = isinstance(given, str) and option.name not in _SECRET_OPTIONS
                    value = given if shows_given else error.value
                    raise InvalidInputError(option.opts[0], error.rule, value) from None
            raise


def examples(*lines: str) -> str:
    """Return the end of a help text that lists examples, one per line.

    Examples
    --------
    >>> examples("banditrank solve kdd2012").splitlines()[1:]
    ['Examples:', '  banditrank solve kdd2012']
    """
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])  # \b: do not rewrap


def split_names(given: Sequence[str] | None) -> list[str]:
    """Return names from repeated and comma-separated options.

    Examples
    --------
    >>> split_names(["ucb-rank, random", "oracle"])
    ['ucb-rank', 'random', 'oracle']
    """
    return [name.strip() for text in given or () for name in text.split(",")]


def _short_error(error: typer.BadParameter) -> InvalidInputError | None:
    """Return a one-line error for a value that is not a number or too small, else None."""
    details: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    options: list[str] = getattr(error.param, "opts", [])
    if not details or not options or details[0]["type"] not in _RULES:
        return None
    rule = _RULES[details[0]["type"]].format(**details[0].get("ctx", {}))
    return InvalidInputError(options[0], rule, details[0]["input"])
