"""Preconditioners from the Hessian of the log-likelihood, estimated on a sample of rows at the most frequent cells.

With z_t the indicators of row t's cells, the Hessian of -CLL couples the classes y and y' by

    H_yy' = sum over rows t of w_t P(y | x_t) (1[y = y'] - P(y' | x_t)) z_t z_t'

It is summarised by one matrix of co-occurrences per class, C_y = sum_t w_t q_ty z_t z_t'; see
`bncli.engine.kernels.preconditioning` for what is made of them. A row's q is such that the summary of this row alone,
1[y = y'] q_y - q_y q_y' / sum(q), has the trace of its Hessian:

    q_y = h_y / (1 - sum_k h_k^2 / (sum_k h_k)^2),    h_y = P(y | x) (1 - P(y | x))

Exact for two classes, where q_0 = q_1 = 2 P(0|x) P(1|x), and for uniform P. (P(y | x) in its place is exact for one row
and far too stiff for the sum over rows, most of which leave no doubt about their class.) At W = 0 all C_y are C/K, and
one matrix serves. Later the matrices can be *refreshed* at the present tables; with rare classes or almost separable
data that saves most of the remaining passes.

Cells by themselves have the diagonal of C_y, exact where it is refreshed: in some cells hardly a row is in doubt. Along
what several families tell alike the penalty alone curves (`bncli.engine.parameters.preconditioner`): that is added.

A preconditioner need not be exact: evenly spaced rows serve, and only a subspace of the tables gets a dense block (see
`bncli.engine.parameters.preconditioner`). How many rows, and how large a subspace, follows from what it may cost,
counted in passes over the data by a rough model of the time of all parts. Where tables follow predictors, the way leads
through free tables: a function of the tables has one curvature, however it is written. Effects are as many as cells or
fewer, and take the place of cells: their co-occurrences, their diagonal, the most massive of them in the dense block.

Some effects as numbers of each row: what the preconditioner of effects needs of the rows.

    z_tq = sum over families f of T[cell_f(t), q],    C_b[q, r] = sum over rows t of factor_bt z_tq z_tr

There are two ways to C, and the faster one is taken: to count the cells of every two families together, as is done for
indicators (`bncli.engine.kernels.gram`), which is best for few families; or the plain product of matrices, rows by
effects, which is best where many families have few of the effects each.

The numbers are looked up by the configurations of the fused groups: a block of effects belongs to one family, and a
family to one group.

Directions of the tables that change no score: what one family adds for a value, another takes away.

The cells of a family that have value v of attribute i are, taken together, the indicator of that value in every row; so
are those of any other family over i, and all cells of a family together are the bias. With R the sums of cells,

    N = differences of columns of R,    sum over cells c of N[c, j] z_t[c] = 0 in every row t

Along N the likelihood is flat, and the penalty lambda alone curves. A preconditioner Q that sees the rows of every cell
is hundreds of times too stiff there: a descent leaves the span of the rows by Q's own steps, and is long in coming
back. Where tables are W = s p for a factor s a cell, the directions are N / s, and

    Q + N' (N'^T N')^-1 N'^T / lambda,    N' = N / s

has the eigenvalues 1 along them, and elsewhere those of Q, less what it has along them: H N' = lambda N', so Q times
the Hessian is block triangular. Where s is another one for every class, (N'^T N')^-1 is taken from the mean over the
classes of its correlations. Equal sums over pairs of values are not looked for.

The subspace on which a preconditioner is dense: frequent cells one by one, and sums of the others.

    R e_j = cell c_j                                             for the heaviest cells, the *top*
    R e_j = the other cells of family f with value v of its attribute i, together      for the heaviest (f, i, v)

A diagonal scaling treats every cell outside the top as if it were alone. Many light cells that share a value move
together, and the sums of them let a small dense matrix know it: a second, coarse level, as in domain decomposition.
Cells whose curvature comes from the penalty alone take no part: for them the diagonal is right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.counting.fused_codes import Fusion
from bncli.engine.data.dataset import RowBlock
from bncli.engine.kernels.arrays import Array, Index, Integers, Mask
from bncli.engine.kernels.gram import ROWS, Functions, Packing, co_occurrences, functions_work, pack, pack_functions
from bncli.engine.kernels.preconditioning import (
    LEAST_SCALE,
    Precondition,
    Sample,
    Subspace,
    curved,
    dense_work,
    inverse,
    scaled,
    shared,
)
from bncli.engine.parameters.coordinates import CellPredictors, Coordinates, Predictors, Sharing
from bncli.engine.parameters.effect_coding import Effects
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.structures.structure import BinnedAttribute, Family

FEATURE_ROWS = 1 << 11
"""Rows at a time: their effects stay in cache."""
LOOKED_UP, MULTIPLIED = 2.0, 0.1
"""Nanoseconds, roughly, of a number that is looked up, and of a multiplication in a product of matrices."""


@dataclass(frozen=True)
class Features:
    """n effects of each row; `families` look up those of one family each."""

    families: tuple[Functions, ...]
    n: int

    def work(self, n_rows: int, n_blocks: int) -> float:
        """Nanoseconds, roughly, of `products`."""
        return n_rows * self.n * (LOOKED_UP + MULTIPLIED * n_blocks * self.n)

    def affordable_rows(self, budget: float, n_blocks: int) -> int:
        """Return how many rows `budget` nanoseconds are enough for."""
        return int(budget / self.work(1, n_blocks))

    def products(self, configurations: Sequence[Index], factors: Array) -> Array:
        """Return C (blocks, n, n); configurations[g] (rows,) of group g, factors (blocks, rows)."""
        total = np.zeros((len(factors), self.n, self.n))
        for start in range(0, factors.shape[1], FEATURE_ROWS):
            rows = slice(start, start + FEATURE_ROWS)
            total += weighted_products(self.values([codes[rows] for codes in configurations]), factors[:, rows])
        return total

    def values(self, configurations: Sequence[Index]) -> Array:
        """Return z (rows, n); configurations[g] (rows,) of group g."""
        out = np.empty((len(configurations[0]), self.n))
        for family in self.families:
            out[:, family.numbers] = family.values[family.codes[configurations[family.group]]]
        return out


MOST = 1024
"""Directions at most, those of the heaviest values."""


@dataclass(frozen=True)
class NullSpace:
    """N: column j is column plus[j] of the sums less column minus[j]; `scale` (1 or K, n_cells) is s."""

    sums: Subspace
    plus: Index
    minus: Index
    scale: Array

    def added(self, precondition: Precondition, penalty: float, n_labels: int) -> Precondition:
        """Return the preconditioner with what it lacks along N."""
        units, inner = self._inner

        def apply(g: Array) -> Array:
            along = units * self._restrict(g.reshape(n_labels, -1) / self._factor)
            along = units * (along @ inner)
            out = precondition(g)
            out += (self._prolong(along) / (penalty * self._factor)).ravel()
            return out

        return apply

    @cached_property
    def _factor(self) -> Array:
        return np.copysign(np.maximum(np.abs(self.scale), LEAST_SCALE), self.scale)

    @cached_property
    def _inner(self) -> tuple[Array, Array]:
        """The reciprocal lengths of N', (1 or K, columns), and the inverse of its correlations, (columns, columns)."""
        units, total = np.empty((len(self._factor), len(self.plus))), np.zeros((len(self.plus), len(self.plus)))
        for unit, row in zip(units, self._factor, strict=True):
            # N' diag(weights) N, (columns, columns).
            weights = row**-2.0
            gram = self.sums.gram(weights)
            rows = gram[self.plus] - gram[self.minus]
            gram = np.asarray(rows[:, self.plus] - rows[:, self.minus])
            unit[:] = np.maximum(np.diag(gram), np.finfo(float).tiny) ** -0.5
            total += unit[:, np.newaxis] * gram * unit
        return units, inverse(total / len(units))

    def _restrict(self, cells: Array) -> Array:
        sums = self.sums.restrict(cells)
        return np.asarray(sums[:, self.plus] - sums[:, self.minus])

    def _prolong(self, numbers: Array) -> Array:
        out = np.zeros((len(numbers), self.sums.columns.shape[1]))
        sums = np.zeros((len(numbers), self.sums.n))
        sums[:, self.plus] = numbers
        for row, of in zip(sums, numbers, strict=True):
            row -= np.bincount(self.minus, of, self.sums.n)
        self.sums.add(out, sums)
        return out


