"""K-dependence Bayesian classifier: each attribute has the class and up to k earlier attributes as parents.

Attributes are taken in the order of falling I(X_i; Y); each gets as parents the min(k, number of earlier ones)
earlier attributes with the largest I(X_i; X_j | Y), listed in falling order (Sahami 1996, KDD). k = 0 is naive
Bayes; k = n - 1 the full network.

Decided here: every tie goes to the attribute that comes first in the schema. Cost: one counting pass over all pairs.
"""

from __future__ import annotations

from bncli.engine.counts import Counts
from bncli.engine.dependence import conditional_dependence, relevance
from bncli.engine.structure import Dag
from bncli.watch import Watch, silent


def learn(counts: Counts, *, k: int, watch: Watch = silent) -> Dag:
    """The k-dependence network over the informative attributes."""
    schema = counts.data.schema
    scores = relevance(counts)
    dependence = conditional_dependence(counts, watch)
    order = sorted(schema.informative, key=lambda i: (-scores[i], i))
    parents: list[tuple[int, ...]] = [()] * len(schema.attributes)
    for rank, i in enumerate(order):
        parents[i] = tuple(sorted(order[:rank], key=lambda j: (-dependence[i, j], j))[:k])
    return Dag(tuple(parents), schema.informative, method="kdb", options={"k": k})
