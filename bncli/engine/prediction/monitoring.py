"""Monitoring: counts of scored rows, compared with the training rows of the model that scored them.

Drift of an attribute. With the relative frequencies a_v and e_v of value v among n new and N training rows that have
one of the k values of training,

    PSI = sum over v of (a_v - e_v) ln(a_v / e_v)

is the population stability index in nats. It is the symmetric Kullback-Leibler divergence (Kullback & Leibler 1951). If
both samples come from one distribution, PSI / (1/n + 1/N) is approximately chi-squared with k - 1 degrees of freedom
(Yurdakul 2018), so the mean of PSI is (1/n + 1/N)(k - 1). The usual limits 0.1 and 0.25 ignore n. `p` is the p-value of
Pearson's chi-squared test that the two samples are homogeneous. Values that never occurred in training are not part of
these sums. If x of m new rows and none of N training rows have such values, the probability that chance puts all of
them among the new rows is C(m, x) / C(m + N, x) (Fisher's exact test, one-sided).

An attribute has drifted if its PSI is at least LEAST_PSI and p is at most the limit, or if at least the fraction
LEAST_UNKNOWN of the rows has values that never occurred in training, and this probability by chance is at most the
limit. The limit is ALPHA divided by the number of tests, two per attribute (Bonferroni): on new rows distributed like
the training rows, at most about 1 in 100 reports shows any drift. In PSI a value that does not occur in one of the
samples counts as half a row there. In the test, values with fewer than one expected new row are pooled. Training rows
count by their weights, scaled down if the weights sum to more than the number of rows.

Unusual rows. A row unlike the training rows has a low ln P(x) (`prediction.marginalization.JointModel`). A model may
store the mean and quantiles of ln P(x) over its training rows. From a larger table, at most MOST_ROWS evenly spaced
rows are used. The distribution over a stream is stored as counts in 1 % wide intervals of -ln P(x), in nats (Masson,
Rim & Lee 2019, DDSketch). Training rows have the weights that the data give them, without class weights.

Expected metrics: the accuracy, log-loss and AUC to be expected on rows without labels. If P(y | x_t) is calibrated, the
label of row t is a draw from it, independent of the other rows. Then

    accuracy = mean over t of max_y P(y | x_t),         variance of a row: P (1 - P) at that label
    log-loss = mean over t of H_t = -sum over y of P(y | x_t) ln P(y | x_t),    sum over y of P ln^2 P - H_t^2
    AUC      = sum over t != u of p_t (1 - p_u) ([s_t > s_u] + [s_t = s_u] / 2) / sum over t != u of p_t (1 - p_u)

with p the probability of the second of two labels and s its log-odds (confidence-based performance estimation). The sum
of independent draws is approximately normal, with this mean and variance, which gives the 95 % intervals of accuracy
and log-loss. The interval of the AUC comes from DRAWS draws of all labels.

The AUC needs the log-odds of all rows, which are counted in intervals of width LOG_ODDS_WIDTH. All rows of an interval
are tied at its midpoint. Within an interval the odds of two rows differ by a factor of at most e^LOG_ODDS_WIDTH, so a
tie changes the AUC by at most LOG_ODDS_WIDTH / 4, and the midpoint by at most LOG_ODDS_WIDTH / 2: together less than
0.001. The measured AUC, of rows that have labels, uses the same intervals. Cost: a sort of each block of rows; at most
three counts per interval are stored.

Everything is a sum over rows, so memory does not grow with their number, and the counts of several streams can be
added. Sums are exact, so the order of the rows and their division into blocks do not change even the last digit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.dataset import EncodedAttributes, encode_attributes
from bncli.engine.kernels.arrays import Array, Codes, Integers
from bncli.engine.model import QUANTILES, Model, TrainingLogP
from bncli.engine.prediction.marginalization import JointModel
from bncli.errors import ModelError

ALPHA = 0.01
"""The approximate maximum probability of reporting any drift for new rows distributed like the training rows."""
LEAST_PSI = 0.1
"""A smaller PSI is not called drift, however significant; a PSI above 0.25 is usually called large."""
LEAST_UNKNOWN = 0.05
"""A smaller fraction of rows with values that never occurred in training is not called drift."""
MOST_ROWS = 10_000
"""The maximum number of training rows whose ln P(x) is computed.

