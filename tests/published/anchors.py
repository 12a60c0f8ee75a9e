"""Anchors: boosting, stopped early, and EBM beside learners of bncli, on one fold of every table at hand.

The rule, written before anything was measured (but that CatBoost waits):

- Tables: all of the folder BNCLI_DATA and of its folder `more`, but for COPIES of others. The first fold of `bncli
  evaluate --folds 5 --seed 0`, all of whose rows are predicted. Of more than MOST training rows those are learned from
  that `--train-rows 50000` would draw.
- Order: tables of 1,000 rows and more first, then the smaller ones, each in rising order of rows x attributes x
  classes; of the anchors EBM last, since it takes the longest, and before it CatBoost, which proved slow too. What is
  measured so far may have been asked for in another order, table by table; that changes no figure.
- Limits: LIMIT seconds of the processor for one fit and its predictions, after which the process is ended and the line
  says `stopped`; BUDGET seconds for all tables of one learner (what was stopped counts as LIMIT), after which it tries
  no further table.
- Everything runs in one process of one thread, after a fit of a small table, so that no import is measured.
- The halves: `half` splits the tables by a hash of their names. Constants and rules of bncli are settled by looking at
  the choosing half alone; the judging half is measured when they stand. The split is younger than the tables: earlier
  studies of this folder looked at all of them.

Run `BNCLI_DATA=FOLDER python -m tests.published.anchors anchors.csv [learners and tables]` with OMP_NUM_THREADS and
OPENBLAS_NUM_THREADS 1; without learners named it is the anchors'. What is in the file already is kept, so a run that
was ended goes on where it was. To measure `auto` anew, delete its lines. "auto 0.1" in the file is `auto` as it was
before this page (commit 9ba7369), and cannot be measured again.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, lru_cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from bncli.cli.learning_options import parse_learner as learner
from bncli.engine.data.columns import Columns
from bncli.engine.evaluation.cross_validation import (
    Protocol,
    Split,
    draw_splits,
    predict_and_measure,
    sample_others,
)
from bncli.engine.learn import learn
from bncli.files.artifacts.model import dump_model
from bncli.recipe import Recipe
from tests.performance.workloads import real_columns
from tests.published.anchor_learners import ANCHORS
from tests.published.references import COPIES, FOLDS, losses

FIGURES = Path(__file__).with_name("anchors.csv")
OURS = {
    "auto": "--structure auto",
    "auto effort 1": "--structure auto --effort 1",
    "interactions": "--structure interactions",
    "tan weighted": "--structure tan --param weighted",
}
"""Learners of bncli: what one types after `bncli fit`; the last is the default line."""
MOST = 50_000
"""Rows to learn from."""
SMALL = 1_000
"""A table of fewer rows is small."""
LIMIT = 600
"""Seconds of the processor for one fold of one table."""
BUDGET = 3_600
"""Seconds of the processor for all tables of one learner."""
LAST = {"CatBoost, early": 1, "EBM": 2}
"""Learners whose turn comes after that of the others."""
WARM_UP = "lenses"


class Figure(NamedTuple):
    """One learner on one table: losses on the rows held out, seconds of the processor to learn and to predict.

    `size` are the rows of the table, `rows` those held out. Of learners of bncli also the free parameters and the
    bytes of the model file. `outcome`: nothing, "stopped", or the error; then the numbers are nan.
    """

    set: str
    size: int
    fold: int
    learner: str
    rows: int
    log_loss: float = math.nan
    error: float = math.nan
    rmse: float = math.nan
    fit: float = math.nan
    score: float = math.nan
    parameters: int | None = None
    bytes: int | None = None
    outcome: str = ""


def half(name: str) -> str:
    """`choosing` or `judging`: on which side of the split a table lies."""
    return "judging" if int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 else "choosing"


def sets() -> list[str]:
    """Every table at hand, copies left out."""
    folder = Path(os.environ["BNCLI_DATA"])
    paths = [path for part in (folder, folder / "more") for path in part.glob("*.csv*")]
    return sorted({path.name.split(".")[0] for path in paths} - set(COPIES))


def measure(name: str, word: str) -> Figure:
    """One learner on the first fold of one table."""
    columns = _columns(name)
    split = first_fold(columns)
    train, test = columns.take(split.others), columns.take(split.rows)
    found = Figure(name, columns.n_rows, 0, word, test.n_rows)
    return _anchor(found, train, test) if word in ANCHORS else _ours(found, train, test)


def first_fold(columns: Columns) -> Split:
    """The rows held out, and at most MOST of the others."""
    whole = draw_splits(columns, Protocol(FOLDS), 0)[0]
    return next(sample_others(columns, whole, [MOST], 0), whole)


def _anchor(found: Figure, train: Columns, test: Columns) -> Figure:
    assert test.label is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        predict = ANCHORS[found.learner](train, test, len(test.label.levels))
        learnt = time.process_time()
        p = predict()
        scored = time.process_time()
    log_loss, error, rmse = losses(p, test.label.codes)
    return found._replace(log_loss=log_loss, error=error, rmse=rmse, fit=learnt - start, score=scored - learnt)


def _ours(found: Figure, train: Columns, test: Columns) -> Figure:
    start = time.process_time()
    learnt = learn(train, recipe(found.learner))
    done = time.process_time()
    metrics = predict_and_measure(learnt.model, test).metrics
    return found._replace(
        log_loss=metrics.log_loss,
        error=metrics.error,
        rmse=metrics.rmse,
        fit=done - start,
        score=time.process_time() - done,
        parameters=learnt.parameters.n_parameters,
        bytes=len(dump_model(learnt.model)),
    )


def recipe(word: str) -> Recipe:
    """What the words of the command line mean; UsageError for an option that this program does not have."""
    return learner(f"{word}={OURS[word]}", 0).recipe


@lru_cache(1)
def _columns(name: str) -> Columns:
    return real_columns(name)


def within_limit(name: str, word: str, limit: int) -> Figure:
    """`measure`, in a process that ends when it has taken `limit` seconds more."""
    _warm_up(word)
    columns = _columns(name)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + limit, most))
    try:
        return measure(name, word)
    except Exception as error:  # whatever another package makes of a table is its figure
        nothing = Figure(name, columns.n_rows, 0, word, len(first_fold(columns).rows))
        return nothing._replace(outcome=f"{type(error).__name__}: {error}".splitlines()[0])


@cache
def _warm_up(word: str) -> None:
    measure(WARM_UP, word)


def tasks(names: Sequence[str], words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Tables and learners in the order of the rule."""

    def place(task: tuple[str, str]) -> tuple[int, bool, int, str]:
        columns = sizes[task[0]]
        return LAST.get(task[1], 0), columns[0] < SMALL, math.prod(columns), task[0]

    sizes = {name: _size(_columns(name)) for name in names}
    yield from sorted(product(names, words), key=place)


