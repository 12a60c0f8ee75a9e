"""Learns a model from a table and writes it: `fit` reads, learns, writes, and reports what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from bncli.catalogue import MARGINALIZED
from bncli.engine.calibration import Calibration
from bncli.engine.coding import missing_policy
from bncli.engine.data.schema import NumericAttribute, ReadingRules, Schema, Unseen
from bncli.engine.learn import FittedModel, learn, learn_from_counts
from bncli.engine.model import ChosenPenalty, Ensemble, HeldOutLoss, Model, Restarts, StoppedBy, TriedCandidate
from bncli.engine.prediction.monitoring import even_sample, training_log_p
from bncli.engine.prediction.scoring import compile_scorer
from bncli.engine.prediction.verification import with_self_test
from bncli.engine.structures.named_structure import NamedStructure
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError, UsageError
from bncli.files.artifacts.counts import read_counts
from bncli.files.artifacts.model import CALIBRATION, calibration_json, rule_summary_json, write_model
from bncli.files.artifacts.predictors import trials_json
from bncli.files.artifacts.provenance import arcs_json, restarts_json, shrinkage_json, tried_json
from bncli.files.paths import check_data, check_outputs, default_output_path
from bncli.files.reading.column_assembly import check_labels, warn_about_numeric_labels
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.cluster.fitting import refuse_on_cluster, rows_on_cluster
from bncli.steps.inputs import SuppliedFiles
from bncli.steps.model_views import RegionsReport, regions_report
from bncli.steps.run import Moves, NamedMove, Stopwatch, Trace, Warnings, limited
from bncli.watch import Note, Run, Stage


@dataclass(frozen=True)
class FitReport:
    """What was learnt from how much, how well it fits, and how long each stage took.

    `attributes` counts those of the schema, of which `uninformative` ones (one value in all) and those that the
    structure leaves out, `left_out`, are not used; `unnamed` are those of them that a structure file does not name, the
    others do not help to tell the class. `holes` counts the missing values of informative attributes that are
    marginalized: none where missing_policy is `level`. `cuts` are all cut points together, `arcs` those between
    attributes. `moves` are those of a greedy search for the structure, in the order they were made. `regions` is None
    for a network. `penalty` is None for parameters in closed form; penalty_cv says how it was chosen, if it was.
    `class_weights`, None where rows of all classes count alike, say by what those of each label were multiplied;
    `decisions`, None where nothing is to be decided, how.
    `trials` are the candidates of an ensemble, whose `penalty` is that of its heaviest component.
    cll_start and cll are conditional log-likelihoods of the training rows in nats, without the penalty; log_loss is
    -cll a row; all three are NaN of a model learnt from counts. `held_out` has the losses of rows that were held out to
    choose something by: None where none were, as with a penalty that was typed. With random starts all figures are
    those of the start that is kept; `restarts`, None without them, says where each of them ended. `warnings` say why
    the model may not be worth what it looks like.
    """

    model: str
    class_name: str
    labels: tuple[str, ...]
    rows: int
    attributes: int
    used: int
    uninformative: tuple[str, ...]
    left_out: tuple[str, ...]
    unnamed: tuple[str, ...]
    missing_policy: str
    holes: int
    classes: int
    cuts: int
    structure: str
    structure_learned: str
    arcs: int
    moves: tuple[NamedMove, ...]
    regions: RegionsReport | None
    param: str
    parameters: int
    penalty: float | None
    penalty_cv: ChosenPenalty | None
    trials: tuple[TriedCandidate, ...]
    cll_start: float
    cll: float
    log_loss: float
    held_out: HeldOutLoss | None
    restarts: Restarts | None
    iterations: int
    evaluations: int
    stopped_by: StoppedBy
    warnings: tuple[str, ...]
    seconds: dict[str, float]
    class_weights: dict[str, float] | None = None
    decisions: dict[str, Any] | None = None
    calibration: Calibration | None = None

    def as_json(self) -> dict[str, Any]:
        """Return every field by name, the name of the class as `class`; the reason for stopping as its word."""
        fields = {"class" if name == "class_name" else name: value for name, value in asdict(self).items()}
        lists = {name: list(fields[name]) for name in ("labels", "uninformative", "left_out", "unnamed", "warnings")}
        lists["moves"] = [move._asdict() for move in self.moves]
        tried = None if self.penalty_cv is None else tried_json(self.penalty_cv)
        lists["trials"] = trials_json(self.trials)
        chosen = {"arcs_cv": arcs_json(self.penalty_cv), "shrunk": shrinkage_json(self.penalty_cv)}
        words = {"stopped_by": self.stopped_by.word, "penalty_cv": tried, **chosen}
        held_out = None if self.held_out is None else self.held_out._asdict()
        restarts = None if self.restarts is None else restarts_json(self.restarts)
        fields[CALIBRATION] = None if self.calibration is None else calibration_json(self.calibration)
        for name in ("class_weights", "decisions", CALIBRATION):
            if fields[name] is None:
                del fields[name]
        return fields | lists | words | {"held_out": held_out, "restarts": restarts}


class FitExtras(NamedTuple):
    """What is made beside the model: a file of the optimizer's iterations; quantiles of ln P(x) of training rows."""

    trace: str | None = None
    log_p_quantiles: bool = False


