"""Cards beside FasterRisk at an equal number of rows, and beside naive Bayes at a third of its rows.

Run `BNCLI_DATA=FOLDER BNCLI_PEERS=PYTHON python -m tests.published.cards`: it measures what `cards.csv` lacks and
writes the page. PYTHON is the interpreter of an environment that has fasterrisk; without it only our own lines are
measured. To measure cards anew, delete their lines.

- Tables: 20 of two classes; of more than MOST rows a stratified sample. Five folds, those of `bncli evaluate`.
- FasterRisk (0.1.10, its defaults: 5 points at most, the first model of its pool) gets an indicator of `x <= cut` for
  each of the cuts that the card starts from (20 equally frequent intervals of the training rows), and one of every
  level of a category and of missing. A score of k terms over m columns is a card of k + m rows: each column has as
  many rows as terms, and one more for all other values.
- `card k` may have the rows of FasterRisk's score of k terms on the same fold, and k columns. `card third` may have a
  third of the rows of naive Bayes, `card short` the rows of PROTOTYPE.
- The halves are those of `tests.published.anchors`: constants of cards are chosen on the choosing half.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import encode_attributes, encode_labels
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.data.splits import stratified_sample
from bncli.engine.evaluation.cross_validation import Protocol, draw_splits, predict_and_measure
from bncli.engine.evaluation.metrics import measure
from bncli.engine.learn import learn
from bncli.recipe import Recipe
from bncli.steps.fit import card_json
from tests.performance.workloads import real_columns
from tests.published.anchors import half
from tests.published.pages import read_csv, table, write_csv

FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")
SETS = (
    *("haberman", "titanic", "heart_statlog", "hepatitis", "house_votes_84", "flare_2class", "saheart"),
    *("heart_cleveland_2class", "pima", "tic_tac_toe", "breast_cancer_wisconsin", "crx", "horse_colic", "german"),
    *("banana", "wdbc", "phoneme", "chess_krkp", "twonorm", "spambase"),
)
TERMS = (5, 10, 15)
MOST = 5_000
FOLDS = 5
BINS = 20
LIMIT = 300
"""Seconds of the processor for one score of FasterRisk."""
LINES = ("nb", *(f"FasterRisk {k}" for k in TERMS), *(f"card {k}" for k in TERMS), "card third", "card short")


class Prototype(NamedTuple):
    """Figures of a plain prototype on one table."""

    auc: float
    log_loss: float
    rows: int


PROTOTYPE = {
    "german": Prototype(0.765, 0.534, 27),
    "pima": Prototype(0.825, 0.496, 26),
    "heart_statlog": Prototype(0.880, 0.479, 23),
    "crx": Prototype(0.922, 0.358, 25),
}
"""AUC, log-loss and rows of a plain prototype: levels joined by a small tree, forward selection, rounded weights."""

PEER = """
import json, resource, sys, time, warnings
import numpy as np
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[3]), int(sys.argv[3]) + 60))
warnings.simplefilter("ignore")
from fasterrisk.fasterrisk import RiskScoreOptimizer
data = np.load(sys.argv[1])
x, y, z = data["x"].astype(float), data["y"], data["z"].astype(float)
start = time.process_time()
optimizer = RiskScoreOptimizer(X=x, y=y, k=int(sys.argv[2]))
optimizer.optimize()
multiplier, bias, weights = optimizer.get_models(model_index=0)
seconds = time.process_time() - start
p = 1 / (1 + np.exp(-(bias + z @ weights) / multiplier))
print(json.dumps([np.flatnonzero(weights).tolist(), p.tolist(), seconds]))
"""


class Figure(NamedTuple):
    """One line on one fold of a table: log-loss, AUC, rows of the card, seconds of the processor to learn."""

    set: str
    size: int
    fold: int
    line: str
    log_loss: float
    auc: float
    rows: int
    seconds: float


def main(typed: Sequence[str]) -> None:
    """Measure what is missing of the tables and lines that are typed, or of all, and write the page."""
    figures = recorded() if FIGURES.exists() else []
    lines = [word for word in typed if word not in SETS] or LINES
    names = [word for word in typed if word in SETS] or SETS
    for fold, name in itertools.product(range(FOLDS), names):
        for figure in measured(name, fold, lines, [f for f in figures if (f.set, f.fold) == (name, fold)]):
            figures.append(figure)
            write_csv(FIGURES, [Figure._fields, *([*f[:4], *(f"{x:.6g}" for x in f[4:])] for f in sorted(figures))])
    PAGE.write_text(page(recorded()))


def recorded() -> list[Figure]:
    """Return the figures of the file."""
    return [
        Figure(name, int(size), int(fold), line, float(log_loss), float(auc), int(rows), float(seconds))
        for name, size, fold, line, log_loss, auc, rows, seconds in read_csv(FIGURES)[1:]
    ]


@lru_cache(len(SETS))
def _columns(name: str) -> Columns:
    columns = real_columns(name)
    assert columns.label is not None
    return columns.take(stratified_sample(columns.label.codes, MOST, 0)) if columns.n_rows > MOST else columns


def measured(name: str, fold: int, lines: Sequence[str], known: Sequence[Figure]) -> Iterator[Figure]:
    """Yield the figures of one fold of a table that are not known."""
    columns = _columns(name)
    split = draw_splits(columns, Protocol(FOLDS), 0)[fold]
    train, test = columns.take(split.others), columns.take(split.rows)
    found = {f.line: f for f in known}
    for line in lines:
        word, _, suffix = line.partition(" ")
        if line in found or (word == "FasterRisk" and "BNCLI_PEERS" not in os.environ):
            continue
        if word == "FasterRisk":
            numbers = peer(train, test, int(suffix))
        elif word == "nb":
            numbers = ours(train, test, structure="nb")
        else:
            n_columns, most = 8, 0
            if suffix.isdigit() and f"FasterRisk {suffix}" in found:
                n_columns, most = int(suffix), found[f"FasterRisk {suffix}"].rows
            elif suffix == "third" and "nb" in found:
                most = max(found["nb"].rows // 3, 4)
            elif suffix == "short" and name in PROTOTYPE:
                most = PROTOTYPE[name].rows
            if not most:
                continue
            # a column takes at least two rows
            numbers = ours(train, test, structure="card", columns=min(n_columns, most // 2), rows=most)
        found[line] = Figure(name, columns.n_rows, fold, line, *numbers)
        yield found[line]


def ours(train: Columns, test: Columns, **typed: str | int) -> tuple[float, float, int, float]:
    """Return log-loss, AUC, rows and seconds of a learner of bncli."""
    start = time.process_time()
    fitted = learn(train, Recipe.of(**typed))
    seconds = time.process_time() - start
    card = card_json(fitted)
    n_rows = sum(f.n_cells for f in fitted.model.predictor.families) if card is None else card["rows"]
    metrics = predict_and_measure(fitted.model, test).metrics
    assert metrics.auc is not None
    return metrics.log_loss, metrics.auc, n_rows, seconds


def peer(train: Columns, test: Columns, k: int) -> tuple[float, float, int, float]:
    """Return the same of FasterRisk with k terms; nan, and 0 rows, where it takes longer than LIMIT seconds."""
    data = learn_dataset(train, discretize="equal-frequency", bins=BINS)
    schema, x, z, owner = data.schema, [], [], list[int]()
    used = [i for i, attribute in enumerate(schema.attributes) if attribute.informative]
    for i, codes in zip(used, encode_attributes(test, schema, used).codes, strict=True):
        attribute = schema.attributes[i]
        n_steps = attribute.n_values - 1 if isinstance(attribute, NumericAttribute) else 0
        for code in range(n_steps):
            x.append(data.codes[i] <= code)
            z.append(codes <= code)
        for code in range(attribute.n_values if n_steps else 0, attribute.cardinality):
            x.append(data.codes[i] == code)
            z.append(codes == code)
        owner += [i] * (len(x) - len(owner))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.npz"
        np.savez(path, x=np.stack(x, axis=1), y=np.where(data.labels == 1, 1, -1), z=np.stack(z, axis=1))
        command = [os.environ["BNCLI_PEERS"], "-c", PEER, path, str(k), str(LIMIT)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == -signal.SIGXCPU:
        return math.nan, math.nan, 0, LIMIT
    if done.returncode:
        raise RuntimeError(done.stderr)
    terms, p, seconds = json.loads(done.stdout.splitlines()[-1])
    log_p = np.log(np.clip([1 - np.array(p), p], 1e-15, 1))
    assert test.label is not None
    metrics = measure(log_p, encode_labels(test, schema))
    assert metrics.auc is not None
    return metrics.log_loss, metrics.auc, len(terms) + len({owner[j] for j in terms}), seconds


def means(figures: Sequence[Figure]) -> dict[str, dict[str, Figure]]:
    """Return the means of every line by table and line; of a score and its card over the folds that have both."""
    folds: dict[tuple[str, str], dict[int, Figure]] = {}
    for figure in figures:
        if not math.isnan(figure.log_loss):
            folds.setdefault((figure.set, figure.line), {})[figure.fold] = figure
    found: dict[str, dict[str, Figure]] = {}
    for (name, line), own in folds.items():
        k = line.rpartition(" ")[2]
        others = [f"FasterRisk {k}", f"card {k}"] if k.isdigit() else [line, "nb"]
        common = [f for f in own if all(f in folds.get((name, other), {}) for other in others)]
        if common:
            log_loss, auc, rows, seconds = np.mean([own[f][4:] for f in common], axis=0).tolist()
            size = next(iter(own.values())).size
            found.setdefault(name, {})[line] = Figure(name, size, len(common), line, log_loss, auc, rows, seconds)
    return {name: found[name] for name in SETS if name in found}


def wins(found: dict[str, dict[str, Figure]], k: int, part: str) -> tuple[int, int]:
    """Return on how many tables of a half the card has less log-loss than FasterRisk with k terms, and of how many."""
    pairs = [
        (own[f"card {k}"], own[f"FasterRisk {k}"])
        for name, own in found.items()
        if half(name) == part and f"card {k}" in own
    ]
    return sum(ours.log_loss < theirs.log_loss for ours, theirs in pairs), len(pairs)


def third(found: dict[str, dict[str, Figure]], part: str) -> tuple[int, int]:
    """Return on how many tables of a half the card with a third of the rows has at most 1.03 times the loss of nb."""
    pairs = [
        (own["card third"], own["nb"]) for name, own in found.items() if half(name) == part and "card third" in own
    ]
    return sum(card.log_loss <= 1.03 * nb.log_loss for card, nb in pairs), len(pairs)


def page(figures: Sequence[Figure]) -> str:
    """Return the page: wins by half, then table by table."""
    found, parts = means(figures), ("choosing", "judging")
    counts = [[f"FasterRisk, {k} terms", *("{} of {}".format(*wins(found, k, part)) for part in parts)] for k in TERMS]
    counts.append(["naive Bayes, three times the rows", *("{} of {}".format(*third(found, part)) for part in parts)])
    lines = []
    for name, own in found.items():
        cells = []
        for k in TERMS:
            pair = [own.get(f"{word} {k}") for word in ("FasterRisk", "card")]
            cells += [f"{f.log_loss:.3f} ({f.rows:.0f})" if f is not None else "-" for f in pair]
        folds = ", ".join(str(own[f"card {k}"].fold) for k in TERMS if f"card {k}" in own)
        lines.append([name, f"{next(iter(own.values())).size:,}", half(name), folds, *cells])
    header = ["table", "rows", "half", "folds", *(f"{word} {k}" for k in TERMS for word in ("FasterRisk", "card"))]
    beside = [
        [
            name,
            *(f"{own[w].log_loss:.3f} {own[w].auc:.3f} ({own[w].rows:.0f})" for w in ("nb", "card third")),
            f"{own['card third'].log_loss / own['nb'].log_loss:.2f}",
        ]
        for name, own in found.items()
        if "card third" in own
    ]
    short = [
        [name, f"{PROTOTYPE[name].log_loss:.3f} {PROTOTYPE[name].auc:.3f} ({PROTOTYPE[name].rows})"]
        + [f"{own[w].log_loss:.3f} {own[w].auc:.3f} ({own[w].rows:.0f})" for w in ("card short",)]
        for name, own in found.items()
        if "card short" in own
    ]
    return "\n".join(
        [
            "# Score cards beside FasterRisk and naive Bayes",
            "",
            _INTRODUCTION,
            table(["tables on which the card has less log-loss than", *(f"{part} half" for part in parts)], counts),
            "",
            "## FasterRisk: log-loss (rows of the card)",
            "",
            table(header, lines),
            "",
            "## Naive Bayes: log-loss, AUC (rows)",
            "",
            table(["table", "nb", "card of a third of the rows", "ratio"], beside),
            "",
            "## A plain prototype: log-loss, AUC (rows)",
            "",
            table(["table", "prototype", "card of no more rows"], short),
            "",
        ]
    )


_INTRODUCTION = f"""\
Tables of two classes, at most {MOST:,} rows of each. `card` is `--structure card` with as many rows as the score of
FasterRisk has as a card, and as many columns as it has terms. FasterRisk 0.1.10 has its defaults and the cut points
from which cards start. A score that takes more than {LIMIT} seconds is left out (the column "folds" counts the folds
of 5, 10 and 15 terms). Naive Bayes has its default parameters (weighted, with a penalty); the last line of the first
table counts where a card with a third of its rows has at most 1.03 times its log-loss. Constants of cards are chosen on
the choosing half.
"""


if __name__ == "__main__":
    main(sys.argv[1:])
