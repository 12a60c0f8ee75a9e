"""What a monitor says: a tally of scored rows, judged against the training rows of the model that scored them.

How far the values of new rows are from those of training, and whether chance can tell.

With a_v and e_v the shares of value v among n new rows and N training rows that have one of the k values of training,

    PSI = sum over v of (a_v - e_v) ln(a_v / e_v)

the population stability index, symmetric Kullback-Leibler divergence (Kullback & Leibler 1951), in nats. Where both
samples come from one distribution, PSI / (1/n + 1/N) is about chi-squared with k - 1 degrees of freedom (Yurdakul
2018), so that its mean is (1/n + 1/N)(k - 1): the usual limits 0.1 and 0.25 know nothing of n. `p` is that of Pearson's
chi-squared test of homogeneity of the two samples.

A value that training never had is in no sum. Of x such values among n rows, where training had none in N, it is C(n, x)
/ C(n + N, x) that chance puts all of them among the new rows (Fisher's exact test, one-sided).

Conventions: an attribute has drifted if its PSI is at least 0.1 and p below its limit, or if at least 5 % of the rows
have a value that training never had and that is as improbable. The limit is 0.01 divided by the number of tests, two an
attribute (Bonferroni), so that in at most about 1 of 100 reports on rows like those of training anything is called
drift. In PSI a value that one side lacks counts as half a row there. In the test, values of which less than one is
expected among the new rows count together. Weighted training rows count as their weights say, together for no more than
there were rows.

How surprising rows are: the distribution of ln P(x), which a generative model gives, over many rows.

A row that is unlike all that the model has seen has a low one (`bncli.engine.prediction.joint_model`). A model may keep
the mean and the quantiles of its training rows, of MOST_ROWS at most, which lie at equal distances in their table.

Conventions: the distribution is kept as counts of 1 % wide intervals of -ln P(x), in nats (Masson, Rim & Lee 2019,
DDSketch), so that a stream takes no memory, and sketches of several streams add up. Rows of training weigh as their
weights in the data say, never as class weights do.

What is counted of a stream of scored rows: codes by attribute, predictions, confidence, ln P(x), log-loss.

Everything is a sum over rows, so memory does not grow with them, and the tallies of several streams add up. Sums are
exact, so that neither the order of the rows nor how they fall into blocks or onto machines shows in the last digit.
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
from bncli.engine.data.encoding import EncodedAttributes, encode_attributes
from bncli.engine.data.schema import Attribute
from bncli.engine.kernels.arrays import Array, Codes, Integers
from bncli.engine.model import QUANTILES, Model, TrainingLogP
from bncli.engine.prediction.joint_model import JointModel
from bncli.errors import ModelError

ALPHA = 0.01
"""Reports on rows like those of training in which anything is called drift, at most about."""
LEAST_PSI = 0.1
"""Below it nobody needs to act, however sure it is; above 0.25 a change is called large."""
LEAST_UNKNOWN = 0.05
"""Share of rows with a value that training never had, below which nobody needs to act."""


class Drift(NamedTuple):
    """Of one attribute; None where no new row has a value of training, or training none.

    `psi_expected` is the mean of the index under no drift, `psi_limit` what it exceeds with the probability that the
    tests allow; `unknown_p` is that of so many values that training never had, which are the share `unknown` of the
    rows.
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
        """How far the attribute has drifted, by whichever of PSI and values never seen says more; 1 is the limit."""
        strange = self.unknown / LEAST_UNKNOWN if self.unknown >= LEAST_UNKNOWN else 0.0
        return max((self.psi or 0.0) / LEAST_PSI, strange)


WIDTH = float(np.log(1.01))
"""Of an interval of the sketch, on the scale of ln(-ln P(x))."""
MOST_ROWS = 10_000
"""Of training that are looked at: more would tell the lowest quantile, 0.01, hardly better."""


