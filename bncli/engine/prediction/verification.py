"""The self-test of a model: made-up rows, and what it said of them when it was made, to be scored again anywhere.

Of every attribute each code comes up about as often as any other, in an order of its own, so that the rows look up
every table at many of its cells. Every fourth row lacks about half of its values. None of it is taken from training
rows.

Conventions: the random stream is fixed, so that equal models have equal self-tests. Where a row that lacks values would
take too large a table (missing values marginalized over a dense network), no row lacks any.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bncli.engine.data.self_test import SelfTest
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Model
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.errors import BncliError

ROWS = 32
LACKING = 4
"""Every so-manyeth row lacks values."""
EXPORT_ROWS = 10_000
"""At least so many rows an export is compared with its model on."""
TOLERANCE = 1e-9
"""Probabilities that differ by no more agree: what sums in another order, or another machine's exp, may do to them."""


def with_self_test(model: Model) -> Model:
    """The model with its self-test; cost: compiling it as for scoring, and scoring 32 rows."""
    cardinalities = np.array([model.schema.cardinalities[i] for i in self_tested(model)], np.intp)
    rng = np.random.Generator(np.random.PCG64(0))
    complete = _complete_rows(cardinalities, rng)
    lacking = (np.arange(ROWS) % LACKING == 0) & (rng.random(complete.shape) < 0.5)
    codes = np.where(lacking, cardinalities[:, None], complete)
    try:
        probabilities = probabilities_of(model, codes)
    except BncliError:
        codes, probabilities = complete, probabilities_of(model, complete)
    return replace(model, self_test=SelfTest(codes, probabilities))


def _complete_rows(cardinalities: Index, rng: np.random.Generator) -> Index:
    """Codes (attributes, rows): each code of an attribute as often as any other, give or take one."""
    codes = np.empty((len(cardinalities), ROWS), np.intp)
    for row, cardinality in zip(codes, cardinalities, strict=True):
        row[:] = rng.permutation(rng.permutation(cardinality)[np.arange(ROWS) % cardinality])
    return codes


def self_tested(model: Model) -> tuple[int, ...]:
    """The attributes, ascending, whose codes a self-test has."""
    return tuple(sorted(model.attributes))


def probabilities_of(model: Model, codes: Index) -> Array:
    """P(y | x_t) as the model says it here and now, shape (K, rows); `codes` as in a self-test."""
    scorer, by_attribute = compile_scorer(model), dict(zip(self_tested(model), codes, strict=True))
    used = [by_attribute[attribute].astype(np.uint32) for attribute in scorer.used]
    return np.exp(log_probabilities(scorer, used, codes.shape[1]))


def largest_change(model: Model, test: SelfTest) -> float:
    """max |dP| between what the model says of the rows now and what it said when it was made."""
    return float(np.abs(probabilities_of(model, test.codes) - test.probabilities).max(initial=0.0))
