"""K-dependence Bayesian classifier (KDB): each attribute has the class and up to k earlier attributes as parents.

Attributes are taken by decreasing I(X_i; Y). Each gets as parents the min(k, number of earlier ones) earlier attributes
with the largest I(X_i; X_j | Y), in decreasing order (Sahami 1996, KDD). k = 0 is naive Bayes, k = n - 1 the full
network. Ties go to the attribute that comes first in the schema. Cost: one counting pass over all pairs.
"""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.structure_learners.dependence import k_dependence_parents
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.structure import Dag
from bncli.watch import Watch, silent


def learn(counts: Counts, *, k: int, constraints: ArcConstraints | None = None, watch: Watch = silent) -> Dag:
    """Return the k-dependence network over the informative attributes.

    With constraints, raises UsageError as `k_dependence_parents` does.
    """
    _, parents = k_dependence_parents(counts, k, watch, constraints)
    return Dag(parents, counts.schema.informative, method="kdb", options={"k": k})
