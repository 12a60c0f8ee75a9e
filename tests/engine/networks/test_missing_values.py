"""Removed values: as often as asked for, independent, the same in whatever blocks, nothing else changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import MISSING, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.networks.simulation import MissingCompletelyAtRandom, count_missing, missing_shares


def table(n: int) -> Columns:
    """A categorical column, a numeric one, a narrow one of whole numbers, the class and weights."""
    codes = np.arange(n, dtype=np.int8) % 3
    attributes: dict[str, Column] = {
        "a": CategoricalColumn(codes, ("x", "y", "z")),
        "b": NumericColumn(np.linspace(0.0, 1.0, n)),
        "c": NumericColumn(np.arange(n, dtype=np.int16)),
    }
    return Columns(n, attributes, "class", CategoricalColumn(codes % 2, ("n", "p")), np.linspace(1.0, 2.0, n))


def missing(rows: Columns) -> np.ndarray:
    """(attributes, N): where a value is missing."""
    return np.stack(
        [c.codes < 0 if isinstance(c, CategoricalColumn) else np.isnan(c.values) for c in rows.attributes.values()]
    )


def mechanism(*shares: float, seed: int = 0) -> MissingCompletelyAtRandom:
    return MissingCompletelyAtRandom(shares, np.random.default_rng(seed))


def test_as_often_as_asked_for() -> None:
    found = missing(mechanism(0.0, 0.25, 0.9).applied_to(table(20_000))).mean(axis=1)
    assert found[0] == 0
    assert found[1:] == pytest.approx([0.25, 0.9], abs=0.015)


def test_independent_of_the_values_and_of_each_other() -> None:
    rows = table(30_000)
    a, b, c = missing(mechanism(0.3, 0.3, 0.3).applied_to(rows))
    codes = np.arange(30_000) % 3
    assert [a[codes == v].mean() for v in range(3)] == pytest.approx([0.3] * 3, abs=0.02)
    assert [(a & b).mean(), (b & c).mean(), (a & c).mean()] == pytest.approx([0.09] * 3, abs=0.01)


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.0, 0.99), st.integers(0, 9))
def test_the_same_in_whatever_blocks(n: int, cut: int, share: float, seed: int) -> None:
    rows, cut = table(n), min(cut, n)
    whole = missing(mechanism(share, share, share, seed=seed).applied_to(rows))
    applied_to = mechanism(share, share, share, seed=seed).applied_to
    blocks = [missing(applied_to(rows.take(part))) for part in (np.arange(cut), np.arange(cut, n))]
    assert (np.concatenate(blocks, axis=1) == whole).all()


@given(st.integers(0, 40), st.floats(0.0, 0.99), st.floats(0.0, 0.99), st.integers(0, 9))
def test_more_missing_values_are_the_same_and_others(n: int, share: float, other: float, seed: int) -> None:
    few, many = (missing(mechanism(s, s, s, seed=seed).applied_to(table(n))) for s in sorted((share, other)))
    assert (many | ~few).all()


def test_what_stays_stays_as_it_is() -> None:
    rows = table(500)
    before = missing(rows).copy()
    removed = mechanism(0.4, 0.4, 0.4).applied_to(rows)
    assert (missing(rows) == before).all()
    assert (removed.label, removed.class_name, removed.n_rows) == (rows.label, "class", 500)
    assert removed.weights is rows.weights
    for name, column in removed.attributes.items():
        original = rows.attributes[name]
        if isinstance(column, CategoricalColumn) and isinstance(original, CategoricalColumn):
            kept = column.codes != MISSING
            assert (column.codes[kept] == original.codes[kept]).all()
            assert column.levels == original.levels
        elif isinstance(column, NumericColumn) and isinstance(original, NumericColumn):
            kept = ~np.isnan(column.values)
            assert (column.values[kept] == original.values[kept]).all()


def test_missing_values_that_are_there_stay() -> None:
    rows = mechanism(0.3, 0.3, 0.3).applied_to(table(300))
    again = mechanism(0.3, 0.3, 0.3, seed=1).applied_to(rows)
    assert (missing(again) | ~missing(rows)).all()
    for name, column in again.attributes.items():
        before = rows.attributes[name]
        assert count_missing(column) > count_missing(before) > count_missing(table(300).attributes[name]) == 0


def test_the_shares_of_a_schema() -> None:
    attributes = (
        NumericAttribute("a", False, (3.0, 4.5), (0.0,), missing_weight=2.5),
        CategoricalAttribute("b", True, (6.0, 4.0), ("x",)),
        CategoricalAttribute("c", False, (0.0,), ("x",), missing_weight=10.0),
        CategoricalAttribute("d", False, (), ()),
    )
    assert missing_shares(Schema("class", ("n", "p"), attributes)) == (0.25, 0.0, 1.0, 0.0)
