"""Models of a thousand small tables.

Each is a random oblivious tree of six cuts over up to six attributes. Scoring stands beside the predict_proba of
scikit-learn's HistGradientBoostingClassifier after as many iterations of at most 31 leaves, on the same numbers, both
from float64 columns to probabilities; with seven classes an iteration of theirs is seven trees, a table of ours has
seven numbers a cell. They fit random labels, so that their trees are full.
"""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.data.columns import Columns, NumericColumn
from bncli.engine.data.dataset import encode_attributes
from bncli.engine.data.schema import NumericAttribute, Schema
from bncli.engine.prediction.contributions import Explainer
from bncli.engine.prediction.effects import effects_of
from bncli.engine.prediction.scoring import Scorer, compile_scorer, log_probabilities
from bncli.files.artifacts.model import read_model, write_model
from tests.many_tables import boosted_model, random_codes, random_schema
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate

pytestmark = pytest.mark.performance

N_TABLES, N_ROWS, N_LEARNT = 1_000, 20_000, 2_000


def numeric_schema(n_attributes: int, n_labels: int) -> Schema:
    """Standard normal attributes of 256 equally frequent intervals."""
    cuts = tuple(np.quantile(np.random.default_rng(0).normal(size=100_000), np.arange(1, 256) / 256).tolist())
    labels = tuple(f"c{y}" for y in range(n_labels))
    return Schema(
        "class", labels, tuple(NumericAttribute(f"x{i}", False, (1.0,) * 256, cuts) for i in range(n_attributes))
    )


def score_columns(scorer: Scorer, schema: Schema, values: NDArray[np.float64]) -> NDArray[np.float64]:
    columns = {a.name: NumericColumn(column) for a, column in zip(schema.attributes, values.T, strict=True)}
    encoded = encode_attributes(Columns(len(values), columns, schema.class_name, None), schema, scorer.used)
    return np.exp(log_probabilities(scorer, encoded.codes))


@pytest.mark.parametrize(
    ("n_attributes", "n_labels", "n_tables", "at_most"),
    [(10, 2, N_TABLES, 0.1), (50, 2, N_TABLES, 0.2), (10, 7, 250, 0.1), (50, 7, 250, 0.1)],
)
def test_scores_beside_boosting(
    n_attributes: int, n_labels: int, n_tables: int, at_most: float, record: Recorder
) -> None:
    """Of seven classes a quarter as many, for learning 7,000 trees takes minutes."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    generator = np.random.default_rng(1)
    schema = numeric_schema(n_attributes, n_labels)
    scorer = compile_scorer(boosted_model(schema, n_tables))
    learnt, labels = generator.normal(size=(N_LEARNT, n_attributes)), generator.integers(0, n_labels, N_LEARNT)
    boosting = HistGradientBoostingClassifier(
        max_iter=n_tables, max_leaf_nodes=31, early_stopping=False, min_samples_leaf=20, random_state=0
    ).fit(learnt, labels)
    values = generator.normal(size=(N_ROWS, n_attributes))
    times = alternate(
        {"own": lambda: score_columns(scorer, schema, values), "theirs": lambda: boosting.predict_proba(values)}, 5
    )
    own, theirs = times["own"].cpu, times["theirs"].cpu
    record(
        f"scoring, {n_tables:,} tables, {n_attributes} attributes, {n_labels} classes, beside boosting",
        own / theirs,
        "x its time",
        at_most,
        f"own {N_ROWS / own:,.0f} rows a second, boosting {N_ROWS / theirs:,.0f}",
    )


@pytest.mark.parametrize("n_labels", [2, 7])
def test_memory_of_scoring_does_not_grow_with_the_tables(n_labels: int, record: Recorder) -> None:
    """Temporaries of a pass over the rows, by tracemalloc, unobserved values included."""
    schema = random_schema(20, n_labels)
    rows = random_codes(schema, N_ROWS, unknown=0.01)
    peaks = []
    for n_tables in (N_TABLES // 4, 2 * N_TABLES):
        scorer = compile_scorer(boosted_model(schema, n_tables))
        codes = [rows[a] for a in scorer.used]
        log_probabilities(scorer, codes)
        tracemalloc.start()
        log_probabilities(scorer, codes)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    what = f"memory of scoring, {2 * N_TABLES:,} tables, {n_labels} classes"
    record(what, peaks[1] / peaks[0], f"x that of {N_TABLES // 4} tables", 1.1, f"{peaks[1] / 2**20:.0f} MiB")


@pytest.mark.parametrize("n_labels", [2, 7])
def test_the_first_row_comes_soon(n_labels: int, record: Recorder) -> None:
    """To compile the model, in units of scoring 20,000 rows by it."""
    schema = numeric_schema(20, n_labels)
    model = boosted_model(schema, N_TABLES)
    codes = random_codes(schema, N_ROWS)
    scorer = compile_scorer(model)
    times = alternate(
        {
            "compile": lambda: compile_scorer(model),
            "score": lambda: log_probabilities(scorer, [codes[a] for a in scorer.used]),
        },
        5,
    )
    ratio = times["compile"].cpu / times["score"].cpu
    record(f"compiling, {n_labels} classes", ratio, "x scoring 20,000 rows", 6.0, f"{times['compile'].cpu:.2f} s")


@pytest.mark.parametrize("n_labels", [2, 7])
@pytest.mark.parametrize("n_attributes", [10, 100])
def test_rows_are_explained_and_effects_told_in_seconds(n_attributes: int, n_labels: int, record: Recorder) -> None:
    """2,000 rows, three contributions each, and all effects; CPU seconds, beside scoring the rows for orientation."""
    schema = random_schema(n_attributes, n_labels)
    model = boosted_model(schema, N_TABLES)
    scorer = compile_scorer(model)
    rows = random_codes(schema, 2_000, unknown=0.02)
    codes = [rows[a] for a in scorer.used]
    log_p = log_probabilities(scorer, codes)
    began = time.process_time()
    explainer = Explainer(model, scorer.used)
    explainer.explain(codes, log_p, log_p.argmax(axis=0), 3)
    explained = time.process_time()
    effects_of(model)
    told = time.process_time()
    what = f"{n_attributes} attributes, {n_labels} classes"
    sets = f"{len(explainer.terms):,} sets of attributes"
    record(f"2,000 rows explained, {what}", explained - began, "s", 10.0, sets)
    record(f"effects, {what}", told - explained, "s", 20.0, sets)


@pytest.mark.parametrize("n_labels", [2, 7])
def test_the_file_is_little_more_than_the_numbers(tmp_path: Path, n_labels: int, record: Recorder) -> None:
    """Bytes beside those of the tables; CPU seconds to write and to read."""
    model = boosted_model(random_schema(20, n_labels), N_TABLES)
    path = str(tmp_path / "m.bnc")
    times = alternate({"write": lambda: write_model(path, model), "read": lambda: read_model(path)}, 5)
    numbers = sum(weights.nbytes for weights in model.tables.weights)
    size = Path(path).stat().st_size
    seconds = f"{size:,} bytes; written in {times['write'].cpu:.2f} s, read in {times['read'].cpu:.2f} s"
    record(f"model file, {n_labels} classes", size / numbers, "x its numbers", 1.3, seconds)
