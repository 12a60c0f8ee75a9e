"""The figures of groups as tables: the groups whose error lies farthest from that of all rows come first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bncli.cli.tables import TextColumn, fitted_tables

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.evaluation.groups import Fairness, Gap, Group, Rate
    from bncli.steps.evaluating.report import EvaluateReport

MOST_SHOWN = 12
_NAMES = {
    "selection_rate": "selected",
    "true_positive_rate": "true positives",
    "false_positive_rate": "false positives",
    "equalized_odds": "equalized odds",
}


def group_tables(report: EvaluateReport) -> Iterator[str | Table]:
    """A table a column, of many groups the first; with two classes the rates of the second label, and their gaps."""
    assert report.groups is not None
    total = sum(sum(row) for row in report.confusion) or 1.0
    error = 1 - sum(row[c] for c, row in enumerate(report.confusion)) / total
    columns = dict.fromkeys(group.by for group in report.groups.groups)
    for by in columns:
        own = [group for group in report.groups.groups if group.by == by]
        order = sorted(own, key=lambda group: -abs((group.figures["error"] or 0.0) - error))
        decided = report.decisions.rows is not None
        yield from _of_column(by, order[:MOST_SHOWN], error, len(report.labels) == 2)
        if (hidden := len(own) - MOST_SHOWN) > 0:
            yield f"... and {hidden:,} more groups nearer to all rows; --json has them"
        fairness = [one for one in report.groups.fairness if one.by == by]
        if len(fairness) == 1:
            yield from _gaps(fairness[0], "Rates of decisions" if decided else "Rates")


def _of_column(by: str, groups: Sequence[Group], error: float, two: bool) -> Iterator[str | Table]:
    shown = [
        TextColumn("rows", [f"{group.rows:,}" for group in groups]),
        TextColumn("error", [_number(group.figures["error"]) for group in groups]),
        TextColumn("95 %", [_interval(group) for group in groups]),
        TextColumn("gap", [f"{(group.figures['error'] or 0.0) - error:+.4f}" for group in groups]),
        *(TextColumn(n.replace("_", "-"), [_number(group.figures[n]) for group in groups]) for n in _FIGURES),
    ]
    shown += [
        TextColumn(name.replace("_", "-"), [_number(group.decided[name]) for group in groups])
        for name in groups[0].decided
    ]
    if two:
        from bncli.engine.evaluation.groups import RATES

        rates = [next(iter(group.rates.values())) for group in groups]
        shown += [TextColumn(_NAMES[name], [_share(rate[name]) for rate in rates]) for name in RATES]
    names = TextColumn(by, ["missing" if group.value is None else group.value for group in groups])
    yield from fitted_tables(f"By {by}, the largest gaps of the error first", names, shown)


_FIGURES = ("log_loss", "auc", "ece")


def _gaps(fairness: Fairness, what: str) -> Iterator[str | Table]:
    """The gaps of the rates of the second label."""
    gaps = {**fairness.gaps, "equalized_odds": fairness.equalized_odds}
    names = TextColumn(f"of {fairness.label}", [_NAMES[name] for name in gaps])
    columns = [
        TextColumn("highest - lowest", [_gap(gap, "difference") for gap in gaps.values()]),
        TextColumn("lowest / highest", [_gap(gap, "ratio") for gap in gaps.values()]),
    ]
    yield from fitted_tables(f"{what} over the groups of {fairness.by}", names, columns)


def _gap(gap: Gap | None, name: str) -> str:
    return "-" if gap is None else _number(getattr(gap, name))


def _share(rate: Rate | None) -> str:
    return "-" if rate is None else f"{rate.share:.4f}"


def _interval(group: Group) -> str:
    bounds = group.intervals["error"]
    return "-" if bounds is None else f"{bounds[0]:.4f} - {bounds[1]:.4f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
