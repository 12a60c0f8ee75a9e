"""Holes: as often as asked for, independent of everything, the same in whatever blocks, and nothing else is changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import MISSING, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.networks.missing_values import Holes, count_holes, shares_of_holes


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


def holes(*shares: float, seed: int = 0) -> Holes:
    return Holes(shares, np.random.default_rng(seed))


def test_as_often_as_asked_for() -> None:
    found = missing(holes(0.0, 0.25, 0.9).punch(table(20_000))).mean(axis=1)
    assert found[0] == 0
    assert found[1:] == pytest.approx([0.25, 0.9], abs=0.015)


def test_independent_of_the_values_and_of_each_other() -> None:
    rows = table(30_000)
    a, b, c = missing(holes(0.3, 0.3, 0.3).punch(rows))
    codes = np.arange(30_000) % 3
    assert [a[codes == v].mean() for v in range(3)] == pytest.approx([0.3] * 3, abs=0.02)
    assert [(a & b).mean(), (b & c).mean(), (a & c).mean()] == pytest.approx([0.09] * 3, abs=0.01)


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.0, 0.99), st.integers(0, 9))
def test_the_same_in_whatever_blocks(n: int, cut: int, share: float, seed: int) -> None:
    rows, cut = table(n), min(cut, n)
    whole = missing(holes(share, share, share, seed=seed).punch(rows))
    punch = holes(share, share, share, seed=seed).punch
    blocks = [missing(punch(rows.take(part))) for part in (np.arange(cut), np.arange(cut, n))]
    assert (np.concatenate(blocks, axis=1) == whole).all()


@given(st.integers(0, 40), st.floats(0.0, 0.99), st.floats(0.0, 0.99), st.integers(0, 9))
def test_more_holes_are_the_same_and_others(n: int, share: float, other: float, seed: int) -> None:
    few, many = (missing(holes(s, s, s, seed=seed).punch(table(n))) for s in sorted((share, other)))
    assert (many | ~few).all()


def test_what_stays_stays_as_it_is() -> None:
    rows = table(500)
    before = missing(rows).copy()
    punched = holes(0.4, 0.4, 0.4).punch(rows)
    assert (missing(rows) == before).all()
    assert (punched.label, punched.class_name, punched.n_rows) == (rows.label, "class", 500)
    assert punched.weights is rows.weights
    for name, column in punched.attributes.items():
        original = rows.attributes[name]
        if isinstance(column, CategoricalColumn) and isinstance(original, CategoricalColumn):
            kept = column.codes != MISSING
            assert (column.codes[kept] == original.codes[kept]).all()
            assert column.levels == original.levels
        elif isinstance(column, NumericColumn) and isinstance(original, NumericColumn):
            kept = ~np.isnan(column.values)
            assert (column.values[kept] == original.values[kept]).all()


def test_holes_that_are_there_stay() -> None:
    rows = holes(0.3, 0.3, 0.3).punch(table(300))
    again = holes(0.3, 0.3, 0.3, seed=1).punch(rows)
    assert (missing(again) | ~missing(rows)).all()
    for name, column in again.attributes.items():
        before = rows.attributes[name]
        assert count_holes(column) > count_holes(before) > count_holes(table(300).attributes[name]) == 0


def test_the_shares_of_a_schema() -> None:
    attributes = (
        NumericAttribute("a", False, (3.0, 4.5), (0.0,), missing_weight=2.5),
        CategoricalAttribute("b", True, (6.0, 4.0), ("x",)),
        CategoricalAttribute("c", False, (0.0,), ("x",), missing_weight=10.0),
        CategoricalAttribute("d", False, (), ()),
    )
    assert shares_of_holes(Schema("class", ("n", "p"), attributes)) == (0.25, 0.0, 1.0, 0.0)
