"""The commands of `bncli`, and the command group, which imports the module of a command only when it is needed.

`bncli --help` loads this module and little else.
"""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click

from bncli import __version__
from bncli.errors import UsageError

EXAMPLE_WIDTH = 80
EXAMPLES = """\
bncli fit data.csv                                     learn data.bnc from data.csv
bncli score data.bnc new.csv > scores.csv              predict
bncli evaluate data.csv                                cross-validate
"""
COMPLETION_VARIABLE = "_BNCLI_COMPLETE"
"""The environment variable with which a shell's completion script requests completions."""
LIBRARIES = ("numpy", "scipy", "click", "rich", "pyarrow")
OPTIONAL_PACKAGES = ("scikit-learn", "onnx", "onnxruntime", "dask", "distributed", "duckdb", "pandas", "polars")
"""Packages that only some commands, or some kinds of tables in the Python API, need."""
_VERBOSE = "bncli.verbose"
"""The key under which the context of the group stores whether --verbose was given."""


class Command(NamedTuple):
    """A command, whose module is `bncli.cli.<word>` with underscores for hyphens.

    task: its heading in `bncli --help`. summary: its purpose. topics: the manual topics that its help refers to, the
    most useful first.
    """

    word: str
    task: str
    summary: str
    topics: tuple[str, ...]


COMMANDS = (
    Command(
        "describe",
        "Learn",
        "Look at the columns of a table; suggest a command.",
        ("describe", "data", "pitfalls", "glossary"),
    ),
    Command(
        "fit",
        "Learn",
        "Learn a classifier from a table; write a model file.",
        ("quick-start", "which-one", "structures", "parameters", "decisions", "python"),
    ),
    Command(
        "import",
        "Learn",
        "Make a model from a network written by an expert.",
        ("knowledge", "export", "missing-values"),
    ),
    Command(
        "score",
        "Use",
        "Predict the rows of a table; write a prediction per row.",
        (
            "score",
            "intervals",
            "monitor",
            "explain",
            "what-if",
            "decisions",
            "missing-values",
            "data",
            "shell",
            "web-service",
            "cluster",
        ),
    ),
    Command(
        "explain",
        "Use",
        "Show the effects of a model, or why a row got its prediction.",
        ("explain", "score", "what-if"),
    ),
    Command("inspect", "Use", "Show what is in a model, structure, cuts or counts file.", ("explain", "files")),
    Command("report", "Use", "Write a web page about a model and its performance.", ("report", "evaluate", "explain")),
    Command(
        "export", "Use", "Write a model as SQL, ONNX, Python, a scorecard or a network.", ("export", "verify", "files")
    ),
    Command(
        "calibrate",
        "Use",
        "Correct the probabilities of a model with held-out rows.",
        ("calibration", "evaluate", "score"),
    ),
    Command("edit", "Use", "Change an effect of a model by hand; edits are recorded.", ("edit", "explain", "verify")),
    Command(
        "evaluate",
        "Judge",
        "Cross-validate a learner, or test a model on a table.",
        (
            "evaluate",
            "validation",
            "groups",
            "calibration",
            "compare",
            "which-one",
            "decisions",
            "penalties",
            "monotone",
            "json",
            "cluster",
        ),
    ),
    Command(
        "compare",
        "Judge",
        "Compare learners on several tables, with significance tests.",
        ("compare", "evaluate", "which-one", "cluster"),
    ),
    Command("monitor", "Judge", "Report which attributes have drifted since training.", ("monitor", "score", "json")),
    Command("diff", "Judge", "Show how two models differ.", ("verify", "explain")),
    Command(
        "verify",
        "Judge",
        "Check that a model or an export still predicts correctly.",
        ("verify", "properties", "export", "files"),
    ),
    Command(
        "dossier",
        "Judge",
        "Fill in validation checklists, with all figures.",
        ("dossier", "report", "evaluate", "properties"),
    ),
    Command(
        "discretize",
        "Build by steps",
        "Learn cut points; write a cuts file or the binned table.",
        ("discretize", "data", "step-by-step", "files"),
    ),
    Command(
        "learn-structure",
        "Build by steps",
        "Learn the dependencies between attributes; write a structure.",
        ("structures", "structure-scores", "regions", "interactions", "step-by-step"),
    ),
    Command(
        "encode",
        "Large data",
        "Write a table as a file of codes, for tables beyond memory.",
        ("large", "discretize", "data", "files", "cluster"),
    ),
    Command(
        "count",
        "Large data",
        "Count a table for a structure; write a counts file.",
        ("counts", "discretize", "structures"),
    ),
    Command("merge", "Large data", "Add up counts files.", ("counts", "files")),
    Command(
        "convergence", "Research", "Plot how fast optimizers converge, from their traces.", ("optimizers", "parameters")
    ),
    Command("simulate", "Research", "Draw rows from a model or from a random network.", ("simulate", "evaluate")),
    Command("help", "Help", "Show a topic of the manual, or search it.", ("tasks", "quick-start", "glossary")),
    Command(
        "config", "Help", "Show all options as a configuration file, or a JSON schema.", ("shell", "options", "json")
    ),
    Command("completion", "Help", "Print the completion script for bash, zsh or fish.", ("shell", "install")),
)
BY_WORD = {command.word: command for command in COMMANDS}

