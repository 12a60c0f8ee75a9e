"""How the help of a command is laid out: summary, examples, usage, then its options by group.

Every option belongs to a group and may carry rows of detail, one for each word it accepts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from bncli.cli.group import write_examples
from bncli.cli.topics import OF_COMMANDS
from bncli.commands import COMMANDS
from bncli.errors import BncliError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Callback = Callable[..., None]
Decorator = Callable[[Callback], Callback]
Notes = tuple[str, tuple[tuple[str, str], ...]]
"""A title and rows of explanation below the options."""


class Flag(click.Option):
    """An option with the group it is shown in, its default in words, and a row of help for each word it accepts.

    `setting`: it may also be set by a variable or a configuration file.
    """

    def __init__(
        self,
        *declarations: Any,
        group: str = "Other",
        stands_for: str = "",
        words: Iterable[tuple[str, str]] = (),
        setting: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(*declarations, **settings)
        self.group = group
        self.stands_for = stands_for
        self.words = tuple(words)
        self.setting = setting

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """What was typed as the option's type; nothing is no value, unless it may be the name of a column."""
        if value == "" and self.metavar != "COLUMN":
            raise click.BadParameter("the value is empty", ctx, self)
        return super().type_cast_value(ctx, value)

    def rows(self, ctx: click.Context) -> list[tuple[str, str]]:
        """The lines of the help: the option, then its words."""
        record = self.get_help_record(ctx)
        if record is None:
            return []
        default = f" [{self.stands_for}]" if self.stands_for else ""
        return [(record[0], record[1] + default), *((f"    {word}", what) for word, what in self.words)]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The words of a method, the columns of the table that is typed already, or files."""
        from click.shell_completion import CompletionItem

        if self.metavar == "COLUMN":
            return [CompletionItem(name) for name in columns_typed(ctx) if name.startswith(incomplete)]
        told = [] if self.metavar == "N" else [word for word, _ in self.words]  # those of a number are no values
        words = told or (self.metavar or "").split("|")
        items = [CompletionItem(word) for word in words if word.islower() and word.startswith(incomplete)]
        files = [CompletionItem(incomplete, type="file")] if "FILE" in (self.metavar or "") else []
        return items + files or super().shell_complete(ctx, incomplete)


class Paths(click.Argument):
    """An argument that is completed by the names of files."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


def columns_typed(ctx: click.Context) -> Sequence[str]:
    """The columns of the table that stands on the command line so far; none where it cannot be read."""
    before = [argument for argument in ctx.command.params if isinstance(argument, Paths) and argument.nargs == 1]
    # An option that still lacks its value ends click's reading: the arguments are left where they were.
    paths = ctx.params.get("data") or [word for word in ctx.args if not word.startswith("-")][len(before) :]
    paths = tuple(os.path.expanduser(path) for path in paths)
    if not paths or not all(os.path.isfile(path) or os.path.isdir(path) for path in paths):
        return ()  # a pipe would wait, and lose what is read from it
    try:
        from bncli.files.table import Source, column_names

        return column_names(Source(paths, format=ctx.params.get("format"), delimiter=ctx.params.get("delimiter")))
    except (BncliError, OSError, ValueError):
        return ()


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


def flag(*declarations: str, group: str, **settings: Any) -> Decorator:
    """Declares an option of a group."""
    return click.option(*declarations, cls=Flag, group=group, **settings)


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
