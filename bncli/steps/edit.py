"""Edit an effect of a model, and record who changed it, why, and what was there before.

If rows are given, the other tables are refitted to them while all edited effects are fixed. First all tables W are
learned from the rows with the cuts, structure, penalty and method of the model. Then the effects are replaced by the
edited ones, and

    CLL(W + L z) - penalty / 2 |z|^2

is maximised over z, where L removes the part of z that would change the edited effects.

The cost of the edit is the difference in held-out log-loss between the model with the edit and the model without it.
Both are learned five times, each time without the rows of one of five stratified folds. If the model was fitted with
groups, each group is in one fold; with times, the latest rows are held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import apply_class_weights
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import ReadingRules, direction_of
from bncli.engine.data.splits import inner_splits
from bncli.engine.kernels.arrays import Array
from bncli.engine.learn import learn_parameters
from bncli.engine.model import Edit, Model, RefitLoss, Tables
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.monotone import TOLERANCE, lowest_difference
from bncli.engine.prediction.edits import (
    ROUNDING,
    EditableEffect,
    change_by_set,
    change_by_smoothing,
    change_to_monotone,
    editable_effect,
    parameter_arrays,
    undo_edit,
    with_added_family,
    with_arrays,
)
from bncli.engine.prediction.scoring import log_probabilities_of
from bncli.engine.prediction.verification import TOLERANCE as SAME_PROBABILITY
from bncli.engine.prediction.verification import largest_change, with_self_test
from bncli.engine.training_data import cuts_of_schema
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.model import read_model, write_model
from bncli.files.artifacts.provenance import edit_json
from bncli.files.paths import check_outputs
from bncli.files.reading.rows_by_schema import read_labelled
from bncli.files.reading.source import Source
from bncli.steps.run import Stopwatch, with_memory_limit
from bncli.watch import Note, Run, Stage

FOLDS = 5
_PENALTY = 1.0
"""The penalty of a refit if the model has none, or a penalty of 0."""
FixedEffect = tuple[EditableEffect, Array]
"""An effect, and the values at which it is fixed."""
_GRADIENT, _ITERATIONS = 1e-8, 2000


class EditChoice(NamedTuple):
    """A requested edit of an effect, by exactly one of set, flatten, smooth and monotone.

    effect: the names of its attributes. set: strings VALUE=LOG_ODDS. monotone: "up" or "down". label: the label whose
    log-odds `set` or `monotone` changes, or None for the second of two labels. why, by, when: the reason, author and
    date in the record of the edit.
    """

    effect: tuple[str, ...]
    set: tuple[str, ...] = ()
    flatten: bool = False
    smooth: bool = False
    monotone: str | None = None
    label: str | None = None
    why: str = ""
    by: str = ""
    when: str = ""


@dataclass(frozen=True)
class EditReport:
    """The edits of a model, and the file that was written.

    output: None if no file was written. done: the edit that was made or, if `undone` is true, the edit that was undone;
    None if the edits were only listed.
    """

    model: str
    output: str | None
    labels: tuple[str, ...]
    edits: tuple[Edit, ...]
    done: Edit | None
    undone: bool
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return every field by name; `edits` are in order, and include `done` unless it was undone."""
        return {
            "model": self.model,
            "output": self.output,
            "edits": [edit_json(edit, self.labels) for edit in self.edits],
            "done": None if self.done is None else edit_json(self.done, self.labels),
            "undone": self.undone,
            "seconds": self.seconds,
        }


def list_edits(path: str) -> EditReport:
    model = read_model(path)
    return EditReport(path, None, model.schema.labels, model.edits, None, False, {})


def undo(path: str, output: str | None = None) -> EditReport:
    """Undo the last edit of the model in the file `path`, and write it to `output` (by default to `path`).

    Raises UsageError for a model without edits.
    """
    output = output or path
    check_outputs((output,), ())
    model = read_model(path)
    if not model.edits:
        raise UsageError("there is no edit to undo", where=path)
    before = undo_edit(model)
    if before.self_test is not None and largest_change(before, before.self_test) > SAME_PROBABILITY:
        before = with_self_test(before)  # the model was calibrated after the edit
    write_model(output, before)
    return EditReport(path, output, model.schema.labels, before.edits, model.edits[-1], True, {})


