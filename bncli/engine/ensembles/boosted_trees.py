"""Gradient boosting of oblivious trees, until the loss of held-out rows stops falling.

Let S[t, y] be the scores of row t, and P = softmax_y S its class probabilities. With the gradients g and curvatures h,

    g[t, y] = w_t (1[y_t = y] - P[t, y]),    h[t, y] = w_t P[t, y] (1 - P[t, y]),

a leaf l of a tree adds to the score of class y

    rate * clip(c * sum over rows t in l of g[t, y] / (sum over rows t in l of h[t, y] + lambda)),    c = (K - 1) / K

(Friedman 2001, Annals of Statistics 29, sections 4.5 and 4.6). With two classes there is one score, for the second
class, and c is 1. The splits of a tree are chosen on a window of the shuffled rows, drawn per tree, which contains the
fraction SHARE of them but at most WINDOW rows (Friedman 2002: Stochastic gradient boosting). With more than two classes
they are chosen by a random projection of the gradients, drawn per tree (Iosipoi & Vakhrushev 2022, NeurIPS:
SketchBoost), and by the mean curvature.

The initial scores are logarithms of the class proportions (with two classes, their difference), with half a row added
to each class. Boosting ends when the last max(`patience`, PATIENCE times the number of trees) trees have not lowered
the held-out log-loss by more than the fraction WORTH and by more than NEGLIGIBLE nats per row; trees after the lowest
loss are dropped. The more trees there are, the less each of them gains, and with several classes a tree helps only some
of them. (Log-loss relative to stopping by `patience` alone, on samples of 20,000 rows: 0.97 for predicting which of 16
airlines operates a flight; 0.99 and 0.996 for the cut (5 classes) and the colour (7 classes) of diamonds; 0.99 and
1.006 on two tables with two classes; 1 on seven tables on which boosting ends earlier.)

With more than two classes, arrays are stored class by class, so that sums over the classes run along the rows.

`tables_of` turns trees into tables. A tree is a table over the attributes in its splits, each binned to the groups of
codes that the splits distinguish: neighbouring intervals, or groups of levels of a categorical attribute. A missing
level keeps a code of its own, the last. Every cell of the table lies in one leaf. Tables over the same attributes are
merged over the union of their edges if that has at most MERGED_CELLS cells, or no more than both tables together. The
mean over the classes is subtracted from the entries of a cell, which leaves probabilities as they are.

**The splits of a tree** are chosen level by level. An oblivious tree has the same split in every node of a level, so
the split with the largest gain summed over all nodes is chosen. With a gradient g (for the second of two classes, or a
random projection of the gradients of all classes) and a curvature h per row, a split that sends the rows of every node
n to the left L or to the right R gains

    sum over nodes n of   g_Ln^2 / (h_Ln + lambda) + g_Rn^2 / (h_Rn + lambda) - g_n^2 / (h_n + lambda)

(Friedman 2001, Annals of Statistics 29; Chen & Guestrin 2016, KDD, equation 7, summed over the nodes of a level). A
numeric attribute is split at the edges of its bins, with missing values on either side. A categorical attribute is
split between its levels in the order of g / (h + lambda), summed over all nodes (Fisher 1958, JASA 53).

For the choice of splits alone, gradients and curvatures are rounded at random to integers, so that both sums fit
into one double (Shi, Ke, Chen et al. 2022, NeurIPS: Quantized training of gradient boosting decision trees).

Rows are shuffled and their attributes binned anew for each member of a bag. A numeric attribute with at most `bins`
intervals keeps them. Any other gets at most `bins` intervals of about equal weight. Their edges are at the fractions

    (k + u) / (bins - 1),    k = 0 .. bins - 2

of the weight, moved down to a cut of the schema, with one random u in [0, 1) per attribute, so that the members of a
bag have different cuts. Levels of a categorical attribute, and a missing level, keep their codes. The bins of several
attributes, a *group*, are numbered consecutively, so that one weighted count serves all of them.

Cost of a level: one weighted count per row and attribute, or of half of the rows if they are many, and about twenty
operations per node and bin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Codes, Index, Mask, log_softmax
from bncli.engine.model import Tables
from bncli.engine.structures.structure import Family

WINDOW = 1 << 17
"""The maximum number of rows from which the splits of a tree are chosen."""
BLOCK_VALUES = 1 << 19
"""Approximate number of values counted at a time, whose bin numbers and weights stay in the second-level cache."""
BLOCK_PLACES = 1 << 13
"""The maximum number of bins of a group of several columns; all of them are counted in every node."""
MANY_VALUES = 1 << 16
"""With more values in a window, the smaller of two sibling nodes is counted, and the other found by subtraction."""
MATRIX_BINS = 64
"""The maximum number of bins per column for which cumulative sums are computed by a matrix product."""
LEAST_SPLIT_CURVATURE = 0.1
"""The curvature on either side of a split, summed over all nodes, must exceed this."""
LEAST_GAIN = 1e-9
_FIELD = 26
"""The number of bits of a double for each of the two sums; neither overflows, even with all rows in one node."""
Units = tuple[float, float]
"""The gradient and the curvature that the integer 1 represents."""
SHARE = 0.7
WORTH, NEGLIGIBLE = 1e-4, 1e-5
PATIENCE = 0.1
MOST_STEP = 4.0
"""The largest absolute value of a leaf, before it is multiplied by the learning rate."""
LEAST_CURVATURE = 1e-12
MERGED_CELLS = 128


@dataclass(frozen=True)
class Settings:
    """The settings of boosting.

    - rate: the learning rate
    - penalty: lambda
    - depth: the maximum number of levels of a tree
    - trees: the maximum number of trees
    - patience: boosting ends after this many trees without a clear gain, or after more if there are many trees
    - bins: the maximum number of bins of a numeric attribute
    """

    rate: float = 0.15
    penalty: float = 1.0
    depth: int = 6
    trees: int = 2_000
    patience: int = 20
    bins: int = 64


@dataclass(frozen=True)
class CodeSplit:
    """A split of an attribute: whether each code goes to the right, (cardinality,)."""

    attribute: int
    right: Mask


@dataclass(frozen=True)
class Tree:
    """An oblivious tree, with the values (2^levels, scores) of its leaves.

    The number of a leaf has one binary digit per split, 1 for the right, with the first split as the most significant.
    """

    splits: tuple[CodeSplit, ...]
    values: Array

    def leaf(self, data: Dataset) -> Index:
        """Return the number of the leaf of every row, (N,)."""
        leaf = np.zeros(data.n_rows, np.intp)
        for split in self.splits:
            leaf += leaf
            leaf += goes_right(split.right, data.codes[split.attribute])
        return leaf


@dataclass(frozen=True)
class Boosted:
    """A sum of trees.

    - prior (scores,): the initial scores
    - held_out (rows, scores): the scores of the held-out rows; log_loss: their log-loss
    - grown: the number of trees grown, including those after the lowest loss, which are dropped
    - ended: False if the limit of trees or of time ended boosting, so that more trees might have helped
    """

    prior: Array
    trees: tuple[Tree, ...]
    held_out: Array
    log_loss: float
    grown: int
    ended: bool


def boost(
    data: Dataset,
    held_out: Dataset,
    settings: Settings,
    rng: np.random.Generator,
    is_late: Callable[[], bool] = lambda: False,
    are_enough: Callable[[int, float, float], bool] = lambda n_trees, loss, first: False,
) -> Boosted:
    """Boost trees on `data`, and keep the trees up to the lowest held-out log-loss.

    Boosting ends when that loss stops falling, when `settings.trees` trees are grown, when no split helps, or when
    `is_late()` or `are_enough` returns True. The arguments of `are_enough` are the number of trees, the lowest held-out
    log-loss, and the held-out log-loss of the class frequencies. There is one score per row for two classes, and K
    scores for more.
    """
    columns = bin_columns(data, settings.bins, rng)
    # shuffled once, so that a window of consecutive rows is a random sample
    rows = data.take(columns.order)
    grower = _TreeGrower(rows, columns, settings, rng)
    shares = np.log(rows.class_counts + 0.5) - math.log(rows.total_weight + 0.5 * rows.n_labels)
    prior = shares[1:] - shares[:1] if rows.n_labels == 2 else shares
    # (rows, scores) in memory class by class
    scores, outside = (np.repeat(prior[:, np.newaxis], part.n_rows, axis=1).T for part in (rows, held_out))
    first = log_loss(outside, held_out)
    trees, n_best, lowest, best_scores = list[Tree](), 0, first, outside.copy()
    # `end` is the number of trees at which boosting ends, moved on by every loss that beats `reference` clearly
    reference, end = first, settings.patience
    is_over = not columns.columns
    while not is_over and len(trees) < settings.trees and not is_late():
        tree, leaf = grower.grow(scores)
        if not tree.splits:
            is_over = True
            break
        trees.append(tree)
        scores += _scores_by_leaf(tree, leaf)
        outside += _scores_by_leaf(tree, tree.leaf(held_out))
        loss = log_loss(outside, held_out)
        if loss < lowest:
            n_best, lowest, best_scores = len(trees), loss, outside.copy()
        if loss < reference - max(WORTH * reference, NEGLIGIBLE):
            reference, end = loss, len(trees) + max(settings.patience, math.ceil(PATIENCE * len(trees)))
        is_over = len(trees) >= end or are_enough(len(trees), lowest, first)
    return Boosted(prior, tuple(trees[:n_best]), best_scores, lowest, len(trees), is_over)


class _TreeGrower:
    """Grows trees one by one; the splits of each tree are chosen on a window of the shuffled rows."""

    def __init__(self, rows: Dataset, columns: BinnedColumns, settings: Settings, rng: np.random.Generator) -> None:
        self._rows, self._columns, self._settings, self._rng = rows, columns, settings, rng
        self._window = min(WINDOW, math.ceil(SHARE * rows.n_rows))
        labels = rows.labels.astype(np.intp)
        classes = np.array([1]) if rows.n_labels == 2 else np.arange(rows.n_labels)
        self._has_label = (classes[:, np.newaxis] == labels).astype(np.float64).T

    def grow(self, scores: Array) -> tuple[Tree, Index]:
        """Grow the next tree from the scores (rows, scores); return it and the number of each row's leaf."""
        settings, n_scores = self._settings, scores.shape[1]
        p = probabilities(scores)
        g, h = self._has_label - p, 1.0 - p
        h *= p
        np.maximum(h, LEAST_CURVATURE, out=h)
        if self._rows.weights is not None:
            g, h = g * self._rows.weights[:, np.newaxis], h * self._rows.weights[:, np.newaxis]
        start = int(self._rng.integers(self._rows.n_rows))
        # one gradient for all splits of the tree: for two classes the only one, for K a random projection of all
        projected = g[:, 0] if n_scores == 1 else g @ self._rng.standard_normal(n_scores)
        window_g, window_h = (np.roll(x, -start)[: self._window] for x in (projected, h.mean(axis=1)))
        bin_splits, leaf = grow_splits(
            self._columns, window_g, window_h, start, self._rng, penalty=settings.penalty, depth=settings.depth
        )
        splits = []
        for split in bin_splits:
            column = self._columns.columns[split.column]
            # from bins to codes of the schema
            splits.append(CodeSplit(column.attribute, split.right[column.binning]))
        n_leaves = 1 << len(splits)
        sum_g, sum_h = (np.column_stack([np.bincount(leaf, of_class, n_leaves) for of_class in x.T]) for x in (g, h))
        values = sum_g / (sum_h + settings.penalty)
        # the factor c of the module's docstring
        values *= 1.0 if n_scores == 1 else (n_scores - 1) / n_scores
        return Tree(tuple(splits), np.asarray(settings.rate * np.clip(values, -MOST_STEP, MOST_STEP))), leaf


