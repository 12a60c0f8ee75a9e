"""What people use instead: classifiers of scikit-learn and xgboost on the folds of `bncli evaluate --folds 5 --seed 0`.

Every learner gets the raw columns in the way that suits it: boosting sees categories and holes as such; forests and
linear models see indicators of levels (and of holes), linear models standardised numbers; naive Bayes for categories
(CategoricalNB) sees ten equally frequent intervals. One setting each, none is searched per table: "early" stops by rows
held out of the training part.
One thread; seconds are those of the processor. Probabilities are at least 1e-15; a forest's are (200 P + 1/K) / 201.

Run `BNCLI_DATA=FOLDER python -m tests.published.references references.csv [sets]`: what is in the file already is kept.
"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.data.splits import stratified_folds
from tests.performance.workloads import real_columns

FOLDS = 5
FIGURES = Path(__file__).with_name("references.csv")
COPIES = ("australian", "monks1_train", "monks2_train", "monks3_train")
"""Tables that are parts or other codings of others."""
ONE_FOLD = 100_000
"""Of larger tables only the first fold is tried."""

Array = NDArray[np.float64]
Learner = Callable[[Columns, Columns, int], Callable[[], Array]]


class Figure(NamedTuple):
    """One learner on one fold: losses on the rows held out, seconds of the processor to learn and to predict."""

    set: str
    fold: int
    learner: str
    rows: int
    log_loss: float
    error: float
    rmse: float
    fit: float
    score: float


def sets() -> list[str]:
    """Every table at hand, copies left out, small ones first."""
    folder = Path(os.environ["BNCLI_DATA"])
    paths = [path for path in folder.iterdir() if path.name.endswith((".csv", ".csv.gz"))]
    names = [path.name.split(".")[0] for path in sorted(paths, key=lambda path: path.stat().st_size)]
    return [name for name in names if name not in COPIES]


def splits(columns: Columns) -> Iterator[tuple[int, Columns, Columns]]:
    """Number, training part and test part of every fold that is tried."""
    assert columns.label is not None
    fold_of = stratified_folds(columns.label.codes, FOLDS, (0, 0))
    for fold in range(1 if columns.n_rows > ONE_FOLD else FOLDS):
        yield fold, columns.take(np.flatnonzero(fold_of != fold)), columns.take(np.flatnonzero(fold_of == fold))


def losses(p: Array, labels: NDArray[np.integer[Any]]) -> tuple[float, float, float]:
    """Log-loss in nats, error and RMSE of P(class) (N, K)."""
    of_truth = np.maximum(p[np.arange(len(labels)), labels], 1e-15)
    return (
        float(-np.log(of_truth).mean()),
        float((p.argmax(axis=1) != labels).mean()),
        float(np.sqrt(((1 - of_truth) ** 2).mean())),
    )


def measure(name: str, learner: str, fold: int, train: Columns, test: Columns) -> Figure:
    """One learner on one fold."""
    assert train.label is not None
    assert test.label is not None
    n_labels = len(train.label.levels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        predict = LEARNERS[learner](train, test, n_labels)
        learnt = time.process_time()
        p = predict()
        scored = time.process_time()
    found = losses(p, test.label.codes)
    return Figure(name, fold, learner, test.n_rows, *found, learnt - start, scored - learnt)


def frame(columns: Columns) -> Any:
    """A pandas table: categories as codes (a hole is NaN), numbers as they are."""
    import pandas

    return pandas.DataFrame(
        {
            f"x{i}": pandas.Categorical(np.where(c.codes < 0, -1, c.codes), categories=range(-1, len(c.levels)))
            if isinstance(c, CategoricalColumn)
            else c.values.astype(np.float64)
            for i, c in enumerate(columns.attributes.values())
        }
    )


def _indicators(columns: Columns, like: Columns, scaled: bool) -> Array:
    """Indicators of levels and holes, and numbers (holes at the mean) scaled by the training part `like`."""
    blocks = []
    for name, column in columns.attributes.items():
        reference = like.attributes[name]
        if isinstance(column, CategoricalColumn):
            blocks.append(column.codes[:, None] == np.arange(-1, len(column.levels)))
            continue
        assert not isinstance(reference, CategoricalColumn)
        values, known = column.values.astype(np.float64), reference.values.astype(np.float64)
        mean = np.nanmean(known) if np.isfinite(known).any() else 0.0
        spread = (np.nanstd(known) if scaled else 1.0) or 1.0
        holes = np.isnan(values)
        blocks.append(((np.where(holes, mean, values) - mean) / spread)[:, None])
        if np.isnan(known).any():
            blocks.append(holes[:, None])
    return np.hstack(blocks).astype(np.float64) if blocks else np.zeros((columns.n_rows, 1))


def spread(model: Any, x: Any, n_labels: int) -> Array:
    """The model's probabilities, classes without training rows included."""
    p = np.zeros((len(x), n_labels))
    p[:, model.classes_.astype(int)] = model.predict_proba(x)
    return p


def labels_of(train: Columns) -> NDArray[np.integer[Any]]:
    assert train.label is not None
    return train.label.codes


def _logistic(train: Columns, test: Columns, n_labels: int) -> Callable[[], Array]:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=2000).fit(_indicators(train, train, scaled=True), labels_of(train))
    return lambda: spread(model, _indicators(test, train, scaled=True), n_labels)


