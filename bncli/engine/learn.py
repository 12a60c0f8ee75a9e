"""Learn a model from a table. Read this file first.

    Columns        the table as it was read (`data/columns.py`)
      | learn_dataset (`data/cutting.py`)        learn cut points, levels and schema; encode the rows
    Dataset        encoded rows and their schema (`data/dataset.py`)
      | Counts (`counting/counts.py`)            count the rows in the cells of contingency tables, on demand
    Counts
      | learn_structure                          learn the arcs or regions by the method of --structure
    Structure      a Dag or Regions (`structures/structure.py`)
      | _choose_penalty_and_arcs                 choose the penalty, the arcs or both on held-out rows, if requested
    ChosenPenalty
      | learn_parameters                         learn the parameters by the method of --param
    Parameters     with the predictor, in most cases Tables (`model.py`)
      |
    Model          schema, structure, predictor, recipe and more: the content of a model file

`learn` takes these steps; `learn_from_counts` starts from stored contingency tables. `--param auto`, which learns an
ensemble, takes its own steps (`ensembles/auto.py`). A method is looked up by the word given on the command line:
`--structure tan` is `structure_learners/tan.py`, and `--param weighted` is `learn_weighted` in
`parameter_learners/conditional.py`; the docstring of that package lists the module of every word.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bncli import __version__
from bncli.catalogue import DECISION_KEYS, DISCRETIZERS, MARGINALIZED, OPTIMIZERS, PARAMETERS, STRUCTURES
from bncli.catalogue.option_kinds import Knowledge
from bncli.engine.counting.counts import Counts, StoredTables
from bncli.engine.data.columns import Columns, apply_class_weights, is_constant, parse_class_weights
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, Cuts, NumericAttribute, ReadingRules, Schema
from bncli.engine.data.splits import RowSplit, SplitBy, count_units, inner_splits, record_split, stratified_sample
from bncli.engine.discretizers import SUPERVISED
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import (
    ChosenPenalty,
    Ensemble,
    HeldOutLoss,
    HeldOutPredictions,
    Model,
    Parameters,
    ParameterUncertainty,
    TriedStructure,
)
from bncli.engine.networks.prior_network import AlignedPrior, PriorNetwork
from bncli.engine.parameters.costs import describe_large, refuse_large, refuse_wide
from bncli.engine.parameters.generative import closed_form
from bncli.engine.parameters.monotone import check_directions
from bncli.engine.parameters.optimization import OptimizerSettings, Space, Starts
from bncli.engine.parameters.penalty_choice import (
    EVIDENCE,
    FEW_FOLDS,
    FOLDS,
    MANY_ROWS,
    MANY_UNITS_OF_REGIONS,
    MOST_CELLS,
    REGIONS_GRID,
    WHOLE_ROWS,
    HeldOutFold,
    base_log_loss,
    base_of_splits,
    choose_arcs,
    fold_of_split,
    folds_with_own_cuts,
    held_out_folds,
    held_out_splits,
    is_measured_as_read,
    loss_of,
    most_rows_to_choose,
    naive_bayes_loss,
    penalty_path,
    prefix_of_arcs,
    sample_of,
    shrink_parameters,
    split_outside,
    splits_to_measure,
    subset_of_arcs,
    tables_of_folds,
)
from bncli.engine.parameters.uncertainty import FEW_ROWS, MANY_PARAMETERS, laplace, posterior_variances
from bncli.engine.parameters.weighted_samples import Growth
from bncli.engine.prediction.decision_rules import DecisionOptions, make_rule
from bncli.engine.prediction.monitoring import count_plain_frequencies
from bncli.engine.prediction.out_of_fold import learn_with_rule, log_p_of_true_labels, predict
from bncli.engine.prediction.scoring import log_probabilities_of
from bncli.engine.structure_learners.dependence import narrow, widen
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.named_structure import NamedStructure
from bncli.engine.structures.structure import Dag, Regions, Structure
from bncli.engine.training_data import encode_needed, with_attributes
from bncli.errors import BncliError, UsageError
from bncli.recipe import Recipe
from bncli.watch import Note, Progress, Run, Stage, TimeLimit, Watch, hold_notes, silent

SEARCHED_ONCE = ("gbn", "kikuchi", "auto")
"""Structure searches that are too slow to be repeated in every fold."""
FEWEST_ITERATIONS = 100
"""With a lower `--max-iterations`, the optimizer uses all rows from the first iteration on."""
MANY_VALUES = 20
"""A warning names a categorical column with more values than this if its tables have more than half of all cells."""
PARAMETERS_PER_ROW = 50
"""A warning is given if there are more parameters per training row than this and no penalty."""
CLEAR, CLEAR_UNITS = 2.0, 100
"""A difference is clear if it exceeds CLEAR standard errors, estimated from at least CLEAR_UNITS held-out units.

