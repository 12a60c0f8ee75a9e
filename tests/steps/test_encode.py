"""A table and its codes give the same models; what only one of them can is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bncli.engine.data.cutting import learn_dataset
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.discretize import discretize
from bncli.steps.encode import encode
from bncli.steps.fit import fit
from bncli.steps.learning_inputs import read_supplied
from tests.sweeps import every_value
from tests.transcripts import ROOT

SAMPLES = ROOT / "sample_data"
LEARNERS = [
    {"structure": "tan", "penalty": 1.0},
    {"structure": "nb", "param": "discriminative", "penalty": 1.0},
    {"structure": "kdb", "k": 2, "param": "map"},
    {"structure": "hill-climb", "param": "map"},
    {"structure": "tan", "param": "extended", "penalty": 1.0},
    {"structure": "tan", "param": "acll"},
    {"structure": "nb", "param": "map", "missing_policy": "marginalize"},
    {"structure": "interactions", "penalty": 1.0, "discretize": "equal-frequency", "bins": 20},
]


def _coded(tmp_path: Path, data: Path, recipe: Recipe) -> tuple[str, str]:
    """The cuts file, and the codes, of a table."""
    cuts, codes = str(tmp_path / "cuts.json"), str(tmp_path / "x.codes")
    discretize(Source((str(data),)), recipe, cuts_out=cuts)
    encode(Source((str(data),)), recipe, output=codes)
    return cuts, codes


@pytest.mark.parametrize(("words", "name"), every_value(LEARNERS, ["wine_holes", "tic_tac_toe"]))
def test_the_model_is_that_of_the_table(tmp_path: Path, name: str, words: dict[str, object]) -> None:
    recipe = Recipe.of(**words)
    data = SAMPLES / f"{name}.csv"
    cuts, codes = _coded(tmp_path, data, recipe)
    models = []
    for paths, file in (((str(data),), cuts), ((codes,), codes)):
        fit(Source(paths), recipe, output=str(tmp_path / "m.bnc"), supplied=read_supplied(file))
        models.append((tmp_path / "m.bnc").read_bytes())
    assert models[0] == models[1]


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
def test_many_blocks_give_the_model_of_the_table(tmp_path: Path) -> None:
    """With a sample that is not all rows, and weights."""
    rng = np.random.default_rng(5)
    n = 5_000
    y = rng.integers(0, 3, n)
    x = np.round(rng.normal(y, 1.0), 3)
    c = np.array(["", "a", "b", "d"])[(y + rng.integers(0, 2, n)) % 4]
    w = rng.integers(0, 4, n) / 3
    lines = [f"{a},{b},{v!r},{k}" for a, b, v, k in zip(x, c, w.tolist(), y, strict=True)]
    data = tmp_path / "t.csv"
    data.write_text("x,c,w,class\n" + "\n".join(lines) + "\n")
    source, recipe = Source((str(data),), weights="w"), Recipe.of(structure="tan")
    codes = str(tmp_path / "t.codes")
    encode(source, recipe, output=codes)
    supplied = read_supplied(codes)
    fit(source, recipe, output=str(tmp_path / "a.bnc"), supplied=supplied)
    fit(Source((codes,)), recipe, output=str(tmp_path / "b.bnc"), supplied=supplied)
    assert (tmp_path / "a.bnc").read_bytes() == (tmp_path / "b.bnc").read_bytes()
    direct = learn_dataset(read_columns(source, cuts=supplied.cuts), cuts=supplied.cuts)
    coded = learn_dataset(read_columns(Source((codes,))), cuts=supplied.cuts)
    assert coded.schema == direct.schema
    for one, other in zip(direct.row_blocks(), coded.row_blocks(), strict=True):
        for a, b in zip(one.codes, other.codes, strict=True):
            np.testing.assert_array_equal(a, b)
            assert not b.flags.owndata  # a view on the mapped file
        np.testing.assert_array_equal(one.labels, other.labels)
