"""K-dependence Bayesian classifier: each attribute has the class and up to k earlier attributes as parents.

Attributes are taken in the order of falling I(X_i; Y); each gets as parents the min(k, number of earlier ones)
earlier attributes with the largest I(X_i; X_j | Y), listed in falling order (Sahami 1996, KDD). k = 0 is naive
Bayes; k = n - 1 the full network.

Conventions: every tie goes to the attribute that comes first in the schema. Cost: one counting pass over all pairs.
"""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.structure_learners.k_dependence import order_attributes
from bncli.engine.structures.structure import Dag
from bncli.watch import Watch, silent


def learn(counts: Counts, *, k: int, watch: Watch = silent) -> Dag:
    """Return the k-dependence network over the informative attributes."""
    parents = order_attributes(counts, k, watch).parents
    return Dag(parents, counts.schema.informative, method="kdb", options={"k": k})
