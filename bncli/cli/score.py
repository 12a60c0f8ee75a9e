"""`bncli score`: stream rows through a model and write predictions, with what-if questions and monitoring."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bncli.catalogue import DECISION_KEYS
from bncli.catalogue.option_kinds import parse_label_numbers
from bncli.cli import learning_options as learning
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.config import cluster_for_files, refuse_cluster
from bncli.cli.console import Console
from bncli.cli.options import (
    FilePath,
    Paths,
    flag,
    integer,
    level,
    output_flag,
    real,
    settings_of_run,
    without_settings,
)
from bncli.errors import UsageError
from bncli.files.exports import SCORES, score_format

if TYPE_CHECKING:
    from bncli.steps.row_scoring import WhatIfQuestions

EXAMPLES = """\
bncli score data.bnc new.csv > scores.csv
zcat new.csv.gz | bncli score data.bnc - --keep id --labels-only > labels.csv
bncli score data.bnc new.parquet --output-format jsonl --digits 6 | head
bncli score data.bnc new.csv --explain 3 --digits 2 -o why.csv
bncli score data.bnc new.csv --set smoker=no --flip --flip-columns weight
bncli score data.bnc new.csv --because --labels-only -o because.csv
bncli score data.bnc new.csv -o scores.csv --monitor new.json --fail-on-drift
"""
_what_if_flag = partial(flag, group="What if")
MODEL = click.argument("model", metavar="MODEL", cls=FilePath)
DATA = click.argument("data", nargs=-1, metavar="[DATA...]", cls=Paths)
WRITING = (
    options.output("The file of predictions [standard output]."),
    output_flag(
        "--output-format",
        type=click.Choice(SCORES),
        default_text=f"by the extension of FILE, else {SCORES[0]}",
        help="Format of the predictions.",
    ),
    output_flag(
        "--keep",
        multiple=True,
        metavar="COLUMN,...",
        help="Copy these columns of the table to the output. May be repeated.",
    ),
    output_flag(
        "--row",
        metavar="N|A-B",
        setting=False,
        help="Score only row N, or rows A to B; the first row below the header is 1.",
    ),
    output_flag("--keep-all", everyday=False, is_flag=True, help="Copy all columns of the table to the output."),
    output_flag("--labels-only", is_flag=True, help="Write the labels without probabilities."),
    output_flag("--log-proba", everyday=False, is_flag=True, help="Write natural logarithms of the probabilities."),
    output_flag("--digits", type=integer(0, 14), default_text="all", help="Number of decimals, 0 to 14."),
    output_flag(
        "--prior",
        everyday=False,
        metavar="training|FILE",
        default_text="none",
        help="Correct the probabilities for other class frequencies: LABEL=P,... or a FILE of such lines (CSV or a "
        "JSON object). training uses the frequencies of the training data, which undoes --class-weights.",
    ),
    output_flag(
        "--interval",
        type=level,
        metavar="LEVEL",
        help="Add an interval for each probability at this level, such as 0.9: p_<label>_low, p_<label>_high. The "
        "model must be learned with fit --intervals.",
    ),
    output_flag(
        "--abstain-wider",
        everyday=False,
        type=level,
        metavar="WIDTH",
        help="Abstain if the interval of the predicted label (at the level of --interval, else 0.9) is wider than "
        "this.",
    ),
    output_flag(
        "--explain",
        type=integer(1, 1000),
        help="Add the N largest contributions to the log-odds of the prediction.",
        words=(
            ("log_odds", "of the predicted label, against the geometric mean of the others"),
            ("base", "the log-odds of an average row, and the effect of averaging models"),
            ("explain_1 ...", "attribute=value:contribution; a&b=... for a pair"),
            ("rest", "all other contributions; base + explain_1 + ... + rest = log_odds"),
            ("towards", "the label that positive contributions favour: the predicted one"),
        ),
    ),
)
WHAT_IF = (
    _what_if_flag(
        "--set",
        multiple=True,
        metavar="COLUMN=VALUE",
        help="Also predict each row with this value (prediction_if, p_if_<label>). COLUMN= makes it missing. May be "
        "repeated.",
    ),
    _what_if_flag(
        "--flip",
        is_flag=True,
        help="Add a column 'flip' with the smallest change of values that changes the prediction or, with a decision "
        "rule, the decision; of equally small changes, the most probable one.",
    ),
    _what_if_flag(
        "--flip-columns",
        everyday=False,
        multiple=True,
        metavar="COLUMN,...",
        default_text="all",
        help="Columns that --flip may change.",
    ),
    _what_if_flag(
        "--flip-changes",
        everyday=False,
        type=integer(1, 6),
        default_text="2",
        help="Largest number of values that --flip may change.",
    ),
    _what_if_flag(
        "--next-best",
        everyday=False,
        is_flag=True,
        help="Networks: add the missing column with the highest expected information about the class (next_best).",
    ),
    _what_if_flag(
        "--surprise",
        everyday=False,
        is_flag=True,
        help="Networks: add the improbability of the row, -ln P(x) in nats (surprise).",
    ),
    _what_if_flag(
        "--because",
        is_flag=True,
        help="Add a smallest set of the row's values that fixes the decision whatever the other values are "
        "(because), and "
        "whether it is proven that no smaller set exists (because_exact).",
    ),
    _what_if_flag(
        "--because-seconds",
        everyday=False,
        type=real,
        metavar="SECONDS",
        default_text="1",
        help="Time limit per row, after which --because writes the smallest set found so far.",
    ),
)
MONITORING = (
    flag(
        "--monitor",
        group="Monitoring",
        metavar="FILE",
        help="Compare values, predictions and confidence with those of the training rows, and write the counts to "
        "FILE as JSON.",
    ),
    flag(
        "--fail-on-drift",
        everyday=False,
        group="Monitoring",
        is_flag=True,
        help="Exit with code 4, after everything is written, if an attribute has drifted.",
    ),
)


_PARTS = {
    "monitor": ("fail_on_drift",),
    "flip": ("flip_columns", "flip_changes"),
    "because": ("because_seconds",),
}
"""Options that have no effect without another one, keyed by that one."""


@declare(
    "score",
    EXAMPLES,
    (MODEL, DATA),
    (*options.MISSING, *options.UNSEEN, *options.MISSING_COLUMNS, options.POSITIVE, *options.FORMAT, *options.BAD_ROWS),
    WRITING,
    learning.DECISIONS,
    MONITORING,
    WHAT_IF,
    (*options.RUNNING, options.CLUSTER),
    more="DATA defaults to the standard input; --json needs -o. Columns are matched by name; a class among them is "
    "ignored. Missing tokens and the treatment of unseen values come from the model unless options set them.",
)
def command(**typed: Any) -> None:
    """Score the rows and print how many there were."""
    for needed, names in _PARTS.items():
        if not typed[needed]:
            typed = without_settings(typed, *names)
    _refuse_options_without_effect(typed)
    source = options.source(typed, typed["data"] or ("-",))
    prior: Mapping[str, float] | str | None = typed["prior"]
    if typed["prior"] not in (None, "training"):
        from bncli.files.option_files import resolve_label_numbers

        try:
            prior = parse_label_numbers(resolve_label_numbers(typed["prior"]), ("training",))
        except ValueError as error:
            raise UsageError(f"Invalid value for '--prior': {error}") from error
    rows = options.parse_rows("--row", typed["row"])
    if rows is not None:
        refuse_cluster(typed, "--row, which scores too few rows to distribute")
    cluster = None if rows is not None else cluster_for_files(typed, source)
    from bncli.engine.prediction.decision_rules import DecisionOptions
    from bncli.steps.score import ScoreOutput, score
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        report = score(
            typed["model"],
            source,
            ScoreOutput(
                typed["output"],
                typed["output_format"],
                keep="all" if typed["keep_all"] else typed["keep"],
                labels_only=typed["labels_only"],
                log_proba=typed["log_proba"],
                digits=typed["digits"],
                explain=typed["explain"] or 0,
                prior=prior,
                decisions=DecisionOptions(*(typed[key] for key in DECISION_KEYS)),
                questions=_what_if_questions(typed),
                positive=typed["positive"],
                rows=rows,
                level=typed["interval"],
                abstain_wider=typed["abstain_wider"],
            ),
            unseen=typed["unseen"],
            monitor=typed["monitor"],
            run=Run(options.threads(typed), watch=console.watch, cluster=cluster),
        )
        monitor = report.monitor
        fails = typed["fail_on_drift"] and monitor is not None and bool(monitor.monitor.drifted)
        # The error of --fail-on-drift repeats the line about drift.
        drift = [] if monitor is None or fails else [monitor.sentence()]
        expected = [] if monitor is None else [monitor.expected_sentence(), *monitor.measured_sentences()]
        unseen = _values_text(report.unseen_values, "never seen in training", report.unseen)
        missing = _values_text(report.missing_values, "missing", report.missing)
        absent = ""
        if names := report.absent_columns:
            absent = f"; {_counted(len(names), 'column')} absent ({', '.join(names[:5])}{', ...' * (len(names) > 5)})"
        skipped = f"; {_counted(report.skipped_rows, 'malformed row')} left out" if report.skipped_rows else ""
        closing = f"{_counted(report.rows, 'row')} scored; {unseen}; {missing}{absent}{skipped}"
        console.finish(report, [closing, *drift, *expected])
    if fails and monitor is not None:
        monitor.refuse_drift()


def _refuse_options_without_effect(typed: Mapping[str, Any]) -> None:
    """Raise UsageError for options that exclude each other or have no effect, and for rows expected from a terminal."""
    to_stdout = typed["output"] in (None, "-")
    if typed["as_json"] and to_stdout:
        raise UsageError(
            "--json needs -o FILE", hint="for predictions as JSON lines, add --output-format jsonl instead"
        )
    if typed["keep"] and typed["keep_all"]:
        raise UsageError("--keep has no effect with --keep-all", hint="leave one of them out")
    if typed["labels_only"]:
        if typed["log_proba"]:
            raise UsageError("--log-proba has no effect with --labels-only", hint="leave one of them out")
        if typed["digits"] is not None and not typed["explain"] and "digits" not in settings_of_run():
            raise UsageError("--digits has no effect with --labels-only", hint="leave one of them out")
        if typed["interval"] is not None and typed["abstain_wider"] is None:
            raise UsageError("--interval has no effect with --labels-only", hint="leave one of them out")
    if typed["fail_on_drift"] and typed["monitor"] is None:
        raise UsageError("--fail-on-drift has no effect without --monitor", hint="add --monitor FILE.json")
    if typed["monitor"] == "-":
        raise UsageError("--monitor needs a file, not the standard output", hint="add --monitor FILE.json")
    for name in ("flip_columns", "flip_changes"):
        if typed[name] and not typed["flip"]:
            raise UsageError(f"--{name.replace('_', '-')} has no effect without --flip", hint="add --flip")
    if typed["because_seconds"] is not None and not typed["because"]:
        raise UsageError("--because-seconds has no effect without --because", hint="add --because")
    options.refuse_terminal(typed["data"])
    to_terminal = to_stdout and sys.stdout is not None and sys.stdout.isatty()
    if to_terminal and typed["output_format"] is not None and not score_format(typed["output_format"]).is_text:
        what = f"--output-format {typed['output_format']} cannot be shown in a terminal"
        raise UsageError(what, hint="add -o FILE, or redirect the output")


def _what_if_questions(typed: Mapping[str, Any]) -> WhatIfQuestions:
    """Return the what-if questions; raise UsageError for a --set that is not COLUMN=VALUE."""
    from bncli.steps.row_scoring import WhatIfQuestions

    changes = []
    for text in typed["set"]:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set must be COLUMN=VALUE, not {text!r}", hint="for example --set smoker=no")
        changes.append((name.strip(), value))
    seconds_per_row = 1.0 if typed["because_seconds"] is None else float(typed["because_seconds"])
    return WhatIfQuestions(
        next_best=typed["next_best"],
        changes=tuple(changes),
        flip=typed["flip"],
        flip_columns=tuple(name.strip() for names in csv.reader(typed["flip_columns"]) for name in names),
        flip_changes=typed["flip_changes"] or 2,
        surprise=typed["surprise"],
        because=seconds_per_row if typed["because"] else None,
        labels_only=typed["labels_only"],
    )


def _values_text(total: int, what: str, by_attribute: Mapping[str, int]) -> str:
    """Format the total number of values, with the attributes that have the most of them."""
    text = f"{_counted(total, 'value')} {what}"
    names = sorted((name for name in by_attribute if by_attribute[name]), key=lambda name: -by_attribute[name])
    counts = ", ".join(f"{name} {by_attribute[name]:,}" for name in names[:5]) + (", ..." if len(names) > 5 else "")
    return f"{text} ({counts})" if names else text


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
