"""The parents of a k-dependence network: what KDB and its selective form share.

Attributes are taken in the order of falling I(X_i; Y); each gets as parents the min(k, number of earlier ones)
earlier attributes with the largest I(X_i; X_j | Y), listed in falling order (Sahami 1996, KDD). The first k' < k of
an attribute's parents are therefore its parents in the k'-dependence network.

Every tie goes to the attribute that comes first in the schema. Cost: one counting pass over all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from bncli.engine.counting.counts import Counts
from bncli.engine.structure_learners.arc_scores import conditional_dependence, relevance
from bncli.watch import Watch, silent


@dataclass(frozen=True)
class Ordered:
    """`order`: the informative attributes, the most relevant first; parents[i]: those of schema attribute i."""

    order: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]


def order_attributes(counts: Counts, k: int, watch: Watch = silent) -> Ordered:
    """Return the order of the informative attributes, and up to k parents of each among those before it."""
    schema = counts.schema
    scores = relevance(counts)
    order = tuple(sorted(schema.informative, key=lambda i: (-scores[i], i)))
    parents: list[tuple[int, ...]] = [()] * len(schema.attributes)
    dependence = conditional_dependence(counts, watch)
    for rank, i in enumerate(order):
        parents[i] = tuple(sorted(order[:rank], key=lambda j: (-dependence[i, j], j))[:k])
    return Ordered(order, tuple(parents))
