"""Commands with a structured help: summary, examples, usage, then the options by group.

An option may have a line of help for each word that it accepts. `--help` shows the everyday options, `--help-all` all
of them. Before a command runs, `bncli.cli.config` fills in options that were not given on the command line.

For an unknown option, a hint names the one that was probably meant: a similar name, or the option that other programs
call by this name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

import click

from bncli.cli.commands import BY_WORD, COMMANDS, load_command, write_examples
from bncli.cli.memory_limit import address_space_limit
from bncli.cli.options import Callback, Decorator, Flag
from bncli.errors import BncliError, UsageError

HelpRows = tuple[tuple[str, str], ...]
Notes = tuple[str, HelpRows]
"""A section at the end of `--help-all`: its title and its rows."""

_BRIEF_GROUPS = {"Cut points": "Learning", "Structure": "Learning", "Parameters": "Learning", "Other": "Output"}
"""Groups of options that `--help` merges into another group, so that the help fits on a screen."""
_RESEARCH = frozenset(
    (
        *("--class-pair-prior", "--pseudo-counts", "--perfect", "--degrees-of-freedom", "--max-candidates", "--level"),
        *("--lower-orders", "--init", "--penalty-center", "--early-stop", "--restarts", "--optimizer"),
        *("--preconditioner", "--tolerance", "--max-iterations", "--trace"),
    )
)
"""Options for research on methods and optimizers, which `--help-all` shows at the end."""
_LIGHT = ("help", "config", "completion")
"""Commands that load no large library."""
_LEAST_ADDRESS_SPACE = 296 << 20
"""Address space, in bytes, needed to load the libraries; with less, some of them crash instead of raising an error."""


class HelpfulCommand(click.Command):
    """A command whose help begins with examples and shows its options in groups."""

    def __init__(self, *arguments: Any, examples: str = "", notes: Notes = ("", ()), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples
        self.notes = notes

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the declared parameters and --help-all, which every command has."""
        return [*super().get_params(ctx), _HELP_ALL]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line, then fill in options from environment variables and the configuration file."""
        try:
            rest = super().parse_args(ctx, list(args))
        except click.NoSuchOption as error:
            raise unknown_option(ctx, error.option_name) from error
        except click.BadParameter as error:
            raise with_meant_value(error) from error
        if not ctx.resilient_parsing:
            if any("=" in word or word[:1].isdecimal() for word in args if not word.startswith("-")):
                refuse_misplaced_values(ctx)
            from bncli.cli.config import apply_settings  # not at the top, because --help does not need it

            apply_settings(ctx, [flag for flag in self.params if isinstance(flag, Flag)])
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors about values from a file or an environment variable name that file or variable.

        Raises BncliError if the address space is too small to load the libraries.
        """
        try:
            limit = None if self.name in _LIGHT else address_space_limit()
            if limit is not None and limit < _LEAST_ADDRESS_SPACE:
                what = f"not enough memory: {limit >> 20:,} MiB may be used, but the libraries alone need "
                what += f"{_LEAST_ADDRESS_SPACE >> 20:,}"
                raise BncliError(what, hint="raise the limit (ulimit -v)")
            return super().invoke(ctx)
        except BncliError as error:
            from bncli.cli.config import with_place_of_setting

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
        """Return the rows of the help by heading; a row is an option, or an accepted word, and its description."""
        title, rows = self.notes
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
            groups[title] = list(rows)
        return groups

    def _flags(self, ctx: click.Context) -> list[Flag]:
        return [parameter for parameter in self.get_params(ctx) if isinstance(parameter, Flag)]

    def _is_short(self, ctx: click.Context) -> bool:
        """Return whether `--help` shows every option, so that it need not refer to `--help-all`."""
        return not self.notes[1] and all(flag.everyday for flag in self._flags(ctx))


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
    word: str, examples: str, *groups: Iterable[Decorator], more: str = "", notes: Notes = ("", ())
) -> Callable[[Callback], click.Command]:
    """Return a decorator that turns a function into the command `word`, with the options of these groups, in order.

    examples: the lines of examples in the help. more: text after the summary in `--help-all`. notes: a section at the
    end of `--help-all`.
    """

    def decorate(callback: Callback) -> click.Command:
        for decorator in reversed([decorator for group in groups for decorator in group]):
            callback = decorator(callback)
        text = f"{BY_WORD[word].summary}\n{more}".strip()
        settings = {"cls": HelpfulCommand, "help": text, "examples": examples, "notes": notes}
        return click.command(word, **settings)(callback)  # type: ignore[call-overload,no-any-return]

    return decorate