The difference is tested after each fold. (On 108 samples of 52 tables, no choice differed from the choice on all folds.
With 30 units instead of 100, some differed, because the penalty and the shrinkage are chosen on the same few rows.)
"""
COMPARED_ROWS = MANY_ROWS
"""With at least this many rows, a sample is used to choose between the default structure and its alternative."""
MOST_ATTRIBUTES, MOST_CLASSES = 100, 40
"""With more attributes or classes, the alternative would take several times as long as the default structure."""
MANY_LABELS, ROWS_PER_LABEL, MOST_LABEL_CELLS = 20, 100, 10_000_000
"""With more than MANY_LABELS classes, structures are compared only if there are at least ROWS_PER_LABEL rows per class,
and if rows times attributes times classes are at most MOST_LABEL_CELLS. A penalty chosen on a sample is then not chosen
again."""
ENOUGH_TO_MEASURE = 1e-4
"""The minimum tolerance of fits made only to measure the held-out log-loss."""
ABOUT_AS_GOOD = 0.01
"""The held-out log-loss of an alternative score card may be higher by this fraction."""
MOST_COLUMNS_OF_CARD, MOST_ROWS_OF_CARD = 1000, 100_000
"""The limits used to learn a score card without effective limits."""
NEGLIGIBLE_GAIN = 1e-3
"""A model is a gain only if its held-out loss is below the loss of the class frequencies by more than this fraction."""


@dataclass(frozen=True)
class SuppliedParts:
    """Parts of a model that are supplied by files. Cuts or a structure that are None are learned from the rows.

    A prior network also supplies the cuts if `cuts` is None.
    """

    cuts: Cuts | None = None
    structure: NamedStructure | None = None
    prior: PriorNetwork | None = None

    def with_cuts_of_prior(self, columns: Columns) -> SuppliedParts:
        """Return the parts with the prior network's cuts, or unchanged if there is no network or cuts were supplied.

        Raises BncliError if the table does not fit the network.
        """
        if self.prior is None or self.cuts is not None:
            return self
        return replace(self, cuts=self.prior.cuts_of(columns))

    def align_prior(self, schema: Schema, recipe: Recipe) -> AlignedPrior | None:
        """Return the prior network in the codes of a schema, or None if there is none.

        Raises BncliError if the network does not fit the schema.
        """
        return None if self.prior is None else self.prior.aligned(schema, recipe.seed or 0)


@dataclass(frozen=True)
class FittedModel:
    """A model, its parameters as learned, and the number of missing values that were marginalized.

    `alternatives` are other score cards, whose held-out loss is at most slightly higher (ABOUT_AS_GOOD), best first.
    """

    model: Model
    parameters: Parameters
    n_missing: int
    alternatives: tuple[FittedModel, ...] = ()


def learn(
    columns: Columns,
    recipe: Recipe,
    *,
    supplied: SuppliedParts = SuppliedParts(),
    reading_rules: ReadingRules = ReadingRules(),
    run: Run = Run(),
) -> FittedModel:
    """Learn a model from labelled rows.

    Supplied cuts and a supplied structure are used as they are, except that `recipe.arcs` may choose among the arcs of
    the structure. `reading_rules` are stored in the schema. Warnings about the model go to `run.watch`.

    Raises BncliError, for example if there are no rows to learn from, if the recipe marginalizes missing values with
    parameters that are not probabilities, or if the network would need more than `run.memory`; UsageError, for example
    if intervals are requested with both class weights and a prior network.
    """
    if recipe.missing_policy == "marginalize" and recipe.param not in MARGINALIZED:
        what = (
            f"missing values cannot be marginalized with the parameters {recipe.param!r}, which are not probabilities"
        )
        raise BncliError(what, hint=f"use --param {', '.join(MARGINALIZED)}, or --missing-policy level")
    if run.intervals and recipe.class_weights is not None and supplied.prior is not None:
        what = (
            "--intervals: with --class-weights and --prior-network, the effective number of rows per class is unknown"
        )
        raise UsageError(what, hint="leave one of the three out")
    if recipe.max_attributes is not None and len(columns.attributes) <= recipe.max_attributes:
        recipe = recipe.without_limit()
    supplied = supplied.with_cuts_of_prior(columns)
    # The list holds the only reference to the table, so that the table can be freed once its rows are encoded.
    table = [columns]
    # with one row per unit the model is the same as without units
    recorded = record_split(columns.n_rows, columns.split_by)
    split = recorded if "time" in recorded.kind or recorded.units < columns.n_rows else None
    del columns
    options = _decision_options(recipe)
    if options == DecisionOptions():
        fitted = _learn_calibrated(table, recipe, supplied, reading_rules, run)
        return replace(fitted, model=replace(fitted.model, split=split))
    run_of_folds = run._replace(watch=silent, hold_out=False, intervals=False)
    if options.need_held_out_rows and options.sets is None:
        run = run._replace(hold_out=True, keep_predictions=True)
    fitted, rule = learn_with_rule(
        table.pop(),
        options,
        lambda rows: _learn_calibrated([rows], recipe, supplied, reading_rules, run),
        lambda rows: _learn_calibrated([rows], recipe, supplied, reading_rules, run_of_folds),
        seed=recipe.seed or 0,
        watch=run.watch,
    )
    return replace(fitted, model=replace(fitted.model, rule=rule, split=split))


def _decision_options(recipe: Recipe) -> DecisionOptions:
    return DecisionOptions(*(getattr(recipe, key) for key in DECISION_KEYS))


def _learn_calibrated(
    table: list[Columns], recipe: Recipe, supplied: SuppliedParts, reading_rules: ReadingRules, run: Run
) -> FittedModel:
    """Learn a model, with class weights and calibration if the recipe has them.

    `table` is a list with one element, the training table, which is removed from it so that its memory can be freed.
    """
    class_weights = parse_class_weights(recipe.class_weights, table[0])
    if class_weights is None and recipe.calibrate is None:
        return _learn(table.pop(), recipe, supplied, reading_rules, run)
    unweighted, run = table.pop(), run._replace(class_weights=class_weights)
    columns = unweighted if class_weights is None else apply_class_weights(unweighted, class_weights)
    if recipe.calibrate is None:
        fitted = _learn(columns, recipe, supplied, reading_rules, run)
    else:
        # These modules load scipy.optimize, which takes longer than a small fit.
        from bncli.engine.calibration import refuse_directed
        from bncli.engine.prediction.out_of_fold import calibrate_out_of_fold

        if columns.label is not None and (recipe.increasing or recipe.decreasing):
            refuse_directed(recipe.calibrate, len(columns.label.levels))
        fitted = _learn(columns, recipe, supplied, reading_rules, run._replace(hold_out=False))
        quiet = run._replace(watch=silent, distribute=None, hold_out=False, intervals=False)
        model, log_loss, class_weights_of_folds, splits, predictions = calibrate_out_of_fold(
            fitted.model,
            columns,
            lambda rows: _learn(rows, recipe, supplied, reading_rules, quiet).model,
            run.watch,
        )
        counted = _count_held_out(splits, columns.split_by)
        held_out = HeldOutLoss(log_loss, base_log_loss(class_weights_of_folds), *counted)
        kept = predictions if run.keep_predictions else None
        parameters = replace(fitted.parameters, held_out=held_out, held_out_predictions=kept)
        fitted = replace(fitted, model=replace(model, held_out=held_out), parameters=parameters)
    if class_weights is not None:
        frequencies = count_plain_frequencies(fitted.model, unweighted)
        weights = tuple(class_weights.tolist())
        fitted = replace(fitted, model=replace(fitted.model, class_weights=weights, plain_frequencies=frequencies))
        if (weighted := fitted.parameters.held_out_predictions) is not None:
            # the figures use the rows' own weights, not the class weights
            plain = None
            if unweighted.weights is not None and weighted.weights is not None:
                plain = weighted.weights / class_weights[weighted.codes]
            parameters = replace(fitted.parameters, held_out_predictions=weighted._replace(weights=plain))
            fitted = replace(fitted, parameters=parameters)
    return fitted


def _learn(
    columns: Columns, recipe: Recipe, supplied: SuppliedParts, reading_rules: ReadingRules, run: Run
) -> FittedModel:
    """Learn a model without class weights, calibration or decision rule, by the branch that suits the recipe."""
    table = [columns]
    del columns
    if recipe.alternative is not None:
        return _learn_better(table, recipe, reading_rules, run)
    if recipe.param == "auto":
        from bncli.engine.ensembles.auto import learn_auto  # loads many modules that no other method needs

        columns = table.pop()
        sampled_rows = None if columns.origin is None else columns.origin.sampled_rows
        return _complete(*learn_auto(columns, recipe, reading_rules, run), 0, sampled_rows, run.watch)
    chosen = _choose(table, recipe, supplied, reading_rules, run)
    fitted = _fit_parameters(chosen, run)
    if recipe.param == "points" and run.hold_out:
        return _with_cost_of_limits(fitted, chosen, supplied, reading_rules, run)
    return fitted


def _with_cost_of_limits(
    fitted: FittedModel, chosen: _ChosenSettings, supplied: SuppliedParts, reading_rules: ReadingRules, run: Run
) -> FittedModel:
    """Return a score card with its held-out log-loss, the log-loss without the card's limits, and alternative cards.

    There are at most `run.alternatives` alternatives; each leaves out one attribute of the card. The card is returned
    unchanged if no row can be held out.
    """
    data, recipe = chosen.counts.data, chosen.recipe
    if not splits_to_measure(data.labels, recipe.seed or 0, data.split_by, is_slow=True):
        return fitted
    free = recipe.replaced(columns=MOST_COLUMNS_OF_CARD, rows=MOST_ROWS_OF_CARD, points="off")
    (limited, predictions), (unlimited, _) = (
        _HeldOutModels(each, supplied, reading_rules, chosen.structure, "all", None, run).measure(data, None)
        for each in (recipe, free)
    )
    parameters = replace(
        fitted.parameters,
        held_out=limited,
        held_out_predictions=predictions,
        log_loss_unlimited=unlimited.log_loss,
    )
    fitted = replace(fitted, model=replace(fitted.model, held_out=limited), parameters=parameters)
    found: list[tuple[float, int, FittedModel]] = []
    columns = dict.fromkeys(i for family in fitted.model.tables.families for i in family.attributes)
    for left_out in columns if run.alternatives else ():
        quiet = run._replace(watch=silent, keep_predictions=False)
        attributes, codes = list(data.schema.attributes), list(data.codes)
        # With a single value, the attribute takes no part in the structure.
        blank = replace(attributes[left_out], missing=False, frequencies=(data.total_weight,))
        one_value = {"cuts": ()} if isinstance(blank, NumericAttribute) else {"levels": ("",), "groups": ()}
        attributes[left_out] = replace(blank, **one_value)
        codes[left_out] = np.zeros_like(codes[left_out])
        others = replace(data, schema=replace(data.schema, attributes=tuple(attributes)), codes=tuple(codes))
        counts = Counts(others)
        structure = learn_structure(counts, recipe, quiet)
        parameters = learn_parameters(counts, structure, recipe)
        model = Model(others.schema, structure, parameters.predictor, recipe, data.n_rows, __version__)
        loss, _ = _HeldOutModels(recipe, supplied, reading_rules, structure, "all", None, quiet).measure(others, None)
        if loss.log_loss <= (1 + ABOUT_AS_GOOD) * limited.log_loss:
            found.append((loss.log_loss, len(found), FittedModel(model, replace(parameters, held_out=loss), 0)))
    return replace(fitted, alternatives=tuple(other for *_, other in sorted(found)[: run.alternatives]))


def _learn_better(table: list[Columns], recipe: Recipe, reading_rules: ReadingRules, run: Run) -> FittedModel:
    """Learn with the recipe's structure or with its alternative, whichever predicts held-out rows better.

    `table` is as in `_learn_calibrated`. The penalties of both are chosen on the same folds, and the two are compared
    on more and more folds until the difference is clear (`_compare_folds`). If it never is, the alternative is used if
    its log-likelihood of all held-out rows is higher by more than EVIDENCE nats. With COMPARED_ROWS rows or more, they
    are compared on a sample, and only the winner learns from all rows. The recipe's structure is used without a
    comparison in the cases of `_not_compared`, or if learning either raises BncliError, for example for lack of memory.
    Only the notes on the encoding and structure of the winner are forwarded.
    """
    recipes, supplied, seed = recipe.competing(), SuppliedParts(), recipe.seed or 0
    rows, quiet = table[0], run._replace(watch=silent, hold_out=True)
    notes: tuple[list[Note], list[Note]] = ([], [])
    n_labels = 0 if rows.label is None else len(rows.label.levels)
    reason, is_sample = _not_compared(rows, run), rows.n_rows >= COMPARED_ROWS
    choices: list[_PenaltyChoice] = []
    chosen: list[_ChosenSettings] = []
    tried: list[TriedStructure] = []
    winner: int | None = 0
    if not reason and is_sample:
        assert rows.label is not None
        run.watch(Stage("compare"))
        rows = rows.take(stratified_sample(rows.label.codes, COMPARED_ROWS - 1, seed, rows.split_by))
    elif not reason:
        held = run._replace(watch=hold_notes(run.watch, notes[0]))
        choices = [_PenaltyChoice.of([rows], recipes[0], supplied, reading_rules, held)]
        run.watch(Stage("compare"))
    if not reason:
        try:
            for each in recipes[len(choices) :]:
                held = quiet._replace(watch=hold_notes(silent, notes[len(choices)]))
                choices.append(_PenaltyChoice.of([rows], each, supplied, reading_rules, held))
            winner, tried = _compare_folds(choices, rows, quiet, run.watch)
            if winner is None:
                # one at a time, so that the first is kept if the second is refused
                chosen.extend(choice.complete(quiet) for choice in choices)
                tried = _tried_structures(chosen)
                winner = int(_is_second_better(tried, rows, seed))
        except BncliError as refusal:
            reason = refusal.what
    if reason:
        winner, tried = 0, []
        if rows.n_rows > 1:
            structures = [each.structure for each in recipes]
            run.watch(Note(f"--structure {structures[1]} was not compared with {structures[0]}: {reason}"))
    assert winner is not None
    if is_sample or not choices:
        known = choices[winner].tried if choices and tried and n_labels > MANY_LABELS else None
        del rows, choices, chosen
        settings = _PenaltyChoice.of(table, recipes[winner], supplied, reading_rules, run).complete(run, known)
    else:
        for note in notes[winner]:
            run.watch(note)
        settings = chosen[winner] if len(chosen) > winner else choices[winner].complete(run)
    if tried:
        assert settings.penalty is not None
        settings = settings._replace(penalty=replace(settings.penalty, structures=tuple(tried)))
    return _fit_parameters(settings, run)


def _compare_folds(
    choices: Sequence[_PenaltyChoice], rows: Columns, quiet: Run, watch: Watch
) -> tuple[int | None, list[TriedStructure]]:
    """Compare two recipes on more and more folds until the difference is clear, or on all but the last fold.

    If a recipe chooses its penalty on fewer folds, only these are compared, and their difference decides even if it is
    not clear. Return the winner (0 or 1), or None if no difference was clear and folds are left, and the penalty and
    log-loss of both on the folds compared last. A difference of log-likelihoods is clear if it comes from at least
    CLEAR_UNITS held-out units and is either large or small. It is large if it exceeds both EVIDENCE nats and CLEAR
    standard errors. It is small if, even with CLEAR standard errors added, its extrapolation to all folds stays below
    EVIDENCE; then the first recipe wins.

    Raises BncliError if no row can be held out.
    """
    assert rows.label is not None
    splits = inner_splits(rows.label.codes, FOLDS, choices[0].recipe.seed or 0, rows.split_by)
    if not splits:
        raise BncliError("no row of the sample can be held out")
    tried: list[TriedStructure] = []
    n_folds = min(choice.n_folds for choice in choices)
    for n in range(1, min(len(splits), n_folds + 1)):
        held_out = np.concatenate([part for _, part in splits[:n]])
        if count_units(len(held_out), None if rows.split_by is None else rows.split_by.take(held_out)) < CLEAR_UNITS:
            continue
        watch(Progress(n - 1, len(splits), f"fold {n} of {len(splits)}"))
        weights = np.ones(len(held_out)) if rows.weights is None else rows.weights[held_out]
        found = [choice.try_folds(n, quiet) for choice in choices]
        losses = [each.losses for each in found]
        tried = [
            TriedStructure(
                str(choice.recipe.structure), each.penalty.penalty, float(np.average(each.losses, weights=weights))
            )
            for choice, each in zip(choices, found, strict=True)
        ]
        gains: Array = weights * (losses[0] - losses[1])
        if rows.split_by is not None and rows.split_by.units is not None:
            units = np.unique(rows.split_by.units[held_out], return_inverse=True)[1]
            gains = np.asarray(np.bincount(units, gains), np.float64)
        gain, error = abs(float(gains.sum())), CLEAR * math.sqrt(len(gains)) * float(gains.std())
        is_clear = gain > max(EVIDENCE, error) or len(splits) / n * (gain + error) < EVIDENCE
        if is_clear or n == n_folds:
            return int(gains.sum() > EVIDENCE), tried
    watch(Progress(len(splits) - 1, len(splits), "all folds"))
    return None, tried


def _tried_structures(chosen: Sequence[_ChosenSettings]) -> list[TriedStructure]:
    """Return the structure, the penalty and the held-out log-loss of each candidate."""
    tried = []
    for each in chosen:
        assert each.penalty is not None
        log_loss = each.penalty.log_loss if each.held_out is None else each.held_out.log_loss
        assert log_loss is not None
        tried.append(TriedStructure(str(each.recipe.structure), each.penalty.penalty, log_loss))
    return tried


def _is_second_better(tried: Sequence[TriedStructure], rows: Columns, seed: int) -> bool:
    """Return whether the second candidate's log-likelihood of held-out rows is higher by more than EVIDENCE nats."""
    assert rows.label is not None
    held_out = np.concatenate([part for _, part in inner_splits(rows.label.codes, FOLDS, seed, rows.split_by)])
    weight = len(held_out) if rows.weights is None else float(rows.weights[held_out].sum())
    return weight * (tried[0].log_loss - tried[1].log_loss) > EVIDENCE


