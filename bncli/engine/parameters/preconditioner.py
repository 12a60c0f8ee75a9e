"""Preconditioners: approximate inverse Hessians of the penalised log-likelihood, from a sample of the rows.

With z_t the indicators of row t's cells, the Hessian of -CLL couples the classes y and y' by

    H_yy' = sum over rows t of w_t P(y | x_t) (1[y = y'] - P(y' | x_t)) z_t z_t'

It is summarised by one Gram matrix per class, C_y = sum_t w_t q_ty z_t z_t', which
`bncli.engine.kernels.preconditioning` turns into approximate inverses. The factor q of a row is chosen so that the
summary of this row alone, 1[y = y'] q_y - q_y q_y' / sum(q), has the same trace as the row's Hessian:

    q_y = h_y / (1 - sum_k h_k^2 / (sum_k h_k)^2),    h_y = P(y | x) (1 - P(y | x))

This is exact for two classes, where q_0 = q_1 = 2 P(0|x) P(1|x), and for uniform P. (q_y = P(y | x) would be exact for
one row, but far too stiff for the sum over rows, most of which are classified with near certainty.) At W = 0 all C_y
are C/K, and one matrix is enough. Later the matrices can be *refreshed* at the current tables; with rare classes or
almost separable data that saves most of the remaining passes.

A preconditioner need not be exact. So evenly spaced rows are enough, and only a subspace of the tables gets a dense
block. The number of rows and the size of the subspace depend on a budget in passes over the data, according to a rough
model of the time of all parts. If tables are functions of predictors, the preconditioner of free tables is mapped to
the predictors, because the curvature of a function of the tables does not depend on how it is parameterised. Effects
are treated like cells: they have Gram matrices and a diagonal, and the effects with the largest mass are in the dense
block.

**Subspace.** The dense block covers frequent cells one by one, and sums of the others:

    R e_j = cell c_j                                             for the heaviest cells, the *top*
    R e_j = the other cells of family f with value v of its attribute i, together      for the heaviest (f, i, v)

A diagonal scaling treats every cell outside the top by itself. But many light cells that share a value move together;
with their sums, a small dense matrix accounts for that, like the coarse level in domain decomposition. Cells whose
curvature comes mainly from the penalty are left out of the sums, since the diagonal is right for them. The scaling uses
the diagonal of C_y; after a refresh it comes from all rows, because in some cells hardly any row is uncertain.

**Flat directions.** Some directions of the tables change no score: what one family adds for a value, another subtracts.
In every row, the indicators of a family's cells with value v of attribute i sum to the indicator of that value,
whichever family over i is taken. The indicators of all cells of a family sum to 1, as does the bias. With R the sums of
cells,

    N = differences of columns of R,    sum over cells c of N[c, j] z_t[c] = 0 in every row t

Along N the likelihood is flat, and only the penalty lambda has curvature. A preconditioner Q that considers only the
rows of each cell is hundreds of times too stiff there: its steps leave the span of the rows, and it takes many
iterations to return. If tables are W = s p for a factor s per cell, the directions are N / s, and

    Q + N' (N'^T N')^-1 N'^T / lambda,    N' = N / s

times the Hessian has the eigenvalue 1 along them. Since H N' = lambda N', Q times the Hessian is block triangular, so
the other eigenvalues are those of Q times the Hessian without the part along these directions. If s differs between the
classes, (N'^T N')^-1 is computed from the mean over the classes of its correlations. Equal sums over pairs of values
give further flat directions, which are not included.

**Many classes.** With more than MANY_CLASSES classes, a dense block per class would take longer than the passes that it
saves, and a sample of the rows has few of each class. But P(y | x) (1 - P(y | x)) is then nearly P(y | x), so H_yy is
nearly the co-occurrence of cells in class y, which a network without arcs predicts from the curvature of single cells
(`factored_preconditioner`). That takes one pass over all rows, and can be repeated often.

**Effects of rows.** For effects, the rows enter through

    z_tq = sum over families f of T[cell_f(t), q],    C_b[q, r] = sum over rows t of factor_bt z_tq z_tr

C is computed by the faster of two methods: counting the joint cells of every two families, as for indicators
(`bncli.engine.kernels.gram`), which is best for few families; or a product of matrices (rows by effects), which is best
for many families with few effects each. The effects are looked up by the configurations of the fused groups: a block of
effects belongs to one family, and a family to one group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.counting.fused_codes import Fusion
from bncli.engine.data.dataset import RowBlock
from bncli.engine.kernels.arrays import Array, Index, Integers, Mask
from bncli.engine.kernels.gram import (
    ROWS,
    Functions,
    Packing,
    co_occurrences,
    functions_work,
    pack_functions,
    pack_indicators,
)
from bncli.engine.kernels.passes import MANY_CLASSES
from bncli.engine.kernels.preconditioning import (
    LEAST_SCALE,
    Precondition,
    RowsPrecondition,
    SampledCurvature,
    Subspace,
    curved_preconditioner,
    dense_work,
    factored_preconditioner,
    inverse,
    scaled_preconditioner,
    shared_preconditioner,
)
from bncli.engine.parameters.coordinates import (
    Contrasts,
    Coordinates,
    EntryCoordinates,
    Predictors,
    SharedWeights,
    Softmax,
)
from bncli.engine.parameters.effect_coding import EffectCoordinates, Effects
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.structures.structure import BinnedAttribute, Family

LEAST_SIZE = 64
"""The budget never makes a subspace smaller than this number of columns."""
STRETCH = 1.6
"""A subspace may exceed its budget by this factor if it then includes every cell."""
MAX_ENTRIES = 1 << 22
"""The maximum number of elements in the dense blocks of all classes together."""
LEAST_ROWS = 1 << 12
"""The minimum number of rows sampled, regardless of the budget; if there are fewer, all are used."""
MANY_ROWS, LEAST_OF_MANY = 3_000, 1 << 10
"""For effects of more than MANY_ROWS rows, at least LEAST_OF_MANY rows are sampled, since effects vary less than cells.

