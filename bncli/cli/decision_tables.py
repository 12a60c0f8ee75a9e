"""Decisions as text: what a rule says, what came of it, and how every threshold would have done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.steps.evaluating.report import EvaluateReport

_EVERY = 10
"""Of the lines of thresholds that are shown, which JSON has all of."""


def decision_tables(report: EvaluateReport) -> Iterator[Table]:
    """Figures of the decisions where there were any, and with a threshold or costs what other thresholds give."""
    from bncli.cli.tables import add_row, plain_table

    found = report.decisions
    if not found.figures:
        return
    spread = bool(found.std)
    columns = ("figure", "mean" if spread else "value", *(["std"] if spread else []))
    table = plain_table("Decisions", *columns, numbers=range(1, len(columns)))
    for name, value in found.figures.items():
        add_row(table, name.replace("_", "-"), _number(value), *([_number(found.std.get(name))] if spread else []))
    for label, coverage in zip(report.labels, found.class_coverage, strict=False):
        add_row(table, f"coverage of {label}", _number(coverage), *([""] if spread else []))
    yield table
    if found.thresholds and found.figures.keys() & {"cost", "threshold"}:
        names = [name for name in found.thresholds[0] if name != "balanced_accuracy"]
        headings = [name.replace("_", "-") for name in names]
        shown = plain_table(f"Thresholds on p_{report.labels[1]}", *headings, numbers=range(len(names)))
        for line in found.thresholds[::_EVERY]:
            add_row(shown, f"{line['threshold']:.1f}", *(_number(line[name]) for name in names[1:]))
        yield shown


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def rule_lines(rule: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    """What a rule says, as `bncli.files.decision_rules.summary_json` has it, a line each."""
    lines = []
    if "costs" in rule:
        lines.append("the label of the least expected cost")
    if "threshold" in rule:
        value, chosen = rule["threshold"]["value"], rule["threshold"]["chosen"]
        lines.append(f"{labels[1]} from a probability of {value:.4g} on{f' ({chosen})' if chosen else ''}")
    if "abstain_below" in rule:
        lines.append(f"none where no label has a probability of {rule['abstain_below']:g}")
    if "sets" in rule:
        whose = "each class's" if rule["sets"]["by"] == "class" else "all"
        lines.append(f"sets that miss the true label in at most {rule['sets']['alpha']:.3g} of {whose} rows")
    return lines
