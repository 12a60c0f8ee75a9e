"""The groups of rows that were asked for: how well the model does for each, against all rows."""

from __future__ import annotations

from collections.abc import Iterator

from bncli.files.formats.report.blocks import Block, Grid, Prose
from bncli.steps.evaluating.report import EvaluateReport
from bncli.steps.reporting.words import count, figure, percent

MOST_GROUPS = 40
_LEAST = 30
"""Rows of a group that is called the worst."""


def group_blocks(report: EvaluateReport) -> Iterator[Block]:
    """A sentence and a table a column, the groups with the highest error first; nothing where none were asked for."""
    groups = () if report.groups is None else report.groups.groups
    error = report.metrics["error"] or 0.0
    for by in dict.fromkeys(group.by for group in groups):
        own = sorted((g for g in groups if g.by == by), key=lambda g: -(g.figures["error"] or 0.0))
        rows = []
        for group in own[:MOST_GROUPS]:
            bounds = group.intervals.get("error")
            between = "–" if bounds is None else " to ".join(map(percent, bounds))
            told = (percent(group.figures["error"] or 0.0), between, figure(group.figures["log_loss"]))
            right = [group.decided["decided_accuracy"]] if group.decided else []
            by_rule = ("–" if share is None else percent(1 - share) for share in right)
            rows.append((_named(group.value), f"{group.rows:,}", *told, figure(group.figures["auc"]), *by_rule))
        worst = next((group for group in own if group.rows >= _LEAST), own[0])
        how = "predicted" if worst.decided else "decided"
        wrong = f"{percent(worst.figures['error'] or 0.0)} of {count(worst.rows, 'row')} are {how} wrong"
        yield Prose(f"By {by} it fares worst for {_named(worst.value)}: {wrong}, of all rows {percent(error)}.")
        headings = (
            by,
            "rows",
            "wrong",
            "95 % interval",
            "log-loss",
            "AUC",
            *["wrong by the rule"] * bool(worst.decided),
        )
        yield Grid(f"By {by}, the highest error first", headings, rows, tuple(range(1, len(headings))))
        if len(own) > MOST_GROUPS:
            yield Prose(f"{count(len(own) - MOST_GROUPS, 'group')} more have a lower error.", "gap")


def _named(value: str | None) -> str:
    return "missing" if value is None else value
