"""Gradient boosting of oblivious trees: one tree after the other, until rows held out gain no more.

With scores S[t, y], P = softmax_y S, and g[t, y] = w_t (1[y_t = y] - P[t, y]), h[t, y] = w_t P[t, y] (1 - P[t, y]), a
tree's leaf l adds to the score of class y

    rate * clip(c * sum over rows t in l of g[t, y] / (sum over rows t in l of h[t, y] + lambda)),    c = (K - 1) / K

(Friedman 2001, Annals of Statistics 29, sections 4.5 and 4.6; c is 1 for two classes, where one score is theirs).
The questions of a tree come from a window of the shuffled rows, SHARE of them, drawn for each tree (Friedman 2002:
Stochastic gradient boosting). For more than two classes they come from a random projection of the gradients, drawn for
each tree (Iosipoi & Vakhrushev 2022, NeurIPS: SketchBoost), and the mean curvature.

The first scores are ln of the class shares, half a row added to each class. Boosting ends when max(`patience`, PATIENCE
times the number of trees) trees have not lowered the log-loss of the rows held out by a share of WORTH, and by
NEGLIGIBLE nats a row; trees after the lowest are dropped. The more trees there are, the less each of them gains, and of
several classes it gains for some alone. (Measured, log-loss in units of that with `patience` alone, draws of 20,000
rows: 0.97 on 16 airlines by their flights, 0.99 and 0.996 on diamonds of five cuts and seven colours, 0.99 and 1.006 on
two tables of two classes, 1 on seven that end before.)

Numbers of many classes are kept class after class: sums over the classes then run along the rows.

Trees as tables: one over the attributes that a tree asks about, each binned as its questions tell codes apart.

Codes that every question about an attribute answers alike are one coarse code: neighbouring intervals, or levels of a
category. A missing level has one of its own, the last. Every cell of the table lies in one leaf. Tables over the same
attributes are one table over the union of their edges where that has at most MERGED cells, or no more than they have
themselves. Of a cell's numbers the mean over the classes is taken off: probabilities do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.ensembles.tree_splits import WINDOW, BinnedColumns, BinSplit, Splits, answers, columns_of
from bncli.engine.kernels.arrays import Array, Index, Mask, log_softmax
from bncli.engine.model import Tables
from bncli.engine.structures.structure import Family, Grouping

SHARE = 0.7
WORTH, NEGLIGIBLE = 1e-4, 1e-5
PATIENCE = 0.1
LARGEST = 4.0
"""Of what a leaf adds, before the rate."""


@dataclass(frozen=True)
class Settings:
    """Learning rate, lambda, levels and number of trees at most, trees without a gain, bins of an attribute."""

    rate: float = 0.15
    penalty: float = 1.0
    depth: int = 6
    trees: int = 2_000
    patience: int = 20
    bins: int = 64


@dataclass(frozen=True)
class CodeSplit:
    """Which codes of an attribute (cardinality,) go to the right."""

    attribute: int
    right: Mask


@dataclass(frozen=True)
class Tree:
    """values (2^levels, scores): of the leaf whose number the answers spell, the first the most significant digit."""

    splits: tuple[CodeSplit, ...]
    values: Array

    def leaf(self, data: Dataset) -> Index:
        """Of every row."""
        leaf = np.zeros(data.n_rows, np.intp)
        for split in self.splits:
            leaf += leaf
            leaf += answers(split.right, data.codes[split.attribute])
        return leaf


@dataclass(frozen=True)
class Boosted:
    """Sum of trees: prior (scores,); held_out (rows, scores): what it says of the rows held out."""

    prior: Array
    trees: tuple[Tree, ...]
    held_out: Array
    log_loss: float
    grown: int
    """Trees, those after the lowest loss included."""
    ended: bool
    """False where more trees might have helped: it was their number that ended it, or the time."""


class _Member:
    """Grows one tree after the other on shuffled rows."""

    def __init__(self, rows: Dataset, columns: BinnedColumns, settings: Settings, rng: np.random.Generator) -> None:
        self._rows, self._columns, self._settings, self._rng = rows, columns, settings, rng
        self._splits = Splits(columns, settings.penalty, settings.depth)
        self._window = min(WINDOW, math.ceil(SHARE * rows.n_rows))
        labels = rows.labels.astype(np.intp)
        classes = np.array([1]) if rows.n_labels == 2 else np.arange(rows.n_labels)
        self._own = (classes[:, np.newaxis] == labels).astype(np.float64).T

    def grow(self, scores: Array) -> tuple[Tree, Index]:
        """Return the next tree, and the leaf of every row in it."""
        p = probabilities(scores)
        g, h = self._own - p, 1.0 - p
        h *= p
        np.maximum(h, 1e-12, out=h)
        if self._rows.weights is not None:
            g, h = g * self._rows.weights[:, np.newaxis], h * self._rows.weights[:, np.newaxis]
        start = int(self._rng.integers(self._rows.n_rows))
        projected, curvature = (np.roll(x, -start)[: self._window] for x in (self._projected(g), h.mean(axis=1)))
        questions, leaf = self._splits.grow(projected, curvature, start, self._rng)
        splits = tuple(self._split(question) for question in questions)
        return Tree(splits, self._values(leaf, 1 << len(splits), g, h)), leaf

    def _projected(self, gradients: Array) -> Array:
        n = gradients.shape[1]
        return np.asarray(gradients[:, 0] if n == 1 else gradients @ self._rng.standard_normal(n))

    def _split(self, question: BinSplit) -> CodeSplit:
        column = self._columns.columns[question.column]
        return CodeSplit(column.attribute, question.right[column.binning])

    def _values(self, leaf: Index, n_leaves: int, g: Array, h: Array) -> Array:
        of_g, of_h = (np.column_stack([np.bincount(leaf, one, n_leaves) for one in x.T]) for x in (g, h))
        values = of_g / (of_h + self._settings.penalty)
        n = g.shape[1]
        values *= 1.0 if n == 1 else (n - 1) / n
        return np.asarray(self._settings.rate * np.clip(values, -LARGEST, LARGEST))


MERGED = 128


@dataclass(frozen=True)
class _Table:
    """Over some attributes, ascending: the coarse code of every code of each, and cells (shape..., scores)."""

    attributes: tuple[int, ...]
    binnings: tuple[Index, ...]
    cells: Array


def boost(
    data: Dataset,
    held_out: Dataset,
    settings: Settings,
    rng: np.random.Generator,
    is_late: Callable[[], bool] = lambda: False,
    are_enough: Callable[[int, float, float], bool] = lambda n_trees, loss, first: False,
) -> Boosted:
    """Trees learnt from `data`, as many as the rows held out ask for, until it `is_late` or they `are_enough`.

    The latter hears of their number, of the log-loss of the rows held out, and of that of the class frequencies.
    Scores: one of two classes, else K.
    """
    columns = columns_of(data, settings.bins, rng)
    rows = data.take(columns.order)
    member = _Member(rows, columns, settings, rng)
    shares = np.log(rows.class_counts + 0.5) - math.log(rows.total_weight + 0.5 * rows.n_labels)
    prior = shares[1:] - shares[:1] if rows.n_labels == 2 else shares
    scores, outside = (np.repeat(prior[:, np.newaxis], each.n_rows, axis=1).T for each in (rows, held_out))
    trees, best, least, kept = list[Tree](), 0, log_loss(outside, held_out), outside.copy()
    worth, end, first = least, settings.patience, least
    is_over = not columns.columns
    while not is_over and len(trees) < settings.trees and not is_late():
        tree, leaf = member.grow(scores)
        if not tree.splits:
            is_over = True
            break
        trees.append(tree)
        scores += _leaf_scores(tree, leaf)
        outside += _leaf_scores(tree, tree.leaf(held_out))
        loss = log_loss(outside, held_out)
        if loss < least:
            best, least, kept = len(trees), loss, outside.copy()
        if loss < worth - max(WORTH * worth, NEGLIGIBLE):
            worth, end = loss, len(trees) + max(settings.patience, math.ceil(PATIENCE * len(trees)))
        is_over = len(trees) >= end or are_enough(len(trees), least, first)
    return Boosted(prior, tuple(trees[:best]), kept, least, len(trees), is_over)


def _leaf_scores(tree: Tree, leaf: Index) -> Array:
    """Return what the tree adds to the scores of rows in these leaves, (rows, scores)."""
    return np.take(tree.values.T.copy(), leaf, axis=1, mode="clip").T


def probabilities(scores: Array) -> Array:
    """Return (rows, scores): P of class 1 of two, else of every class."""
    if scores.shape[1] == 1:
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + np.exp(-scores)))
    p = scores.T.copy()
    p -= p.max(axis=0)
    np.exp(p, out=p)
    p /= p.sum(axis=0)
    return p.T


def log_probabilities(scores: Array) -> Array:
    """Return ln P(y | x) (rows, K)."""
    if scores.shape[1] == 1:
        scores = np.hstack([-0.5 * scores, 0.5 * scores])
    return log_softmax(np.ascontiguousarray(scores.T), axis=0).T


def log_loss(scores: Array, data: Dataset) -> float:
    """Return the mean by weight, in nats."""
    if not data.n_rows:
        return 0.0
    if scores.shape[1] == 1:
        lost = np.logaddexp(0.0, np.where(data.labels == 1, -scores[:, 0], scores[:, 0]))
    else:
        lost = -log_probabilities(scores)[np.arange(data.n_rows), data.labels]
    return float(np.average(lost, weights=data.weights))


def tables_of(members: Sequence[Boosted], schema: Schema) -> Tables:
    """Return the average of the members' scores, as one sum of tables."""
    share = 1.0 / len(members)
    bias = np.mean([_by_class(member.prior) for member in members], axis=0)
    found = [_table(tree, schema, share) for member in members for tree in member.trees]
    merged = list(_merged(found, schema))
    families = tuple(_family(table, schema) for table in merged)
    weights = tuple(_by_class(table.cells.reshape(-1, table.cells.shape[-1])) for table in merged)
    return Tables(bias, families, weights)