def _scores_by_leaf(tree: Tree, leaf: Index) -> Array:
    """Return the values of the leaves in which the rows lie, (rows, scores)."""
    return np.take(tree.values.T.copy(), leaf, axis=1, mode="clip").T


def probabilities(scores: Array) -> Array:
    """Return the probability of the second of two classes, or of every class, (rows, scores)."""
    if scores.shape[1] == 1:
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + np.exp(-scores)))
    p = scores.T.copy()
    p -= p.max(axis=0)
    np.exp(p, out=p)
    p /= p.sum(axis=0)
    return p.T


def log_probabilities(scores: Array) -> Array:
    """Return ln P(y | x), (rows, K), from scores (rows, scores)."""
    if scores.shape[1] == 1:
        scores = np.hstack([-0.5 * scores, 0.5 * scores])
    return log_softmax(np.ascontiguousarray(scores.T), axis=0).T


def log_loss(scores: Array, data: Dataset) -> float:
    """Return the weighted mean log-loss in nats per row, or 0 if there are no rows."""
    if not data.n_rows:
        return 0.0
    if scores.shape[1] == 1:
        of_rows = np.logaddexp(0.0, np.where(data.labels == 1, -scores[:, 0], scores[:, 0]))
    else:
        of_rows = -log_probabilities(scores)[np.arange(data.n_rows), data.labels]
    return float(np.average(of_rows, weights=data.weights))


