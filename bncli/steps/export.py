"""Export a model to a format that other programs read: its structure, its network, or a program that scores rows.

    StructureFormat    the structure alone (dot, json)
    NetworkFormat      the network with its probabilities (bif, xmlbif), if the model is or can be made a network (see
                       `bncli.engine.networks.network`); a model of regions and an ensemble cannot
    ProgramFormat      a program that scores rows by itself (python, javascript, sql, onnx), of any model except one
                       that marginalizes missing values over a network; a scorecard needs one sum of tables and, unless
                       it is a card (`--structure card`) with its own points, two classes

A network or program is tested before it is written. A network is read back, if the format allows it, and a program is
run, if its interpreter is installed. Its probabilities for EXPORT_ROWS or more rows are compared with the model's. For
a network these are random rows; for a program they include every level, both sides of every cut, missing values and
unseen values. An export that differs is not written: no probability may differ by more than TOLERANCE, and no decision
except between equally good ones. An export that cannot be read back or run is written without this test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.schema import NumberForm, NumericAttribute
from bncli.engine.model import DecisionRule, Ensemble, Model
from bncli.engine.networks.network import equivalent_network, graph_of, name_network
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.disclosure import PooledValues, pool_rare_values
from bncli.engine.prediction.edits import with_positive_label
from bncli.engine.prediction.portable import PortableScorer, make_portable, make_portable_effects
from bncli.engine.prediction.verification import EXPORT_ROWS, TOLERANCE, largest_difference, probe_rows, same_nodes
from bncli.engine.structures.named_structure import NamedDag, name_structure
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.atomic import write_bytes
from bncli.files.exports import NetworkFormat, ProgramFormat, StructureFormat, export_format
from bncli.files.exports.programs import ProgramTarget
from bncli.files.exports.scorecard import OWN_UNIT, SCORES_LISTED, TOTALS_LISTED, probabilities_by_score
from bncli.files.exports.sql import DEFAULTS as SQL_DEFAULTS
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.reading.source import MissingTokens
from bncli.recipe import Recipe
from bncli.watch import Note, Watch, silent

_LISTED = 5
WHOLE = 1e-6
"""Points within this distance of an integer count as integers."""


class Rounding(NamedTuple):
    """The effect of rounding on synthetic rows.

    max_dp: the largest change of a probability. log_loss: the expected increase of the log-loss in nats per row, if the
    labels of the rows have the probabilities of the model.
    """

    max_dp: float
    log_loss: float


@dataclass(frozen=True)
class ExportReport:
    """The result of an export.

    output: the path of the file, or None if none was written. text: the content of the export. nodes, arcs: their
    numbers, including the class; arcs is None for regions and programs. probabilities: number of probabilities of a
    network, or of table entries of a program; None for a structure. rows, max_dp: number of rows on which the export
    was compared with the model, and the largest difference in a probability; None if it was not compared. rounding: the
    effect of rounding, for a format that rounds; max_dp is then the difference before rounding. totals: some scores of
    a scorecard, with the probability of the event. pooled: the values that were pooled because of `min_rows`, or None
    if `min_rows` was not given.
    """

    model: str
    format: str
    output: str | None
    nodes: int
    arcs: int | None
    probabilities: int | None
    rows: int | None
    max_dp: float | None
    text: str | bytes
    rounding: Rounding | None = None
    totals: tuple[tuple[int, float], ...] = ()
    pooled: tuple[PooledValues, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the fields by name, without the text; `pooled`, `totals` and `rounding` only if they apply."""
        names = ("model", "format", "output", "nodes", "arcs", "probabilities", "rows", "max_dp")
        fields = {name: getattr(self, name) for name in names}
        if self.pooled is not None:
            fields["pooled"] = [{**one._asdict(), "values": list(one.values)} for one in self.pooled]
        if self.totals:
            fields["totals"] = [{"total": total, "p": p} for total, p in self.totals]
        return fields if self.rounding is None else fields | {"rounding": self.rounding._asdict()}


