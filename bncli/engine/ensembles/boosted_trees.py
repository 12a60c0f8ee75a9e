"""Gradient boosting of oblivious trees, until the loss of held-out rows stops falling.

With scores S[t, y], P = softmax_y S, and g[t, y] = w_t (1[y_t = y] - P[t, y]), h[t, y] = w_t P[t, y] (1 - P[t, y]), a
tree's leaf l adds to the score of class y

    rate * clip(c * sum over rows t in l of g[t, y] / (sum over rows t in l of h[t, y] + lambda)),    c = (K - 1) / K

(Friedman 2001, Annals of Statistics 29, sections 4.5 and 4.6). With two classes there is one score, that of the second,
and c is 1. The splits of a tree are chosen on a window of the shuffled rows, SHARE of them, drawn per tree (Friedman
2002: Stochastic gradient boosting). With more than two classes they are chosen by a random projection of the gradients,
drawn per tree (Iosipoi & Vakhrushev 2022, NeurIPS: SketchBoost), and by the mean curvature.

The initial scores are logarithms of the class shares, with half a row added to each class. Boosting ends when the last
max(`patience`, PATIENCE times the number of trees) trees have not lowered the held-out log-loss by a share of WORTH and
by NEGLIGIBLE nats per row; trees after the lowest loss are dropped. The more trees there are, the less each of them
gains, and with several classes a tree helps only some of them. (Measured as log-loss relative to `patience` alone, on
samples of 20,000 rows: 0.97 on 16 airlines by their flights, 0.99 and 0.996 on diamonds with five cuts and seven
colours, 0.99 and 1.006 on two tables with two classes, 1 on seven tables whose boosting ends earlier.)

With more than two classes, arrays are stored class by class, so that sums over the classes run along the rows.

`tables_of` turns trees into tables. A tree is a table over the attributes in its splits, each binned to the groups of
codes that the splits distinguish: neighbouring intervals, or groups of levels of a categorical attribute. A missing
level keeps a code of its own, the last. Every cell of the table lies in one leaf. Tables over the same attributes are
merged over the union of their edges if that has at most MERGED_CELLS cells, or no more than both tables together. The
mean over the classes is subtracted from the entries of a cell, which leaves probabilities as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.ensembles.tree_splits import WINDOW, BinnedColumns, bin_columns, goes_right, grow_splits
from bncli.engine.kernels.arrays import Array, Index, Mask, log_softmax
from bncli.engine.model import Tables
from bncli.engine.structures.structure import Family

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

    They are the learning rate, lambda, the levels of a tree, the maximum number of trees, the number of trees without a
    gain after which boosting ends, and the number of bins per attribute.
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

    The number of a leaf has one binary digit per split, with the first split as the most significant.
    """

    splits: tuple[CodeSplit, ...]
    values: Array

    def leaf(self, data: Dataset) -> Index:
        """Return the leaf of every row, (N,)."""
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
    """Boost trees on `data`, and keep those up to the lowest held-out log-loss.

    Boosting ends when that loss stops falling, `settings.trees` trees are grown, no split helps, or `is_late()` or
    `are_enough(number of trees, lowest held-out log-loss, that of the class frequencies)` returns True. There is one
    score per row for two classes, and K scores for more.
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
        """Grow the next tree; return it, and the leaf of every row in it."""
        settings, n_scores = self._settings, scores.shape[1]
        p = probabilities(scores)
        g, h = self._has_label - p, 1.0 - p
        h *= p
        np.maximum(h, LEAST_CURVATURE, out=h)
        if self._rows.weights is not None:
            g, h = g * self._rows.weights[:, np.newaxis], h * self._rows.weights[:, np.newaxis]
        start = int(self._rng.integers(self._rows.n_rows))
        # one gradient for all splits of the tree: that of two classes, or a random projection of those of K
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
    """Return the weighted mean log-loss in nats per row; 0 without rows."""
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
    """A table over attributes, ascending: for each, the group of every code; cells (groups..., scores)."""

    attributes: tuple[int, ...]
    binnings: tuple[Index, ...]
    cells: Array


def _scores_of_all_classes(scores: Array) -> Array:
    """Turn scores (..., scores) into scores of all classes, (..., K), with mean 0 over the classes."""
    if scores.shape[-1] == 1:
        return np.concatenate([-0.5 * scores, 0.5 * scores], axis=-1)
    return np.asarray(scores - scores.mean(axis=-1, keepdims=True))


def _table_of(tree: Tree, schema: Schema, share: float) -> _Table:
    """Turn a tree, multiplied by `share`, into a table."""
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
