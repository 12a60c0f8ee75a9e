"""How the help of a command is laid out: summary, examples, usage, then its options by group.

Every option belongs to a group and may carry rows of detail, one for each word it accepts. --help shows the options
of every day, --help-all the others too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from bncli.cli.commands import COMMANDS
from bncli.cli.group import write_examples
from bncli.cli.options import Callback, Decorator, Flag
from bncli.cli.supervised import address_space_limit
from bncli.cli.topics import OF_COMMANDS
from bncli.errors import BncliError

Rows = tuple[tuple[str, str], ...]
Notes = tuple[str, Rows, Rows]
"""A title, the rows of explanation that stand below the options in --help, and those in --help-all."""


_LIGHT = ("help", "config", "completion")
"""Commands that load no library."""
_LEAST = 296 << 20
"""Bytes of address space without which the libraries cannot be loaded; they do not all end well when they meet that."""


class ExampleCommand(click.Command):
    """A command whose help begins with examples and shows its options in groups."""

    def __init__(self, *arguments: Any, examples: str = "", notes: Notes = ("", (), ()), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples
        self.notes = notes

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """With --help-all, which every command has."""
        return [*super().get_params(ctx), HELP_ALL]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return what is typed comes first, then variables, then the configuration file."""
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            from bncli.cli.settings import apply_settings  # help has ended before

            apply_settings(ctx, [flag for flag in self.params if isinstance(flag, Flag)])
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run; an error about a value that was set, not typed, says where that was."""
        try:
            if self.name not in _LIGHT:
                limit = address_space_limit()
                if limit is not None and limit < _LEAST:
                    what = f"not enough memory: {limit >> 20:,} MiB may be used, and the libraries alone take "
                    what += f"{_LEAST >> 20:,}"
                    raise BncliError(what, hint="raise the limit (ulimit -v)")
            return super().invoke(ctx)
        except BncliError as error:
            from bncli.cli.settings import with_place_of_setting

            raise with_place_of_setting(error) from error

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.write_help(ctx, formatter, everything=False)

    def write_help(self, ctx: click.Context, formatter: click.HelpFormatter, *, everything: bool) -> None:
        """Write the help with the everyday options, or with all of them if `everything`."""
        formatter.write_text(self.help or "")
        write_examples(formatter, self.examples)
        self.format_usage(ctx, formatter)
        flags = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, Flag)]
        title, rows, all_rows = self.notes
        is_whole = rows == all_rows and all(flag.everyday for flag in flags)
        groups: dict[str, list[tuple[str, str]]] = {}
        for flag in flags:
            if everything or flag.everyday:
                groups.setdefault(flag.group, []).extend(flag.rows(ctx))
        helps = [("-h, --help", "Show this help."), *([] if is_whole else [("--help-all", "Show every option.")])]
        groups.setdefault("Other", []).extend(helps)
        if rows:
            groups[title] = list(all_rows if everything else rows)
        for name, lines in groups.items():
            with formatter.section(name):
                formatter.write_dl(lines, col_max=32)
        others = "" if is_whole or everything else f"bncli {self.name} --help-all for the other options; "
        topics = OF_COMMANDS.get(self.name or "", ())
        formatter.write_paragraph()
        formatter.write_text(f"More: {others}bncli help TOPIC, with TOPIC one of {', '.join(topics)}.")


def _show_all(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing and isinstance(ctx.command, ExampleCommand):
        formatter = ctx.make_formatter()
        ctx.command.write_help(ctx, formatter, everything=True)
        click.echo(formatter.getvalue().rstrip("\n"))
        ctx.exit()


HELP_ALL = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, help="Show every option.", callback=_show_all
)


def declare(
    word: str, examples: str, *groups: Iterable[Decorator], more: str = "", notes: Notes = ("", (), ())
) -> Callable[[Callback], click.Command]:
    """Return the command of this word in the catalogue, with the options of these groups in their order."""
    summary = next(entry.summary for entry in COMMANDS if entry.word == word)

    def decorate(callback: Callback) -> click.Command:
        for decorator in reversed([decorator for group in groups for decorator in group]):
            callback = decorator(callback)
        settings = {"cls": ExampleCommand, "help": f"{summary} {more}".strip(), "examples": examples, "notes": notes}
        return click.command(word, **settings)(callback)  # type: ignore[call-overload,no-any-return]

    return decorate
