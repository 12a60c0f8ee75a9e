"""What is asked of rows beyond their prediction: what to ask next, what another value does, what flips the label."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.catalogue.option_kinds import parse_decimal
from bncli.engine.data.columns import MISSING, CategoricalColumn, Columns
from bncli.engine.data.number_formats import NumberForm
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import DecisionRule, Model
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.joint_model import JointModel
from bncli.engine.prediction.what_if import Flips, NextBest
from bncli.errors import UsageError
from bncli.files.exports.score_layout import ExtraColumn, most_probable

_NAMED = 10


@dataclass(frozen=True)
class WhatIfQuestions:
    """changes: (column, value) that is set in every row beside the row as it is, the empty value for missing.

    flip: tell the fewest changes, of `flip_changes` values at most, of these columns (none: of all), that lead to
    another decision. surprise: tell -ln P(x). labels_only: no probabilities.
    """

    next_best: bool = False
    changes: tuple[tuple[str, str], ...] = ()
    flip: bool = False
    flip_columns: tuple[str, ...] = ()
    flip_changes: int = 2
    surprise: bool = False
    labels_only: bool = False

    @property
    def any(self) -> bool:
        return self.next_best or bool(self.changes) or self.flip or self.surprise


class PreparedQuestions:
    """A model made ready for questions; UsageError or ModelError where one cannot be asked.

    used: the schema's attributes of the codes; score(codes) is what is said in the end, log P(y | x_t) (K, N).
    rule: how rows are decided, whose decision flips; None, or one that has sets alone: the most probable label does.
    """

    def __init__(
        self,
        model: Model,
        used: Sequence[int],
        questions: WhatIfQuestions,
        score: Callable[[Sequence[Codes]], Array],
        shift: Array | None = None,
        rule: DecisionRule | None = None,
    ) -> None:
        self._questions, self._score = questions, score
        self._attributes = [model.schema.attributes[i] for i in used]
        self._labels = model.schema.labels
        names = [attribute.name for attribute in self._attributes]
        self._changes = _changes(questions.changes, self._attributes, model.schema)
        self._next_best = NextBest(model, used, shift) if questions.next_best else None
        self._joint = JointModel(model, used) if questions.surprise else None
        self._flips = None
        if questions.flip:
            allowed = [_position(name, names, model.schema) for name in questions.flip_columns or names]
            decide = partial(_decided, rule, self._labels)
            self._flips = Flips(model.schema, used, allowed, questions.flip_changes, score, decide)

    @property
    def added(self) -> tuple[ExtraColumn, ...]:
        """The columns of the answers."""
        columns: list[ExtraColumn] = []
        if self._questions.changes:
            columns.append(ExtraColumn("prediction_if", "text"))
            columns += (
                [] if self._questions.labels_only else [ExtraColumn(f"p_if_{label}", "log_p") for label in self._labels]
            )
        columns += [ExtraColumn("flip", "text")] if self._flips else []
        columns += [ExtraColumn("next_best", "text")] if self._next_best else []
        columns += [ExtraColumn("surprise", "number")] if self._joint else []
        return tuple(columns)

    def answers(
        self, columns: Columns, rows: slice, codes: Sequence[Codes], log_p: Array
    ) -> tuple[Sequence[str] | Array, ...]:
        """Return the values of the columns `added`, for these rows of a batch."""
        found: list[Sequence[str] | Array] = []
        if self._changes:
            other = self.changed(codes)
            found.append([self._labels[y] for y in most_probable(other).tolist()])
            found += [] if self._questions.labels_only else list(other)
        if self._flips is not None:
            found.append(self._flips.find(codes, log_p))
        if self._next_best is not None:
            missing = [_missing(columns, attribute, rows) for attribute in self._attributes]
            found.append(self._next_best.ask(codes, missing) if codes else [""] * log_p.shape[1])
        if self._joint is not None:
            found.append(-self._joint.log_p(codes) if codes else np.zeros(log_p.shape[1]))
        return tuple(found)

    def changed(self, codes: Sequence[Codes]) -> Array:
        """Return log P(y | x_t) with the values that are set, (K, N)."""
        given = list(codes)
        for position, code in self._changes:
            given[position] = np.full_like(codes[position], code)
        return self._score(given)


def _decided(rule: DecisionRule | None, labels: tuple[str, ...], log_p: Array) -> Index:
    """Return the label decided for, (N,), or where nothing is decided the most probable one."""
    if rule is None or not rule.decides:
        return most_probable(log_p)
    return Decider.of(replace(rule, sets=None), labels).decide(log_p).codes


def _missing(columns: Columns, attribute: Attribute, rows: slice) -> NDArray[np.bool_]:
    """Where the value is missing; a column that is not there is missing in every row."""
    column = columns.attributes.get(attribute.name)
    if column is None:
        return np.ones(rows.stop - rows.start, np.bool_)
    if isinstance(column, CategoricalColumn):
        return np.asarray(column.codes[rows] == MISSING)
    values: NDArray[Any] = column.values[rows]  # type: ignore[union-attr]
    return np.asarray(np.isnan(values)) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)


def _changes(
    changes: Iterable[tuple[str, str]], attributes: Sequence[Attribute], schema: Schema
) -> tuple[tuple[int, int], ...]:
    """Return (position, code) of each column that is set; UsageError for one twice."""
    names = [attribute.name for attribute in attributes]
    found: dict[int, int] = {}
    for name, value in changes:
        position = _position(name, names, schema)
        if position in found:
            raise UsageError(f"the column {name!r} is set twice", hint="say --set once a column")
        found[position] = _code(attributes[position], value.strip())
    return tuple(found.items())


def _position(name: str, names: Sequence[str], schema: Schema) -> int:
    """Of an attribute that the model looks at."""
    if name in names:
        return names.index(name)
    if name == schema.class_name:
        raise UsageError(f"{name!r} is the class, which is what the model tells", hint="name an attribute")
    if any(attribute.name == name for attribute in schema.attributes):
        raise UsageError(f"the model does not look at {name!r}", hint="it changes no prediction: leave it out")
    near = difflib.get_close_matches(name, names, 1, 0.5)
    raise UsageError(f"the model has no column {name!r}", hint=f"did you mean {near[0]!r}?" if near else "")


def _code(attribute: Attribute, value: str) -> int:
    """Return what the value is coded as; the empty one is missing."""
    if not value:
        return attribute.n_values  # the missing level, or where there is none "unknown"
    if isinstance(attribute, NumericAttribute):
        comma = isinstance(attribute.form, NumberForm) and attribute.form.decimal == ","
        number = parse_decimal(value.replace(",", ".") if comma else value)
        if number is None:
            raise UsageError(f"{value!r} is no number, and {attribute.name!r} is numeric")
        return int(np.searchsorted(attribute.cuts, number, side="left"))
    code = attribute.code_of.get(value)
    if code is None:
        known = ", ".join(attribute.levels[:_NAMED]) + (", ..." if len(attribute.levels) > _NAMED else "")
        raise UsageError(f"{attribute.name!r} has no value {value!r}", hint=f"it has {known}")
    return code
