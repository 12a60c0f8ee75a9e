"""Pairs and triples by their gains.

The whole search, and the ranking of all pairs beside one evaluation of the likelihood and its gradient, for the single
attributes. Fine cuts, as by default; 57 numeric attributes have 1,596 pairs, 60 categories 1,770.

And `fit --structure interactions` on a CSV of 15 numeric and 15 categorical columns, beside LightGBM from the same
file: a tenth of the rows held out, at most 1,000 trees, ended when 20 trees in turn gained nothing; one thread each,
start and reading included. Both are scored on 100,000 other rows. Likewise on real tables: adult, 30 % of whose rows
are others, and every 6th row of covertype, with 20,000 others.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners import interactions
from bncli.engine.structure_learners.interaction_gains import Gains
from bncli.engine.structure_learners.interactions import additive_fit
from bncli.engine.structures.structure import Regions
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate, run
from tests.performance.workloads import real_columns, real_path

pytestmark = pytest.mark.performance

LIGHTGBM = """
import sys, numpy as np, pandas as pd, lightgbm
def read(path, names, categories):
    table = pd.read_csv(path)
    y = pd.Categorical(table.pop("class").astype(str), names).codes
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = pd.Categorical(table[name].astype(str), categories.get(name))
    return table, y
names = sorted(pd.read_csv(sys.argv[1], usecols=["class"])["class"].astype(str).unique())
x, y = read(sys.argv[1], names, {})
order = np.random.default_rng(0).permutation(len(y))
held, rest = order[: len(y) // 10], order[len(y) // 10 :]
model = lightgbm.LGBMClassifier(n_estimators=1000, n_jobs=1, verbose=-1)
stop = lightgbm.early_stopping(20, verbose=False)
model.fit(x.iloc[rest], y[rest], eval_set=[(x.iloc[held], y[held])], callbacks=[stop])
if len(sys.argv) > 2:
    z, labels = read(sys.argv[2], names, {c: x[c].cat.categories for c in x.select_dtypes("category").columns})
    p = model.predict_proba(z)
    print(-np.log(p[np.arange(len(labels)), labels.astype(int)]).mean())
"""


def numbers_and_words(n_rows: int, seed: int) -> pa.Table:
    """Numbers with effects of several shapes, categories of 3 to 40 levels, and three interactions."""
    rng = np.random.default_rng(seed)
    shared, score, columns, numbers, levels = rng.normal(size=n_rows), np.zeros(n_rows), {}, [], []
    for i in range(15):
        x = rng.normal(size=n_rows) + 0.4 * shared
        numbers.append(x)
        columns[f"x{i}"] = pa.array(np.round(x * 10 + 50, 3))
        score += 0.5 * [np.sin(2 * x), 0.6 * x, 0.4 * (x > 0.5), 0.3 * x**2, 0 * x][i % 5]
    effects = np.random.default_rng(0).normal(size=(15, 40)) * 0.4
    for i in range(15):
        size = (3, 5, 8, 12, 20, 40)[i % 6]
        codes = np.minimum(rng.geometric(2.5 / size if size > 3 else 0.8, n_rows) - 1, size - 1)
        levels.append(codes)
        columns[f"c{i}"] = pa.array([f"v{j}" for j in range(size)]).take(pa.array(codes))
        score += effects[i][codes] * (i % 3 != 2)
    score += 0.8 * np.sign(numbers[0]) * np.sign(numbers[1]) + 0.5 * numbers[2] * (levels[0] == 1)
    score += 0.6 * (levels[1] % 2) * (numbers[3] > 0)
    labels = rng.random(n_rows) < 1 / (1 + np.exp(0.5 - score))
    columns["class"] = pa.array(["no", "yes"]).take(pa.array(labels.astype(int)))
    return pa.table(columns)


@pytest.mark.parametrize(("n_rows", "most"), [(100_000, 1.8), (1_000_000, 1.0)])
def test_the_command_beside_lightgbm(n_rows: int, most: float, tmp_path: Path, record: Recorder) -> None:
    pytest.importorskip("lightgbm")
    pyarrow.csv.write_csv(numbers_and_words(n_rows, 1), tmp_path / "train.csv")
    pyarrow.csv.write_csv(numbers_and_words(100_000, 2), tmp_path / "test.csv")
    _record_beside_lightgbm(f"{n_rows:,} rows x 30", most, 1.02, tmp_path, record)


@pytest.mark.parametrize(("name", "most", "most_loss"), [("adult", 2.8, 1.05), ("covertype", 3.5, 1.26)])
def test_the_command_beside_lightgbm_on_real_tables(
    name: str, most: float, most_loss: float, tmp_path: Path, record: Recorder
) -> None:
    pytest.importorskip("lightgbm")
    with gzip.open(real_path(name), "rt", newline="") as file:
        header, *rows = csv.reader(file)
    if name == "adult":
        held_out = np.random.default_rng(7).random(len(rows)) < 0.3
        train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    else:
        train, rest = np.arange(0, len(rows), 6), np.flatnonzero(np.arange(len(rows)) % 6)
        test = np.random.default_rng(7).choice(rest, 20_000, replace=False)
    for part, numbers in (("train.csv", train), ("test.csv", test)):
        with open(tmp_path / part, "w", newline="") as file:
            csv.writer(file).writerows([header, *(rows[i] for i in numbers)])
    _record_beside_lightgbm(f"{len(train):,} rows of {name}", most, most_loss, tmp_path, record)


def _record_beside_lightgbm(what: str, most: float, most_loss: float, folder: Path, record: Recorder) -> None:
    """Record CPU time and log-loss of the rows in test.csv, both learned from train.csv, as ratios to LightGBM's."""
    train, test, model = (str(folder / name) for name in ("train.csv", "test.csv", "m.bnc"))
    bncli = [sys.executable, "-m", "bncli"]
    own = run([*bncli, "fit", train, "--structure", "interactions", "--threads", "1", "--quiet", "-o", model])
    peer = run([sys.executable, "-c", LIGHTGBM, train])
    loss = json.loads(run([*bncli, "evaluate", test, "--model", model, "--json", "--quiet"]).output)["log_loss"]
    theirs = float(run([sys.executable, "-c", LIGHTGBM, train, test]).output)
    detail = f"own {own.cpu:.1f} s, LightGBM {peer.cpu:.1f} s; log-loss {loss:.4f}, {theirs:.4f}"
    record(f"fit of {what}, beside LightGBM", own.cpu / peer.cpu, "x its CPU time", most, detail)
    record(f"log-loss of other rows, {what}, beside LightGBM", loss / theirs, "x its log-loss", most_loss)


@cache
def finely_cut(name: str) -> Dataset:
    columns = real_columns(name)
    return learn_dataset(columns, discretize="equal-frequency", bins=255)


@pytest.mark.parametrize(("name", "most"), [("adult", 2.0), ("spambase", 4.0), ("splice", 4.0), ("letter", 8.0)])
def test_seconds(name: str, most: float, record: Recorder) -> None:
    data = finely_cut(name)
    found: list[Regions] = []
    times = alternate({"search": lambda: found.append(interactions.learn(Counts(data)))}, repeats=1)
    sizes = [len(region) for region in found[-1].regions]
    detail = f"{data.n_rows:,} rows; {sizes.count(1)} singles, {sizes.count(2)} pairs, {sizes.count(3)} triples"
    record(f"{name}, pairs and triples: seconds", times["search"].cpu, "s", most, detail)


@pytest.mark.parametrize(("name", "most"), [("adult", 25.0), ("spambase", 100.0), ("splice", 150.0), ("letter", 40.0)])
def test_all_pairs_beside_a_pass(name: str, most: float, record: Recorder) -> None:
    data = finely_cut(name)
    singles = Regions(tuple((i,) for i in data.schema.informative)).families(data.schema.cardinalities)
    likelihood, cells, *_ = additive_fit(data, singles)
    gains = Gains(likelihood, cells, data.schema.informative, 5)
    contestants = {"pairs": gains.of_pairs, "pass": lambda: likelihood.value_and_gradient(cells)}
    times = alternate(contestants, repeats=5)
    detail = f"{1e3 * times['pairs'].cpu:.0f} ms, a pass {1e3 * times['pass'].cpu:.1f} ms"
    record(f"{name}, gains of all pairs", times["pairs"].cpu / times["pass"].cpu, "x a pass", most, detail)
