"""Stratified folds and samples: every class is spread over them as evenly as possible, drawn with a seed.

The rows of each class are shuffled, the classes laid end to end, and the rows dealt to the folds in turn:

    fold of the m-th row = m mod F

so two folds differ by at most one row of any class, and by at most one row in all. A sample takes rows at even
distances. Nested samples are the beginnings of one order, in which the m-th of the n_c rows of class c has the place

    (m + 1/2) / n_c,    m = 0 .. n_c - 1

so that n rows are apportioned to the classes by the method of Sainte-Laguë (Webster).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bncli.engine.kernels.arrays import Index, Integers
from bncli.errors import BncliError


def stratified_folds(labels: Integers, n_folds: int, seed: int | Sequence[int]) -> Index:
    """Return the fold 0..n_folds-1 of every row, from its label (N,); the same seed gives the same folds."""
    if n_folds < 2:
        raise BncliError(f"cross-validation needs at least 2 folds, not {n_folds}")
    if n_folds > len(labels):
        raise BncliError(f"{n_folds} folds are more than the {len(labels)} rows", hint="ask for fewer folds")
    folds = np.empty(len(labels), np.intp)
    folds[_shuffled_by_class(labels, seed)] = np.arange(len(labels)) % n_folds
    return folds


def stratified_sample(labels: Integers, n_rows: int, seed: int | Sequence[int]) -> Index:
    """Return at most `n_rows` of the rows, ascending; every class keeps its share within one row."""
    if len(labels) <= n_rows:
        return np.arange(len(labels))
    # in whole numbers, so that rounding cannot take a row twice
    evenly = np.arange(n_rows) * len(labels) // n_rows
    return np.sort(_shuffled_by_class(labels, seed)[evenly])


def _shuffled_by_class(labels: Integers, seed: int | Sequence[int]) -> Index:
    """Return all rows, class after class, shuffled within each."""
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    return shuffled[np.argsort(labels[shuffled], kind="stable")]


def nested_order(labels: Integers, seed: int | Sequence[int]) -> Index:
    """Return all rows in a random order of which every beginning is a stratified sample."""
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    own = labels[shuffled]
    by_class = np.argsort(own, kind="stable")
    sizes = np.bincount(own)
    places = np.empty(len(labels))
    places[by_class] = np.arange(len(labels)) - (np.cumsum(sizes) - sizes)[own[by_class]]
    # stable: rows with the same place stay in random order
    return shuffled[np.argsort((places + 0.5) / sizes[own], kind="stable")]