def tables_of(members: Sequence[Boosted], schema: Schema) -> Tables:
    """Return the average of the members' scores as one sum of tables."""
    share = 1.0 / len(members)
    bias = np.mean([_scores_of_all_classes(member.prior) for member in members], axis=0)
    by_attributes: dict[tuple[int, ...], list[_Table]] = {}
    for member in members:
        for tree in member.trees:
            table = _table_of(tree, schema, share)
            same_attributes = by_attributes.setdefault(table.attributes, [])
            # into the last table over these attributes; a new one begins where that would make too many cells
            merged = _merge_tables(same_attributes[-1], table, schema) if same_attributes else None
            if merged is None:
                same_attributes.append(table)
            else:
                same_attributes[-1] = merged
    families, weights = [], []
    for table in (table for tables in by_attributes.values() for table in tables):
        groupings = tuple(
            None if len(binning) == size else tuple(binning.tolist())
            for binning, size in zip(table.binnings, table.cells.shape, strict=False)
        )
        families.append(Family.over(table.attributes, schema.cardinalities, groupings=groupings))
        weights.append(_scores_of_all_classes(table.cells.reshape(-1, table.cells.shape[-1])))
    return Tables(bias, tuple(families), tuple(weights))


@dataclass(frozen=True)
class _Table:
    """A table over attributes (ascending), with the group of each code per attribute, and cells (groups..., scores)."""

    attributes: tuple[int, ...]
    binnings: tuple[Index, ...]
    cells: Array