More rows would hardly make the lowest quantile, 0.01, more precise.
"""
WIDTH = float(np.log(1.01))
"""The width of an interval of the sketch, on the scale of ln(-ln P(x))."""
_BITS = 53
"""The number of bits of the mantissa of a float64."""
LOG_ODDS_WIDTH = 0.001
"""The width of an interval of log-odds."""
DRAWS = 500
"""The number of draws of all labels for the interval of the AUC."""
_Z = 1.959963984540054
_FARTHEST = 700.0
"""Log-odds are clipped to this absolute value."""
_DRAWN_AT_ONCE = 1 << 19
"""The approximate maximum number of counts drawn at a time."""


class MonitoredModel(NamedTuple):
    """The model that scored the rows.

    - fingerprint: identifies the whole content of the model
    - rows: the number of its training rows
    - held_out_log_loss: nats per row, or None if no rows were held out when the model was learned
    - log_p: the distribution of ln P(x) over training rows, or None if the model does not store it
    """

    fingerprint: str
    class_name: str
    labels: tuple[str, ...]
    rows: int
    held_out_log_loss: float | None = None
    log_p: TrainingLogP | None = None


@dataclass(frozen=True)
class Monitor:
    """Counts of scored rows, and the model that scored them.

    no_log_p: the reason why ln P(x) is not computed, or "" if it is.
    """

    model: MonitoredModel
    tally: MonitorCounts
    no_log_p: str = ""

    @cached_property
    def drifts(self) -> tuple[Drift, ...]:
        if not self.tally.rows:
            return (Drift(None, None, None, None, 1.0, False),) * len(self.tally.attributes)
        return tuple(drift_of(a.counts, a.training, a.unknown, self.n_tests) for a in self.tally.attributes)

    @property
    def n_tests(self) -> int:
        """The number of tests by which ALPHA is divided: two per attribute, and at least 1."""
        return max(2 * len(self.tally.attributes), 1)

    @property
    def drifted(self) -> tuple[str, ...]:
        """The names of the attributes that have drifted, by decreasing severity."""
        pairs = zip(self.tally.attributes, self.drifts, strict=True)
        drifted = [(-drift.severity, attribute.name) for attribute, drift in pairs if drift.drifted]
        return tuple(name for _, name in sorted(drifted, key=lambda pair: pair[0]))

    @property
    def on_training_rows(self) -> bool:
        """Whether the number of rows and the counts of all attributes are the same as for the training rows."""
        known = self.tally.attributes
        same = all(np.array_equal(a.counts, a.training) for a in known)
        return bool(known) and self.tally.rows == self.model.rows and same

    @property
    def below_training(self) -> float | None:
        """The fraction of rows with ln P(x) below the lowest stored quantile of training rows; None if unknown."""
        if self.model.log_p is None or not self.tally.log_p.n:
            return None
        return self.tally.sketch.share_below(self.model.log_p.quantiles[0])

    @property
    def only_label(self) -> str | None:
        """The label that all labelled rows have, or None if no row is labelled or the labels differ."""
        counts = self.tally.classes
        return self.model.labels[int(counts.argmax())] if np.count_nonzero(counts) == 1 else None

    def predictions(self) -> Iterator[tuple[str, float]]:
        """Yield each label and the fraction of rows for which it is the most probable label, 0 without rows."""
        for label, count in zip(self.model.labels, self.tally.predictions.tolist(), strict=True):
            yield label, count / self.tally.rows if self.tally.rows else 0.0

    @cached_property
    def expected(self) -> dict[str, ExpectedFigure]:
        """The expected accuracy, log_loss and auc of all rows, keyed by name.

        log_loss and auc are undefined if some rows were counted by older versions, which did not record what they need.
        auc is also undefined unless there are two labels.
        """
        tally = self.tally
        sure = tally.confidence
        accuracy = sum_of_draws(sure.n, float(sure.total), float(sure.total - sure.squares), 1.0)
        log_loss, auc = ExpectedFigure(), ExpectedFigure()
        if tally.entropy.n == tally.rows:
            variance = float(tally.loss_variance.total)
            log_loss = sum_of_draws(tally.rows, float(tally.entropy.total), variance, np.inf)
        if tally.log_odds.rows.total() == tally.rows > 0:
            auc = tally.log_odds.expected_auc()
        return {"accuracy": accuracy, "log_loss": log_loss, "auc": auc}

    @property
    def accuracy(self) -> float | None:
        """The accuracy on the labelled rows; None if there are none, or if older versions counted some of them."""
        return self.tally.correct.mean if self.tally.correct.n == self.tally.log_loss.n else None

    @property
    def auc(self) -> float | None:
        """The AUC on the labelled rows if there are two labels; None if undefined or if older versions counted some."""
        log_odds = self.tally.log_odds
        n_counted = log_odds.others.total() + log_odds.events.total()
        return log_odds.measured_auc() if n_counted == self.tally.log_loss.n > 0 else None


@dataclass
class MonitorCounts:
    """Counts of all rows so far; log_loss, correct and classes count only labelled rows.

    predictions, classes (K,): the number of rows by predicted and by true label. confidence: the probabilities of the
    predicted labels. log_p, sketch: ln P(x). entropy, loss_variance: the mean and variance of each row's log-loss if
    its label is drawn from the prediction. log_odds: the log-odds of the second label, empty unless there are two.
    """

    attributes: list[AttributeCounts]
    predictions: Array
    rows: int = 0
    confidence: Moments = field(default_factory=lambda: Moments())
    log_p: Moments = field(default_factory=lambda: Moments())
    sketch: LogProbabilitySketch = field(default_factory=lambda: LogProbabilitySketch())
    log_loss: Moments = field(default_factory=lambda: Moments())
    classes: Array = field(default_factory=lambda: np.zeros(0))
    entropy: Moments = field(default_factory=lambda: Moments())
    loss_variance: Moments = field(default_factory=lambda: Moments())
    correct: Moments = field(default_factory=lambda: Moments())
    log_odds: LogOddsCounts = field(default_factory=lambda: LogOddsCounts())

    def merge(self, other: MonitorCounts) -> None:
        """Add the counts of other rows that the same model scored."""
        for mine, theirs in zip(self.attributes, other.attributes, strict=True):
            mine.counts = mine.counts + theirs.counts
            mine.missing, mine.unseen = mine.missing + theirs.missing, mine.unseen + theirs.unseen
        self.predictions, self.classes = self.predictions + other.predictions, self.classes + other.classes
        self.rows += other.rows
        self.confidence.merge(other.confidence)
        self.log_p.merge(other.log_p)
        self.log_loss.merge(other.log_loss)
        self.sketch.counts.update(other.sketch.counts)
        self.entropy.merge(other.entropy)
        self.loss_variance.merge(other.loss_variance)
        self.correct.merge(other.correct)
        self.log_odds.merge(other.log_odds)


@dataclass
class AttributeCounts:
    """Counts of one attribute among the new rows.

    training (k,): the weight of each value in training. counts (k,): the number of new rows with each of these values.
    missing_counts: whether the last of them stands for missing values. missing, unseen: the number of new rows with a
    missing value, and with a value that never occurred in training.
    """

    name: str
    training: Array
    missing_counts: bool
    counts: Array
    missing: int = 0
    unseen: int = 0

    @property
    def unknown(self) -> int:
        """The number of rows with an unseen value, or with a missing one if no value was missing in training."""
        return self.unseen + (0 if self.missing_counts else self.missing)


@dataclass
class Moments:
    """The number of values, their exact sum, and the exact sum of their rounded squares."""

    n: int = 0
    total: Fraction = Fraction()
    squares: Fraction = Fraction()

    def add(self, values: Array) -> None:
        """Add the values (rows,) of more rows."""
        self.n += len(values)
        self.total += _exact_sum(values)
        self.squares += _exact_sum(values * values)

    def merge(self, other: Moments) -> None:
        """Add the values of other rows."""
        self.n, self.total, self.squares = self.n + other.n, self.total + other.total, self.squares + other.squares

    @property
    def mean(self) -> float | None:
        return float(self.total / self.n) if self.n else None

    @property
    def variance(self) -> float:
        """The unbiased sample variance of the values, or 0 for fewer than two values."""
        if self.n < 2:
            return 0.0
        return float(max(self.squares - self.total * self.total / self.n, Fraction()) / (self.n - 1))


def _exact_sum(values: Array) -> Fraction:
    """Return the sum of values (rows,) without rounding.

    For each exponent, the upper and the lower halves of the mantissas are summed separately as integers.
    """
    if not len(values):
        return Fraction()
    # value = mantissa * 2^exponent; the 53 bits of the mantissa are split into 27 and 26, so that sums of 2^26 rows are
    # exact in float64
    mantissas, exponents = np.frexp(values)
    high = np.floor(np.ldexp(mantissas, _BITS - 26))
    low = np.ldexp(mantissas, _BITS) - np.ldexp(high, 26)
    least = int(exponents.min())
    highs, lows = (np.bincount(exponents - least, half).tolist() for half in (high, low))
    parts = enumerate(zip(highs, lows, strict=True))
    # the rest is arithmetic of Python's integers, without rounding
    whole = sum(((int(first) << 26) + int(second)) << i for i, (first, second) in parts)
    return whole * Fraction(2) ** (least - _BITS)


class LogProbabilitySketch:
    """Counts of rows by intervals of -ln P(x): interval k reaches from exp((k - 1) WIDTH) to exp(k WIDTH) nats."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: Counter[int] = Counter(counts)

    def add(self, log_p: Array) -> None:
        """Count rows with these ln P(x)."""
        nats = np.maximum(-log_p, 1e-9)
        values, counts = np.unique(np.ceil(np.log(nats) / WIDTH).astype(np.int64), return_counts=True)
        self.counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def quantile(self, q: float) -> float | None:
        """Return the q-quantile of ln P(x) in nats, with a relative error of up to about 0.5 %; None without rows."""
        rank, total = q * sum(self.counts.values()), 0
        # from the largest -ln P(x), the lowest ln P(x), upwards
        for interval in sorted(self.counts, reverse=True):
            total += self.counts[interval]
            if total >= rank:
                return -float(np.exp((interval - 0.5) * WIDTH))
        return None

    def share_below(self, log_p: float) -> float:
        """Return the fraction of rows with a lower ln P(x), interpolated within an interval; needs at least one row."""
        nats = max(-log_p, 1e-9)
        # position on the scale of intervals, for the fraction of the value's own interval that lies beyond it
        place = float(np.log(nats) / WIDTH)
        own = int(np.ceil(place))
        below = sum(count for interval, count in self.counts.items() if interval > own)
        return (below + self.counts[own] * (own - place)) / sum(self.counts.values())


