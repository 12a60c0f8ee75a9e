"""Missing values as one more level, for searches that compare networks on the same rows.

A score is a sum over rows. On the rows that have a whole family it would be a sum over ever fewer rows as parents are
added, and a search would favour attributes with missing values; the same holds for losses of rows left out. So these
searches see the rows as they would be if a missing value were a value. The network that they find is learnt and used
with missing values marginalized.
"""

from __future__ import annotations

from dataclasses import replace

from bncli.engine.counting.counts import Counts
from bncli.watch import Note, Watch


def with_missing_levels(counts: Counts, method: str, watch: Watch) -> Counts:
    """Return the counts of the same rows, missing values a level of their own; the same object where there are none."""
    data = counts.data
    if not any(data.n_missing):
        return counts
    watch(Note(f"{method} takes a missing value for one more value while it compares networks"))
    attributes = tuple(replace(a, missing=n > 0) for a, n in zip(data.schema.attributes, data.n_missing, strict=True))
    schema = replace(data.schema, attributes=attributes, missing_policy="level")
    return Counts(replace(data, schema=schema))