def fit(
    source: Source,
    recipe: Recipe,
    *,
    output: str | None = None,
    supplied: SuppliedFiles = SuppliedFiles(),
    extras: FitExtras = FitExtras(),
    unseen: Unseen = "average",
    run: Run = Run(),
) -> FitReport:
    """Learn from `source` and writes the model to `output`, or beside the data.

    What is supplied stands in for the recipe's methods, and the model records the methods that made it: cutting,
    structure and parameters one by one give the same file as all at once.
    """
    model_path = default_output_path(source.paths, ".bnc") if output is None else output
    for path in source.paths:
        check_data(path)  # or its missing folder would be missed as that of the model
    check_outputs(
        (model_path, extras.trace, source.bad_rows_file), (*source.paths, source.schema_file, *supplied.paths)
    )
    recipe = supplied.recipe(recipe)
    if extras.log_p_quantiles:
        # UsageError for parameters that have no P(x).
        if recipe.param not in MARGINALIZED:
            what = f"--log-p-quantiles has no effect with --param {recipe.param}: "
            what += "only a network with probabilities has P(x)"
            raise UsageError(what, hint=f"use --param {', '.join(MARGINALIZED)}, or leave it out")
        if recipe.calibrate is not None:
            what = "--log-p-quantiles has no effect with --calibrate: a calibrated model is no network any more"
            raise UsageError(what, hint="leave one of them out")
    if run.cluster is not None:
        refuse_on_cluster(source, recipe, supplied)
    stopwatch = Stopwatch(warned := Warnings(run.watch))
    tracer = Trace(stopwatch)
    moves = Moves(tracer)
    with rows_on_cluster(source, recipe, supplied, model_path, run._replace(watch=moves)) as (rows, files, ready):
        learnt = _fit_and_write(rows, recipe, files, unseen, ready, extras.log_p_quantiles)
    tracer(Stage("write"))
    if extras.trace is not None:
        tracer.write(extras.trace)
    write_model(model_path, with_self_test(learnt.model))
    report = _report(model_path, learnt, supplied.structure)
    schema = learnt.model.schema
    return report(moves=moves.named(schema), warnings=tuple(warned.texts), seconds=stopwatch.seconds())


def _fit_and_write(
    source: Source, recipe: Recipe, supplied: SuppliedFiles, unseen: Unseen, run: Run, log_p_quantiles: bool
) -> FittedModel:
    run.watch(Stage("read"))
    columns = [supplied.read(source, run, recipe)]
    sample = even_sample(columns[0]) if log_p_quantiles else None
    learnt = learn(
        columns.pop(),  # nothing holds the table here, so that it may be freed on the way
        recipe,
        given=supplied,
        reading=ReadingRules(source.missing_tokens, unseen),
        run=limited(run),
    )
    if sample is None:
        return learnt
    try:
        found = training_log_p(learnt.model, sample, compile_scorer(learnt.model).used)
    except ModelError as error:
        run.watch(Note(f"no quantiles of ln P(x): {error.what}", warning=True))
        return learnt
    return replace(learnt, model=replace(learnt.model, log_p=found))


