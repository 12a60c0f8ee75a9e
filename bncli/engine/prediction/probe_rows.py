"""Made-up rows that show all that a model tells apart, to compare a program written from it with the model itself.

Every input shows in turn, whatever the number of rows that takes: each level and each value pooled to one, a text that
no training row had, a missing value; of numbers each cut, the next number above it and one between it and the next cut,
values far outside. The other inputs of such a row are drawn: any of their values alike. None of it is taken
from training rows.

Conventions: every `HIDDEN`-th row that is drawn lacks about half of its values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Model
from bncli.engine.prediction.portable import Input
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities

HIDDEN = 8
Value = float | str | None
"""Of an input in a row: a number, a text, or None for a missing value."""


@dataclass(frozen=True)
class ProbeRows:
    """values[p] (rows,) of input p, and what the model says of them, P(y | x_t), shape (K, rows)."""

    inputs: tuple[Input, ...]
    values: tuple[tuple[Value, ...], ...]
    probabilities: Array

    @property
    def n_rows(self) -> int:
        return len(self.probabilities.T)

    def rows(self) -> list[dict[str, Value]]:
        """Row by row, by the names of the inputs."""
        if not self.values:
            return [{} for _ in range(self.n_rows)]
        names = [one.name for one in self.inputs]
        return [dict(zip(names, row, strict=True)) for row in zip(*self.values, strict=True)]


def probe_rows(model: Model, n_rows: int, rng: np.random.Generator) -> ProbeRows:
    """At least so many rows, and so many that every value of every input is among them."""
    scorer = compile_scorer(model)
    inputs = tuple(Input.of(model.schema.attributes[i]) for i in scorer.used)
    palettes = [_palette(one) for one in inputs]
    n_rows = max(n_rows, sum(map(len, palettes)))
    drawn = _drawn([len(palette) for palette in palettes], n_rows, rng)
    values = tuple(tuple(palette[i] for i in rows) for palette, rows in zip(palettes, drawn, strict=True))
    coded = [np.array([one.code(value) for value in palette]) for one, palette in zip(inputs, palettes, strict=True)]
    codes = [known[rows].astype(np.uint32) for known, rows in zip(coded, drawn, strict=True)]
    return ProbeRows(inputs, values, np.exp(log_probabilities(scorer, codes, n_rows)))


def _palette(one: Input) -> list[Value]:
    """The values that an input shows; None, the missing value, is the first."""
    if one.codes is not None:
        unseen = "never seen"
        while unseen in one.codes:  # which any table may have among its values
            unseen += "!"
        return [None, *one.codes, unseen]
    cuts = one.cuts or ()
    between = [(a + b) / 2 for a, b in itertools.pairwise(cuts)]
    above = [math.nextafter(cut, math.inf) for cut in cuts]
    far = [-1e300, 0.0, 1e300, *(cut * 2 for cut in cuts[-1:]), *(cut * 2 for cut in cuts[:1])]
    return [None, *filter(math.isfinite, (*cuts, *above, *between, *far))]


def _drawn(sizes: Sequence[int], n_rows: int, rng: np.random.Generator) -> list[Index]:
    """Indices into the palettes: each in turn in some rows, else drawn."""
    columns: list[Any] = [rng.integers(0, size, n_rows) for size in sizes]
    lacking = np.arange(n_rows) % HIDDEN == 0
    for column in columns:
        column[lacking & (rng.random(n_rows) < 0.5)] = 0
    first = 0
    for column, size in zip(columns, sizes, strict=True):
        column[first : first + size] = np.arange(size)
        first += size
    return columns
