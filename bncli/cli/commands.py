"""The commands. `bncli --help` reads this file and little else."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A word after `bncli`; its module is `bncli.cli.<word>`, hyphens as underscores."""

    word: str
    summary: str


COMMANDS = (
    Command("describe", "A first look at a table: its columns, its class, the command line to begin with."),
    Command("discretize", "Learn cut points; write the binned table or a cuts file."),
    Command("encode", "Write a table as codes that are learnt from where they lie, past memory."),
    Command("learn-structure", "Learn which attributes depend on which; write a structure file."),
    Command("count", "Count a table for a structure; write a counts file that can be merged."),
    Command("merge", "Add up counts files."),
    Command("fit", "Learn a classifier from a table; write a model file."),
    Command("score", "Stream a table through a model; write one row of predictions a row."),
    Command("monitor", "Show which attributes drift from those of training: of a table, or week after week."),
    Command("evaluate", "Cross-validate the learning options, or test a model on a table."),
    Command("calibrate", "Correct the probabilities of a model by rows that it was not learnt from."),
    Command("compare", "Compare several learners over several tables, with tests of significance."),
    Command("convergence", "How fast several fits converge: curves of their traces, and who lags behind whom."),
    Command("inspect", "Describe a model, structure, cuts or counts file."),
    Command("diff", "Tell how two models differ, in what they are and in what they say."),
    Command("report", "Write one page to look at: how good a model is, what it says, how it is built."),
    Command("verify", "Check that a model, or an export of it, still says what the model said when it was made."),
    Command("export", "Write a model in another format."),
    Command("simulate", "Draw rows from a model or from a random network."),
    Command("help", "Show a topic of the manual."),
    Command("config", "Show every option as a configuration file, or the schema of a JSON output."),
    Command("completion", "Print the script that completes commands in bash, zsh or fish."),
)
