"""Scores the rows that a model carries again, here and now, and runs an export of the model against it.

The self-test (`engine/prediction/verification.py`) tells whether this machine, with its libraries, says what the one
said that learnt the model. A program or a network is then compared with the model on made-up rows of its own: values of
every level and on both sides of every cut, missing and unseen ones, for a program; random states for a network. A
program that decides is asked for its decisions too.

Conventions: what differs by no more than TOLERANCE agrees. A program is run, so it should be one that is trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bncli.engine.model import Model
from bncli.engine.networks.named_network import name_network
from bncli.engine.networks.network import equivalent_network
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.portable import ProbeRows, probe_rows
from bncli.engine.prediction.verification import EXPORT_ROWS, TOLERANCE, largest_change, largest_difference, same_nodes
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.exports import NetworkFormat, ProgramFormat, by_ending, export_formats
from bncli.files.paths import cannot_read

T = TypeVar("T")


class Decisions(NamedTuple):
    """On how many rows, and in how many of them an export decides otherwise, near ties aside."""

    rows: int
    others: int


class LargestDifference(NamedTuple):
    """On how many rows, and the largest difference of a probability there."""

    rows: int
    max_dp: float

    @property
    def agrees(self) -> bool:
        return self.max_dp <= TOLERANCE


@dataclass(frozen=True)
class VerifyReport:
    """The self-test, None where the model carries none; the comparison with the export, None where none is named.

    rounded: the format of the export is one whose numbers may be rounded. decisions: None where the model or the export
    does not decide; own_rule: the export decides, and the model does not.
    """

    model: str
    bncli_version: str
    against: str | None
    format: str | None
    self_test: LargestDifference | None
    export: LargestDifference | None
    rounded: bool = False
    decisions: Decisions | None = None
    own_rule: bool = False

    @property
    def compared(self) -> tuple[LargestDifference, ...]:
        return tuple(one for one in (self.self_test, self.export) if one is not None)

    @property
    def fault(self) -> ModelError | None:
        """What is wrong, None where all agrees."""
        if self.self_test is not None and not self.self_test.agrees:
            what = f"the model does not say here what it said when it was made: {_far(self.self_test)}"
            return ModelError(what, where=self.model, hint=f"it was learnt by bncli {self.bncli_version}: fit it again")
        if self.export is not None and not self.export.agrees:
            what = f"the {self.format} file differs from the model {self.model}: {_far(self.export)}"
            hint = _ROUNDED if self.rounded else "export the model again"
            return ModelError(what, where=self.against or "", hint=hint)
        return self._wrong_decisions()

    def _wrong_decisions(self) -> ModelError | None:
        if self.own_rule:
            what = f"the {self.format} file decides, and the model {self.model} has no rule for decisions"
        elif self.decisions is not None and self.decisions.others:
            rows, others = self.decisions
            what = f"the {self.format} file decides otherwise than the model in {others:,} of {rows:,} made-up rows"
        else:
            return None
        return ModelError(what, where=self.against or "", hint="export the model again")

    def as_json(self) -> dict[str, Any]:
        """Return the report; `rows` and `max_dp` are those of all comparisons together."""
        parts = {"self_test": self.self_test, "export": self.export}
        worst = float(np.max([one.max_dp for one in self.compared]))  # NaN where one is
        return {
            "model": self.model,
            "bncli_version": self.bncli_version,
            "against": self.against,
            "format": self.format,
            **{name: None if part is None else part._asdict() for name, part in parts.items()},
            **({} if self.decisions is None else {"decisions": self.decisions._asdict()}),
            "verified": self.fault is None,
            "rows": sum(one.rows for one in self.compared),
            "max_dp": worst,
        }


_ROUNDED = "rounding may do that: export says how much it costs; one with --digits 15 can be verified"
_EXPORT = "name an export of this model, or export it again"


def verify(model_path: str, against: str | None = None, *, seed: int = 0) -> VerifyReport:
    """Compare; see `VerifyReport.fault` for the verdict.

    ModelError where there is nothing to compare, for the model has no self-test and no export is named, and for an
    export that cannot be one of this model; BncliError where nothing is at hand that runs it.
    """
    form = None if against is None else _format(against)
    model = read_model(model_path)
    if model.self_test is None and against is None:
        hint = "fit it again, or compare an export of it: --against FILE"
        raise ModelError("the model carries no self-test: an earlier version wrote it", where=model_path, hint=hint)
    own = (
        None
        if model.self_test is None
        else LargestDifference(model.self_test.n_rows, largest_change(model, model.self_test))
    )
    if against is None or form is None:
        return VerifyReport(model_path, model.version, None, None, own, None)
    try:
        content = Path(against).read_bytes()
    except OSError as error:
        raise cannot_read(against, error, BncliError, what=" the export") from error
    rng = np.random.Generator(np.random.PCG64(seed))
    report = VerifyReport(model_path, model.version, against, form.word, own, None)
    if isinstance(form, NetworkFormat):
        return replace(report, export=_network(model, form, content, against, rng))
    probes, text = probe_rows(model, EXPORT_ROWS, rng), _text(content, against) if form.is_text else content
    report = replace(report, export=_program(form, text, probes, against), rounded=form.rounds)
    if form.decide is None or not form.decides(text):
        return report
    if model.rule is None or not model.rule.decides:
        return replace(report, own_rule=True)
    found = _ran(form.decide, text, probes, against)
    assert found is not None
    decider, labels = Decider.of(replace(model.rule, sets=None), model.schema.labels), model.schema.labels
    others = decider.disagreements(probes.probabilities, found, labels, TOLERANCE)
    return replace(report, decisions=Decisions(probes.n_rows, others))


def _format(path: str) -> NetworkFormat | ProgramFormat:
    """Return the format that the ending stands for; UsageError for one that says no probabilities."""
    formats = [
        form
        for form in export_formats()
        if isinstance(form, ProgramFormat) or (isinstance(form, NetworkFormat) and form.read is not None)
    ]
    word = by_ending(path, tuple(formats))
    if word is None:
        endings = ", ".join(ending for form in formats for ending in form.endings)
        hint = f"the name of an export with probabilities ends in one of {endings}"
        raise UsageError("there is no telling what kind of export this is", where=path, hint=hint)
    return next(form for form in formats if form.word == word)


def _network(
    model: Model, form: NetworkFormat, content: bytes, where: str, rng: np.random.Generator
) -> LargestDifference:
    """Against the network in a file; ModelError where it has other nodes than that of the model."""
    assert form.read is not None
    found = form.read(content, where)
    try:
        own = name_network(equivalent_network(model))
    except ModelError as error:
        raise ModelError(f"this model is no network: {error.what}", where=where, hint=error.hint) from error
    if not same_nodes(own, found):
        raise ModelError("this network is not one of the model: its nodes differ", where=where, hint=_EXPORT)
    return LargestDifference(EXPORT_ROWS, largest_difference(model, found, EXPORT_ROWS, rng))


def _text(content: bytes, where: str) -> str:
    """Of a program; ModelError for bytes that are none."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ModelError(f"the program fails to be read: {_reason(error)}", where=where, hint=_EXPORT) from error


