"""Writes a model in a format that other programs read: its structure, or the whole network with its probabilities.

    StructureFormat    the structure alone (dot, json)
    NetworkFormat      the network (bif, xmlbif), where the model is or can be made one (see
                       `bncli.engine.networks.network`); a model of regions and an ensemble cannot

    ProgramFormat      a program that scores rows by itself (python, javascript, sql, onnx); of any model but one that
                       marginalizes missing values over a network; a scorecard, of two classes and one sum of tables

Nothing is trusted before it was tried: a network is read back, where its format can be, and a program is run, where
what runs it is at hand. What it says of 10,000 rows or more (random ones for a network; for a program rows that show
every level, both sides of every cut, missing values and values never seen) is compared with what the model says, and
the file appears only if no probability differs by more than 1e-9, and no decision but where two are as good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.number_formats import Form, NumberForm
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.model import DecisionRule, Ensemble, Model
from bncli.engine.networks.named_network import NamedNetwork, name_network
from bncli.engine.networks.network import equivalent_network, graph_of
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.portable import PortableScorer, ProbeRows, portable, probe_rows
from bncli.engine.prediction.portable_effects import portable_effects
from bncli.engine.prediction.positive_label import with_positive_label
from bncli.engine.prediction.verification import EXPORT_ROWS, TOLERANCE, largest_difference, same_nodes
from bncli.engine.structures.named_structure import NamedDag, name_structure
from bncli.errors import BncliError, ModelError
from bncli.files.artifacts.model import read_model
from bncli.files.atomic import write_bytes
from bncli.files.exports import NetworkFormat, ProgramFormat, StructureFormat, export_format
from bncli.files.exports.programs import ProgramTarget
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.reading.source import MissingTokens
from bncli.recipe import Recipe
from bncli.watch import Note, Watch, silent


class Rounding(NamedTuple):
    """What rounding costs on made-up rows: the largest change of a probability, and nats that log-loss rises by.

    Rows are as likely to have any value as any other, and labels as likely as the model says.
    """

    max_dp: float
    log_loss: float

    @classmethod
    def of(cls, form: ProgramFormat, text: str | bytes, probes: ProbeRows) -> Rounding:
        """Of a text whose numbers are rounded."""
        found = np.array(form.run(text, probes.rows())).T
        tiny = np.finfo(np.float64).tiny
        change = np.log(np.maximum(probes.probabilities, tiny)) - np.log(np.maximum(found, tiny))
        loss = float((probes.probabilities * change).sum(axis=0).mean())
        return cls(float(np.abs(found - probes.probabilities).max()), loss)


@dataclass(frozen=True)
class ExportReport:
    """What was written where; `output` is None where only the text is wanted.

    nodes and arcs count the class; regions and programs have no arcs (None). probabilities counts those of a network,
    or the table entries of a program. rows and max_dp (the largest difference of a probability between what was written
    and the model on so many rows) are None for a structure, for a network in a format that is not read back, and for a
    program that could not be run. `rounding`, of a format that rounds numbers: max_dp is that before they are rounded.
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

    def as_json(self) -> dict[str, Any]:
        """Return every field by name, but the text; `rounding` only where there is one."""
        names = ("model", "format", "output", "nodes", "arcs", "probabilities", "rows", "max_dp")
        found = {name: getattr(self, name) for name in names}
        return found if self.rounding is None else found | {"rounding": self.rounding._asdict()}