class LogProbabilitySketch:
    """Counts of -ln P(x) by interval: interval k holds exp((k - 1) WIDTH) to exp(k WIDTH) nats."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: Counter[int] = Counter(counts)

    def add(self, log_p: Array) -> None:
        """More rows."""
        nats = np.maximum(-log_p, 1e-9)
        values, counts = np.unique(np.ceil(np.log(nats) / WIDTH).astype(np.int64), return_counts=True)
        self.counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def quantile(self, q: float) -> float | None:
        """Return ln P(x) that a share q of the rows do not exceed, to 1 %; None without rows."""
        rank, total = q * sum(self.counts.values()), 0
        for interval in sorted(self.counts, reverse=True):
            total += self.counts[interval]
            if total >= rank:
                return -float(np.exp((interval - 0.5) * WIDTH))
        return None

    def share_below(self, log_p: float) -> float:
        """Return the share of rows with a lower ln P(x), assuming equal frequencies within an interval."""
        nats = max(-log_p, 1e-9)
        place = float(np.log(nats) / WIDTH)
        own = int(np.ceil(place))
        below = sum(count for interval, count in self.counts.items() if interval > own)
        return (below + self.counts[own] * (own - place)) / sum(self.counts.values())


@dataclass
class Moments:
    """The number of some rows' values, their sum and the sum of their squares, each square rounded."""

    n: int = 0
    total: Fraction = Fraction()
    squares: Fraction = Fraction()

    def add(self, values: Array) -> None:
        """More values, (rows,)."""
        self.n += len(values)
        self.total += _exact_sum(values)
        self.squares += _exact_sum(values * values)

    def merge(self, other: Moments) -> None:
        """Those of other rows."""
        self.n, self.total, self.squares = self.n + other.n, self.total + other.total, self.squares + other.squares

    @property
    def mean(self) -> float | None:
        return float(self.total / self.n) if self.n else None

    @property
    def variance(self) -> float:
        """Of one value, unbiased; 0 of fewer than two."""
        if self.n < 2:
            return 0.0
        return float(max(self.squares - self.total * self.total / self.n, Fraction()) / (self.n - 1))


_BITS = 53
"""Of the mantissa of a float64."""


@dataclass
class AttributeCounts:
    """Of one attribute: counts (k,) of the values of training, and how often it was missing and never seen.

    training (k,) has the weight of each value there, the missing one last where it had one (`missing_counts`).
    """

    name: str
    training: Array
    missing_counts: bool
    counts: Array
    missing: int = 0
    unseen: int = 0

    @property
    def unknown(self) -> int:
        """Rows with a value that training never had."""
        return self.unseen + (0 if self.missing_counts else self.missing)


@dataclass
class MonitorCounts:
    """Of all rows so far. `no_log_p`: why the model has no ln P(x); log_loss: of rows that have a class."""

    attributes: list[AttributeCounts]
    predictions: Array
    rows: int = 0
    confidence: Moments = field(default_factory=Moments)
    log_p: Moments = field(default_factory=Moments)
    sketch: LogProbabilitySketch = field(default_factory=LogProbabilitySketch)
    log_loss: Moments = field(default_factory=Moments)
    classes: Array = field(default_factory=lambda: np.zeros(0))

    def merge(self, other: MonitorCounts) -> None:
        """Add the rows of another tally of the same model."""
        for mine, theirs in zip(self.attributes, other.attributes, strict=True):
            mine.counts = mine.counts + theirs.counts
            mine.missing, mine.unseen = mine.missing + theirs.missing, mine.unseen + theirs.unseen
        self.predictions, self.classes = self.predictions + other.predictions, self.classes + other.classes
        self.rows += other.rows
        for mine_, theirs_ in (
            (self.confidence, other.confidence),
            (self.log_p, other.log_p),
            (self.log_loss, other.log_loss),
        ):
            mine_.merge(theirs_)
        self.sketch.counts.update(other.sketch.counts)


class ScoreMonitor:
    """Counts what a model scores. `used`: the schema's attributes, ascending, whose codes it is shown."""

    def __init__(self, model: Model, used: Sequence[int]) -> None:
        self._model, self._used = model, used
        self.tally = self._empty()
        self.no_log_p = ""
        self.joint: JointModel | None = None
        try:
            self.joint = JointModel(model, used)
        except ModelError as error:
            self.no_log_p = error.what

    def _empty(self) -> MonitorCounts:
        schema, plain = self._model.schema, self._model.plain_frequencies or {}
        attributes = [attribute_tally(schema.attributes[i], self._model.n_rows, plain.get(i)) for i in self._used]
        return MonitorCounts(attributes, np.zeros(len(schema.labels)), classes=np.zeros(len(schema.labels)))

    def begin(self) -> None:
        """Count from nothing again."""
        self.tally = self._empty()

    def add_values(self, encoded: EncodedAttributes, n_rows: int) -> None:
        """Count the attributes of more rows."""
        self.tally.rows += n_rows
        for tally, codes, unseen, missing in zip(
            self.tally.attributes, encoded.codes, encoded.unseen, encoded.missing, strict=True
        ):
            found = np.bincount(codes, minlength=len(tally.counts) + 1)[: len(tally.counts)].astype(np.float64)
            tally.unseen += unseen
            tally.missing += missing
            if tally.missing_counts:
                found[-1] = missing  # where it is marginalized it has the code of what is unknown
            tally.counts += found

    def add_predictions(self, codes: Sequence[Codes], log_p: Array, labels: Integers | None) -> None:
        """Count the predictions log P(y | x_t) (K, rows) of more rows; labels (rows,), negative where missing."""
        tally = self.tally
        tally.predictions += np.bincount(log_p.argmax(axis=0), minlength=len(log_p))
        tally.confidence.add(np.exp(log_p.max(axis=0)))
        if self.joint is not None and codes:
            values = self.joint.log_p(codes)
            tally.log_p.add(values)
            tally.sketch.add(values)
        if labels is not None:
            rows = np.flatnonzero(labels >= 0)
            known = labels[rows]
            tally.log_loss.add(-log_p[known, rows])
            tally.classes += np.bincount(known, minlength=len(log_p))


