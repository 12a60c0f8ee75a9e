"""What is counted of a stream of scored rows: codes by attribute, predictions, confidence, ln P(x), log-loss.

Everything is a sum over rows, so memory does not grow with them, and the tallies of several streams add up. Sums are
exact, so that neither the order of the rows nor how they fall into blocks or onto machines shows in the last digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.encoding import Encoded, encode_attributes
from bncli.engine.data.schema import Attribute
from bncli.engine.kernels.arrays import Array, Codes, Integers
from bncli.engine.model import Model
from bncli.engine.monitoring.surprise import Sketch
from bncli.engine.networks.joint_model import JointModel
from bncli.errors import ModelError


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


@dataclass
class AttributeTally:
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


def plain_frequencies(model: Model, columns: Columns) -> dict[int, tuple[float, ...]]:
    """Of each attribute that the model looks at: the weight of the rows with each value, and with none it knows."""
    used = sorted(model.attributes)
    encoded = encode_attributes(columns, model.schema, used)
    found = {}
    for i, codes in zip(used, encoded.codes, strict=True):
        n_codes = model.schema.attributes[i].cardinality + 1
        found[i] = tuple(np.bincount(codes, columns.weights, n_codes).astype(np.float64).tolist())
    return found


def attribute_tally(attribute: Attribute, n_rows: int, plain: Sequence[float] | None = None) -> AttributeTally:
    """With no rows yet; `n_rows` is the number of training rows, `plain` as in `plain_frequencies`."""
    *known, missing = (*attribute.frequencies, attribute.missing_weight) if plain is None else plain
    training = np.array([*known, *([missing] if attribute.missing_weight else [])], np.float64)
    if training.sum() > n_rows:
        training *= n_rows / training.sum()
    has_missing = attribute.missing or attribute.missing_weight > 0
    return AttributeTally(attribute.name, training, has_missing, np.zeros(len(training)))


@dataclass
class Tally:
    """Of all rows so far. `no_log_p`: why the model has no ln P(x); log_loss: of rows that have a class."""

    attributes: list[AttributeTally]
    predictions: Array
    rows: int = 0
    confidence: Moments = field(default_factory=Moments)
    log_p: Moments = field(default_factory=Moments)
    sketch: Sketch = field(default_factory=Sketch)
    log_loss: Moments = field(default_factory=Moments)
    classes: Array = field(default_factory=lambda: np.zeros(0))

    def merge(self, other: Tally) -> None:
        """Adds the rows of another tally of the same model."""
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


class Watcher:
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

    def _empty(self) -> Tally:
        schema, plain = self._model.schema, self._model.plain_frequencies or {}
        attributes = [attribute_tally(schema.attributes[i], self._model.n_rows, plain.get(i)) for i in self._used]
        return Tally(attributes, np.zeros(len(schema.labels)), classes=np.zeros(len(schema.labels)))

    def begin(self) -> None:
        """Counts from nothing again."""
        self.tally = self._empty()

    def add_values(self, encoded: Encoded, n_rows: int) -> None:
        """The attributes of more rows."""
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
        """What was said of more rows: log P(y | x_t) (K, rows); labels (rows,), negative where there is none."""
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