def export(
    model_path: str,
    form: str,
    *,
    output: str | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    seed: int = 0,
    positive: str | None = None,
    min_rows: int | None = None,
    watch: Watch = silent,
) -> ExportReport:
    """Export the model in the file `model_path` to the format `form`, one of EXPORTS, and write it to `output`.

    options: the options of the format, keyed by name. seed: the seed of the rows on which the export is compared with
    the model. positive: the label of the event, or None for the model's. min_rows: pool values with fewer training rows
    first, and compare the export with the pooled model.

    Raises UsageError for an unknown format, option or label, ModelError for a model that the format cannot express, and
    BncliError if the export differs from the model.
    """
    chosen = export_format(form)
    refuse_ending(output, (), "the file can be written only as plain text")
    check_outputs((output,), (model_path,))
    model = with_positive_label(read_model(model_path), positive)
    pooled = None
    if min_rows is not None:
        with _errors_about(model_path):
            model, pooled = pool_rare_values(model, min_rows)
    if isinstance(chosen, StructureFormat):
        predictor = model.predictor
        if isinstance(predictor, Ensemble) and len(predictor.components) > 1:
            size = f"an ensemble of {len(predictor.components):,} components"
            watch(Note(f"the model is {size}; the file contains the structure of {predictor.components[0].name}"))
        structure = name_structure(model.structure, model.schema)
        report = ExportReport(
            model=model_path,
            format=chosen.word,
            output=output,
            nodes=len({structure.class_name, *structure.nodes}),
            arcs=sum(map(len, structure.parents.values())) if isinstance(structure, NamedDag) else None,
            probabilities=None,
            rows=None,
            max_dp=None,
            text=chosen.write(structure),
        )
    elif isinstance(chosen, NetworkFormat):
        report = _export_network(model, chosen, model_path, output, seed, watch)
    else:
        report = _export_program(model, chosen, model_path, output, options, seed, watch)
    report = replace(report, pooled=pooled)
    if output is not None:
        write_bytes(output, report.text.encode() if isinstance(report.text, str) else report.text)
    return report


def _export_network(
    model: Model, form: NetworkFormat, model_path: str, output: str | None, seed: int, watch: Watch
) -> ExportReport:
    with _errors_about(model_path):
        network = name_network(equivalent_network(model))
    # Nodes with parents in the structure, but without a table over them in the model, lose their parents.
    dag, attributes = graph_of(model), model.schema.attributes
    lost = [attributes[i].name for i in dag.attributes if dag.parents[i] and i not in dag.class_children]
    if lost and not model.schema.marginalizes:
        listed = ", ".join(lost[:_LISTED]) + (f" and {len(lost) - _LISTED:,} more" if len(lost) > _LISTED else "")
        nodes, are = ("this node", "is") if len(lost) == 1 else ("these nodes", "are")
        what = f"the class is not a parent of {listed}, so the model has no tables over the parents of {nodes}"
        watch(Note(f"{what}, which {are} written without parents"))
    text = form.write(network)
    max_dp = None
    if form.read is not None:
        read_back = form.read(text.encode(), output or f"the {form.word} text")
        if not same_nodes(network, read_back):
            what = "the network that was read back differs from the one written"
            raise BncliError(what, hint="this is a bug in bncli; please report it")
        max_dp = largest_difference(model, read_back, EXPORT_ROWS, np.random.Generator(np.random.PCG64(seed)))
        _refuse_difference(max_dp, "network", "random", model.recipe)
    return ExportReport(
        model=model_path,
        format=form.word,
        output=output,
        nodes=len(network.nodes),
        arcs=sum(len(node.parents) for node in network.nodes),
        probabilities=sum(node.probabilities.size for node in network.nodes),
        rows=None if max_dp is None else EXPORT_ROWS,
        max_dp=max_dp,
        text=text,
    )


