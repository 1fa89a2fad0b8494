"""Directive ``command``: usage, help, options and examples of a command, from the command itself."""

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import typer
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from banditrank._cli.main import application

COLUMN_WIDTHS = (25, 50, 25)

# Code in backticks, the name of an option, or a page of the documentation by its path in the repository.
MARKUP = re.compile(r"`(?P<code>[^`]+)`|(?<!\S)(?P<option>--[a-z][a-z-]*)|\bdocs/(?P<page>[\w/-]+)\.md\b")


class CommandDirective(SphinxDirective):
    """Describe one command: ``{command} banditrank solve``."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = False
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Return the description."""
        program, *names = self.arguments[0].split()
        command = typer.main.get_command(application)
        for name in names:
            command = command.commands[name]
        context = command.context_class(command, info_name=" ".join([program, *names]))
        paragraphs = [self._paragraph(one.replace("\n", " ")) for one in command.help.split("\n\n")]
        rows = [self._row(parameter) for parameter in command.params]
        return [
            *paragraphs,
            _code(" ".join([context.command_path, *command.collect_usage_pieces(context)]), "text"),
            *([_table(rows)] if rows else []),
            *_examples(command.epilog),
        ]

    def _row(self, parameter: Any) -> tuple[nodes.Node, ...]:
        """Return the names, the meaning and the default of an argument or option."""
        names = [nodes.literal("", name) for name in (*parameter.opts, *parameter.secondary_opts)]
        if parameter.param_type_name == "argument":
            names = [nodes.literal("", parameter.metavar)]
        joined: list[nodes.Node] = []
        for name in names:
            joined += [nodes.Text(", "), name] if joined else [name]
        shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
        if shown is None or shown is False:
            shown = "required" if parameter.required else ""
        is_value = not isinstance(parameter.show_default, str) and shown not in ("", "required")
        default = (
            nodes.paragraph("", "", nodes.literal("", str(shown)))
            if is_value
            else self._paragraph(str(shown))
        )
        return (
            nodes.paragraph("", "", *joined),
            self._paragraph(parameter.help),
            default,
        )

    def _paragraph(self, text: str) -> nodes.paragraph:
        """Return a text with its code and its links; dashes of options stay dashes."""
        return nodes.paragraph("", "", *self._inline(text))

    def _inline(self, text: str) -> Iterator[nodes.Node]:
        end = 0
        for found in MARKUP.finditer(text):
            if found.start() > end:
                yield nodes.Text(text[end : found.start()])
            code = found["code"] or found["option"]
            yield nodes.literal("", code) if code else self._link(found["page"])
            end = found.end()
        if end < len(text):
            yield nodes.Text(text[end:])

    def _link(self, page: str) -> addnodes.pending_xref:
        """Return a link to a page, with its title."""
        return addnodes.pending_xref(
            "",
            nodes.inline("", page),
            refdoc=self.env.docname,
            refdomain="std",
            reftype="doc",
            reftarget=f"/{page}",
            refexplicit=False,
            refwarn=True,
        )


def _table(rows: list[tuple[nodes.Node, ...]]) -> nodes.table:
    head = tuple(nodes.paragraph("", text) for text in ("argument or option", "meaning", "default"))
    group = nodes.tgroup(
        "", *(nodes.colspec(colwidth=width) for width in COLUMN_WIDTHS), cols=len(COLUMN_WIDTHS)
    )
    group += nodes.thead("", _table_row(head))
    group += nodes.tbody("", *map(_table_row, rows))
    return nodes.table("", group, classes=["command-options"])


def _table_row(cells: tuple[nodes.Node, ...]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", cell) for cell in cells))


def _examples(epilog: str | None) -> list[nodes.Node]:
    """Return the commands below ``Examples:`` at the end of the help."""
    lines = [line.strip() for line in (epilog or "").partition("Examples:")[2].splitlines()]
    commands = "\n".join(line for line in lines if line)
    return [_code(commands, "sh")] if commands else []


def _code(text: str, language: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language=language)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command", CommandDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
