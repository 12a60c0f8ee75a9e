"""By which rule rows are decided that a model scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bncli.catalogue import DECISION_KEYS
from bncli.choices import flag_of, key_of
from bncli.engine.data.decision_rule import Rule
from bncli.engine.decisions.deciding import Decider
from bncli.engine.decisions.rules import Wanted, rule_of
from bncli.engine.model import Model
from bncli.files.label_numbers import costs_stated
from bncli.recipe.defaults import read
from bncli.recipe.refusals import refuse_decisions
from bncli.watch import Note, Watch


def wanted_of(words: Mapping[str, Any]) -> Wanted:
    """What a program says of decisions, by the words of the options; TypeError for an unknown one."""
    if unknown := [word for word in words if word not in DECISION_KEYS]:
        raise TypeError(f"there is no option {unknown[0]!r}; of decisions there are {', '.join(DECISION_KEYS)}")
    typed = {key: value for key, value in words.items() if value is not None}
    if "costs" in typed:
        typed["costs"] = costs_stated(typed["costs"])
    return Wanted(**{key_of(flag): value for flag, value in read(typed).items()})


def rule_to_score(model: Model, wanted: Wanted, other_prior: bool, watch: Watch) -> Rule | None:
    """That of the model, with what is wanted instead; None: nothing is decided.

    A warning where a threshold or sets rest on rows held out, and the probabilities are those of another prior.
    """
    stored = model.rule
    has_sets = stored is not None and stored.sets is not None
    refuse_decisions({flag_of(key): value for key, value in wanted._asdict().items()}, has_sets)
    rule = rule_of(wanted, model.schema.labels, model.schema.class_name, stored)
    if rule is None:
        return None
    Decider.of(rule, model.schema.labels)  # what cannot be decided is told before a row is read
    if other_prior and (rule.sets is not None or (rule.threshold is not None and rule.threshold.chosen)):
        what = "threshold" if rule.sets is None else "prediction sets"
        text = f"the {what} rest on rows held out, which had the prior of training: under --prior nothing is promised"
        watch(Note(text.replace("threshold rest", "threshold rests"), warning=True))
    return rule


def tell_unreached(rule: Rule | None, labels: tuple[str, ...], highest: float, watch: Watch) -> None:
    """A warning where rows were scored and none reaches the threshold; highest: ln P of the second label in any row."""
    if rule is None or rule.threshold is None or highest == -math.inf:
        return
    value, most = rule.threshold.value, math.exp(highest)
    if most < value:
        text = f"no row reaches the threshold {value:.6g}: the highest p_{labels[1]} is {most:.6g}"
        watch(Note(f"{text}, so none is decided {labels[1]!r}", warning=True))