The same minimum holds for cells with more than MANY_CLASSES classes, whose matrices would cost more than the passes
that they save.
"""
CELLS_OF_PREDICTOR = 4.0
"""The factor that converts a penalty on predictors into a penalty on cells, chosen by experiment."""
START_PASSES = 15.0
"""The budget of the first preconditioner, in passes."""
MOST_FLAT = 1024
"""The maximum number of flat directions; the directions of the values with the largest weight are used."""
FLAT_WORK = 0.3
"""The approximate time for n flat directions, in units of n^3 nanoseconds."""
SCORES_IN_CACHE, FEWEST_AT_A_TIME = 1 << 17, 1 << 7
"""The maximum number of scores computed at a time, unless FEWEST_AT_A_TIME rows have more."""
FEATURE_ROWS = 1 << 11
"""The number of rows processed at a time, so that their effects stay in the cache."""
LOOKED_UP, MULTIPLIED = 2.0, 0.1
"""Approximate nanoseconds to look up a value, and for a multiplication in a matrix product."""


def whitening(likelihood: ConditionalLikelihood, coordinates: Coordinates) -> Whitening:
    """Return the state that the preconditioners share in an optimization of `likelihood` in `coordinates`."""
    weights = likelihood.cell_weights()
    if isinstance(coordinates, EffectCoordinates):
        weights = coordinates.effects.masses(weights)
    flat = None
    if isinstance(coordinates, EntryCoordinates) and not is_factored(likelihood, coordinates):
        # the number whose cube takes the time of START_PASSES passes
        most = int((START_PASSES * likelihood.pass_work / FLAT_WORK) ** (1 / 3))
        scale = np.ones((1, likelihood.n_cells)) if coordinates.scale is None else coordinates.scale
        flat = null_space(likelihood.families, weights, scale, most, likelihood.cells)
    return Whitening(likelihood, coordinates, weights, flat)


def is_factored(likelihood: ConditionalLikelihood, coordinates: Coordinates) -> bool:
    """Return whether preconditioners come from the curvature of single cells, which costs one pass."""
    return likelihood.data.n_labels > MANY_CLASSES and isinstance(coordinates, EntryCoordinates)


@dataclass(frozen=True)
class Whitening:
    """The state that the preconditioners of one optimization share.

    `weights` are the weights of all cells, or the masses of effects, which are their weighted sums of squares over the
    rows. `flat` holds the flat directions, or None if there are none or they are not used; they are used only if every
    table entry is a multiple of its own parameter. `packings` caches how effects are looked up, and `values` the
    effects of the rows if there are few; their keys are the size of the subspace and the number of dense blocks.
    """

    likelihood: ConditionalLikelihood
    coordinates: Coordinates
    weights: Array
    flat: NullSpace | None = None
    packings: dict[tuple[int, int], Packing | Features] = field(default_factory=dict)
    values: dict[tuple[int, int], list[Any]] = field(default_factory=dict)

    def start(self, p: Array, penalty: float) -> Precondition:
        """Return the preconditioner for uniform P(y | x), with the derivative of the tables at p."""
        if is_factored(self.likelihood, self.coordinates):
            n_labels = self.likelihood.data.n_labels
            # P (1 - P) = (K - 1) / K^2 at uniform probabilities
            return self._factored(np.tile(self.weights * (n_labels - 1) / n_labels**2, (n_labels, 1)), penalty)
        size = self._size(START_PASSES, 1 if len(self._scale) == 1 else self._n_inverses)
        return self._build(p, None, size, START_PASSES, penalty)

    def refresh(self, p: Array, passes: float, penalty: float) -> Precondition:
        """Return the preconditioner for the probabilities at p, at the cost of about `passes` passes."""
        if is_factored(self.likelihood, self.coordinates):
            return self._factored(self.likelihood.variances(self.coordinates.tables(p)), penalty)
        size = self._size(passes, self._n_inverses)
        return self._build(p, self.coordinates.tables(p), size, passes, penalty)

    def _factored(self, mass: Array, penalty: float) -> Precondition:
        first_cells = np.cumsum([0, 1, *(family.n_cells for family in self.likelihood.families)])[:-1]
        if self.likelihood.cells is not None:
            first_cells = np.searchsorted(self.likelihood.cells, first_cells)
        return factored_preconditioner(mass, self._scale, penalty, first_cells)

    @property
    def _scale(self) -> Array:
        """The factor of each table entry, (1 or K, n_cells), or 1 for each effect."""
        coordinates = self.coordinates
        if isinstance(coordinates, EntryCoordinates | SharedWeights) and coordinates.scale is not None:
            return coordinates.scale
        return np.ones((1, len(self.weights)))

    @property
    def _n_inverses(self) -> int:
        n_labels = self.likelihood.data.n_labels
        return 1 if n_labels == 2 and len(self._scale) == 1 else n_labels

    def _size(self, passes: float, n_inverses: int) -> int:
        """Return the number of columns of the dense block that half of `passes` passes allows.

        It is the number of all cells with rows if that exceeds the budget by no more than the factor STRETCH.
        """
        budget = passes * self.likelihood.pass_work / 2
        largest = int((MAX_ENTRIES / self._n_inverses) ** 0.5)
        affordable = max(LEAST_SIZE, int((budget / dense_work(n_inverses)) ** (1 / 3)))
        is_softmax = isinstance(self.coordinates, Softmax)
        n_cells = len(self.weights) if is_softmax else int(np.count_nonzero(self.weights))
        return min(largest, n_cells if n_cells <= STRETCH * affordable else affordable)

    def _build(self, p: Array, tables: Array | None, size: int, passes: float, penalty: float) -> Precondition:
        """Return the preconditioner at p; `tables` is None for uniform probabilities."""
        coordinates, n_labels = self.coordinates, self.likelihood.data.n_labels
        columns = self._subspace(size, penalty)
        grams = self._grams(columns, tables, passes * self.likelihood.pass_work / 2)
        is_whole = len(columns.top) >= np.count_nonzero(self.weights)
        # without a penalty, cells whose rows are all certain would have almost no curvature
        if tables is None or is_whole or penalty == 0 or isinstance(coordinates, EffectCoordinates):
            mass = np.multiply.outer(grams[:, 0, 0] / self.weights[0], self.weights)  # column 0 is active in every row
        else:
            fusion, data = self.likelihood.fusion, self.likelihood.data
            sizes = [len(members) for members in fusion.members]
            totals = data.reduce(_block_masses, sizes, fusion.expand(tables), states=fusion.codes)
            mass = np.asarray(fusion.gather(totals))
        sample = SampledCurvature(grams, columns, mass)
        if isinstance(coordinates, Softmax):
            jacobian = coordinates.jacobian(p, columns.top)
            return curved_preconditioner(sample, coordinates.curvature(p, mass), jacobian, penalty, n_labels)
        if isinstance(coordinates, SharedWeights):
            return shared_preconditioner(
                sample, coordinates.scale, coordinates.index, coordinates.n_parameters, penalty
            )
        of_tables = scaled_preconditioner(sample, self._scale, self._cell_penalty(penalty), n_labels)
        if isinstance(coordinates, Contrasts):
            return _mapped_to_predictors(coordinates, of_tables)
        # a dense block of all cells has the penalty exactly
        if self.flat is None or penalty == 0 or is_whole:
            return of_tables
        return self.flat.added_to(of_tables, penalty, n_labels)

    def _cell_penalty(self, penalty: float) -> float:
        """Convert the penalty on the parameters into a penalty on free tables.

        A penalty on predictors is spread over the cells that share them. A penalty on cells with class 0 fixed at 0 is
        spread over the classes, because the cheapest way to change a contrast changes all classes.
        """
        if not isinstance(self.coordinates, Contrasts):
            return penalty
        n_labels = self.likelihood.data.n_labels
        if isinstance(self.coordinates.predictors, Predictors):
            return CELLS_OF_PREDICTOR * penalty
        return penalty * n_labels / max(n_labels - 1, 1)

    def _subspace(self, size: int, penalty: float) -> Subspace:
        if isinstance(self.coordinates, SharedWeights | EffectCoordinates | Softmax):
            return top_only(self.weights, size)
        n_labels = self.likelihood.data.n_labels
        # the smallest curvature s^2 m / K of the classes, against that of the penalty
        curved_by_data = self.weights / n_labels * np.square(self._scale).min(axis=0) > self._cell_penalty(penalty)
        return subspace(self.likelihood.families, self.weights, curved_by_data, size, self.likelihood.cells)

    def _grams(self, columns: Subspace, tables: Array | None, budget: float) -> Array:
        """Return C_y on the subspace, (1 or K, n, n), from a sample of rows that takes about `budget` nanoseconds."""
        fusion, data = self.likelihood.fusion, self.likelihood.data
        n_blocks = 1 if tables is None or data.n_labels == 2 else data.n_labels
        least_rows = LEAST_ROWS if data.n_labels <= MANY_CLASSES else LEAST_OF_MANY
        key = (columns.n, n_blocks)
        if isinstance(self.coordinates, EffectCoordinates):
            least_rows = LEAST_OF_MANY if data.n_rows > MANY_ROWS else LEAST_ROWS
            # the subspace has the effects with the largest mass, so its size determines them
            if key not in self.packings:
                effects, n_sampled = self.coordinates.effects, min(least_rows, data.n_rows)
                self.packings[key] = features_of(effects, fusion, columns.top, n_sampled, n_blocks)
            packing = self.packings[key]
        else:
            packing = pack_indicators([columns.columns_of(members) for members in fusion.members], columns.n)
        n_rows = max(least_rows, packing.affordable_rows(budget, n_blocks))
        # evenly spaced rather than drawn, so that the rows are the same every time
        stride = max(1, data.n_rows // n_rows)
        expanded = None if tables is None else fusion.expand(tables)
        mean_weight = data.total_weight / data.n_rows
        if isinstance(packing, Features) and data.n_rows <= FEATURE_ROWS:
            if key not in self.values:
                stored = data.keep(_block_values, packing, states=fusion.codes)
                self.values[key] = list(zip(fusion.codes, stored, strict=True))
            total, weight = data.reduce(_block_grams_of_values, expanded, mean_weight, states=self.values[key])
        else:
            shape = (packing, n_blocks, stride)
            total, weight = data.reduce(_block_grams, *shape, expanded, mean_weight, states=fusion.codes)
        # C_y = C / K at uniform probabilities; scaled from the sampled rows to the weight of all
        share = 1.0 / data.n_labels if tables is None else 1.0
        return np.asarray(total * (share * data.total_weight / weight), np.float64)


def _mapped_to_predictors(contrasts: Contrasts, of_tables: Precondition) -> Precondition:
    """Return C Q C', where Q is the preconditioner of free tables and C the map from tables to predictors.

    Without a penalty, this is the inverse Hessian if Q is the inverse Hessian in the tables.
    """
    predictors, n_labels = contrasts.predictors, len(contrasts.log_theta)

    def apply(g: Array) -> Array:
        # adding the same to all classes changes no probability, so the gradients of all classes sum to 0
        cells = predictors.transposed(g.reshape(n_labels - 1, predictors.n_predictors))
        tables = of_tables(np.concatenate([-cells.sum(axis=0, keepdims=True), cells]).ravel()).reshape(n_labels, -1)
        return predictors.parameters(tables[1:] - tables[0]).ravel()

    return apply


def row_factors(scores: Array) -> Array:
    """Return the factors q of the module docstring, (K, rows), from scores (K, rows), which are overwritten.

    For two classes, which have the same q, the shape is (1, rows).
    """
    # the largest exponent is then 0, so that nothing overflows
    scores -= np.maximum.reduce(scores, axis=0)
    p = np.exp(scores)
    p /= np.add.reduce(p, axis=0)
    if len(p) == 2:
        return 2.0 * p[:1] * p[1:]
    h = p * (1.0 - p)
    total = h.sum(axis=0) ** 2
    ratio = total / np.maximum(total - np.square(h).sum(axis=0), np.finfo(float).tiny)
    h *= np.minimum(ratio, 2.0)  # only rounding makes the ratio larger: 1 - p is 0 if p is within 1e-16 of 1
    return h


def weighted_products(values: Array, factors: Array) -> Array:
    """Return C (blocks, n, n) from z = `values` (rows, n) and factors (blocks, rows)."""
    return np.stack([(values.T * factor) @ values for factor in factors])


def _block_grams(
    block: RowBlock,
    packing: Packing | Features,
    n_blocks: int,
    stride: int,
    tables: Sequence[Array] | None,
    unit: float,
) -> tuple[Array, float]:
    """Return the part of the Gram matrices (blocks, n, n) from one block of rows, and the weight of the sampled rows.

    Weights are divided by `unit`.
    """
    total, weight = np.zeros((n_blocks, packing.n, packing.n)), 0.0
    products = packing.products if isinstance(packing, Features) else partial(co_occurrences, packing)
    sampled = np.arange(0, block.n_rows, stride)
    for start in range(0, len(sampled), ROWS):
        rows = sampled[start : start + ROWS]
        codes = [np.asarray(c[rows], np.intp) for c in block.state]
        weights = np.ones(len(rows)) if block.weights is None else block.weights[rows] / unit
        factors = weights[np.newaxis] if tables is None else _factors(codes, tables) * weights
        own = products(codes, factors)
        if start == 0:
            total = own
        else:
            total += own
        del own
        weight += float(weights.sum())
    return total, weight


def _block_values(block: RowBlock, features: Features) -> Array:
    return features.values([np.asarray(codes, np.intp) for codes in block.state])


def _block_grams_of_values(block: RowBlock, tables: Sequence[Array] | None, unit: float) -> tuple[Array, float]:
    """Return the same as `_block_grams`, from all rows of the block and their effects (rows, n)."""
    codes, values = block.state
    weights = np.ones(block.n_rows) if block.weights is None else block.weights / unit
    factors = weights[np.newaxis] if tables is None else _factors(codes, tables) * weights
    return weighted_products(values, factors), float(weights.sum())


def _block_masses(block: RowBlock, sizes: Sequence[int], tables: Sequence[Array]) -> list[Array]:
    """Return a block's part of sum_t w_t q_ty in each configuration, (1 or K, configurations) per group."""
    totals: list[Array] = [np.zeros((1, 1)) for _ in sizes]
    for rows in block.slices():
        codes = [np.asarray(c[rows], np.intp) for c in block.state]
        factors = _factors(codes, tables)
        if block.weights is not None:
            factors *= block.weights[rows]
        parts = [np.stack([np.bincount(c, q, n) for q in factors]) for c, n in zip(codes, sizes, strict=True)]
        totals = [total + part for total, part in zip(totals, parts, strict=True)]
    return totals