def _size(columns: Columns) -> tuple[int, int, int]:
    assert columns.label is not None
    return columns.n_rows, len(columns.attributes), len(columns.label.levels)


def main(path: Path, names: Sequence[str], words: Sequence[str]) -> None:
    """Measures what the file lacks, a line at a time."""
    for word in words:
        if word in OURS:
            recipe(word)  # before hours are spent
    known = recorded(path)
    done = {(figure.set, figure.learner) for figure in known}
    spent = Counter[str]()
    for figure in known:
        spent[figure.learner] += _cost(figure)
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not known:
            writer.writerow(Figure._fields)
        for name, word in tasks(names, words):
            if (name, word) not in done and spent[word] < BUDGET:
                figure = in_process(name, word)
                spent[word] += _cost(figure)
                writer.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in figure])
                file.flush()


def _cost(figure: Figure) -> int:
    """Seconds, whole ones."""
    return LIMIT if figure.outcome == "stopped" else 0 if figure.outcome else math.ceil(figure.fit + figure.score)


def in_process(name: str, word: str, limit: int = LIMIT) -> Figure:
    """What the worker says; where the worker came to an end, that it was stopped."""
    try:
        return _worker().submit(within_limit, name, word, limit).result()
    except BrokenProcessPool:
        _worker.cache_clear()
        columns = _columns(name)
        return Figure(name, columns.n_rows, 0, word, len(first_fold(columns).rows), outcome="stopped")


@lru_cache(1)
def _worker() -> ProcessPoolExecutor:
    """One process, begun anew when the last one was ended."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def recorded(path: Path = FIGURES) -> list[Figure]:
    """The figures of a file, none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        lines = list(csv.reader(file))[1:]
    return [_figure(line) for line in lines]


def _figure(cells: Sequence[str]) -> Figure:
    name, size, fold, word, rows, *numbers, parameters, n_bytes, outcome = cells
    counts = (int(cell) if cell else None for cell in (parameters, n_bytes))
    return Figure(name, int(size), int(fold), word, int(rows), *map(float, numbers), *counts, outcome)  # type: ignore[arg-type, call-arg]


if __name__ == "__main__":
    typed = sys.argv[2:]
    known_words = [word for word in typed if word in ANCHORS or word in OURS]
    main(Path(sys.argv[1]), [x for x in typed if x not in known_words] or sets(), known_words or [*ANCHORS])