class ScoreMonitor:
    """A counter of the rows that a model scores.

    used: the indices of the schema's attributes whose codes are given, ascending.
    """

    def __init__(self, model: Model, used: Sequence[int]) -> None:
        self._model, self._used = model, used
        self.no_log_p = ""
        self.joint: JointModel | None = None
        try:
            self.joint = JointModel(model, used)
        except ModelError as error:
            self.no_log_p = error.what
        self.begin()

    def begin(self) -> None:
        """Reset all counts to zero."""
        schema, n_rows, plain = self._model.schema, self._model.n_rows, self._model.plain_frequencies or {}
        attributes = []
        for i in self._used:
            attribute = schema.attributes[i]
            *known, missing = plain.get(i, (*attribute.frequencies, attribute.missing_weight))
            training = np.array([*known, *([missing] if attribute.missing_weight else [])], np.float64)
            if training.sum() > n_rows:
                training *= n_rows / training.sum()
            has_missing = attribute.missing or attribute.missing_weight > 0
            attributes.append(AttributeCounts(attribute.name, training, has_missing, np.zeros(len(training))))
        self.tally = MonitorCounts(attributes, np.zeros(len(schema.labels)), classes=np.zeros(len(schema.labels)))

    def add_values(self, encoded: EncodedAttributes, n_rows: int) -> None:
        """Count the attribute values of `n_rows` more rows."""
        self.tally.rows += n_rows
        for tally, codes, unseen, missing in zip(
            self.tally.attributes, encoded.codes, encoded.unseen, encoded.missing, strict=True
        ):
            # without the code of unknown values, which are counted by their reasons
            counts = np.bincount(codes, minlength=len(tally.counts) + 1)[: len(tally.counts)].astype(np.float64)
            tally.unseen += unseen
            tally.missing += missing
            if tally.missing_counts:
                counts[-1] = missing  # if missing values are marginalized, they have the code of unknown values
            tally.counts += counts

    def add_predictions(self, codes: Sequence[Codes], log_p: Array, labels: Integers | None) -> None:
        """Count the predictions ln P(y | x_t) (K, rows) of more rows.

        codes: (rows,) for each attribute used. labels (rows,): label codes, negative if missing; None without labels.
        """
        tally = self.tally
        predicted = log_p.argmax(axis=0)
        tally.predictions += np.bincount(predicted, minlength=len(log_p))
        tally.confidence.add(np.exp(log_p.max(axis=0)))
        entropies, variances = row_entropies(log_p)
        tally.entropy.add(entropies)
        tally.loss_variance.add(variances)
        if len(log_p) == 2:
            tally.log_odds.add(log_p[1] - log_p[0], labels)
        if self.joint is not None and codes:
            values = self.joint.log_p(codes)
            tally.log_p.add(values)
            tally.sketch.add(values)
        if labels is not None:
            rows = np.flatnonzero(labels >= 0)
            known = labels[rows]
            tally.log_loss.add(-log_p[known, rows])
            tally.correct.add((predicted[rows] == known).astype(np.float64))
            tally.classes += np.bincount(known, minlength=len(log_p))


