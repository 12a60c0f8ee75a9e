"""A model as plain tables, for programs and reports that do not use bncli.

    S[t, r] = sum of the shift[r] and of the entries[r, cell] of all tables, over this stage and the earlier ones, back
              to and including the last stage that begins `anew`
    P(y | x_t) = sum over stages of weight softmax_y S[t, y]

A calibrated model has a map that is applied to these probabilities. There is one score row r per class, or for two
classes a single row, the difference S[t, 1] - S[t, 0]. A row of values becomes codes, one per input. Each table has a
digit for every code, and the digits of its inputs make the cell number; the first digit is the most significant. The
code one past the last, "unobserved", is averaged over, as in `prediction.scoring`, or has entries of its own.

Conventions: if a model with one stage is calibrated by a temperature, its shift and tables are divided by it, so that
no map is needed. A model that marginalizes missing values over a network is refused, since it is not a sum of tables,
unless leaving tables out is always enough. A path over regions is refused if a table with "unobserved" is too large.
Any model with more than MOST_ENTRIES entries is refused.

The effects of a model can be written as tables as well, for scorecards and for programs that explain their scores:

    contrast[y] (x) = constant[y] + sum over the tables of entries[y, cell]

The contrasts are the log-odds of class y against the geometric mean of the other classes; for two classes they are
ln P(y)/P(other). The tables are purified (`prediction.purification`): their mean along each axis is 0. There is one per
set of attributes, or if that is smaller, one per set and binning. They have entries for "unobserved". An average of
models has no such sum and is refused, as are effects with more than MOST_CELLS cells.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bncli.engine.calibration import PerClass, Temperature
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Ensemble, Model, Path, Pool, Predictor, Tables
from bncli.engine.prediction.factors import Averages, Factor, expand, score_rows, unobserved_averages
from bncli.engine.prediction.marginalization import network_to_marginalize
from bncli.engine.prediction.purification import (
    ContrastTensor,
    Score,
    add_by_set,
    common_refinement,
    mixture_of,
    with_unobserved,
)
from bncli.engine.prediction.scoring import compile_path
from bncli.engine.structures.regrouping import relative_frequencies
from bncli.errors import ModelError

MOST_ENTRIES = 1 << 26
"""The maximum number of entries of all tables together, including the entries for "unobserved"."""
MOST_CELLS = 1 << 22
"""The maximum number of cells of all effects together."""


@dataclass(frozen=True)
class Input:
    """An input of the program: a number, coded by `cuts`, or a string, coded by `codes`; the other of the two is None.

    - A number has code i if cuts[i - 1] < value <= cuts[i].
    - missing: the code of a missing value. unobserved: the code of a string that is not in `codes`. They are equal if
      the attribute has no missing level.
    - frequencies (unobserved,): relative frequencies of the codes in training.
    """

    name: str
    cuts: tuple[float, ...] | None
    codes: Mapping[str, int] | None
    missing: int
    unobserved: int
    frequencies: tuple[float, ...]

    @classmethod
    def of(cls, attribute: Attribute) -> Input:
        """Return the input of an attribute."""
        rest = (attribute.n_values, attribute.cardinality, tuple(relative_frequencies(attribute, None).tolist()))
        if isinstance(attribute, NumericAttribute):
            return cls(attribute.name, attribute.cuts, None, *rest)
        return cls(attribute.name, None, dict(attribute.code_of), *rest)

    def code(self, value: float | str | None) -> int:
        """Return the code of a value, by the rules of `engine.data.dataset`; None is a missing value."""
        if value is None:
            return self.missing
        if self.codes is not None:
            return self.codes.get(str(value), self.unobserved)
        return bisect_left(self.cuts or (), float(value))


@dataclass(frozen=True)
class PortableTable:
    """A table over some of the inputs: entries (R, cells), where R is the number of score rows.

    shape: the number of digits on each axis. digits[i][code]: the digit of a code on axis i; the last code is
    "unobserved". averages[i]: the frequencies of the digits on axis i, by which the table is averaged if the input is
    unobserved, or None if the table is then left out; "unobserved" has the digit shape[i], which has no entries. If
    `averages` itself is None, the table has entries for "unobserved", whose digit is shape[i] - 1.
    """

    inputs: tuple[int, ...]
    digits: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    entries: Array
    averages: Averages | None = None

    def expanded(self) -> PortableTable:
        """Return the table with entries for "unobserved" on every axis."""
        if self.averages is None:
            return self
        entries = expand(self.entries.reshape(-1, *self.shape), self.averages)
        shape = tuple(n + 1 for n in self.shape)
        return PortableTable(self.inputs, self.digits, shape, entries.reshape(len(entries), -1))

    @property
    def expanded_size(self) -> int:
        """The number of entries of the expanded table."""
        return len(self.entries) * math.prod(n + (self.averages is not None) for n in self.shape)


@dataclass(frozen=True)
class PortableStage:
    """A shift (R,) and tables that are added to the scores of the previous stage, or to 0 if `anew`.

    weight: the weight of the resulting probabilities in the average over stages.
    """

    weight: float
    anew: bool
    shift: Array
    tables: tuple[PortableTable, ...]


class PortableLine(NamedTuple):
    """A piecewise linear function of P, equal to levels[i] + slopes[i] (P - starts[i]) for ends[i - 1] < P <= ends[i].

    ends (J,): ascending. starts, levels and slopes: (J + 1,).
    """

    ends: tuple[float, ...]
    starts: tuple[float, ...]
    levels: tuple[float, ...]
    slopes: tuple[float, ...]


class PortableMap(NamedTuple):
    """A calibration map, given by `powers` or by `lines`; the other of the two is empty.

    - powers (scales, shifts), (K,) each: P'(y) is proportional to exp(scales[y] ln P(y) + shifts[y])
    - lines, one per label: P'(y) is proportional to line(P(y)); for two labels there is only the line of the second,
      and P' of the first label is 1 minus its value
    """

    powers: tuple[tuple[float, ...], ...] = ()
    lines: tuple[PortableLine, ...] = ()


@dataclass(frozen=True)
class PortableScorer:
    """A model in the form in which it is written as a program; the inputs are in the order of the schema."""

    class_name: str
    labels: tuple[str, ...]
    inputs: tuple[Input, ...]
    stages: tuple[PortableStage, ...]
    calibration: PortableMap | None = None

    @property
    def tables(self) -> tuple[PortableTable, ...]:
        return tuple(table for stage in self.stages for table in stage.tables)


def make_portable(model: Model) -> PortableScorer:
    """Convert a model to plain tables; raise ModelError if it has no such form, or too many entries."""
    used, stages = _stages_of(model.predictor, model.schema)
    calibration = None if model.calibration is None else model.calibration.map
    if isinstance(calibration, Temperature) and len(stages) == 1:
        stage, factor = stages[0], 1 / calibration.temperature
        tables = tuple(replace(table, entries=table.entries * factor) for table in stage.tables)
        stages, calibration = (replace(stage, shift=stage.shift * factor, tables=tables),), None
    mapped, n_labels = None, len(model.schema.labels)
    if isinstance(calibration, PerClass):
        mapped = PortableMap((calibration.scales, calibration.shifts))
    elif isinstance(calibration, Temperature):
        mapped = PortableMap(((1 / calibration.temperature,) * n_labels, (0.0,) * n_labels))
    elif calibration is not None:
        lines = []
        for at, values in calibration.knots:
            # constant before the first knot and behind the last
            slopes = (0.0, *map(float, np.diff(np.array(values)) / np.diff(np.array(at))), 0.0)
            lines.append(PortableLine(at, (at[0], *at), (values[0], *values), slopes))
        mapped = PortableMap(lines=tuple(lines))
    scorer = PortableScorer(
        model.schema.class_name,
        model.schema.labels,
        tuple(Input.of(model.schema.attributes[i]) for i in used),
        stages,
        mapped,
    )
    entries = sum(table.expanded_size for table in scorer.tables)
    if entries > MOST_ENTRIES:
        what = f"the model is too large to be written as a program: {entries:,} table entries"
        raise ModelError(what, hint=f"the maximum is {MOST_ENTRIES:,}; learn with fewer parents, or with --effort 1")
    return scorer


def _stages_of(predictor: Predictor, schema: Schema) -> tuple[tuple[int, ...], tuple[PortableStage, ...]]:
    """Return the attributes used, ascending, and the stages; raise ModelError for a model that has no such form."""
    stages = []
    if isinstance(predictor, Path):
        scorer = compile_path(predictor)
        for number, stage in enumerate(scorer.stages):
            tables_of_stage = []
            for factor in stage.factors:
                if not isinstance(factor, Factor):
                    raise ModelError("a region is too large to be written with its scores for missing values")
                digits = tuple(tuple(range(n)) for n in factor.shape)
                tables_of_stage.append(PortableTable(factor.positions, digits, factor.shape, factor.tables))
            stages.append(PortableStage(stage.weight, number == 0, stage.shift[:, 0], tuple(tables_of_stage)))
        return scorer.used, tuple(stages)
    if isinstance(predictor, Ensemble) and predictor.pool is Pool.LOGARITHMIC:
        predictor = predictor.combined
    if isinstance(predictor, Tables):
        if network_to_marginalize(predictor, schema) is not None:
            what = "missing values are marginalized over the network, which is not a sum of tables"
            raise ModelError(what, hint="learn with --missing-policy level, or with --structure nb")
        weighted = [(1.0, predictor)]
    else:
        weighted = [(component.weight, component.tables) for component in predictor.components]
    families = [family for _, tables in weighted for family in tables.families if family.by_class]
    used = tuple(sorted({a for family in families for a in family.attributes}))
    place = {a: p for p, a in enumerate(used)}
    for weight, tables in weighted:
        tables_of_stage = []
        for family, entries in zip(tables.families, tables.weights, strict=True):
            if family.by_class:
                axes = zip(family.binned_attributes, family.shape, strict=True)
                # the coarse code of every code; "unobserved" is the last
                digits = tuple((*(grouping or range(n)), n) for (_, grouping), n in axes)
                inputs, averages = tuple(place[a] for a in family.attributes), unobserved_averages(family, schema)
                tables_of_stage.append(PortableTable(inputs, digits, family.shape, score_rows(entries), averages))
        shift = score_rows(tables.bias[None, :])[:, 0]
        stages.append(PortableStage(weight, True, shift, tuple(tables_of_stage)))
    return used, tuple(stages)


@dataclass(frozen=True)
class PortableEffects:
    """Effects that sum to the contrasts: constant (K,), and tables with entries (K, cells), small sets first.

    The tables have entries for "unobserved", so their `averages` are None.
    """

    constant: Array
    tables: tuple[PortableTable, ...]


def make_portable_effects(model: Model, inputs: Sequence[Input], *, apart: bool = False) -> PortableEffects:
    """Convert the effects of a model to tables over the inputs.

    Each set of attributes has one table, or with `apart` one table per binning if these have fewer cells in total. An
    attribute that is not among the inputs has the position -1. Raises ModelError if the effects are not a sum of
    tables, or have more than MOST_CELLS cells, and BncliError if a table has too many attributes.
    """
    mixture, schema = mixture_of(model.predictor, model.schema), model.schema
    if len(mixture.weights) > 1:
        what = f"the model averages the probabilities of {len(mixture.weights):,} models, which are not sums of effects"
        raise ModelError(what, hint="learn with --structure tan or interactions, for example, and without --param kbma")
    score = mixture.averaged().purified(schema)
    terms = list(score.tensors)
    for table in score.tables:
        # purified tables become tensors with zeros for "unobserved", where their terms are 0
        for axes in table.subsets[1:]:
            attributes = [table.attributes[axis] for axis in axes]
            groupings = [table.groupings[axis] for axis in axes]
            terms.append(ContrastTensor.ordered(attributes, groupings, with_unobserved(table.values(axes))))
    score = Score(score.constant, tuple(terms)).calibrated(model.calibration)
    # tensors that become one table
    parts: list[list[ContrastTensor]] = []
    by_set = defaultdict[tuple[int, ...], list[ContrastTensor]](list)
    for tensor in score.tensors:
        by_set[tensor.attributes].append(tensor)
    for key in sorted(by_set, key=lambda key: (len(key), key)):
        by_binning = defaultdict[object, list[ContrastTensor]](list)
        for tensor in by_set[key]:
            by_binning[tensor.groupings].append(tensor)
        apart_cells = sum(_joint_cells(members, schema) for members in by_binning.values())
        if apart and apart_cells < _joint_cells(by_set[key], schema):
            parts += by_binning.values()
        else:
            parts.append(by_set[key])
    # counted before tensors in different binnings are added
    cells = sum(_joint_cells(part, schema) for part in parts)
    if cells > MOST_CELLS:
        what = f"the effects of the model are too large to be written: {cells:,} cells"
        raise ModelError(what, hint=f"the maximum is {MOST_CELLS:,}; learn with fewer parents, or with --effort 1")
    place = {each.name: p for p, each in enumerate(inputs)}
    tables = []
    for tensor in (tensor for part in parts for tensor in add_by_set(part, schema)):
        shape = tensor.values.shape[:-1]
        digits = tuple((*(g or range(n - 1)), n - 1) for g, n in zip(tensor.groupings, shape, strict=True))
        entries = np.moveaxis(tensor.values, -1, 0).reshape(tensor.values.shape[-1], -1)
        positions = tuple(place.get(schema.attributes[a].name, -1) for a in tensor.attributes)
        tables.append(PortableTable(positions, digits, shape, entries))
    return PortableEffects(score.constant, tuple(tables))


def _joint_cells(tensors: Sequence[ContrastTensor], schema: Schema) -> int:
    """Return the number of cells of the sum of tensors over one set of attributes, "unobserved" included."""
    n_cells = 1
    for i, a in enumerate(tensors[0].attributes):
        grouping = common_refinement([tensor.groupings[i] for tensor in tensors], schema.cardinalities[a])
        n_cells *= 1 + (len(set(grouping)) if grouping else schema.cardinalities[a])
    return n_cells
