"""Intervals for predicted probabilities and for effects, from the uncertainty of the tables of a model.

The scores of a row are treated as normally distributed around S[t, y], with the covariance that the uncertainty
(`engine.parameters.uncertainty`) implies:

    diagonal     Var S[t, y] = sum of the variances of the row's entries; classes are independent
    deviations   Cov(S[t, y] - S[t, 0], S[t, z] - S[t, 0]) = sum over r of d_r[t, y] d_r[t, z], where d_r[t, y] is the
                 sum of the deviations of the row's entries

The sums are over the bias and the families.

Two classes: with s = S[t, 1] - S[t, 0] and z the normal quantile, the interval of P(1 | x_t) is sigmoid(s -+ z sd(s)).
More classes: scores are drawn from the normal distribution DRAWS times, with the same standard normal numbers for every
row; the interval is given by quantiles of each label's probability. Calibration and another prior are applied to the
ends, or to each draw. An interval contains the predicted probability.

Effects are linear in the tables, so the interval of an effect's value is its value -+ z times the standard deviation
over draws of the tables.

An attribute that is unknown in a row is treated as in the scores (`scoring`): its own family is left out, and entries
over unknown parents are averaged. So the interval belongs to the prediction without the value. It does not become wider
because the value, if known, might change the prediction.

**Marginalized missing values.** The score of a row is ln P(y, e_t), where e_t are its observed values. It is a smooth
function of the table entries, with the derivative g[y, c] = P(cell c | e_t, y) for the entry of cell c and class y, and
0 for other classes. Delta method: with V and -T the variances of the entries and the covariances within a distribution,

    Cov(S[t, y], S[t, z]) = sum over distributions d of (sum over c in d of g[y, c] g[z, c] (V_c + T_d) - G_y G_z T_d)

where G_y is the sum of g[y, c] over the cells of d. A distribution given class y does not affect the score of another
class z. A distribution without the class, and the distribution over the classes, affect all scores. Families whose
child is barren sum to 1 and are left out. Without unknown values, g is 1 in a single cell of each family, and the
formula is the one above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import Model, Tables
from bncli.engine.prediction.effects import Effects
from bncli.engine.prediction.factors import table_factors
from bncli.engine.prediction.marginalization import (
    NetworkTables,
    expected_cells,
    incomplete_rows,
    log_joint,
    network_to_marginalize,
)
from bncli.engine.prediction.purification import mixture_of
from bncli.engine.prediction.scoring import Stage
from bncli.errors import ModelError

DRAWS = 500
EFFECT_DRAWS = 200
SEED = 0
NUMBERS_PER_BLOCK = 1 << 21
"""The maximum number of deviations or draws for a block of rows."""
JITTER = 1e-10
"""The fraction of the trace that is added to the diagonal of a covariance matrix, which may be singular."""
LEVEL = 0.9
"""The level of intervals for effects and, if no other is given, of the intervals to which `--abstain-wider` refers."""


class Intervals(NamedTuple):
    """The lower and upper ends of intervals of ln P(y | x_t), shape (K, N) each."""

    low: Array
    high: Array

    def widths(self, labels: Index) -> Array:
        """Return the width (N,) of the interval of one label per row, as a difference of probabilities."""
        rows = np.arange(self.low.shape[1])
        return np.asarray(np.exp(self.high[labels, rows]) - np.exp(self.low[labels, rows]))


class IntervalFinder:
    """A finder of intervals for predicted probabilities; raises ModelError if the model stores no uncertainty.

    used: the schema's attributes whose codes are given. finish: maps the ln P(y | x_t) (K, N) of the tables to the
    final ones. level: the nominal coverage of the intervals, between 0 and 1.
    """

    def __init__(self, model: Model, used: Sequence[int], finish: Callable[[Array], Array], level: float) -> None:
        if model.uncertainty is None:
            raise ModelError("the model stores no intervals", hint="learn it with bncli fit --intervals")
        entries, self._is_diagonal = model.uncertainty.entries, model.uncertainty.method.is_diagonal
        self._network, self._used = None, tuple(used)
        if isinstance(model.predictor, Tables) and model.schema.marginalizes:
            self._network = network_to_marginalize(model.predictor, model.schema)
            entries, totals = np.split(entries, 2, axis=1)
            self._variances = Tables.of_cells(entries, model.predictor.families)
            self._totals = Tables.of_cells(totals, model.predictor.families)
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
        """Return the intervals for rows.

        codes: (N,) for each attribute used. raw (K, N): the ln P(y | x_t) of the tables, before `finish`.
        """
        low, high = np.empty_like(raw), np.empty_like(raw)
        per_row = max(self._n_sums, DRAWS * self._n_labels if self._n_labels > 2 else 1)
        step = max(1, NUMBERS_PER_BLOCK // per_row)
        for start in range(0, raw.shape[1], step):
            rows = slice(start, min(start + step, raw.shape[1]))
            # the uncertainty's entries summed over the families of each row, (*entries.shape[:-1], rows)
            sums = np.zeros((self._n_sums, rows.stop - start))
            indices = [column[rows].astype(np.intp) for column in codes]
            indices += [np.take(coarse, indices[p], mode="clip") for p, coarse in self._regrouped]
            self._sums.add_to(sums, indices)
            # without the row of zeros, if there is one
            n_kept = int(np.prod(self._shape))
            sums = sums[:n_kept].reshape(*self._shape, rows.stop - start)
            low[:, rows], high[:, rows] = self._bounds(sums, raw[:, rows])
        # rows that need inference replace what look-ups gave for them
        if self._network is not None:
            by_attribute = dict(zip(self._used, codes, strict=True))
            incomplete = incomplete_rows(self._network, by_attribute)
            for start in range(0, len(incomplete), step):
                some = incomplete[start : start + step]
                known = {a: column[some] for a, column in by_attribute.items()}
                covariances = score_covariances(self._network, self._variances, self._totals, known)
                if self._n_labels == 2:
                    # Var(S_1 - S_0) = (-1, 1) Sigma (-1, 1)'
                    variance = np.einsum("tyz,y,z->t", covariances, (-1.0, 1.0), (-1.0, 1.0))
                    ends = self._two_class_intervals(variance, raw[:, some])
                else:
                    ends = self._many_class_intervals(self._draw_deviations(covariances), raw[:, some])
                low[:, some], high[:, some] = ends
        return Intervals(low, high)

    def _bounds(self, sums: Array, raw: Array) -> tuple[Array, Array]:
        """Return the lower and upper ends (K, N) of the intervals of rows.

        sums (..., N): the uncertainty's entries, summed over the families of each row. raw (K, N): as in `find`.
        """
        if self._n_labels == 2:
            return self._two_class_intervals(
                sums.sum(axis=0) if self._is_diagonal else np.square(sums[:, 0]).sum(axis=0), raw
            )
        if self._is_diagonal:
            # (K, N, DRAWS): classes are independent
            return self._many_class_intervals(
                np.sqrt(np.maximum(sums, 0.0))[:, :, np.newaxis] * self._draws[:, np.newaxis], raw
            )
        # covariances D'D of each row, (N, K - 1, K - 1)
        return self._many_class_intervals(self._draw_deviations(np.einsum("rat,rbt->tab", sums, sums)), raw)

    def _draw_deviations(self, covariances: Array) -> Array:
        """Draw normal deviations (K, N, DRAWS) with covariances (N, K, K), or (N, K - 1, K - 1).

        In the latter case they are covariances of the differences from the first class, whose deviations are 0.
        """
        n_rows, n_drawn = covariances.shape[:2]
        least = JITTER * np.trace(covariances, axis1=1, axis2=2) + np.finfo(np.float64).tiny
        # Sigma = root root' of each row, times the draws that all rows share
        roots = np.linalg.cholesky(covariances + least[:, np.newaxis, np.newaxis] * np.eye(n_drawn))
        drawn = np.zeros((self._n_labels, n_rows, DRAWS))
        # (rows, classes, DRAWS) to (classes, rows, DRAWS); with covariances of differences the first class stays 0
        drawn[-n_drawn:] = (roots @ self._draws[-n_drawn:]).transpose(1, 0, 2)
        return drawn

    def _two_class_intervals(self, variance: Array, raw: Array) -> tuple[Array, Array]:
        s, width = raw[1] - raw[0], self._z * np.sqrt(np.maximum(variance, 0.0))
        differences = (s + sign * width for sign in (-1.0, 0.0, 1.0))
        # the middle one is the prediction itself, so that the interval contains it whatever `finish` does
        ends = [self._finish(-np.logaddexp(0.0, np.stack([d, -d]))) for d in differences]
        return np.minimum.reduce(ends), np.maximum.reduce(ends)

    def _many_class_intervals(self, drawn: Array, raw: Array) -> tuple[Array, Array]:
        """Return lower and upper ends (K, N) of intervals from draws (K, N, DRAWS) of deviations from the scores."""
        scores = raw[:, :, np.newaxis] + drawn
        scores -= scores.max(axis=0)
        scores -= np.log(np.exp(scores).sum(axis=0))
        drawn = self._finish(scores.reshape(len(raw), -1)).reshape(scores.shape)
        tail = (1 - self._level) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=2)
        log_p = self._finish(raw)
        return np.minimum(low, log_p), np.maximum(high, log_p)


def score_covariances(network: NetworkTables, variances: Tables, totals: Tables, codes: Mapping[int, Codes]) -> Array:
    """Return the covariances (N, K, K) of ln P(y, e_t) by the delta method, up to a term that all classes share.

    e_t are the observed values of row t. variances, totals: V and T of the module's formula for every entry, except
    that `variances` has V + T for the entries of distributions over the classes. codes[i] (N,): the codes of schema
    attribute i.
    """
    log_p = log_joint(network, codes, np.arange(len(next(iter(codes.values())))))
    # (N, K, K), from the variances of the bias; `diagonals` is a writable view of their diagonals
    result = np.tile(np.diag(variances.bias), (log_p.shape[1], 1, 1))
    diagonals = np.einsum("tyy->ty", result)
    for f, rows, cells, p in expected_cells(network, codes, log_p):
        # own: V at the possible cells, (N, P, C, K); shared: T of their distributions, (N, P, K)
        family, own, shared = network.tables.families[f], variances.weights[f][cells], totals.weights[f][cells[:, :, 0]]
        of_parents = p.sum(axis=3)
        # the class's own distribution given the parents: all classes share one T
        if family.child is None:
            diagonals[rows] += np.einsum("ytpc,ytpc,tpcy->ty", p, p, own)
            result[rows] -= np.einsum("ytp,ztp,tpy->tyz", of_parents, of_parents, shared)
        # one distribution per class: classes are independent
        elif family.by_class:
            diagonals[rows] += np.einsum("ytpc,ytpc,tpcy->ty", p, p, own + shared[:, :, np.newaxis])
            diagonals[rows] -= np.einsum("ytp,ytp,tpy->ty", of_parents, of_parents, shared)
        else:
            # a distribution without the class: all classes share its entries, whose columns are equal
            result[rows] += np.einsum("ytpc,ztpc,tpcy->tyz", p, p, own + shared[:, :, np.newaxis])
            result[rows] -= np.einsum("ytp,ztp,tpy->tyz", of_parents, of_parents, shared)
    return result


def effect_margins(model: Model, effects: Effects) -> list[Array] | None:
    """Return half the width of the intervals for every effect's values, one array (n_1, n_2, ..., K) per effect.

    The half-widths are z times the standard deviation of the effect over EFFECT_DRAWS draws of the tables, where z is
    the normal quantile for intervals of level LEVEL. The result is None for a model without uncertainty or with very
    many tables, whose effects are not drawn.
    """
    uncertainty, schema = model.uncertainty, model.schema
    if uncertainty is None or mixture_of(model.predictor, schema).averaged().tables:
        return None
    entries, rng = uncertainty.entries, np.random.default_rng(SEED)
    if schema.marginalizes:
        # the variances; the totals of the distributions follow them
        entries = np.split(entries, 2, axis=1)[0]
    squares = [np.zeros(effect.tensor.shown.shape) for effect in effects.effects]
    effect_numbers = {effect.tensor.attributes: place for place, effect in enumerate(effects.effects)}
    for _ in range(EFFECT_DRAWS):
        if uncertainty.method.is_diagonal:
            # a draw of the entries' deviations from their mean, which is enough, as effects are linear in the tables
            cells = np.sqrt(entries) * rng.standard_normal(entries.shape)
        else:
            drawn = np.tensordot(rng.standard_normal(len(entries)), entries, 1)
            cells = np.concatenate([np.zeros((1, drawn.shape[1])), drawn])
        score = mixture_of(Tables.of_cells(cells, model.predictor.families), schema).averaged().purified(schema)
        for tensor in score.calibrated(model.calibration).tensors:
            squares[effect_numbers[tensor.attributes]] += np.square(tensor.shown)
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    return [z * np.sqrt(total / EFFECT_DRAWS) for total in squares]