def _factors(codes: Sequence[Integers], tables: Sequence[Array]) -> Array:
    """Return q of the rows, (K, rows) or (1, rows) for two classes, given their codes and the tables of the groups."""
    n_labels, n_rows = len(tables[0]), len(codes[0])
    at_a_time = max(FEWEST_AT_A_TIME, SCORES_IN_CACHE // n_labels)
    parts = []
    for start in range(0, max(n_rows, 1), at_a_time):
        part = slice(start, start + at_a_time)
        scores = np.zeros((n_labels, min(at_a_time, n_rows - start)))
        for table, code in zip(tables, codes, strict=True):
            scores += table.take(code[part], axis=1)
        parts.append(row_factors(scores))
    return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]


@dataclass(frozen=True)
class Features:
    """The look-up of the n effects of each row, family by family."""

    families: tuple[Functions, ...]
    n: int

    def work(self, n_rows: int, n_blocks: int) -> float:
        """Return the approximate time of `products` in nanoseconds."""
        return n_rows * self.n * (LOOKED_UP + MULTIPLIED * n_blocks * self.n)

    def affordable_rows(self, budget: float, n_blocks: int) -> int:
        """Return the number of rows for which `products` takes about `budget` nanoseconds."""
        return int(budget / self.work(1, n_blocks))

    def products(self, configurations: Sequence[Index], factors: Array) -> Array:
        """Return C (blocks, n, n), given configurations[g] (rows,) of group g and factors (blocks, rows)."""
        total = np.zeros((len(factors), self.n, self.n))
        for start in range(0, factors.shape[1], FEATURE_ROWS):
            rows = slice(start, start + FEATURE_ROWS)
            total += weighted_products(self.values([codes[rows] for codes in configurations]), factors[:, rows])
        return total

    def values(self, configurations: Sequence[Index]) -> Array:
        """Return z (rows, n), given configurations[g] (rows,) of group g."""
        out = np.empty((len(configurations[0]), self.n))
        for family in self.families:
            out[:, family.numbers] = family.values[family.codes[configurations[family.group]]]
        return out


