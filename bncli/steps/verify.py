"""Verify a model: score the rows stored in it again, and compare an export with it.

The self-test (`bncli.engine.prediction.verification`) checks that this machine, with its libraries, gives the same
probabilities as the machine that fitted the model. A program or a network is compared with the model on synthetic rows.
For a program these rows include every level, both sides of every cut, missing values and unseen values; for a network
they are random. If a program makes decisions, these are compared too.

The effects that an edit has recorded are compared with those of the model. Properties stated as sentences are proven or
refuted over all inputs (`bncli.steps.properties`). On request, the report lists what the model discloses about small
groups of training rows.

Probabilities agree if they differ by at most TOLERANCE. A program is run, so it should be one that the user trusts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bncli.engine.model import Model
from bncli.engine.networks.network import equivalent_network, name_network
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.disclosure import Disclosure, find_disclosure
from bncli.engine.prediction.verification import (
    EXPORT_ROWS,
    TOLERANCE,
    ProbeRows,
    largest_change,
    largest_difference,
    largest_edit_difference,
    probe_rows,
    same_nodes,
)
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.exports import NetworkFormat, ProgramFormat, export_formats, find_format
from bncli.files.paths import cannot_read
from bncli.steps.properties import ProvenProperty, prove_properties

T = TypeVar("T")
PROPERTY_SECONDS = 60.0
_EXPORT_AGAIN = "give an export of this model, or export the model again"


class ComparedDecisions(NamedTuple):
    """The number of rows, and the number of rows on which an export decides differently, apart from near ties."""

    rows: int
    others: int


class LargestDifference(NamedTuple):
    """The number of rows, and the largest difference in a probability on them."""

    rows: int
    max_dp: float

    @property
    def agrees(self) -> bool:
        """Whether the difference is at most TOLERANCE; false if it is NaN."""
        return self.max_dp <= TOLERANCE

    def __str__(self) -> str:
        if np.isnan(self.max_dp):
            return f"some probabilities on {self.rows:,} synthetic rows are NaN"
        return f"the largest difference in probability is {self.max_dp:.1e} on {self.rows:,} synthetic rows"


@dataclass(frozen=True)
class VerifyReport:
    """The results of the comparisons.

    self_test: None if the model has no self-test. against, format, export: the path of the export, its format, and the
    comparison with it; None without an export. rounded: whether the format of the export may round numbers. decisions:
    None if the model or the export makes no decisions. own_rule: whether the export makes decisions, but the model does
    not. properties: None if none were stated. disclosure: None if not requested.
    """

    model: str
    bncli_version: str
    against: str | None
    format: str | None
    self_test: LargestDifference | None
    export: LargestDifference | None
    rounded: bool = False
    decisions: ComparedDecisions | None = None
    own_rule: bool = False
    properties: tuple[ProvenProperty, ...] | None = None
    disclosure: Disclosure | None = None

    @property
    def fault(self) -> BncliError | None:
        """The error about the first disagreement or about a property that is refuted or left open, or None."""
        if self.self_test is not None and not self.self_test.agrees:
            what = f"the model predicts differently from when it was fitted: {self.self_test}"
            return ModelError(what, where=self.model, hint=f"it was fitted by bncli {self.bncli_version}; fit it again")
        hint = "export the model again"
        if self.export is not None and not self.export.agrees:
            what = f"the {self.format} file differs from the model {self.model}: {self.export}"
            if self.rounded:
                hint = "the reason may be rounding; export with --digits 15 to verify the file"
        elif self.own_rule:
            what = f"the {self.format} file makes decisions, but the model {self.model} has no decision rule"
        elif self.decisions is not None and self.decisions.others:
            rows, others = self.decisions
            what = f"the {self.format} file decides differently from the model in {others:,} of {rows:,} synthetic rows"
        else:
            properties = self.properties or ()
            refuted = [one.text for one in properties if one.holds is False]
            if refuted:
                what = f"{len(refuted)} of {len(properties)} properties refuted: {refuted[0]!r}"
                return ModelError(what, where=self.model, hint="add --json for the whole counter-example")
            unproven = next((one.text for one in properties if one.holds is None), None)
            if unproven is None:
                return None
            what = f"the property {unproven!r} is neither proven nor refuted within the time limit"
            return BncliError(what, where=self.model, hint="raise --property-seconds")
        return ModelError(what, where=self.against or "", hint=hint)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values; `rows` is the sum and `max_dp` the maximum over the comparisons."""
        parts = {"self_test": self.self_test, "export": self.export}
        compared = [part for part in parts.values() if part is not None]
        disclosed = {}
        if (found := self.disclosure) is not None:  # `rows` are training weights
            values = [{**value._asdict(), "where": list(value.where)} for value in found.values]
            tables = [{**table._asdict(), "attributes": list(table.attributes)} for table in found.tables]
            lists = {"min_rows": found.min_rows, "values": values, "tables": tables, "held_out_rows": found.held_out}
            disclosed["disclosure"] = lists
        return {
            "model": self.model,
            "bncli_version": self.bncli_version,
            "against": self.against,
            "format": self.format,
            **{name: None if part is None else part._asdict() for name, part in parts.items()},
            **({} if self.decisions is None else {"decisions": self.decisions._asdict()}),
            "verified": self.fault is None,
            "rows": sum(part.rows for part in compared),
            # NaN if one of them is
            "max_dp": float(np.max([part.max_dp for part in compared])) if compared else None,
            **disclosed,
            **({} if self.properties is None else {"properties": [one.as_json() for one in self.properties]}),
        }