_OTHER_NAMES = {
    "class": "target label labels y response outcome target-column label-column class-column class-name dependent",
    "output-format jsonl": "jsonl ndjson",
    "row": "rows",
    "rows": "row n-rows nrows lines max-rows max-lines",
    "output": "out o outfile output-file save",
    "seed": "random-state random-seed s",
    "folds": "cv k-fold k-folds kfold kfolds n-folds nfold nfolds",
    "jobs": "j n-jobs njobs threads workers processes parallel",
    "threads": "jobs j n-jobs njobs workers cores n-threads nthreads processes",
    "output-format": "format",
    "to": "format",
    "json": "format jsonl",
    "verbose": "v",
    "quiet": "q silent",
    "delimiter": "sep separator delim d",
    "ignore": "exclude drop drop-columns skip-columns ignore-columns",
    "use": "columns features attributes include select",
    "categorical": "cat categories categorical-columns categorical-features nominal",
    "numeric": "numerical continuous numeric-columns",
    "missing": "na na-values nan null missing-values",
    "weights": "weight sample-weight sample-weights case-weights",
    "names": "header no-header columns-names",
    "group": "groups patient customer",
    "by": "by-group groups fairness protected sensitive",
    "time": "date timestamp",
    "keep": "id ids key passthrough",
    "key": "id",
    "structure": "algorithm method classifier learner model-type network dag",
    "penalty": "lambda alpha regularization regularisation l2 ridge c",
    "max-iterations": "max-iter maxiter iterations",
    "smoothing": "pseudocount laplace",
    "costs": "cost cost-matrix cost-fp cost-fn fp-cost fn-cost",
    "threshold": "cutoff cut-off",
    "positive": "event positive-class pos-label positive-label",
    "explain": "why reasons shap contributions",
    "effects": "importance importances",
    "svg": "plot plots chart pictures",
    "report": "html page",
    "metric": "metrics scoring score",
    "discretize": "binning discretise discretizer",
    "test": "test-file test-set holdout",
    "calibrate": "calibration",
    "increasing": "monotone monotonic",
    "knowledge": "forbid forbidden require required constraints blacklist whitelist",
}
"""Other names that users may give to an option; options are tried in this order."""
_ARGUMENTS = ("model", "data", "input", "file", "i", "f")
"""Names of options that users may try for an argument."""
_WITHOUT = {
    "class": "the model file contains the name of its class",
    "seed": "its result does not depend on random numbers",
    "output": "the result goes to the standard output; use > FILE to save it",
}
"""Hints for commands that lack these options."""
_AMBIGUOUS = ("groups",)
"""Names for which two options are suggested."""
_OTHER_VALUES = {
    "--to": {
        "sql --dialect postgres": "postgres postgresql psql",
        "sql --dialect sqlite": "sqlite",
        "sql --dialect duckdb": "duckdb",
        "python": "py module",
        "javascript": "js",
        "scorecard": "points card",
    }
}
"""Values of an option, each with other words that users may give for it."""
_REMARKS = {
    ("evaluate", "ci"): "every figure is printed with its 95 % interval",
    ("evaluate", "confidence"): "every figure is printed with its 95 % interval",
    ("evaluate", "bootstrap"): "every figure is printed with its 95 % bootstrap interval",
    ("score", "proba"): "the probability of every label is always written",
    ("score", "probabilities"): "the probability of every label is always written",
}
"""Hints for options that a command does not need, keyed by command and option."""
_CLOSE, _LIKE = 0.8, 0.6
"""The minimum similarity for suggesting an option: as a misspelling, and as a last resort."""
_MOST_COMMANDS = 3


def meant_options(name: str) -> list[str]:
    """Return the options that other programs call by this name, the most likely first, without leading hyphens."""
    name = name.lstrip("-").replace("_", "-").lower()
    return [option for option, others in _OTHER_NAMES.items() if name in others.split()]


