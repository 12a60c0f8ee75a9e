"""Greiner, Su, Shen & Zhou (2004): probabilities learned to classify (ELR) against those learned to describe.

Naive Bayes, TAN and a general network (GBN), each with probabilities from relative frequencies (OFE), by ELR, and on
rows with holes also by EM and APN; accuracy by cross-validation or on rows held out. A quarter of all values is removed
from the tables with holes; what is learned from them predicts the complete rows, and the same rows with holes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.evaluation.significance import PairedT, paired_t
from bncli.engine.learn import SuppliedParts, learn, learn_structure
from bncli.engine.networks.simulation import MissingCompletelyAtRandom
from bncli.engine.structures.named_structure import NamedDag, name_dag
from bncli.recipe import Recipe
from tests.published.pages import read_csv
from tests.published.presets import preset
from tests.published.targets import SEED, Split, rows_of, splits

FIGURES = Path(__file__).with_name("greiner.csv")
SHARES_FIGURES = Path(__file__).with_name("greiner_shares.csv")
PRINTED = Path(__file__).with_name("greiner_tables.csv")
SHARE = 0.25
SHARES = (0.05, 0.1, 0.5, 0.75)
"""Of the values of SHARES_TABLE; without any and with SHARE it is one of the tables."""
SHARES_TABLE = "letter"
MOST_PROBABILITIES = 20_000
"""Of a general network."""
BAD = ("satimage", "segment", "soybean-large", "vehicle", "waveform-21")
"""The tables on which the paper's general networks are poor."""

STRUCTURES = ("NB", "TAN", "GBN")
PARAMETERS = ("OFE", "ELR", "APN", "EM")
COMPLETE = tuple(f"{structure}+{p}" for structure in STRUCTURES for p in ("OFE", "ELR"))
INCOMPLETE = tuple(f"{structure}+{p}" for structure in STRUCTURES for p in PARAMETERS)
WAYS = {"complete": COMPLETE, "holes": INCOMPLETE, "everywhere": INCOMPLETE}
"""By what has holes: nothing, the rows that are learned from, or those that are predicted too."""


Figures = Mapping[tuple[str, str, str], float]
"""By table, kind of rows, and way."""


class Case(NamedTuple):
    """A table learned in a way, and what has holes: accuracy and log-loss of the rows that are predicted."""

    name: str
    rows: str
    way: str
    accuracy: float
    log_loss: float


def recipe_of(way: str) -> Recipe:
    """Return the recipe of STRUCTURE+PARAMETERS: that of the learner of the preset."""
    return preset("greiner", SEED)[way.replace("+", " ").lower()]


def cases(name: str) -> Iterator[Case]:
    """Every way on a table, complete and with holes; skips the test where the table is not at hand."""
    complete = rows_of(name)
    parts = list(splits(name, complete))
    networks = [general_network(complete.take(training)) for training, _ in parts]
    for way in COMPLETE:
        yield from _cases(name, way, complete, parts, networks, {"complete": complete})
    yield from cases_with_holes(name, SHARE)


def cases_with_holes(name: str, share: float, ways: Sequence[str] = INCOMPLETE) -> Iterator[Case]:
    """Learned from rows of which a share of the values is missing; general networks are those of the complete rows."""
    complete = rows_of(name)
    parts = list(splits(name, complete))
    punched = with_missing(complete, share)
    general = any(way.startswith("GBN") for way in ways)
    networks = [general_network(complete) if general else None] * len(parts)
    for way in ways:
        yield from _cases(name, way, punched, parts, networks, {"holes": complete, "everywhere": punched})


def with_missing(columns: Columns, share: float, seed: int = SEED) -> Columns:
    return MissingCompletelyAtRandom([share] * len(columns.attributes), np.random.default_rng(seed)).applied_to(columns)


def general_network(columns: Columns) -> NamedDag:
    """A network found by tests of independence in complete rows, of at most MOST_PROBABILITIES probabilities.

    The threshold of the tests begins at 0.01 bits, that of PowerConstructor, and doubles while the network is larger:
    with few rows and many values, independent attributes too seem to share more than that.
    """
    counts, epsilon = Counts(learn_dataset(columns)), 0.01
    schema = counts.data.schema
    while True:
        found = learn_structure(counts, recipe_of("GBN+OFE").replaced(epsilon=epsilon))
        families = found.families(schema.cardinalities, all_factors=True)
        if sum(f.n_cells * (len(schema.labels) if f.by_class else 1) for f in families) <= MOST_PROBABILITIES:
            return name_dag(found, schema)
        epsilon *= 2


def _cases(
    name: str,
    way: str,
    columns: Columns,
    parts: Sequence[Split],
    networks: Sequence[NamedDag | None],
    predicted: Mapping[str, Columns],
) -> Iterator[Case]:
    """A way, learned from the rows of `columns`; `predicted` are the same rows as they are met afterwards, by kind."""
    recipe, sums = recipe_of(way), {kind: np.zeros(3) for kind in predicted}
    for (training, test), network in zip(parts, networks, strict=True):
        given = network if way.startswith("GBN") else None
        model = learn(columns.take(training), recipe, supplied=SuppliedParts(structure=given)).model
        for kind, rows in predicted.items():
            found = predict_and_measure(model, rows.take(test)).metrics
            sums[kind] += len(test) * np.array([found.accuracy, found.log_loss, 1.0])
    for kind, (accuracy, log_loss, n_rows) in sums.items():
        yield Case(name, kind, way, float(accuracy / n_rows), float(log_loss / n_rows))


def recorded() -> list[Case]:
    """The file of figures."""
    lines = read_csv(FIGURES)[1:]
    return [Case(name, rows, way, float(accuracy), float(loss)) for name, rows, way, accuracy, loss in lines]


def recorded_shares() -> dict[float, list[Case]]:
    """The file of figures by share of missing values, of one table."""
    found: dict[float, list[Case]] = {}
    for share, rows, way, accuracy, loss in read_csv(SHARES_FIGURES)[1:]:
        found.setdefault(float(share), []).append(Case(SHARES_TABLE, rows, way, float(accuracy), float(loss)))
    return found


def printed() -> dict[tuple[str, str, str], float]:
    """The paper's Tables 2 and 3: accuracy by table, kind of rows, and way; empty cells are left out."""
    (_, *titles), *lines = read_csv(PRINTED)
    keys = [title.split(" ") for title in titles]
    return {
        (name, rows, way): float(cell) / 100
        for name, *cells in lines
        for (rows, way), cell in zip(keys, cells, strict=True)
        if cell
    }


def measured(found: Sequence[Case]) -> dict[tuple[str, str, str], float]:
    """Accuracy by table, kind of rows, and way."""
    return {case[:3]: case.accuracy for case in found}


def compare(figures: Figures, rows: str, first: str, second: str) -> PairedT:
    """Whether `first` has the higher figures over the tables that have both; x+ is every structure in turn."""
    return paired_t(*pairs(figures, rows, first, second))


def pairs(figures: Figures, rows: str, first: str, second: str) -> tuple[list[float], list[float]]:
    """The figures of both, table by table."""
    ways = [(first, second)]
    if first.startswith("x+"):
        ways = [(first.replace("x", s, 1), second.replace("x", s, 1)) for s in STRUCTURES]
    names = sorted({name for name, _, _ in figures})
    keys = [((name, rows, a), (name, rows, b)) for a, b in ways for name in names]
    both = [(figures[one], figures[other]) for one, other in keys if one in figures and other in figures]
    return [a for a, _ in both], [b for _, b in both]
