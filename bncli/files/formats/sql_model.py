"""A portable model as one array of numbers, which a query adds up without knowing of averages or missing tables.

    S[r] of a stage = shift[r] + sum over its terms of numbers[r, base + sum over the axes of stride * digit]

Tables are expanded ("unobserved" has entries of its own), those of one stage over one input are added into one over its
codes, and those of one stage over the same digits into one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bncli.errors import ModelError

if TYPE_CHECKING:
    from bncli.engine.kernels.arrays import Array
    from bncli.engine.prediction.portable import PortableScorer, PortableStage, PortableTable

MOST_NUMBERS = 5_000_000
"""Of a file: some 100 MB."""

Coding = tuple[int, tuple[int, ...]]
"""An input and the digit of each of its codes."""


@dataclass(frozen=True)
class Term:
    """A table: its first cell, and by axis the coding's position in `SqlModel.codings` and the stride."""

    base: int
    axes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SqlStage:
    """As PortableStage, the tables being terms."""

    weight: float
    anew: bool
    shift: tuple[float, ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class SqlModel:
    """numbers (R, cells); of `codings` the first are the inputs themselves, code for code."""

    codings: tuple[Coding, ...]
    stages: tuple[SqlStage, ...]
    numbers: Array


def sql_model(scorer: PortableScorer) -> SqlModel:
    """ModelError where there are too many numbers for a text."""
    size = sum(table.expanded_size for table in scorer.tables)
    if size > MOST_NUMBERS:
        what = f"the model is too large to be written as SQL: {size:,} table entries"
        raise ModelError(what, hint=f"at most {MOST_NUMBERS:,} can be; learn with fewer parents, or with --effort 1")
    places: dict[Coding, int] = {}
    for p, one in enumerate(scorer.inputs):
        places[p, tuple(range(one.unobserved + 1))] = p
    blocks: list[Array] = []
    stages = [_stage(stage, places, blocks) for stage in scorer.stages]
    empty = np.zeros((len(scorer.stages[0].shift), 0))
    return SqlModel(tuple(places), tuple(stages), np.concatenate([empty, *blocks], axis=1))


def _stage(stage: PortableStage, places: dict[Coding, int], blocks: list[Array]) -> SqlStage:
    merged: dict[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], PortableTable] = {}
    for table in map(_over_codes, stage.tables):
        key = (table.inputs, table.digits)
        known = merged.get(key)
        merged[key] = table if known is None else replace(table, entries=known.entries + table.entries)
    terms = []
    for table in merged.values():
        base = sum(block.shape[1] for block in blocks)
        blocks.append(table.entries)
        codings = [places.setdefault(coding, len(places)) for coding in zip(table.inputs, table.digits, strict=True)]
        strides = [math.prod(table.shape[i + 1 :]) for i in range(len(table.shape))]
        terms.append(Term(base, tuple(zip(codings, strides, strict=True))))
    return SqlStage(stage.weight, stage.anew, tuple(stage.shift.tolist()), tuple(terms))


def _over_codes(table: PortableTable) -> PortableTable:
    """Expanded, and over the codes themselves where it has one axis."""
    from bncli.engine.prediction.portable import PortableTable

    table = table.expanded()
    digits = tuple(tuple(map(int, axis)) for axis in table.digits)
    if len(digits) != 1:
        return replace(table, digits=digits)
    codes = tuple(range(len(digits[0])))
    return PortableTable(table.inputs, (codes,), (len(codes),), table.entries[:, list(digits[0])])
