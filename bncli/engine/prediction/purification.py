"""Purified scores: any model as an average of sums of tables, rewritten so that each number has one meaning.

Sums of tables over overlapping sets of attributes are not unique: the effect of one attribute may be in its own table,
or spread over the tables of its pairs. The functional analysis of variance (Hooker 2007, Journal of Computational and
Graphical Statistics 16; Lengerich, Tan, Chang, Hooker & Caruana 2020, AISTATS) removes this freedom. Let attribute i be
distributed as in training, with frequencies q_i, independent of the others. A table V over a set S is the sum of one
term per subset T of S,

    g_T(x_T) = sum over U subset of T of (-1)^(|T| - |U|) E[V | x_U],

found axis by axis: V = mean along the axis + (V - mean along the axis). The score does not change. Every term has mean
0 along each of its axes, so a curve is the deviation from the average, and the term of a pair contains nothing that two
curves could express. Terms over different sets are uncorrelated under the product of the q_i, so their variances add.

Contrasts. An amount that a table adds to the scores of all classes equally has no effect. So a table over attributes (a
`ContrastTensor`) holds the log-odds of each class against the geometric mean of the others:

    V[x, y] = W[x, y] - 1/(K - 1) sum over c != y of W[x, c]  =  K/(K - 1) (W[x, y] - mean over c of W[x, c])

For two classes these are the log-odds ln P(y)/P(other). Contrasts sum to 0 over the classes and determine the
probabilities. With a single class they are 0.

Averages. A `Mixture` is a model as an average of sums of scores G_p:

    P(y | x) = sum over models s of w_s softmax_y S_s[x, y],    S_s = sum over terms p of numbers[s, p] G_p

A model that is not an average has one score, and a linear pool has one per component. A path of Kikuchi-Bayes models
has one score for the class alone and one per region, and `numbers` are the counting numbers.

Very many tables. A table over six attributes has 64 terms, so a thousand such tables have 64,000. With this many, the
terms of a small table are kept in one array (`PureTable`). Its axis i has a position for every value of attribute i,
which holds the deviation from the mean along the axis, and a last position, which holds this mean:

    V[x_i] = (deviation at the position of x_i) + (mean at the last position)

So the term of a set T is where the axes outside T are at their last position. With the strides s_i, the entry that a
row needs for T is at last cell + sum over i in T of (x_i - n_i) s_i. These indices are found for all T by doubling,
with one addition per term. Cost per row and table: 2^n look-ups and additions; memory: prod(n_i + 1) floating-point
numbers per table and class.

Conventions: q is 0 for the code "unobserved", whose entries are split by the same rule and remain exact. Where a table
averages over an unobserved attribute, its purified terms with this attribute are 0. A table over more than
MOST_ATTRIBUTES attributes is refused. Cost: (1 + 1/cardinality)^n passes over a table with n attributes.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bncli.engine.calibration import Calibration, Temperature
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.model import Ensemble, Path, Pool, Predictor, Tables
from bncli.engine.prediction.factors import LEAST_WEIGHT, SubmodelTensors, expand, unobserved_averages
from bncli.engine.structures.regrouping import relative_frequencies
from bncli.engine.structures.structure import BinnedAttribute, Family, Grouping
from bncli.errors import BncliError

MOST_ATTRIBUTES = 8
MANY_TABLES = 256
"""With at least this many small tables without a child, they are kept as `PureTable`s; see `are_many`."""
MOST_CELLS = 1 << 16
"""The maximum number of cells of a small table, including the cells of the means."""
MOST_JOINT_CELLS = 1 << 16
"""If a sum of tables in different binnings may have more cells than this, small tables are kept as `PureTable`s."""


@dataclass(frozen=True)
class ContrastTensor:
    """Contrasts (n_1 + 1, n_2 + 1, ..., K) over the codes of some attributes; the last code is "unobserved".

    attributes: their indices, ascending. groupings: the coarser binning of each attribute, or None for its own codes.
    """

    attributes: tuple[int, ...]
    groupings: tuple[Grouping | None, ...]
    values: Array

    @classmethod
    def ordered(cls, attributes: Sequence[int], groupings: Sequence[Grouping | None], values: Array) -> ContrastTensor:
        """Return the tensor of values whose axes are these attributes, given in any order."""
        order = sorted(range(len(attributes)), key=lambda axis: attributes[axis])
        return cls(
            tuple(attributes[i] for i in order),
            tuple(groupings[i] for i in order),
            np.ascontiguousarray(values.transpose(*order, len(order))),
        )

    @property
    def shown(self) -> Array:
        """The values without "unobserved", (n_1, n_2, ..., K)."""
        return self.values[tuple(slice(-1) for _ in self.attributes)]

    def weights(self, schema: Schema) -> tuple[Array, ...]:
        """Return the relative training frequencies of the codes on every axis, (n_i + 1,), 0 for "unobserved"."""
        axes = zip(self.attributes, self.groupings, strict=True)
        return tuple(np.append(relative_frequencies(schema.attributes[a], grouping), 0.0) for a, grouping in axes)


@dataclass(frozen=True)
class PureTable:
    """The purified terms of a small table.

    shape: (n_1, n_2, ...), the number of digits on each axis. entries: the contrasts (n_1 + 1, n_2 + 1, ..., K) in flat
    form, where the last position on every axis is the mean, followed by a single 0. codes[i] (cardinality,): the digit
    of every code of attributes[i]. frequencies[i] (n_i,): the relative training frequencies of the digits.
    """

    attributes: tuple[int, ...]
    groupings: tuple[Grouping | None, ...]
    shape: tuple[int, ...]
    codes: tuple[Index, ...]
    frequencies: tuple[Array, ...]
    entries: Array

    @classmethod
    def of(cls, family: Family, weights: Array, schema: Schema) -> PureTable:
        """Purify a family's table, weights (cells, K)."""
        binned = family.binned_attributes
        frequencies = tuple(relative_frequencies(schema.attributes[a], grouping) for a, grouping in binned)
        values = contrasts(weights).reshape(*family.shape, -1)
        for axis, q in enumerate(frequencies):
            # the mean along the axis becomes its last position
            mean = np.expand_dims(np.tensordot(q, values, axes=(0, axis)), axis)
            values = np.concatenate([values - mean, mean], axis=axis)
        codes = tuple(
            np.array(grouping if grouping else range(n), np.intp)
            for (_, grouping), n in zip(binned, family.shape, strict=True)
        )
        groupings = tuple(grouping for _, grouping in binned)
        entries = np.append(values.ravel(), 0.0)
        return cls(family.attributes, groupings, family.shape, codes, frequencies, entries)

    @property
    def _contrasts_grid(self) -> Array:
        """The contrasts as an array (n_1 + 1, n_2 + 1, ..., K)."""
        return np.asarray(self.entries[:-1].reshape(*(n + 1 for n in self.shape), -1))

    @property
    def constant(self) -> Array:
        """The constant term, (K,)."""
        return np.asarray(self._contrasts_grid.reshape(-1, self._contrasts_grid.shape[-1])[-1])

    def times(self, factor: float) -> PureTable:
        """Return the table with every term multiplied by `factor`."""
        return replace(self, entries=factor * self.entries)

    @cached_property
    def subsets(self) -> tuple[tuple[int, ...], ...]:
        """The axes of every term, starting with the constant; each axis in turn doubles the list of terms."""
        subsets: list[tuple[int, ...]] = [()]
        for axis in range(len(self.shape)):
            subsets += [(*axes, axis) for axes in subsets]
        return tuple(subsets)

    @property
    def terms(self) -> list[tuple[int, ...]]:
        """The attributes, ascending, of every term except the constant, in the order of `subsets`."""
        return [tuple(sorted(self.attributes[axis] for axis in axes)) for axes in self.subsets[1:]]

    def values(self, axes: Sequence[int]) -> Array:
        """Return the term over the given axes, (n_i, ..., K), with the axes in ascending order."""
        # all values on the axes of the term, the mean on the others
        index = tuple(slice(n) if axis in axes else n for axis, n in enumerate(self.shape))
        return np.asarray(self._contrasts_grid[index])

    def variances(self) -> Array:
        """Return the mean square of each term over values and classes, (2^n - 1,), in the order of `terms`."""
        moments: Array = (self._contrasts_grid**2).mean(axis=-1)
        for axis, q in enumerate(self.frequencies):
            observed = np.tensordot(q, moments.take(range(len(q)), axis), axes=(0, axis))
            # two entries per axis: the mean, for terms without it, and the average over its values, for terms with it
            moments = np.stack([moments.take(-1, axis), observed], axis=axis)
        # the first axis doubles first, so it changes fastest
        return np.asarray(moments.transpose().ravel()[1:])

    def add_to(
        self, sums: Array, rows: Index, codes: Mapping[int, Integers], labels: Index, share: Array | float
    ) -> None:
        """Add each row's value of term t for its label, times `share`, to sums[rows[t]] (N,).

        t is an index into `terms`. rows: distinct, except for rows whose sums are discarded, which may repeat.
        codes[a] (N,): the codes of attribute a. labels (N,). share: a number or (N,).
        """
        cells = math.prod(n + 1 for n in self.shape)
        entry_numbers = np.empty((1 << len(self.shape), len(labels)), np.intp)
        # the constant: the last position on every axis; each axis doubles the terms by moving to the row's digit
        entry_numbers[0] = cells - 1
        for axis, (a, steps) in enumerate(zip(self.attributes, self._index_steps, strict=True)):
            half = 1 << axis
            np.add(entry_numbers[:half], steps[codes[a]], out=entry_numbers[half : 2 * half])
        # K, since entries has cells * K numbers and a final 0
        entry_numbers *= len(self.entries) // cells
        entry_numbers += labels
        sums[rows] += share * np.take(self.entries, entry_numbers[1:], mode="clip")

    @cached_property
    def _index_steps(self) -> tuple[Index, ...]:
        """For each axis, the step that each code adds to an index of cells.

        The step of "unobserved" leads past the end, where np.take clips to the final 0.
        """
        strides = [math.prod(n + 1 for n in self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        # more than the steps of the other axes, which are negative, can take back
        beyond = 2 * math.prod(n + 1 for n in self.shape)
        axes = zip(self.codes, self.shape, strides, strict=True)
        return tuple(np.append((digits - n) * stride, beyond) for digits, n, stride in axes)


@dataclass(frozen=True)
class Score:
    """Contrasts of the classes as a sum of a constant (K,), tensors, and the terms of purified tables.

    The constant terms of the tables are part of `constant`.
    """

    constant: Array
    tensors: tuple[ContrastTensor, ...]
    tables: tuple[PureTable, ...] = ()

    def purified(self, schema: Schema) -> Score:
        """Return the same score with one tensor per set of attributes, each with mean 0 along every axis.

        The tables, which are purified already, are kept.
        """
        constant = self.constant.copy()
        terms = []
        for tensor in self.tensors:
            for axes, values in terms_of(tensor.values, tensor.weights(schema)).items():
                if axes:
                    attributes = tuple(tensor.attributes[axis] for axis in axes)
                    terms.append(ContrastTensor(attributes, tuple(tensor.groupings[axis] for axis in axes), values))
                else:
                    constant += values
        return Score(constant, add_by_set(terms, schema), self.tables)

    def calibrated(self, calibration: Calibration | None) -> Score:
        """Return the score divided by the temperature, or unchanged for any other calibration map or None."""
        if calibration is None or not isinstance(calibration.map, Temperature):
            return self
        factor = 1 / calibration.map.temperature
        tensors = tuple(replace(tensor, values=tensor.values * factor) for tensor in self.tensors)
        return Score(self.constant * factor, tensors, tuple(table.times(factor) for table in self.tables))


@dataclass(frozen=True)
class Mixture:
    """A model as a weighted average of S models whose scores are combinations of P terms.

    weights (S,): with sum 1. numbers (S, P): the coefficient of each term in the score of each model. models: the
    averaged models of a linear pool, each of which is one term; otherwise empty.
    """

    weights: Array
    numbers: Array
    terms: tuple[Score, ...]
    models: tuple[Tables, ...] = ()

    def averaged(self) -> Score:
        """Return the weighted average of the models' scores, which is not the score of their averaged probabilities."""
        shares = self.weights @ self.numbers
        constant = np.sum([share * term.constant for share, term in zip(shares, self.terms, strict=True)], axis=0)
        tensors: list[ContrastTensor] = []
        tables: list[PureTable] = []
        for share, term in zip(shares, self.terms, strict=True):
            tensors += [replace(tensor, values=share * tensor.values) for tensor in term.tensors]
            tables += [table.times(float(share)) for table in term.tables]
        return Score(np.asarray(constant), tuple(tensors), tuple(tables))


def mixture_of(predictor: Predictor, schema: Schema) -> Mixture:
    """Convert a predictor to a mixture; raise BncliError if a table has too many attributes."""
    if isinstance(predictor, Path):
        return _mixture_of_path(predictor)
    if isinstance(predictor, Ensemble) and predictor.pool is Pool.LOGARITHMIC:
        predictor = predictor.combined
    if isinstance(predictor, Tables):
        return Mixture(np.ones(1), np.eye(1), (_score_of_tables(predictor, schema),))
    models = tuple(component.tables for component in predictor.components)
    terms = tuple(_score_of_tables(tables, schema) for tables in models)
    weights = np.array([component.weight for component in predictor.components])
    return Mixture(weights / weights.sum(), np.eye(len(terms)), terms, models)


def _mixture_of_path(path: Path) -> Mixture:
    """Return the average of the steps with weight; its terms are the regions that they count, and the class alone."""
    rows: list[Array] = []
    weights: list[float] = []
    numbers = np.zeros(len(path.families) + 1)
    for step in path.steps:
        for f, change in step.changes:
            numbers[f] += change  # -1, the class alone, is the last
        if step.weight >= LEAST_WEIGHT:
            rows.append(numbers.copy())
            weights.append(step.weight)
    counts = np.array(rows)
    counted = [f for f in range(len(path.families)) if counts[:, f].any()]
    submodels, terms = SubmodelTensors(path), []
    for f in counted:
        family = path.families[f]
        _refuse_many_attributes(family)
        values = contrasts(submodels.expanded(f))
        tensor = ContrastTensor.ordered(family.attributes, (None,) * len(family.shape), values)
        terms.append(Score(np.zeros(values.shape[-1]), (tensor,)))
    terms.append(Score(contrasts(path.class_logs), ()))
    return Mixture(np.array(weights) / sum(weights), counts[:, [*counted, -1]], tuple(terms))


def _score_of_tables(tables: Tables, schema: Schema) -> Score:
    """Return the score of a sum of tables, omitting families that do not depend on the class."""
    families = [(f, w) for f, w in zip(tables.families, tables.weights, strict=True) if f.by_class]
    # Small tables are averaged over what is unobserved, unless the families have a child.
    small = [
        family.child is None
        and math.prod(n + 1 for n in family.shape) <= MOST_CELLS
        and len(family.attributes) <= MOST_ATTRIBUTES
        for family, _ in families
    ]
    if not are_many([f for (f, _), chosen in zip(families, small, strict=True) if chosen], schema.cardinalities):
        small = [False] * len(small)
    tensors, pure_tables = [], []
    for (family, weights), chosen in zip(families, small, strict=True):
        if chosen:
            pure_tables.append(PureTable.of(family, weights, schema))
            continue
        _refuse_many_attributes(family)
        # (K, codes of each attribute), as `expand` needs it, and back to (codes with "unobserved" ..., K)
        rows = contrasts(weights).T.reshape(-1, *family.shape)
        values = np.moveaxis(expand(rows, unobserved_averages(family, schema)), 0, -1)
        groupings = [grouping for _, grouping in family.binned_attributes]
        tensors.append(ContrastTensor.ordered(family.attributes, groupings, values))
    constant = contrasts(tables.bias) + sum(table.constant for table in pure_tables)
    return Score(np.asarray(constant), tuple(tensors), tuple(pure_tables))


def _refuse_many_attributes(family: Family) -> None:
    if len(family.attributes) > MOST_ATTRIBUTES:
        what = f"the effects in a table over {len(family.attributes)} attributes cannot be separated"
        raise BncliError(what, hint=f"learn a model with tables over at most {MOST_ATTRIBUTES} attributes")


def are_many(families: Sequence[Family], cardinalities: Sequence[int]) -> bool:
    """Return whether small families are kept as `PureTable`s: if there are many, or their binnings differ widely.

    Binnings differ widely if, by an upper bound, the sum of the terms over some set of attributes has more than
    MOST_JOINT_CELLS cells.
    """
    if len(families) >= MANY_TABLES:
        return True
    number: dict[BinnedAttribute, int] = {}
    sizes: dict[int, int] = {}
    binnings_of_set: dict[tuple[int, ...], list[set[int]]] = {}
    for family in families:
        binnings = [number.setdefault(binned, len(number)) for binned in family.binned_attributes]
        sizes.update(zip(binnings, family.shape, strict=True))
        axes = sorted(zip(family.attributes, binnings, strict=True))
        for size in range(1, len(axes) + 1):
            for subset in itertools.combinations(axes, size):
                per_axis = binnings_of_set.setdefault(tuple(a for a, _ in subset), [set() for _ in subset])
                for found, (_, binning) in zip(per_axis, subset, strict=True):
                    found.add(binning)
    for key, per_axis in binnings_of_set.items():
        if any(len(binnings) > 1 for binnings in per_axis):
            n_cells = 1
            for a, found in zip(key, per_axis, strict=True):
                # a common refinement of intervals has at most one group more than all binnings have cuts
                n_cells *= min(cardinalities[a], 1 + sum(sizes[binning] - 1 for binning in found))
            if n_cells > MOST_JOINT_CELLS:
                return True
    return False


def contrasts(scores: Array) -> Array:
    """Return contrasts (..., K) from scores (..., K): each class minus the mean of the others; 0 for a single class."""
    n_labels = scores.shape[-1]
    if n_labels == 1:
        return np.zeros_like(scores)
    centred: Array = scores - scores.mean(axis=-1, keepdims=True)
    centred *= n_labels / (n_labels - 1)
    return centred


def with_unobserved(values: Array) -> Array:
    """Append zeros for "unobserved" on every axis of values (n_1, ..., K) except the last."""
    # np.pad takes 13 times as long, which with very many small tensors is a fifth of a report
    whole = np.zeros([*(n + 1 for n in values.shape[:-1]), values.shape[-1]])
    whole[(*[slice(-1)] * (values.ndim - 1),)] = values
    return whole


def terms_of(values: Array, weights: Sequence[Array]) -> dict[tuple[int, ...], Array]:
    """Split values (n_1, n_2, ..., K) into purified terms, keyed by their axes.

    weights[i] (n_i,): the weights of the mean along axis i, with sum 1.
    """
    terms: dict[tuple[int, ...], Array] = {(): values}
    for axis, frequencies in enumerate(weights):
        split: dict[tuple[int, ...], Array] = {}
        for axes, term in terms.items():
            # earlier axes are left only if they are in `axes`, so this axis is number len(axes) of the term
            mean = np.tensordot(frequencies, term, axes=(0, len(axes)))
            split[axes] = mean
            split[(*axes, axis)] = term - np.expand_dims(mean, len(axes))
        terms = split
    return terms


def add_by_set(tensors: Iterable[ContrastTensor], schema: Schema) -> tuple[ContrastTensor, ...]:
    """Sum the tensors over each set of attributes; return the sums, small sets first, then by attributes.

    Tensors that bin an attribute differently are added over the common refinement of their binnings.
    """
    by_set = defaultdict[tuple[int, ...], list[ContrastTensor]](list)
    for tensor in tensors:
        by_set[tensor.attributes].append(tensor)
    sums = []
    for attributes in sorted(by_set, key=lambda key: (len(key), key)):
        members = by_set[attributes]
        if len(members) == 1:
            sums.append(members[0])
            continue
        groupings = tuple(
            common_refinement([tensor.groupings[axis] for tensor in members], schema.cardinalities[a])
            for axis, a in enumerate(attributes)
        )
        total: Array | float = 0.0
        for tensor in members:
            # the values of the tensor over the finer codes of the groupings
            values = tensor.values
            for axis, (own, finer) in enumerate(zip(tensor.groupings, groupings, strict=True)):
                if own is not None and own != finer:
                    n_codes = schema.cardinalities[attributes[axis]]
                    codes = dict(zip(finer or range(n_codes), own, strict=True))
                    # the coarse code of each finer one; "unobserved" is the last code of both
                    values = values.take([*(codes[code] for code in range(len(codes))), max(own) + 1], axis=axis)
            total = total + values
        sums.append(ContrastTensor(attributes, groupings, np.asarray(total)))
    return tuple(sums)


def common_refinement(groupings: Sequence[Grouping | None], cardinality: int) -> Grouping | None:
    """Return the grouping that joins two codes if and only if all given groupings do, or None if it joins none."""
    distinct = list(dict.fromkeys(groupings))
    if None in distinct or len(distinct) == 1:
        return None if None in distinct else distinct[0]
    number: dict[tuple[int, ...], int] = {}
    joint_codes = zip(*(grouping for grouping in distinct if grouping is not None), strict=True)
    finest = tuple(number.setdefault(codes, len(number)) for codes in joint_codes)
    return None if len(number) == cardinality else finest
