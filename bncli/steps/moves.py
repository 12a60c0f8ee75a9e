"""The moves of a greedy search as a report tells them: by the names of columns, in the order they were made."""

from __future__ import annotations

from typing import NamedTuple

from bncli.engine.data.schema import Schema
from bncli.watch import Event, Move, Watch


class NamedMove(NamedTuple):
    """One arc `parent` -> `child` that was added, deleted or reversed, and what the score gained, in nats."""

    kind: str
    parent: str
    child: str
    gain: float


class Moves:
    """A watch that hands every event on and keeps the moves."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._moves: list[Move] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Move):
            self._moves.append(event)
        self._watch(event)

    def named(self, schema: Schema) -> tuple[NamedMove, ...]:
        """The moves seen, between attributes of this schema."""
        name = [attribute.name for attribute in schema.attributes]
        return tuple(NamedMove(m.kind, name[m.parent], name[m.child], m.gain) for m in self._moves)