def edit(
    path: str, choice: EditChoice, output: str | None = None, refit: Source | None = None, *, run: Run = Run()
) -> EditReport:
    """Edit the model in the file `path`, and write it to `output` (by default to `path`).

    refit: rows to which the other tables are refitted. Raises UsageError for an effect, value or label that the model
    does not have, for an edit that changes nothing, and for one that violates a monotonicity constraint. Raises
    ModelError for a model whose effects cannot be edited or refitted, and for rows that do not fit the model. Raises
    BncliError if no row can be held out.
    """
    output = output or path
    check_outputs((output,), () if refit is None else (*refit.paths, refit.schema_file))
    watch = Stopwatch(run.watch)
    model = read_model(path)
    try:
        edited = edit_model(model, choice, refit, run=run._replace(watch=watch))
    except ModelError as error:
        raise type(error)(error.what, where=error.where or path, hint=error.hint) from None
    if model.rule is not None and model.rule.held_out is not None:
        what = "the threshold or prediction sets were chosen from held-out predictions before the edit"
        watch(Note(f"{what}; set them again with bncli score --threshold or --sets", warning=True))
    watch(Stage("write"))
    write_model(output, edited)
    return EditReport(path, output, model.schema.labels, edited.edits, edited.edits[-1], False, watch.seconds())


def edit_model(model: Model, choice: EditChoice, refit: Source | None = None, *, run: Run = Run()) -> Model:
    """Return the edited model, with the edit recorded and, if the model had a self-test, with a new one.

    The edited model has no intervals of probabilities. Raises the errors of `edit`.
    """
    schema = model.schema
    effect = editable_effect(model, choice.effect)
    label = _label_position(choice, schema.labels)
    predictor = model.predictor
    adds_table = effect.host.array == len(parameter_arrays(predictor))
    if adds_table:
        predictor = with_added_family(predictor, effect.host.family)
    arrays = parameter_arrays(predictor)
    before = effect.read(arrays)
    targets: dict[str, float] = {}
    if choice.set:
        action = "set"
        change, targets = change_by_set(effect, before, choice.set, label)
    elif choice.flatten:
        action, change = "flatten", -before
    elif choice.smooth:
        action, change = "smooth", change_by_smoothing(effect, before)
    else:
        action = f"monotone {choice.monotone}"
        change = change_to_monotone(effect, before, label, rising=choice.monotone == "up")
    if not np.abs(change).max(initial=0.0) > 0:
        raise UsageError(f"the effect of {effect.name} already has these values, so nothing would change")
    place = effect.host.array
    new = [*arrays]
    new[place] = arrays[place] + effect.embed(effect.scores(change))
    loss = None
    if refit is not None:
        new, loss = _refit(replace(model, predictor=predictor), effect, effect.read(new), refit, run)
    n_kept = len(arrays) - adds_table
    previous = {i: array for i, array in enumerate(arrays[:n_kept]) if (array != new[i]).any()}
    edited = replace(model, predictor=with_arrays(predictor, new), uncertainty=None)
    if model.uncertainty is not None:
        run.watch(
            Note("the edited model has no intervals of probabilities, because they were computed for the fitted model")
        )
    tables = edited.predictor if isinstance(edited.predictor, Tables) else edited.predictor.combined  # type: ignore[union-attr]
    if edited.schema.directed and lowest_difference(edited, tables) < -TOLERANCE:
        directed = [a.name for i, a in enumerate(edited.schema.attributes) if direction_of(edited.schema, i)]
        what = (
            f"the edit of {','.join(choice.effect)} violates a monotone direction of the model ({', '.join(directed)})"
        )
        raise UsageError(
            what, hint="choose values that keep the direction, or fit without --increasing and --decreasing"
        )
    after = effect.read(new)
    cells = {name: where for name, where in effect.cells.items() if not targets or name in targets}
    record = Edit(
        effect=tuple(attribute.name for attribute in effect.axis_attributes),
        action=action,
        label=None if action in ("flatten", "smooth") else schema.labels[label],
        cells=tuple(cells),
        values=tuple(tuple(_without_rounding(after[where], targets.get(name), label)) for name, where in cells.items()),
        before=tuple(tuple(before[where].tolist()) for where in cells.values()),
        temperature=effect.temperature,
        why=choice.why,
        by=choice.by,
        when=choice.when,
        refit=loss,
        previous=previous,
        previous_test=None if model.self_test is None else model.self_test.probabilities,
        added=adds_table,
    )
    edited = replace(edited, edits=(*model.edits, record))
    return edited if model.self_test is None else with_self_test(edited)