def _report(path: str, learnt: FittedModel, supplied: NamedStructure | None) -> Callable[..., FitReport]:
    """Return the report without what was heard while learning: moves, warnings, seconds."""
    model, parameters = learnt.model, learnt.parameters
    schema = model.schema
    used = model.attributes
    left_out = tuple(a.name for i, a in enumerate(schema.attributes) if a.informative and i not in used)
    return partial(
        FitReport,
        model=path,
        class_name=schema.class_name,
        labels=schema.labels,
        rows=model.n_rows,
        attributes=len(schema.attributes),
        used=len(used),
        uninformative=tuple(a.name for a in schema.attributes if not a.informative),
        left_out=left_out,
        unnamed=() if supplied is None else tuple(name for name in left_out if name not in supplied.nodes),
        missing_policy=schema.missing_policy,
        holes=learnt.missing,
        classes=len(schema.labels),
        cuts=sum(len(a.cuts) for a in schema.attributes if isinstance(a, NumericAttribute)),
        structure=model.recipe.structure,
        structure_learned=model.structure_learned,
        arcs=model.structure.n_arcs if isinstance(model.structure, Dag) else 0,
        regions=regions_report(model),
        param=model.recipe.param,
        parameters=parameters.n_parameters,
        penalty=model.penalty,
        penalty_cv=model.penalty_cv,
        trials=model.predictor.trials if isinstance(model.predictor, Ensemble) else (),
        cll_start=parameters.cll_start,
        cll=parameters.cll,
        log_loss=0.0 - parameters.cll / _weight(schema, model.n_rows),
        held_out=parameters.held_out,
        restarts=parameters.restarts,
        iterations=parameters.iterations,
        evaluations=parameters.evaluations,
        stopped_by=parameters.stopped_by,
        **_after_learning(model),
    )


def _weight(schema: Schema, n_rows: int) -> float:
    """Return the sum of row weights, which every attribute's frequencies and missing values add up to."""
    if not schema.attributes:
        return float(n_rows)
    return math.fsum((*schema.attributes[0].frequencies, schema.attributes[0].missing_weight))


def _after_learning(model: Model) -> dict[str, Any]:
    """Return what was done beside the tables."""
    return {
        "class_weights": _by_label(model.schema, model.class_weights),
        "decisions": None if model.rule is None else rule_summary_json(model.rule),
        "calibration": model.calibration,
    }


def _by_label(schema: Schema, numbers: tuple[float, ...] | None) -> dict[str, float] | None:
    return None if numbers is None else dict(zip(schema.labels, numbers, strict=True))


def fit_counts(
    path: str,
    recipe: Recipe,
    *,
    output: str | None = None,
    supplied: SuppliedFiles = SuppliedFiles(),
    unseen: Unseen = "average",
    run: Run = Run(),
) -> FitReport:
    """Fit a model to the counts in the file at `path`: the same bytes as `fit` makes from the rows.

    That is, with the cuts that they were counted under. What takes the rows themselves is a BncliError.
    """
    model_path = default_output_path((path,), ".bnc") if output is None else output
    check_outputs((model_path,), (path, *supplied.paths))
    stopwatch = Stopwatch(warned := Warnings(run.watch))
    stopwatch(Stage("read"))
    counted = read_counts(path)
    check_labels(counted.cuts.class_name, counted.labels, counted.n_rows, path)
    warn_about_numeric_labels(counted.cuts.class_name, counted.labels, counted.n_rows, stopwatch)
    supplied = replace(supplied, cuts=counted.cuts)
    recipe = supplied.recipe(recipe)
    tables = counted.stored(missing_policy(recipe), ReadingRules(counted.missing_tokens, unseen))
    del counted
    learnt = learn_from_counts(tables, recipe, given=supplied, run=limited(run._replace(watch=stopwatch)))
    stopwatch(Stage("write"))
    write_model(model_path, with_self_test(learnt.model))
    report = _report(model_path, learnt, supplied.structure)
    return report(moves=(), warnings=tuple(warned.texts), seconds=stopwatch.seconds())
