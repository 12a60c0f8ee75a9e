"""From rows with missing values to a program that marginalizes them: bucket elimination on unique configurations.

Hidden attributes are marginalized in one fixed order. Every table that a row needs waits in the bucket of the first
attribute of that order that it has hidden in it; a bucket's tables are joined and its attribute is marginalized, and
what remains goes to the bucket of the next hidden attribute, or, if there is none, to the row's score (Dechter 1999,
Artificial Intelligence 113). All rows go through the buckets together, whatever they hide:

- a table carries the rows that use it, and their configuration of it; a *source* of a bucket (a family and the message
  that stands for it where its child was marginalized before) is one table for each set of hidden attributes, its scope;
- two sources are joined on the pairs of configurations that rows show, renumbered; the smallest two first, so that
  row-sized tables are met as late as possible.

Cost of compiling: a few passes over the rows with missing values for every join.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from bncli.engine.inference.building import BucketTable, Builder, Limits, distinct
from bncli.engine.inference.program import Program
from bncli.engine.inference.requisite import Hidden
from bncli.engine.kernels.arrays import Integers, Mask
from bncli.engine.structures.structure import Family

_Inbox = dict[int | None, dict[int | None, list[BucketTable]]]
"""By bucket (None: the rows' scores) and node of origin."""


def compile_rows(
    families: Sequence[Family],
    needed: Sequence[Mask],
    codes: Mapping[int, Integers],
    hidden: Hidden,
    order: Sequence[int],
    limits: Limits,
) -> Program:
    """The program of rows given by their codes; family f counts in the rows needed[f], if it hides something there.

    Raises TooWideError for a table beyond the limit, TooManyError where all tables together go beyond it and there is
    more than one row.
    """
    n_rows = len(needed[0]) if needed else 0
    place = {attribute: p for p, attribute in enumerate(order)}
    cardinalities = {a: n for family in families for a, n in zip(family.attributes, family.shape, strict=True)}
    builder = Builder(n_rows, cardinalities, place, limits)
    inbox: _Inbox = {}
    offset = 1
    for family, rows in zip(families, needed, strict=True):
        for table in _family_tables(family, offset, rows, codes, hidden, place):
            inbox.setdefault(table.scope[0], {}).setdefault(family.child, []).append(table)
        offset += family.n_cells
    for attribute in order:
        sources = [builder.source(tables) for tables in inbox.pop(attribute, {}).values()]
        for message in builder.marginalized(sources) if sources else []:
            bucket = message.scope[0] if message.scope else None
            inbox.setdefault(bucket, {}).setdefault(attribute, []).append(message)
    for tables in inbox.pop(None, {}).values():
        builder.score_slot(tables)
    return builder.program()


def _family_tables(
    family: Family,
    offset: int,
    needed: Mask,
    codes: Mapping[int, Integers],
    hidden: Hidden,
    place: Mapping[int, int],
) -> list[BucketTable]:
    """One table for every set of the family's attributes that some row hides; its cells are numbered from `offset`."""
    strides = [math.prod(family.shape[axis + 1 :]) for axis in range(len(family.shape))]
    masks = np.zeros(len(needed), np.int64)
    for axis, attribute in enumerate(family.attributes):
        if attribute in hidden:
            masks |= hidden[attribute].astype(np.int64) << axis
    masks[~needed] = 0
    tables = []
    for mask in np.unique(masks[masks > 0]).tolist():
        rows = np.flatnonzero(masks == mask)
        base = np.zeros(len(rows), np.intp)
        inside = []
        for axis, attribute in enumerate(family.attributes):
            if mask >> axis & 1:
                inside.append((place[attribute], axis))
            else:
                base += codes[attribute][rows].astype(np.intp) * strides[axis]
        found, ids = distinct(base, family.n_cells)
        cells = np.full(1, offset)
        for _, axis in sorted(inside):
            cells = np.add.outer(cells, np.arange(family.shape[axis]) * strides[axis])
        scope = tuple(family.attributes[axis] for _, axis in sorted(inside))
        tables.append(BucketTable(scope, len(found), rows, ids, np.add.outer(cells, found).ravel()))
    return tables
