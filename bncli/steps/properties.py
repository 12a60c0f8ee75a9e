"""Parse properties stated as sentences, and prove or refute them for a model.

FORMS lists the forms of these sentences. Words in capitals are placeholders for a label of the class, columns that the
model uses, values, and probabilities P. Labels, columns and values may be quoted.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bncli.catalogue.option_kinds import parse_decimal
from bncli.engine.data.columns import unknown_label_error
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.model import Model
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.properties import (
    DecidesAlone,
    Flip,
    ProbabilityBound,
    Property,
    Prover,
    Trend,
    Verdict,
)
from bncli.engine.prediction.scoring import compile_scorer
from bncli.errors import UsageError
from bncli.steps.row_scoring import codes_of_values, position_of_column

FORMS = (
    "the probability of LABEL is never above|below P [where COLUMN = VALUE [and ...]]",
    "the probability of LABEL never falls|rises as COLUMN rises",
    "COLUMN never decides alone",
    "no single change flips a prediction above P",
)
_LISTED_VALUES = 12


@dataclass(frozen=True)
class ProvenProperty:
    """A property, whether it holds, and a counter-example if it does not.

    holds: None if the time limit was reached. values: the values of the counter-example by column, or None without one.
    changed: the values that differ in a second input, if the property compares two inputs. probabilities: the
    probabilities by label for each input; empty without a counter-example, and for a value that decides alone.
    decision: the decision that such a value forces, or None to abstain. shown: the counter-example as a string.
    """

    text: str
    holds: bool | None
    values: dict[str, Any] | None = None
    changed: dict[str, Any] | None = None
    probabilities: tuple[dict[str, float], ...] = ()
    decision: str | None = None
    shown: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the property as JSON values; details of a counter-example are present only if there is one."""
        fields: dict[str, Any] = {"property": self.text, "holds": self.holds, "counter_example": self.values}
        if self.probabilities:
            fields["p"] = self.probabilities[0]
        if self.changed:
            fields |= {"changed": self.changed, "p_changed": self.probabilities[1]}
        return fields if self.values is None or self.probabilities else fields | {"decision": self.decision}

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.holds is None:
            return f"open        {self.text}: the time limit was reached"
        if self.holds:
            return f"proven      {self.text}"
        return f"refuted     {self.text}: {self.shown}"


def prove_properties(model: Model, texts: Sequence[str], seconds: float) -> tuple[ProvenProperty, ...]:
    """Prove or refute properties, each within `seconds`; raise UsageError for a sentence that cannot be parsed."""
    attributes = [model.schema.attributes[a] for a in compile_scorer(model).used]
    stated = [parse_property(text, model.schema, attributes) for text in texts]
    prover = Prover(model, seconds, time.monotonic)
    return tuple(
        _proven_property(text, prover.prove(one), one, prover, model.schema, attributes)
        for text, one in zip(texts, stated, strict=True)
    )


def parse_property(text: str, schema: Schema, attributes: Sequence[Attribute]) -> Property:
    """Parse a sentence that states a property of a model with these attributes.

    Raises UsageError if the sentence has none of the FORMS, if it names a label, column or value that the model lacks,
    or if a condition or probability is invalid.
    """
    sentence = " ".join(text.split()).rstrip(".")
    names = [attribute.name for attribute in attributes]
    if match := re.fullmatch(r"the probability of (.+?) is never (above|below) (\S+)(?: where (.+))?", sentence):
        label, word, number, where = match.groups()
        # the (column, value) pairs of a text COLUMN = VALUE and COLUMN = VALUE ...
        conditions: list[tuple[str, str]] = []
        for part in where.split(" and ") if where else ():
            name, equals, value = part.partition("=")
            if equals:
                conditions.append((_unquoted(name), value))
            elif conditions:  # a value may hold the word
                conditions[-1] = (conditions[-1][0], f"{conditions[-1][1]} and {part}")
            else:
                raise UsageError(f"{part!r} is not a condition", hint="write where COLUMN = VALUE")
        for i, (name, _) in enumerate(conditions):
            if name in [earlier for earlier, _ in conditions[:i]]:
                what = f"the property gives two values of the column {name!r}"
                raise UsageError(what, hint="split it into two properties")
        pairs = codes_of_values([(name, _unquoted(value)) for name, value in conditions], attributes, schema)
        for position, code in pairs:
            if code == attributes[position].cardinality:
                what = f"the model has no level for missing values of {attributes[position].name!r}"
                raise UsageError(what, hint="give one of its values")
        return ProbabilityBound(
            _label(label, schema),
            1 if word == "above" else -1,
            _probability(number),
            dict(pairs),
        )
    if match := re.fullmatch(r"the probability of (.+?) never (falls|rises) as (.+) rises", sentence):
        position = position_of_column(_unquoted(match[3]), names, schema)
        attribute = attributes[position]
        if not isinstance(attribute, NumericAttribute):
            what = f"{attribute.name!r} is categorical, so it cannot rise"
            raise UsageError(what, hint="choose a numeric column")
        return Trend(_label(match[1], schema), 1 if match[2] == "falls" else -1, position, attribute.n_values)
    if match := re.fullmatch(r"(.+) never decides alone", sentence):
        return DecidesAlone(position_of_column(_unquoted(match[1]), names, schema))
    if match := re.fullmatch(r"no single change flips a prediction above (\S+)", sentence):
        return Flip(_probability(match[1]))
    raise UsageError(f"{text!r} is not a property", hint=f"the forms are: {'; '.join(FORMS)}")


