"""A command that speaks of its options where the library speaks of its parameters."""

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


_WITH_SECRETS = ("store",)  # options whose values are told as the library does, without a password


class Interruption(Exception):  # noqa: N818 - not an error: somebody pressed Ctrl-C
    """Ctrl-C, of which Typer would make a status without a word."""


class Group(TyperGroup):
    """All commands, any of which may be interrupted."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """Look at the arguments."""
        try:
            return super().make_context(*arguments, **settings)
        except KeyboardInterrupt:
            raise Interruption from None

    def invoke(self, ctx: Any) -> Any:
        """Find and run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interruption from None


class Command(TyperCommand):
    """A command whose errors say ``--time-limit`` for ``time_limit``.

    A parameter of the command stands for the parameter of the library that has its name.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the arguments; none is empty, which a path would take for the current directory."""
        for place, argument in enumerate(args):
            option, equals, value = argument.partition("=")
            if equals and not value and option.startswith("--"):
                raise InvalidInputError(option, "must not be empty", "")
            if not argument:
                before = args[place - 1] if place else ""
                name = before if before.startswith("-") else "argument"
                raise InvalidInputError(name, "must not be empty", "")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if (in_few_words := _in_few_words(error)) is None:
                raise
            raise in_few_words from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InvalidInputError as error:
            for option in self.params:
                if isinstance(option, TyperOption) and option.name == error.field:
                    given = ctx.params.get(option.name)
                    as_written = isinstance(given, str) and option.name not in _WITH_SECRETS
                    value = given if as_written else error.value
                    raise InvalidInputError(option.opts[0], error.rule, value) from None
            raise


def split_names(given: Sequence[str] | None) -> list[str]:
    """Return names that were given one by one or with commas between them.

    Examples
    --------
    >>> split_names(["ucb-rank, random", "oracle"])
    ['ucb-rank', 'random', 'oracle']
    """
    return [name.strip() for text in given or () for name in text.split(",")]


def _in_few_words(error: typer.BadParameter) -> InvalidInputError | None:
    """Return the error for a value that is no number or too small, without the words of who parsed it."""
    details: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    options: list[str] = getattr(error.param, "opts", [])
    if not details or not options or details[0]["type"] not in _RULES:
        return None
    rule = _RULES[details[0]["type"]].format(**details[0].get("ctx", {}))
    return InvalidInputError(options[0], rule, details[0]["input"])
