"""Intervals of predicted probabilities, from the uncertainty of the tables (`engine.parameters.uncertainty`).

The scores of a row are normal around S[t, y], with the covariance that the uncertainty gives them:

    diagonal     Var S[t, y] = sum over families of the variances of the row's entries; classes are independent
    deviations   Cov(S[t, y] - S[t, 0], S[t, z] - S[t, 0]) = sum over r of d_r[t, y] d_r[t, z], where d_r[t, y] is the
                 sum over families of the deviations of the row's entries

Two classes: with s = S[t, 1] - S[t, 0] and z the normal quantile, the interval of P(1 | x_t) is sigmoid(s -+ z sd s).
More classes: DRAWS normal draws of the scores, the same for every row, and the quantiles of each label's probability.
Calibration and another prior are applied to the ends, or to each draw. An interval holds the predicted probability.

Effects are linear in the tables, so the interval of an effect's value is its value -+ z times the standard deviation
over draws of the tables.

An attribute that is unknown in a row is treated as in the scores (`scoring`): its own family is left out, and entries
over unknown parents are averaged. So the interval is that of the prediction without the value; that the value might
have changed the prediction does not widen it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import Model, Tables
from bncli.engine.prediction.effects import Effects
from bncli.engine.prediction.factors import table_factors
from bncli.engine.prediction.purification import mixture_of
from bncli.engine.prediction.scoring import Stage
from bncli.errors import ModelError

DRAWS = 500
EFFECT_DRAWS = 200
SEED = 0
NUMBERS_PER_BLOCK = 1 << 21
"""The most deviations or draws of a block of rows."""
JITTER = 1e-10
"""Share of the trace of a covariance matrix that is added to its diagonal, as it may be singular."""
LEVEL = 0.9
"""The level of the intervals of effects, and of those whose width alone matters, for `--abstain-wider`."""


class Intervals(NamedTuple):
    """Lower and upper ends, ln P(y | x_t), shape (K, N) each."""

    low: Array
    high: Array

    def widths(self, labels: Index) -> Array:
        """Return the width (N,) of the interval of one label per row, as a difference of probabilities."""
        rows = np.arange(self.low.shape[1])
        return np.asarray(np.exp(self.high[labels, rows]) - np.exp(self.low[labels, rows]))


class IntervalFinder:
    """Finds the intervals of predicted probabilities. Raises ModelError for a model without uncertainty.

    used: the schema's attributes that the codes belong to. finish: maps ln P(y | x_t) (K, N) of the tables to the final
    ones. level: the probability of an interval, between 0 and 1.
    """

    def __init__(self, model: Model, used: Sequence[int], finish: Callable[[Array], Array], level: float) -> None:
        if model.uncertainty is None:
            raise ModelError("the model has no intervals", hint="learn it with fit --intervals")
        entries, self._is_diagonal = model.uncertainty.entries, model.uncertainty.method.is_diagonal
        self._shape = entries.shape[:-1]
        stacked = entries.reshape(-1, entries.shape[-1])
        if len(stacked) == 2:  # factors of two labels hold their difference
            stacked = np.concatenate([stacked, np.zeros((1, stacked.shape[1]))])
        tables = Tables.of_cells(stacked, model.predictor.families)
        factors, self._regrouped = table_factors([tables], model.schema, used)
        self._sums = Stage(1.0, stacked[:, :1], factors)
        self._n_sums, self._n_labels = len(stacked), len(model.schema.labels)
        self._finish, self._level = finish, level
        self._z = NormalDist().inv_cdf((1 + level) / 2)
        self._draws = np.random.default_rng(SEED).standard_normal((self._n_labels, DRAWS))

    def find(self, codes: Sequence[Codes], raw: Array) -> Intervals:
        """Return the intervals of rows with these codes; raw (K, N): ln P(y | x_t) of the tables."""
        low, high = np.empty_like(raw), np.empty_like(raw)
        per_row = max(self._n_sums, DRAWS * self._n_labels if self._n_labels > 2 else 1)
        step = max(1, NUMBERS_PER_BLOCK // per_row)
        for start in range(0, raw.shape[1], step):
            rows = slice(start, min(start + step, raw.shape[1]))
            of_rows = self._row_sums([column[rows] for column in codes], rows.stop - start)
            bounds = self._of_two if self._n_labels == 2 else self._of_more
            low[:, rows], high[:, rows] = bounds(of_rows, raw[:, rows])
        return Intervals(low, high)

    def _row_sums(self, codes: Sequence[Codes], n_rows: int) -> Array:
        """Return the uncertainty's entries summed over the families of each row, (*entries.shape[:-1], n_rows)."""
        sums = np.zeros((self._n_sums, n_rows))
        indices = [column.astype(np.intp) for column in codes]
        indices += [np.take(coarse, indices[p], mode="clip") for p, coarse in self._regrouped]
        self._sums.add_to(sums, indices)
        n_kept = int(np.prod(self._shape))
        return sums[:n_kept].reshape(*self._shape, n_rows)

    def _of_two(self, sums: Array, raw: Array) -> tuple[Array, Array]:
        variance = sums.sum(axis=0) if self._is_diagonal else np.square(sums[:, 0]).sum(axis=0)
        s, width = raw[1] - raw[0], self._z * np.sqrt(np.maximum(variance, 0.0))
        ends = [self._finish(_two_classes(s + sign * width)) for sign in (-1.0, 0.0, 1.0)]
        return np.minimum.reduce(ends), np.maximum.reduce(ends)

    def _of_more(self, sums: Array, raw: Array) -> tuple[Array, Array]:
        n_labels, n_rows = raw.shape
        scores = np.repeat(raw[:, :, np.newaxis], DRAWS, axis=2)
        if self._is_diagonal:
            scores += np.sqrt(np.maximum(sums, 0.0))[:, :, np.newaxis] * self._draws[:, np.newaxis]
        else:
            covariance = np.einsum("rat,rbt->tab", sums, sums)
            least = JITTER * np.trace(covariance, axis1=1, axis2=2) + np.finfo(np.float64).tiny
            roots = np.linalg.cholesky(covariance + least[:, np.newaxis, np.newaxis] * np.eye(n_labels - 1))
            scores[1:] += (roots @ self._draws[1:]).transpose(1, 0, 2)
        scores -= scores.max(axis=0)
        scores -= np.log(np.exp(scores).sum(axis=0))
        drawn = self._finish(scores.reshape(n_labels, -1)).reshape(n_labels, n_rows, DRAWS)
        tail = (1 - self._level) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=2)
        log_p = self._finish(raw)
        return np.minimum(low, log_p), np.maximum(high, log_p)