def verify(
    model_path: str,
    against: str | None = None,
    *,
    properties: Sequence[str] = (),
    property_seconds: float = PROPERTY_SECONDS,
    disclosure: int | None = None,
    seed: int = 0,
) -> VerifyReport:
    """Compare a model with its self-test and with the export `against`; failures are in `fault` of the report.

    properties: sentences to prove or refute (see `steps.properties`), each within `property_seconds`. disclosure: list
    what the model discloses about groups of fewer training rows than this number. seed: the seed of the synthetic rows.

    Raises ModelError if there is nothing to verify, for a recorded edit that does not match the tables, and for an
    export that cannot be one of this model; UsageError if the format of the export cannot be determined, or if
    a property cannot be parsed; BncliError if the export cannot be read, or if the program that runs it is not
    installed.
    """
    # The format that belongs to the ending of the export, if it has probabilities.
    form = None
    if against is not None:
        formats = [
            each
            for each in export_formats()
            if isinstance(each, ProgramFormat) or (isinstance(each, NetworkFormat) and each.read is not None)
        ]
        word = find_format(against, tuple(formats))
        if word is None:
            endings = ", ".join(ending for each in formats for ending in each.endings)
            hint = f"the name of the export must end in one of {endings}"
            raise UsageError("the format of the export cannot be determined", where=against, hint=hint)
        form = next(each for each in formats if each.word == word)

    # What the model alone is checked for: properties, disclosure, its self-test, and its edits.
    model = read_model(model_path)
    proven = prove_properties(model, properties, property_seconds) if properties else None
    disclosed = None if disclosure is None else find_disclosure(model, disclosure)
    if model.self_test is None and against is None and proven is None and disclosed is None:
        hint = "fit the model again, or add --against FILE to compare an export of it"
        raise ModelError("the model has no self-test: an earlier version wrote it", where=model_path, hint=hint)
    self_test = None
    if model.self_test is not None:
        self_test = LargestDifference(model.self_test.n_rows, largest_change(model, model.self_test))
    difference = largest_edit_difference(model)
    if not difference <= TOLERANCE:
        what = f"the numbers of a recorded edit differ from those of the model by up to {difference:.1e}"
        raise ModelError(
            what, where=model_path, hint="list the edits with bncli edit --list, and edit or fit the model again"
        )
    if against is None or form is None:
        return VerifyReport(
            model_path, model.version, None, None, self_test, None, properties=proven, disclosure=disclosed
        )

    # The comparison with the export.
    try:
        content = Path(against).read_bytes()
    except OSError as error:
        raise cannot_read(against, error, BncliError, what=" the export") from error
    rng = np.random.Generator(np.random.PCG64(seed))
    report = VerifyReport(
        model_path, model.version, against, form.word, self_test, None, properties=proven, disclosure=disclosed
    )
    if isinstance(form, NetworkFormat):
        assert form.read is not None
        network = form.read(content, against)
        try:
            own = name_network(equivalent_network(model))
        except ModelError as error:
            raise ModelError(f"this model is not a network: {error.what}", where=against, hint=error.hint) from error
        if not same_nodes(own, network):
            raise ModelError(
                "this network does not belong to the model: its nodes differ", where=against, hint=_EXPORT_AGAIN
            )
        return replace(
            report, export=LargestDifference(EXPORT_ROWS, largest_difference(model, network, EXPORT_ROWS, rng))
        )
    return _compare_program(report, model, form, content, against, rng)