class MonitoredModel(NamedTuple):
    """Which model scored the rows: a fingerprint of all that is in it, its class, labels and training rows.

    `held_out_log_loss` is that of rows that were held out when it was learnt; None where none were. log_p: that of
    training rows, None where the model does not keep it.
    """

    fingerprint: str
    class_name: str
    labels: tuple[str, ...]
    rows: int
    held_out_log_loss: float | None = None
    log_p: TrainingLogP | None = None


@dataclass(frozen=True)
class Monitor:
    """A tally and the model it is of. `no_log_p`: why there is no ln P(x), empty where there is."""

    model: MonitoredModel
    tally: MonitorCounts
    no_log_p: str = ""

    @cached_property
    def drifts(self) -> tuple[Drift, ...]:
        """Of each attribute."""
        return tuple(
            drift_of(one.counts, one.training, one.unknown, self.n_tests) if self.tally.rows else _NO_ROWS
            for one in self.tally.attributes
        )

    @property
    def below_training(self) -> float | None:
        """The share of rows less probable than the lowest quantile of training; None where either is not known."""
        if self.model.log_p is None or not self.tally.log_p.n:
            return None
        return self.tally.sketch.share_below(self.model.log_p.quantiles[0])

    @property
    def n_tests(self) -> int:
        """Among which the allowed probability of an error is divided."""
        return max(2 * len(self.tally.attributes), 1)

    @property
    def drifted(self) -> tuple[str, ...]:
        """The attributes that have drifted, the farthest first."""
        pairs = zip(self.tally.attributes, self.drifts, strict=True)
        found = [(-drift.severity, one.name) for one, drift in pairs if drift.drifted]
        return tuple(name for _, name in sorted(found, key=lambda pair: pair[0]))

    def predictions(self) -> Iterator[tuple[str, float]]:
        """Yield the share of the rows that each label was predicted for."""
        for label, count in zip(self.model.labels, self.tally.predictions.tolist(), strict=True):
            yield label, count / self.tally.rows if self.tally.rows else 0.0


_NO_ROWS = Drift(None, None, None, None, 1.0, False)


def drift_of(counts: Array, training: Array, unknown: int, n_tests: int) -> Drift:
    """Return the drift from counts (k,) and training counts (k,) of each value, and rows with unseen values."""
    from scipy import special  # takes long to load: only where it is used

    n, n_training, level = float(counts.sum()), float(training.sum()), ALPHA / n_tests
    unknown_p = unknown_probability(unknown, n + unknown, n_training)
    share = unknown / max(n + unknown, 1.0)
    is_strange = unknown >= LEAST_UNKNOWN * (n + unknown) and unknown > 0 and unknown_p <= level
    if not n or not n_training:
        return Drift(None, None, None, None, unknown_p, is_strange, share)
    index, p = psi(counts, training), homogeneity(counts, training)
    spread, freedom = 1 / n + 1 / n_training, len(counts) - 1
    limit = spread * float(special.chdtri(freedom, level)) if freedom else 0.0
    drifted = is_strange or (index >= LEAST_PSI and p <= level)
    return Drift(index, p, spread * freedom, limit, unknown_p, drifted, share)


def psi(counts: Array, training: Array) -> float:
    """Return the population stability index, nats; both (k,), neither all 0."""
    a, e = (np.where(one > 0, one, 0.5) / one.sum() for one in (counts, training))
    return float(((a - e) * np.log(a / e)).sum())


def homogeneity(counts: Array, training: Array) -> float:
    """Return the p value of Pearson's chi-squared test that two samples, counts of k values, are of one distribution.

    Where all values but one are expected less than once among the new rows, all together, that of Fisher's exact test
    that they are not more.
    """
    from scipy import special  # takes long to load: only where it is used

    n, n_training = counts.sum(), training.sum()
    often = (counts + training) * n / (n + n_training)
    rows = _pooled(np.stack([counts, training]), often)
    expected = rows.sum(axis=0) * np.array([[n], [n_training]]) / (n + n_training)
    if expected.shape[1] < 2:
        rare = often < 1
        return 1.0 if rare.all() else _tail(counts[rare].sum(), training[rare].sum(), n, n_training)
    statistic = ((rows - expected) ** 2 / expected).sum()
    return float(special.chdtrc(expected.shape[1] - 1, statistic))