def features_of(effects: Effects, fusion: Fusion, chosen: Index, n_rows: int, n_blocks: int) -> Packing | Features:
    """Return the faster look-up of the effects `chosen`, for `n_rows` rows and `n_blocks` sets of factors.

    `chosen` is in ascending order and includes the bias, effect 0.
    """
    by_family: dict[int, list[tuple[Index, Array]]] = {}
    for family, numbers, table in effects.columns(chosen):
        by_family.setdefault(family, []).append((numbers, table))
    # the bias, then the families with chosen effects, group by group
    first = np.array(effects.first_cells)
    functions = [Functions(0, np.zeros(len(fusion.members[0]), np.intp), np.zeros(1, np.intp), np.ones((1, 1)))]
    for g, members in enumerate(fusion.members):
        # members (configurations, families of the group): the cell of each family in each configuration
        for cells in members.T:
            family = int(np.searchsorted(first, cells[0], side="right")) - 1  # -1 for the bias
            if family in by_family:
                numbers = np.concatenate([effect_numbers for effect_numbers, _ in by_family[family]])
                table = np.concatenate([effect_table for _, effect_table in by_family[family]], axis=1)
                inside = cells - first[family]
                occurs = np.bincount(inside, minlength=len(table)) > 0
                # codes number the cells that occur in some configuration of the group
                functions.append(Functions(g, (np.cumsum(occurs) - 1)[inside], numbers, table[occurs]))
    plain = Features(tuple(functions), len(chosen))
    if functions_work(functions, n_rows, n_blocks) <= plain.work(n_rows, n_blocks):
        return pack_functions(functions, len(chosen))
    return plain