def _scores_of_all_classes(scores: Array) -> Array:
    """Turn scores (..., scores) into scores of all classes, (..., K), with mean 0 over the classes."""
    if scores.shape[-1] == 1:
        return np.concatenate([-0.5 * scores, 0.5 * scores], axis=-1)
    return np.asarray(scores - scores.mean(axis=-1, keepdims=True))


def _table_of(tree: Tree, schema: Schema, share: float) -> _Table:
    """Turn a tree into a table, with its values multiplied by `share`."""
    attributes = tuple(sorted({split.attribute for split in tree.splits}))
    n_levels = len(tree.splits)
    binnings, digits = [], []
    for a in attributes:
        # for each code, the binary digits of the leaf number that the splits of this attribute determine
        leaf_digits = np.zeros(schema.cardinalities[a], np.intp)
        for level, split in enumerate(tree.splits):
            if split.attribute == a:
                leaf_digits |= split.right.astype(np.intp) << (n_levels - 1 - level)
        binning, first = _group_codes(leaf_digits, schema.attributes[a])
        binnings.append(binning)
        digits.append(leaf_digits[first])
    # attributes determine different binary digits, so their parts add up to the number of the leaf of every cell
    leaf = sum(np.ix_(*digits), start=np.zeros((), np.intp))
    return _Table(attributes, tuple(binnings), share * tree.values[leaf])


