"""Tables of the effects of attributes on the log-odds of a model, as `bncli inspect --effects` shows them.

First comes the share of every effect in the variance of the score, then the numbers of the most important effects. A
single attribute is a curve whose bars have the same scale in all curves, or with several classes a grid. A pair of
attributes is a heat map of shaded cells, with numbers if they fit. Effects that are too wide for either are listed by
their strongest entries. Neighbouring intervals of the same log-odds are one line.

With two classes, the log-odds are the second class's. With more, a heat map shows the class that the pair affects most.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bncli.cli.terminal_tables import filled_table

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.kernels.arrays import Array
    from bncli.steps.effects_and_regions import EffectsReport, NamedEffect

_MOST_SHARES, _MOST_EFFECTS, _MOST_STRONGEST = 30, 12, 8
"""The number of effects whose shares are listed, of effects with numbers, and of strongest entries."""
_MOST_LINES, _MOST_COLUMNS = 60, 8
"""The number of lines of a curve or grid, and of columns with numbers."""
_MOST_SHADED = 26
"""The number of columns of a heat map without numbers, each of which is named by a letter."""
_BAR_WIDTH = 16
"""The length of a bar on either side of zero, in characters."""
_POSITIVE_SHADES, _NEGATIVE_SHADES = " ░▒▓█", " ·∘○●"
_LEGEND = "Cells of pairs: ░▒▓█ positive, ·∘○● negative, in steps of a quarter of the table's largest absolute value."


def effect_tables(report: EffectsReport, labels: Sequence[str]) -> list[str | Table]:
    """Return an explanation, the shares, the numbers of the most important effects, and for two classes a nomogram."""
    report = report.with_equal_intervals_joined()
    lines: list[str | Table] = []
    if len(labels) == 2:
        towards = f"Log-odds of {labels[1]}, the positive label, against {labels[0]}"
        lines.append(f"{towards}: base {signed(report.base[1])}, plus these effects")
    else:
        bases = ", ".join(f"{label} {signed(b)}" for label, b in zip(labels, report.base, strict=True))
        lines.append("Log-odds of each class against the geometric mean of the others: a base, plus these effects")
        lines.append(f"Base: {bases}")
    if report.models > 1:
        lines.append(f"Effects on the average score of {report.models:,} models; their probabilities are averaged.")
    if not report.effects:
        return [*lines, "No attribute has an effect."]

    rows = (
        (_percent(effect.share), ", ".join(effect.attributes), "█" * round(2 * _BAR_WIDTH * effect.share))
        for effect in report.effects[:_MOST_SHARES]
    )
    lines.append(filled_table("Shares of the score's variance", ("share", "effect", ""), rows, (0,)))
    n_left_out, share_left_out = report.left_out or (0, 0.0)
    if hidden := report.effects[_MOST_SHARES:]:
        together = _percent(share_left_out + sum(effect.share for effect in hidden))
        lines += [f"... and {n_left_out + len(hidden):,} more effects with {together} in total", ""]

    shown = [effect for effect in report.effects[:_MOST_EFFECTS] if effect.values.any()]
    scale = max((_largest(effect.values) for effect in shown if len(effect.attributes) == 1), default=0.0)
    if any(len(effect.attributes) == 2 for effect in shown):
        lines += [_LEGEND, ""]
    for effect in shown:
        lines += _tables_of_effect(effect, labels, scale)
    return [*lines, *(_nomogram(report, labels[1]) if len(labels) == 2 else ())]


def signed(number: float) -> str:
    return f"{number + 0.0:+.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _largest(values: Array) -> float:
    return float(abs(values).max(initial=0.0))


def _tables_of_effect(effect: NamedEffect, labels: Sequence[str], scale: float) -> list[str | Table]:
    """Return the numbers of one effect as a curve, a grid, a heat map, or a list of the strongest entries.

    `scale` is the number, in nats, whose bar has the full width of a curve.
    """
    order, n_lines = len(effect.attributes), effect.values.shape[0]
    averaged = ", averages" if effect.averaged else ""
    title = f"{' by '.join(effect.attributes)} ({_percent(effect.share)}{averaged})"
    if order == 1 and len(labels) == 2 and n_lines <= _MOST_LINES:
        rows: Iterable[Sequence[str]] = (
            (name, signed(value), bar(value / scale))
            for name, value in zip(effect.names[0], effect.values[:, 1].tolist(), strict=True)
        )
        if effect.margins is not None:
            margins = effect.margins[:, 1].tolist()
            rows = ((*row[:2], f"± {margin:.3f}", row[2]) for row, margin in zip(rows, margins, strict=True))
            return [filled_table(title, (effect.attributes[0], "log-odds", "90 %", ""), rows, (1,))]
        return [filled_table(title, (effect.attributes[0], "log-odds", ""), rows, (1,))]
    if order == 1 and len(labels) <= _MOST_COLUMNS and n_lines <= _MOST_LINES:
        lines = zip(effect.names[0], effect.values.tolist(), strict=True)
        rows = ((name, *map(signed, numbers)) for name, numbers in lines)
        return [filled_table(title, (effect.attributes[0], *labels), rows, range(1, len(labels) + 1))]
    if order == 2 and n_lines <= _MOST_LINES and effect.values.shape[1] <= _MOST_SHADED:
        return _heat_map(effect, labels, title)
    return [_strongest_entries(effect, labels, title)]


def bar(share: float) -> str:
    """Return a bar for a number between -1 and 1, to the left of the line if it is negative."""
    length = round(_BAR_WIDTH * abs(share))
    left, right = (0, length) if share >= 0 else (length, 0)
    return " " * (_BAR_WIDTH - left) + "█" * left + "|" + "█" * right


def _heat_map(effect: NamedEffect, labels: Sequence[str], title: str) -> list[str | Table]:
    """Return the effect of a pair as a heat map, with numbers if there are two classes and few columns."""
    label = 1 if len(labels) == 2 else int(abs(effect.values).max(axis=(0, 1)).argmax())
    title = title if len(labels) == 2 else f"{title}, log-odds of {labels[label]}"
    values, (down, across) = effect.values[:, :, label], effect.attributes
    most = _largest(values) or 1.0
    shades = [[_shade(value / most) for value in row] for row in values.tolist()]
    if len(labels) == 2 and values.shape[1] <= _MOST_COLUMNS:
        rows: Iterable[Sequence[str]] = (
            (name, *(f"{shade} {signed(value)}" for shade, value in zip(row_shades, row, strict=True)))
            for name, row_shades, row in zip(effect.names[0], shades, values.tolist(), strict=True)
        )
        return [filled_table(title, (down, *effect.names[1]), rows, range(1, values.shape[1] + 1))]
    letters = string.ascii_lowercase[: values.shape[1]]
    rows = ((name, "".join(2 * shade for shade in row)) for name, row in zip(effect.names[0], shades, strict=True))
    key = ", ".join(f"{letter} {name}" for letter, name in zip(letters, effect.names[1], strict=True))
    table = filled_table(title, (down, " ".join(letters)), rows)
    return [table, f"{across}: {key}; the largest absolute value is {most:.3f}", ""]


def _shade(share: float) -> str:
    """Return the character that shows a number between -1 and 1 in a heat map."""
    return (_POSITIVE_SHADES if share >= 0 else _NEGATIVE_SHADES)[math.ceil(4 * abs(share) - 0.5)]


def _strongest_entries(effect: NamedEffect, labels: Sequence[str], title: str) -> Table:
    """Return the entries of largest absolute value, ties in their order; with two classes only those of the second."""
    first_label = int(len(labels) == 2)
    values = effect.values[..., first_label:]
    cells = sorted(itertools.product(*map(range, values.shape)), key=lambda cell: -abs(float(values[cell])))
    axes = (*effect.names, labels[first_label:])
    rows = (
        (*(names[code] for names, code in zip(axes, cell, strict=True)), signed(float(values[cell])))
        for cell in cells[:_MOST_STRONGEST]
    )
    headings = (*effect.attributes, "class", "log-odds")
    return filled_table(f"{title}, strongest effects", headings, rows, (len(headings) - 1,))


def _nomogram(report: EffectsReport, label: str) -> list[str | Table]:
    """Return the points of each value, and the probability of the label by the sum of the points."""
    from bncli.steps.report.effects_section import nomogram_effects, nomogram_points

    scales = nomogram_effects(report)
    if not scales:
        return []
    points = nomogram_points(report, scales)
    rows = [
        (scale.name, ", ".join(f"{name} {at:.0f}" for name, at in sorted(scale.values, key=lambda pair: pair[1])))
        for scale in points.scales
    ]
    tables: list[str | Table] = [filled_table("Nomogram: points to add up", ("attribute", "points by value"), rows)]
    sums = [(f"{total:.0f}", f"{p:g}") for p, total in points.sums if 0 <= total <= points.total]
    return tables + ([filled_table("", ("sum of points", f"P({label})"), sums, (0, 1))] if sums else [])
