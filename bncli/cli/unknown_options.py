"""Suggestions for options that do not exist, from misspellings and from the names that other programs have.

Commands import this module only if what was typed may be wrong.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches

import click

from bncli.cli.commands import COMMANDS, load_command
from bncli.errors import UsageError

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
"""Names that people may type for an option; options are tried in this order."""
_ARGUMENTS = ("model", "data", "input", "file", "i", "f")
"""Names that people may type as options for arguments."""
_WITHOUT = {
    "class": "the model file contains the name of its class",
    "seed": "its result does not depend on random numbers",
    "output": "the result goes to the standard output; use > FILE to save it",
}
"""Hints for commands that do not have the option."""
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
"""Values of an option, each with the words that people may type for it."""
_REMARKS = {
    ("evaluate", "ci"): "every figure is printed with its 95 % interval",
    ("evaluate", "confidence"): "every figure is printed with its 95 % interval",
    ("evaluate", "bootstrap"): "every figure is printed with its 95 % bootstrap interval",
    ("score", "proba"): "the probability of every label is always written",
    ("score", "probabilities"): "the probability of every label is always written",
}
"""Hints for options that a command does not need, by the command and the option that was typed."""
_CLOSE, _LIKE = 0.8, 0.6
"""The least similarity at which an option is suggested: as a misspelling, and as a last resort."""
_MOST_COMMANDS = 3


def meant_options(name: str) -> list[str]:
    """Return the options for which other programs have this name, the most likely first, without their hyphens."""
    name = name.lstrip("-").replace("_", "-").lower()
    return [option for option, others in _OTHER_NAMES.items() if name in others.split()]


def unknown_option(ctx: click.Context, typed: str) -> UsageError:
    """Return the error about an option that a command does not have; `typed` has its hyphens."""
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
    """Raise UsageError if an argument is not a file but the value of an option: `y=diagnosis`, or 17 for a row."""
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
    """Return the error about an unknown value of an option, with a hint at the value that was probably meant."""
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
    """Return the long options of a command by name, without the leading hyphens."""
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return {name.lstrip("-"): option for option in options for name in option.opts if name.startswith("--")}


def _as_typed(ctx: click.Context, name: str) -> str:
    """Return an option of the command as it is typed, with the placeholder of its value."""
    name, _, value = name.partition(" ")
    option = _options(ctx.command)[name]
    flag = "-o" if name == "output" else f"--{name}"
    return f"{flag} {value or ('' if option.is_flag else option.make_metavar(ctx))}".strip()


def _owners(name: str) -> str:
    """Return the beginning of a sentence that names the commands with an option, or "" if there are none."""
    words = [command.word for command in COMMANDS if name in _options(load_command(command.word))]
    if not words:
        return ""
    shown = [f"bncli {word}" for word in words[:_MOST_COMMANDS]]
    if len(words) > _MOST_COMMANDS:
        return f"{', '.join(shown)} and others have"
    listed = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return f"{listed} {'has' if len(words) == 1 else 'have'}"
