"""How much a column tells of the class.

The information is the plug-in mutual information with the class, in bits, over the rows whose class is known and by
their weights; missing is a value of its own, as in learning by default. Numbers of more than 20 different values are
cut first, by the default discretizer. Where only a sample of the values was kept, numbers are cut on the sample, and
for names the sum over values is estimated:

    I = sum over x of s_x  sum over y of  P(x, y) log2 [ P(x, y) / (P(x) P(y)) ]        s_x: the values x stands for
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.grouping import Rule
from bncli.engine.data.schema import Attribute
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.kernels.information import mutual_information
from bncli.files.reading.column_reader import ColumnSummary
from bncli.recipe import Recipe

FEW_VALUES = 20
"""Numbers of so many different values are counted as they are."""


@dataclass(frozen=True)
class ClassCounts:
    """The class: its labels, the weight of each, and which label each counted class is (-1: missing)."""

    name: str
    labels: tuple[str, ...]
    weights: Array
    codes: Integers
    rows: tuple[int, ...]
    unlabelled: int

    @property
    def bits(self) -> float:
        """The entropy of the class."""
        shares = self.weights[self.weights > 0] / max(self.weights.sum(), 1e-300)
        return float(-(shares * np.log2(shares)).sum()) + 0.0

    def table(self, summary: ColumnSummary) -> Array:
        """The weight of each kept value in each label, shape (n, K)."""
        table = np.zeros((len(summary.counted.rows), len(self.labels)))
        for counted, label in enumerate(self.codes):
            if label >= 0:
                table[:, label] += summary.counted.by_class[:, counted]
        return table


class Learnt(NamedTuple):
    """An attribute as learning by default cuts or pools it; its information in bits."""

    attribute: Attribute
    bits: float


def learn_from(summary: ColumnSummary, of_class: ClassCounts) -> dict[str, Learnt]:
    """The attributes that the column becomes, learnt from its kept values as rows of their weight."""
    table = of_class.table(summary)
    value, label = np.nonzero(table)
    if not len(value):
        return {}
    weights = (table * summary.counted.scale[:, np.newaxis])[value, label]
    if not summary.counted.exact:  # what is learnt must pay on what was kept
        weights *= table.sum() / weights.sum()
    columns = {name: column.take(value) for name, column in summary.finding.attributes.items()}
    cells = Columns(len(value), columns, "", CategoricalColumn(label, of_class.labels), weights)
    data = learn_dataset(cells, group_levels=_default_rule() if summary.counted.exact else "off")
    return {
        attribute.name: Learnt(attribute, _bits(codes, label, weights, len(of_class.labels)))
        for attribute, codes in zip(data.schema.attributes, data.codes, strict=True)
    }


@cache
def _default_rule() -> Rule:
    """What learning does by default with names of many values."""
    rule: Rule = Recipe.of().group_levels
    return rule


def information(summary: ColumnSummary, of_class: ClassCounts, learnt: Mapping[str, Learnt] | None) -> float:
    """Of names and few numbers that of the values, else of the cuts, of a date that of its best part."""
    if isinstance(summary.column, CategoricalColumn):
        return _bits_of_names(summary, of_class)
    if not summary.is_date and summary.n_distinct <= FEW_VALUES:
        return _bits_of_values(summary, of_class)
    return max((found.bits for found in (learnt or {}).values()), default=0.0)


def _bits_of_values(summary: ColumnSummary, of_class: ClassCounts) -> float:
    table = of_class.table(summary)
    value, label = np.nonzero(table)
    assert isinstance(summary.column, NumericColumn)
    codes = np.unique(summary.column.values.astype(np.float64)[value], return_inverse=True)[1]
    return _bits(codes, label, table[value, label], len(of_class.labels))


def _bits_of_names(summary: ColumnSummary, of_class: ClassCounts) -> float:
    assert isinstance(summary.column, CategoricalColumn)
    table = of_class.table(summary)
    if summary.counted.exact:
        value, label = np.nonzero(table)
        return _bits(summary.column.codes[value] + 1, label, table[value, label], len(of_class.labels))
    total = of_class.weights.sum()
    if not total:
        return 0.0
    independent = table.sum(axis=1, keepdims=True) * of_class.weights
    value, label = np.nonzero(table)
    terms = table[value, label] * np.log2(table[value, label] * total / independent[value, label])
    return float(np.clip((terms * summary.counted.scale[value]).sum() / total, 0.0, of_class.bits))


def _bits(values: NDArray[Any], labels: NDArray[Any], weights: Array, n_labels: int) -> float:
    """The mutual information of values and labels, both in codes."""
    if not len(values):
        return 0.0
    n_values = int(values.max()) + 1
    cells = values.astype(np.int64) * n_labels + labels
    table = np.bincount(cells, weights, n_values * n_labels).astype(np.float64).reshape(n_values, n_labels)
    return float(mutual_information(table)) / math.log(2)
