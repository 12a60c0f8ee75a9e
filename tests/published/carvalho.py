"""The experiment of Carvalho, Adao & Mateus (2013, Entropy 15) on other data: which score finds the better tree?

Trees (TAN) that are optimal under a score, with the tables that belong to it: aCLL under its two assumptions, each
with the tables of highest aCLL, and the likelihood with smoothed relative frequencies. What counts is the conditional
log-likelihood of the rows learned from, as in the paper, and that of rows held out. The other combinations of trees
and tables tell which of the two makes the difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli import __version__
from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.splits import stratified_folds, stratified_sample
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.learn import learn_parameters, learn_structure
from bncli.engine.model import Model, Tables
from bncli.engine.structures.scores import dirichlet_approximation
from bncli.recipe import Recipe
from tests.performance.workloads import real_columns
from tests.published.presets import preset

FOLDS = 5
SEED = 0
MOST_ROWS = 20_000
"""Of larger sets a stratified sample."""

BINARY = (
    "adult",
    "breast_cancer_wisconsin",
    "chess_krkp",
    "crx",
    "flare_2class",
    "german",
    "haberman",
    "heart_cleveland_2class",
    "hepatitis",
    "horse_colic",
    "house_votes_84",
    "labor",
    "monks1",
    "monks2",
    "monks3",
    "mushroom",
    "pima",
    "spambase",
    "tic_tac_toe",
    "titanic",
    "wdbc",
)
TERNARY = (
    "balance_scale",
    "cmc",
    "connect_4",
    "hayes_roth",
    "iris",
    "lenses",
    "new_thyroid",
    "splice",
    "waveform_5000",
    "wine",
)
"""All sets at hand with two and with three classes, each source of rows once."""


WAYS = {
    "acll": ("acll", "acll"),
    "uniform": ("uniform", "uniform"),
    "ll": ("ll", "ll"),
    "uniform/acll": ("uniform", "acll"),
    "ll/acll": ("ll", "acll"),
    "acll/fgg": ("acll", "ll"),
    "uniform/fgg": ("uniform", "ll"),
}
"""The learners of the preset that tree and tables are of: the paper's three, then other tables on their trees."""

B = 1000.0
"""The paper's b of the Dirichlet assumption."""
FIGURES = ("training", "held out", "approximation")
"""The conditional log-likelihood of the rows learned from and of rows held out; of the former also aCLL (Dirichlet)."""

ARTIFICIAL = "dna"
DRAWS = 20
LETTERS = ("A", "C", "G", "T")
POSITIONS = 12


@dataclass(frozen=True)
class Case:
    """A data set: log-likelihoods in nats a row by figure and way."""

    name: str
    n_labels: int
    n_rows: int
    nats: Mapping[tuple[str, str], float]

    @property
    def artificial(self) -> bool:
        return self.name.startswith(ARTIFICIAL)


def real_case(name: str) -> Case:
    """A set of the folder of real data; skips the test where it is not at hand."""
    columns = real_columns(name)
    return case(name, columns.take(stratified_sample(_label_codes(columns), MOST_ROWS, SEED)))


def artificial_case(n_labels: int, draw: int) -> Case:
    return case(
        f"{ARTIFICIAL}-{n_labels}-{draw:02}", sequences(n_labels, np.random.default_rng([SEED, n_labels, draw]))
    )


def sequences(n_labels: int, rng: np.random.Generator) -> Columns:
    """1,000 rows, the classes equally frequent: background first, then sites of one binding motif each.

    Letters of a site follow a distribution of their position; every other one follows the letter before it half of
    the time, so that a tree has something to find.
    """
    labels = np.arange(1000) * n_labels // 1000
    columns: list[NDArray[np.int8]] = []
    for position in range(POSITIONS):
        thetas = [rng.dirichlet(np.full(4, 20.0 if label == 0 else 1.0)) for label in range(n_labels)]
        drawn = np.stack([rng.choice(4, len(labels), p=theta) for theta in thetas]).astype(np.int8)
        letters = drawn[labels, np.arange(len(labels))]
        if position % 2:
            follows = (labels > 0) & (rng.random(len(labels)) < 0.5)
            letters = np.where(follows, (columns[-1] + 1) % 4, letters).astype(np.int8)
        columns.append(letters)
    attributes = {f"p{i}": CategoricalColumn(codes, LETTERS) for i, codes in enumerate(columns)}
    names = tuple(map(str, range(n_labels)))
    return Columns(len(labels), attributes, "class", CategoricalColumn(labels.astype(np.int8), names))


def case(name: str, columns: Columns) -> Case:
    """Every way on all rows, and by cross-validation."""
    labels = _label_codes(columns)
    totals = _totals(columns)
    fold_of = stratified_folds(labels, FOLDS, SEED)
    for fold in range(FOLDS):
        rows, others = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        for key, total in _totals(columns.take(others), columns.take(rows)).items():
            if key[0] == "held out":
                totals[key] = totals.get(key, 0.0) + total
    nats = {key: total / columns.n_rows for key, total in totals.items()}
    return Case(name, len(np.unique(labels)), columns.n_rows, nats)


def _label_codes(columns: Columns) -> NDArray[np.signedinteger]:
    assert columns.label is not None
    return columns.label.codes


def _totals(training: Columns, test: Columns | None = None) -> dict[tuple[str, str], float]:
    """Sums over rows of the figures that these rows give, by figure and way; counted once for all ways."""
    counts = Counts(learn_dataset(training))
    schema = counts.data.schema
    recipes = {name.removeprefix("tan "): recipe for name, recipe in preset("carvalho").items()}
    trees = {name: learn_structure(counts, recipe) for name, recipe in recipes.items()}
    totals = {}
    for name, (of_tree, of_tables) in WAYS.items():
        tree = trees[of_tree]
        parameters = learn_parameters(counts, tree, recipes[of_tables])
        totals["training", name] = parameters.cll
        totals["approximation", name] = _approximation(counts, parameters.tables)
        if test is not None:
            model = Model(schema, tree, parameters.tables, Recipe(), training.n_rows, __version__)
            totals["held out", name] = predict_and_measure(model, test).metrics.cll
    return totals


def _approximation(counts: Counts, tables: Tables) -> float:
    """aCLL under the Dirichlet assumption: sum over rows of ln U_y - beta (sum over c of ln U_c) - gamma."""
    n_rows = counts.data.n_rows
    line = dirichlet_approximation(counts.data.n_labels, B)
    found = counts.tables([family.attributes for family in tables.families])
    terms = [(counts.class_counts(), tables.bias)]
    terms += [(n.reshape(weights.shape), weights) for n, weights in zip(found, tables.weights, strict=True)]
    total = sum(float(((n - line.beta * n.sum(axis=-1, keepdims=True)) * weights).sum()) for n, weights in terms)
    return total - n_rows * float(line.gamma)