def _by_class(scores: Array) -> Array:
    """Return (..., K), their mean 0, from (..., scores)."""
    if scores.shape[-1] == 1:
        return np.concatenate([-0.5 * scores, 0.5 * scores], axis=-1)
    return np.asarray(scores - scores.mean(axis=-1, keepdims=True))


def _table(tree: Tree, schema: Schema, share: float) -> _Table:
    """Return the tree times `share`."""
    attributes = tuple(sorted({split.attribute for split in tree.splits}))
    levels = len(tree.splits)
    binnings, digits = [], []
    for a in attributes:
        answers = np.zeros(schema.cardinalities[a], np.intp)
        for level, split in enumerate(tree.splits):
            if split.attribute == a:
                answers |= split.right.astype(np.intp) << (levels - 1 - level)
        binning, first = _numbered(answers, schema.attributes[a])
        binnings.append(binning)
        digits.append(answers[first])
    leaf = sum(np.ix_(*digits), start=np.zeros((), np.intp))
    return _Table(attributes, tuple(binnings), share * tree.values[leaf])


def _numbered(answers: Index, attribute: Attribute) -> tuple[Index, Index]:
    """Coarse codes in the order in which answers first occur, and where each of them comes first.

    A missing level has one of its own.
    """
    values = answers[:-1] if attribute.missing else answers
    if isinstance(attribute, NumericAttribute):
        # beyond an edge no question is answered as before it
        begins = np.zeros(len(values), bool)
        np.not_equal(values[1:], values[:-1], out=begins[1:])
        numbers = np.cumsum(begins)
        begins[0] = True
        first = np.flatnonzero(begins)
    else:
        _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
        numbers = np.argsort(np.argsort(first))[inverse]
        first.sort()
    if attribute.missing:
        numbers, first = np.append(numbers, len(first)), np.append(first, len(values))
    return numbers, first