def _not_compared(columns: Columns, run: Run) -> str:
    """Return the reason why the alternative structure is not tried for this table, or "" if it may be tried."""
    if columns.label is None or not inner_splits(columns.label.codes, FOLDS, 0, columns.split_by):
        return "no row can be held out"
    if run.distribute is not None:
        return "only Bayesian networks can be learned on a cluster"
    if columns.origin is not None:
        return "the rows are already encoded, with cuts made for one of the two structures"
    if columns.n_rows * (len(columns.attributes) + 1) > MOST_CELLS:
        return f"the table has more than {MOST_CELLS:,} values"
    if len(columns.attributes) > MOST_ATTRIBUTES:
        return f"there are more than {MOST_ATTRIBUTES} attributes"
    n_labels = len(columns.label.levels)
    if n_labels > MOST_CLASSES:
        return f"there are more than {MOST_CLASSES} classes"
    if n_labels > MANY_LABELS and columns.n_rows < ROWS_PER_LABEL * n_labels:
        return f"there are {n_labels} classes, with fewer than {ROWS_PER_LABEL} rows per class"
    if n_labels > MANY_LABELS and columns.n_rows * len(columns.attributes) * n_labels > MOST_LABEL_CELLS:
        return f"there are {n_labels} classes, and more than {MOST_LABEL_CELLS:,} values times classes"
    return ""


