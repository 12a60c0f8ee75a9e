"""`bncli score`: a stream of rows in, a stream of predictions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bncli.catalogue import DECISION_KEYS
from bncli.cli import learning_options as learning
from bncli.cli import options, settings
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import Paths, flag, whole
from bncli.cli.score_tables import (
    MONITORING,
    WHAT_IF,
    monitor_lines,
    questions,
    refuse_idle_monitor,
    refuse_idle_questions,
)
from bncli.errors import UsageError
from bncli.files.exports import SCORES, score_format

if TYPE_CHECKING:
    from bncli.steps.score import ScoreReport

EXAMPLES = """\
bncli score data.bnc new.csv > scores.csv
zcat new.csv.gz | bncli score data.bnc - --keep id --labels-only -o labels.csv
bncli score data.bnc new.parquet --output-format jsonl --digits 6 | head
bncli score data.bnc new.csv --explain 3 --digits 2 -o why.csv
bncli score data.bnc new.csv --set smoker=no --flip --flip-columns weight,smoker
bncli score data.bnc week.csv -o week.scores.csv --monitor week.json --fail-on-drift
"""
MODEL = click.argument("model", metavar="MODEL", cls=Paths)
DATA = click.argument("data", nargs=-1, metavar="[DATA...]", cls=Paths)
WRITING = (
    options.output("Where the predictions go [standard output]."),
    flag(
        "--output-format",
        group="Output",
        type=click.Choice(SCORES),
        default_text=f"by the ending of FILE, else {SCORES[0]}",
        help="Format of the predictions.",
    ),
    flag(
        "--keep",
        group="Output",
        multiple=True,
        metavar="COLUMN,...",
        help="Carry these columns through; may be repeated.",
    ),
    flag(
        "--row",
        group="Output",
        metavar="N|A-B",
        setting=False,
        help="Score this row alone, or those from A to B; the first below the header is 1.",
    ),
    flag("--keep-all", group="Output", is_flag=True, help="Carry all columns through."),
    flag("--labels-only", group="Output", is_flag=True, help="No probabilities."),
    flag("--log-proba", group="Output", is_flag=True, help="Natural logs of the probabilities."),
    flag(
        "--digits",
        group="Output",
        metavar="N",
        type=whole(0, 14),
        default_text="all",
        help="Decimals of probabilities, 0 to 14.",
    ),
    flag(
        "--prior",
        group="Output",
        metavar="training|FILE",
        default_text="as learnt",
        help="Probabilities where the classes are so frequent, exactly and without learning again: LABEL=P,... or a "
        "FILE of such lines (CSV or a JSON object). training: as in the data, whatever --class-weights were.",
    ),
    flag(
        "--explain",
        group="Output",
        metavar="N",
        type=whole(1, 1000),
        help="Why: add the N largest contributions to the log-odds of the prediction.",
        words=(
            ("log_odds", "of the prediction against the geometric mean of the others"),
            ("base", "of no attribute: the average row, and what averaging models adds"),
            ("explain_1 ...", "attribute=value:contribution, a&b=...: what only a pair tells"),
            ("rest", "all other contributions; base + explain_1 + ... + rest = log_odds"),
        ),
    ),
)


@declare(
    "score",
    EXAMPLES,
    (MODEL, DATA),
    (
        *options.MISSING,
        *options.UNSEEN,
        *options.MISSING_COLUMNS,
        options.POSITIVE,
        *options.FORMAT,
        *options.BAD_ROWS,
    ),
    WRITING,
    learning.DECISIONS,
    MONITORING,
    WHAT_IF,
    (*options.RUNNING, options.CLUSTER),
    more="DATA defaults to the standard input; --json needs -o. Columns are matched by name; a class among them is "
    "ignored. Missing tokens and the treatment of values never seen come from the model unless they are typed.",
)
def command(**typed: Any) -> None:
    """Score, and counts what went through."""
    if typed["as_json"] and typed["output"] in (None, "-"):
        raise UsageError("--json needs -o FILE", hint="the standard output cannot hold predictions and counts at once")
    if typed["keep"] and typed["keep_all"]:
        raise UsageError("--keep has no effect with --keep-all", hint="leave one of them out")
    for name in ("log_proba", "digits"):
        if typed["labels_only"] and typed[name] not in (False, None) and not (name == "digits" and typed["explain"]):
            flag_name = name.replace("_", "-")
            raise UsageError(f"--{flag_name} has no effect with --labels-only", hint="leave one of them out")
    refuse_idle_monitor(typed)
    refuse_idle_questions(typed)
    refuse_terminal(typed["data"])
    import sys

    # Nobody reads Parquet.
    to_stdout = typed["output"] in (None, "-") and sys.stdout is not None and sys.stdout.isatty()
    if to_stdout and typed["output_format"] is not None and not score_format(typed["output_format"]).is_text:
        what = f"--output-format {typed['output_format']} is nothing for a terminal"
        raise UsageError(what, hint="name a file with -o, or pipe it on")
    source = options.source(typed, typed["data"] or ("-",))
    prior, rows = _prior(typed["prior"]), rows_of(typed["row"])
    if rows is not None:
        settings.refuse_cluster(typed, "--row: a few rows have no work to share out")
    cluster = None if rows is not None else settings.cluster_of_files(typed, source)
    from bncli.engine.prediction.decision_rules import DecisionOptions
    from bncli.steps.score import ScoreOutput, score
    from bncli.watch import Run

    decisions = DecisionOptions(*(typed[key] for key in DECISION_KEYS))
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
                decisions=decisions,
                questions=questions(typed),
                positive=typed["positive"],
                rows=rows,
            ),
            unseen=typed["unseen"],
            monitor=typed["monitor"],
            run=Run(options.threads(typed), watch=console.watch, cluster=cluster),
        )
        console.summary([closing_line(report), *monitor_lines(report.monitor, typed["fail_on_drift"])])
        if console.as_json:
            console.json(report)
    if typed["fail_on_drift"] and report.monitor is not None:
        report.monitor.refuse_drift()


def refuse_terminal(data: Sequence[str]) -> None:
    """Raise UsageError where a table would have to be typed."""
    import sys

    if not data and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("there is no table to score", hint="give DATA, or pipe it in")


def rows_of(typed: str | None) -> tuple[int, int] | None:
    """Return the first and the last row typed as N or A-B, from 1; None where nothing was typed."""
    if typed is None:
        return None
    first, hyphen, last = typed.partition("-")
    if not (first.isdecimal() and (last.isdecimal() or not hyphen)):
        raise UsageError(f"--row {typed}: say a row, as 17, or the first and the last, as 10-20")
    rows = int(first), int(last if hyphen else first)
    if not 1 <= rows[0] <= rows[1]:
        raise UsageError(f"--row {typed}: rows are numbered from 1, and the first comes before the last")
    return rows


def _prior(typed: str | None) -> Mapping[str, float] | str | None:
    """Return what was typed after --prior; UsageError for what is no list of labels and probabilities."""
    if typed in (None, "training"):
        return typed
    from bncli.catalogue.option_kinds import parse_label_numbers
    from bncli.files.label_numbers import resolve_label_numbers

    try:
        return parse_label_numbers(resolve_label_numbers(typed), ("training",))
    except ValueError as error:
        raise UsageError(f"Invalid value for '--prior': {error}") from error


def closing_line(report: ScoreReport) -> str:
    """Return rows, values never seen, missing values and missing columns in one line."""
    unseen = _by_attribute(report.unseen_values, "never seen in training", report.unseen)
    missing = _by_attribute(report.missing_values, "missing", report.missing)
    skipped = f"; {_count(report.skipped_rows, 'malformed row')} left out" if report.skipped_rows else ""
    return f"{_count(report.rows, 'row')} scored; {unseen}; {missing}{_absent(report.absent_columns)}{skipped}"


def _by_attribute(total: int, what: str, counts: Mapping[str, int]) -> str:
    """Return how many values, and of which attributes, the most frequent first."""
    text = f"{_count(total, 'value')} {what}"
    names = sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])
    listed = ", ".join(f"{name} {counts[name]:,}" for name in names[:5]) + (", ..." if len(names) > 5 else "")
    return f"{text} ({listed})" if names else text


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _absent(names: tuple[str, ...]) -> str:
    """Return how many columns are not there, and which."""
    listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"; {_count(len(names), 'column')} absent ({listed})" if names else ""
