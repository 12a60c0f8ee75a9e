"""The commands of `bncli`, and the group that imports the module of a command when its word is typed.

`bncli --help` reads this module and little else.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

import click

from bncli import __version__
from bncli.errors import UsageError

EXAMPLES = """\
bncli fit data.csv --structure tan --param weighted    learn data.bnc from data.csv
bncli score data.bnc new.csv > scores.csv              predict
bncli evaluate data.csv                                cross-validate
"""
COMPLETION_VARIABLE = "_BNCLI_COMPLETE"
"""The variable by which the script of a shell requests completions."""
LIBRARIES = ("numpy", "scipy", "click", "rich", "pyarrow")
OPTIONAL_PACKAGES = ("scikit-learn", "onnx", "onnxruntime", "dask", "distributed", "duckdb", "pandas", "polars")
"""Packages that some commands, or tables given to the Python API, need."""
_VERBOSE = "bncli.verbose"
"""Key in the context of the group: whether --verbose was typed."""


class Command(NamedTuple):
    """A word after `bncli`, and the topics of the manual to which its help points, the most relevant first.

    Its module is `bncli.cli.<word>`, with underscores for hyphens.
    """

    word: str
    summary: str
    topics: tuple[str, ...]


COMMANDS = (
    Command(
        "describe",
        "A first look at a table: its columns, its class, the command line to begin with.",
        ("describe", "data", "pitfalls", "glossary"),
    ),
    Command(
        "discretize",
        "Learn cut points; write the binned table or a cuts file.",
        ("discretize", "data", "step-by-step", "files"),
    ),
    Command(
        "encode",
        "Write a table as codes that are learnt from where they lie, past memory.",
        ("large", "discretize", "data", "files", "cluster"),
    ),
    Command(
        "learn-structure",
        "Learn which attributes depend on which; write a structure file.",
        ("structures", "structure-scores", "regions", "interactions", "step-by-step"),
    ),
    Command(
        "count",
        "Count a table for a structure; write a counts file that can be merged.",
        ("counts", "discretize", "structures"),
    ),
    Command("merge", "Add up counts files.", ("counts", "files")),
    Command(
        "fit",
        "Learn a classifier from a table; write a model file.",
        ("quick-start", "which-one", "structures", "parameters", "decisions", "python"),
    ),
    Command(
        "score",
        "Stream a table through a model; write one row of predictions a row.",
        (
            *("score", "monitor", "explain", "what-if", "decisions", "missing-values", "data", "shell", "web-service"),
            "cluster",
        ),
    ),
    Command(
        "explain",
        "Show the effects of a model, or why rows got their predictions.",
        ("explain", "score", "what-if"),
    ),
    Command(
        "monitor",
        "Show which attributes drift from those of training: of a table, or week after week.",
        ("monitor", "score", "json"),
    ),
    Command(
        "evaluate",
        "Cross-validate the learning options, or test a model on a table.",
        (
            *("evaluate", "validation", "groups", "calibration", "compare", "which-one", "decisions", "penalties"),
            *("monotone", "json", "cluster"),
        ),
    ),
    Command(
        "calibrate",
        "Correct the probabilities of a model by rows that it was not learnt from.",
        ("calibration", "evaluate", "score"),
    ),
    Command(
        "compare",
        "Compare several learners over several tables, with tests of significance.",
        ("compare", "evaluate", "which-one", "cluster"),
    ),
    Command(
        "convergence",
        "How fast several fits converge: curves of their traces, and who lags behind whom.",
        ("optimizers", "parameters"),
    ),
    Command("inspect", "Describe a model, structure, cuts or counts file.", ("explain", "files")),
    Command("diff", "Tell how two models differ, in what they are and in what they say.", ("verify", "explain")),
    Command(
        "report",
        "Write one page to look at: how good a model is, what it says, how it is built.",
        ("report", "evaluate", "explain"),
    ),
    Command(
        "verify",
        "Check that a model, or an export of it, still says what the model said when it was made.",
        ("verify", "properties", "export", "files"),
    ),
    Command("export", "Write a model in another format.", ("export", "verify", "files")),
    Command(
        "import",
        "Make a model from a network that an expert or another program wrote.",
        ("knowledge", "export", "missing-values"),
    ),
    Command("edit", "Change an effect of a model by hand, on the record.", ("edit", "explain", "verify")),
    Command("simulate", "Draw rows from a model or from a random network.", ("simulate", "evaluate")),
    Command("help", "Show a topic of the manual.", ("quick-start", "glossary")),
    Command(
        "config",
        "Show every option as a configuration file, or the schema of a JSON output.",
        ("shell", "options", "json"),
    ),
    Command("completion", "Print the script that completes commands in bash, zsh or fish.", ("shell", "install")),
)
BY_WORD = {command.word: command for command in COMMANDS}


class CommandGroup(click.Group):
    """A group that imports `bncli.cli.<word>` when the word is typed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*BY_WORD]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in BY_WORD:
            return None
        module = importlib.import_module(f"bncli.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word; raise UsageError with the most similar word if there is none."""
        if args and args[0] not in BY_WORD and not args[0].startswith("-"):
            from difflib import get_close_matches

            matches = get_close_matches(args[0], BY_WORD, n=1)
            hint = f"did you mean {matches[0]}?" if matches else f"the commands are {', '.join(BY_WORD)}"
            raise UsageError(f"there is no command {args[0]!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_text("Bayesian network classifiers: learn them from tables, score with them, look inside.")
        write_examples(formatter, EXAMPLES)
        self.format_usage(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(command.word, command.summary) for command in COMMANDS])
        with formatter.section("Options"):
            formatter.write_dl(
                [
                    ("--version", "Show the version; with --verbose, of all libraries too."),
                    ("-h, --help", "Show this help."),
                ]
            )
        formatter.write_paragraph()
        formatter.write_text("DATA is CSV, TSV, Parquet or Arrow, plain or compressed; '-' is the standard input.")
        formatter.write_text(
            "'bncli COMMAND --help' shows how to use a command, 'bncli COMMAND --help-all' every option it has, "
            "'bncli help' the manual."
        )


def write_examples(formatter: click.HelpFormatter, examples: str) -> None:
    """Write the examples section of a help text, without wrapping its lines."""
    with formatter.section("Examples"):
        for line in examples.splitlines():
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
    formatter.write_paragraph()


def _note_verbose(ctx: click.Context, _param: click.Parameter, is_typed: bool) -> None:
    ctx.meta[_VERBOSE] = is_typed


def _show_version(ctx: click.Context, _param: click.Parameter, is_typed: bool) -> None:
    if is_typed:
        click.echo("\n".join(_all_versions()) if ctx.meta[_VERBOSE] else f"bncli {__version__}")
        ctx.exit()


def _all_versions() -> list[str]:
    """Return a line for bncli, Python, the system, each library, and each optional package."""
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
    return [f"{name:{width}}  {value}" for name, value in found.items()]


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
