"""Tree-augmented naive Bayes: each attribute has the class and at most one other attribute as parents.

The tree is the maximum-weight spanning tree over the attributes; with the score `cmi` an edge weighs the conditional
mutual information of its ends given the class, in nats, on weighted relative frequencies:

    I(X_i; X_j | Y) = sum over a, b, y of P(a, b, y) ln [ P(a, b | y) / (P(a | y) P(b | y)) ]

Among all trees this one maximises the likelihood (Friedman, Geiger & Goldszmidt 1997, Machine Learning 29). With a
score of families an arc j -> i weighs what it gains, score(i | class, j) - score(i | class). Where the score is
equivalent both directions weigh the same and the spanning tree is the best; where it is not, the best directed tree
over all roots is found instead. A forest need not span: it has only the edges that gain.

Conventions: the root of a tree without directions is its attribute with the highest I(X_i; Y); every tie goes to the
attribute that comes first in the schema. Cost: one counting pass over all pairs; O(n^2) time and memory for weights.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.structure_search.arc_gains import arc_gains
from bncli.engine.structure_search.dependence import conditional_dependence, relevance
from bncli.engine.structure_search.family_score import family_score
from bncli.engine.structures.branching import best_branching
from bncli.engine.structures.spanning_tree import directed_away, spanning_forest, spanning_tree
from bncli.engine.structures.structure import Dag
from bncli.watch import Watch, silent


def learn(counts: Counts, *, structure_score: str = "cmi", forest: bool = False, watch: Watch = silent) -> Dag:
    """The best tree, or forest, over the informative attributes, with the class as a parent of each."""
    schema = counts.schema
    parents: list[tuple[int, ...]] = [()] * len(schema.attributes)
    if schema.informative:
        for child, parent in _arcs(counts, structure_score, forest, watch).items():
            parents[child] = (parent,)
    options: dict[str, str | bool] = {"structure_score": structure_score, "forest": forest}
    return Dag(tuple(parents), schema.informative, method="tan", options=options)


def _arcs(counts: Counts, structure_score: str, forest: bool, watch: Watch) -> dict[int, int]:
    """The parent of every attribute that has one."""
    if structure_score == "cmi":
        return _undirected(counts, conditional_dependence(counts, watch), forest)
    rule = family_score(structure_score)
    gains = arc_gains(counts, rule, watch)
    return _undirected(counts, gains, forest) if rule.equivalent else _directed(counts, gains, forest)


def _undirected(counts: Counts, weights: Array, forest: bool) -> dict[int, int]:
    nodes = counts.schema.informative
    edges = (spanning_forest if forest else spanning_tree)(weights, nodes)
    scores = relevance(counts)
    # the schema's order decides between equally relevant roots
    return directed_away(edges, sorted(nodes, key=lambda i: (-scores[i], i)))


def _directed(counts: Counts, gains: Array, forest: bool) -> dict[int, int]:
    nodes = counts.schema.informative
    parents = best_branching(gains[np.ix_(nodes, nodes)], forest=forest)
    return {nodes[v]: nodes[u] for v, u in enumerate(parents) if u is not None}
