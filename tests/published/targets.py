"""The tables of Friedman, Geiger & Goldszmidt (1997), used again by Greiner et al. (2004), as near as they are at hand.

Two are written out from their definitions, which John, Kohavi & Pfleger (1994) and Kohavi & John (1997) give:

    corral:       (A0 and A1) or (B0 and B1); one more attribute is irrelevant, one agrees with the class in 75% of rows
    mofn-3-7-10:  at least 3 of the first 7 of 10 binary attributes are 1

Decided here: corral is every combination of its four relevant attributes and the irrelevant one four times, the
correlated one wrong in one of the four: 128 rows. mofn-3-7-10 is tested on all 1,024 combinations and learned from 300
of them, drawn with replacement. glass2 is glass without vessels and lamps: float-processed panes (kinds 1 and 3)
against the others (kind 2), 163 rows. waveform-21 is the first 21 columns of waveform_5000 (the others are noise);
shuttle-small a stratified tenth of shuttle. Rows with holes are left out, as there, except in vote, where a vote that
is neither yea nor nay is a third value. `diabetes` is the same table as `pima` and is left out: counted twice it would
weigh double in every test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.data.splits import stratified_folds, stratified_sample
from tests.performance.workloads import real_columns

FOLDS = 5
SEED = 0

FILES = {
    "australian": "australian",
    "breast": "breast_cancer_wisconsin",
    "chess": "chess_krkp",
    "cleve": "heart_cleveland_2class",
    "corral": "",
    "crx": "crx",
    "flare": "flare_2class",
    "german": "german",
    "glass": "glass",
    "glass2": "glass",
    "heart": "heart_statlog",
    "hepatitis": "hepatitis",
    "iris": "iris",
    "letter": "letter",
    "lymphography": "lymphography",
    "mofn-3-7-10": "",
    "pima": "pima",
    "shuttle-small": "shuttle",
    "vote": "house_votes_84",
    "satimage": "satimage",
    "segment": "segment",
    "soybean-large": "soybean_large",
    "vehicle": "vehicle",
    "waveform-21": "waveform_5000",
}
"""Each table of the paper and the file it is made from (empty: written out here)."""

HELD_OUT = {"chess": 1066, "letter": 5000, "shuttle-small": 1934, "satimage": 2000, "segment": 770, "waveform-21": 4700}
"""Rows that are held out once; the others are cross-validated."""

SHUTTLE_SMALL = 5_800


class Split(NamedTuple):
    """Rows to learn from and rows to predict, as indices."""

    training: NDArray[np.intp]
    test: NDArray[np.intp]


def rows_of(name: str) -> Columns:
    """A table of the paper, complete; skips the test where its file is not at hand."""
    if name == "corral":
        return corral()
    if name == "mofn-3-7-10":
        return mofn()
    columns = real_columns(FILES[name])
    columns = _third_value(columns) if name == "vote" else _complete(columns)
    if name == "glass2":
        return _panes(columns)
    if name == "shuttle-small":
        return columns.take(stratified_sample(labels_of(columns), SHUTTLE_SMALL, SEED))
    if name == "waveform-21":
        return replace(columns, attributes=dict(list(columns.attributes.items())[:21]))
    return columns


def splits(name: str, columns: Columns) -> Iterator[Split]:
    """One split, or one for each fold."""
    labels = labels_of(columns)
    if name == "mofn-3-7-10":
        yield Split(np.arange(MOFN_TRAINING), np.arange(MOFN_TRAINING, columns.n_rows))
    elif name in HELD_OUT:
        test = stratified_sample(labels, HELD_OUT[name], SEED)
        yield Split(np.setdiff1d(np.arange(columns.n_rows), test), test)
    else:
        fold_of = stratified_folds(labels, FOLDS, SEED)
        for fold in range(FOLDS):
            yield Split(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold))


def labels_of(columns: Columns) -> NDArray[np.signedinteger]:
    assert columns.label is not None
    return columns.label.codes


def binary_table(inputs: NDArray[np.integer], names: list[str], labels: NDArray[np.integer]) -> Columns:
    """Columns of zeros and ones from inputs (N, attributes) and labels (N,); -1 is a hole."""
    attributes = {name: CategoricalColumn(inputs[:, i].astype(np.int8), ("0", "1")) for i, name in enumerate(names)}
    return Columns(len(inputs), attributes, "class", CategoricalColumn(labels.astype(np.int8), ("0", "1")))


def all_combinations(n: int) -> NDArray[np.intp]:
    """(2^n, n) zeros and ones."""
    return np.arange(1 << n)[:, np.newaxis] >> np.arange(n)[::-1] & 1


def corral() -> Columns:
    inputs = np.repeat(all_combinations(5), 4, axis=0)
    a0, a1, b0, b1, _ = inputs.T
    labels = (a0 & a1) | (b0 & b1)
    correlated = np.where(np.arange(len(inputs)) % 4 == 0, 1 - labels, labels)
    names = ["a0", "a1", "b0", "b1", "irrelevant", "correlated"]
    return binary_table(np.column_stack([inputs, correlated]), names, labels)


MOFN_TRAINING = 300


def mofn() -> Columns:
    """The rows to learn from, then all combinations."""
    whole = all_combinations(10)
    inputs = np.concatenate([whole[np.random.default_rng(SEED).integers(0, len(whole), MOFN_TRAINING)], whole])
    labels = inputs[:, :7].sum(axis=1) >= 3
    return binary_table(inputs, [f"x{i + 1}" for i in range(10)], labels)


def _complete(columns: Columns) -> Columns:
    """The rows without a hole."""
    complete = np.ones(columns.n_rows, np.bool_)
    for column in columns.attributes.values():
        complete &= column.codes >= 0 if isinstance(column, CategoricalColumn) else ~np.isnan(column.values)
    return columns.take(np.flatnonzero(complete))


def _third_value(votes: Columns) -> Columns:
    attributes = {}
    for name, column in votes.attributes.items():
        assert isinstance(column, CategoricalColumn)
        codes = np.where(column.codes < 0, len(column.levels), column.codes).astype(np.int8)
        attributes[name] = CategoricalColumn(codes, (*column.levels, "neither"))
    return replace(votes, attributes=attributes)


def _panes(glass: Columns) -> Columns:
    assert glass.label is not None
    kinds = np.array(glass.label.levels)[glass.label.codes]
    rows = np.flatnonzero(np.isin(kinds, ["1", "2", "3"]))
    floated = CategoricalColumn((kinds[rows] != "2").astype(np.int8), ("other", "float"))
    return replace(glass.take(rows), label=floated)