class _ChosenSettings(NamedTuple):
    """The settings chosen before the parameters are fitted: structure and penalty, with counts of the training rows.

    - sampled_rows: the number of rows from which cuts were made, or None for all rows
    - held_out: the log-loss of held-out rows, or None if it was not computed separately from the choice of the penalty
    - predictions: the predictions of held-out rows, or None if they are not kept
    - split: a split whose held-out rows the search for interactions has not used, or None
    - near: tables (K, n_cells) fitted to the training rows of `split` or to a sample of them, or None
    """

    counts: Counts
    structure: Structure
    recipe: Recipe
    penalty: ChosenPenalty | None
    sampled_rows: int | None
    held_out: HeldOutLoss | None = None
    prior: AlignedPrior | None = None
    predictions: HeldOutPredictions | None = None
    split: RowSplit | None = None
    near: Array | None = None


def _choose(
    table: list[Columns], recipe: Recipe, supplied: SuppliedParts, reading_rules: ReadingRules, run: Run
) -> _ChosenSettings:
    """Encode the rows, learn the structure, and choose penalty and arcs; `table` is as in `_learn_calibrated`."""
    return _PenaltyChoice.of(table, recipe, supplied, reading_rules, run).complete(run)


@dataclass
class _PenaltyChoice:
    """Encoded rows and a structure, for which the penalty and arcs are chosen on a few held-out folds or on all.

    - sample: the raw rows that folds are made of, so that every fold has its own cut points; None if folds share the
      cut points of all rows
    - as_read: all raw rows if the log-loss is to be computed on more rows than the sample, otherwise None
    - split: as in `_ChosenSettings`
    - folds: the folds made so far; `try_folds` makes folds that store their fits
    - tried: the latest choice by `try_folds`
    """

    recipe: Recipe
    supplied: SuppliedParts
    reading_rules: ReadingRules
    counts: Counts
    structure: Structure
    prior: AlignedPrior | None
    sampled_rows: int | None
    sample: Columns | None
    as_read: Columns | None
    split: RowSplit | None
    folds: list[HeldOutFold] = field(default_factory=list)
    tried: _TriedFolds | None = None

    @classmethod
    def of(
        cls, table: list[Columns], recipe: Recipe, supplied: SuppliedParts, reading_rules: ReadingRules, run: Run
    ) -> _PenaltyChoice:
        """Encode the rows and learn the structure; `table` is as in `_learn_calibrated`."""
        columns = table.pop()
        if supplied.cuts is not None:
            sampled_rows = supplied.cuts.sampled_rows
        else:
            sampled_rows = None if columns.origin is None else columns.origin.sampled_rows
        data = encode_needed(columns, recipe, supplied.cuts, reading_rules, run)
        data = data if run.distribute is None else run.distribute(data)
        prior, seed = supplied.align_prior(data.schema, recipe), recipe.seed or 0
        # Held-out rows choose the penalty, the arcs, or both. A sample of raw rows is kept for that, so that every fold
        # has its own cut points; all raw rows are kept if the held-out loss is to be measured on more than the sample.
        holds_out = _holds_out(recipe)
        sample = as_read = None
        if holds_out and prior is None and (supplied.cuts is None or supplied.cuts.method in DISCRETIZERS.words):
            sample = columns if columns.origin is None else columns.origin.drawn(seed)
            if sample is not None and (columns.origin is None or columns.origin.seed is None):
                # The selection of attributes is repeated in every fold, even if the table has very many values.
                selects = recipe.max_attributes is not None and sample.n_rows <= WHOLE_ROWS
                if run.hold_out and (selects or is_measured_as_read(sample.n_rows, len(sample.attributes))):
                    as_read = sample
                sample = sample_of(sample, seed)
        del columns
        counts = Counts(data)
        structure = _structure(counts, recipe, supplied, run)
        if sample is not None and structure.method in SEARCHED_ONCE:
            # the folds keep the structure, so they keep its attributes
            sample = with_attributes(sample, {attribute.name for attribute in data.schema.attributes})
        elif sample is not None and structure.method in STRUCTURES.words and recipe.knowledge is None:
            # a column of one value is uninformative in every fold, and a wide table may have very many
            sample = with_attributes(sample, {name for name, own in sample.attributes.items() if not is_constant(own)})
        sample = sample if isinstance(structure, Dag) else None
        split = None
        if holds_out and structure.method == "interactions" and _is_learned_in_folds(structure, data.schema, recipe):
            # The structure is searched once: these held-out rows have no part in it, nor in cuts that ignore labels.
            searched: Index = STRUCTURES.load(structure.method, "searched_rows")(data.labels, data.split_by)
            split = split_outside(searched, data.labels, seed, data.split_by)
        return cls(recipe, supplied, reading_rules, counts, structure, prior, sampled_rows, sample, as_read, split)

    @property
    def n_folds(self) -> int:
        """The number of folds that choose the penalty."""
        return _n_folds(self.structure, self.counts)

    def try_folds(self, n: int, run: Run) -> _TriedFolds:
        """Choose penalty and arcs on the first `n` folds; return the choice with the losses of their held-out rows."""
        self._make_folds(slice(len(self.folds), n), run, keeps_paths=True)
        folds = self.folds[:n]
        word, penalty = _choose_penalty_and_arcs(self.counts, self.structure, folds, self.recipe, self.prior, run, None)
        prefix = prefix_of_arcs(word) if self.recipe.arcs == "cv" else ""
        losses = [
            0.0 - log_probabilities_of(tables, fold.rows)[fold.rows.labels, np.arange(fold.rows.n_rows)]
            for fold, tables in zip(folds, tables_of_folds(folds, penalty, prefix), strict=True)
        ]
        splits = held_out_splits(self.counts.data, self.recipe.seed or 0)[:n]
        held_out = _held_out_loss(penalty.log_loss or 0.0, self.counts.data, splits)
        self.tried = _TriedFolds(word, penalty, np.concatenate(losses), held_out)
        return self.tried

    def _make_folds(self, which: slice, run: Run, *, keeps_paths: bool) -> None:
        """Make the folds whose numbers are in `which`, and append them to `folds`."""
        seed = self.recipe.seed or 0
        if self.sample is None:
            made = held_out_folds(self.counts.data, seed, which)
        else:
            quiet = run._replace(watch=silent)
            made = folds_with_own_cuts(
                self.sample,
                lambda rows: encode_needed(rows, self.recipe, None, self.reading_rules, quiet),
                seed,
                which,
            )
        self.folds += [replace(fold, paths={}) for fold in made] if keeps_paths else made

    def complete(self, run: Run, known: _TriedFolds | None = None) -> _ChosenSettings:
        """Choose penalty and arcs on all folds, and compute the log-loss of held-out rows if `run.hold_out` is set.

        `known` has the penalty and arcs chosen on folds of a sample, which are used instead. Then the log-loss is also
        taken from it unless `run.hold_out` is set.
        """
        counts, structure, recipe, prior, split = self.counts, self.structure, self.recipe, self.prior, self.split
        data, seed = counts.data, recipe.seed or 0
        if _holds_out(recipe) and known is None:
            run.watch(Stage("penalty"))
            if split is not None:
                self.folds = [fold_of_split(data, split, seed)]
            else:
                self._make_folds(slice(len(self.folds), self.n_folds), run, keeps_paths=False)
        # If these folds hold out every row, from models that share nothing with it, their loss needs no other
        # measurement.
        is_measured = (
            known is None
            and data.n_rows <= most_rows_to_choose(data.n_rows, data.n_labels)
            and _is_learned_in_folds(structure, data.schema, recipe)
        )
        self.sample = None
        penalty = held_out = predictions = near = None
        if self.folds or recipe.penalty == "cv":
            tables: list[Array] | None = None if split is None else []
            if known is None:
                word, penalty = _choose_penalty_and_arcs(counts, structure, self.folds, recipe, prior, run, tables)
            else:
                word, penalty, _, held_out = known
            near = tables[0] if tables else None
            if run.hold_out and (self.folds or known is not None) and (run.keep_predictions or not is_measured):
                models = _HeldOutModels(recipe, self.supplied, self.reading_rules, structure, word, penalty, run)
                if split is None:
                    measured, predictions = models.measure(data, self.as_read)
                else:
                    measured, predictions, near = models.measure_split(data, split, near)
                held_out = None if is_measured else measured
            if isinstance(structure, Dag):
                structure = subset_of_arcs(word, counts, structure)
        self.as_read = None
        self.folds = []
        return _ChosenSettings(
            counts, structure, recipe, penalty, self.sampled_rows, held_out, prior, predictions, split, near
        )