def _compare_program(
    report: VerifyReport, model: Model, form: ProgramFormat, content: bytes, where: str, rng: np.random.Generator
) -> VerifyReport:
    """Add the comparison with a program to the report.

    Raises ModelError if the program fails or returns another number of probabilities, and BncliError if its interpreter
    is not installed.
    """
    probes = probe_rows(model, EXPORT_ROWS, rng)
    text: str | bytes = content
    if form.is_text:
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            what = f"the program cannot be loaded: {_one_line_reason(error)}"
            raise ModelError(what, where=where, hint=_EXPORT_AGAIN) from error
    answers = _run_program(form.run, text, probes, where)
    if answers is None:
        raise BncliError(f"this export needs {form.needs}, which is not installed", where=where, hint="install it")
    are_even = len({len(row) for row in answers}) == 1
    probabilities = np.array(answers, dtype=float).T if are_even else np.empty((0, 0))
    if probabilities.shape != probes.probabilities.shape:
        n_labels = len(probes.probabilities)
        raise ModelError(
            f"the program does not return {n_labels} probabilities per row", where=where, hint=_EXPORT_AGAIN
        )
    max_dp = float(np.abs(probabilities - probes.probabilities).max(initial=0.0))
    report = replace(report, export=LargestDifference(probes.n_rows, max_dp), rounded=form.rounds)
    if form.decide is None or not form.decides(text):
        return report
    if model.rule is None or not model.rule.decides:
        return replace(report, own_rule=True)
    decisions = _run_program(form.decide, text, probes, where)
    assert decisions is not None
    labels = model.schema.labels
    decider = Decider.of(replace(model.rule, sets=None), labels)
    others = decider.count_disagreements(probes.probabilities, decisions, labels, TOLERANCE)
    return replace(report, decisions=ComparedDecisions(probes.n_rows, others))


def _run_program(run: Callable[..., T], text: str | bytes, probes: ProbeRows, where: str) -> T:
    """Run a program on the probe rows, and return its answers, or None if its interpreter is not installed.

    Any error of the program other than a UsageError is raised as a ModelError.
    """
    try:
        return run(text, probes.rows())
    except UsageError:
        raise
    except Exception as error:  # the program or its interpreter may raise any exception
        what = f"the program fails on rows for this model: {_one_line_reason(error)}"
        raise ModelError(what, where=where, hint=_EXPORT_AGAIN) from error


def _one_line_reason(error: Exception) -> str:
    """Return the reason for an error in one line, without the location and hint of a BncliError.

    For a LookupError, TypeError or ValueError, the probable cause is returned instead of the message.
    """
    if isinstance(error, (LookupError, TypeError, ValueError)):
        return "bncli did not write it, or it needs columns that the model does not use"
    text = error.what if isinstance(error, BncliError) else str(error)
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