def top_only(weights: Array, size: int) -> Subspace:
    """Return the subspace of the `size` cells with the largest weights (ties: the lower cell), including the bias."""
    n = min(size, len(weights))
    ranked = weights.copy()
    # the bias is active in every row, so it always comes first
    ranked[0] = math.inf
    # n marks the cells without a column
    columns = np.full((1, len(weights)), n)
    columns[0, np.sort(np.argsort(-ranked, kind="stable")[:n])] = np.arange(n)
    return Subspace(columns, n)


def subspace(
    families: Sequence[Family], weights: Array, curved: Mask, size: int, numbers: Index | None = None
) -> Subspace:
    """Return a subspace of at most `size` columns.

    They are all cells with rows if these fit, otherwise the heaviest cells and up to size // 2 sums of cells.

    weights (n_cells,) is the weight of the rows in each cell; `curved` marks the cells whose curvature comes mainly
    from the data. The bias, cell 0, is always one of the top cells. `numbers` (n_cells,) are the cells' indices among
    all cells of the families, in ascending order, or None if these are all cells.
    """
    numbers = np.arange(len(weights)) if numbers is None else numbers
    # without sums if every occurring cell fits
    n_top = size if np.count_nonzero(weights) <= size else size - size // 2
    top = top_only(weights, n_top)
    free = curved & (weights > 0) & (top.columns[0] == top.n)
    # the free cells with each value of each attribute, in families of several attributes
    candidates, first = [], 1
    for family in families:
        own = slice(*np.searchsorted(numbers, (first, first + family.n_cells)))
        cells = own.start + np.flatnonzero(free[own])
        for place in range(len(family.shape) if len(family.shape) > 1 else 0):
            candidates += [(place, part) for part in _split_by_value(family, place, cells, numbers[cells] - first)]
        first += family.n_cells
    # the sum of one cell would be that cell again
    totals = [float(weights[cells].sum()) if len(cells) > 1 else 0.0 for _, cells in candidates]
    chosen = sorted(np.argsort(np.negative(totals), kind="stable")[: size - top.n])
    chosen = [i for i in chosen if totals[i] > 0]
    n = top.n + len(chosen)
    # row 0: top cells; row 1 + place: sums over the value of the attribute at that place, so no cell has two in a row
    columns = np.full((1 + max((len(f.shape) for f in families), default=0), len(weights)), n)
    columns[0, top.top] = np.arange(top.n)
    for column, i in enumerate(chosen, start=top.n):
        place, cells = candidates[i]
        columns[1 + place, cells] = column
    used = [0, *(row for row in range(1, len(columns)) if (columns[row] < n).any())]
    return Subspace(columns[used], n)


