"""The table of Jakulin & Rish (2006, IBM Research Report: Kikuchi-Bayes): regions beside naive Bayes, LR and TAN.

Five replications of five-fold cross-validation, MDL cuts learned inside the fold, a missing value is one more value.
Log-loss in nats a row and error, both over all rows, each predicted without itself. 34 of the paper's 46 sets.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli import __version__
from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns, NumericColumn
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.splits import stratified_folds
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.learn import learn, learn_parameters, learn_structure
from bncli.engine.model import Model
from bncli.engine.structures.structure import Structure
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from tests.performance.workloads import real_path
from tests.published.pages import read_csv
from tests.published.presets import preset

PAGE = Path(__file__).with_name("jakulin.md")
FIGURES = PAGE.with_suffix(".csv")
TABLE_1 = PAGE.with_name("jakulin_table1.csv")
"""What the paper prints: set, seconds, rows, degrees of freedom, log-loss of the five classifiers."""
THETA = PAGE.with_name("jakulin_theta.csv")
FACTS = PAGE.with_name("jakulin_sets.csv")
FOLDS = 5
REPEATS = 5


@dataclass(frozen=True)
class Table:
    """Where the rows of a set of the paper come from, and in what they differ.

    Of the files' rows the first `n_rows`; `complete`: only those without holes; `nominal`: no column holds numbers.
    `repeats` replications are run.
    """

    files: tuple[str, ...]
    n_rows: int | None = None
    complete: bool = False
    nominal: bool = False
    repeats: int = REPEATS


SETS = {
    "horse-colic": Table(("horse_colic",)),
    "hepatitis": Table(("hepatitis",)),
    "vehicle": Table(("vehicle",)),
    "voting": Table(("house_votes_84",)),
    "monk2": Table(("monks2_train", "monks2")),
    "p-tumor": Table(("primary_tumor",)),
    "heart": Table(("heart_cleveland",)),
    "wdbc": Table(("wdbc",)),
    "lymph": Table(("lymphography",)),
    "cmc": Table(("cmc",)),
    "adult": Table(("adult",), n_rows=32_561, repeats=1),
    "crx": Table(("crx",)),
    "krkp": Table(("chess_krkp",), repeats=1),
    "glass": Table(("glass",)),
    "australian": Table(("australian",)),
    "titanic": Table(("titanic",)),
    "segment": Table(("segment",)),
    "lenses": Table(("lenses",)),
    "monk1": Table(("monks1_train", "monks1")),
    "mushroom": Table(("mushroom",), repeats=1),
    "car": Table(("car",)),
    "monk3": Table(("monks3_train", "monks3")),
    "tic-tac-toe": Table(("tic_tac_toe",)),
    "pima": Table(("pima",)),
    "iris": Table(("iris",)),
    "spam": Table(("spambase",), repeats=1),
    "breast-wisc": Table(("breast_cancer_wisconsin",), complete=True),
    "german": Table(("german",)),
    "anneal": Table(("anneal",)),
    "hayes-roth": Table(("hayes_roth",)),
    "balance-scale": Table(("balance_scale",), nominal=True),
    "soy-large": Table(("soybean_large",)),
    "wine": Table(("wine",)),
    "zoo": Table(("zoo",)),
}
"""In the order of the paper's table."""
THETA_SETS = (
    "lenses",
    "iris",
    "tic-tac-toe",
    "hepatitis",
    "lymph",
    "glass",
    "hayes-roth",
    "monk2",
    "balance-scale",
    "wine",
    "zoo",
)
THETAS = (10.0, 1.0, 0.1, 1e-3, 1e-6)

PENALTIES = (0.0, 0.01, 0.1, 1.0, 10.0)
RANKED = ("NB", "LR", "TAN", "kMAP", "kBMA")
"""The columns of the paper."""
LR = "LR 0.01"
"""What stands for LR, in the preset too: of the penalties the one whose log-losses are nearest to the paper's."""
FITTED = "regions cv"
"""The regions of kMAP with tables fitted discriminatively."""


def recipes() -> dict[str, Recipe]:
    """Return the classifiers by name: those of the preset, LR with other penalties too, and the fitted regions."""
    own = preset("jakulin")
    return {
        "NB": own["nb"],
        **{f"LR {penalty:g}": Recipe.of(structure="nb", param="lr", penalty=penalty) for penalty in PENALTIES},
        LR: own["lr"],
        "LR cv": Recipe.of(structure="nb", param="lr"),
        "TAN": own["tan"],
        "kMAP": own["kmap"],
        "kBMA": own["kbma"],
        FITTED: Recipe.of(structure="kikuchi", theta=1.0, param="discriminative"),
    }


def classifiers(name: str, repeat: int) -> dict[str, Recipe]:
    """Those that are tried in this replication: the paper's own in all, more in the first, all on smaller sets."""
    tried = {LR if way == "LR" else way for way in RANKED}
    if repeat == 0:
        tried |= recipes().keys() if SETS[name].repeats == REPEATS else {"LR cv"}
    return {way: recipe for way, recipe in recipes().items() if way in tried}


class Loss(NamedTuple):
    """Of a classifier in one replication on one set, over all rows."""

    name: str
    repeat: int
    way: str
    log_loss: float
    error: float


class Facts(NamedTuple):
    """A set: rows, degrees of freedom of naive Bayes as the paper counts them, processor seconds of a search."""

    name: str
    n_rows: int
    df: int
    seconds: float