def _label(text: str, schema: Schema) -> int:
    label = text if text in schema.labels else _unquoted(text)
    if label not in schema.labels:
        error = unknown_label_error(label, schema.labels, "--property", schema.class_name)
        raise UsageError(error.what, hint=error.hint)
    return schema.labels.index(label)


def _probability(text: str) -> float:
    number = parse_decimal(text)
    if number is None or not 0 <= number <= 1:
        raise UsageError(f"{text!r} is not a probability", hint="give a number from 0 to 1")
    return number


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _proven_property(
    text: str, verdict: Verdict, stated: Property, prover: Prover, schema: Schema, attributes: Sequence[Attribute]
) -> ProvenProperty:
    """Return the result of a proof, with the counter-example, if any, expressed as values of columns."""
    example = verdict.counter_example
    if example is None:
        return ProvenProperty(text, verdict.holds)
    values, changed = (
        {attributes[p].name: _value_of_code(attributes[p], code) for p, code in codes.items()}
        for codes in (example.codes, example.changed)
    )
    if isinstance(stated, DecidesAlone):
        decision = prover.decision_for(example.codes)
        what = "abstain" if decision is None else decision
        shown = f"{_shown(attributes, example.codes)} always decides {what}"
        return ProvenProperty(text, False, values, decision=decision, shown=shown)
    first = np.array([[example.codes[p] for p in range(len(attributes))]], np.intp)
    second = first.copy()
    for p, code in example.changed.items():
        second[0, p] = code
    inputs = (first, second) if changed else (first,)
    probabilities = tuple(
        dict(zip(schema.labels, np.exp(prover.log_p(one))[:, 0].tolist(), strict=True)) for one in inputs
    )
    if isinstance(stated, Flip):
        label = max(probabilities[0], key=lambda name: probabilities[0][name])
    else:
        label = schema.labels[stated.label]
    shown = f"P({label}) is {probabilities[0][label]:.6g} for {_shown(attributes, example.codes)}"
    if changed:
        shown += f", and {probabilities[1][label]:.6g} with {_shown(attributes, example.changed)}"
    return ProvenProperty(text, False, values, changed, probabilities, shown=shown)


def _shown(attributes: Sequence[Attribute], codes: Any) -> str:
    texts = [f"{attributes[p].name}={value_names(attributes[p])[code]}" for p, code in codes.items()]
    more = f" and {len(texts) - _LISTED_VALUES} more" if len(texts) > _LISTED_VALUES else ""
    return ", ".join(texts[:_LISTED_VALUES]) + more


def _value_of_code(attribute: Attribute, code: int) -> float | str | None:
    """Return a value of the column that has this code, or None for the code of missing values."""
    if code >= attribute.n_values:
        return None
    if not isinstance(attribute, NumericAttribute):
        group = attribute.groups[code] if attribute.groups else ()
        return group[0] if group else attribute.levels[code]
    cuts = attribute.cuts
    if not cuts:
        return 0.0
    if code == 0:
        return cuts[0]
    if code == len(cuts):
        return cuts[-1] + max(1.0, abs(cuts[-1])) if math.isfinite(2 * cuts[-1]) else math.nextafter(cuts[-1], math.inf)
    middle = cuts[code - 1] / 2 + cuts[code] / 2
    return middle if middle > cuts[code - 1] else cuts[code]
