"""Columns of a card: the few attributes whose tables together predict best, chosen one at a time.

From the class frequencies on, the attribute joins whose table gains most beside those before it: one Newton step of the
table on the residuals, minus what chance would gain. A joining attribute is followed by a penalised fit of all tables
(`bncli.engine.structure_learners.additive_fit`). The search ends at `columns` attributes, at half as many attributes as
the card may have rows, since a table has two rows or more, or where nothing gains.

Cost: per step one fit, and one weighted count per row and attribute.
"""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.structure_learners.additive_fit import additive_fit
from bncli.engine.structure_learners.interaction_gains import Gains
from bncli.engine.structures.structure import Family, Regions
from bncli.watch import Watch, silent

MOST_INTERVALS = 5
"""Intervals of numeric attributes while they are compared: with more, chance gains hide which attribute tells most."""
LEAST_GAIN = 1.0
"""Least gain of a column, in nats."""


def learn(counts: Counts, *, columns: int, rows: int, watch: Watch = silent) -> Regions:
    """Return one region per chosen attribute, in the order in which they joined."""
    data = counts.with_missing_levels("card", watch).data
    chosen: list[int] = []
    gains: list[float] = []
    while len(chosen) < min(columns, rows // 2):
        left = tuple(i for i in data.schema.informative if i not in chosen)
        if not left:
            break
        families = [Family.over((i,), data.schema.cardinalities) for i in chosen]
        candidates = Gains(*additive_fit(data, families), left, MOST_INTERVALS, watch=watch).of_extensions([()])
        best = max(candidates, key=lambda one: (one.gain, -one.attributes[0]), default=None)
        if best is None or best.gain < LEAST_GAIN:
            break
        chosen.append(best.attributes[0])
        gains.append(best.gain)
    options = {"columns": columns, "rows": rows}
    return Regions(tuple((i,) for i in chosen), method="card", options=options, gains=tuple(gains))