class Drift(NamedTuple):
    """The drift of one attribute.

    psi, p, psi_expected and psi_limit are None if no new row has a value that occurred in training, or if the training
    weights are all 0.

    - psi: the population stability index in nats
    - p: the p-value of the test of homogeneity
    - psi_expected: the mean of PSI without drift
    - psi_limit: the value that PSI exceeds with probability ALPHA / (number of tests) without drift
    - unknown: the fraction of new rows with values that never occurred in training
    - unknown_p: the probability that by chance all rows with such values are new rows
    - drifted: whether the attribute has drifted, as defined at the top of this module
    """

    psi: float | None
    p: float | None
    psi_expected: float | None
    psi_limit: float | None
    unknown_p: float
    drifted: bool
    unknown: float = 0.0

    @property
    def severity(self) -> float:
        """The larger of PSI / LEAST_PSI and unknown / LEAST_UNKNOWN; the latter counts only if it is at least 1."""
        of_unknown = self.unknown / LEAST_UNKNOWN if self.unknown >= LEAST_UNKNOWN else 0.0
        return max((self.psi or 0.0) / LEAST_PSI, of_unknown)


def drift_of(counts: Array, training: Array, n_unknown: int, n_tests: int) -> Drift:
    """Return the drift of an attribute from the new counts (k,) and training weights (k,) of its values.

    n_unknown: the number of new rows with values that never occurred in training. n_tests: the number by which ALPHA is
    divided.
    """
    from scipy import special  # takes long to load

    n, n_training, level = float(counts.sum()), float(training.sum()), ALPHA / n_tests
    unknown_p = unknown_probability(n_unknown, n + n_unknown, n_training)
    share = n_unknown / max(n + n_unknown, 1.0)
    has_unknown = n_unknown >= LEAST_UNKNOWN * (n + n_unknown) and n_unknown > 0 and unknown_p <= level
    if not n or not n_training:
        return Drift(None, None, None, None, unknown_p, has_unknown, share)
    psi, p = population_stability(counts, training), homogeneity_p(counts, training)
    spread, freedom = 1 / n + 1 / n_training, len(counts) - 1
    limit = spread * float(special.chdtri(freedom, level)) if freedom else 0.0
    drifted = has_unknown or (psi >= LEAST_PSI and p <= level)
    return Drift(psi, p, spread * freedom, limit, unknown_p, drifted, share)


