"""Learners of bncli on the folds of `references`, so that they can be ranked beside what people use instead.

Each learner is what one would type after `bncli fit`. One thread; seconds are those of the processor, the losses those
of `bncli evaluate --folds 5 --seed 0`. A learner that takes more than CAP seconds for one fold is stopped and does not
try the other folds of that table. The first folds of all tables come before the other folds of large ones.

Run `BNCLI_DATA=FOLDER python -m tests.published.classifiers classifiers.csv [learners]` with OMP_NUM_THREADS and
OPENBLAS_NUM_THREADS 1: what is in the file already is kept.
"""

from __future__ import annotations

import csv
import math
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from bncli.cli.learning_options import parse_learner as learner
from bncli.engine.data.columns import Columns
from bncli.engine.evaluation.cross_validation import CrossValidation, Protocol, draw_splits, hold_out
from bncli.recipe import Recipe
from bncli.watch import Event, Run, Stage
from tests.performance.workloads import real_columns
from tests.published.references import FOLDS, ONE_FOLD, Figure, recorded, sets

FIGURES = Path(__file__).with_name("classifiers.csv")
LEARNERS = {
    "nb map": "--structure nb --param map",
    "tan map hdp": "--structure tan --param map --smoothing hdp",
    "kdb2 map hdp": "--structure kdb --k 2 --param map --smoothing hdp",
    "nb weighted": "--structure nb --param weighted",
    "tan weighted": "--structure tan --param weighted --arcs all",
    "nb thermometer": "--structure nb --discretize equal-frequency --bins 20 "
    "--param discriminative --coding thermometer",
    "interactions": "--structure interactions",
    "kikuchi kbma": "--structure kikuchi --param kbma",
    "auto": "--structure auto",
}
CAP = {"auto": 1800}
USUAL_CAP = 200
"""Seconds of the processor after which a learner gives a fold up."""
LARGE = 5_000
"""A table of more rows is large."""


def measure(name: str, word: str, columns: Columns, fold: int) -> Figure:
    """One learner on one fold; losses and seconds are nan where it was given up."""
    split = draw_splits(columns, Protocol(FOLDS), 0)[fold]
    cap = CAP.get(word, USUAL_CAP)
    instants: dict[str, float] = {}

    def watch(event: Event) -> None:
        if isinstance(event, Stage):
            instants[event.name] = time.process_time()

    start = time.process_time()
    try:
        with _at_most(cap):
            found = hold_out(columns, CrossValidation(recipe(word)), split, Run(clock=time.monotonic, watch=watch))
    except _TooLong:
        return Figure(name, fold, word, len(split.rows), *[math.nan] * 5)
    seconds = instants["score"] - start, time.process_time() - instants["score"]
    metrics = found.measured.metrics
    return Figure(name, fold, word, len(split.rows), metrics.log_loss, metrics.error, metrics.rmse, *seconds)


def recipe(word: str) -> Recipe:
    """What the words of the command line mean."""
    return learner(f"{word}={LEARNERS[word]}", 0).recipe


class _TooLong(BaseException):
    """No Exception, so that no method takes it for one of its own."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """The block is left by _TooLong after so many seconds of the processor."""

    def stop(*_: Any) -> None:
        raise _TooLong

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def tasks() -> Iterator[tuple[str, int, Columns]]:
    """Tables and folds: all folds of small tables, then the first one of large ones, then the others."""
    later = []
    for name in sets():
        columns = _columns(name)
        for fold in range(1 if columns.n_rows > LARGE else FOLDS):
            yield name, fold, columns
        if LARGE < columns.n_rows <= ONE_FOLD:
            later.append(name)
    for name in later:
        for fold in range(1, FOLDS):
            yield name, fold, _columns(name)


@lru_cache(1)
def _columns(name: str) -> Columns:
    return real_columns(name)


def main(path: Path, words: list[str]) -> None:
    """Measures what the file lacks, a line at a time."""
    for word in words or LEARNERS:  # imports are not to be measured
        measure("iris", word, _columns("iris"), 0)
    known = recorded(path)
    done = {figure[:3] for figure in known}
    given_up = {(figure.set, figure.learner) for figure in known if math.isnan(figure.log_loss)}
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(Figure._fields)
        for name, fold, columns in tasks():
            for word in words or LEARNERS:
                if (name, fold, word) in done or (name, word) in given_up:
                    continue
                figure = measure(name, word, columns, fold)
                if math.isnan(figure.log_loss):
                    given_up.add((name, word))
                writer.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in figure])
                file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
