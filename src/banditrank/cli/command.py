"""A command that speaks of its options where the library speaks of its parameters."""

from typing import Any

from typer.core import TyperCommand, TyperOption

from banditrank.errors import InvalidInputError


class Command(TyperCommand):
    """A command whose errors say ``--time-limit`` for ``time_limit``.

    A parameter of the command stands for the parameter of the library that has its name.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InvalidInputError as error:
            for option in self.params:
                if isinstance(option, TyperOption) and option.name == error.field:
                    raise InvalidInputError(option.opts[0], error.rule, error.value) from None
            raise