class _TriedFolds(NamedTuple):
    """The choice on some folds: arcs (one of ARC_SETS) and penalty.

    `losses` has the log-loss of each held-out row, `held_out` the log-loss of all of them together.
    """

    arcs: str
    penalty: ChosenPenalty
    losses: Array
    held_out: HeldOutLoss


def _holds_out(recipe: Recipe) -> bool:
    return "cv" in (recipe.penalty, recipe.arcs)


def learn_from_counts(
    tables: StoredTables, recipe: Recipe, *, supplied: SuppliedParts = SuppliedParts(), run: Run = Run()
) -> FittedModel:
    """Learn, from stored contingency tables, the model that `learn` would learn from the rows counted in them.

    Raises BncliError if a table that the structure needs is missing, or if the recipe needs the rows themselves.
    """
    counts = Counts(tables)
    structure = _structure(counts, recipe, supplied, run)
    sampled_rows = None if supplied.cuts is None else supplied.cuts.sampled_rows
    prior = supplied.align_prior(tables.schema, recipe)
    fitted = _fit_parameters(_ChosenSettings(counts, structure, recipe, None, sampled_rows, prior=prior), run)
    rule = make_rule(_decision_options(recipe), tables.schema.labels, tables.schema.class_name)
    return replace(fitted, model=replace(fitted.model, rule=rule))


def _structure(counts: Counts, recipe: Recipe, supplied: SuppliedParts, run: Run) -> Structure:
    """Return the supplied structure or learn one; raise BncliError if its tables would exceed `run.memory`."""
    run.watch(Stage("structure"))
    if supplied.structure is None:
        structure = learn_structure(counts, recipe, run)
    else:
        structure = supplied.structure.resolve(counts.schema)
        if isinstance(structure, Regions) and structure.method == "interactions" and recipe.penalty == "cv":
            # If a search on these rows finds other regions, the supplied ones were edited, and no fold may search anew.
            learned = learn_structure(counts, recipe)
            is_same = isinstance(learned, Regions) and (learned.regions, learned.binnings) == (
                structure.regions,
                structure.binnings,
            )
            structure = structure if is_same else replace(structure, method="file")
    refuse_large(structure, counts.schema, recipe, run.memory)
    large = describe_large(structure, counts.schema, recipe)
    if large:
        run.watch(Note(large))
    return structure


