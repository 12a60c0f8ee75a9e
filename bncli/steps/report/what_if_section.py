"""The section that explains a prediction: the reader chooses values, and sees the probability and its explanation.

The page scores the row with the JavaScript of `export`. Its tables are the effects of the model, so that one sum gives
both the probability and the contributions. If the model is not a sum of effects (an average of models), the program has
the model's own tables, and the page shows the probability only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute
from bncli.engine.model import Model
from bncli.engine.prediction.portable import (
    PortableScorer,
    PortableStage,
    PortableTable,
    make_portable,
    make_portable_effects,
)
from bncli.errors import ModelError
from bncli.files.exports.javascript import packed_javascript
from bncli.files.exports.programs import ProgramTarget
from bncli.files.pictures.page import Block, InteractivePanel, Paragraph, Section
from bncli.files.reading.source import MissingTokens
from bncli.steps.effects_and_regions import EffectsReport
from bncli.steps.report.page_text import count

TITLE = "Explain a prediction"
MOST_BYTES = 990_000
"""The most bytes of a page with its program."""
MOST_INPUTS = 60
MOST_OPTIONS = 200
_CHARACTERS_PER_ENTRY = 6
"""A lower bound on the characters of the program per table entry."""
_ZERO = 1e-13
"""Log-odds below this are rounding errors."""


def what_if_sections(model: Model, path: str, effects: EffectsReport) -> Iterator[tuple[Section, str]]:
    """Yield versions of the section on the model at `path`, with the JavaScript of its panel, the largest first.

    The caller takes the first with which the whole page is small enough. The last one states why it has no panel.
    """
    n_entries = 0
    try:
        scorer = make_portable(model)
        if len(scorer.labels) < 2 or not scorer.inputs:
            raise ModelError("every row gets the same probabilities")
        if scorer.calibration is not None:
            raise ModelError("the model is calibrated, so the contributions of values do not add up to its log-odds")
        n_entries = sum(table.entries.size for table in scorer.tables)
        versions = [(scorer, False)]
        # without contributions, the panel still shows the probability
        with suppress(ModelError):
            versions.insert(0, (_scorer_of_effects(model, scorer), True))
        for version, has_effects in versions:
            if sum(table.entries.size for table in version.tables) * _CHARACTERS_PER_ENTRY <= MOST_BYTES:
                section = Section("row", TITLE, _panel_blocks(model, version, effects, has_effects))
                tokens = MissingTokens.of(model.schema.missing_tokens)
                target = ProgramTarget(PurePath(path).name.removesuffix(".bnc"), tokens.text, tokens.number)
                yield section, packed_javascript(version, target)
        why = f"a model of {n_entries:,} table entries makes the page larger than 1 MB"
        hint = (
            "bncli export --to javascript writes the scorer as a separate file; bncli score --explain explains the "
            "rows of a table."
        )
    except ModelError as error:
        why, hint = error.what, "score --explain explains the rows of a table."
    yield Section("row", TITLE, (Paragraph(f"There is no form for entering a row: {why}. {hint}", "gap"),)), ""


def _scorer_of_effects(model: Model, scorer: PortableScorer) -> PortableScorer:
    """Return the scorer whose tables are the effects; raise ModelError if the model is not a sum of effects.

    The log-odds V of K classes become scores (K - 1) / K V, and those of two classes the score of the second.
    """
    effects = make_portable_effects(model, scorer.inputs)
    k = len(scorer.labels)
    tables = []
    for table in effects.tables:
        if table.entries.any():
            scores = table.entries[1:2] if k == 2 else table.entries * ((k - 1) / k)
            tables.append(_without_unobserved(PortableTable(table.inputs, table.digits, table.shape, scores)))
    constant = effects.constant[1:2] if k == 2 else effects.constant * ((k - 1) / k)
    return replace(scorer, stages=(PortableStage(1.0, True, constant, tuple(tables)),))


def _without_unobserved(table: PortableTable) -> PortableTable:
    """Return the table without its entries for "unobserved" if all of these are 0, as averages of effects are.

    In a network they are not 0, and the table is returned unchanged.
    """
    entries = table.entries.reshape(-1, *table.shape)
    observed = entries[(slice(None), *(slice(0, n - 1) for n in table.shape))]
    unobserved = [np.moveaxis(entries, axis, 0)[-1] for axis in range(1, entries.ndim)]
    if not all(np.allclose(values, 0.0, rtol=0.0, atol=_ZERO) for values in unobserved):
        return table
    shape = tuple(n - 1 for n in table.shape)
    averages = (None,) * len(shape)
    return PortableTable(table.inputs, table.digits, shape, observed.reshape(len(entries), -1), averages)


def _panel_blocks(model: Model, scorer: PortableScorer, effects: EffectsReport, has_effects: bool) -> Sequence[Block]:
    """Return the panel, with the most important columns first, and a note on columns and values that it leaves out."""
    by_name = {attribute.name: attribute for attribute in model.schema.attributes}
    # a column is as important as all effects that it is part of
    importance: dict[str, float] = {}
    for effect in effects.effects:
        for name in effect.attributes:
            importance[name] = importance.get(name, 0.0) + effect.share
    names = sorted((column.name for column in scorer.inputs), key=lambda name: -importance.get(name, 0.0))
    shown = names[:MOST_INPUTS]
    inputs: list[Mapping[str, Any]] = []
    for name in shown:
        attribute, value = by_name[name], typical_value(by_name[name])
        if isinstance(attribute, NumericAttribute):
            inputs.append({"name": name, "options": None, "value": value})
            continue
        # the value of a categorical column is its position among the options
        weights = np.array(attribute.frequencies[: attribute.n_values])
        order = np.sort(np.argsort(-weights, kind="stable")[:MOST_OPTIONS])
        options = [attribute.levels[i] for i in order]
        inputs.append({"name": name, "options": options, "value": options.index(str(value))})
    data = {
        "inputs": inputs,
        "others": {name: typical_value(by_name[name]) for name in names[MOST_INPUTS:]},
        "effects": has_effects,
    }
    blocks: list[Block] = [
        Paragraph(
            "Choose values to see the predicted probability and the contribution of each value. "
            "The form starts with a common value of each attribute."
        )
    ]
    if len(names) > MOST_INPUTS:
        rest = count(len(names) - MOST_INPUTS, "column")
        blocks.append(
            Paragraph(
                f"The form contains the {MOST_INPUTS} most important attributes; {rest} others are fixed at a common "
                "value.",
                "gap",
            )
        )
    cut = [name for name in shown if len(getattr(by_name[name], "levels", ())) > MOST_OPTIONS]
    if cut:
        blocks.append(
            Paragraph(f"The form contains the {MOST_OPTIONS} most frequent values of {', '.join(cut[:5])}.", "gap")
        )
    fallback = (Paragraph("This panel needs JavaScript; bncli score --explain explains the rows of a table.", "gap"),)
    return (*blocks, InteractivePanel("what-if", "Predict one row", data, fallback))


def typical_value(attribute: Attribute) -> float | str:
    """Return the most frequent level, or a number in the interval that contains the median of the training rows."""
    weights = np.array(attribute.frequencies[: attribute.n_values], np.float64)
    if isinstance(attribute, CategoricalAttribute):
        return attribute.levels[int(weights.argmax())]
    cuts = attribute.cuts
    if not cuts:
        return 0.0
    code = int(np.searchsorted(np.cumsum(weights), weights.sum() / 2))
    if code == 0:
        return float(cuts[0])
    # an open interval is taken to be as wide as its neighbour, or a fifth of the only cut
    beyond = (cuts[-1] - cuts[-2]) / 2 if len(cuts) > 1 else abs(cuts[-1]) / 10
    middle = (cuts[code - 1] + cuts[code]) / 2 if code < len(cuts) else cuts[-1] + (beyond or 1.0)
    short = float(f"{middle:.4g}")
    return short if bisect_left(cuts, short) == code else float(middle)
