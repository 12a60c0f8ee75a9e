"""95 % confidence intervals of metrics, by bootstrap over units.

The models are fixed and the sample of tested units is random: an interval covers the expected metric of these models on
new units. A unit is a row, or all rows with the same value of a grouping column.

Units are resampled with replacement B = 1,000 times, which gives every unit u a count c_u in each replicate. All
metrics here are functions of sums over units, so the sums of all replicates are one matrix product:

    sums[b, m] = sum over u of c[b, u] S[u, m],    S[u, m]: weighted sum over the rows t of unit u of x[t, m]

The AUC of two classes is linear in the counts of each class, up to a term of order 1/n (DeLong, DeLong &
Clarke-Pearson 1988). Let V_t be the fraction of the rows of the other class against which row t is ranked correctly,
and let * mark values in a replicate:

    auc* = mean* of V over the rows of one class + mean* of V over the rows of the other - auc

For more classes V_t is the mean over the pairs that include the class of row t. Rows are ranked within the fold that
predicted them.

The interval is BCa (bias-corrected and accelerated; Efron 1987, JASA 82). Let theta be the metric, z0 = Phi^-1(fraction
of replicates below theta), d_u the mean of the jackknife values minus the value without unit u, and z = -+1.96. The
ends of the interval are the quantiles of the replicates at

    Phi( z0 + (z0 + z) / (1 - a (z0 + z)) ),    a = sum of d_u^3 / (6 (sum of d_u^2)^(3/2))

Under cross-validation the models of different folds share training rows: a row on which one model is tested is a
training row of the others. Resampling units does not reflect this. To second order in 1/n, the mean of n test losses
has the variance

    s^2 / n + tr(C^2) / n^2,    C = E[psi g'],    and test loss - training loss = -tr(C) / n

where s^2 is the variance of the test losses of the fitted models, g is the gradient of a row's loss with respect to the
parameters, and psi / n is the contribution of a row to their estimates. For maximum likelihood, C is minus the
identity, so that for n units

    overlap variance = (test log-loss - training log-loss) / n        (`overlap_variance`; 0 if that is negative)

Penalties make the eigenvalues of -C smaller than 1, which makes this an upper bound. All intervals are widened by the
factor sqrt(1 + overlap variance / variance of the log-loss over units): their distances from the metric are multiplied
by it. With F folds it is at most sqrt(F), the factor for folds that err alike. It tends to 1 as the number of rows
grows, if the number of parameters is fixed and the attributes are informative about the class. Without the second term
the variance is the one given by Bayle, Bayle, Janson & Mackey (2020, NeurIPS 33); Bates, Hastie & Tibshirani (2023,
JASA 119) show how much too narrow such intervals are in small samples, and widen them by many more fits. Blocks by time
are not widened, because no block is learned from before it is tested.

Conventions:
- Under cross-validation a metric is a mean over folds, and the interval is shifted by the difference between that mean
  and the metric of all rows together. A row that several repeats predicted enters with all its predictions.
- If there are more than MOST_GROUPS units, they are assigned at random to that many groups, which are resampled instead
  of single units. The variance of a mean is the same on average, and the cost does not grow with the number of units.
- Row weights are multiplicities: a row of weight 3 counts as three units, unless units are given.
- The replicates of a proportion of exactly 0 or 1 do not vary, so its interval is Wilson's (1927). It contains all
  proportions p with |p^ - p| <= z sqrt(p (1 - p) / n), where p^ is the observed proportion and n the number of units in
  the denominator, divided by the square of the widening factor. Wilson's interval is also used for an auc or a balanced
  accuracy of 0 or 1, where n is multiplied by the proportion of rows of the rarest class.
- There is no BCa interval (None) if there are fewer than two units, and no interval of the AUC of two classes if there
  are fewer than two rows of a class. ECE has none: in a sample it is biased upwards, so resampling does not show where
  the true value is.

Cost: a sort of the rows per class for auc, at most B times MOST_GROUPS random numbers, and one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Integers, distinct

Interval = tuple[float, float]
_NORMAL = NormalDist()
Z = _NORMAL.inv_cdf(0.975)
"""The normal quantile of a 95 % interval, computed without scipy, whose import takes long."""
REPLICATES = 1000
MOST_GROUPS = 5000
_MOST_COPIES = 2_000_000
"""The approximate maximum number of units into which weighted rows are divided."""
_BLOCK_ROWS = 1 << 16
_BLOCK_REPLICATES = 250
_RANGES = {
    **dict.fromkeys(("accuracy", "error", "rmse", "auc", "balanced_accuracy"), (0.0, 1.0)),
    "log_loss": (0.0, math.inf),
    "brier": (0.0, 2.0),
    "cll": (-math.inf, 0.0),
    "mcc": (-1.0, 1.0),
}


class PredictedBlock(NamedTuple):
    """Rows predicted by one model: their positions (n,), ln P(c | x_t) (K, n), and decisions (n,) or None.

    A negative decision means that the row is not decided.
    """

    rows: Index
    log_p: Array
    decisions: Integers | None = None


@dataclass(frozen=True)
class MetricIntervals:
    """Intervals of metrics, keyed by name; an interval is None if undefined.

    - by_label: for each label, the intervals of precision, recall, f1 and the rates of `groups`, keyed by name
    - method: a description of the method, with the number of units
    - overlap_variance: the variance of the log-loss that is due to shared training rows, in squared nats, by which the
      intervals were widened
    """

    metrics: dict[str, Interval | None]
    by_label: tuple[dict[str, Interval | None], ...]
    method: str
    overlap_variance: float = 0.0


def measure_intervals(
    blocks: Sequence[PredictedBlock],
    labels: Integers,
    weights: Array | None,
    reported: Mapping[str, float | None],
    *,
    units: Integers | None = None,
    overlap_variance: float = 0.0,
    seed: int = 0,
) -> MetricIntervals:
    """Return the intervals of the `reported` metrics of predictions, which are means over the blocks.

    - labels: (N,); weights: (N,), or None if all are 1; units: (N,), or None if each row is a unit. Every row is in at
      least one block
    - overlap_variance: the variance of the log-loss that is due to shared training rows, in squared nats

    Metrics of single labels are computed from the decisions if the blocks have them.
    """
    n_labels, n_rows = len(blocks[0].log_p), len(labels)
    n_units = n_rows if units is None else len(distinct(units))
    if n_units == n_rows:
        units = None
    what = "row" if units is None else "group"
    method = f"BCa bootstrap over {n_units:,} {what}{'' if n_units == 1 else 's'}, {REPLICATES:,} replicates"
    n_effective = effective_units(n_rows, weights, units)
    weights = np.ones(n_rows) if weights is None else weights
    sums = _sums_of_groups(blocks, labels, weights, units, seed)
    total = sums.sum(axis=0, keepdims=True)
    figures = partial(_metrics_of_resamples, n_labels=n_labels, n_rows=float(total[0, 0]) / len(blocks))
    shares = _numerators_and_denominators(total, n_labels)
    estimates = {name: float(value[0]) for name, value in figures(total).items()}
    # the variance of the log-loss over units, in squared nats
    unit_rows, losses, widening = sums[:, 0], sums[:, 2], 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = losses - losses.sum() / unit_rows.sum() * unit_rows
        variance = float(np.square(deviations).sum() / unit_rows.sum() ** 2)
    if overlap_variance > 0 and 0 < variance < math.inf:
        if len(blocks) > 1:
            folds = len(blocks) * n_rows / sum(len(block.rows) for block in blocks)
            overlap_variance = min(overlap_variance, (folds - 1) * variance)
        widening = math.sqrt(1 + overlap_variance / variance)
    if widening >= 1.005:
        method += f", widened by {100 * (widening - 1):.0f} % because folds share training rows"
    intervals = bootstrap(sums, figures, seed)
    for name, ends in intervals.items():
        if ends is not None and widening != 1:
            low, high = (estimates[name] + widening * (end - estimates[name]) for end in ends)
            intervals[name] = low, high
    n_effective /= widening**2
    for name, (_, denominator) in shares.items():
        if _is_extreme(estimates[name]):
            n = n_effective * float(denominator[0]) / float(total[0, 0])
            intervals[name] = wilson_interval(round(estimates[name]), max(n, 1.0))
    counts = np.bincount(labels[weights > 0], minlength=n_labels)
    rarest = int(counts[counts > 0].min(initial=n_rows))
    for name in ("auc", "balanced_accuracy"):
        value = reported.get(name)
        if value is not None and _is_extreme(value):
            intervals[name] = wilson_interval(round(value), n_effective * rarest / n_rows)
            estimates[name] = value
    if np.count_nonzero(counts) < 2 or (n_labels == 2 and rarest < 2):
        intervals["auc"] = None
    metrics = dict[str, Interval | None]()
    for name, value in reported.items():
        interval = intervals.get(name)
        metrics[name] = None
        if value is not None and interval is not None:
            shift = value - estimates[name]
            metrics[name] = _clip_interval((interval[0] + shift, interval[1] + shift), _RANGES[name])
    names = [name.removesuffix(":0") for name in intervals if name.endswith(":0")]
    by_label = tuple(
        {name: _clip_interval(intervals[f"{name}:{c}"], (0.0, 1.0)) for name in names} for c in range(n_labels)
    )
    return MetricIntervals(metrics, by_label, method, overlap_variance)


def overlap_variance(test_log_loss: float, training_log_loss: float, n_units: float) -> float:
    """Return the variance of a cross-validated log-loss that is due to shared training rows, in squared nats.

    training_log_loss: the mean log-loss of the fitted models on rows that they were trained on. Returns 0 if it is not
    lower than the test log-loss, or if the difference is not finite.
    """
    gap = test_log_loss - training_log_loss
    return gap / n_units if 0 < gap < math.inf else 0.0


def effective_units(n_rows: int, weights: Array | None, units: Integers | None) -> float:
    """Return the number of units; a row of weight w counts as w units if there are no units of several rows."""
    n_units = n_rows if units is None else len(distinct(units))
    return float(n_rows if weights is None else weights.sum()) if n_units == n_rows else float(n_units)


def _clip_interval(ends: Interval | None, limits: Interval) -> Interval | None:
    return None if ends is None else (max(limits[0], ends[0]), min(limits[1], ends[1]))


def _is_extreme(share: float) -> bool:
    """Return whether a proportion is 0 or 1, up to rounding."""
    return min(abs(share), abs(1 - share)) < 1e-12


def _sums_of_groups(
    blocks: Sequence[PredictedBlock], labels: Integers, weights: Array, units: Integers | None, seed: int
) -> Array:
    """Return the weighted sums over the rows of each group of units, (G, m), from which all metrics are computed.

    The first five columns are the weight of all rows, the weight of the correctly classified rows, and the sums of the
    log-loss, of the squares of 1 - P(true class), and of the Brier score. Then follow four groups of K columns, one
    column per class: the sum of V minus its mean, the weight of the rows of the class, the weight of the rows predicted
    as the class, and the weight of the rows in both. If there are decisions, the last three groups follow again, for
    the decisions in place of the predictions and over the rows with a decision.
    """
    rng = np.random.Generator(np.random.PCG64((seed, 1)))
    if units is None:
        # a row of weight w counts as w units
        copies = np.ceil(weights * min(1.0, _MOST_COPIES / max(float(weights.sum()), 1.0))).astype(np.intp)
        unit_rows = np.repeat(np.arange(len(labels)), copies)
        unit_weights = (weights / np.maximum(copies, 1))[unit_rows]
        codes = np.arange(len(unit_rows))
    else:
        unit_rows, unit_weights = np.arange(len(labels)), weights
        codes = np.unique(units, return_inverse=True)[1]
    n_units = int(codes.max(initial=-1)) + 1
    n_groups = min(n_units, MOST_GROUPS)
    if n_units > n_groups:
        codes = rng.permutation(np.arange(n_units) % n_groups)[codes]
    from scipy.sparse import csc_array  # not at the top, because commands that measure nothing do not need it

    of_group = csc_array((unit_weights, (codes, unit_rows)), shape=(n_groups, len(labels)))
    n_labels, has_decisions = len(blocks[0].log_p), blocks[0].decisions is not None
    ranked = _ranking_deviations(blocks, labels, weights)
    sums = np.zeros((n_groups, 5 + (7 if has_decisions else 4) * n_labels))
    for block, own_ranked in zip(blocks, ranked, strict=True):
        for start in range(0, len(block.rows), _BLOCK_ROWS):
            part = slice(start, start + _BLOCK_ROWS)
            rows, log_p = block.rows[part], block.log_p[:, part]
            true, n = labels[rows].astype(np.intp), len(rows)
            positions = np.arange(n)
            log_true, predicted = log_p[true, positions], log_p.argmax(axis=0)
            squares = np.square(np.expm1(log_true))
            columns = np.zeros((n, sums.shape[1]))
            columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3] = 1, predicted == true, -log_true, squares
            columns[:, 4] = np.square(np.exp(log_p)).sum(axis=0) + squares - np.square(np.exp(log_true))
            columns[positions, 5 + true] = own_ranked[part]
            columns[positions, 5 + n_labels + true] = 1
            columns[positions, 5 + 2 * n_labels + predicted] = 1
            columns[positions, 5 + 3 * n_labels + true] = predicted == true
            if block.decisions is not None:
                decided = np.flatnonzero(block.decisions[part] >= 0)
                true, decisions = true[decided], block.decisions[part][decided]
                columns[decided, 5 + 4 * n_labels + true] = 1
                columns[decided, 5 + 5 * n_labels + decisions] = 1
                columns[decided, 5 + 6 * n_labels + true] = decisions == true
            sums += np.asarray(of_group[:, rows] @ columns)
    return sums


def _ranking_deviations(blocks: Sequence[PredictedBlock], labels: Integers, weights: Array) -> list[Array]:
    """Return, for the rows of each block, V minus a mean of V over their class.

    Half of this mean comes from the block and half from all blocks. If it came from the block alone, the units of a
    block would seem to vary less, by the fraction 1 / (number of its units), and not at all if each block is one unit;
    the other half restores the variation between blocks, once in both classes together.

    The values are scaled such that means over all rows of a class are means over blocks. V is 0 in a block with only
    one class.
    """
    n_labels = len(blocks[0].log_p)
    found, masses = list[Array](), np.zeros((len(blocks), n_labels))
    sums = np.zeros((len(blocks), n_labels))
    for block, mass, of_classes in zip(blocks, masses, sums, strict=True):
        true, own_weights = labels[block.rows], weights[block.rows]
        by_class = [np.flatnonzero((true == c) & (own_weights > 0)) for c in range(n_labels)]
        present = [c for c in range(n_labels) if len(by_class[c])]
        values = np.zeros(len(block.rows))
        found.append(values)
        if len(present) < 2:
            continue
        for c in (1,) if n_labels == 2 else present:
            scores = block.log_p[c] - block.log_p[0] if n_labels == 2 else block.log_p[c]
            for other in present:
                if other != c:
                    above, below = by_class[c], by_class[other]
                    values[above] += _shares_below(scores[above], scores[below], own_weights[below])
                    values[below] += 1 - _shares_below(scores[below], scores[above], own_weights[above])
        if n_labels > 2:
            values /= len(present) * (len(present) - 1)
        mass[:] = np.bincount(true, own_weights, n_labels)
        of_classes[:] = np.bincount(true, own_weights * values, n_labels)
    n_defined = np.count_nonzero(masses.any(axis=1))
    means = sums / np.maximum(masses, 1e-300)
    centers = (means + means.sum(axis=0) / np.maximum((masses > 0).sum(axis=0), 1)) / 2
    for block, values, mass, center in zip(blocks, found, masses, centers, strict=True):
        true = labels[block.rows]
        values -= np.where(mass > 0, center, 0)[true]
        factors = masses.sum(axis=0) / np.maximum(mass * n_defined, 1e-300)
        values *= np.where(mass > 0, factors, 0)[true]
    return found


def _shares_below(scores: Array, others: Array, weights: Array) -> Array:
    """Return, for each score, the fraction of the weight of `others` that lies below it, with ties counting half."""
    order = np.argsort(others, kind="stable")
    cumulative = np.concatenate(([0.0], np.cumsum(weights[order])))
    below = cumulative[np.searchsorted(others[order], scores, side="left")]
    not_above = cumulative[np.searchsorted(others[order], scores, side="right")]
    return np.asarray((below + not_above) / 2 / cumulative[-1])


def _numerators_and_denominators(sums: Array, n_labels: int) -> dict[str, tuple[Array, Array]]:
    """Return numerator and denominator, (R,) each, of every metric that is a proportion of rows, from sums (R, m)."""
    total, right = sums[:, 0], sums[:, 1]
    parts = np.split(sums[:, 5:], sums[:, 5:].shape[1] // n_labels, axis=1)
    rows = parts[1]
    true, predicted, hits = parts[-3:]
    shares = {"accuracy": (right, total), "error": (total - right, total)}
    for c in range(n_labels):
        shares[f"precision:{c}"] = hits[:, c], predicted[:, c]
        shares[f"recall:{c}"] = hits[:, c], true[:, c]
        shares[f"selection_rate:{c}"] = predicted[:, c], total
        shares[f"true_positive_rate:{c}"] = hits[:, c], rows[:, c]
        shares[f"false_positive_rate:{c}"] = predicted[:, c] - hits[:, c], total - rows[:, c]
    return shares


def _metrics_of_resamples(sums: Array, n_labels: int, n_rows: float) -> dict[str, Array]:
    """Compute metrics from sums (R, m) as in `_sums_of_groups`; return arrays (R,) by name, NaN where undefined.

    The value for "cll" is for `n_rows` rows, and the value for "auc" is auc* - auc.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        figures = {
            name: numerator / denominator
            for name, (numerator, denominator) in _numerators_and_denominators(sums, n_labels).items()
        }
        log_loss, squares, figures["brier"] = sums[:, 2:5].T / sums[:, 0]
        ranked, rows, predicted, hits = np.split(sums[:, 5 : 5 + 4 * n_labels], 4, axis=1)
        true, decided, decided_hits = np.split(sums[:, -3 * n_labels :], 3, axis=1)
        for c in range(n_labels):
            figures[f"f1:{c}"] = 2 * decided_hits[:, c] / (true[:, c] + decided[:, c])
        recalls, is_present = hits / rows, rows > 0
        figures["balanced_accuracy"] = np.where(is_present, recalls, 0).sum(axis=1) / is_present.sum(axis=1)
        figures["auc"] = np.where(is_present, ranked / rows, 0).sum(axis=1)
        total = sums[:, 0]
        covariance = total * hits.sum(axis=1) - (rows * predicted).sum(axis=1)
        spreads = [np.square(total) - np.square(side).sum(axis=1) for side in (rows, predicted)]
        mcc = covariance / np.sqrt(np.maximum(spreads[0] * spreads[1], 0))
    figures["mcc"] = np.where(np.isfinite(mcc), np.clip(mcc, -1, 1), 0)
    return figures | {"log_loss": log_loss, "rmse": np.sqrt(squares), "cll": -log_loss * n_rows}