def learn_structure(counts: Counts, recipe: Recipe, run: Run = Run()) -> Structure:
    """Learn the structure with the recipe's method; raise BncliError if the search would exceed `run.memory`.

    With `recipe.knowledge`, BncliError is also raised if the structure found does not obey it, and UsageError if the
    method cannot meet its requirements.
    """
    method = STRUCTURES.method(recipe.structure)
    assert method is not None
    options, constraints = recipe.options(method), None
    if recipe.knowledge is None:
        searched, attributes = narrow(counts, recipe.structure, run.watch)
    else:
        # A search among some of the attributes could leave out one that has a required arc.
        searched, attributes = counts, tuple(range(len(counts.schema.attributes)))
        constraints = ArcConstraints.of(Knowledge.parse(recipe.knowledge), counts.schema)
        if method.word != "nb":
            options["constraints"] = constraints
    refuse_wide(searched.schema, recipe, run.memory)
    if options.get("max_seconds") is not None:
        options["max_seconds"] = TimeLimit(options["max_seconds"], run.clock)
    structure: Structure = STRUCTURES.load(recipe.structure, "learn")(searched, watch=run.watch, **options)
    if constraints is not None:
        constraints.check(structure)
        structure = replace(structure, options={**structure.options, "knowledge": recipe.knowledge})
    return widen(structure, attributes, counts)


def _choose_penalty_and_arcs(
    counts: Counts,
    structure: Structure,
    folds: list[HeldOutFold],
    recipe: Recipe,
    prior: AlignedPrior | None,
    run: Run,
    tables: list[Array] | None,
) -> tuple[str, ChosenPenalty]:
    """Choose the arcs, the penalty or both on held-out rows; return one of ARC_SETS, and the penalty, chosen or fixed.

    The first result is `all` if the recipe does not choose arcs. If the list `tables` is given, the folds share the
    structure, and the tables of the first fold are appended to the list. With `run.advise`, if arcs are not chosen and
    naive Bayes has a lower loss on the same rows, a note says so.
    """
    method = PARAMETERS.method(recipe.param)
    assert method is not None
    build_space = partial(PARAMETERS.load(recipe.param, "build_space"), **recipe.options(method))

    def parameter_space(counts: Counts, structure: Structure) -> Space:
        space: Space = build_space(counts.with_prior(prior), structure)
        return space

    search = partial(_structure_in_fold, structure=structure, recipe=recipe, run=run)
    path = partial(penalty_path, center=float(recipe.penalty_center), watch=run.watch)
    if recipe.penalty == "cv":
        path = partial(path, shrink=not method.probabilities and prior is None)
        folds = folds[: _n_folds(structure, counts)]
        if structure.method == "interactions" and counts.data.n_rows >= MANY_ROWS:
            path = partial(path, grid=REGIONS_GRID)
    else:
        path = partial(path, grid=(float(recipe.penalty),))
    if recipe.arcs == "cv" and isinstance(structure, Dag) and folds:
        return choose_arcs(counts, structure, search, parameter_space, folds=folds, path=path)
    if tables is not None:
        return "all", path(folds, lambda counts: parameter_space(counts, structure), tables=tables)
    chosen = path(folds, lambda counts: parameter_space(counts, search(counts)))
    if run.advise and run.watch is not silent and folds and isinstance(structure, Dag) and structure.n_arcs:
        without_arcs = naive_bayes_loss(search, parameter_space, folds=folds, path=path, near=chosen.penalty)
        with_arcs = loss_of(chosen)
        if without_arcs < with_arcs:
            n_rows, n_labels = counts.data.n_rows, counts.data.n_labels
            on_sample = " on a sample" if n_rows > most_rows_to_choose(n_rows, n_labels) else ""
            arcs = "the arc" if structure.n_arcs == 1 else f"all {structure.n_arcs:,} arcs"
            losses = f"held-out log-loss{on_sample} {without_arcs:.4g}, against {with_arcs:.4g} with {arcs}"
            what = f"naive Bayes predicts better here: {losses} of {structure.method}"
            run.watch(Note(f"{what}; add --arcs cv to choose arcs by held-out log-loss"))
    return "all", chosen


def _n_folds(structure: Structure, counts: Counts) -> int:
    """Return the number of folds that choose the penalty: few for interactions, whose search and fits take long."""
    n_rows, by = counts.data.n_rows, counts.data.split_by
    is_many = n_rows >= MANY_ROWS or count_units(n_rows, by) >= MANY_UNITS_OF_REGIONS
    return FEW_FOLDS if structure.method == "interactions" and is_many else FOLDS


def _structure_in_fold(counts: Counts, structure: Structure, recipe: Recipe, run: Run) -> Any:
    """Return the structure for the training rows of a fold, learned again or as it is.

    It is kept if it was supplied or edited, if learning it takes too long (SEARCHED_ONCE), or if it consists of regions
    without cuts of their own. Regions with such cuts are learned again, because the cuts follow the rows closely.
    """
    has_own_cuts = not isinstance(structure, Regions) or any(map(any, structure.binnings))
    if structure.method in SEARCHED_ONCE or structure.method not in STRUCTURES.words or not has_own_cuts:
        return structure
    found = learn_structure(counts, recipe, run._replace(watch=silent))
    if isinstance(found, Dag):
        counts.keep_pairs((i, *parents) for i, parents in enumerate(found.parents))
    return found


def _is_learned_in_folds(structure: Structure, schema: Schema, recipe: Recipe) -> bool:
    """Return whether the folds share nothing that was learned from the labels of all rows.

    Folds of regions share attributes, cuts and levels; networks are learned again from raw rows in every fold.
    """
    ignores_labels = recipe.discretize not in SUPERVISED and not schema.pooled and recipe.max_attributes is None
    shares_nothing = isinstance(structure, Dag) or ignores_labels
    return shares_nothing and structure.method not in SEARCHED_ONCE


