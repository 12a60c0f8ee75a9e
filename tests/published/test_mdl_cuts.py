"""Cut points that Weka and R's `discretization` agree on; mdl_cuts.json names its source."""

import csv
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.discretizers.mdl import cut_points

FACTS = json.loads(Path(__file__).with_name("mdl_cuts.json").read_text())


def found_cuts(values: NDArray[np.float64], labels: list[str]) -> list[float]:
    names, codes = np.unique(labels, return_inverse=True)
    here = ~np.isnan(values)
    return list(cut_points(values[here], codes[here].astype(np.uint8), len(names), None))


@pytest.mark.parametrize("name", ["wine", "wdbc"])
def test_sets_that_ship_with_scikit_learn(name: str) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    data = datasets.load_wine() if name == "wine" else datasets.load_breast_cancer()
    for i, expected in enumerate(FACTS["cuts"][name].values()):
        assert found_cuts(data.data[:, i], data.target.astype(str).tolist()) == pytest.approx(expected, rel=1e-12)


def real_columns(name: str, rows: int | None = None) -> tuple[dict[str, list[str]], list[str]]:
    if "BNCLI_DATA" not in os.environ:
        pytest.skip("the environment variable BNCLI_DATA names no folder of real tables")
    folder = Path(os.environ["BNCLI_DATA"])
    path = folder / f"{name}.csv"
    with path.open() if path.exists() else gzip.open(folder / f"{name}.csv.gz", "rt") as file:
        header, *body = list(csv.reader(file))[: None if rows is None else rows + 1]
    columns = {column: [row[i] for row in body] for i, column in enumerate(header)}
    return columns, columns.pop("class")


def numbers(texts: list[str]) -> NDArray[np.float64]:
    return np.array([float(t) if t not in ("", "?") else np.nan for t in texts])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FACTS["cuts"]))
def test_every_attribute(name: str) -> None:
    columns, labels = real_columns(name)
    for attribute, expected in FACTS["cuts"][name].items():
        assert found_cuts(numbers(columns[attribute]), labels) == pytest.approx(expected, rel=1e-12), attribute


@pytest.mark.slow
def test_letter_has_139_cuts() -> None:
    columns, labels = real_columns("letter")
    assert sum(len(found_cuts(numbers(c), labels)) for c in columns.values()) == FACTS["totals"]["letter"]


@pytest.mark.slow
def test_adult_has_47_cuts() -> None:
    columns, labels = real_columns("adult", rows=32_561)
    numeric = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    assert sum(len(found_cuts(numbers(columns[name]), labels)) for name in numeric) == FACTS["totals"]["adult"]
