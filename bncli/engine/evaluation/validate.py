"""Cross-validation: learn on all folds but one, predict that one, for every fold in turn.

Everything is learnt inside the fold, cuts and levels included; only the labels of the class come from all rows. Each
repeat draws new random folds, from the seed and the number of the repeat. For learning curves the same rows are also
predicted by what is learnt from samples of the others, nested: the larger hold the smaller. A sample follows from the
seed, the repeat, the fold and its own size, whatever other sizes are asked for.

Conventions: predictions for the rows are those of the first repeat, so that each row is predicted once, by the one
model that has not seen it. Notes and iterations of a fold's learning are not passed on, but for the warnings of the
first and for what it did with the columns; the watch hears the stages `fit` and `score` of each fold, how many folds
are done, and what is tried inside; samples count by their rows. A sample is no larger than the rows there are: where
a size is that of all of them (or of one more, in the smaller folds) nothing is learnt again. Cost: folds times repeats
fits, and as many of every size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import pooling_notes
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.encoding import encode_attributes, encode_labels
from bncli.engine.data.schema import ReadingRules
from bncli.engine.data.splits import nested_order, stratified_folds
from bncli.engine.evaluation.decision_figures import DecisionFigures, measure_decisions
from bncli.engine.evaluation.metrics import Baseline, Metrics, class_frequencies, measure, measure_baseline
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.learn import SuppliedParts, learn
from bncli.engine.model import Model, StoppedBy
from bncli.engine.parameters.generative import only_network
from bncli.engine.parameters.network_scores import ScoredNetwork, Strengths, score_network
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.errors import BncliError, ModelError
from bncli.recipe import Recipe
from bncli.watch import Event, Note, Progress, Run, Stage, Watch, silent

TRYING = 0.9
"""The share of trying candidates in the learning of an ensemble."""


@dataclass(frozen=True)
class Protocol:
    """Stratified folds, repeated with new random folds, and the seed of them all.

    `scores`: the networks learnt are scored on the rows that they were learnt from.
    """

    folds: int = 5
    repeats: int = 1
    seed: int = 0
    scores: bool = False

    def __str__(self) -> str:
        times = f"{self.repeats} x " if self.repeats > 1 else ""
        return f"{times}{self.folds}-fold cross-validation, stratified, seed {self.seed}"


@dataclass(frozen=True)
class ScoredRows:
    """What a model says of labelled rows: ln P(c | x_t), shape (K, N), in row order, and how good it is.

    decided: how good its decisions are, None where it does not say how to decide.
    """

    log_probabilities: Array
    metrics: Metrics
    decided: DecisionFigures | None = None


@dataclass(frozen=True)
class Fold:
    """One fold of one repeat: the rows held out, how they were predicted, and the penalty of the fit (None: closed).

    iterations and passes over the rows are those of the final optimization, None for parameters in closed form. base:
    how the class frequencies of the rows learnt from would have predicted them. pooled: what its learning did with
    levels that were too many, a sentence each. size: that of the sample learnt from, None for all other rows. scored:
    the network learnt, on the rows learnt from, if asked.
    """

    repeat: int
    number: int
    rows: Index
    examined: ScoredRows
    penalty: float | None
    base: Baseline
    pooled: tuple[str, ...] = ()
    size: int | None = None
    iterations: int | None = None
    passes: int | None = None
    scored: ScoredNetwork | None = None


@dataclass(frozen=True)
class Split:
    """The rows of one fold of one repeat, and all the others, or a sample of `size` of them; both ascending."""

    repeat: int
    number: int
    rows: Index
    others: Index
    size: int | None = None


@dataclass(frozen=True)
class FoldTask:
    """What is learnt in every fold, with what is given, and from samples of which sizes too."""

    recipe: Recipe
    protocol: Protocol
    given: SuppliedParts = SuppliedParts()
    reading: ReadingRules = ReadingRules()
    sizes: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """The number of folds of all repeats."""
        return self.protocol.folds * self.protocol.repeats


class _InsideFold:
    """A watch for what happens inside a fold, told as progress of all folds: `fold 2 of 5: tree, penalty 10`.

    Trying candidates is nearly all of the work where there are any, so their share is that of the fold; elsewhere the
    stages of learning have no common measure, and the bar waits for the end of the fold. A fold that is learnt from
    samples too is done by the rows of each: `fold 2 of 5, 100 rows: tree`.
    """

    def __init__(self, watch: Watch, split: Split, fold: tuple[int, int], done: float, units: float) -> None:
        self._watch, self._done, self._units, self._total = watch, done, units, fold[1]
        self._first = fold[0] == 0
        sample = "" if split.size is None else f", {split.size:,} {'row' if split.size == 1 else 'rows'}"
        self._fold, self._sample = f"fold {fold[0] + 1} of {fold[1]}{sample}", sample
        self._stage, self._share = "", 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Stage):
            self._stage = event.name
        elif isinstance(event, Progress):
            if self._stage == "candidates" and event.total:
                self._share = max(self._share, TRYING * event.done / event.total)
            self.tell(event.detail)
        elif isinstance(event, Note) and event.warning and self._first:
            self._watch(Note(f"in the first fold{self._sample}, {event.text}", warning=True))

    def tell(self, detail: str) -> None:
        """Where the folds stand, and what the one in hand is at."""
        done = self._done + self._share * self._units
        self._watch(Progress(done, self._total, f"{self._fold}: {detail}" if detail else self._fold))


def cross_validate(
    columns: Columns,
    recipe: Recipe,
    protocol: Protocol = Protocol(),
    *,
    given: SuppliedParts = SuppliedParts(),
    reading: ReadingRules = ReadingRules(),
    run: Run = Run(),
    sizes: Sequence[int] = (),
) -> Iterator[Fold]:
    """Yield every fold of every repeat, in order, each followed by the same fold learnt from samples of `sizes` rows.

    What is given is taken as it is in every fold. A size that is no smaller than the rows to learn from has no sample.
    """
    asked = FoldTask(recipe, protocol, given, reading, tuple(sizes))
    for whole in _splits(columns, protocol):
        yield from hold_out_all(columns, asked, whole, run)
    run.watch(Progress(asked.total, asked.total))


def _splits(columns: Columns, protocol: Protocol) -> Iterator[Split]:
    for repeat in range(protocol.repeats):
        fold_of = folds_of(columns, protocol, repeat)
        for number in range(protocol.folds):
            yield split_of(fold_of, repeat, number)


def hold_out_all(columns: Columns, asked: FoldTask, whole: Split, run: Run) -> Iterator[Fold]:
    """Yield one fold of one repeat, then the same fold learnt from samples."""
    protocol, number = asked.protocol, whole.repeat * asked.protocol.folds + whole.number
    units = len(whole.others) + sum(n for n in asked.sizes if n < len(whole.others))
    done = float(number)
    for split in (whole, *samples_of(columns, whole, asked.sizes, protocol.seed)):
        run.watch(Stage("fit"))
        inside = _InsideFold(run.watch, split, (number, asked.total), done, len(split.others) / units)
        inside.tell("")
        given, reading = asked.given, asked.reading
        fold, model = _hold_out(columns, asked.recipe, split, given=given, reading=reading, run=run, inside=inside)
        if protocol.scores and split is whole:
            fold = replace(fold, scored=scored(model, columns.take(split.others), run.threads))
        for sentence in fold.pooled if number == 0 and split is whole else ():
            run.watch(Note(f"in the first fold, {sentence}"))
        yield fold
        done += len(split.others) / units


def _hold_out(
    columns: Columns,
    recipe: Recipe,
    split: Split,
    *,
    given: SuppliedParts,
    reading: ReadingRules,
    run: Run,
    inside: Watch,
) -> tuple[Fold, Model]:
    quiet = run._replace(watch=inside)
    learnt = learn(columns.take(split.others), recipe, supplied=given, reading_rules=reading, run=quiet)
    run.watch(Stage("score"))
    examined = examine(learnt.model, columns.take(split.rows))
    pooled = () if given.cuts else tuple(pooling_notes(learnt.model.schema.attributes, len(split.others)))
    # The figures of the class frequencies of the other rows.
    assert columns.label is not None
    codes, weights = columns.label.codes, columns.weights
    here, others = (None if weights is None else weights[rows] for rows in (split.rows, split.others))
    frequencies = class_frequencies(codes[split.others], len(columns.label.levels), others)
    base = measure_baseline(frequencies, codes[split.rows], here)
    fold = Fold(split.repeat, split.number, split.rows, examined, learnt.model.penalty, base, pooled, split.size)
    parameters = learnt.parameters
    if parameters.stopped_by is not StoppedBy.CLOSED_FORM:
        fold = replace(fold, iterations=parameters.iterations, passes=parameters.passes)
    return fold, learnt.model


def hold_out(
    columns: Columns,
    recipe: Recipe,
    split: Split,
    *,
    given: SuppliedParts = SuppliedParts(),
    reading: ReadingRules = ReadingRules(),
    run: Run = Run(),
    inside: Watch = silent,
) -> Fold:
    """Return one fold: learn from the other rows, predict these.

    The watch hears when the stage `fit` gives way to `score`.

    `inside` hears all that the learning has to say.
    """
    return _hold_out(columns, recipe, split, given=given, reading=reading, run=run, inside=inside)[0]


def scored(model: Model, columns: Columns, threads: int = 1) -> ScoredNetwork:
    """Return the scores of a model's network on the rows that it was learnt from; BncliError where it has none."""
    schema = model.schema
    codes = encode_attributes(columns, schema, range(len(schema.attributes))).codes
    data = Dataset(schema, codes, encode_labels(columns, schema), columns.weights, threads)
    return score_network(Counts(data), only_network(model.structure), Strengths.of(model.recipe))


