"""A model as sums of small tables and nothing else: what is written into programs that know nothing of bncli.

    S[t, r] = sum over the tables of a stage and those before it, since the last that begins `anew`, of entries[r, cell]
    P(y | x_t) = sum over stages of weight softmax_y S[t, y]

and of a calibrated model what its map makes of these. Score rows r are the classes, or for two classes the one
difference S[t, 1] - S[t, 0] (`prediction.softmax`). A row of values becomes codes, one an input; of each code per table
knows its digit, and the digits make the cell, the first the most significant. The code one past the last, "unobserved",
is averaged over, as in `prediction.scoring`, or has entries of its own.

Conventions: the temperature of a model of one stage divides its tables, and is no map of its scorer. A model that
marginalizes missing values over a network is no sum of tables, unless leaving tables out is all there is to do; then it
is refused. So is a path over regions that are too large to be expanded.

Made-up rows that show all that a model tells apart, to compare a program written from it with the model itself.

Every input shows in turn, whatever the number of rows that takes: each level and each value pooled to one, a text that
no training row had, a missing value; of numbers each cut, the next number above it and one between it and the next cut,
values far outside. The other inputs of such a row are drawn: any of their values alike. None of it is taken from
training rows.

Conventions: every `HIDDEN`-th row that is drawn lacks about half of its values.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.calibration import CalibrationMap, Isotonic, Knots, PerClass, Temperature
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Ensemble, Model, Path, Pool, Predictor, Tables
from bncli.engine.prediction.factors import Averages, Factor, cells_of, expand, log_softmax, normalised, score_rows
from bncli.engine.prediction.scoring import compile_path, compile_scorer, log_probabilities, network_to_marginalize
from bncli.engine.structures.regrouping import relative_frequencies
from bncli.engine.structures.structure import Family
from bncli.errors import ModelError

MOST_ENTRIES = 1 << 26
"""Of all expanded tables together."""


@dataclass(frozen=True)
class Input:
    """A value of a row and its code: a number, coded by `cuts`, or a text, coded by `codes`; the other of them is None.

    Code i of a number: cuts[i - 1] < value <= cuts[i]. `missing` is the code of a missing value, `unobserved` that of a
    text without a code; they are the same where training had no missing value. frequencies (unobserved,): of each code
    in training, summing to 1.
    """

    name: str
    cuts: tuple[float, ...] | None
    codes: Mapping[str, int] | None
    missing: int
    unobserved: int
    frequencies: tuple[float, ...]

    @classmethod
    def of(cls, attribute: Attribute) -> Input:
        """Return what a program has to know of the attribute."""
        known = (attribute.n_values, attribute.cardinality, tuple(relative_frequencies(attribute, None).tolist()))
        if isinstance(attribute, NumericAttribute):
            return cls(attribute.name, attribute.cuts, None, *known)
        return cls(attribute.name, None, dict(attribute.code_of), *known)

    def code(self, value: float | str | None) -> int:
        """Return the code of a value, as `bncli.engine.data.encoding` says it of columns; None is a missing value."""
        if value is None:
            return self.missing
        if self.codes is not None:
            return self.codes.get(str(value), self.unobserved)
        return bisect_left(self.cuts or (), float(value))


@dataclass(frozen=True)
class PortableTable:
    """entries (R, cells of `shape`) over some of the inputs; digits[i][code] on axis i, "unobserved" the last code.

    `averages`: by axis, what is averaged with over an unobserved value, the frequencies of the digits; None for an axis
    along which the table is left out then. The digit of "unobserved" is shape[i]; without averages (None) there are
    entries for it: it is shape[i] - 1.
    """

    inputs: tuple[int, ...]
    digits: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    entries: Array
    averages: Averages | None = None

    def expanded(self) -> PortableTable:
        """With entries for "unobserved"."""
        if self.averages is None:
            return self
        entries = expand(self.entries.reshape(-1, *self.shape), self.averages)
        shape = tuple(n + 1 for n in self.shape)
        return PortableTable(self.inputs, self.digits, shape, entries.reshape(len(entries), -1))

    @property
    def expanded_size(self) -> int:
        """Numbers that the expanded table holds."""
        return len(self.entries) * math.prod(n + (self.averages is not None) for n in self.shape)


@dataclass(frozen=True)
class PortableStage:
    """What is added to the scores, shift (R,) and tables, after those before it or `anew`, and the weight of its P."""

    weight: float
    anew: bool
    shift: Array
    tables: tuple[PortableTable, ...]


class PortableLine(NamedTuple):
    """A line through points: where ends[i - 1] < P <= ends[i], levels[i] + slopes[i] (P - starts[i]).

    ends (J,), ascending; the others (J + 1,).
    """

    ends: tuple[float, ...]
    starts: tuple[float, ...]
    levels: tuple[float, ...]
    slopes: tuple[float, ...]

    @classmethod
    def of(cls, knots: Knots) -> PortableLine:
        """Constant before the first knot and behind the last."""
        at, values = np.array(knots.at), np.array(knots.values)
        slopes = np.diff(values) / np.diff(at)
        return cls(
            knots.at, (knots.at[0], *knots.at), (knots.values[0], *knots.values), (0.0, *map(float, slopes), 0.0)
        )

    def apply(self, probabilities: Array) -> Array:
        """Return the levels there."""
        i = np.searchsorted(self.ends, probabilities)
        starts, levels, slopes = (np.array(part)[i] for part in self[1:])
        return np.asarray(levels + slopes * (probabilities - starts))


class PortableMap(NamedTuple):
    """What is made of probabilities at last: powers or lines, the other is empty.

    P'(y) ~ exp(scales[y] ln P(y) + shifts[y]), powers holding (scales, shifts), (K,) each; P'(y) ~ line(P(y)), a line a
    label, or of two labels that of the second, the first having what is left.
    """

    powers: tuple[tuple[float, ...], ...] = ()
    lines: tuple[PortableLine, ...] = ()

    @classmethod
    def of(cls, found: CalibrationMap, n_labels: int) -> PortableMap:
        """Return the same map, a temperature as powers."""
        if isinstance(found, Isotonic):
            return cls(lines=tuple(map(PortableLine.of, found.knots)))
        if isinstance(found, PerClass):
            return cls((found.scales, found.shifts))
        return cls(((1 / found.temperature,) * n_labels, (0.0,) * n_labels))

    def apply(self, log_p: Array) -> Array:
        """Return P' (K, N) from ln P(y | x_t). Plain: for checks."""
        if self.powers:
            scales, shifts = (np.array(part)[:, None] for part in self.powers)
            logs = log_p * scales + shifts
            shares = np.exp(logs - logs.max(axis=0))
        elif len(self.lines) == 1:
            second = self.lines[0].apply(np.exp(log_p[1]))
            return np.array([1 - second, second])
        else:
            shares = np.array([line.apply(np.exp(row)) for line, row in zip(self.lines, log_p, strict=True)])
        return np.asarray(shares / shares.sum(axis=0))