class _Pair(NamedTuple):
    """Two sets of cells that are active in the same rows, each with its row in a table of columns; those rows' weight.

    Row 0 is the bias's, 1 that of whole families, 2 + i that of the values of the i-th attribute of a family.
    """

    plus: tuple[int, Index]
    minus: tuple[int, Index]
    weight: float


LEAST_SIZE = 64
"""Of a subspace, whatever the budget."""
STRETCH = 1.6
"""A subspace may be so many times larger than the budget allows if no cell is then left out."""
MAX_ENTRIES = 1 << 22
"""The dense blocks of all classes together hold at most so many numbers."""
LEAST_ROWS = 1 << 12
"""Sampled whatever the budget."""
MANY_ROWS, LEAST_OF_MANY = 3_000, 1 << 10
"""Of effects, where there are more rows than MANY_ROWS, fewer are sampled whatever the budget: they vary less."""
CELLS_OF_PREDICTOR = 4.0
"""A factor of lambda, found by trial."""
START_PASSES = 15.0
"""The budget of the first preconditioner."""
FLAT_WORK = 0.3
"""Nanoseconds, roughly, that so many flat directions take, by the cube of their number."""


@dataclass(frozen=True)
class Whitening:
    """What the preconditioners of one optimization share: lambda, and the weight of every cell.

    Of effects, `weights` are the weighted sums of their squares over the rows: their masses. `packings` are how rows
    are looked up for subspaces that were met, by their size and the number of dense blocks; no penalty changes them.
    `values` are the effects of few rows, by the same, looked up once.
    `flat`: where no row curves; None where tables do not follow parameters one by one.
    """

    likelihood: ConditionalLikelihood
    space: Coordinates
    penalty: float
    weights: Array
    packings: dict[tuple[int, int], Packing | Features] = field(default_factory=dict)
    values: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    flat: NullSpace | None = None

    def under(self, penalty: float) -> Whitening:
        """Return the same for another penalty."""
        return replace(self, penalty=penalty)

    def start(self, p: Array) -> Precondition:
        """Return the preconditioner of uniform P(y | x), in the metric of the space at p."""
        size = self._size(START_PASSES, 1 if len(self.space.scale) == 1 else self._n_inverses)
        return self._build(p, None, size, START_PASSES)

    def refresh(self, p: Array, passes: float) -> Precondition:
        """Return the preconditioner at the probabilities of p, at the cost of about so many passes."""
        return self._build(p, self.space.tables(p), self._size(passes, self._n_inverses), passes)

    @property
    def _n_inverses(self) -> int:
        n_labels = self.likelihood.data.n_labels
        return 1 if n_labels == 2 and len(self.space.scale) == 1 else n_labels

    @property
    def _least_rows(self) -> int:
        many = isinstance(self.space.sharing, Effects) and self.likelihood.data.n_rows > MANY_ROWS
        return LEAST_OF_MANY if many else LEAST_ROWS

    @property
    def _cell_penalty(self) -> float:
        """The penalty as one on the tables: of predictors it is spread over the cells that share them.

        Of cells with class 0 at 0 it is spread over the classes: a contrast is met most cheaply by moving all of them.
        """
        sharing, n_labels = self.space.sharing, self.likelihood.data.n_labels
        if isinstance(sharing, CellPredictors):
            return self.penalty * n_labels / max(n_labels - 1, 1)
        return CELLS_OF_PREDICTOR * self.penalty if isinstance(sharing, Predictors) else self.penalty

    def _size(self, passes: float, n_inverses: int) -> int:
        """Return the columns of a subspace on which half of the cost is spent; more where that makes it the whole."""
        budget = passes * self.likelihood.pass_work / 2
        largest = int((MAX_ENTRIES / self._n_inverses) ** 0.5)
        affordable = max(LEAST_SIZE, int((budget / dense_work(n_inverses)) ** (1 / 3)))
        whole = int(np.count_nonzero(self.weights)) if self.space.is_scaled else len(self.weights)
        return min(largest, whole if whole <= STRETCH * affordable else affordable)

    def _build(self, p: Array, tables: Array | None, size: int, passes: float) -> Precondition:
        budget = passes * self.likelihood.pass_work / 2
        n_labels = self.likelihood.data.n_labels
        n_blocks = 1 if tables is None or n_labels == 2 else n_labels
        columns = self._subspace(size)
        # C_y on the subspace, (1 or K, n, n), scaled up from the sampled rows.
        fusion, data, sharing = self.likelihood.fusion, self.likelihood.data, self.space.sharing
        packing: Packing | Features
        if isinstance(sharing, Effects):
            packing = self._effect_packing(sharing, columns, n_blocks)
        else:
            packing = pack([columns.places(members) for members in fusion.members], columns.n)
        n_rows = max(self._least_rows, packing.affordable_rows(budget, n_blocks))
        # evenly spaced and not drawn: the same rows every time
        stride = max(1, data.n_rows // n_rows)
        expanded = None if tables is None else fusion.expand(tables)
        mean = data.total_weight / data.n_rows
        if isinstance(packing, Features) and data.n_rows <= FEATURE_ROWS:
            # Of every row block the codes and the effects of its rows.
            key = (packing.n, n_blocks)
            if key not in self.values:
                codes = self.likelihood.fusion.codes
                kept = self.likelihood.data.keep(_whitening_values, packing, states=codes)
                self.values[key] = list(zip(codes, kept, strict=True))
            states = self.values[key]
            total, weight = data.reduce(_grams_of_values, expanded, mean, states=states)
        else:
            total, weight = data.reduce(_grams, packing, n_blocks, stride, expanded, mean, states=fusion.codes)
        share = 1.0 / data.n_labels if tables is None else 1.0
        grams = np.asarray(total * (share * data.total_weight / weight), np.float64)
        is_whole = len(columns.top) >= np.count_nonzero(self.weights)
        # without a penalty, cells whose rows leave no doubt would have next to no curvature of their own
        if tables is None or is_whole or self.penalty == 0 or isinstance(self.space.sharing, Effects):
            mass = np.multiply.outer(grams[:, 0, 0] / self.weights[0], self.weights)  # column 0 is active in every row
        else:
            mass = self._masses(tables)
        sample, space = Sample(grams, columns, mass), self.space
        if isinstance(space.sharing, Predictors | CellPredictors):
            return _of_predictors(space.sharing, scaled(sample, space.scale, self._cell_penalty, n_labels), n_labels)
        if isinstance(space.sharing, Sharing):
            return shared(sample, space.sharing.scale, space.sharing.index, space.n_parameters, self.penalty)
        if space.is_scaled:
            found = scaled(sample, space.scale, self._cell_penalty, n_labels)
            # a dense block of all cells has the penalty exactly
            lacks = self.flat is not None and self.penalty > 0 and not is_whole
            return self.flat.added(found, self.penalty, n_labels) if self.flat is not None and lacks else found
        jacobian = space.jacobian(p, columns.top)
        return curved(sample, space.curvature(p, mass), jacobian, self.penalty, n_labels)

    def _masses(self, tables: Array) -> Array:
        """Return the diagonal of C_y, (1 or K, n_cells), from all rows."""
        fusion, data = self.likelihood.fusion, self.likelihood.data
        sizes = [len(members) for members in fusion.members]
        return np.asarray(fusion.gather(data.reduce(_masses, sizes, fusion.expand(tables), states=fusion.codes)))

    def _subspace(self, size: int) -> Subspace:
        n_labels, space = self.likelihood.data.n_labels, self.space
        if isinstance(space.sharing, Sharing | Effects) or not space.is_scaled:
            return top_only(self.weights, size)
        curved = self.weights / n_labels * np.square(space.scale).min(axis=0) > self._cell_penalty
        return subspace(self.likelihood.families, self.weights, curved, size)

    def _effect_packing(self, effects: Effects, columns: Subspace, n_blocks: int) -> Packing | Features:
        """Of effects the size alone tells which are in the subspace: the most massive."""
        key = (columns.n, n_blocks)
        if key not in self.packings:
            n_rows = min(self._least_rows, self.likelihood.data.n_rows)
            self.packings[key] = features(effects, self.likelihood.fusion, columns.top, n_rows, n_blocks)
        return self.packings[key]


def weighted_products(values: Array, factors: Array) -> Array:
    """Return C (blocks, n, n) of z (rows, n) and factors (blocks, rows)."""
    return np.stack([(values.T * factor) @ values for factor in factors])


def features(effects: Effects, fusion: Fusion, chosen: Index, n_rows: int, n_blocks: int) -> Packing | Features:
    """Return the effects `chosen`, ascending, the bias, 0, among them, for about so many rows and sets of factors."""
    families = tuple(_functions(effects, fusion, chosen))
    plain = Features(families, len(chosen))
    if functions_work(families, n_rows, n_blocks) <= plain.work(n_rows, n_blocks):
        return pack_functions(families, len(chosen))
    return plain


def _functions(effects: Effects, fusion: Fusion, chosen: Index) -> Iterator[Functions]:
    """Yield the bias, then the families that have any of these effects, group by group."""
    of_family: dict[int, list[tuple[Index, Array]]] = {}
    for family, numbers, table in effects.columns(chosen):
        of_family.setdefault(family, []).append((numbers, table))
    first = np.cumsum([1, *(family.n_cells for family in effects.families)])
    yield Functions(0, np.zeros(len(fusion.members[0]), np.intp), np.zeros(1, np.intp), np.ones((1, 1)))
    for g, members in enumerate(fusion.members):
        for cells in members.T:
            family = int(np.searchsorted(first, cells[0], side="right")) - 1  # -1 for the bias
            if family in of_family:
                numbers = np.concatenate([some for some, _ in of_family[family]])
                table = np.concatenate([values for _, values in of_family[family]], axis=1)
                met = np.bincount(cells - first[family], minlength=len(table)) > 0
                codes = (np.cumsum(met) - 1)[cells - first[family]]
                yield Functions(g, codes, numbers, table[met])


def null_space(families: Sequence[Family], weights: Array, scale: Array, most: int = MOST) -> NullSpace | None:
    """Return what tables over `families` can move without a change of scores.

    Weights (n_cells,) of the rows in each cell.

    `most`: so many directions at most.
    """
    pairs = sorted(_pairs(families, weights), key=lambda pair: -pair.weight)[: min(most, MOST)]
    if not pairs:
        return None
    n, none = 1, -1
    columns = np.full((2 + max(len(family.shape) for family in families), len(weights)), none)
    columns[0, 0] = 0
    numbers = np.empty((2, len(pairs)), np.intp)
    for j, pair in enumerate(pairs):
        for side, (row, cells) in enumerate(pair[:2]):
            if columns[row, cells[0]] == none:
                columns[row, cells] = n
                n += 1
            numbers[side, j] = columns[row, cells[0]]
    columns[columns == none] = n
    used = [0, *(row for row in range(1, len(columns)) if (columns[row] < n).any())]
    return NullSpace(Subspace(columns[used], n), numbers[0], numbers[1], scale)


def _pairs(families: Sequence[Family], weights: Array) -> Iterator[_Pair]:
    """Every family against the first one over the same values, and one of each connected part against the bias."""
    first: dict[BinnedAttribute, list[tuple[int, Index]]] = {}
    part: dict[BinnedAttribute, BinnedAttribute] = {}
    whole: dict[BinnedAttribute, Index] = {}
    offset = 1
    for family in families:
        live = offset + np.flatnonzero(weights[offset : offset + family.n_cells] > 0)
        for place, key in enumerate(family.binned_attributes):
            values = [(2 + place, cells) for cells in _by_value(family, place, live, offset)]
            for plus, minus in zip(values, first.setdefault(key, values), strict=True):
                if plus is not minus and len(plus[1]):
                    yield _Pair(plus, minus, float(weights[plus[1]].sum()))
            _join(part, key, family.binned_attributes[0])
            whole.setdefault(key, live)
        offset += family.n_cells
    for key in part:
        if _root(part, key) == key:
            yield _Pair((1, whole[key]), (0, np.zeros(1, np.intp)), math.inf)


def _by_value(family: Family, place: int, cells: Index, offset: int) -> list[Index]:
    """Return those of the cells that have each value of the attribute in a place of the family."""
    size = family.shape[place]
    value = (cells - offset) // math.prod(family.shape[place + 1 :]) % size
    order = np.argsort(value, kind="stable")
    return np.split(cells[order], np.cumsum(np.bincount(value, minlength=size))[:-1])


def _join(part: dict[BinnedAttribute, BinnedAttribute], one: BinnedAttribute, other: BinnedAttribute) -> None:
    """Let two attributes, new or not, be in one part."""
    for key in (one, other):
        part.setdefault(key, key)
    part[_root(part, one)] = _root(part, other)


def _root(part: dict[BinnedAttribute, BinnedAttribute], key: BinnedAttribute) -> BinnedAttribute:
    while part[key] != key:
        key = part[key]
    return key


def top_only(weights: Array, size: int) -> Subspace:
    """Return the `size` heaviest cells, ties to the lower; cell 0, the bias, is one of them."""
    n = min(size, len(weights))
    columns = np.full((1, len(weights)), n)
    columns[0, _heaviest(weights, n)] = np.arange(n)
    return Subspace(columns, n)


def _heaviest(weights: Array, n: int) -> Index:
    """Return ascending; the heaviest n - 1 and 0, or the heaviest n if 0 is among them."""
    ranked = weights.copy()
    # the bias is active in every row: it always comes first
    ranked[0] = math.inf
    return np.sort(np.argsort(-ranked, kind="stable")[:n])


def subspace(families: Sequence[Family], weights: Array, curved: Mask, size: int) -> Subspace:
    """At most `size` columns, half of them sums where there are so many; weights (n_cells,) of the rows in each cell.

    `curved` tells the cells whose curvature is the data's. The bias, cell 0, is always in the top.
    """
    n_top = size if np.count_nonzero(weights) <= size else size - size // 2
    top = top_only(weights, n_top)
    free = curved & (weights > 0) & (top.columns[0] == top.n)
    candidates = list(_subspace_values(families, free))
    # the sum of one cell would be that cell again
    totals = [float(weights[cells].sum()) if len(cells) > 1 else 0.0 for _, cells in candidates]
    chosen = sorted(np.argsort(np.negative(totals), kind="stable")[: size - top.n])
    chosen = [i for i in chosen if totals[i] > 0]
    n = top.n + len(chosen)
    columns = np.full((1 + max((len(f.shape) for f in families), default=0), len(weights)), n)
    columns[0, top.top] = np.arange(top.n)
    for column, i in enumerate(chosen, start=top.n):
        place, cells = candidates[i]
        columns[1 + place, cells] = column
    used = [0, *(row for row in range(1, len(columns)) if (columns[row] < n).any())]
    return Subspace(columns[used], n)


def _subspace_values(families: Sequence[Family], free: Mask) -> Iterator[tuple[int, Index]]:
    """For every value of every attribute of families of several attributes: its place, the free cells that have it."""
    offset = 1
    for family in families:
        if len(family.shape) > 1:
            cells = np.flatnonzero(free[offset : offset + family.n_cells])
            for place, size in enumerate(family.shape):
                value = cells // math.prod(family.shape[place + 1 :]) % size
                order = np.argsort(value, kind="stable")
                edges = np.cumsum(np.bincount(value, minlength=size))[:-1]
                yield from ((place, offset + cells[part]) for part in np.split(order, edges))
        offset += family.n_cells


def whitening(likelihood: ConditionalLikelihood, space: Coordinates, penalty: float) -> Whitening:
    """Return the preconditioners of an optimization of `likelihood` in `space` under `penalty`."""
    weights = likelihood.cell_weights()
    if isinstance(space.sharing, Effects):
        weights = space.sharing.masses(weights)
    flat = None
    if space.sharing is None and space.is_scaled:
        most = int((START_PASSES * likelihood.pass_work / FLAT_WORK) ** (1 / 3))
        flat = null_space(likelihood.families, weights, space.scale, most)
    return Whitening(likelihood, space, penalty, weights, flat=flat)


def row_factors(scores: Array) -> Array:
    """Return q of the module's formula from scores (K, rows), which are overwritten.

    For two classes, alike, (1, rows).
    """
    # the largest exponent is then 0: nothing overflows
    scores -= np.maximum.reduce(scores, axis=0)
    p = np.exp(scores)
    p /= np.add.reduce(p, axis=0)
    if len(p) == 2:
        return 2.0 * p[:1] * p[1:]
    h = p * (1.0 - p)
    total = h.sum(axis=0) ** 2
    ratio = total / np.maximum(total - np.square(h).sum(axis=0), np.finfo(float).tiny)
    h *= np.minimum(ratio, 2.0)  # never more, but for rounding: 1 - p is 0 where p is within 1e-16 of 1
    return h


def _of_predictors(predictors: Predictors | CellPredictors, precondition: Precondition, n_labels: int) -> Precondition:
    """Return C Q C', Q of free tables, C the map from tables to predictors.

    The inverse Hessian if Q is one without lambda.
    """

    def apply(g: Array) -> Array:
        cells = predictors.transposed(g.reshape(n_labels - 1, predictors.n_predictors))
        tables = precondition(np.concatenate([-cells.sum(axis=0, keepdims=True), cells]).ravel()).reshape(n_labels, -1)
        return predictors.parameters(tables[1:] - tables[0]).ravel()

    return apply


def _grams(
    block: RowBlock,
    packing: Packing | Features,
    n_blocks: int,
    stride: int,
    tables: Sequence[Array] | None,
    unit: float,
) -> tuple[Array, float]:
    """Return the block's part of the co-occurrences (blocks, n, n), and the weight of its sampled rows, in `unit`s."""
    total, weight = np.zeros((n_blocks, packing.n, packing.n)), 0.0
    sampled = np.arange(0, block.n_rows, stride)
    for start in range(0, len(sampled), ROWS):
        rows = sampled[start : start + ROWS]
        codes = [np.asarray(c[rows], np.intp) for c in block.state]
        weights = np.ones(len(rows)) if block.weights is None else block.weights[rows] / unit
        factors = weights[np.newaxis] if tables is None else _factors(codes, tables) * weights
        of_rows = packing.products if isinstance(packing, Features) else partial(co_occurrences, packing)
        total += of_rows(codes, factors)
        weight += float(weights.sum())
    return total, weight


def _factors(codes: Sequence[Integers], tables: Sequence[Array]) -> Array:
    """Return q, shape (K, rows); for two classes, which have the same, (1, rows)."""
    scores = np.zeros((len(tables[0]), len(codes[0])))
    for table, code in zip(tables, codes, strict=True):
        scores += table[:, code]
    return row_factors(scores)


def _masses(block: RowBlock, sizes: Sequence[int], tables: Sequence[Array]) -> list[Array]:
    """Return the block's part of sum_t w_t q_ty in each configuration, (1 or K, configurations) a group."""
    totals: list[Array] = [np.zeros((1, 1)) for _ in sizes]
    for rows in block.slices():
        codes = [np.asarray(c[rows], np.intp) for c in block.state]
        factors = _factors(codes, tables)
        if block.weights is not None:
            factors *= block.weights[rows]
        parts = [np.stack([np.bincount(c, q, n) for q in factors]) for c, n in zip(codes, sizes, strict=True)]
        totals = [total + part for total, part in zip(totals, parts, strict=True)]
    return totals


def _whitening_values(block: RowBlock, found: Features) -> Array:
    return found.values([np.asarray(codes, np.intp) for codes in block.state])


def _grams_of_values(block: RowBlock, tables: Sequence[Array] | None, unit: float) -> tuple[Array, float]:
    """As `_grams`, of all rows of the block and their effects (rows, n)."""
    codes, values = block.state
    weights = np.ones(block.n_rows) if block.weights is None else block.weights / unit
    factors = weights[np.newaxis] if tables is None else _factors(codes, tables) * weights
    return weighted_products(values, factors), float(weights.sum())