def bootstrap(sums: Array, figures: Callable[[Array], dict[str, Array]], seed: int) -> dict[str, Interval | None]:
    """Resample units, and return the BCa interval of each metric, or None if it is undefined.

    sums (G, m) has the sums of each unit, or group of units; `figures` is a function from the sums of R samples of
    units, (R, m), to metrics keyed by name, (R,) each.
    """
    n = len(sums)
    rng = np.random.Generator(np.random.PCG64(seed))
    resampled = np.empty((REPLICATES, sums.shape[1]))
    for start in range(0, REPLICATES, _BLOCK_REPLICATES):
        size = min(_BLOCK_REPLICATES, REPLICATES - start)
        drawn = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        resampled[start : start + size] = counts.astype(np.float64) @ sums
    total = sums.sum(axis=0, keepdims=True)
    replicates, without_one, estimates = figures(resampled), figures(total - sums), figures(total)
    return {name: bca_interval(float(estimates[name][0]), replicates[name], without_one[name]) for name in estimates}


def bca_interval(estimate: float, replicates: Array, jackknife: Array) -> Interval | None:
    """Return the BCa interval of an estimate, from its replicates and its jackknife values (each without one unit).

    Undefined values are NaN. Returns None if the estimate is undefined, or if fewer than half of the replicates or
    fewer than two jackknife values are defined.
    """
    replicates, jackknife = replicates[np.isfinite(replicates)], jackknife[np.isfinite(jackknife)]
    if not math.isfinite(estimate) or len(replicates) < REPLICATES // 2 or len(jackknife) < 2:
        return None
    tolerance = 1e-12 * max(abs(estimate), 1e-3)
    share = float(np.mean(replicates < estimate - tolerance) + np.mean(replicates <= estimate + tolerance)) / 2
    z0 = _NORMAL.inv_cdf(min(max(share, 1 / (2 * len(replicates))), 1 - 1 / (2 * len(replicates))))
    deviations = jackknife.mean() - jackknife
    spread = float(np.square(deviations).sum()) ** 1.5
    acceleration = float((deviations**3).sum()) / (6 * spread) if spread > 0 else 0.0
    levels = []
    for z in (z0 - Z, z0 + Z):
        remainder = 1 - acceleration * z
        levels.append(_NORMAL.cdf(z0 + z / remainder) if remainder > 0 else float(z > 0))
    low, high = np.quantile(replicates, levels)
    return float(low), float(high)


def wilson_interval(share: float, n: float) -> Interval:
    """Return Wilson's 95 % interval of a proportion of n > 0 rows.

    >>> [round(end, 4) for end in wilson_interval(0.0, 10)]
    [0.0, 0.2775]
    """
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return (0.0 if share == 0 else max(0.0, middle - half)), (1.0 if share == 1 else min(1.0, middle + half))
