"""`bncli diff`: how two models differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_tables import calibration_facts, rule_lines
from bncli.cli.options import Paths, flag
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.steps.diff import DiffReport

EXAMPLES = """\
bncli diff old.bnc new.bnc
bncli diff old.bnc new.bnc --data last_month.csv
"""
A = click.argument("a", metavar="A", cls=Paths)
B = click.argument("b", metavar="B", cls=Paths)
DATA = flag(
    "--data",
    group="Data",
    metavar="FILE",
    setting=False,
    help="Score this table with both: the share of changed decisions, the largest change of a probability.",
)
_SHOWN = 4
"""Names that a line lists."""


@declare(
    "diff",
    EXAMPLES,
    (A, B),
    (DATA, *options.MISSING, *options.MISSING_COLUMNS, *options.FORMAT),
    (options.JSON, options.QUIET),
    (options.THREADS, options.CONFIG, options.DEBUG),
    more="Columns, labels and values are compared by name; what B has and A lacks is marked +, the contrary -. "
    "The exit code is 0 whether they differ or not.",
)
def command(**typed: Any) -> None:
    """Compare schema, cuts, arcs, tables, options, calibration and decisions, and what the models say of a table."""
    if typed["data"] is None:
        for name in ("missing", "allow_missing_columns", "format", "delimiter", "encoding"):
            if typed[name]:
                raise UsageError(f"--{name.replace('_', '-')} has no effect without --data", hint="name a table")
    source = None if typed["data"] is None else options.source(typed, (typed["data"],))
    from bncli.steps.diff import diff
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        report = diff(typed["a"], typed["b"], source, run=Run(options.threads(typed), watch=console.watch))
        if console.as_json:
            console.json(report)
        else:
            console.text("\n".join(lines(report)) + "\n")


def lines(report: DiffReport) -> list[str]:
    """Return a line for everything that differs, by what it is; then the decisions."""
    found = [
        ("class", [] if report.class_name is None else [f"{report.class_name[0]} -> {report.class_name[1]}"]),
        ("labels", [] if report.label_order is None else [" -> ".join(map(", ".join, report.label_order))]),
        ("columns", _both(report.attributes_added, report.attributes_removed)),
        ("types", _listed("", report.types_changed)),
        ("cuts", _listed("", report.cuts_changed)),
        ("levels", _listed("", report.levels_changed)),
        ("directions", _direction_lines(report)),
        ("arcs", _both(*([f"{p} -> {c}" for p, c in arcs] for arcs in (report.arcs_added, report.arcs_removed)))),
        ("regions", _both(*(list(map(" & ".join, r)) for r in (report.regions_added, report.regions_removed)))),
        ("tables", _table_lines(report)),
        (
            "options",
            [f"{name} {_text(one)} -> {_text(other)}" for name, (one, other) in report.options_changed.items()],
        ),
        ("classes", _weight_lines(report)),
        ("calibration", _calibration_lines(report)),
        ("decides", _rule_lines(report)),
        ("ln P(x)", _log_p_lines(report)),
        (
            "learnt from",
            [] if report.rows_learnt_from is None else ["{:,} -> {:,} rows".format(*report.rows_learnt_from)],
        ),
        ("other keys", _listed("", report.other_keys)),
    ]
    told = [f"{name if i == 0 else '':<12}{text}" for name, texts in found for i, text in enumerate(texts)]
    if report.same_bytes:
        told = ["the models are the same, byte for byte"]
    if report.predictions is not None:
        n, changed, max_dp = report.predictions
        told.append(f"{'decisions':<12}{changed:.2%} of {n:,} rows change; max |dP| {max_dp:.1e}")
    return told


def _both(added: Sequence[str], removed: Sequence[str]) -> list[str]:
    return [*_listed("+ ", added), *_listed("- ", removed)]


def _listed(mark: str, names: Sequence[str]) -> list[str]:
    """Return one line, none for no names."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return [f"{mark}{', '.join(names[:_SHOWN])}{more}"] if names else []


def _direction_lines(report: DiffReport) -> list[str]:
    """Return columns whose direction changed, and the label that directions are about."""
    labels = [] if report.towards is None else [" -> ".join(label or "no label named" for label in report.towards)]
    return [*_listed("", report.directions_changed), *(f"towards {text}" for text in labels)]


def _table_lines(report: DiffReport) -> list[str]:
    tables = report.tables
    counts = {"added": tables.added, "removed": tables.removed, "over other values": tables.recut}
    told = [f"{len(names):,} {word}" for word, names in counts.items() if names]
    if tables.changed:
        told.insert(0, f"{len(tables.changed):,} changed, by up to {tables.largest:.2g} nats")
    return [f"{', '.join(told)}; {tables.same:,} the same"] if told else []


def _text(value: object) -> str:
    return "none" if value is None else str(value)


def _weight_lines(report: DiffReport) -> list[str]:
    if report.class_weights is None:
        return []
    told = [None if one is None else [f"{label} {w:.4g}" for label, w in one.items()] for one in report.class_weights]
    texts = ["alike" if one is None else "".join(_listed("", one)) for one in told]
    return [f"weigh {' -> '.join(texts)}"] if texts[0] != texts[1] else [f"weigh otherwise beyond {texts[0]}"]


def _calibration_lines(report: DiffReport) -> list[str]:
    if report.calibration is None:
        return []
    told = [{} if one is None else calibration_facts(one, report.labels) for one in report.calibration]
    same = told[0].get("calibration") == told[1].get("calibration")
    return [" -> ".join(_text(one.get("log-loss" if same else "calibration")) for one in told)]


def _rule_lines(report: DiffReport) -> list[str]:
    if report.rule is None:
        return []
    from bncli.files.artifacts.model import rule_summary_json

    told = ["; ".join([] if one is None else rule_lines(rule_summary_json(one), report.labels)) for one in report.rule]
    if told[0] == told[1]:
        return [f"{told[0] or 'by rows held out'}, by other numbers"]
    return [" -> ".join(one or "the most probable label" for one in told)]


def _log_p_lines(report: DiffReport) -> list[str]:
    if report.training_log_p is None:
        return []
    told = [None if one is None else f"mean {one.mean:.4g} of {one.rows:,} rows" for one in report.training_log_p]
    if told[0] == told[1]:
        return [f"{told[0]}, other quantiles"]
    return [" -> ".join(map(_text, told))]