def unknown_option(ctx: click.Context, typed: str) -> UsageError:
    """Return the error about an unknown option of a command; `typed` includes the hyphens."""
    from difflib import get_close_matches

    name = typed.lstrip("-")
    here = _options(ctx.command)
    what = f"{ctx.command_path} has no option {typed!r}"
    if remark := _REMARKS.get((ctx.command.name or "", name)):
        return UsageError(what, hint=remark)
    meant = [_as_typed(ctx, option) for option in meant_options(name) if option.partition(" ")[0] in here]
    if meant:
        return UsageError(what, hint=f"did you mean {' or '.join(meant[: 2 if name in _AMBIGUOUS else 1])}?")
    if close := get_close_matches(name, here, 1, _CLOSE):
        return UsageError(what, hint=f"did you mean {_as_typed(ctx, close[0])}?")
    if name in _ARGUMENTS and (arguments := [p for p in ctx.command.params if isinstance(p, click.Argument)]):
        usage = " ".join(argument.make_metavar(ctx) for argument in arguments)
        return UsageError(what, hint=f"files need no option: {ctx.command_path} {usage}")
    for option in (name, *meant_options(name)):
        if option in _WITHOUT:
            return UsageError(what, hint=_WITHOUT[option])
        if owners := _owners(option.partition(" ")[0]):
            return UsageError(what, hint=f"{owners} --{option}")
    if close := get_close_matches(name, here, 1, _LIKE):
        return UsageError(what, hint=f"did you mean {_as_typed(ctx, close[0])}?")
    return UsageError(what, hint=f"{ctx.command_path} --help-all lists its options")


def refuse_misplaced_values(ctx: click.Context) -> None:
    """Raise UsageError for an argument that looks like the value of an option, not a file: `y=diagnosis`, or 17."""
    here = _options(ctx.command)
    for argument in ctx.command.params:
        values = ctx.params.get(argument.name or "") if isinstance(argument, click.Argument) else None
        for value in (values,) if isinstance(values, str) else values or ():
            match = re.fullmatch(r"(\w[\w-]*)=(.+)|\d+(?:-\d+)?", value)
            if match is None or os.path.exists(value):
                continue
            meant = [match[1].replace("_", "-"), *meant_options(match[1])] if match[1] else ["row", "rows"]
            for option in meant:
                if option in here and (match[1] or "|A-B" in here[option].make_metavar(ctx)):
                    raise UsageError(
                        f"there is no file {value!r}", hint=f"did you mean --{option} {match[2] or value}?"
                    )


def with_meant_value(error: click.BadParameter) -> click.BadParameter | UsageError:
    """Return the error with a hint about the value that was probably meant, or unchanged if there is no such value."""
    from difflib import get_close_matches

    choices = getattr(getattr(error.param, "type", None), "choices", ())
    match = re.match(r"'(.*?)' is not one of", error.message)
    if match is None or error.param is None:
        return error
    flag = max(error.param.opts, key=len)
    others = _OTHER_VALUES.get(flag, {})
    meant = [value for value, names in others.items() if match[1].lower() in names.split()]
    meant = meant or get_close_matches(match[1].lower(), [str(choice) for choice in choices], 1)
    return (
        UsageError(error.format_message().removesuffix("."), hint=f"did you mean {flag} {meant[0]}?")
        if meant
        else error
    )


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return the long options of a command, keyed by name without the leading hyphens."""
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return {name.lstrip("-"): option for option in options for name in option.opts if name.startswith("--")}


def _as_typed(ctx: click.Context, name: str) -> str:
    """Format an option of the command as on the command line, with its value or the placeholder for it."""
    name, _, value = name.partition(" ")
    option = _options(ctx.command)[name]
    flag = "-o" if name == "output" else f"--{name}"
    return f"{flag} {value or ('' if option.is_flag else option.make_metavar(ctx))}".strip()


def _owners(name: str) -> str:
    """Return the beginning of a sentence that names the commands with this option, or "" if there are none."""
    words = [command.word for command in COMMANDS if name in _options(load_command(command.word))]
    if not words:
        return ""
    shown = [f"bncli {word}" for word in words[:_MOST_COMMANDS]]
    if len(words) > _MOST_COMMANDS:
        return f"{', '.join(shown)} and others have"
    listed = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return f"{listed} {'has' if len(words) == 1 else 'have'}"
