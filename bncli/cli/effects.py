"""Effects to look at: the share of every set of attributes, then its numbers, curves as bars.

Conventions: bars have one scale for all curves, so that they can be compared. Of two classes the log-odds of the
second are shown; the most important effects in full, of what is too wide the strongest entries.
"""

from __future__ import annotations

import itertools
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
    return [*tables, *(_numbers(effect, labels, scale) for effect in shown)]


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


def _numbers(effect: NamedEffect, labels: Sequence[str], scale: float) -> Table:
    """A curve, a grid, or what is strongest."""
    two = len(labels) == 2
    order, n_lines = len(effect.attributes), effect.values.shape[0]
    if order == 1 and two and n_lines <= _MOST_LINES:
        return _curve(effect, scale)
    if order == 1 and len(labels) <= _MOST_COLUMNS and n_lines <= _MOST_LINES:
        return _grid(effect, effect.values, labels)
    if order == 2 and two and effect.values.shape[1] <= _MOST_COLUMNS and n_lines <= _MOST_LINES:
        return _grid(effect, effect.values[:, :, 1], effect.names[1])
    return _strongest(effect, labels)


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
