"""The command `bncli`: its commands are named by the catalogue and imported when one of them is typed."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import click

from bncli import __version__
from bncli.cli.commands import COMMANDS
from bncli.errors import UsageError

EXAMPLES = """\
bncli fit data.csv --structure tan --param weighted    learn data.bnc from data.csv
bncli score data.bnc new.csv > scores.csv              predict
bncli evaluate data.csv                                cross-validate
"""


COMPLETE = "_BNCLI_COMPLETE"
"""By this variable a shell's script asks for the words that fit."""


class Commands(click.Group):
    """A group that imports `bncli.cli.<word>` only when the word is typed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [command.word for command in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"bncli.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names; an unknown one gets the nearest name as advice."""
        words = self.list_commands(ctx)
        if args and args[0] not in words and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], words, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the commands are {', '.join(words)}"
            raise UsageError(f"there is no command {args[0]!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_text("Bayesian network classifiers: learn them from tables, score with them, look inside.")
        write_examples(formatter, EXAMPLES)
        self.format_usage(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(command.word, command.summary) for command in COMMANDS])
        with formatter.section("Options"):
            formatter.write_dl([("--version", "Show the version."), ("-h, --help", "Show this help.")])
        formatter.write_paragraph()
        formatter.write_text("DATA is CSV, TSV, Parquet or Arrow, plain or compressed; '-' is the standard input.")
        formatter.write_text(
            "'bncli COMMAND --help' shows how to use a command, 'bncli COMMAND --help-all' every option it has, "
            "'bncli help' the manual."
        )


def write_examples(formatter: click.HelpFormatter, examples: str) -> None:
    """Write the section of examples, with its lines unchanged."""
    with formatter.section("Examples"):
        for line in examples.splitlines():
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
    formatter.write_paragraph()


def show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"bncli {__version__}")
        ctx.exit()


SETTINGS = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
version: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version
)


@click.group("bncli", cls=Commands, context_settings=SETTINGS)
@version
def group() -> None:
    """Bayesian network classifiers on the command line."""
