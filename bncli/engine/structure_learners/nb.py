"""Naive Bayes: the class is the only parent of every attribute."""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.structures.structure import Dag
from bncli.watch import Watch, silent


def learn(counts: Counts, *, watch: Watch = silent) -> Dag:
    """Return the star from the class to every informative attribute."""
    schema = counts.schema
    return Dag(((),) * len(schema.attributes), schema.informative, method="nb")