@dataclass(frozen=True)
class PortableScorer:
    """A model to be written as a program; inputs in the schema's order; the map of a calibrated model."""

    class_name: str
    labels: tuple[str, ...]
    inputs: tuple[Input, ...]
    stages: tuple[PortableStage, ...]
    calibration: PortableMap | None = None

    @property
    def tables(self) -> tuple[PortableTable, ...]:
        """Those of all stages."""
        return tuple(table for stage in self.stages for table in stage.tables)

    def probabilities(self, codes: Sequence[Index]) -> Array:
        """Return P(y | x_t), shape (K, rows); codes[p] (rows,) of input p. Slow and plain: for checks."""
        n = len(codes[0]) if codes else 1
        logs, scores = [], np.zeros((len(self.stages[0].shift), n))
        for stage in self.stages:
            scores = (0.0 if stage.anew else scores) + stage.shift[:, None] + np.zeros_like(scores)
            for table in (one.expanded() for one in stage.tables):
                digits = [np.array(d)[codes[p]] for p, d in zip(table.inputs, table.digits, strict=True)]
                scores = scores + table.entries[:, cells_of(digits, table.shape)]
            log_p = np.empty((len(self.labels), n))
            log_softmax(scores, log_p)
            logs.append(log_p + math.log(stage.weight))
        found = normalised(np.logaddexp.reduce(logs))
        return np.exp(found) if self.calibration is None else self.calibration.apply(found)


def portable(model: Model) -> PortableScorer:
    """Return the model as tables; ModelError with the reason where it cannot be written so."""
    used, stages = portable_stages(model.predictor, model.schema)
    found = None if model.calibration is None else model.calibration.map
    if isinstance(found, Temperature) and len(stages) == 1:
        stage = stages[0]
        factor = 1 / found.temperature
        tables = tuple(replace(table, entries=table.entries * factor) for table in stage.tables)
        stages, found = (replace(stage, shift=stage.shift * factor, tables=tables),), None
    scorer = PortableScorer(
        model.schema.class_name,
        model.schema.labels,
        tuple(Input.of(model.schema.attributes[i]) for i in used),
        stages,
        None if found is None else PortableMap.of(found, len(model.schema.labels)),
    )
    entries = sum(table.expanded_size for table in scorer.tables)
    if entries > MOST_ENTRIES:
        what = f"the model is too large to be written as a program: {entries:,} table entries"
        raise ModelError(what, hint=f"at most {MOST_ENTRIES:,} can be; learn with fewer parents, or with --effort 1")
    return scorer