def _pooled(rows: Array, expected: Array) -> Array:
    """Return the columns with all values expected less than once pooled, together with the next rarest."""
    order = np.argsort(expected, kind="stable")
    sums = expected[order].cumsum()
    n_rare = int(np.count_nonzero(expected < 1))
    while 0 < n_rare < len(sums) and sums[n_rare - 1] < 1:
        n_rare += 1
    kept, rare = rows[:, np.sort(order[n_rare:])], rows[:, order[:n_rare]].sum(axis=1, keepdims=True)
    return np.hstack([kept, rare]) if rare.sum() else kept


def _tail(rare: float, rare_in_training: float, n: float, n_training: float) -> float:
    """Return that chance puts as many of the rare values, or more, among the n new rows: hypergeometric."""
    total = rare + rare_in_training
    x = np.arange(rare, min(total, n) + 1)
    log_p = _log_choose(total, x) + _log_choose(n + n_training - total, n - x) - _log_choose(n + n_training, n)
    return float(min(np.exp(log_p).sum(), 1.0))


def _log_choose(n: float, k: Array | float) -> Array:
    from scipy import special  # takes long to load: only where it is used

    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def unknown_probability(unknown: int, n: float, n_training: float) -> float:
    """Return the probability that these values occur only among the n new rows and never in training."""
    from scipy import special  # takes long to load: only where it is used

    new, both = special.gammaln([n + 1, n + n_training + 1])
    log_p = new - special.gammaln(n - unknown + 1) - both + special.gammaln(n + n_training - unknown + 1)
    return float(np.exp(min(log_p, 0.0)))


def even_sample(columns: Columns) -> Columns:
    """Return every so-manyeth row, so that there are MOST_ROWS at most."""
    return columns.take(np.arange(0, columns.n_rows, max(1, -(-columns.n_rows // MOST_ROWS))))


def training_log_p(model: Model, columns: Columns, used: Sequence[int]) -> TrainingLogP:
    """Of rows that the model was learnt from, by these attributes; ModelError where it has no P(x)."""
    joint = JointModel(model, used)
    log_p = joint.log_p(encode_attributes(columns, model.schema, used).codes) if used else np.zeros(columns.n_rows)
    weights = np.ones(len(log_p)) if columns.weights is None else columns.weights
    order = np.argsort(log_p, kind="stable")
    shares = weights[order].cumsum() / weights.sum()
    places = np.minimum(np.searchsorted(shares, QUANTILES), len(order) - 1)
    mean = float(np.average(log_p, weights=weights))
    return TrainingLogP(len(log_p), mean, tuple(log_p[order][places].tolist()))


def plain_frequencies(model: Model, columns: Columns) -> dict[int, tuple[float, ...]]:
    """Of each attribute that the model looks at: the weight of the rows with each value, and with none it knows."""
    used = sorted(model.attributes)
    encoded = encode_attributes(columns, model.schema, used)
    found = {}
    for i, codes in zip(used, encoded.codes, strict=True):
        n_codes = model.schema.attributes[i].cardinality + 1
        found[i] = tuple(np.bincount(codes, columns.weights, n_codes).astype(np.float64).tolist())
    return found


def attribute_tally(attribute: Attribute, n_rows: int, plain: Sequence[float] | None = None) -> AttributeCounts:
    """With no rows yet; `n_rows` is the number of training rows, `plain` as in `plain_frequencies`."""
    *known, missing = (*attribute.frequencies, attribute.missing_weight) if plain is None else plain
    training = np.array([*known, *([missing] if attribute.missing_weight else [])], np.float64)
    if training.sum() > n_rows:
        training *= n_rows / training.sum()
    has_missing = attribute.missing or attribute.missing_weight > 0
    return AttributeCounts(attribute.name, training, has_missing, np.zeros(len(training)))


def _exact_sum(values: Array) -> Fraction:
    """Without rounding: the halves of the mantissas summed as whole numbers, by exponent."""
    if not len(values):
        return Fraction()
    mantissas, exponents = np.frexp(values)
    high = np.floor(np.ldexp(mantissas, _BITS - 26))
    low = np.ldexp(mantissas, _BITS) - np.ldexp(high, 26)
    least = int(exponents.min())
    highs, lows = (np.bincount(exponents - least, half).tolist() for half in (high, low))
    parts = enumerate(zip(highs, lows, strict=True))
    whole = sum(((int(first) << 26) + int(second)) << i for i, (first, second) in parts)
    return whole * Fraction(2) ** (least - _BITS)