def folds_of(columns: Columns, protocol: Protocol, repeat: int) -> Index:
    """Return the fold of every row in a repeat, shape (N,)."""
    if columns.label is None:
        raise BncliError(f"the rows carry no class {columns.class_name!r}")
    return stratified_folds(columns.label.codes, protocol.folds, (protocol.seed, repeat))


def split_of(fold_of: Index, repeat: int, number: int) -> Split:
    """Return the fold of this number, from the fold of every row."""
    held_out = fold_of == number
    return Split(repeat, number, np.flatnonzero(held_out), np.flatnonzero(~held_out))


def samples_of(columns: Columns, whole: Split, sizes: Sequence[int], seed: int) -> Iterator[Split]:
    """Yield the split with nested samples of its other rows in their place.

    Sizes that leave none of them out are skipped.
    """
    assert columns.label is not None
    smaller = [size for size in sizes if size < len(whole.others)]
    if smaller:
        # one more than the number: as seeds, numpy takes (s, r) and (s, r, 0) for the same, and (s, r) drew the folds
        order = nested_order(columns.label.codes[whole.others], (seed, whole.repeat, whole.number + 1))
    for size in smaller:
        yield replace(whole, others=whole.others[np.sort(order[:size])], size=size)


def examine(model: Model, columns: Columns, *, allow_missing: bool = False) -> ScoredRows:
    """Return the model's predictions for labelled rows, measured.

    `allow_missing`: columns that are not there are unknown.
    """
    labels = encode_labels(columns, model.schema)
    predictions = predict(model, columns, allow_missing=allow_missing)
    decided = measure_decisions(model, predictions, labels, columns.weights)
    return ScoredRows(predictions, measure(predictions, labels, columns.weights), decided)


def predict(model: Model, columns: Columns, *, allow_missing: bool = False) -> Array:
    """Return ln P(c | x_t), shape (K, N); ModelError for a value never seen, where the model says so."""
    scorer = compile_scorer(model)
    encoded = encode_attributes(columns, model.schema, scorer.used, allow_missing=allow_missing)
    if model.schema.unseen == "error":
        for i, n in zip(scorer.used, encoded.unseen, strict=True):
            if n:
                name = model.schema.attributes[i].name
                raise ModelError(
                    f"attribute {name!r} has values that were never seen in training, in {n} row{'s' if n > 1 else ''}",
                    hint="let them count as unknown with --unseen average",
                )
    return log_probabilities(scorer, encoded.codes, columns.n_rows)


def out_of_fold(folds: Iterable[Fold], n_rows: int) -> Array:
    """Return ln P(c | x_t), shape (K, n_rows), of every row by the model of the first repeat that has not seen it."""
    first = [fold for fold in folds if fold.repeat == 0]
    predictions = np.empty((len(first[0].examined.log_probabilities), n_rows))
    for fold in first:
        predictions[:, fold.rows] = fold.examined.log_probabilities
    return predictions
