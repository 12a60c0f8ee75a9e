"""Commands with a structured help: summary, examples, usage, then the options by group.

An option may have a line of help for each word that it accepts. `--help` shows the everyday options, `--help-all` all
of them. Before a command runs, `bncli.cli.settings` fills in the options that were not typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from bncli.cli.commands import BY_WORD, write_examples
from bncli.cli.memory_limit import address_space_limit
from bncli.cli.options import Callback, Decorator, Flag
from bncli.errors import BncliError

HelpRows = tuple[tuple[str, str], ...]
Notes = tuple[str, HelpRows, HelpRows]
"""A section below the options: its title, its rows in `--help`, and its rows in `--help-all`."""

_BRIEF_GROUPS = {"Cut points": "Learning", "Structure": "Learning", "Parameters": "Learning", "Other": "Output"}
"""Groups of options that `--help` joins, so that it fits a screen."""
_RESEARCH = frozenset(
    (
        *("--class-pair-prior", "--pseudo-counts", "--perfect", "--degrees-of-freedom", "--max-candidates", "--level"),
        *("--lower-orders", "--init", "--penalty-center", "--early-stop", "--restarts", "--optimizer"),
        *("--preconditioner", "--tolerance", "--max-iterations", "--trace"),
    )
)
"""Options for studies of methods and optimizers, which `--help-all` shows at the end."""
_LIGHT = ("help", "config", "completion")
"""Commands that load no library."""
_LEAST_ADDRESS_SPACE = 296 << 20
"""Address space, in bytes, needed to load the libraries; with less, some of them crash instead of raising an error."""


class HelpfulCommand(click.Command):
    """A command whose help begins with examples and shows its options in groups."""

    def __init__(self, *arguments: Any, examples: str = "", notes: Notes = ("", (), ()), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples
        self.notes = notes

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the declared parameters and --help-all, which every command has."""
        return [*super().get_params(ctx), _HELP_ALL]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what was typed, then fill in options from variables and the configuration file."""
        try:
            rest = super().parse_args(ctx, list(args))
        except click.NoSuchOption as error:
            from bncli.cli.unknown_options import unknown_option

            raise unknown_option(ctx, error.option_name) from error
        except click.BadParameter as error:
            from bncli.cli.unknown_options import with_meant_value

            raise with_meant_value(error) from error
        if not ctx.resilient_parsing:
            if any("=" in word or word[:1].isdecimal() for word in args if not word.startswith("-")):
                from bncli.cli.unknown_options import refuse_misplaced_values

                refuse_misplaced_values(ctx)
            from bncli.cli.settings import apply_settings  # not at the top, because --help does not need it

            apply_settings(ctx, [flag for flag in self.params if isinstance(flag, Flag)])
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about a value that was set, not typed, names the file or variable that set it."""
        try:
            limit = None if self.name in _LIGHT else address_space_limit()
            if limit is not None and limit < _LEAST_ADDRESS_SPACE:
                what = f"not enough memory: {limit >> 20:,} MiB may be used, but the libraries alone need "
                what += f"{_LEAST_ADDRESS_SPACE >> 20:,}"
                raise BncliError(what, hint="raise the limit (ulimit -v)")
            return super().invoke(ctx)
        except BncliError as error:
            from bncli.cli.settings import with_place_of_setting

            placed = with_place_of_setting(error)
            if placed is error:
                raise
            raise placed from error

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.write_help(ctx, formatter, show_all=False)

    def write_help(self, ctx: click.Context, formatter: click.HelpFormatter, *, show_all: bool) -> None:
        """Write the help with all options if `show_all`, otherwise with the everyday options."""
        formatter.write_text((self.help or "") if show_all else (self.help or "").partition("\n")[0])
        write_examples(formatter, self.examples)
        self.format_usage(ctx, formatter)
        for name, lines in self.option_groups(ctx, show_all=show_all).items():
            with formatter.section(name):
                formatter.write_dl(lines, col_max=32)
        others = "" if show_all or self._is_short(ctx) else f"bncli {self.name} --help-all for the other options; "
        command = BY_WORD.get(self.name or "")
        topics = ", ".join(() if command is None else command.topics)
        formatter.write_paragraph()
        formatter.write_text(f"More: {others}bncli help TOPIC, with TOPIC one of {topics}.")

    def option_groups(self, ctx: click.Context, *, show_all: bool) -> dict[str, list[tuple[str, str]]]:
        """Return the rows of the help by heading; a row is an option, or a word that it accepts, and its text."""
        title, rows, all_rows = self.notes
        groups: dict[str, list[tuple[str, str]]] = {}
        for flag in self._flags(ctx):
            if show_all or flag.everyday:
                is_research = not _RESEARCH.isdisjoint(flag.opts)
                group = flag.group if show_all else _BRIEF_GROUPS.get(flag.group, flag.group)
                group = "Research" if show_all and is_research else group
                groups.setdefault(group, []).extend(flag.help_rows(ctx, with_words=show_all))
        helps = [
            ("-h, --help", "Show this help."),
            *([] if self._is_short(ctx) else [("--help-all", "Show every option.")]),
        ]
        groups.setdefault("Other" if show_all else _BRIEF_GROUPS["Other"], []).extend(helps)
        if "Research" in groups:
            groups["Research"] = groups.pop("Research")  # at the end
        if rows and show_all:
            groups[title] = list(all_rows)
        return groups

    def _flags(self, ctx: click.Context) -> list[Flag]:
        return [parameter for parameter in self.get_params(ctx) if isinstance(parameter, Flag)]

    def _is_short(self, ctx: click.Context) -> bool:
        """Return whether `--help` shows everything that `--help-all` does."""
        _, rows, all_rows = self.notes
        return rows == all_rows and all(flag.everyday for flag in self._flags(ctx))


def _show_all_help(ctx: click.Context, _param: click.Parameter, is_typed: bool) -> None:
    if is_typed and not ctx.resilient_parsing and isinstance(ctx.command, HelpfulCommand):
        formatter = ctx.make_formatter()
        ctx.command.write_help(ctx, formatter, show_all=True)
        click.echo(formatter.getvalue().rstrip("\n"))
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, help="Show every option.", callback=_show_all_help
)


def declare(
    word: str, examples: str, *groups: Iterable[Decorator], more: str = "", notes: Notes = ("", (), ())
) -> Callable[[Callback], click.Command]:
    """Return a decorator that makes a function the command `word`, with the options of these groups in their order.

    `more` follows the summary of the command in its help.
    """

    def decorate(callback: Callback) -> click.Command:
        for decorator in reversed([decorator for group in groups for decorator in group]):
            callback = decorator(callback)
        text = f"{BY_WORD[word].summary}\n{more}".strip()
        settings = {"cls": HelpfulCommand, "help": text, "examples": examples, "notes": notes}
        return click.command(word, **settings)(callback)  # type: ignore[call-overload,no-any-return]

    return decorate