def _merged(tables: Iterable[_Table], schema: Schema) -> Iterable[_Table]:
    """Return tables over the same attributes joined, in the order of first use."""
    opened: dict[tuple[int, ...], list[_Table]] = {}
    for table in tables:
        alike = opened.setdefault(table.attributes, [])
        joined = _union(alike[-1], table, schema) if alike else None
        if joined is None:
            alike.append(table)
        else:
            alike[-1] = joined
    return [table for alike in opened.values() for table in alike]


def _union(a: _Table, b: _Table, schema: Schema) -> _Table | None:
    """Return both tables as one; None where that has too many cells."""
    pairs = [x * size + y for x, y, size in zip(a.binnings, b.binnings, b.cells.shape, strict=False)]
    numbered = [_numbered(pair, schema.attributes[i]) for pair, i in zip(pairs, a.attributes, strict=True)]
    n_cells = math.prod(len(first) for _, first in numbered)
    n_scores = a.cells.shape[-1]
    if n_cells > max(MERGED, (a.cells.size + b.cells.size) // n_scores):
        return None
    places = ([x[first] for x, (_, first) in zip(t.binnings, numbered, strict=True)] for t in (a, b))
    cells = sum(t.cells[np.ix_(*place)] for t, place in zip((a, b), places, strict=True))
    return _Table(a.attributes, tuple(binning for binning, _ in numbered), np.asarray(cells))


def _family(table: _Table, schema: Schema) -> Family:
    groupings: list[Grouping | None] = [
        None if len(binning) == size else tuple(binning.tolist())
        for binning, size in zip(table.binnings, table.cells.shape, strict=False)
    ]
    return Family.over(table.attributes, schema.cardinalities, groupings=tuple(groupings))
