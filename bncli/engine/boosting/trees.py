"""Trees as tables: one over the attributes that a tree asks about, each binned as its questions tell codes apart.

Codes that every question about an attribute answers alike are one coarse code: neighbouring intervals, or levels of a
category. A missing level has one of its own, the last. Every cell of the table lies in one leaf. Tables over the same
attributes are one table over the union of their edges where that has at most MERGED cells, or no more than they have
themselves. Of a cell's numbers the mean over the classes is taken off: probabilities do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.boosting.boosting import Boosted, Tree
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Tables
from bncli.engine.structures.structure import Family, Grouping

MERGED = 128


@dataclass(frozen=True)
class _Table:
    """Over some attributes, ascending: the coarse code of every code of each, and cells (shape..., scores)."""

    attributes: tuple[int, ...]
    binnings: tuple[Index, ...]
    cells: Array


def tables_of(members: Sequence[Boosted], schema: Schema) -> Tables:
    """The average of the members' scores, as one sum of tables."""
    share = 1.0 / len(members)
    bias = np.mean([_by_class(member.prior) for member in members], axis=0)
    found = [_table(tree, schema, share) for member in members for tree in member.trees]
    merged = list(_merged(found, schema))
    families = tuple(_family(table, schema) for table in merged)
    weights = tuple(_by_class(table.cells.reshape(-1, table.cells.shape[-1])) for table in merged)
    return Tables(bias, families, weights)


def _by_class(scores: Array) -> Array:
    """(..., K), their mean 0, from (..., scores)."""
    if scores.shape[-1] == 1:
        return np.concatenate([-0.5 * scores, 0.5 * scores], axis=-1)
    return np.asarray(scores - scores.mean(axis=-1, keepdims=True))


def _table(tree: Tree, schema: Schema, share: float) -> _Table:
    """The tree times `share`."""
    attributes = tuple(sorted({split.attribute for split in tree.splits}))
    levels = len(tree.splits)
    binnings, digits = [], []
    for a in attributes:
        answers = np.zeros(schema.cardinalities[a], np.intp)
        for level, split in enumerate(tree.splits):
            if split.attribute == a:
                answers |= split.right.astype(np.intp) << (levels - 1 - level)
        binning, first = _numbered(answers, schema.attributes[a])
        binnings.append(binning)
        digits.append(answers[first])
    leaf = sum(np.ix_(*digits), start=np.zeros((), np.intp))
    return _Table(attributes, tuple(binnings), share * tree.values[leaf])


def _numbered(answers: Index, attribute: Attribute) -> tuple[Index, Index]:
    """Coarse codes in the order in which answers first occur, and where each of them comes first.

    A missing level has one of its own.
    """
    values = answers[:-1] if attribute.missing else answers
    if isinstance(attribute, NumericAttribute):
        # beyond an edge no question is answered as before it
        begins = np.zeros(len(values), bool)
        np.not_equal(values[1:], values[:-1], out=begins[1:])
        numbers = np.cumsum(begins)
        begins[0] = True
        first = np.flatnonzero(begins)
    else:
        _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
        numbers = np.argsort(np.argsort(first))[inverse]
        first.sort()
    if attribute.missing:
        numbers, first = np.append(numbers, len(first)), np.append(first, len(values))
    return numbers, first


def _merged(tables: Iterable[_Table], schema: Schema) -> Iterable[_Table]:
    """Tables over the same attributes joined, in the order of first use."""
    opened: dict[tuple[int, ...], list[_Table]] = {}
    for table in tables:
        alike = opened.setdefault(table.attributes, [])
        joined = _union(alike[-1], table, schema) if alike else None
        if joined is None:
            alike.append(table)
        else:
            alike[-1] = joined
    return [table for alike in opened.values() for table in alike]


def _union(a: _Table, b: _Table, schema: Schema) -> _Table | None:
    """Both tables as one; None where that has too many cells."""
    pairs = [x * size + y for x, y, size in zip(a.binnings, b.binnings, b.cells.shape, strict=False)]
    numbered = [_numbered(pair, schema.attributes[i]) for pair, i in zip(pairs, a.attributes, strict=True)]
    n_cells = math.prod(len(first) for _, first in numbered)
    n_scores = a.cells.shape[-1]
    if n_cells > max(MERGED, (a.cells.size + b.cells.size) // n_scores):
        return None
    places = ([x[first] for x, (_, first) in zip(t.binnings, numbered, strict=True)] for t in (a, b))
    cells = sum(t.cells[np.ix_(*place)] for t, place in zip((a, b), places, strict=True))
    return _Table(a.attributes, tuple(binning for binning, _ in numbered), np.asarray(cells))


def _family(table: _Table, schema: Schema) -> Family:
    groupings: list[Grouping | None] = [
        None if len(binning) == size else tuple(binning.tolist())
        for binning, size in zip(table.binnings, table.cells.shape, strict=False)
    ]
    return Family.over(table.attributes, schema.cardinalities, groupings=tuple(groupings))
