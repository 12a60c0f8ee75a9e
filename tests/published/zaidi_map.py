"""Table 4 of Zaidi et al. (2017): weights learned to discriminate (w) against MAP, by bias, variance, 0-1 loss, RMSE.

Naive Bayes, TAN and KDB-1 on MDL cuts, 5 times 2-fold cross-validation, everything learned inside the fold; bias and
variance after Kohavi & Wolpert (1996) by Webb's repeats (2000). W-D-L: on how many data sets w loses less, as much,
more; p by the two-tailed sign test. Run `BNCLI_DATA=FOLDER python -m tests.published.zaidi_map`: it measures the sets
that `zaidi_map.csv` lacks, one by one, and writes the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli import __version__
from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.splits import stratified_folds
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.evaluation.metrics import BiasVariance, bias_variance
from bncli.engine.evaluation.significance import WinDrawLoss, geometric_mean_ratio, win_draw_loss
from bncli.engine.learn import learn_parameters, learn_structure
from bncli.engine.model import Model
from bncli.recipe import Recipe
from tests.performance.workloads import real_columns
from tests.published.climbs import one_thread
from tests.published.pages import read_csv, write_csv

FIGURES = Path(__file__).with_name("zaidi_map.csv")
REPEATS, FOLDS = 5, 2
MOST_ROWS = 20_000
"""Of larger sets, these drawn at random."""
BIG = 10_000
"""The paper's big sets have more rows."""

_PENALISED = {"w": 0.0, "w, penalty 1": 1.0}
STRUCTURES: Mapping[str, Mapping[str, Any]] = {
    "NB": {"structure": "nb"},
    "TAN": {"structure": "tan"},
    "KDB-1": {"structure": "kdb", "k": 1},
}
WAYS = ("MAP", *_PENALISED)
LOSSES = ("bias", "variance", "error", "rmse")


class Case(NamedTuple):
    """A data set learned in a way: means over all rows and repeats, or (RMSE) over all folds."""

    name: str
    rows: int
    structure: str
    way: str
    bias: float
    variance: float
    error: float
    rmse: float


def main() -> None:
    """Measures what is missing, and writes the page."""
    from tests.published import zaidi_map_page
    from tests.published.zaidi import LARGE, small_sets

    for name in sorted([*LARGE, *small_sets()]):
        found = recorded() if FIGURES.exists() else []
        if not any(case.name == name for case in found):
            with one_thread():
                found = sorted([*found, *cases(name)])
            lines = [(*case[:4], *(f"{loss:.6f}" for loss in case[4:])) for case in found]
            write_csv(FIGURES, [Case._fields, *lines])
            print(name, flush=True)
    zaidi_map_page.PAGE.write_text(zaidi_map_page.page(recorded()))


def recipe_of(structure: str, way: str) -> Recipe:
    if way == "MAP":
        return Recipe.of(param="map", **STRUCTURES[structure])
    return Recipe.of(penalty=_PENALISED[way], init="zero", tolerance=1e-6, **STRUCTURES[structure])


def cases(name: str) -> Iterator[Case]:
    """All structures and ways on one data set; skips the test where it is not at hand."""
    columns = _drawn(real_columns(name))
    assert columns.label is not None
    labels = columns.label.codes
    found = {(s, way): _Found.of(columns.n_rows) for s in STRUCTURES for way in WAYS}
    for repeat in range(REPEATS):
        fold_of = stratified_folds(labels, FOLDS, (0, repeat))
        for fold in range(FOLDS):
            _try(columns, fold_of == fold, repeat, found)
    for (structure, way), each in found.items():
        parts = each.decomposed(labels)
        losses = (parts.bias, parts.variance, parts.bias + parts.variance, float(np.mean(each.rmses)))
        yield Case(name, columns.n_rows, structure, way, *losses)


def _drawn(columns: Columns) -> Columns:
    if columns.n_rows <= MOST_ROWS:
        return columns
    return columns.take(np.sort(np.random.default_rng(1).permutation(columns.n_rows)[:MOST_ROWS]))


@dataclass(frozen=True)
class _Found:
    """What a way predicted, (REPEATS, N), and its RMSE on every fold so far."""

    predicted: NDArray[np.intp]
    rmses: list[float]

    @classmethod
    def of(cls, n_rows: int) -> _Found:
        return cls(np.empty((REPEATS, n_rows), np.intp), [])

    def decomposed(self, labels: NDArray[np.integer]) -> BiasVariance:
        return bias_variance(labels, self.predicted, int(labels.max()) + 1)


def _try(columns: Columns, held_out: NDArray[np.bool_], repeat: int, found: dict[tuple[str, str], _Found]) -> None:
    training, test = columns.take(np.flatnonzero(~held_out)), columns.take(np.flatnonzero(held_out))
    counts = Counts(learn_dataset(training))
    schema = counts.data.schema
    for structure, way in found:
        recipe = recipe_of(structure, way)
        dag = learn_structure(counts, recipe)
        tables = learn_parameters(counts, dag, recipe).tables
        model = Model(schema, dag, tables, recipe, counts.data.n_rows, __version__, None)
        examined = predict_and_measure(model, test)
        found[structure, way].predicted[repeat, held_out] = examined.log_probabilities.argmax(axis=0)
        found[structure, way].rmses.append(examined.metrics.rmse)


def recorded() -> list[Case]:
    """The file of figures."""
    return [Case(name, int(rows), s, way, *map(float, losses)) for name, rows, s, way, *losses in read_csv(FIGURES)[1:]]


def pairs(found: Sequence[Case], structure: str, way: str, loss: str) -> tuple[list[float], list[float], list[int]]:
    """What MAP lost on every data set, what `way` lost, and the numbers of rows."""
    value = {(case.name, case.way): getattr(case, loss) for case in found if case.structure == structure}
    rows = {case.name: case.rows for case in found}
    names = sorted(rows)
    return [value[name, "MAP"] for name in names], [value[name, way] for name in names], [rows[n] for n in names]


def big(found: Sequence[Case]) -> list[Case]:
    return [case for case in found if case.rows > BIG]


def compare(found: Sequence[Case], structure: str, way: str, loss: str) -> WinDrawLoss:
    """On how many data sets `way` loses less than MAP."""
    theirs, ours, _ = pairs(found, structure, way, loss)
    return win_draw_loss(theirs, ours)


def ratio(found: Sequence[Case], structure: str, way: str, loss: str) -> float:
    """The geometric mean of the losses over those of MAP."""
    theirs, ours, rows = pairs(found, structure, way, loss)
    return geometric_mean_ratio(ours, theirs, rows, "root" if loss == "rmse" else "mean")


if __name__ == "__main__":
    main()
