"""Options and arguments of commands: what the help says of them, and the words that fit while they are typed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from bncli.errors import BncliError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Callback = Callable[..., None]
Decorator = Callable[[Callback], Callback]


class Flag(click.Option):
    """An option with the group it is shown in, its default in words, and a row of help for each word it accepts.

    `setting`: it may also be set by a variable or a configuration file. `everyday`: --help shows it, not only
    --help-all. `once`: typing it twice is an error, where the last one might not be what is meant; the value is one.
    """

    def __init__(
        self,
        *declarations: Any,
        group: str = "Other",
        stands_for: str = "",
        words: Iterable[tuple[str, str]] = (),
        setting: bool = True,
        everyday: bool = True,
        once: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(*declarations, **(settings | ({"multiple": True} if once else {})))
        self.once = once
        self.group = group
        self.stands_for = stands_for
        self.words = tuple(words)
        self.setting = setting
        self.everyday = everyday

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """What was typed as the option's type; nothing is no value, unless it may be the name of a column."""
        if value == "" and self.metavar != "COLUMN":
            raise click.BadParameter("the value is empty", ctx, self)
        found = super().type_cast_value(ctx, value)
        if not self.once:
            return found
        if len(found) > 1:
            raise click.BadParameter(
                f"it is given {len(found)} times, with {' and '.join(map(repr, found))}", ctx, self
            )
        return found[0] if found else None

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """None, rather than no values, where one could be typed and was not."""
        found = super().process_value(ctx, value)
        return None if self.once and found == () else found

    @property
    def lists(self) -> bool:
        """Whether the value is a list."""
        return self.multiple and not self.once

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

        typed: dict[str, Any] = {name: ctx.params.get(name) for name in ("format", "delimiter", "encoding")}
        return column_names(Source(paths, **typed))
    except (BncliError, OSError, ValueError):
        return ()


def flag(*declarations: str, group: str, **settings: Any) -> Decorator:
    """Declares an option of a group."""
    return click.option(*declarations, cls=Flag, group=group, **settings)
