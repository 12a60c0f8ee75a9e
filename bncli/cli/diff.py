"""`bncli diff`: show how two models differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_text import calibration_facts, edit_lines, first_names, rule_lines
from bncli.cli.options import FilePath, data_flag, settings_of_run
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.steps.diff import DiffReport

EXAMPLES = """\
bncli diff old.bnc new.bnc
bncli diff old.bnc new.bnc --data last_month.csv
"""
A = click.argument("a", metavar="A", cls=FilePath)
B = click.argument("b", metavar="B", cls=FilePath)
DATA = data_flag(
    "--data",
    metavar="FILE",
    setting=False,
    help="Score this table with both models, and report the proportion of changed decisions and the largest change "
    "in a probability.",
)
_MOST_NAMES = 4
"""The maximum number of names on a line."""


@declare(
    "diff",
    EXAMPLES,
    (A, B),
    (DATA, *options.MISSING, *options.MISSING_COLUMNS, *options.FORMAT),
    (options.JSON, options.QUIET),
    (options.THREADS, options.CONFIG, options.DEBUG),
    more="Columns, labels and values are compared by name; + marks what is only in B, - what is only in A. The exit "
    "code is 0 whether or not the models differ.",
)
def command(**typed: Any) -> None:
    """Compare the content of two models and, with --data, their predictions for a table."""
    if typed["data"] is None:
        for name in ("missing", "allow_missing_columns", "format", "delimiter", "encoding", "names"):
            if typed[name] and name not in settings_of_run():
                raise UsageError(f"--{name.replace('_', '-')} has no effect without --data", hint="add --data TABLE")
    source = None if typed["data"] is None else options.source(typed, (typed["data"],))
    from bncli.steps.diff import diff
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        report = diff(typed["a"], typed["b"], source, run=Run(options.threads(typed), watch=console.watch))
        if console.as_json:
            console.json(report)
        else:
            console.text("\n".join(difference_lines(report)) + "\n")


def difference_lines(report: DiffReport) -> list[str]:
    """Format the differences as lines, grouped by subject; changes in the predictions come last, if they are known."""
    lines = ["the models are identical, byte for byte"]
    if not report.same_bytes:
        arcs = (map(" -> ".join, arcs) for arcs in (report.arcs_added, report.arcs_removed))
        regions = (map(" & ".join, regions) for regions in (report.regions_added, report.regions_removed))
        labels = [label or "not set" for label in report.towards or ()]
        rows = report.rows_learnt_from
        # Edits that only one of the models has are marked - or +, as names are.
        both = report.edits or ((), ())
        old, new = (["\n".join(edit_lines(edit, report.labels)) for edit in edits] for edits in both)
        edits = [f"- {line}" for text in old if text not in new for line in text.splitlines()]
        edits += [f"+ {line}" for text in new if text not in old for line in text.splitlines()]
        tables = report.tables
        parts = [f"{len(tables.changed):,} changed, by up to {tables.largest:.2g} nats"] if tables.changed else []
        counts = {"added": tables.added, "removed": tables.removed, "with other cuts or levels": tables.recut}
        parts += [f"{len(names):,} {word}" for word, names in counts.items() if names]
        differences = [
            ("class", [] if report.class_name is None else [" -> ".join(report.class_name)]),
            ("labels", [] if report.label_order is None else [" -> ".join(map(", ".join, report.label_order))]),
            ("columns", _added_and_removed(report.attributes_added, report.attributes_removed)),
            ("types", _name_lines(report.types_changed)),
            ("cuts", _name_lines(report.cuts_changed)),
            ("levels", _name_lines(report.levels_changed)),
            (
                "directions",
                [*_name_lines(report.directions_changed), *([f"towards {' -> '.join(labels)}"] if labels else [])],
            ),
            ("arcs", _added_and_removed(*arcs)),
            ("regions", _added_and_removed(*regions)),
            ("tables", [f"{', '.join(parts)}; {tables.same:,} the same"] if parts else []),
            ("options", [f"{name} {_text(a)} -> {_text(b)}" for name, (a, b) in report.options_changed.items()]),
            *((subject, [text]) for subject, text in _decision_lines(report)),
            ("edits", edits),
            ("learned from", [] if rows is None else [f"{rows[0]:,} -> {rows[1]:,} rows"]),
            ("other keys", _name_lines(report.other_keys)),
        ]
        lines = [f"{'' if i else name:<12}{text}" for name, texts in differences for i, text in enumerate(texts)]
    if report.predictions is not None:
        n_rows, changed, max_dp = report.predictions
        lines.append(
            f"{'decisions':<12}{changed:.2%} of {n_rows:,} rows change; probabilities change by up to {max_dp:.1e}"
        )
    return lines


def _added_and_removed(added: Iterable[str], removed: Iterable[str]) -> list[str]:
    return [*_name_lines([*added], "+ "), *_name_lines([*removed], "- ")]


def _name_lines(names: Sequence[str], mark: str = "") -> list[str]:
    """Return a list with one line that names the first names, or an empty list if there are no names."""
    return [f"{mark}{first_names(names, _MOST_NAMES)}"] if names else []


def _text(value: object) -> str:
    return "none" if value is None else str(value)


def _decision_lines(report: DiffReport) -> list[tuple[str, str]]:
    """Return pairs (subject, difference) for class weights, calibration, decision rule and ln P(x), if they differ."""
    from bncli.files.artifacts.model import rule_summary_json

    lines: list[tuple[str, str]] = []
    if report.class_weights is not None:
        before, after = (
            "equal"
            if weights is None
            else first_names([f"{label} {w:.4g}" for label, w in weights.items()], _MOST_NAMES)
            for weights in report.class_weights
        )
        text = f"{before} -> {after}" if before != after else f"{before}; they differ in further labels"
        lines.append(("classes", f"weights {text}"))
    if report.calibration is not None:
        facts = [{} if part is None else calibration_facts(part, report.labels) for part in report.calibration]
        # If the maps are equal, the rows that they were learned from differ, and so do their log-losses.
        fact = "log-loss" if facts[0].get("calibration") == facts[1].get("calibration") else "calibration"
        lines.append(("calibration", " -> ".join(_text(part.get(fact)) for part in facts)))
    if report.rule is not None:
        rules = (None if rule is None else rule_lines(rule_summary_json(rule), report.labels) for rule in report.rule)
        before, after = ("; ".join(rule or ()) for rule in rules)
        if before == after:
            lines.append(("decides", f"{before or 'from held-out rows'}, with other numbers"))
        else:
            lines.append(("decides", " -> ".join(text or "the most probable label" for text in (before, after))))
    if report.training_log_p is not None:
        means = [
            None if part is None else f"mean {part.mean:.4g} of {part.rows:,} rows" for part in report.training_log_p
        ]
        text = f"{means[0]}, with other quantiles" if means[0] == means[1] else " -> ".join(map(_text, means))
        lines.append(("ln P(x)", text))
    return lines