def columns_of(table: Table) -> Columns:
    """The rows; skips the test where they are not at hand."""
    paths = [real_path(name) for name in table.files]
    schema_file = paths[0].with_name(f"{table.files[0]}.schema.json")
    columns = read_columns(Source(tuple(map(str, paths)), schema_file=str(schema_file)))
    if table.nominal:
        columns = read_columns(Source(tuple(map(str, paths)), categorical=tuple(columns.attributes)))
    if table.complete:
        columns = columns.take(np.flatnonzero(_complete(columns)))
    return columns if table.n_rows is None else columns.take(np.arange(table.n_rows))


def _complete(columns: Columns) -> NDArray[np.bool_]:
    holes = [
        np.isnan(column.values.astype(np.float64)) if isinstance(column, NumericColumn) else column.codes < 0
        for column in columns.attributes.values()
    ]
    return np.asarray(~np.any(holes, axis=0))


def measured(name: str) -> tuple[list[Loss], Facts]:
    """All replications on one set."""
    columns = columns_of(SETS[name])
    found: list[Loss] = []
    seconds = []
    for repeat in range(SETS[name].repeats):
        more, spent = losses(columns, name, repeat, classifiers(name, repeat))
        found += more
        seconds.append(spent)
    return found, Facts(name, columns.n_rows, degrees_of_freedom(columns), float(np.mean(seconds)))


def losses(columns: Columns, name: str, repeat: int, chosen: Mapping[str, Recipe]) -> tuple[list[Loss], float]:
    """One replication; also the mean processor seconds of a search for regions."""
    assert columns.label is not None
    fold_of = stratified_folds(columns.label.codes, FOLDS, (0, repeat))
    sums = {way: np.zeros(2) for way in chosen}
    spent = 0.0
    for fold in range(FOLDS):
        found, seconds = _fold(columns, fold_of == fold, chosen)
        spent += seconds / FOLDS
        for way, both in found.items():
            sums[way] += both
    n = columns.n_rows
    return [Loss(name, repeat, way, float(both[0] / n), float(both[1] / n)) for way, both in sums.items()], spent


def thetas(name: str) -> Iterator[tuple[str, float, str, float]]:
    """Set, theta, classifier and log-loss of the first replication, everything smoothed by that theta."""
    columns = columns_of(SETS[name])
    for theta in THETAS:
        chosen = {way: _with_theta(recipes()[way], theta) for way in ("NB", "TAN", "kMAP", "kBMA")}
        for loss in losses(columns, name, 0, chosen)[0]:
            yield name, theta, loss.way, loss.log_loss


def _with_theta(recipe: Recipe, theta: float) -> Recipe:
    if recipe.theta is not None:
        return recipe.replaced(theta=theta)
    return recipe.replaced(smoothing=f"bdeu:{theta:g}")


def _fold(
    columns: Columns, held_out: NDArray[np.bool_], chosen: Mapping[str, Recipe]
) -> tuple[dict[str, NDArray[np.float64]], float]:
    """Sums of log-losses and errors over the rows held out by classifier; processor seconds of the search."""
    training, test = columns.take(np.flatnonzero(~held_out)), columns.take(np.flatnonzero(held_out))
    counts = Counts(learn_dataset(training))
    schema = counts.data.schema
    structures: dict[str, Structure] = {}
    found = {}
    seconds = 0.0
    for way, recipe in chosen.items():
        if recipe.structure not in structures:
            start = time.process_time()
            structures[recipe.structure] = learn_structure(counts, recipe)
            seconds = time.process_time() - start if recipe.structure == "kikuchi" else seconds
        structure = structures[recipe.structure]
        if recipe.penalty == "cv":  # chosen with cuts and structure learned anew in each fold
            model = learn(training, recipe.replaced(group_levels="off")).model
        else:
            learnt = learn_parameters(counts, structure, recipe)
            model = Model(schema, structure, learnt.predictor, recipe, counts.data.n_rows, __version__)
        metrics = predict_and_measure(model, test).metrics
        found[way] = np.array([metrics.log_loss, metrics.error]) * held_out.sum()
    return found, seconds


def degrees_of_freedom(columns: Columns) -> int:
    """Of naive Bayes: pairs of a value and a class that occur, less values that occur, summed over the attributes.

    A pair that never occurs is taken for impossible, and what the attributes share by the class is not taken off: that
    gives the paper's numbers.
    """
    counts = Counts(learn_dataset(columns))
    tables = counts.tables([(i,) for i in counts.data.schema.informative])
    return sum(int((table > 0).sum() - (table.sum(axis=-1) > 0).sum()) for table in tables)


def recorded() -> list[Loss]:
    """The file of figures."""
    return [Loss(w[0], int(w[1]), w[2], float(w[3]), float(w[4])) for w in read_csv(FIGURES)[1:]]


def facts() -> list[Facts]:
    """The file of sets."""
    return [Facts(w[0], int(w[1]), int(w[2]), float(w[3])) for w in read_csv(FACTS)[1:]]


def recorded_thetas() -> list[tuple[str, float, str, float]]:
    """The file of thetas."""
    return [(w[0], float(w[1]), w[2], float(w[3])) for w in read_csv(THETA)[1:]]


@dataclass(frozen=True)
class Printed:
    """What the paper says of a set."""

    seconds: float
    n_rows: int
    df: int
    log_loss: Mapping[str, float]


def printed() -> dict[str, Printed]:
    """The paper's table by set."""
    return {words[0]: _printed(words) for words in read_csv(TABLE_1)[1:]}


def _printed(words: Sequence[str]) -> Printed:
    log_loss = dict(zip(RANKED, map(float, words[4:]), strict=True))
    return Printed(float(words[1]), int(words[2]), int(words[3]), log_loss)
