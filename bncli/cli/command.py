"""How the help of a command is laid out: summary, examples, usage, then its options by group.

Every option belongs to a group and may carry rows of detail, one for each word it accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from bncli.cli.flags import Callback, Decorator, Flag
from bncli.cli.group import write_examples
from bncli.cli.topics import OF_COMMANDS
from bncli.commands import COMMANDS
from bncli.errors import BncliError

Notes = tuple[str, tuple[tuple[str, str], ...]]
"""A title and rows of explanation below the options."""


class ExampleCommand(click.Command):
    """A command whose help begins with examples and shows its options in groups."""

    def __init__(self, *arguments: Any, examples: str = "", notes: Notes = ("", ()), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples
        self.notes = notes

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What is typed comes first, then variables, then the configuration file."""
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            from bncli.cli.settings import apply_settings  # help has ended before

            apply_settings(ctx, [flag for flag in self.params if isinstance(flag, Flag)])
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Runs; an error about a value that was set, not typed, says where that was."""
        try:
            return super().invoke(ctx)
        except BncliError as error:
            from bncli.cli.settings import blamed

            raise blamed(error) from error

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_text(self.help or "")
        write_examples(formatter, self.examples)
        self.format_usage(ctx, formatter)
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, Flag):
                groups.setdefault(parameter.group, []).extend(parameter.rows(ctx))
        groups.setdefault("Other", []).append(("-h, --help", "Show this help."))
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows, col_max=32)
        title, rows = self.notes[0], list(self.notes[1])
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows, col_max=32)
        if topics := OF_COMMANDS.get(self.name or ""):
            formatter.write_paragraph()
            formatter.write_text(f"More: bncli help TOPIC, with TOPIC one of {', '.join(topics)}.")


def declare(
    word: str, examples: str, *groups: Iterable[Decorator], more: str = "", notes: Notes = ("", ())
) -> Callable[[Callback], click.Command]:
    """The command of this word in the catalogue, with the options of these groups in their order."""
    summary = next(entry.summary for entry in COMMANDS if entry.word == word)

    def decorate(callback: Callback) -> click.Command:
        for decorator in reversed([decorator for group in groups for decorator in group]):
            callback = decorator(callback)
        settings = {"cls": ExampleCommand, "help": f"{summary} {more}".strip(), "examples": examples, "notes": notes}
        return click.command(word, **settings)(callback)  # type: ignore[call-overload,no-any-return]

    return decorate