def _split_by_value(family: Family, place: int, cells: Index, inside: Index) -> list[Index]:
    """Group cells by the value of the attribute at position `place`; `inside` are the cells' numbers in the family."""
    size = family.shape[place]
    # the digit at that place of the cell's mixed-radix number
    values = inside // math.prod(family.shape[place + 1 :]) % size
    order = np.argsort(values, kind="stable")
    return np.split(cells[order], np.cumsum(np.bincount(values, minlength=size))[:-1])


@dataclass(frozen=True)
class NullSpace:
    """The flat directions N: column j is column plus[j] of `sums` minus its column minus[j].

    `scale` (1 or K, n_cells) is the factor s of each cell.
    """

    sums: Subspace
    plus: Index
    minus: Index
    scale: Array

    def added_to(self, precondition: RowsPrecondition, penalty: float, n_labels: int) -> RowsPrecondition:
        """Return `precondition` plus the term N' (N'^T N')^-1 N'^T / penalty along the flat directions."""
        sums, (units, inner) = self.sums, self._inner

        def apply(g: Array) -> Array:
            # (m, K, n_cells), and the same with all rows below one another
            shape = (len(g), n_labels, sums.columns.shape[1])
            restricted = sums.restrict((g.reshape(shape) / self._factor).reshape(-1, shape[2]))
            projected = (restricted[:, self.plus] - restricted[:, self.minus]).reshape(len(g), n_labels, -1)
            along = np.asarray(units * (units * projected @ inner)).reshape(len(restricted), -1)
            # N times `along`, as sums of cells
            columns = np.zeros((len(along), sums.n))
            columns[:, self.plus] = along
            for row, numbers in zip(columns, along, strict=True):
                row -= np.bincount(self.minus, numbers, sums.n)
            # added to `precondition(g)`: N' (N'^T N')^-1 N'^T g / lambda
            cells = np.zeros((len(along), shape[2]))
            sums.add(cells, columns)
            out = precondition.of_rows(g)
            out += (cells.reshape(shape) / (penalty * self._factor)).reshape(g.shape)
            return out

        return RowsPrecondition(apply)

    @cached_property
    def _factor(self) -> Array:
        return np.copysign(np.maximum(np.abs(self.scale), LEAST_SCALE), self.scale)

    @cached_property
    def _inner(self) -> tuple[Array, Array]:
        """The reciprocal lengths of N', (1 or K, columns), and the inverse of its correlations, (columns, columns)."""
        units, total = np.empty((len(self._factor), len(self.plus))), np.zeros((len(self.plus), len(self.plus)))
        for unit, row in zip(units, self._factor, strict=True):
            # N' diag(row^-2) N, (columns, columns)
            gram = self.sums.gram(row**-2.0)
            rows = gram[self.plus] - gram[self.minus]
            gram = np.asarray(rows[:, self.plus] - rows[:, self.minus])
            unit[:] = np.maximum(np.diag(gram), np.finfo(float).tiny) ** -0.5
            total += unit[:, np.newaxis] * gram * unit
        return units, inverse(total / len(units))


