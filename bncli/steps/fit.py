"""Fit a model to a table or to counts, write it to a file, and report on it.

The report on a model with `--structure card` includes its points, and the probabilities of some totals.
"""

from __future__ import annotations

import itertools
import math
import shlex
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bncli.catalogue import MARGINALIZED
from bncli.engine.calibration import Calibration
from bncli.engine.data.columns import Columns, KnownCuts
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, ReadingRules, Schema, Unseen
from bncli.engine.data.splits import SplitRecord, record_split
from bncli.engine.evaluation.table_checks import Finding, TableCheck, too_good
from bncli.engine.kernels.arrays import Array
from bncli.engine.learn import FittedModel, learn, learn_from_counts
from bncli.engine.model import (
    ChosenPenalty,
    Ensemble,
    HeldOutLoss,
    HeldOutPredictions,
    Restarts,
    StoppedBy,
    TriedCandidate,
)
from bncli.engine.parameters.card_tables import equal_rows, n_ordered_groups
from bncli.engine.parameters.penalty_choice import FOLDS
from bncli.engine.parameters.uncertainty import refuse_intervals
from bncli.engine.prediction.monitoring import sample_evenly, summarise_log_p
from bncli.engine.prediction.scoring import compile_scorer
from bncli.engine.prediction.verification import with_self_test
from bncli.engine.structures.named_structure import NamedStructure
from bncli.engine.structures.structure import Dag, Family
from bncli.engine.training_data import missing_policy
from bncli.errors import ModelError, UsageError
from bncli.files.artifacts.counts import read_counts
from bncli.files.artifacts.model import CALIBRATION, calibration_json, rule_summary_json, split_json, write_model
from bncli.files.artifacts.predictors import trials_json
from bncli.files.artifacts.provenance import arcs_json, restarts_json, shrinkage_json, structures_json, tried_json
from bncli.files.paths import check_data, check_outputs, default_output_path
from bncli.files.reading.column_roles import check_labels, warn_about_numeric_labels
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.cluster.fitting import refuse_on_cluster, rows_on_cluster
from bncli.steps.effects_and_regions import RegionsReport, regions_report
from bncli.steps.learning_inputs import SuppliedFiles, check_training_table
from bncli.steps.run import NamedMove, Recorder, with_memory_limit
from bncli.watch import Note, Run, Stage

WIDEST = 60
"""The maximum total width of the columns of points, in characters; wider cards have one line per label instead."""
TOTALS = 11
"""The maximum number of totals whose probability is listed, evenly spaced from the lowest to the highest."""


