"""The tables that are written out from their definitions are what the definitions say."""

from __future__ import annotations

import numpy as np

from bncli.engine.data.columns import CategoricalColumn, Columns
from tests.published.targets import all_combinations, corral, mofn, splits


def codes(columns: Columns) -> dict[str, list[int]]:
    assert columns.label is not None
    found = {
        name: column.codes.tolist()
        for name, column in columns.attributes.items()
        if isinstance(column, CategoricalColumn)
    }
    return found | {"class": columns.label.codes.tolist()}


def test_all_combinations() -> None:
    assert all_combinations(2).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_corral() -> None:
    rows = codes(corral())
    assert len(rows) == 7
    assert len(rows["class"]) == 128
    for a0, a1, b0, b1, label in zip(*(rows[name] for name in ("a0", "a1", "b0", "b1", "class")), strict=True):
        assert label == int((a0 and a1) or (b0 and b1))
    agree = np.equal(rows["correlated"], rows["class"])
    assert agree.mean() == 0.75
    assert np.mean(rows["irrelevant"]) == np.mean(np.array(rows["irrelevant"])[np.array(rows["class"]) == 1]) == 0.5


def test_mofn() -> None:
    columns = mofn()
    rows = codes(columns)
    (split,) = splits("mofn-3-7-10", columns)
    inputs = np.array([rows[f"x{i}"] for i in range(1, 11)])
    assert (np.array(rows["class"]) == (inputs[:7].sum(axis=0) >= 3)).all()
    assert (len(split.training), len(split.test)) == (300, 1024)
    assert len(np.unique(inputs[:, split.test], axis=1).T) == 1024


def test_rows_are_predicted_once() -> None:
    columns = corral()
    tested = [row for split in splits("corral", columns) for row in split.test]
    assert sorted(tested) == list(range(128))
