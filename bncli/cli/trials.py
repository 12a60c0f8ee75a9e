"""The candidates for an ensemble, as a person is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.model import TriedCandidate

HEADINGS = ("candidate", "penalty", "log-loss", "error", "weight")


def trial_lines(trials: Sequence[TriedCandidate]) -> list[str]:
    """For the end of a run: one aligned line a candidate; nothing where there is no ensemble."""
    if not trials:
        return []
    rows = [HEADINGS, *map(_cells, trials)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    title = f"candidates  {len(trials):,}, with the losses of held-out rows and the weight in the ensemble"
    return [title] + [
        "            " + "  ".join(f"{cell:<{w}}" if i == 0 else f"{cell:>{w}}" for i, (cell, w) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]


def trial_table(trials: Sequence[TriedCandidate]) -> Table:
    """The same as a table of its own."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table("Candidates", *HEADINGS, numbers=(1, 2, 3, 4))
    for trial in trials:
        add_row(table, *_cells(trial))
    return table


def _cells(trial: TriedCandidate) -> tuple[str, ...]:
    weight = f"{trial.weight:.2f}" if trial.weight else "-"
    return trial.name, f"{trial.penalty:g}", f"{trial.log_loss:.5f}", f"{trial.error:.4f}", weight