def effect_margins(model: Model, effects: Effects) -> list[Array] | None:
    """Return half the width of the interval of every effect's values, in their shapes (n_1, n_2, ..., K).

    They are z times the standard deviation of the effect over EFFECT_DRAWS draws of the tables. None for a model
    without uncertainty, and for very many tables, whose effects are not drawn.
    """
    uncertainty, schema = model.uncertainty, model.schema
    if uncertainty is None or mixture_of(model.predictor, schema).averaged().tables:
        return None
    entries, rng = uncertainty.entries, np.random.default_rng(SEED)
    squares = [np.zeros(effect.tensor.shown.shape) for effect in effects.effects]
    places = {effect.tensor.attributes: place for place, effect in enumerate(effects.effects)}
    for _ in range(EFFECT_DRAWS):
        if uncertainty.method.is_diagonal:
            cells = np.sqrt(entries) * rng.standard_normal(entries.shape)
        else:
            drawn = np.tensordot(rng.standard_normal(len(entries)), entries, 1)
            cells = np.concatenate([np.zeros((1, drawn.shape[1])), drawn])
        score = mixture_of(Tables.of_cells(cells, model.predictor.families), schema).averaged().purified(schema)
        for tensor in score.calibrated(model.calibration).tensors:
            squares[places[tensor.attributes]] += np.square(tensor.shown)
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    return [z * np.sqrt(total / EFFECT_DRAWS) for total in squares]


def _two_classes(s: Array) -> Array:
    """Return ln P (2, N) from differences s (N,) of scores."""
    return -np.logaddexp(0.0, np.stack([s, -s]))