def _without_rounding(values: Array, target: float | None, label: int) -> list[float]:
    """Return the log-odds (K,) of a cell with rounding errors removed.

    Values within ROUNDING of 0 become 0. If the value of `label` is within ROUNDING of `target`, the value that the
    user requested, it becomes `target`; if there are two labels, the other one becomes -`target`.
    """
    shown = np.where(np.abs(values) < ROUNDING, 0.0, values)
    if target is not None and abs(shown[label] - target) < ROUNDING:
        shown[label] = target
        if len(shown) == 2:
            shown[1 - label] = -target
    return [value + 0.0 for value in shown.tolist()]


def _label_position(choice: EditChoice, labels: Sequence[str]) -> int:
    """Return the position of the label to edit; raise UsageError if it is unknown, missing, or given without effect."""
    takes_label = choice.set or choice.monotone
    if choice.label is None:
        if takes_label and len(labels) != 2:
            what = f"--label is missing: the class has {len(labels)} labels"
            raise UsageError(what, hint=f"choose the label whose log-odds change, as in --label {labels[0]}")
        return len(labels) - 1
    if not takes_label:
        raise UsageError("--label has no effect without --set or --monotone", hint="leave it out")
    if choice.label not in labels:
        listed = ", ".join(labels[:8])
        raise UsageError(f"--label {choice.label}: the class has no such label", hint=f"its labels are {listed}")
    return labels.index(choice.label)


def _refit(
    model: Model, effect: EditableEffect, target: Array, source: Source, run: Run
) -> tuple[list[Array], RefitLoss]:
    """Return the arrays of the model refitted with the effect fixed at `target`, and the held-out log-losses.

    Raises ModelError for an ensemble, for a model with monotonicity constraints, and for rows that do not fit the
    model. Raises BncliError if no row can be held out.
    """
    if not isinstance(model.predictor, Tables):
        what = "--refit needs a model with a single set of tables, but the model is an ensemble"
        raise ModelError(what, hint="leave --refit out, or fit a model with --structure nb, tan or interactions")
    if model.schema.directed:
        what = "--refit cannot keep the directions of a model fitted with --increasing or --decreasing"
        raise ModelError(what, hint="leave it out")
    data = _read_rows(model, source, run)
    run.watch(Stage("evaluate"))
    # Effects that earlier edits changed are fixed too.
    now = parameter_arrays(model.predictor)
    earlier = {own.attributes: own for own in (editable_effect(model, edit.effect) for edit in model.edits)}
    before: list[FixedEffect] = [(own, own.read(now)) for own in earlier.values()]
    after = [*((own, fixed) for own, fixed in before if own.attributes != effect.attributes), (effect, target)]
    losses, tested = np.zeros(2), 0.0
    splits = inner_splits(data.labels, FOLDS, 0, data.split_by)
    if not splits:
        raise BncliError(
            "none of the rows to refit to can be held out",
            where=source.paths[0],
            hint="add rows to the table of --refit",
        )
    for others, rows in splits:
        training, held_out = data.take(others), data.take(rows)
        learned = _learn_tables(model, training)
        weights = np.ones(held_out.n_rows) if held_out.weights is None else held_out.weights
        tested += float(weights.sum())
        for i, effects in enumerate((before, after)):
            log_p = log_probabilities_of(_fit_around(model, effects, learned, training), held_out)
            losses[i] -= float(weights @ log_p[held_out.labels, np.arange(held_out.n_rows)])
    losses /= tested
    run.watch(Stage("parameters"))
    fitted = _fit_around(model, after, _learn_tables(model, data), data)
    return parameter_arrays(fitted), RefitLoss(data.n_rows, float(losses[1]), float(losses[0]))