@dataclass(frozen=True)
class _HeldOutModels:
    """Models learned without some rows, with the settings chosen on all rows, to compute the loss of the rows left out.

    `arcs`, one of ARC_SETS, is the set of arcs that is kept; `chosen` is the penalty if held-out rows chose it.
    """

    recipe: Recipe
    supplied: SuppliedParts
    reading_rules: ReadingRules
    structure: Structure
    arcs: str
    chosen: ChosenPenalty | None
    run: Run

    def measure(self, data: Dataset, as_read: Columns | None) -> tuple[HeldOutLoss, HeldOutPredictions | None]:
        """Return the log-loss of held-out rows under models learned without them, and their predictions or None.

        Predictions are returned if `run.keep_predictions` is set. Structure and parameters are learned again from the
        other rows. If `as_read` has the raw rows, attributes are also selected again, and cuts and levels are learned
        again. Otherwise the attributes, cuts and levels of all rows are used: either there are so many rows that
        leaving some out hardly changes them, or the cuts were made by hand or come from a prior network.
        """
        self.run.watch(Stage("evaluate"))
        is_slow = not isinstance(self.structure, Dag) or self.structure.method in SEARCHED_ONCE
        splits = splits_to_measure(data.labels, self.recipe.seed or 0, data.split_by, is_slow=is_slow)
        quiet = self.run._replace(watch=silent, distribute=None)
        loss = weight = 0.0
        kept = []
        for number, (others, rows) in enumerate(splits):
            self.run.watch(Progress(number, len(splits), f"fold {number + 1} of {len(splits)}"))
            if as_read is None:
                training, held_out = data.take(others), data.take(rows)
                log_p = log_probabilities_of(self.fit(training, quiet).predictor, held_out)
                log_p_true = log_p[held_out.labels, np.arange(held_out.n_rows)]
            else:
                training = encode_needed(as_read.take(others), self.recipe, None, self.reading_rules, quiet)
                held_out_columns = as_read.take(rows)
                log_p = predict(self.fit(training, quiet), held_out_columns)
                log_p_true = log_p_of_true_labels(log_p, held_out_columns)
            kept += [log_p] if self.run.keep_predictions else []
            weights = np.ones(len(rows)) if data.weights is None else data.weights[rows]
            loss, weight = loss - float(weights @ log_p_true), weight + float(weights.sum())
        measured = _held_out_loss(loss / weight, data, splits)
        if not kept:
            return measured, None
        return measured, self._predictions(data, splits, kept)

    def measure_split(
        self, data: Dataset, split: RowSplit, near: Array | None
    ) -> tuple[HeldOutLoss, HeldOutPredictions | None, Array]:
        """Return the same as `measure` for one split of encoded rows, and the tables (K, n_cells) of its model.

        With tables `near`, the model keeps the structure of all rows, and its fit starts from these tables.
        """
        self.run.watch(Stage("evaluate"))
        others, rows = split
        held_out = data.take(rows)
        model = self.fit(data.take(others), self.run._replace(watch=silent, distribute=None), near)
        log_p = log_probabilities_of(model.predictor, held_out)
        weights = np.ones(len(rows)) if data.weights is None else data.weights[rows]
        loss = 0.0 - float(weights @ log_p[held_out.labels, np.arange(held_out.n_rows)]) / float(weights.sum())
        measured = _held_out_loss(loss, data, [split])
        kept = self._predictions(data, [split], [log_p]) if self.run.keep_predictions else None
        return measured, kept, model.tables.cells

    @staticmethod
    def _predictions(data: Dataset, splits: Sequence[RowSplit], kept: Sequence[Array]) -> HeldOutPredictions:
        rows = np.concatenate([rows for _, rows in splits])
        units = None if data.split_by is None or data.split_by.units is None else data.split_by.units[rows]
        weights_of_rows = None if data.weights is None else data.weights[rows]
        return HeldOutPredictions(np.concatenate(kept, axis=1), data.labels[rows], weights_of_rows, units)

    def fit(self, training: Dataset, quiet: Run, near: Array | None = None) -> Model:
        """Fit a model to these rows; if tables `near` its optimum are given, it keeps the structure of all rows."""
        counts, structure = Counts(training), self.structure
        if near is None and structure.method in STRUCTURES.words:
            structure = learn_structure(counts, self.recipe, quiet)
        if isinstance(structure, Dag):
            structure = subset_of_arcs(self.arcs, counts, structure)
        typed = self.recipe.tolerance
        enough = max(typed, ENOUGH_TO_MEASURE) if isinstance(typed, float) else ENOUGH_TO_MEASURE
        recipe = self.recipe.replaced(tolerance=enough)
        prior = self.supplied.align_prior(training.schema, self.recipe)
        predictor = learn_parameters(counts, structure, recipe, chosen=self.chosen, prior=prior, near=near).predictor
        return Model(training.schema, structure, predictor, self.recipe, training.n_rows, __version__)


def _fit_parameters(chosen: _ChosenSettings, run: Run) -> FittedModel:
    """Learn the parameters with the chosen settings, and make the model."""
    counts, structure, recipe, penalty, sampled_rows, held_out, prior, predictions, split, near = chosen
    parameters = learn_parameters(counts, structure, recipe, run.watch, chosen=penalty, prior=prior, near=near)
    uncertainty: ParameterUncertainty | None = None
    if run.intervals:
        with_prior = counts.with_prior(prior)
        if parameters.point is None:
            uncertainty = posterior_variances(with_prior, structure, str(recipe.smoothing), run.class_weights)
        else:
            settings = _optimizer_settings(recipe, penalty, has_prior=prior is not None)
            data, inner = counts.data, list[RowSplit]()
            if data.n_rows <= FEW_ROWS:
                inner = inner_splits(data.labels, FOLDS, recipe.seed or 0, data.split_by)
                inner = inner[:1] if parameters.n_parameters >= MANY_PARAMETERS else inner
            folds = [(Counts(data.take(others)).with_prior(prior), data.take(rows)) for others, rows in inner]
            uncertainty = laplace(with_prior, structure, recipe, parameters, settings, folds, run.class_weights)
    if held_out is not None:
        parameters = replace(parameters, held_out=held_out)
    elif penalty is not None and penalty.log_loss is not None:
        n_folds = _n_folds(structure, counts)
        splits = [split] if split is not None else held_out_splits(counts.data, recipe.seed or 0, n_folds)
        measured = _held_out_loss(penalty.log_loss, counts.data, splits) if splits else None
        parameters = replace(parameters, held_out=measured)
    parameters = replace(parameters, held_out_predictions=predictions)
    model = Model(
        counts.schema,
        structure,
        parameters.predictor,
        recipe,
        counts.source.n_rows,
        __version__,
        penalty,
        parameters.restarts,
        held_out=held_out,
        uncertainty=uncertainty,
    )
    return _complete(model, parameters, sum(counts.source.n_missing), sampled_rows, run.watch)


def _held_out_loss(log_loss: float, data: Dataset, splits: Sequence[RowSplit]) -> HeldOutLoss:
    base = base_of_splits(data, splits)
    assert base is not None
    return HeldOutLoss(log_loss, base, *_count_held_out(splits, data.split_by))


def _count_held_out(splits: Sequence[RowSplit], by: SplitBy | None) -> tuple[int, int]:
    """Return the number of rows held out in all splits together, and the number of their units."""
    rows = np.concatenate([rows for _, rows in splits])
    return len(rows), count_units(len(rows), None if by is None else by.take(rows))


