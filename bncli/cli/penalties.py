"""How a person is told of a penalty that cross-validation chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.model import ChosenPenalty


def chosen_text(penalty: ChosenPenalty) -> str:
    """The penalty and what it was chosen from; one at an end of those tried is worth a second look."""
    if not penalty.tried:
        return f"{penalty.penalty:g}, for there are too few rows to choose it by cross-validation"
    most, least = (pick(one.penalty for one in penalty.tried) for pick in (max, min))
    which = f" between {least:g} and {most:g}"
    if penalty.penalty in (most, least):
        which = f", the {'largest' if penalty.penalty == most else 'smallest'} of those tried"
    return f"{penalty.penalty:g}, chosen by cross-validation{which}"


def penalty_table(penalty: ChosenPenalty) -> Table:
    """The held-out log-loss of every penalty tried."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table("Penalties", "penalty", "log-loss of held-out rows", numbers=(0, 1))
    for one in penalty.tried:
        add_row(table, f"{one.penalty:g}", f"{one.log_loss:.5f}")
    return table