def population_stability(counts: Array, training: Array) -> float:
    """Return the population stability index in nats of new counts and training weights, (k,) each, neither all 0."""
    a, e = (np.where(n > 0, n, 0.5) / n.sum() for n in (counts, training))
    return float(((a - e) * np.log(a / e)).sum())


def homogeneity_p(counts: Array, training: Array) -> float:
    """Return the p-value of Pearson's chi-squared test that two samples, counts (k,) each, have the same distribution.

    Rare values, with fewer than one expected new row, are pooled, if necessary with the next rarest. If only one group
    remains, this is the p-value of Fisher's one-sided exact test that the rare values are not more frequent among the
    new rows, or 1 if all values are rare.
    """
    from scipy import special  # takes long to load

    n, n_training = counts.sum(), training.sum()
    expected_new = (counts + training) * n / (n + n_training)
    # Pool the rare values, together with the next rarest ones until at least one row is expected.
    order = np.argsort(expected_new, kind="stable")
    sums = expected_new[order].cumsum()
    n_rare = int(np.count_nonzero(expected_new < 1))
    while 0 < n_rare < len(sums) and sums[n_rare - 1] < 1:
        n_rare += 1
    rows = np.stack([counts, training])
    others, pooled = rows[:, np.sort(order[n_rare:])], rows[:, order[:n_rare]].sum(axis=1, keepdims=True)
    rows = np.hstack([others, pooled]) if pooled.sum() else others
    expected = rows.sum(axis=0) * np.array([[n], [n_training]]) / (n + n_training)
    if expected.shape[1] >= 2:
        statistic = ((rows - expected) ** 2 / expected).sum()
        return float(special.chdtrc(expected.shape[1] - 1, statistic))
    is_rare = expected_new < 1
    if is_rare.all():
        return 1.0
    # hypergeometric: the probability of as many rare values, or more, among the new rows
    rare = counts[is_rare].sum()
    total = rare + training[is_rare].sum()
    x = np.arange(rare, min(total, n) + 1)
    # C(total, x) C(others, n - x) / C(all, n)
    log_p = _log_choose(total, x) + _log_choose(n + n_training - total, n - x) - _log_choose(n + n_training, n)
    return float(min(np.exp(log_p).sum(), 1.0))


