"""The moves of a greedy search as lines of a summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bncli.steps.run import NamedMove


def move_lines(moves: Sequence[NamedMove]) -> list[str]:
    """How many, then one aligned line each with its gain; nothing where nobody searched."""
    if not moves:
        return []
    arcs = [f"{move.parent} -> {move.child}" for move in moves]
    gains = [f"{move.gain:,.3f}" for move in moves]
    arc_width, gain_width = max(map(len, arcs)), max(map(len, gains))
    title = f"moves       {len(moves):,} from naive Bayes, with the gain of each in nats"
    return [title] + [
        f"            {move.kind:<7}  {arc:<{arc_width}}  {gain:>{gain_width}}"
        for move, arc, gain in zip(moves, arcs, gains, strict=True)
    ]