def _categorical_nb(train: Columns, test: Columns, n_labels: int) -> Callable[[], Array]:
    from sklearn.naive_bayes import CategoricalNB

    def codes(columns: Columns) -> NDArray[np.int64]:
        parts = [np.zeros(columns.n_rows, np.int64)]
        for name, column in columns.attributes.items():
            if isinstance(column, CategoricalColumn):
                parts.append(column.codes.astype(np.int64) + 1)
                continue
            known = train.attributes[name].values.astype(np.float64)  # type: ignore[union-attr]
            cuts = np.unique(np.nanquantile(known, np.arange(1, 10) / 10)) if np.isfinite(known).any() else []
            values = column.values.astype(np.float64)
            parts.append(np.where(np.isnan(values), 0, 1 + np.searchsorted(cuts, values)))
        return np.stack(parts, axis=1)

    x, z = codes(train), codes(test)
    model = CategoricalNB(min_categories=np.maximum(x.max(axis=0), z.max(axis=0)) + 1).fit(x, labels_of(train))
    return lambda: spread(model, z, n_labels)


def _forest(train: Columns, test: Columns, n_labels: int) -> Callable[[], Array]:
    from sklearn.ensemble import RandomForestClassifier

    x = _indicators(train, train, scaled=False).astype(np.float32)
    model = RandomForestClassifier(200, random_state=0, n_jobs=1).fit(x, labels_of(train))
    return lambda: (
        (200 * spread(model, _indicators(test, train, scaled=False).astype(np.float32), n_labels) + 1 / n_labels) / 201
    )


def _boosting(train: Columns, test: Columns, n_labels: int, **settings: Any) -> Callable[[], Array]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    x, z = frame(train), frame(test)
    wide = any(isinstance(c, CategoricalColumn) and len(c.levels) > 250 for c in train.attributes.values())
    kinds = None if wide else [isinstance(c, CategoricalColumn) for c in train.attributes.values()]
    if wide:
        x, z = x.astype(np.float64), z.astype(np.float64)
    settings = {"random_state": 0, "early_stopping": False, "categorical_features": kinds} | settings
    y = labels_of(train)
    if len(y) < 10 * n_labels or np.bincount(y)[np.unique(y)].min() < 2:
        settings["early_stopping"] = False  # it could not hold out a row of every class
    model = HistGradientBoostingClassifier(**settings).fit(x, y)
    return lambda: spread(model, z, n_labels)


def _early_boosting(train: Columns, test: Columns, n_labels: int) -> Callable[[], Array]:
    settings = {"learning_rate": 0.1, "max_iter": 400, "max_leaf_nodes": 15, "l2_regularization": 1.0}
    return _boosting(train, test, n_labels, early_stopping=True, **settings)


def _xgboost(train: Columns, test: Columns, n_labels: int, **settings: Any) -> Callable[[], Array]:
    import xgboost

    x, z, y = frame(train), frame(test), labels_of(train)
    present = np.unique(y)
    settings = {"n_jobs": 1, "enable_categorical": True, "tree_method": "hist"} | settings
    model = xgboost.XGBClassifier(**settings)
    position = np.searchsorted(present, y)
    if "early_stopping_rounds" in settings:
        kept, held = held_out(y)
        model.fit(x[kept], position[kept], eval_set=[(x[held], position[held])], verbose=False)
    else:
        model.fit(x, position)

    def predict() -> Array:
        p = np.zeros((len(z), n_labels))
        p[:, present] = model.predict_proba(z)
        return p

    return predict


def held_out(y: NDArray[np.integer[Any]]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows to learn from, and a seventh that says when to stop; all rows twice where a class would lack."""
    held = stratified_folds(y, 7, 3) == 0
    n_present = len(np.unique(y))
    if len(np.unique(y[~held])) < n_present:
        held = np.zeros(len(y), np.bool_)
        held[np.flatnonzero(np.bincount(y)[y] > 1)[::7]] = True
    if len(np.unique(y[~held])) < n_present:
        held[:] = False
    return ~held, held if held.any() else ~held


def _early_xgboost(train: Columns, test: Columns, n_labels: int) -> Callable[[], Array]:
    shape = {"learning_rate": 0.1, "n_estimators": 600, "max_depth": 5, "subsample": 0.8, "colsample_bytree": 0.8}
    return _xgboost(train, test, n_labels, early_stopping_rounds=20, **shape)


LEARNERS: dict[str, Learner] = {
    "LogisticRegression": _logistic,
    "CategoricalNB": _categorical_nb,
    "RandomForest": _forest,
    "HistGradientBoosting": _boosting,
    "HistGradientBoosting, early": _early_boosting,
    "xgboost": _xgboost,
    "xgboost, early": _early_xgboost,
}


def recorded(path: Path = FIGURES) -> list[Figure]:
    """The figures of a file, none where there is no file."""
    if not path.exists():
        return []
    kinds = (str, int, str, int, float, float, float, float, float)
    with path.open(newline="") as file:
        lines = list(csv.reader(file))[1:]
    return [Figure(*(kind(cell) for kind, cell in zip(kinds, line, strict=True))) for line in lines]  # type: ignore[arg-type]


def main(path: Path, names: list[str]) -> None:
    """Measures what the file lacks, a line at a time."""
    for fold, train, test in splits(real_columns("iris")):
        for learner in LEARNERS:  # imports are not to be measured
            measure("iris", learner, fold, train, test)
    done = {figure[:3] for figure in recorded(path)}
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(Figure._fields)
        for name in names or sets():
            for fold, train, test in splits(real_columns(name)):
                for learner in LEARNERS:
                    if (name, fold, learner) not in done:
                        figure = measure(name, learner, fold, train, test)
                        writer.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in figure])
                        file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