@singledispatch
def portable_stages(predictor: Predictor, schema: Schema) -> tuple[tuple[int, ...], tuple[PortableStage, ...]]:
    """Return the attributes used, ascending, and the stages over them, by the kind of the predictor."""
    raise TypeError(f"there is no program for {type(predictor).__name__}")


@portable_stages.register
def _(tables: Tables, schema: Schema) -> tuple[tuple[int, ...], tuple[PortableStage, ...]]:
    if network_to_marginalize(tables, schema) is not None:
        what = "missing values are marginalized over the network, which is no sum of tables"
        raise ModelError(what, hint="learn with --missing-policy level, or with --structure nb")
    used = _used((tables,))
    return used, (_stage(tables, 1.0, schema, used),)


@portable_stages.register
def _(ensemble: Ensemble, schema: Schema) -> tuple[tuple[int, ...], tuple[PortableStage, ...]]:
    if ensemble.pool is Pool.LOGARITHMIC:
        return portable_stages(ensemble.combined, schema)
    used = _used([component.tables for component in ensemble.components])
    return used, tuple(_stage(one.tables, one.weight, schema, used) for one in ensemble.components)


def _used(models: Sequence[Tables]) -> tuple[int, ...]:
    return tuple(sorted({a for tables in models for f in tables.families if f.by_class for a in f.attributes}))


def _stage(tables: Tables, weight: float, schema: Schema, used: Sequence[int]) -> PortableStage:
    place = {a: p for p, a in enumerate(used)}
    found = (
        _table(family, entries, schema, place)
        for family, entries in zip(tables.families, tables.weights, strict=True)
        if family.by_class
    )
    return PortableStage(weight, True, score_rows(tables.bias[None, :])[:, 0], tuple(found))


def _table(family: Family, entries: Array, schema: Schema, place: Mapping[int, int]) -> PortableTable:
    seen = tuple(zip(family.binned_attributes, family.shape, strict=True))
    averages = tuple(
        None if axis == 0 and family.child is not None else relative_frequencies(schema.attributes[a], grouping)
        for axis, ((a, grouping), _) in enumerate(seen)
    )
    digits = tuple((*(grouping or range(n)), n) for (_, grouping), n in seen)
    return PortableTable(
        tuple(place[a] for a in family.attributes), digits, family.shape, score_rows(entries), averages
    )


@portable_stages.register
def _(path: Path, schema: Schema) -> tuple[tuple[int, ...], tuple[PortableStage, ...]]:
    scorer = compile_path(path)
    stages = []
    for number, stage in enumerate(scorer.stages):
        tables = []
        for factor in stage.factors:
            if not isinstance(factor, Factor):
                raise ModelError("a region is too large to be written with what it says of missing values")
            digits = tuple(tuple(range(n)) for n in factor.shape)
            tables.append(PortableTable(factor.positions, digits, factor.shape, factor.tables))
        stages.append(PortableStage(stage.weight, number == 0, stage.shift[:, 0], tuple(tables)))
    return scorer.used, tuple(stages)


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
    drawn = _sampled_indices([len(palette) for palette in palettes], n_rows, rng)
    values = tuple(tuple(palette[i] for i in rows) for palette, rows in zip(palettes, drawn, strict=True))
    coded = [np.array([one.code(value) for value in palette]) for one, palette in zip(inputs, palettes, strict=True)]
    codes = [known[rows].astype(np.uint32) for known, rows in zip(coded, drawn, strict=True)]
    return ProbeRows(inputs, values, np.exp(log_probabilities(scorer, codes, n_rows)))


def _palette(one: Input) -> list[Value]:
    """Return the values that an input shows; None, the missing value, is the first."""
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


def _sampled_indices(sizes: Sequence[int], n_rows: int, rng: np.random.Generator) -> list[Index]:
    """Return indices into the palettes: each in turn in some rows, else drawn."""
    columns: list[Any] = [rng.integers(0, size, n_rows) for size in sizes]
    lacking = np.arange(n_rows) % HIDDEN == 0
    for column in columns:
        column[lacking & (rng.random(n_rows) < 0.5)] = 0
    first = 0
    for column, size in zip(columns, sizes, strict=True):
        column[first : first + size] = np.arange(size)
        first += size
    return columns