_OTHER_WORDS = {
    "describe": "profile explore eda look summary",
    "fit": "train learn build model run",
    "score": "predict apply infer classify",
    "explain": "why importance effects shap",
    "inspect": "show info print view",
    "report": "plot page html draw",
    "export": "convert sql onnx scorecard deploy",
    "evaluate": "test validate cv cross-validate crossvalidate metrics eval performance",
    "compare": "benchmark",
    "monitor": "drift watch",
    "discretize": "bin cut",
    "learn-structure": "structure",
    "simulate": "sample generate",
    "help": "man manual search topics",
    "config": "settings options",
}
"""Words that users may try instead of the name of a command."""


def load_command(word: str) -> click.Command:
    """Import `bncli.cli.<word>`, and return its command."""
    command: click.Command = importlib.import_module(f"bncli.cli.{word.replace('-', '_')}").command
    return command


class CommandGroup(click.Group):
    """A command group that imports `bncli.cli.<word>` when the command `word` is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*BY_WORD]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(cmd_name) if cmd_name in BY_WORD else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the command named by the first argument; for an unknown name, raise UsageError with a suggestion."""
        if args and args[0] not in BY_WORD and not args[0].startswith("-"):
            from difflib import get_close_matches

            meant = [word for word, others in _OTHER_WORDS.items() if args[0].lower() in others.split()]
            matches = meant or get_close_matches(args[0], BY_WORD, n=1)
            hint = f"did you mean {matches[0]}?" if matches else f"the commands are {', '.join(BY_WORD)}"
            raise UsageError(f"there is no command {args[0]!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_text("Bayesian network classifiers: learn them from tables, score with them, inspect them.")
        write_examples(formatter, EXAMPLES)
        self.format_usage(ctx, formatter)
        width = max(len(command.word) for command in COMMANDS)
        for task in dict.fromkeys(command.task for command in COMMANDS):
            with formatter.section(task):
                # One definition list per task would align each by itself.
                for command in (command for command in COMMANDS if command.task == task):
                    formatter.write(f"{'':>{formatter.current_indent}}{command.word:{width}}  {command.summary}\n")
        with formatter.section("Options"):
            formatter.write_dl(
                [
                    ("--version", "Show the version; with --verbose, those of all libraries too."),
                    ("-h, --help", "Show this help."),
                ]
            )
        formatter.write_paragraph()
        formatter.write_text("DATA is CSV, TSV, Parquet or Arrow, plain or compressed; '-' is the standard input.")
        formatter.write_text(
            "'bncli COMMAND --help' shows how to use a command; 'bncli COMMAND --help-all' lists all of its options. "
            "'bncli help' shows the manual, and 'bncli help tasks' a command for each of thirty tasks."
        )


def write_examples(formatter: click.HelpFormatter, examples: str) -> None:
    """Write the examples section of a help text, fitted to a width of EXAMPLE_WIDTH characters if possible."""
    with formatter.section("Examples"):
        for line in fit_examples(examples.splitlines(), EXAMPLE_WIDTH - formatter.current_indent):
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
    formatter.write_paragraph()


def fit_examples(lines: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of examples, fitted to `width` characters if possible.

    If any line is longer, all remarks go below their commands, and long commands are split before options.
    """
    if all(len(line) <= width for line in lines):
        yield from lines
        return
    for line in lines:
        indent = len(line) - len(line.lstrip())
        command, *remark = re.split(" {2,}(?=[a-z0-9'])", line.strip(), maxsplit=1)
        # words, with quoted ones whole; an option is followed by its values
        words = re.findall(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""", command)
        starts = [i for i, word in enumerate(words) if not i or word.startswith("-")]
        row = ""
        for start, end in itertools.pairwise([*starts, len(words)]):
            piece = " ".join(words[start:end])
            if row and len(f"{row} {piece} \\") > width:
                yield f"{row} \\"
                row = f"{'':{indent or 4}}{piece}"
            else:
                row = f"{row} {piece}" if row else f"{'':{indent}}{piece}"
        yield row
        yield from (f"      {text}" for text in remark)


def _note_verbose(ctx: click.Context, _param: click.Parameter, is_typed: bool) -> None:
    ctx.meta[_VERBOSE] = is_typed


def _show_version(ctx: click.Context, _param: click.Parameter, is_typed: bool) -> None:
    """Print the version of bncli; with --verbose also those of Python, the system, the libraries and other packages."""
    if not is_typed:
        return
    if not ctx.meta[_VERBOSE]:
        click.echo(f"bncli {__version__}")
        ctx.exit()
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {
        "bncli": __version__,
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
    }
    for name in (*LIBRARIES, *OPTIONAL_PACKAGES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    width = max(map(len, found))
    click.echo("\n".join(f"{name:{width}}  {value}" for name, value in found.items()))
    ctx.exit()


# --verbose is eager, so that it is known when --version is processed, whichever was typed first.
@click.group(
    "bncli", cls=CommandGroup, context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]}
)
@click.option("--verbose", is_flag=True, is_eager=True, expose_value=False, callback=_note_verbose)
@click.option("--version", is_flag=True, expose_value=False, callback=_show_version)
@click.pass_context
def group(ctx: click.Context) -> None:
    """Bayesian network classifiers on the command line."""
    if ctx.meta[_VERBOSE]:
        raise UsageError("--verbose has no effect here", hint="it goes with --version: bncli --version --verbose")