def _reason(error: Exception) -> str:
    """In one line; an error of a reader's own without its place and advice."""
    if isinstance(error, (LookupError, TypeError, ValueError)):
        return "it is not as bncli writes one, or needs columns that this model does not have"
    lines = [
        line for line in (error.what if isinstance(error, BncliError) else str(error)).splitlines() if line.strip()
    ]
    return lines[-1].strip() if lines else type(error).__name__


def _program(form: ProgramFormat, text: str | bytes, probes: ProbeRows, where: str) -> LargestDifference:
    """Against a program; ModelError where it fails or tells of other labels."""
    found = _ran(form.run, text, probes, where)
    if found is None:
        raise BncliError(f"{form.needs} is not at hand, which runs this export", where=where, hint="install it")
    said = np.array(found, dtype=float).T if len({len(row) for row in found}) == 1 else np.empty((0, 0))
    if said.shape != probes.probabilities.shape:
        n_labels = len(probes.probabilities)
        raise ModelError(f"the program does not tell of {n_labels} labels a row", where=where, hint=_EXPORT)
    return LargestDifference(probes.n_rows, float(np.abs(said - probes.probabilities).max(initial=0.0)))


def _ran(asked: Callable[..., T], text: str | bytes, probes: ProbeRows, where: str) -> T:
    """Return what a program answers; ModelError where it fails."""
    try:
        return asked(text, probes.rows())
    except UsageError:
        raise
    except Exception as error:  # whatever a program, or what runs it, may raise
        what = f"the program fails on rows for this model: {_reason(error)}"
        raise ModelError(what, where=where, hint=_EXPORT) from error


def _far(compared: LargestDifference) -> str:
    return f"max |dP| {compared.max_dp:.1e} on {compared.rows:,} made-up rows"
