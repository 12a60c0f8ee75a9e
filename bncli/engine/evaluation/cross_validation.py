"""Cross-validation: learn from all folds but one and predict the rows of the remaining fold, for each fold in turn.

These folds measure how well a recipe predicts. The inner folds that choose a penalty or arcs within one set of
training rows are in `bncli.engine.parameters.penalty_choice`.

If the rows have times, the folds are consecutive blocks. Each block but the first is predicted after learning from all
blocks before it, or from a window of them.

Everything is learned within the fold, including cuts and levels; only the list of class labels comes from all rows.
Each repeat draws new random folds from the seed and the number of the repeat.

For a learning curve, the rows of a fold are also predicted by models fitted to samples of the other rows. The samples
are nested: larger ones contain the smaller ones. A sample depends on the seed, the repeat, the fold and its own size,
but not on the other sizes.

Conventions:
- The out-of-fold prediction of a row comes from the split of the first repeat that holds out the row.
- Notes and iterations of learning in a fold are not forwarded, except for warnings and notes about pooled levels in the
  first fold. The watch receives the stages of each fold (`fit`, `score`, `evaluate`), the number of folds done, and
  what is tried in the fold; samples count in proportion to their rows.
- A sample size is skipped if a fold has no more training rows than that, since the fold itself learns from all of them.

Cost: one fit per fold and repeat, and another one for each sample size. Without times, the model of each fold also
predicts the next fold, whose rows it was trained on, for the intervals of the metrics (`intervals.overlap_variance`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import pooling_notes
from bncli.engine.data.dataset import Dataset, encode_attributes, encode_labels
from bncli.engine.data.schema import ReadingRules
from bncli.engine.data.splits import RowSplit, SplitBy, nested_samples, splits_of_folds, stratified_folds, time_splits
from bncli.engine.evaluation.metrics import (
    Baseline,
    DecisionMetrics,
    Metrics,
    class_frequencies,
    measure,
    measure_baseline,
    measure_decisions,
)
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.learn import SuppliedParts, learn
from bncli.engine.model import Model, StoppedBy
from bncli.engine.parameters.generative import only_network
from bncli.engine.parameters.network_scores import ScoredNetwork, Strengths, score_network
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.errors import BncliError, ModelError
from bncli.recipe import Recipe
from bncli.watch import Event, Note, Progress, Run, Stage, Watch, silent

CANDIDATES_SHARE = 0.9
"""The fraction of the time for learning an ensemble that trying candidates is assumed to take, for progress reports."""


@dataclass(frozen=True)
class Protocol:
    """A protocol of cross-validation: repeated stratified folds drawn from one seed, or blocks of rows by time.

    - scores: parameters of the scores that are computed for each learned network on its training rows, or None
    - by_time: whether the rows have times, so that the folds are blocks
    - window: the number of preceding blocks to learn from, or None for all of them
    """

    folds: int = 5
    repeats: int = 1
    seed: int = 0
    scores: Strengths | None = None
    by_time: bool = False
    window: int | None = None

    @property
    def n_splits(self) -> int:
        """The number of folds that are predicted per repeat: all folds, or all blocks but the first."""
        return self.folds - 1 if self.by_time else self.folds

    def __str__(self) -> str:
        if self.by_time:
            before = "all earlier blocks"
            if self.window is not None:
                before = f"the {self.window} preceding blocks" if self.window > 1 else "the preceding block"
            return f"tested on {self.n_splits} of {self.folds} blocks in time order, trained on {before}"
        times = f"{self.repeats} x " if self.repeats > 1 else ""
        return f"{times}{self.folds}-fold cross-validation, stratified, seed {self.seed}"

    def draw_splits(self, labels: Integers, repeat: int, by: SplitBy | None = None) -> list[RowSplit]:
        """Return the training rows and the held-out rows of every split of a repeat, from the label codes (N,)."""
        if self.by_time:
            assert by is not None
            return time_splits(by, self.folds, self.window)
        return splits_of_folds(stratified_folds(labels, self.folds, (self.seed, repeat), by))


@dataclass(frozen=True)
class CrossValidation:
    """The settings of a cross-validation; `sizes` are the sizes of smaller training sets to learn from, in rows."""

    recipe: Recipe
    protocol: Protocol = Protocol()
    supplied: SuppliedParts = SuppliedParts()
    reading_rules: ReadingRules = ReadingRules()
    sizes: tuple[int, ...] = ()

    @property
    def n_folds(self) -> int:
        """The number of folds of all repeats together."""
        return self.protocol.n_splits * self.protocol.repeats


@dataclass(frozen=True)
class MeasuredPredictions:
    """Predictions ln P(c | x_t) of labelled rows, (K, N), in row order, with the metrics of predictions and decisions.

    decisions is None if the model has no decision rule.
    """

    log_probabilities: Array
    metrics: Metrics
    decisions: DecisionMetrics | None = None


@dataclass(frozen=True)
class Split:
    """One split: the held-out `rows` of a fold of a repeat, and the training rows `others`; both ascending.

    - size: the number of training rows if they are a sample, otherwise None
    - next_rows: the rows of the next fold (for the last fold, of the first one), which are training rows here; None
      for blocks by time
    """

    repeat: int
    number: int
    rows: Index
    others: Index
    size: int | None = None
    next_rows: Index | None = None


@dataclass(frozen=True)
class Fold:
    """One fold of one repeat: the held-out rows, their predictions, and how the model was fitted.

    - penalty, iterations, passes (over the rows): of the final optimization; None for parameters in closed form
    - baseline: the metrics of the class frequencies of the training rows
    - pooling_notes: notes about pooled levels
    - size: the size of the sample of training rows, or None if all training rows of the split were used
    - scored: the scores of the network on the training rows, if the protocol requires them and `size` is None
    - training_log_loss: the log-loss on the rows of the next fold, which are training rows here; None if not computed
    """

    repeat: int
    number: int
    rows: Index
    measured: MeasuredPredictions
    penalty: float | None
    baseline: Baseline
    pooling_notes: tuple[str, ...] = ()
    size: int | None = None
    iterations: int | None = None
    passes: int | None = None
    scored: ScoredNetwork | None = None
    training_log_loss: float | None = None


def cross_validate(columns: Columns, plan: CrossValidation, run: Run = Run()) -> Iterator[Fold]:
    """Yield every fold of every repeat, in order, each followed by the same fold learned from samples.

    Supplied parts are used unchanged in every fold.
    """
    protocol = plan.protocol
    for repeat in range(protocol.repeats):
        for split in draw_splits(columns, protocol, repeat):
            yield from hold_out_with_samples(columns, plan, split, run)
    run.watch(Progress(plan.n_folds, plan.n_folds))


def draw_splits(columns: Columns, protocol: Protocol, repeat: int) -> list[Split]:
    """Return the splits of a repeat; raise BncliError if the table has no class column or cannot be split this way."""
    if columns.label is None:
        raise BncliError(f"the table has no class column {columns.class_name!r}")
    splits = protocol.draw_splits(columns.label.codes, repeat, columns.split_by)
    held_out = [rows for _, rows in splits]
    following = [None] * len(splits) if protocol.by_time else [*held_out[1:], held_out[0]]
    return [
        Split(repeat, number, rows, others, next_rows=next_rows)
        for number, ((others, rows), next_rows) in enumerate(zip(splits, following, strict=True))
    ]


def sample_others(columns: Columns, full_split: Split, sizes: Sequence[int], seed: int) -> Iterator[Split]:
    """Yield the split with a nested sample of its training rows, for each size below the number of these rows."""
    assert columns.label is not None
    smaller = [size for size in sizes if size < len(full_split.others)]
    by = None if columns.split_by is None else columns.split_by.take(full_split.others)
    # number + 1, because numpy treats the seeds (s, r) and (s, r, 0) as equal, and (s, r) drew the folds
    samples = nested_samples(
        columns.label.codes[full_split.others], smaller, (seed, full_split.repeat, full_split.number + 1), by
    )
    for size, rows in zip(smaller, samples, strict=True):
        yield replace(full_split, others=full_split.others[rows], size=size)


def hold_out_with_samples(columns: Columns, plan: CrossValidation, full_split: Split, run: Run) -> Iterator[Fold]:
    """Yield one fold of one repeat, then the same fold learned from samples."""
    protocol, number = plan.protocol, full_split.repeat * plan.protocol.n_splits + full_split.number
    total_rows = len(full_split.others) + sum(n for n in plan.sizes if n < len(full_split.others))
    done = float(number)
    for split in (full_split, *sample_others(columns, full_split, plan.sizes, protocol.seed)):
        run.watch(Stage("fit"))
        progress = FoldProgress(run.watch, split, (number, plan.n_folds), done, len(split.others) / total_rows)
        progress.report("")
        training_rows = split.next_rows if split is full_split else None
        fold = hold_out(columns, plan, split, run, inside=progress, training_rows=training_rows)
        for note in fold.pooling_notes if number == 0 and split is full_split else ():
            run.watch(Note(f"in the first fold, {note}"))
        yield fold
        done += len(split.others) / total_rows


class FoldProgress:
    """A watch for learning within a fold, which reports progress over all folds: `fold 2 of 5: tree, penalty 10`.

    If learning tries candidates, these take nearly all of the time, so their progress counts for the fold. The progress
    of other stages is not on the same scale, so the bar does not move until the fold ends. Samples count in proportion
    to their rows and are named: `fold 2 of 5, 100 rows: tree`.
    """

    def __init__(self, watch: Watch, split: Split, fold: tuple[int, int], done: float, units: float) -> None:
        """Report to `watch` on fold number fold[0] (from 0) of fold[1].

        `done` is the number of folds completed before, including fractions, and `units` the fraction of this fold's
        work that the split makes up.
        """
        self._watch, self._done, self._units, self._total = watch, done, units, fold[1]
        self._is_first = fold[0] == 0
        self._sample = "" if split.size is None else f", {split.size:,} {'row' if split.size == 1 else 'rows'}"
        self._fold = f"fold {fold[0] + 1} of {fold[1]}{self._sample}"
        self._stage, self._share = "", 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Stage):
            self._stage = event.name
        elif isinstance(event, Progress):
            if self._stage == "candidates" and event.total:
                self._share = max(self._share, CANDIDATES_SHARE * event.done / event.total)
            self.report(event.detail)
        elif isinstance(event, Note) and event.warning and self._is_first:
            sample = self._sample.replace(", ", ", learned from ", 1)
            self._watch(Note(f"in the first fold{sample}, {event.text}", warning=True))

    def report(self, detail: str) -> None:
        """Report the progress over all folds, and what the current fold is working on."""
        done = self._done + self._share * self._units
        self._watch(Progress(done, self._total, f"{self._fold}: {detail}" if detail else self._fold))


def hold_out(
    columns: Columns,
    plan: CrossValidation,
    split: Split,
    run: Run = Run(),
    inside: Watch = silent,
    *,
    training_rows: Index | None = None,
) -> Fold:
    """Learn from the training rows of a split, predict the held-out rows, and compute the metrics of the predictions.

    run.watch receives the stage `score` when learning ends; `inside` receives all events of learning. training_rows:
    some of the training rows, for which the log-loss is computed too, in the stage `evaluate`.
    """
    # only a network can be scored
    recipe = plan.recipe if plan.protocol.scores is None else plan.recipe.replaced(alternative=None)
    fitted = learn(
        columns.take(split.others),
        recipe,
        supplied=plan.supplied,
        reading_rules=plan.reading_rules,
        run=run._replace(watch=inside),
    )
    model, parameters = fitted.model, fitted.parameters
    run.watch(Stage("score"))
    measured = predict_and_measure(model, columns.take(split.rows))
    assert columns.label is not None
    codes, weights = columns.label.codes, columns.weights
    held_out_weights, other_weights = (
        None if weights is None else weights[rows] for rows in (split.rows, split.others)
    )
    frequencies = class_frequencies(codes[split.others], len(columns.label.levels), other_weights)
    scored = None
    if plan.protocol.scores is not None and split.size is None:
        rows, schema = columns.take(split.others), model.schema
        attributes = encode_attributes(rows, schema, range(len(schema.attributes))).codes
        data = Dataset(schema, attributes, encode_labels(rows, schema), rows.weights, run.threads)
        scored = score_network(Counts(data), only_network(model.structure), plan.protocol.scores)
    training_log_loss = None
    if training_rows is not None:
        run.watch(Stage("evaluate"))
        rows = columns.take(training_rows)
        labels = encode_labels(rows, model.schema)
        log_p_true = predict(model, rows)[labels, np.arange(rows.n_rows)]
        training_log_loss = -float(np.average(log_p_true, weights=rows.weights))
    is_iterative = parameters.stopped_by is not StoppedBy.CLOSED_FORM
    return Fold(
        repeat=split.repeat,
        number=split.number,
        rows=split.rows,
        measured=measured,
        penalty=model.penalty,
        baseline=measure_baseline(frequencies, codes[split.rows], held_out_weights),
        pooling_notes=() if plan.supplied.cuts else tuple(pooling_notes(model.schema.attributes, len(split.others))),
        size=split.size,
        iterations=parameters.iterations if is_iterative else None,
        passes=parameters.passes if is_iterative else None,
        scored=scored,
        training_log_loss=training_log_loss,
    )


def predict_and_measure(model: Model, columns: Columns, *, allow_missing: bool = False) -> MeasuredPredictions:
    """Predict labelled rows with a model, and compute the metrics of the predictions.

    `allow_missing`: treat missing columns as unknown values.
    """
    labels = encode_labels(columns, model.schema)
    predictions = predict(model, columns, allow_missing=allow_missing)
    decisions = measure_decisions(model, predictions, labels, columns.weights)
    return MeasuredPredictions(predictions, measure(predictions, labels, columns.weights), decisions)


def predict(model: Model, columns: Columns, *, allow_missing: bool = False) -> Array:
    """Predict rows with a model; return ln P(c | x_t), shape (K, N).

    Raises ModelError for a value that did not occur in training, if the model's schema has `unseen` = "error", and for
    a missing column unless `allow_missing`.
    """
    scorer = compile_scorer(model)
    encoded = encode_attributes(columns, model.schema, scorer.used, allow_missing=allow_missing)
    if model.schema.unseen == "error":
        for i, n in zip(scorer.used, encoded.unseen, strict=True):
            if n:
                name = model.schema.attributes[i].name
                raise ModelError(
                    f"attribute {name!r} has values that were never seen in training, in {n} row{'s' if n > 1 else ''}",
                    hint="add --unseen average to treat them as unknown",
                )
    return log_probabilities(scorer, encoded.codes, columns.n_rows)


def out_of_fold(folds: Iterable[Fold]) -> tuple[Index, Array]:
    """Return the rows that the first repeat predicted, ascending, and their ln P(c | x_t), (K, rows).

    Each row is predicted by the model of the split that holds it out. With blocks by time, the first block is not
    predicted.
    """
    first_repeat = [fold for fold in folds if fold.repeat == 0]
    tested = np.concatenate([fold.rows for fold in first_repeat])
    order = np.argsort(tested, kind="stable")
    predictions = np.concatenate([fold.measured.log_probabilities for fold in first_repeat], axis=1)
    return tested[order], predictions[:, order]
