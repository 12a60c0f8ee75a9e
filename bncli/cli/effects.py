"""Effects to look at: the share of every set of attributes, then its numbers, curves as bars.

Conventions: bars have one scale for all curves, so that they can be compared. Of two classes the log-odds of the
second are shown; the most important effects in full, of what is too wide the strongest entries. Pairs are heat maps of
shaded cells, with their numbers where there is room for these; of several classes for the one that they move most.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.kernels.arrays import Array
    from bncli.steps.effects import EffectsReport, NamedEffect

_LISTED = 30
_SHOWN = 12
_STRONGEST = 8
_MOST_COLUMNS = 8
_MOST_LINES = 60
_BAR = 16
"""Characters on either side of zero."""
_MOST_SHADED = 26
"""Columns of a heat map, which are told by a letter each."""
_ABOVE, _BELOW = " ░▒▓█", " ·∘○●"
_LEGEND = "Cells of pairs: ░▒▓█ above 0, ·∘○● below, in quarters of the largest number of a table."


def effect_tables(report: EffectsReport, labels: Sequence[str]) -> list[str | Table]:
    """How to read them, the shares, and the numbers of the first."""
    if not report.effects:
        return [*_preface(report, labels), "No attribute has an effect."]
    tables: list[str | Table] = [*_preface(report, labels), _shares(report.effects)]
    count, share = report.left_out or (0, 0.0)
    hidden = report.effects[_LISTED:]
    if hidden:
        together = _percent(share + sum(effect.share for effect in hidden))
        tables += [f"... and {count + len(hidden):,} more with {together} together", ""]
    shown = [effect for effect in report.effects[:_SHOWN] if effect.values.any()]
    scale = max((_largest(effect.values) for effect in shown if len(effect.attributes) == 1), default=0.0)
    if any(len(effect.attributes) == 2 for effect in shown):
        tables += [_LEGEND, ""]
    tables += itertools.chain.from_iterable(_numbers(effect, labels, scale) for effect in shown)
    return [*tables, *(_nomogram(report, labels[1]) if len(labels) == 2 else ())]


def _preface(report: EffectsReport, labels: Sequence[str]) -> list[str]:
    if len(labels) == 2:
        lines = [f"Log-odds of {labels[1]} against {labels[0]}: base {_signed(report.base[1])}, plus these effects"]
    else:
        bases = ", ".join(f"{label} {_signed(b)}" for label, b in zip(labels, report.base, strict=True))
        lines = ["Log-odds of a class against the geometric mean of the others: a base, plus these effects"]
        lines.append(f"Base: {bases}")
    if report.models > 1:
        lines.append(f"Effects on the average score of {report.models:,} models; their probabilities are averaged.")
    return lines


def _shares(effects: Sequence[NamedEffect]) -> Table:
    rows = ((_percent(e.share), ", ".join(e.attributes), "█" * round(2 * _BAR * e.share)) for e in effects[:_LISTED])
    return _table("Shares of the score's variance", ("share", "effect", ""), rows, (0,))


def _numbers(effect: NamedEffect, labels: Sequence[str], scale: float) -> list[str | Table]:
    """A curve, a grid, a heat map, or what is strongest."""
    two = len(labels) == 2
    order, n_lines = len(effect.attributes), effect.values.shape[0]
    if order == 1 and two and n_lines <= _MOST_LINES:
        return [_curve(effect, scale)]
    if order == 1 and len(labels) <= _MOST_COLUMNS and n_lines <= _MOST_LINES:
        return [_grid(effect, effect.values, labels)]
    if order == 2 and n_lines <= _MOST_LINES and effect.values.shape[1] <= _MOST_SHADED:
        return _heat_map(effect, labels)
    return [_strongest(effect, labels)]


def _curve(effect: NamedEffect, scale: float) -> Table:
    numbers = zip(effect.names[0], effect.values[:, 1].tolist(), strict=True)
    rows = ((name, _signed(value), _bar(value / scale)) for name, value in numbers)
    return _table(_title(effect), (effect.attributes[0], "log-odds", ""), rows, (1,))


def _bar(share: float) -> str:
    """To the left of the line where negative, to the right where positive."""
    length = round(_BAR * abs(share))
    left, right = (0, length) if share >= 0 else (length, 0)
    return " " * (_BAR - left) + "█" * left + "|" + "█" * right


def _grid(effect: NamedEffect, values: Array, columns: Sequence[str]) -> Table:
    """A line for each value of the first attribute, a column for each of `columns`."""
    lines = zip(effect.names[0], values.tolist(), strict=True)
    rows = ((name, *map(_signed, numbers)) for name, numbers in lines)
    return _table(_title(effect), (effect.attributes[0], *columns), rows, range(1, len(columns) + 1))


def _heat_map(effect: NamedEffect, labels: Sequence[str]) -> list[str | Table]:
    """Of two classes with numbers in the cells where these have room, else of the class moved most, in shades alone."""
    label = 1 if len(labels) == 2 else int(abs(effect.values).max(axis=(0, 1)).argmax())
    title = _title(effect) if len(labels) == 2 else f"{_title(effect)}, of {labels[label]}"
    values, (down, across) = effect.values[:, :, label], effect.attributes
    most = _largest(values) or 1.0
    marks = [[_mark(value / most) for value in row] for row in values.tolist()]
    if len(labels) == 2 and values.shape[1] <= _MOST_COLUMNS:
        told = (map(_signed, row) for row in values.tolist())
        cells = (map(" ".join, zip(*row, strict=True)) for row in zip(marks, told, strict=True))
        rows = ((name, *row) for name, row in zip(effect.names[0], cells, strict=True))
        return [_table(title, (down, *effect.names[1]), rows, range(1, values.shape[1] + 1))]
    letters = string.ascii_lowercase[: values.shape[1]]
    shaded = ((name, "".join(2 * mark for mark in row)) for name, row in zip(effect.names[0], marks, strict=True))
    key = ", ".join(f"{letter} {name}" for letter, name in zip(letters, effect.names[1], strict=True))
    return [_table(title, (down, " ".join(letters)), shaded, ()), f"{across}: {key}; the largest is {most:.3f}", ""]


def _mark(share: float) -> str:
    """A cell of a heat map, of a number between -1 and 1."""
    return (_ABOVE if share >= 0 else _BELOW)[math.ceil(4 * abs(share) - 0.5)]


def _nomogram(report: EffectsReport, label: str) -> list[str | Table]:
    """The points of each value, and the probability of the label by their sum."""
    from bncli.steps.reporting.nomogram import nomogram_points, nomogram_scales

    single = nomogram_scales(report)
    if not single:
        return []
    points = nomogram_points(report, single)
    rows = [
        (one.name, ", ".join(f"{name} {at:.0f}" for name, at in sorted(one.values, key=lambda pair: pair[1])))
        for one in points.scales
    ]
    sums = [(f"{sum_:.0f}", f"{p:g}") for p, sum_ in points.sums if 0 <= sum_ <= points.total]
    tables: list[str | Table] = [_table("Nomogram: points to add up", ("attribute", "points of its values"), rows, ())]
    return tables + ([_table("", ("sum of points", f"P({label})"), sums, (0, 1))] if sums else [])


def _strongest(effect: NamedEffect, labels: Sequence[str]) -> Table:
    """The entries of largest absolute size, ties to the first; of two classes the second alone."""
    hidden = int(len(labels) == 2)
    values = effect.values[..., hidden:]
    cells = sorted(itertools.product(*map(range, values.shape)), key=lambda cell: -abs(float(values[cell])))
    axes = (*effect.names, labels[hidden:])
    rows = (
        (*(names[code] for names, code in zip(axes, cell, strict=True)), _signed(float(values[cell])))
        for cell in cells[:_STRONGEST]
    )
    headings = (*effect.attributes, "class", "log-odds")
    return _table(f"{_title(effect)}, strongest", headings, rows, (len(headings) - 1,))


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int]) -> Table:
    from bncli.cli.tables import add_row, plain_table

    table = plain_table(title, *headings, numbers=numbers)
    for row in rows:
        add_row(table, *row)
    return table


def _title(effect: NamedEffect) -> str:
    averaged = ", averages" if effect.averaged else ""
    return f"{' by '.join(effect.attributes)} ({_percent(effect.share)}{averaged})"


def _largest(values: Array) -> float:
    return float(abs(values).max(initial=0.0))


def _signed(number: float) -> str:
    return f"{number + 0.0:+.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