def _merge_tables(a: _Table, b: _Table, schema: Schema) -> _Table | None:
    """Add two tables over the same attributes; return one table, or None if it would have too many cells."""
    # one key per pair of groups, of a and of b
    pairs = [x * size + y for x, y, size in zip(a.binnings, b.binnings, b.cells.shape, strict=False)]
    grouped = [_group_codes(pair, schema.attributes[i]) for pair, i in zip(pairs, a.attributes, strict=True)]
    n_cells = math.prod(len(first) for _, first in grouped)
    n_scores = a.cells.shape[-1]
    if n_cells > max(MERGED_CELLS, (a.cells.size + b.cells.size) // n_scores):
        return None
    # the group of each table that a merged group lies in
    groups = ([x[first] for x, (_, first) in zip(table.binnings, grouped, strict=True)] for table in (a, b))
    cells = sum(table.cells[np.ix_(*group)] for table, group in zip((a, b), groups, strict=True))
    return _Table(a.attributes, tuple(binning for binning, _ in grouped), np.asarray(cells))


def _group_codes(keys: Index, attribute: Attribute) -> tuple[Index, Index]:
    """Group codes of an attribute with equal keys; return the group of every code, and the first code of each group.

    Groups are numbered in the order of their first codes. Groups of a numeric attribute are intervals, so codes with
    equal keys that are not neighbours are in different groups. A missing level is a group of its own, the last.
    """
    values = keys[:-1] if attribute.missing else keys
    if isinstance(attribute, NumericAttribute):
        # an interval begins a group if its key differs from the one before; group 0 must not raise the sum, so its
        # beginning is marked afterwards
        begins = np.zeros(len(values), bool)
        np.not_equal(values[1:], values[:-1], out=begins[1:])
        groups = np.cumsum(begins)
        begins[0] = True
        first = np.flatnonzero(begins)
    else:
        _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
        groups = np.argsort(np.argsort(first))[inverse]
        first.sort()
    if attribute.missing:
        groups, first = np.append(groups, len(first)), np.append(first, len(values))
    return groups, first


@dataclass(frozen=True)
class Column:
    """An informative attribute: its index, and the bin of every code of the schema.

    If `ordered`, bins are intervals, except for the last one if there is a `missing` level.
    """

    attribute: int
    binning: Index
    ordered: bool
    missing: bool

    @cached_property
    def n_bins(self) -> int:
        """The number of bins, including the bin of the missing level."""
        return int(self.binning.max()) + 1


@dataclass(frozen=True)
class ColumnGroup:
    """Adjacent columns, from number `first` on, each with room for `width` bins.

    bin_numbers (columns, 2 N): column * width + bin of the shuffled rows, repeated once so that a window is a slice.
    """

    first: int
    columns: tuple[Column, ...]
    width: int
    bin_numbers: Codes

    @cached_property
    def is_fixed(self) -> Mask:
        """Whether each bin keeps its position when bins are sorted, (columns, width).

        Only bins of categorical columns with three or more bins are sorted.
        """
        n_sorted = [0 if column.ordered or column.n_bins <= 2 else column.n_bins for column in self.columns]
        return np.asarray(np.arange(self.width) >= np.array(n_sorted)[:, np.newaxis])

    @cached_property
    def with_missing(self) -> tuple[int, ...]:
        """The positions of the numeric columns with a missing level, which may go to either side of a split."""
        return tuple(c for c, column in enumerate(self.columns) if column.ordered and column.missing)


@dataclass(frozen=True)
class BinnedColumns:
    """The columns with more than one bin, in decreasing order of their number of bins, and their division into groups.

    order (N,) is the index of the row at each shuffled position.
    """

    columns: tuple[Column, ...]
    groups: tuple[ColumnGroup, ...]
    order: Index


@dataclass(frozen=True)
class BinSplit:
    """A split of a column: whether each bin goes to the right, and the gain (see the module docstring)."""

    column: int
    right: Mask
    gain: float


def bin_columns(data: Dataset, bins: int, rng: np.random.Generator) -> BinnedColumns:
    """Bin the informative attributes of these rows; `rng` draws the order of the rows and the edges of the bins."""
    order = rng.permutation(data.n_rows)
    binned = [_bin_column(data.schema.attributes[i], i, bins, rng) for i in data.schema.informative]
    # Columns of about the same width are neighbours, so that they can share a group.
    columns = tuple(sorted((column for column in binned if column.n_bins > 1), key=lambda column: -column.n_bins))
    groups, first = [], 0
    for c in range(1, len(columns) + 1):
        # A group ends before it gets too large, and before a column that would use less than half of its room.
        n, width = c + 1 - first, columns[first].n_bins
        is_full = n * data.n_rows > BLOCK_VALUES or n * width > BLOCK_PLACES
        if c < len(columns) and not is_full and 2 * columns[c].n_bins >= width:
            continue
        members = columns[first:c]
        bin_numbers = np.empty((len(members), 2 * data.n_rows), code_dtype(len(members) * width))
        for position, column in enumerate(members):
            numbers = column.binning + position * width
            bin_numbers[position, : data.n_rows] = numbers[data.codes[column.attribute][order]]
        bin_numbers[:, data.n_rows :] = bin_numbers[:, : data.n_rows]
        groups.append(ColumnGroup(first, members, width, bin_numbers))
        first = c
    return BinnedColumns(columns, tuple(groups), order)


def _bin_column(attribute: Attribute, i: int, bins: int, rng: np.random.Generator) -> Column:
    u = float(rng.random())
    if not isinstance(attribute, NumericAttribute):
        return Column(i, np.arange(attribute.cardinality), ordered=False, missing=attribute.missing)
    weights = np.array(attribute.frequencies[: attribute.n_values])
    if len(weights) <= bins:
        is_end = np.ones(len(weights), bool)
    else:
        # the cumulative weight up to the end of each interval, as a fraction
        shares = np.cumsum(weights) / max(weights.sum(), 1e-300)
        # the number of edges (k + u) / (bins - 1), k = 0, 1, ..., up to there, minus 1; an interval ends a bin if the
        # next one contains an edge
        edges = np.floor(shares * (bins - 1) - u)
        # An interval that contains two edges or more ends a bin, and so does the interval before it.
        is_heavy = weights * (bins - 1) >= 2 * weights.sum()
        is_end = np.append(np.diff(edges) > 0, True) | is_heavy
    binning = np.cumsum(np.append(False, is_end[:-1])).astype(np.intp)
    if attribute.missing:
        binning = np.append(binning, binning[-1] + 1)
    return Column(i, binning, ordered=True, missing=attribute.missing)


def grow_splits(
    columns: BinnedColumns, g: Array, h: Array, start: int, rng: np.random.Generator, *, penalty: float, depth: int
) -> tuple[list[BinSplit], Index]:
    """Return the splits of a tree, and the number of the leaf of every shuffled row.

    g and h (n,) are the gradients and curvatures of a window of the shuffled rows, which begins with row `start` and
    wraps around at the last row.
    """
    n_rows = len(columns.order)
    packed, units = _pack(g, h, rng)
    # bin numbers are (columns, rows) flattened, so the weights of the rows are repeated for every column
    repeated = np.tile(packed, max((len(group.columns) for group in columns.groups), default=0))
    histograms = [_Histogram(group, group.bin_numbers[:, start : start + len(g)], repeated) for group in columns.groups]
    node, splits = np.zeros(n_rows, np.intp), list[BinSplit]()
    for _ in range(depth):
        # node[t] belongs to the t-th row from `start` on, so the window comes first
        in_window, n_nodes = node[: len(g)], 1 << len(splits)
        smaller = None
        if n_nodes > 1 and len(g) * len(columns.columns) > MANY_VALUES:
            # count only the smaller node of every pair of siblings, 2m and 2m + 1, the children of node m
            sizes = np.bincount(in_window, minlength=n_nodes)
            is_right = sizes[1::2] < sizes[::2]
            rows = np.flatnonzero(np.column_stack([~is_right, is_right]).ravel()[in_window])
            most_columns = max(len(histogram.group.columns) for histogram in histograms)
            smaller = _SmallerNodes(is_right, rows, in_window[rows] >> 1, np.tile(packed[rows], most_columns))
        best: BinSplit | None = None
        for histogram in histograms:
            split = _best_split(histogram.group, histogram.count(in_window, n_nodes, smaller), units, penalty)
            if split.gain > LEAST_GAIN and (best is None or split.gain > best.gain):
                best = split
        if best is None:
            break
        splits.append(best)
        group = next(group for group in columns.groups if 0 <= best.column - group.first < len(group.columns))
        c = best.column - group.first
        node += node
        node += goes_right(best.right, group.bin_numbers[c, start : start + n_rows], c * group.width)
    # back to the order of the shuffled rows
    return splits, np.roll(node, start)


class _SmallerNodes(NamedTuple):
    """The smaller node of every pair of siblings, and its rows.

    is_right: whether the smaller node of each pair is the right one; rows: the rows of all smaller nodes; parents: the
    pair to which each of these rows belongs; packed: their packed gradients and curvatures, repeated for each column of
    the largest group.
    """

    is_right: Mask
    rows: Index
    parents: Index
    packed: Array


class _Histogram:
    """The packed sums (nodes, columns, width) of a group over the rows in each node and bin, one level at a time."""

    def __init__(self, group: ColumnGroup, bin_numbers: Codes, packed: Array) -> None:
        self.group, self._bin_numbers = group, bin_numbers
        self.packed = packed[: bin_numbers.size]
        self._size = len(group.columns) * group.width
        self._sums = np.zeros((1, 0))

    def count(self, node: Index, n_nodes: int, smaller: _SmallerNodes | None) -> Array:
        """Sum over the rows of each node; return the packed sums.

        If the smaller nodes are given, only their rows are summed; the sums of their siblings are the differences from
        the sums of the parents, which the last call left.
        """
        bin_numbers: Codes | Index = self._bin_numbers
        weights, n_counted = self.packed, n_nodes
        if smaller is not None:
            bin_numbers = bin_numbers.take(smaller.rows, axis=1, mode="clip") + smaller.parents * self._size
            weights, n_counted = smaller.packed[: bin_numbers.size], n_nodes // 2
        elif n_nodes > 1:
            bin_numbers = bin_numbers + node * self._size
        counted = np.bincount(bin_numbers.ravel(), weights, n_counted * self._size)
        sums: Array = counted.astype(np.float64, copy=False).reshape(n_counted, -1)
        if smaller is not None:
            both, pairs = np.empty((n_counted, 2, self._size)), np.arange(n_counted)
            # the sums of the level before are the sums of the parents
            both[pairs, smaller.is_right.astype(np.intp)] = sums
            both[pairs, 1 - smaller.is_right] = self._sums - sums
            sums = both.reshape(-1, self._size)
        self._sums = sums
        return sums.reshape(n_nodes, -1, self.group.width)


def goes_right(right: Mask, codes: Codes, first: int = 0) -> Mask:
    """Return whether each code goes to the right, right[codes - first].

    If `right` is False up to some position and True after it, one comparison replaces the look-up.
    """
    n = np.count_nonzero(right)
    end = len(right) - n
    return np.asarray(codes >= first + end if np.count_nonzero(right[end:]) == n else np.take(right, codes - first))


def _pack(g: Array, h: Array, rng: np.random.Generator) -> tuple[Array, Units]:
    """Round gradients and curvatures to integer units; return each row's pair as one packed double, (n,), and units."""
    # so that the sums over all rows stay below half of 2^_FIELD, with one unit of room for rounding up
    most = 2.0 ** (_FIELD - 1 - math.ceil(math.log2(len(g) + 1))) - 1
    units = tuple(max(float(np.abs(x).max(initial=0.0)), 1e-300) / most for x in (g, h))
    # random rounding, right on average: x is rounded up with the probability of its fractional part
    whole_g, whole_h = (np.floor(x / unit + rng.random(len(x))) for x, unit in zip((g, h), units, strict=True))
    return whole_g * 2.0**_FIELD + whole_h, (units[0], units[1])


def _unpack(packed: Array, units: Units) -> tuple[Array, Array]:
    """Return the sums of g and of h that are packed into each double."""
    # h is below half of 2^_FIELD, so rounding gives the upper field, even if g is negative
    g = np.rint(packed * 2.0**-_FIELD)
    h = packed - g * 2.0**_FIELD
    g *= units[0]
    h *= units[1]
    return g, h


def _best_split(group: ColumnGroup, counted: Array, units: Units, penalty: float) -> BinSplit:
    """Return the split of highest gain in a group, from packed sums (nodes, columns, width)."""
    order: Index | None = None
    if not group.is_fixed.all():
        # sort levels of categorical columns by g / (h + lambda); the stable sort keeps all other bins in place
        g, h = _unpack(counted.sum(axis=0), units)
        order = np.argsort(np.where(group.is_fixed, np.inf, g / (h + penalty)), axis=1, kind="stable")
        counted = counted[:, np.arange(len(order))[:, np.newaxis], order]
    # Sums along the last axis are integers. So a matrix product, which is faster with few bins, is exact as well.
    width = counted.shape[-1]
    left = np.asarray(counted.cumsum(axis=2) if width > MATRIX_BINS else counted @ _upper_triangle(width))
    # the last sum of any column is the node's total; columns with fewer bins than the group have empty ones at the end
    total = left[:, :1, -1:].copy()
    with_missing = group.with_missing
    # The other splits of numeric columns, with the missing level (the last bin) on the left. There is none after the
    # last interval, because it would leave nothing on the right.
    last = np.array([group.columns[c].n_bins - 1 for c in with_missing], np.intp)
    is_split = np.arange(group.width) < last[:, np.newaxis] - 1
    moved = None
    if with_missing:
        moved = np.where(is_split, left[:, with_missing] + counted[:, with_missing, last][..., np.newaxis], 0.0)
    gains = _gains(left, total, units, penalty)
    best = int(gains.argmax())
    gain = float(gains.flat[best])
    if moved is not None:
        gains = _gains(moved, total, units, penalty)
        gains[~is_split] = 0.0
        best_moved = int(gains.argmax())
        if gains.flat[best_moved] > gain:
            c, end = divmod(best_moved, group.width)
            # the last bin, of missing values, goes to the left
            right = np.arange(group.columns[with_missing[c]].n_bins) > end
            right[-1] = False
            return BinSplit(group.first + with_missing[c], right, float(gains.flat[best_moved]))
    c, end = divmod(best, group.width)
    right = np.zeros(group.width, bool)
    behind = np.arange(end + 1, group.width)
    # positions in sorted order are turned back into bins
    right[behind if order is None else order[c, behind]] = True
    return BinSplit(group.first + c, right[: group.columns[c].n_bins], gain)


@cache
def _upper_triangle(width: int) -> Array:
    triangle = np.triu(np.ones((width, width)))
    triangle.flags.writeable = False
    return triangle


def _gains(left: Array, total: Array, units: Units, penalty: float) -> Array:
    """Return the gains (columns, width) from packed sums left (nodes, columns, width) and total (nodes, 1, 1).

    `left` is overwritten. All steps are in place and in integer units, since memory traffic takes half of the time.
    """
    # units of 1: sums stay integers, and the factors come last
    all_g, all_h = _unpack(total, (1.0, 1.0))
    g = left * 2.0**-_FIELD
    np.rint(g, out=g)
    left -= g * 2.0**_FIELD
    h = left
    curvature = h.sum(axis=0)
    lost = penalty / units[1]
    other_g = all_g - g
    g *= g
    h += lost
    g /= h
    other_g *= other_g
    # h contains `lost`, so this is the h of the other side plus its own `lost`
    np.subtract(all_h + 2.0 * lost, h, out=h)
    other_g /= h
    g += other_g
    # g is in units[0] and h in units[1]
    gains = (g.sum(axis=0) - float((all_g * all_g / (all_h + lost)).sum())) * (units[0] ** 2 / units[1])
    least = LEAST_SPLIT_CURVATURE / units[1]
    # splits with next to nothing on one side, such as those after the last bin of a column
    gains[(curvature <= least) | (all_h.sum() - curvature <= least)] = 0.0
    return np.asarray(gains)