@dataclass(frozen=True)
class FitReport:
    """The result of a fit: what was learned from which data, how well it fits, and the seconds of each stage.

    rows: number of training rows. holes: number of missing values of informative attributes, which are marginalized; 0
        with missing_policy `level`.
    attributes, used: number of attributes in the schema, and in the model. The other attributes are `uninformative`
        (they have a single code, such as a numeric attribute without cuts) or `left_out` by the structure; `unnamed`
        lists the attributes in left_out that are not in the structure file.
    cuts: number of cut points of all attributes. arcs: number of arcs between attributes.
    structure_learned: the method that learned the structure.
    moves: arcs changed by a greedy structure search, in order. regions: None for a network.
    penalty: None for parameters in closed form; for an ensemble the penalty of its heaviest component.
    penalty_cv: how the penalty was chosen, if by cross-validation. trials: the candidates of an ensemble.
    cll_start, cll: conditional log-likelihood of the training rows at the start and the end, in nats, without the
        penalty. log_loss: -cll divided by the total row weight. All three are NaN for a model learned from counts;
        cll_start is also NaN with an optimizer and a prior network.
    held_out: losses of held-out rows with the chosen settings, or None if no row was held out. held_out_predictions:
        the predictions of these rows, if `run.keep_predictions` is set.
    restarts: the objective reached from each start, the usual one first, or None without random restarts; the other
        fields describe the selected start.
    findings: properties of the table that make held-out metrics misleading.
    warnings: the text of every warning of the run.
    class_weights: the factor of each label's row weights, or None without class weights.
    decisions: the decision rule, or None if the model has none.
    split: how rows were split (row by row, by groups or by time), or None for a model learned from counts.
    card: the points of `--structure card`, or None for other models.
    intervals: a summary of the uncertainty of the parameters and its size in bytes, or None if not requested.
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
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    seconds: dict[str, float]
    class_weights: dict[str, float] | None = None
    decisions: dict[str, Any] | None = None
    calibration: Calibration | None = None
    split: SplitRecord | None = None
    card: dict[str, Any] | None = None
    intervals: dict[str, Any] | None = None
    held_out_predictions: HeldOutPredictions | None = None

    def card_lines(self) -> list[str]:
        """Return the printed lines of the card, or [] for other models."""
        return [] if self.card is None else card_lines(self.card, self.labels[-1])

    def as_json(self) -> dict[str, Any]:
        """Return the fields by name, with `class_name` as `class`.

        The predictions of held-out rows and optional keys that are None are left out.
        """
        plain = replace(self, held_out_predictions=None)
        fields = {"class" if name == "class_name" else name: value for name, value in asdict(plain).items()}
        del fields["held_out_predictions"]
        for name in ("labels", "uninformative", "left_out", "unnamed", "warnings"):
            fields[name] = list(fields[name])
        fields[CALIBRATION] = None if self.calibration is None else calibration_json(self.calibration)
        fields["structures_cv"] = structures_json(self.penalty_cv) or None
        for name in ("class_weights", "decisions", CALIBRATION, "split", "structures_cv", "card", "intervals"):
            if fields[name] is None:
                del fields[name]
        return fields | {
            "findings": [finding.as_json() for finding in self.findings],
            "moves": [move._asdict() for move in self.moves],
            "trials": trials_json(self.trials),
            "stopped_by": self.stopped_by.word,
            "penalty_cv": None if self.penalty_cv is None else tried_json(self.penalty_cv),
            "arcs_cv": arcs_json(self.penalty_cv),
            "shrunk": shrinkage_json(self.penalty_cv),
            "held_out": None if self.held_out is None else self.held_out._asdict(),
            "restarts": None if self.restarts is None else restarts_json(self.restarts),
            **({} if self.split is None else {"split": split_json(self.split)}),
        }


def fit(
    source: Source,
    recipe: Recipe,
    *,
    output: str | None = None,
    supplied: SuppliedFiles = SuppliedFiles(),
    trace: str | None = None,
    log_p_quantiles: bool = False,
    unseen: Unseen = "average",
    run: Run = Run(),
) -> FitReport:
    """Learn a model from `source` and write it to `output` (by default a file beside the data).

    Supplied files replace the recipe's methods, and the model records the methods that made them. Learning cuts,
    structure and parameters in separate steps therefore gives the same model file as learning them all at once.
    trace: a file for the iterations of the optimizer. log_p_quantiles: store quantiles of ln P(x) of the training rows
    in the model; raises UsageError if the recipe gives a model without P(x).
    """
    model_path = default_output_path(source.paths, ".bnc") if output is None else output
    for path in source.paths:
        check_data(path)  # otherwise an error about its missing folder would be about the model's folder
    check_outputs((model_path, trace, source.bad_rows_file), (*source.paths, source.schema_file, *supplied.paths))
    recipe = supplied.update_recipe(recipe)
    if log_p_quantiles:
        if recipe.param not in MARGINALIZED:
            what = f"--log-p-quantiles has no effect with --param {recipe.param}: "
            what += "only a network with probabilities has P(x)"
            raise UsageError(what, hint=f"use --param {', '.join(MARGINALIZED)}, or leave it out")
        if recipe.calibrate is not None:
            what = "--log-p-quantiles has no effect with --calibrate: a calibrated model is no longer a network"
            raise UsageError(what, hint="leave one of them out")
    if run.intervals:
        refuse_intervals(recipe)
    if run.cluster is not None:
        refuse_on_cluster(source, recipe, supplied)
    recorder = Recorder(run.watch)
    with rows_on_cluster(source, recipe, supplied, model_path, run._replace(watch=recorder)) as (rows, files, run):
        recorder(Stage("read"))
        columns = [files.read(rows, run, recipe)]
        split = record_split(columns[0].n_rows, columns[0].split_by)
        if split.kind == "group" and split.units < FOLDS:
            what = f"there are only {split.units} groups in {', '.join(map(repr, split.columns))}"
            recorder(Note(f"{what}, so rows are held out in at most {split.units} folds, not {FOLDS}"))
        check, columns[0] = _check(columns[0], rows, recipe, files, run)
        sample = sample_evenly(columns[0]) if log_p_quantiles else None
        fitted = learn(
            columns.pop(),  # no reference to the table is left here, so that its memory can be freed while learning
            recipe,
            supplied=files,
            reading_rules=ReadingRules(rows.missing_tokens, unseen),
            run=with_memory_limit(run)._replace(hold_out=True),
        )
        if sample is not None:
            try:
                quantiles = summarise_log_p(fitted.model, sample, compile_scorer(fitted.model).used)
                fitted = replace(fitted, model=replace(fitted.model, log_p=quantiles))
            except ModelError as error:
                recorder(Note(f"the quantiles of ln P(x) are not available: {error.what}", warning=True))
    recorder(Stage("write"))
    if trace is not None:
        recorder.write_trace(trace)
    write_model(model_path, with_self_test(fitted.model))
    findings = () if check is None else check.findings
    held_out = fitted.parameters.held_out
    if check is not None and held_out is not None:
        finding = too_good(check, held_out.log_loss, held_out.base_log_loss)
        if finding is not None:
            recorder(Note(finding.message, warning=True))
            findings = (finding,)
    used = {fitted.model.schema.attributes[i].name for i in fitted.model.attributes}
    for name in () if check is None else check.running_numbers:
        if name in used:
            what = f"'{name}' is used, but every row has its own number in it: possibly an identifier"
            recorder(Note(f"{what}; add --ignore {shlex.quote(name)} to leave it out", warning=True))
    moves = recorder.named_moves(fitted.model.schema)
    return _fit_report(model_path, fitted, supplied.structure, moves, findings, recorder, split)


def _check(
    table: Columns, source: Source, recipe: Recipe, supplied: SuppliedFiles, run: Run
) -> tuple[TableCheck | None, Columns]:
    """Check a table unless it is on a cluster; return the check, and the table with any MDL cuts found by the check."""
    if run.cluster is not None:
        return None, table
    known = None
    # MDL cuts need the columns in order, as some checks do
    if table.label is not None and recipe.discretize == "mdl" and recipe.param != "auto" and supplied.cuts is None:
        known = KnownCuts("mdl", table.label, {})
    return check_training_table(table, source, run, known_cuts=known), replace(table, known_cuts=known)


def fit_counts(
    path: str,
    recipe: Recipe,
    *,
    output: str | None = None,
    supplied: SuppliedFiles = SuppliedFiles(),
    unseen: Unseen = "average",
    run: Run = Run(),
) -> FitReport:
    """Fit a model to the counts in the file `path`, and write it to `output` (by default a file beside the counts).

    The model file is identical to the one that `fit` writes for the rows with the cuts of the counts. Raises BncliError
    for methods that need the rows themselves.
    """
    model_path = default_output_path((path,), ".bnc") if output is None else output
    check_outputs((model_path,), (path, *supplied.paths))
    recorder = Recorder(run.watch)
    recorder(Stage("read"))
    counted = read_counts(path)
    check_labels(counted.cuts.class_name, counted.labels, counted.n_rows, path)
    warn_about_numeric_labels(counted.cuts.class_name, counted.labels, counted.n_rows, recorder)
    supplied = replace(supplied, cuts=counted.cuts)
    recipe = supplied.update_recipe(recipe)
    if run.intervals:
        refuse_intervals(recipe)
    tables = counted.stored(missing_policy(recipe), ReadingRules(counted.missing_tokens, unseen))
    del counted
    run = with_memory_limit(run._replace(watch=recorder))
    fitted = learn_from_counts(tables, recipe, supplied=supplied, run=run)
    recorder(Stage("write"))
    write_model(model_path, with_self_test(fitted.model))
    return _fit_report(model_path, fitted, supplied.structure, (), (), recorder)


def _fit_report(
    path: str,
    fitted: FittedModel,
    supplied: NamedStructure | None,
    moves: tuple[NamedMove, ...],
    findings: tuple[Finding, ...],
    recorder: Recorder,
    split: SplitRecord | None = None,
) -> FitReport:
    model, parameters = fitted.model, fitted.parameters
    schema = model.schema
    used = model.attributes
    left_out = tuple(a.name for i, a in enumerate(schema.attributes) if a.informative and i not in used)
    # The sum of row weights is what every attribute's frequencies and its weight of missing values add up to.
    weight = float(model.n_rows)
    if schema.attributes:
        weight = math.fsum((*schema.attributes[0].frequencies, schema.attributes[0].missing_weight))
    class_weights, uncertainty = model.class_weights, model.uncertainty
    return FitReport(
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
        holes=fitted.n_missing,
        classes=len(schema.labels),
        cuts=sum(len(a.cuts) for a in schema.attributes if isinstance(a, NumericAttribute)),
        structure=model.recipe.structure,
        structure_learned=model.structure_learned,
        arcs=model.structure.n_arcs if isinstance(model.structure, Dag) else 0,
        moves=moves,
        regions=regions_report(model),
        param=model.recipe.param,
        parameters=parameters.n_parameters,
        penalty=model.penalty,
        penalty_cv=model.penalty_cv,
        trials=model.predictor.trials if isinstance(model.predictor, Ensemble) else (),
        cll_start=parameters.cll_start,
        cll=parameters.cll,
        log_loss=0.0 - parameters.cll / weight,
        held_out=parameters.held_out,
        restarts=parameters.restarts,
        iterations=parameters.iterations,
        evaluations=parameters.evaluations,
        stopped_by=parameters.stopped_by,
        findings=findings,
        warnings=tuple(recorder.warnings),
        seconds=recorder.seconds(),
        class_weights=None if class_weights is None else dict(zip(schema.labels, class_weights, strict=True)),
        decisions=None if model.rule is None else rule_summary_json(model.rule),
        calibration=model.calibration,
        split=split,
        card=card_json(fitted),
        intervals=None if uncertainty is None else uncertainty.summary(),
        held_out_predictions=parameters.held_out_predictions,
    )


def card_json(fitted: FittedModel) -> dict[str, Any] | None:
    """Return the part of `fit --json` about a card, or None for other models.

    Keys: columns and rows (their numbers), points (one entry per row of the card, and per label if there are more than
    two), totals (for two classes: the probability of the second label at some totals), log_loss and log_loss_unlimited
    (on held-out rows, with and without the limits of the card; None without such rows), alternatives (columns, rows and
    log_loss of other cards with a similar log-loss).
    """
    model = fitted.model
    if model.recipe.param != "points":
        return None
    schema, tables = model.schema, model.tables
    two = len(schema.labels) == 2
    own = [w[:, 1:] - w[:, :1] if two else w for w in tables.weights]
    unit, most = 1.0, model.recipe.points
    if most != "off" and any(np.any(v) for v in own):
        unit = max(float(np.abs(v).max()) for v in own) / int(most)
    points: list[dict[str, Any]] = []
    ends, n_rows = [], 0
    for family, entries in zip(tables.families, own, strict=True):
        name = " & ".join(schema.attributes[i].name for i in family.attributes)
        numbers = entries / unit if most == "off" else np.rint(entries / unit).astype(int)
        ends.append((numbers.min(axis=0), numbers.max(axis=0)))
        for value, row in _rows(schema, family, numbers):
            n_rows += 1
            for y, number in enumerate(row.tolist()):
                label = {} if two else {"label": schema.labels[y]}
                points.append({"attribute": name, "value": value, **label, "points": number})
    totals: list[dict[str, Any]] = []
    if two:
        low, high = (float(sum(end[side][0] for end in ends)) for side in (0, 1))
        listed = np.linspace(low, high, TOTALS)
        offset = float(tables.bias[1] - tables.bias[0])
        rounded = dict.fromkeys(listed.tolist() if most == "off" else np.rint(listed).astype(int).tolist())
        totals = [{"total": each, "p": 0.5 * (1 + math.tanh((offset + unit * each) / 2))} for each in rounded]
    held_out = fitted.parameters.held_out
    alternatives = []
    for other in fitted.alternatives:
        card = card_json(other)
        assert card is not None
        names = [schema.attributes[i].name for i in _columns(other)]
        alternatives.append({"columns": names, "rows": card["rows"], "log_loss": card["log_loss"]})
    return {
        "columns": len(_columns(fitted)),
        "rows": n_rows,
        "points": points,
        "totals": totals,
        "log_loss": None if held_out is None else held_out.log_loss,
        "log_loss_unlimited": fitted.parameters.log_loss_unlimited,
        "alternatives": alternatives,
    }


def card_lines(card: dict[str, Any], label: str) -> list[str]:
    """Format a card as lines: its size and losses, its rows, P(`label`) at some totals, and the alternatives."""
    lines = [f"card        {card['columns']:,} columns, {card['rows']:,} rows"]
    if card["log_loss"] is not None and card["log_loss_unlimited"] is not None:
        losses = f"{card['log_loss']:.4g}, without the limits of the card {card['log_loss_unlimited']:.4g}"
        lines[0] += f"; held-out log-loss {losses}"
    for name, entries in itertools.groupby(card["points"], key=lambda one: one["attribute"]):
        listed = list(entries)
        labels = list(dict.fromkeys(one["label"] for one in listed if "label" in one))
        widths = [max(8, len(text) + 2) for text in labels] or [8]
        if sum(widths) > WIDEST:  # a line per label
            widths, of_labels = [8], [f" for {one['label']}" for one in listed]
        else:  # a column per label
            of_labels = [""] * len(listed)
        lines.append(f"            {name}")
        if len(widths) > 1:
            lines.append("            " + "".join(f"{text:>{w}}" for text, w in zip(labels, widths, strict=True)))
        for start in range(0, len(listed), len(widths)):
            row = listed[start : start + len(widths)]
            texts = [f"{p:.4g}" if isinstance(p, float) else str(p) for p in (one["points"] for one in row)]
            numbers = "".join(f"{text:>{w}}" for text, w in zip(texts, widths, strict=True))
            lines.append(f"            {numbers}{of_labels[start]}  {row[0]['value']}")
    if card["totals"]:
        pairs = ", ".join(f"{one['total']:.4g}: {one['p']:.3f}" for one in card["totals"])
        lines.append(f"totals      P({label}) by total: {pairs}")
    for other in card["alternatives"]:
        size = f"a card of {other['rows']:,} rows, log-loss {other['log_loss']:.4g}"
        lines.append(f"alternative {', '.join(other['columns'])}: {size}")
    return lines


def _columns(fitted: FittedModel) -> list[int]:
    """Return the positions of a card's attributes, in the order of its tables."""
    return list(dict.fromkeys(i for family in fitted.model.tables.families for i in family.attributes))


