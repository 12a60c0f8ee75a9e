"""Bins of probabilities beside the shares that were found, and the parts of the Brier score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bncli.cli.tables import add_row, plain_table

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.evaluation.reliability import CalibrationFigures

MOST_LABELS = 4


def reliability_tables(figures: CalibrationFigures) -> Iterator[str | Table]:
    """A table a label, of many labels the first; then the figures of all."""
    labels = list(dict.fromkeys(one.label for one in figures.bins))
    for label in labels[:MOST_LABELS]:
        title = f"Reliability of P({label})"
        table = plain_table(title, "from", "to", "rows", "mean P", "share", "95 %", numbers=range(6))
        for one in figures.bins:
            if one.label == label:
                numbers = [f"{value:.4f}" for value in (one.mean_p, one.frequency)]
                ends = [f"{value:.4f}" for value in (one.low, one.high)]
                add_row(table, *ends, f"{one.rows:,.10g}", *numbers, f"{one.low95:.4f} - {one.high95:.4f}")
        yield table
    if len(labels) > MOST_LABELS:
        yield f"... and {len(labels) - MOST_LABELS:,} more labels; --json has them"
    table = plain_table("The Brier score in parts", "part", "value", numbers=(1,))
    for name, value in figures.brier_parts._asdict().items():
        add_row(table, name.replace("_", " "), f"{value + 0.0:.4f}")
    add_row(table, "ece, equal mass", f"{figures.ece_equal_mass:.4f}")
    yield table