def export(
    model_path: str,
    form: str,
    *,
    output: str | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    seed: int = 0,
    positive: str | None = None,
    watch: Watch = silent,
) -> ExportReport:
    """Return the model at `model_path` in one of the formats EXPORTS, written to `output` where one is named.

    `options` are those of the format, by their words. positive: the label that is the event, None: as the model says.
    """
    chosen = export_format(form)
    refuse_ending(output, (), "the file is written as plain text")
    check_outputs((output,), (model_path,))
    model = with_positive_label(read_model(model_path), positive)
    if isinstance(chosen, StructureFormat):
        # Of an ensemble one structure can be written, that of its heaviest component.
        found = model.predictor
        if isinstance(found, Ensemble) and len(found.components) > 1:
            pool = f"an ensemble of {len(found.components):,} components"
            watch(Note(f"the model is {pool}: written is the structure of {found.components[0].name}"))
        structure = name_structure(model.structure, model.schema)
        n_nodes = len({structure.class_name, *structure.nodes})
        n_arcs = sum(map(len, structure.parents.values())) if isinstance(structure, NamedDag) else None
        report = ExportReport(
            model_path, chosen.word, output, n_nodes, n_arcs, None, None, None, chosen.write(structure)
        )
    elif isinstance(chosen, NetworkFormat):
        try:
            network = name_network(equivalent_network(model))
        except ModelError as error:
            raise ModelError(error.what, where=model_path, hint=error.hint) from error
        # Nodes of the network that had parents but have no table over them in the model.
        dag, attributes = graph_of(model), model.schema.attributes
        lost = [attributes[i].name for i in dag.attributes if dag.parents[i] and i not in dag.class_children]
        if lost and not model.schema.marginalizes:
            listed = ", ".join(lost[:5]) + (f" and {len(lost) - 5:,} more" if len(lost) > 5 else "")
            watch(Note(f"the class is no parent of {listed}: written without parents, for which a model has no table"))
        text = chosen.write(network)
        rows, difference = None, None
        if chosen.read is not None:
            again = chosen.read(text.encode(), output or f"the {chosen.word} text")
            rows, difference = EXPORT_ROWS, _verified(model, network, again, seed)
        arcs = sum(len(node.parents) for node in network.nodes)
        size = sum(node.probabilities.size for node in network.nodes)
        report = ExportReport(model_path, chosen.word, output, len(network.nodes), arcs, size, rows, difference, text)
    else:
        report = _program(model, model_path, chosen, output, options, seed, watch)
    if output is not None:
        write_bytes(output, report.text.encode() if isinstance(report.text, str) else report.text)
    return report


def _verified(model: Model, network: NamedNetwork, again: NamedNetwork, seed: int) -> float:
    """Return max |dP| of the network read back; BncliError if it is another one or too far from the model."""
    if not same_nodes(network, again):
        raise BncliError("the network does not read back as it was written", hint="this is a fault of bncli: report it")
    difference = largest_difference(model, again, EXPORT_ROWS, np.random.Generator(np.random.PCG64(seed)))
    _refuse_far(difference, "network", model.recipe)
    return difference


def _refuse_far(difference: float, what: str, recipe: Recipe) -> None:
    """Raise BncliError for a difference above TOLERANCE, or none that is a number."""
    if not difference <= TOLERANCE:
        rows = f"{EXPORT_ROWS:,} {'random' if what == 'network' else 'made-up'} rows"
        message = f"the {what} would differ from the model: max |dP| {difference:.1e} on {rows}"
        hint = f"its probabilities are too small for floating point; learn with {_milder(recipe)}"
        raise BncliError(message, hint=hint)


def _milder(recipe: Recipe) -> str:
    """Return the option of its parameters that keeps probabilities from 0."""
    if recipe.penalty is not None:
        return "a higher --penalty"
    return "more --pseudo-counts" if recipe.param.startswith("acll") else "more --smoothing"