def _rows(schema: Schema, family: Family, numbers: Array) -> list[tuple[str, Array]]:
    """Return (description of the values, points) for every row of a table of a card.

    numbers: the points of the table's cells, (cells, 1) or (cells, K). Neighbouring intervals with equal points share a
    row, and so do all levels with equal points. A row of several attributes combines some values of each.
    """
    attributes = [schema.attributes[i] for i in family.attributes]
    boxes = equal_rows(numbers, family.shape, n_ordered_groups(attributes, family))
    rows = []
    for box in range(int(boxes.max()) + 1):
        cells = np.flatnonzero(boxes == box)
        axes = [set(axis.tolist()) for axis in np.unravel_index(cells, family.shape)]
        texts = []
        for (i, grouping), axis in zip(family.binned_attributes, axes, strict=True):
            attribute = schema.attributes[i]
            codes = [c for c in range(attribute.cardinality) if (c if grouping is None else grouping[c]) in axis]
            own = [c for c in codes if c < attribute.n_values]
            members = []
            if own and isinstance(attribute, NumericAttribute):
                bounds = [-math.inf, *attribute.cuts, math.inf]
                close = ")" if bounds[own[-1] + 1] == math.inf else "]"
                members.append(f"({bounds[own[0]]!r}, {bounds[own[-1] + 1]!r}{close}")
            elif isinstance(attribute, CategoricalAttribute):
                members += [attribute.levels[c] for c in own]
            texts.append(" | ".join([*members, *(["(missing)"] if len(own) < len(codes) else [])]))
        rows.append((" & ".join(texts), numbers[cells[0]]))
    return rows
