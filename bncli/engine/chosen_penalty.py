"""A penalty that rows held out have chosen, and what they told on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Tried(NamedTuple):
    """A penalty lambda, and the log-loss a row, in nats, of rows that were held out."""

    penalty: float
    log_loss: float


class TriedArcs(NamedTuple):
    """A choice among the arcs that a search found (`class`, `none`, `supported`, `all`), and how many arcs that leaves.

    `penalty` is the best lambda with them, `log_loss` that of held-out rows there, in nats.
    """

    arcs: str
    n_arcs: int
    penalty: float
    log_loss: float


class Shrinkage(NamedTuple):
    """How far tables are shrunk towards the class frequencies: the factor that is left of their log-odds, below 1.

    `log_loss` is that of held-out rows then, in nats.
    """

    factor: float
    log_loss: float


@dataclass(frozen=True)
class ChosenPenalty:
    """A penalty that cross-validation chose, and all that were tried, in the order in which they were.

    `arcs` are the choices of arcs that competed on the same rows, if any did; `shrinkage` is what these rows asked for
    beside the penalty, None for nothing.
    """

    penalty: float
    tried: tuple[Tried, ...]
    arcs: tuple[TriedArcs, ...] = ()
    shrinkage: Shrinkage | None = None

    @property
    def log_loss(self) -> float | None:
        """That of rows that were held out, as the model is in the end; None where none were."""
        if self.shrinkage is not None:
            return self.shrinkage.log_loss
        return next((one.log_loss for one in self.tried if one.penalty == self.penalty), None)


class HeldOut(NamedTuple):
    """Mean losses of rows that were held out while something was chosen by them: of the model, and of the base.

    The base is to answer with the class frequencies of the rows learnt from, whatever the row. Nats a row.
    """

    log_loss: float
    base_log_loss: float