def learn_parameters(
    counts: Counts,
    structure: Structure,
    recipe: Recipe,
    watch: Watch = silent,
    *,
    chosen: ChosenPenalty | None = None,
    prior: AlignedPrior | None = None,
    near: Array | None = None,
) -> Parameters:
    """Learn the parameters with the recipe's method; `chosen` is the penalty if held-out rows chose it.

    `near` are tables (K, n_cells) near which the optimum is expected; a fit of effects by the default optimizer starts
    from them. With a prior and an optimizer, `cll_start` of the result is NaN.
    """
    watch(Stage("parameters"))
    settings: dict[str, Any] = {}
    if recipe.optimizer is not None:
        of_optimizer = _optimizer_settings(recipe, chosen, has_prior=prior is not None)
        # the path does not matter where samples may grow
        settings["settings"] = replace(of_optimizer, near=near) if of_optimizer.growth else of_optimizer
    elif recipe.restarts:
        settings["starts"] = Starts(recipe.restarts, recipe.seed)
    options = recipe.options(PARAMETERS.method(recipe.param))
    parameters: Parameters = PARAMETERS.load(recipe.param, "learn")(
        counts.with_prior(prior), structure, watch=watch, **options, **settings
    )
    if prior is not None and recipe.optimizer is not None:
        # The likelihood that the optimizer reports includes the rows that represent the prior.
        cll = closed_form(counts, parameters.tables).cll
        parameters = replace(parameters, cll_start=math.nan, cll=cll)
    if chosen is None:
        return parameters
    if chosen.shrinkage is not None:
        parameters = shrink_parameters(parameters, counts, chosen.shrinkage)
    return replace(parameters, penalty_cv=chosen)


def _optimizer_settings(recipe: Recipe, chosen: ChosenPenalty | None, *, has_prior: bool) -> OptimizerSettings:
    options = recipe.options(OPTIMIZERS.method(recipe.optimizer))
    early_stop, restarts = recipe.early_stop or "none", recipe.restarts or 0
    # Growing samples of the rows reach the optimum faster, but along another path, so they are used only if the path
    # does not matter.
    is_default = recipe.optimizer == OPTIMIZERS.default and options.get("preconditioner", "on") == "on"
    wants_path = has_prior or restarts or early_stop != "none" or (recipe.max_iterations or 0) < FEWEST_ITERATIONS
    return OptimizerSettings(
        init=str(recipe.init),
        penalty=float(recipe.penalty or 0.0) if chosen is None else chosen.penalty,
        penalty_center=float(recipe.penalty_center or 0.0),
        optimizer=recipe.optimizer,
        tolerance=None if recipe.tolerance == "auto" else recipe.tolerance,
        max_iterations=recipe.max_iterations,
        early_stop=early_stop,
        seed=recipe.seed or 0,
        restarts=restarts,
        options=options,
        growth=Growth() if is_default and not wants_path else None,
    )


def _complete(
    model: Model, parameters: Parameters, n_missing: int, sampled_rows: int | None, watch: Watch
) -> FittedModel:
    """Complete the record of a new model, check its monotonicity constraints, and report warnings about it."""
    # The rule for pooling levels is recorded only if levels were pooled.
    recipe = model.recipe if model.schema.pooled else model.recipe.replaced(group_levels=None)
    model = replace(model, recipe=recipe, sampled_rows=sampled_rows)
    check_directions(model)
    for warning in warnings_about(model, parameters):
        watch(Note(warning, warning=True))
    return FittedModel(model, parameters, n_missing)


def warnings_about(model: Model, parameters: Parameters) -> Iterator[str]:
    """Yield a warning for each problem of a fitted model, the worst first.

    A model is useless if it uses no attribute, or if it is no better than the class frequencies on held-out rows. More
    parameters than rows are common with many attributes or classes and do no harm if a penalty keeps them small, so
    `_warn_of_parameters` reports only two kinds of cases. It is not applied to an ensemble, whose tables were chosen on
    held-out rows.
    """
    schema, is_ensemble, held_out = model.schema, isinstance(model.predictor, Ensemble), parameters.held_out
    if not model.attributes:
        n = len(schema.attributes)
        which = "the only attribute" if n == 1 else f"any of the {n:,} attributes"
        what = f"the model does not use {which}: every row gets the class frequencies of {schema.class_name!r}"
        is_uncut = any(isinstance(a, NumericAttribute) and not a.informative for a in schema.attributes)
        if any(a.informative for a in schema.attributes):
            yield (
                f"{what}, which have the lower held-out log-loss; if another column is the class, give it with --class"
            )
        elif is_uncut and model.recipe.discretize in SUPERVISED:
            cut = "add --discretize equal-frequency to cut numeric columns regardless of the class"
            yield f"{what}; {cut}, or give another class with --class"
        else:
            yield f"{what}; if another column is the class, give it with --class"
        return
    if held_out is not None and held_out.log_loss >= held_out.base_log_loss * (1 - NEGLIGIBLE_GAIN):
        losses = f"log-loss {held_out.log_loss:.4g} against {held_out.base_log_loss:.4g} nats per row"
        other = "" if is_ensemble else "try --structure auto, or "
        yield (
            f"on held-out rows, the model is no better than the class frequencies alone ({losses}); "
            f"{other}look for attributes with more information about {schema.class_name!r}"
        )
    if not is_ensemble and parameters.n_parameters > model.n_rows:
        yield from _warn_of_parameters(model, parameters.n_parameters)


def _warn_of_parameters(model: Model, n_parameters: int) -> Iterator[str]:
    """Yield a warning if one column causes most of the parameters, or if there are far too many without a penalty.

    The column is the one whose families have the largest total number of cells (ties: the first). The first warning
    requires that it is categorical, has more than MANY_VALUES values, and is in families with more than half of all
    cells.
    """
    families, schema = model.predictor.families, model.schema
    n_cells = [0] * len(schema.attributes)
    for family in families:  # not attribute by attribute, because there may be very many
        for i in family.attributes:
            n_cells[i] += family.n_cells
    largest = max(range(len(n_cells)), key=n_cells.__getitem__)
    share = n_cells[largest] / sum(family.n_cells for family in families)
    what = f"{n_parameters:,} parameters from {model.n_rows:,} rows"
    naive_bayes = "" if model.recipe.structure == "nb" else " or learn --structure nb"
    attribute, n_values = schema.attributes[largest], schema.cardinalities[largest]
    if isinstance(attribute, CategoricalAttribute) and n_values > MANY_VALUES and 2 * share > 1:
        leave_out = f"leave it out (--ignore {attribute.name!r}){',' if naive_bayes else ' or'}"
        advice = f"{leave_out} pool its values (--group-levels){naive_bayes}"
        yield (
            f"{what}: {100 * share:.0f} % of them belong to {attribute.name!r}, which has {n_values:,} values; {advice}"
        )
    elif n_parameters > PARAMETERS_PER_ROW * model.n_rows and not model.penalty:
        largest_family = max(families, key=lambda family: family.n_cells).attributes
        names = ", ".join(repr(schema.attributes[i].name) for i in largest_family)
        penalised = "--param discriminative" if model.recipe.penalty is None else "--penalty cv"
        yield f"{what} and no penalty (the largest table is over {names}); learn with {penalised}{naive_bayes}"
