"""What calibration gives: models learned generatively, discriminatively and as an ensemble, before and after.

Run `BNCLI_DATA=FOLDER python -m tests.published.calibration`: it measures what `calibration.csv` lacks and writes the
page. Five folds a table; in each the model learns from the other four, the maps from predictions of these rows out of
five folds of their own, as `fit --calibrate` has it, and both are tested on the fold that neither has seen.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bncli.engine.calibration import FEWEST_ROWS, METHODS, fit_calibration
from bncli.engine.data.columns import Columns
from bncli.engine.data.splits import stratified_folds
from bncli.engine.evaluation.cross_validation import predict
from bncli.engine.evaluation.metrics import measure
from bncli.engine.kernels.arrays import Array
from bncli.engine.learn import learn
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from tests.published.pages import read_csv, table, write_csv

FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")
LEARNERS = {
    "map": {"param": "map"},
    "weighted": {"param": "weighted"},
    "auto": {"structure": "auto", "effort": 1},
}
SETS = (
    *("balance_scale", "heart_statlog", "tic_tac_toe", "breast_cancer_wisconsin", "pima", "titanic", "wdbc"),
    *("flare_2class", "australian", "crx", "cmc", "german", "car", "vehicle", "led7", "segment"),
)
FOLDS = 5
FIGURES_TOLD = ("log_loss", "brier", "ece")


class Figure(NamedTuple):
    """Means over five folds; `method` none: as learned."""

    set: str
    rows: int
    learner: str
    method: str
    log_loss: float
    brier: float
    ece: float


def main() -> None:
    """Measures what is missing, and writes the page."""
    figures = recorded() if FIGURES.exists() else []
    done = {(figure.set, figure.learner) for figure in figures}
    for name in SETS:
        for learner in LEARNERS:
            if (name, learner) not in done:
                figures += measured(name, learner)
                write(figures)
    PAGE.write_text(page(recorded()))


def measured(name: str, learner: str) -> list[Figure]:
    """One learner on one table."""
    path = next(Path(os.environ["BNCLI_DATA"]).glob(f"{name}.csv*"))
    columns = read_columns(Source((str(path),)))
    assert columns.label is not None
    folds = stratified_folds(columns.label.codes, FOLDS, 0)
    found: dict[str, list[list[float]]] = {}
    for fold in range(FOLDS):
        train, test = columns.take(np.flatnonzero(folds != fold)), columns.take(np.flatnonzero(folds == fold))
        for method, log_p in predictions(train, test, learner).items():
            assert test.label is not None
            figures = measure(log_p, test.label.codes).by_name()
            found.setdefault(method, []).append([float(figures[figure] or 0.0) for figure in FIGURES_TOLD])
    return [
        Figure(name, columns.n_rows, learner, method, *np.mean(values, axis=0).tolist())
        for method, values in found.items()
    ]


def predictions(train: Columns, test: Columns, learner: str) -> dict[str, Array]:
    """ln P of the test rows, as learned and by every method that has rows enough."""
    assert train.label is not None
    recipe, labels = Recipe.of(**LEARNERS[learner]), train.label.codes
    inner = stratified_folds(labels, FOLDS, (0, 5))
    held_out = np.empty((len(train.label.levels), train.n_rows))
    for fold in range(FOLDS):
        model = learn(train.take(np.flatnonzero(inner != fold)), recipe).model
        held_out[:, inner == fold] = predict(model, train.take(np.flatnonzero(inner == fold)))
    log_p = predict(learn(train, recipe).model, test)
    enough = np.bincount(labels, minlength=len(held_out)).min() >= FEWEST_ROWS
    methods = [method for method in METHODS if enough or method == "temperature"]
    return {"none": log_p} | {m: fit_calibration(m, held_out, labels).map.apply(log_p) for m in methods}


def write(figures: list[Figure]) -> None:
    """All figures to the file, to six digits."""
    write_csv(FIGURES, [Figure._fields, *([*f[:4], *(f"{value:.6g}" for value in f[4:])] for f in figures)])


def recorded() -> list[Figure]:
    """What the file says."""
    return [
        Figure(name, int(rows), learner, method, *map(float, rest))
        for name, rows, learner, method, *rest in read_csv(FIGURES)[1:]
    ]


def change(figures: list[Figure], learner: str, method: str, figure: str) -> float:
    """The geometric mean over the tables of a figure after calibration beside before; 0.001 is added to both."""
    by = {(f.set, f.method): getattr(f, figure) for f in figures if f.learner == learner}
    names = [name for name, told in by if told == method]
    return float(np.exp(np.mean([np.log((by[n, method] + 0.001) / (by[n, "none"] + 0.001)) for n in names])))


def complete(figures: list[Figure]) -> list[Figure]:
    """Those of the tables that every learner has been measured on."""
    learnt = {name: {f.learner for f in figures if f.set == name} for name in SETS}
    return [figure for figure in figures if learnt.get(figure.set) == LEARNERS.keys()]


def page(figures: list[Figure]) -> str:
    """The summary, then table by table."""
    figures, learners = complete(figures), list(LEARNERS)
    summary = [
        [f"{learner}, {method}", *(f"{change(figures, learner, method, figure):.3f}" for figure in FIGURES_TOLD)]
        for learner in learners
        for method in METHODS
    ]
    parts = ["# What calibration gives", "", _INTRODUCTION, table(["learner, method", *FIGURES_TOLD], summary), ""]
    for learner in learners:
        lines = []
        for name in dict.fromkeys(figure.set for figure in figures if figure.learner == learner):
            own = {f.method: f for f in figures if (f.set, f.learner) == (name, learner)}
            losses = [f"{own[method].log_loss:.4f}" if method in own else "-" for method in ("none", *METHODS)]
            errors = [f"{own[method].ece:.4f}" for method in ("none", "temperature")]
            lines.append([name, f"{own['none'].rows:,}", *losses, *errors])
        header = ["table", "rows", "as learned", *METHODS, "ece as learned", "ece, temperature"]
        parts += [f"## {learner}: log-loss, nats, and ece", "", table(header, lines), ""]
    return "\n".join(parts)


_INTRODUCTION = """\
Means over five folds; the maps are learned inside the training folds, from predictions out of five folds of their own,
as `bncli fit --calibrate` has it. `map` and `weighted` are trees (`--param map`, `--param weighted`), `auto` is
`--structure auto --effort 1`. First the geometric means over the tables of each figure after calibration beside that
before (0.001 added to both): below 1 it is better calibrated.
"""


if __name__ == "__main__":
    main()