def _program(
    model: Model,
    path: str,
    form: ProgramFormat,
    output: str | None,
    options: Mapping[str, Any],
    seed: int,
    watch: Watch,
) -> ExportReport:
    try:
        scorer = portable(model)
    except ModelError as error:
        raise ModelError(error.what, where=path, hint=error.hint) from error
    # Inputs that a table does not hold as numbers: parts of dates, numbers with a decimal comma.
    forms = {a.name: a.form for a in model.schema.attributes if isinstance(a, NumericAttribute)}
    named = [one.name for one in scorer.inputs if not _is_plain(forms.get(one.name))]
    if named:
        listed = ", ".join(named[:5]) + (f" and {len(named) - 5:,} more" if len(named) > 5 else "")
        watch(Note(f"the program takes plain numbers for {listed}: a part of a date, or a number, not its text"))
    rule = _rule_written(model, form, watch)
    target = _target(model, path, scorer, options)._replace(rule=rule)
    probes = probe_rows(model, EXPORT_ROWS, np.random.Generator(np.random.PCG64(seed)))
    exact = target._replace(options={**options, "digits": None}) if form.rounds else target
    text = _written(form, scorer, exact, path)
    found = form.run(text, probes.rows())
    rounding = None
    if found is None:
        watch(Note(f"{form.needs} is not at hand: what was written was not run"))
        rows, difference = None, None
    else:
        remark = form.remark(text)
        if remark is not None:
            watch(Note(remark))
        rows, difference = probes.n_rows, float(np.abs(np.array(found).T - probes.probabilities).max())
        _refuse_far(difference, "program", model.recipe)
        if rule is not None:
            _refuse_other_decisions(rule, model.schema.labels, form, text, probes)
    if form.rounds:
        text = _written(form, scorer, target, path)
        rounding = Rounding.of(form, text, probes)
    entries = sum(table.entries.size for table in scorer.tables)
    nodes = len(scorer.inputs) + 1
    return ExportReport(path, form.word, output, nodes, None, entries, rows, difference, text, rounding)


def _rule_written(model: Model, form: ProgramFormat, watch: Watch) -> DecisionRule | None:
    """Return that by which the program decides, without prediction sets; a note of what is left out."""
    rule = model.rule
    if rule is None:
        return None
    if form.decide is None or not rule.decides:
        watch(Note("what is written gives probabilities: how the model decides (see inspect) is not in it"))
        return None
    if rule.sets is not None:
        watch(Note("what is written decides, and gives no prediction sets"))
    return replace(rule, sets=None, held_out=None)


def _is_plain(form: Form | None) -> bool:
    """Return whether the numbers of a column are written plainly, perhaps with words for missing values."""
    return form is None or (isinstance(form, NumberForm) and (form.decimal, form.affix) == (".", ""))


def _target(model: Model, path: str, scorer: PortableScorer, options: Mapping[str, Any]) -> ProgramTarget:
    tokens = MissingTokens.of(model.schema.missing_tokens)
    name = PurePath(path).name.removesuffix(".bnc")
    forms = (getattr(attribute, "form", None) for attribute in model.schema.attributes)
    words = (word for form in forms if isinstance(form, NumberForm) for word in form.words)
    missing_numbers = tuple(dict.fromkeys((*tokens.number, *words)))
    return ProgramTarget(name, tokens.text, missing_numbers, options, partial(portable_effects, model, scorer.inputs))


def _written(form: ProgramFormat, scorer: PortableScorer, target: ProgramTarget, path: str) -> str | bytes:
    """Return the program; ModelError, with the path, where the format cannot hold the model."""
    try:
        return form.write(scorer, target)
    except ModelError as error:
        raise ModelError(error.what, where=path, hint=error.hint) from error


def _refuse_other_decisions(
    rule: DecisionRule, labels: tuple[str, ...], form: ProgramFormat, text: str | bytes, probes: ProbeRows
) -> None:
    """BncliError where the program decides otherwise than `score`, but for rows within TOLERANCE of either decision."""
    assert form.decide is not None
    found = form.decide(text, probes.rows())
    assert found is not None
    others = Decider.of(rule, labels).disagreements(probes.probabilities, found, labels, TOLERANCE)
    if others:
        message = f"the program would decide otherwise than the model in {others:,} of {probes.n_rows:,} made-up rows"
        raise BncliError(message, hint="this is a fault of bncli: report it")