class _Pair(NamedTuple):
    """Two sets of cells that are active in the same rows, and the weight of these rows.

    Each set is preceded by its row in `Subspace.columns`: 0 for the bias, 1 for whole families, 2 + i for the values of
    the i-th attribute of a family. A pair with the bias has infinite weight.
    """

    plus: tuple[int, Index]
    minus: tuple[int, Index]
    weight: float


def null_space(
    families: Sequence[Family], weights: Array, scale: Array, most: int = MOST_FLAT, numbers: Index | None = None
) -> NullSpace | None:
    """Return up to `most` directions of tables over `families` that change no score, or None if there are none.

    weights (n_cells,) is the weight of the rows in each cell; scale (1 or K, n_cells) is the factor s of each cell.
    `numbers` is as in `subspace`.
    """
    numbers = np.arange(len(weights)) if numbers is None else numbers
    pairs = sorted(_pairs(families, weights, numbers), key=lambda pair: -pair.weight)[: min(most, MOST_FLAT)]
    if not pairs:
        return None
    # every set of cells gets a column once, however many pairs it is in; column 0 is the bias
    n, none = 1, -1
    columns = np.full((2 + max(len(family.shape) for family in families), len(weights)), none)
    columns[0, 0] = 0
    of_pairs = np.empty((2, len(pairs)), np.intp)
    for j, pair in enumerate(pairs):
        for side, (row, cells) in enumerate(pair[:2]):
            if columns[row, cells[0]] == none:
                columns[row, cells] = n
                n += 1
            of_pairs[side, j] = columns[row, cells[0]]
    # `Subspace` marks cells without a column by n
    columns[columns == none] = n
    used = [0, *(row for row in range(1, len(columns)) if (columns[row] < n).any())]
    return NullSpace(Subspace(columns[used], n), of_pairs[0], of_pairs[1], scale)


