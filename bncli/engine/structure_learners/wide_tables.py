"""Structure search on wide tables, restricted to the attributes that are most informative about the class.

Searches that compare pairs of attributes hold n x n matrices. A table of many columns is therefore narrowed before the
search: to its informative attributes and, if there are more than the method can compare, to those with the largest
I(X_i; Y) (ties: the first in the schema). The structure found is then extended to the schema. On few rows fewer
attributes are searched, because the best of many thousand arcs would be noise.

Conventions: up to WIDE attributes nothing is narrowed, so that later steps can use the tables that the search counted.
In tan, kdb and hill-climb an attribute outside the search has the class as its only parent; in gbn and skdb it is not
part of the network. kikuchi and interactions limit their candidates themselves.
"""

from __future__ import annotations

from dataclasses import replace

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import ColumnsJoinedOnDemand
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners.dependence import relevance
from bncli.engine.structures.structure import Dag, Structure
from bncli.watch import Note, Watch

WIDE = 1_000
"""Tables with more attributes are narrowed."""
MOST_SEARCHED = {"tan": 1_000, "kdb": 1_000, "skdb": 1_000, "hill-climb": 500, "gbn": 100}
"""The most attributes among which each method searches for arcs if the table has more than WIDE."""
FEW_SEARCHED = 250
"""No more attributes than rows are searched, but this many are searched even with fewer rows."""
OUTSIDE = ("gbn", "skdb")
"""Methods that leave attributes that are not searched out of the network."""


def narrow(counts: Counts, method: str, watch: Watch) -> tuple[Counts, tuple[int, ...]]:
    """Return counts of only the attributes that the method searches, and their indices, ascending.

    Counts of at most WIDE attributes, and counts without rows, are returned unchanged, with all indices. So are those
    for naive Bayes, which searches for nothing.
    """
    everything = tuple(range(len(counts.schema.attributes)))
    if method == "nb" or len(everything) <= WIDE or not counts.has_rows:
        return counts, everything
    searched = informative = counts.schema.informative
    most = min(MOST_SEARCHED.get(method, len(informative)), max(counts.data.n_rows, FEW_SEARCHED))
    if len(informative) > most:
        scores = relevance(counts)
        searched = tuple(sorted(sorted(informative, key=lambda i: (-scores[i], i))[:most]))
        others = "are left out" if method in OUTSIDE else "depend on the class alone"
        what = f"{method} searches for arcs among the {most:,} attributes with the most information about the class"
        watch(Note(f"{what}; the other {len(informative) - most:,} {others}"))
    data = counts.data
    codes = data.codes
    if isinstance(codes, ColumnsJoinedOnDemand):
        codes = ColumnsJoinedOnDemand([codes.columns[i] for i in searched])
    else:
        codes = tuple(codes[i] for i in searched)
    schema = replace(data.schema, attributes=tuple(data.schema.attributes[i] for i in searched))
    return Counts(Dataset(schema, codes, data.labels, data.weights, data.threads, data.split_by)), searched


def widen(structure: Structure, searched: tuple[int, ...], counts: Counts) -> Structure:
    """Extend a structure found among the attributes `searched` to the whole schema of `counts`."""
    n = len(counts.schema.attributes)
    if len(searched) == n:
        return structure
    if not isinstance(structure, Dag):
        return replace(structure, regions=tuple(tuple(searched[i] for i in region) for region in structure.regions))
    parents: list[tuple[int, ...]] = [()] * n
    for i, listed in zip(searched, structure.parents, strict=True):
        parents[i] = tuple(searched[j] for j in listed)
    children = {searched[i] for i in structure.class_children}
    if structure.method not in OUTSIDE:
        children.update(set(counts.schema.informative).difference(searched))
    return replace(
        structure,
        parents=tuple(parents),
        class_children=tuple(sorted(children)),
        class_parents=tuple(searched[i] for i in structure.class_parents),
    )