def _log_choose(n: float, k: Array | float) -> Array:
    from scipy import special  # takes long to load

    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def unknown_probability(n_unknown: int, n: float, n_training: float) -> float:
    """Return the probability that `n_unknown` rows, drawn at random from n new and n_training old rows, are all new."""
    from scipy import special  # takes long to load

    new, both = special.gammaln([n + 1, n + n_training + 1])
    # C(n, x) / C(n + N, x): the x! cancel
    log_p = new - special.gammaln(n - n_unknown + 1) - both + special.gammaln(n + n_training - n_unknown + 1)
    return float(np.exp(min(log_p, 0.0)))


def sample_evenly(columns: Columns) -> Columns:
    """Return the table reduced to at most MOST_ROWS evenly spaced rows."""
    return columns.take(np.arange(0, columns.n_rows, max(1, -(-columns.n_rows // MOST_ROWS))))


def summarise_log_p(model: Model, columns: Columns, used: Sequence[int]) -> TrainingLogP:
    """Return the weighted mean and quantiles of ln P(x) over training rows, for the attributes `used`.

    Raises ModelError if the model is not a network or is calibrated, or if the table lacks one of these attributes.
    """
    joint = JointModel(model, used)
    log_p = joint.log_p(encode_attributes(columns, model.schema, used).codes) if used else np.zeros(columns.n_rows)
    weights = np.ones(len(log_p)) if columns.weights is None else columns.weights
    order = np.argsort(log_p, kind="stable")
    shares = weights[order].cumsum() / weights.sum()
    # the first row, in ascending order, up to which the rows have at least the fraction q of the weight
    indices = np.minimum(np.searchsorted(shares, QUANTILES), len(order) - 1)
    mean = float(np.average(log_p, weights=weights))
    return TrainingLogP(len(log_p), mean, tuple(log_p[order][indices].tolist()))


def are_training_rows(rows: Columns, model: Model, used: Sequence[int]) -> bool:
    """Return whether a table may be the training data: the same number of rows, and equal frequencies in used columns.

    Columns that the table lacks are ignored. A model stores nothing about single rows, so other rows with the same
    frequencies count as the training rows. The result is False if the table has no used column.
    """
    schema = model.schema
    present = [i for i in used if schema.attributes[i].name in rows.attributes]
    if rows.n_rows != model.n_rows or not present:
        return False
    for i, codes in zip(present, encode_attributes(rows, schema, present).codes, strict=True):
        attribute = schema.attributes[i]
        here = np.bincount(codes, rows.weights, attribute.cardinality + 1)
        in_training: tuple[float, ...] = (*attribute.frequencies, attribute.missing_weight)
        if model.plain_frequencies is not None:
            in_training = model.plain_frequencies[i]
        if not np.allclose(here, in_training, rtol=1e-9, atol=0):
            return False
    return True


def count_plain_frequencies(model: Model, columns: Columns) -> dict[int, tuple[float, ...]]:
    """Return the total weight of the rows with each code, "unknown" last, for each attribute used, keyed by index."""
    used = sorted(model.attributes)
    encoded = encode_attributes(columns, model.schema, used)
    frequencies = {}
    for i, codes in zip(used, encoded.codes, strict=True):
        n_codes = model.schema.attributes[i].cardinality + 1
        frequencies[i] = tuple(np.bincount(codes, columns.weights, n_codes).astype(np.float64).tolist())
    return frequencies


class ExpectedFigure(NamedTuple):
    """The expected value of a metric and its 95 % interval, each None if undefined."""

    value: float | None = None
    interval: tuple[float, float] | None = None


def row_entropies(log_p: Array) -> tuple[Array, Array]:
    """Return the mean and variance of -ln P(y | x_t) for y drawn from P(y | x_t), each (rows,), from ln P (K, rows)."""
    p = np.exp(log_p)
    losses = np.where(p > 0, -log_p, 0.0)
    entropies = (p * losses).sum(axis=0)
    return entropies, (p * np.square(losses - entropies)).sum(axis=0)


def sum_of_draws(n: int, total: float, variance: float, highest: float) -> ExpectedFigure:
    """Return the expected mean of n independent draws and its 95 % interval, clipped to [0, `highest`].

    total, variance: the sums of the draws' expected values and variances. The result is undefined if n is 0.
    """
    if not n:
        return ExpectedFigure()
    mean, half = total / n, _Z * np.sqrt(max(variance, 0.0)) / n
    return ExpectedFigure(mean, (max(float(mean - half), 0.0), min(float(mean + half), highest)))


class LogOddsCounts:
    """Counts of rows by intervals of the log-odds of the second label.

    rows: all rows. others, events: the rows with the first and with the second label.
    """

    def __init__(self) -> None:
        self.rows, self.others, self.events = Counter[int](), Counter[int](), Counter[int]()

    def add(self, log_odds: Array, labels: Integers | None) -> None:
        """Count rows with these log-odds and labels, (rows,) each; a missing label is negative."""
        intervals = np.rint(np.clip(log_odds, -_FARTHEST, _FARTHEST) / LOG_ODDS_WIDTH).astype(np.int64)
        _count(self.rows, intervals)
        if labels is not None:
            _count(self.others, intervals[labels == 0])
            _count(self.events, intervals[labels == 1])

    def merge(self, other: LogOddsCounts) -> None:
        """Add the rows of other counts."""
        self.rows.update(other.rows)
        self.others.update(other.others)
        self.events.update(other.events)

    def __iter__(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (index, rows, rows with the first label, rows with the second label) of each interval, ascending."""
        for place in sorted(self.rows):
            yield place, self.rows[place], self.others[place], self.events[place]

    def measured_auc(self) -> float | None:
        """Return the AUC on the labelled rows, or None if a label has no row."""
        counts = np.array([line[2:] for line in self], np.float64).reshape(-1, 2)
        return _aucs(counts[:, 1:], counts[:, :1])[0]

    def expected_auc(self) -> ExpectedFigure:
        """Return the expected AUC; it is undefined if two rows with different labels are practically impossible.

        There is no interval if at least half of the draws contain only one label.
        """
        lines = np.array([line[:2] for line in self], np.int64).reshape(-1, 2)
        odds, rows = lines[:, 0] * LOG_ODDS_WIDTH, lines[:, 1]
        p, q = np.exp(-np.logaddexp(0.0, -odds)), np.exp(-np.logaddexp(0.0, odds))
        events, others = rows * p, rows * q
        own = float((events * q).sum())  # a row is not compared with itself
        pairs = float(events.sum() * others.sum()) - own
        if not pairs > 1e-12:
            return ExpectedFigure()
        # events above others, ties half; from each sum the pairs of a row with itself are taken out
        below = np.cumsum(others) - others / 2
        value = float(np.clip((events @ below - own / 2) / pairs, 0.0, 1.0))
        rng = np.random.default_rng(0)
        drawn = []
        step = max(_DRAWN_AT_ONCE // len(rows), 1)
        for start in range(0, DRAWS, step):
            found = rng.binomial(rows[:, None], p[:, None], (len(rows), min(step, DRAWS - start))).astype(np.float64)
            drawn += [area for area in _aucs(found, rows[:, None] - found) if area is not None]
        if len(drawn) <= DRAWS // 2:
            return ExpectedFigure(value)
        low, high = np.quantile(drawn, (0.025, 0.975)).tolist()
        return ExpectedFigure(value, (low, high))


def _count(counter: Counter[int], intervals: Integers) -> None:
    values, counts = np.unique(intervals, return_counts=True)
    counter.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def _aucs(events: Array, others: Array) -> list[float | None]:
    """Return the AUC of each draw from counts (intervals, draws) of both labels; None for a draw lacking a label."""
    pairs = events.sum(axis=0) * others.sum(axis=0)
    wins = (events * (np.cumsum(others, axis=0) - others / 2)).sum(axis=0)
    return [win / n if n > 0 else None for win, n in zip(wins.tolist(), pairs.tolist(), strict=True)]