def _pairs(families: Sequence[Family], weights: Array, numbers: Index) -> Iterator[_Pair]:
    """Yield the cells of each value in a family, paired with its cells in the first family with the same attribute.

    Families that share attributes, directly or through other families, form one part; one family of each part is paired
    with the bias.
    """
    values_in_first: dict[BinnedAttribute, list[tuple[int, Index]]] = {}
    part: dict[BinnedAttribute, BinnedAttribute] = {}
    cells_of: dict[BinnedAttribute, Index] = {}
    first = 1
    for family in families:
        own = slice(*np.searchsorted(numbers, (first, first + family.n_cells)))
        live = own.start + np.flatnonzero(weights[own] > 0)
        for place, key in enumerate(family.binned_attributes):
            values = [(2 + place, cells) for cells in _split_by_value(family, place, live, numbers[live] - first)]
            for plus, minus in zip(values, values_in_first.setdefault(key, values), strict=True):
                if plus is not minus and len(plus[1]):
                    yield _Pair(plus, minus, float(weights[plus[1]].sum()))
            # all attributes of a family are in one part
            for member in (key, family.binned_attributes[0]):
                part.setdefault(member, member)
            part[_root(part, key)] = _root(part, family.binned_attributes[0])
            cells_of.setdefault(key, live)
        first += family.n_cells
    for key in part:
        if _root(part, key) == key:
            yield _Pair((1, cells_of[key]), (0, np.zeros(1, np.intp)), math.inf)


def _root(part: dict[BinnedAttribute, BinnedAttribute], key: BinnedAttribute) -> BinnedAttribute:
    while part[key] != key:
        key = part[key]
    return key