def _export_program(
    model: Model,
    form: ProgramFormat,
    model_path: str,
    output: str | None,
    options: Mapping[str, Any],
    seed: int,
    watch: Watch,
) -> ExportReport:
    seen = {attribute.name for attribute in model.schema.attributes}
    if form.word == "sql" and "key" not in options and SQL_DEFAULTS["key"] not in seen:
        what = "--to sql needs --key COLUMN, the column that identifies the rows"
        raise UsageError(what, hint=f"for example --key {SQL_DEFAULTS['key']}, if the table has such a column")
    with _errors_about(model_path):
        scorer = make_portable(model)
    unit = None
    if form.word == "scorecard" and model.recipe.param == "points":
        unit = None if {"pdo", "base", "odds"} & options.keys() else _unit_of_points(scorer, model.recipe.points)
        options = {**options, "join_equal": True} | ({} if unit is None else {OWN_UNIT: unit})
    # Parts of dates and numbers with a decimal comma are not in the table in the form in which the program takes them.
    forms = {a.name: a.form for a in model.schema.attributes if isinstance(a, NumericAttribute) and a.form is not None}
    plain = {name for name, f in forms.items() if isinstance(f, NumberForm) and (f.decimal, f.affix) == (".", "")}
    converted = [column.name for column in scorer.inputs if column.name in forms.keys() - plain]
    if converted:
        more = f" and {len(converted) - _LISTED:,} more" if len(converted) > _LISTED else ""
        listed = ", ".join(converted[:_LISTED]) + more
        watch(Note(f"the program expects plain numbers for {listed}: parts of dates or numbers, not text"))
    rule = _rule_of_program(model, form, watch)
    tokens = MissingTokens.of(model.schema.missing_tokens)
    words = [word for f in forms.values() if isinstance(f, NumberForm) for word in f.words]
    target = ProgramTarget(
        name=PurePath(model_path).name.removesuffix(".bnc"),
        missing=tokens.text,
        missing_numbers=tuple(dict.fromkeys((*tokens.number, *words))),
        options=options,
        effects=partial(make_portable_effects, model, scorer.inputs),
        rule=rule,
    )
    probes = probe_rows(model, EXPORT_ROWS, np.random.Generator(np.random.PCG64(seed)))
    with _errors_about(model_path):
        exact = target._replace(options={**options, "digits": None}) if form.rounds else target
        text = form.write(scorer, exact)
    rows, max_dp, rounding = None, None, None
    answers = form.run(text, probes.rows())
    if answers is None:
        watch(Note(f"{form.needs} is not installed, so the export was not run"))
    else:
        if (remark := form.remark(text)) is not None:
            watch(Note(remark))
        rows, max_dp = probes.n_rows, float(np.abs(np.array(answers).T - probes.probabilities).max())
        _refuse_difference(max_dp, "program", "synthetic", model.recipe)
        if rule is not None and form.decide is not None:
            decisions = form.decide(text, probes.rows())
            assert decisions is not None
            labels = model.schema.labels
            n_other = Decider.of(rule, labels).count_disagreements(probes.probabilities, decisions, labels, TOLERANCE)
            if n_other:
                what = f"the program would decide differently from the model in {n_other:,} of {rows:,} synthetic rows"
                raise BncliError(what, hint="this is a bug in bncli; please report it")
    if form.rounds:
        with _errors_about(model_path):
            text = form.write(scorer, target)
        rounded = np.array(form.run(text, probes.rows())).T
        tiny = np.finfo(np.float64).tiny
        change = np.log(np.maximum(probes.probabilities, tiny)) - np.log(np.maximum(rounded, tiny))
        log_loss = float((probes.probabilities * change).sum(axis=0).mean())
        rounding = Rounding(float(np.abs(rounded - probes.probabilities).max()), log_loss)
    totals: tuple[tuple[int, float], ...] = ()
    if isinstance(text, str) and form.word == "scorecard" and not options.get("json"):
        n_listed = SCORES_LISTED if unit is None else TOTALS_LISTED
        totals = () if len(scorer.labels) != 2 else tuple(probabilities_by_score(text, n_listed))
    return ExportReport(
        model=model_path,
        format=form.word,
        output=output,
        nodes=len(scorer.inputs) + 1,
        arcs=None,
        probabilities=sum(table.entries.size for table in scorer.tables),
        rows=rows,
        max_dp=max_dp,
        text=text,
        rounding=rounding,
        totals=totals,
    )


def _unit_of_points(scorer: PortableScorer, most: int | str) -> float | None:
    """Return the log-odds per point of a card whose largest entry has `most` points.

    Returns None if `most` is "off", if all entries are 0, or if some entries are not an integer number of points, as
    after an edit.
    """
    entries = [table.entries for table in scorer.tables]
    largest = max((float(np.abs(own).max()) for own in entries), default=0.0)
    if most == "off" or not largest > 0:
        return None
    unit = largest / int(most)
    return unit if all(np.abs(own / unit - np.rint(own / unit)).max() < WHOLE for own in entries) else None


def _rule_of_program(model: Model, form: ProgramFormat, watch: Watch) -> DecisionRule | None:
    """Return the decision rule of the program, without prediction sets, or None; report what is left out in a note."""
    rule = model.rule
    if rule is None:
        return None
    if form.decide is None or not rule.decides:
        watch(Note("the export contains probabilities but not the decision rule of the model (see bncli inspect)"))
        return None
    if rule.sets is not None:
        watch(Note("the export makes decisions, but no prediction sets"))
    return replace(rule, sets=None, held_out=None)


def _refuse_difference(max_dp: float, what: str, kind_of_rows: str, recipe: Recipe) -> None:
    """Raise BncliError if the difference exceeds TOLERANCE or is NaN."""
    if max_dp <= TOLERANCE:
        return
    # The option of the parameters that keeps probabilities away from 0.
    if recipe.penalty is not None:
        option = "a higher --penalty"
    else:
        option = "more --pseudo-counts" if recipe.param.startswith("acll") else "more --smoothing"
    largest = f"by up to {max_dp:.1e} in probability"
    message = f"the {what} would differ from the model {largest} on {EXPORT_ROWS:,} {kind_of_rows} rows"
    raise BncliError(
        message, hint=f"some of its probabilities are too small for floating-point numbers; learn with {option}"
    )


@contextmanager
def _errors_about(model_path: str) -> Iterator[None]:
    """Add the path of the model to a ModelError raised within the block."""
    try:
        yield
    except ModelError as error:
        raise ModelError(error.what, where=model_path, hint=error.hint) from error