def _read_rows(model: Model, source: Source, run: Run) -> Dataset:
    """Read the rows and encode them with the cuts of the model.

    Raises ModelError if the rows do not have the same labels as the model, or if an attribute would have another number
    of codes than in the model.
    """
    schema = model.schema
    if model.split is not None:  # held out as when the model was fitted
        *group, last = model.split.columns
        has_time = "time" in model.split.kind
        source = replace(source, group=tuple(group if has_time else (*group, last)), time=last if has_time else None)
    memory = with_memory_limit(run).memory
    run.watch(Stage("read"))
    columns = read_labelled(source, schema, threads=run.threads, watch=run.watch, memory=memory)
    assert columns.label is not None
    missing = [label for label in schema.labels if label not in columns.label.levels]
    if missing or len(columns.label.levels) != len(schema.labels):
        found, known = (
            ", ".join(labels[:5]) + ", ..." * (len(labels) > 5) for labels in (columns.label.levels, schema.labels)
        )
        what = f"the rows have the labels {found}, but the model has {known}"
        raise ModelError(what, where=source.paths[0], hint="give rows of every label of the model, and no others")
    if model.class_weights is not None:
        of_label = dict(zip(schema.labels, model.class_weights, strict=True))
        columns = apply_class_weights(columns, np.array([of_label[label] for label in columns.label.levels]))
    reading = ReadingRules(schema.missing_tokens, schema.unseen)
    data = learn_dataset(columns, cuts=cuts_of_schema(schema, model.recipe), reading=reading, run=run)
    for own, other in zip(schema.attributes, data.schema.attributes, strict=True):
        if own.cardinality != other.cardinality:
            what = f"'{own.name}' has values here, or missing values, that did not occur in the training rows"
            raise ModelError(what, where=source.paths[0], hint="fit the model again to these rows")
    position = [schema.labels.index(label) for label in data.schema.labels]
    return replace(data, schema=schema, labels=np.array(position)[data.labels].astype(data.labels.dtype))


def _learn_tables(model: Model, data: Dataset) -> Tables:
    """Learn tables over the families of the model from the rows, with its method and penalty.

    Tables that edits have added are all 0. Raises BncliError if the families differ from the model's.
    """
    penalty = model.penalty_cv
    recipe = model.recipe if model.penalty is None else model.recipe.replaced(penalty=model.penalty)
    tables = learn_parameters(Counts(data), model.structure, recipe, chosen=penalty).predictor
    families = model.tables.families
    if not isinstance(tables, Tables) or tables.families != families[: len(tables.families)]:
        raise BncliError("the tables of this model cannot be refitted", hint="leave --refit out")
    for family in families[len(tables.families) :]:  # the families that edits added
        with_table = with_added_family(tables, family)
        assert isinstance(with_table, Tables)
        tables = with_table
    return tables


def _fit_around(model: Model, effects: Sequence[FixedEffect], tables: Tables, data: Dataset) -> Tables:
    """Return the tables with these effects set to their fixed values, and everything else refitted to the rows."""
    from scipy.optimize import minimize  # takes longer to import than a small edit

    if not effects:
        return tables
    arrays = parameter_arrays(tables)
    for effect, target in effects:
        place = effect.host.array
        arrays[place] = arrays[place] + effect.embed(effect.scores(target - effect.read(arrays)))
    start = Tables(arrays[0], tables.families, tuple(arrays[1:])).cells
    ends = np.cumsum([1, *(family.n_cells for family in tables.families)])
    spans = {number: slice(ends[number - 1], ends[number]) for number in range(1, len(ends))}
    penalty = model.penalty or _PENALTY
    likelihood = conditional_likelihood(data, tables.families)

    # An effect embedded in its host has no part in another one, so that the order does not matter.
    def without_effects(cells: Array) -> Array:
        result = cells.copy()
        for effect, _ in effects:
            total = sum(effect.extract(own, cells[:, spans[own.array]].T) for own in effect.parts)
            result[:, spans[effect.host.array]] -= effect.embed(np.asarray(total)).T
        return result

    def transposed(cells: Array) -> Array:
        result = cells.copy()
        for effect, _ in effects:
            values = effect.sum_host(cells[:, spans[effect.host.array]].T)
            for own in effect.parts:
                result[:, spans[own.array]] -= effect.spread(own, values).T
        return result

    def objective(flat: Any) -> tuple[float, Any]:
        z = flat.reshape(start.shape)
        cll, gradient = likelihood.value_and_gradient(start + without_effects(z))
        return penalty / 2 * float(flat @ flat) - cll, penalty * flat - transposed(gradient).ravel()

    found = minimize(
        objective,
        np.zeros(start.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _ITERATIONS, "gtol": _GRADIENT * data.total_weight, "ftol": 1e-13},
    )
    return Tables.of_cells(start + without_effects(found.x.reshape(start.shape)), tables.families)
