"""Why this row? A panel in which a row is made by hand: probability and contributions follow in the page itself.

What scores there is the JavaScript of `export`, over the purified effects of the model, so that the same tables give
the probability and what it is made of; where a model is no sum of tables (an average of several), over its own tables.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute
from bncli.engine.kernels.arrays import Array
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

QUESTION = "Why this row?"
MOST_BYTES = 990_000
"""Of a page with the program in it."""
_LETTERS_AN_ENTRY = 6
"""At least."""
MOST_INPUTS = 60
MOST_OPTIONS = 200
_ZERO = 1e-13
"""Log-odds that come of rounding alone."""


class WhatIfSection(NamedTuple):
    """The section, and the program that its panel needs."""

    section: Section
    program: str


def what_if_sections(model: Model, path: str, effects: EffectsReport) -> Iterator[WhatIfSection]:
    """Yield the sections on the model at `path`, from the most detailed to the smallest.

    The last says why there is none; that a program is too large is known when the page is there.
    """
    entries = 0
    try:
        plain = make_portable(model)
        if len(plain.labels) < 2 or not plain.inputs:
            raise ModelError("every row gets the same probabilities")
        if plain.calibration is not None:
            raise ModelError("the model is calibrated by a map of its probabilities, and values do not add up to them")
        entries = sum(table.entries.size for table in plain.tables)
        for scorer, has_effects in _scorers(model, plain):
            if sum(table.entries.size for table in scorer.tables) * _LETTERS_AN_ENTRY <= MOST_BYTES:
                section = Section("row", QUESTION, _blocks(model, scorer, effects, has_effects))
                yield WhatIfSection(section, _program(model, path, scorer))
        why = f"a model of {entries:,} table entries makes the page larger than 1 MB"
        hint = "export --to javascript writes the program as a file of its own; score --explain does it for tables."
    except ModelError as error:
        why, hint = error.what, "score --explain does it for rows in a table."
    yield WhatIfSection(Section("row", QUESTION, (Paragraph(f"No row can be tried here: {why}. {hint}", "gap"),)), "")


def _scorers(model: Model, plain: PortableScorer) -> Iterator[tuple[PortableScorer, bool]]:
    """Yield those that may do, and whether their tables are the effects of the model."""
    with suppress(ModelError):
        yield _over_effects(model, plain), True
    yield plain, False


def _over_effects(model: Model, plain: PortableScorer) -> PortableScorer:
    """Return the scorer whose tables are the effects: contrasts V of K classes are (K - 1) / K of them as scores."""
    effects = make_portable_effects(model, plain.inputs)
    k = len(plain.labels)

    def scores(contrasts: Array) -> Array:
        return contrasts[1:2] if k == 2 else contrasts * ((k - 1) / k)

    told = (PortableTable(t.inputs, t.digits, t.shape, scores(t.entries)) for t in effects.tables)
    tables = tuple(_without_unobserved(table) for table in told if table.entries.any())
    stage = PortableStage(1.0, True, scores(effects.constant[:, None])[:, 0], tables)
    return replace(plain, stages=(stage,))


def _without_unobserved(table: PortableTable) -> PortableTable:
    """Without the entries for "unobserved" where these are 0: the mean along the axis, unless they are a network's."""
    entries = table.entries.reshape(-1, *table.shape)
    kept = entries[(slice(None), *(slice(0, n - 1) for n in table.shape))]
    hidden = [np.moveaxis(entries, axis, 0)[-1] for axis in range(1, entries.ndim)]
    if not all(np.allclose(one, 0.0, rtol=0.0, atol=_ZERO) for one in hidden):
        return table
    shape = tuple(n - 1 for n in table.shape)
    averages = (None,) * len(shape)
    return PortableTable(table.inputs, table.digits, shape, kept.reshape(len(entries), -1), averages)


def _blocks(model: Model, scorer: PortableScorer, effects: EffectsReport, has_effects: bool) -> Sequence[Block]:
    by_name = {attribute.name: attribute for attribute in model.schema.attributes}
    importance = _importance(effects)
    names = sorted((one.name for one in scorer.inputs), key=lambda name: -importance.get(name, 0.0))
    shown = names[:MOST_INPUTS]
    data = {
        "inputs": [_field(by_name[name]) for name in shown],
        "others": {name: typical_value(by_name[name]) for name in names[MOST_INPUTS:]},
        "effects": has_effects,
    }
    blocks: list[Block] = [
        Paragraph(
            "Choose values: the probability, and what speaks for it, follow. "
            "It begins with a value of each column that is common in training."
        ),
    ]
    if len(names) > MOST_INPUTS:
        rest = count(len(names) - MOST_INPUTS, "column")
        blocks.append(
            Paragraph(
                f"The {MOST_INPUTS} columns that matter most can be chosen; {rest} more keep a common value.", "gap"
            )
        )
    cut = [name for name in shown if len(getattr(by_name[name], "levels", ())) > MOST_OPTIONS]
    if cut:
        blocks.append(
            Paragraph(f"Of the values of {', '.join(cut[:5])} the {MOST_OPTIONS} commonest can be chosen.", "gap")
        )
    fallback = (
        Paragraph(
            "This panel needs a browser that runs scripts; score --explain says the same of rows in a table.", "gap"
        ),
    )
    return (*blocks, InteractivePanel("what-if", "A row by hand", data, fallback))


def _importance(effects: EffectsReport) -> dict[str, float]:
    """Return the shares of the effects that an attribute has part in."""
    shares: dict[str, float] = {}
    for one in effects.effects:
        for name in one.attributes:
            shares[name] = shares.get(name, 0.0) + one.share
    return shares


def _field(attribute: Attribute) -> Mapping[str, Any]:
    """Return a select of levels, its value a place among them, or a number to be typed."""
    if isinstance(attribute, NumericAttribute):
        return {"name": attribute.name, "options": None, "value": typical_value(attribute)}
    weights = np.array(attribute.frequencies[: attribute.n_values])
    order = np.sort(np.argsort(-weights, kind="stable")[:MOST_OPTIONS])
    options = [attribute.levels[i] for i in order]
    return {"name": attribute.name, "options": options, "value": options.index(str(typical_value(attribute)))}


def _program(model: Model, path: str, scorer: PortableScorer) -> str:
    tokens = MissingTokens.of(model.schema.missing_tokens)
    return packed_javascript(
        scorer, ProgramTarget(PurePath(path).name.removesuffix(".bnc"), tokens.text, tokens.number)
    )


def typical_value(attribute: Attribute) -> float | str:
    """Return the commonest level, or a number in the interval that holds the median of the training rows."""
    weights = np.array(attribute.frequencies[: attribute.n_values], np.float64)
    if isinstance(attribute, CategoricalAttribute):
        return attribute.levels[int(weights.argmax())]
    cuts = attribute.cuts
    if not cuts:
        return 0.0
    code = int(np.searchsorted(np.cumsum(weights), weights.sum() / 2))
    if code == 0:
        return float(cuts[0])
    # nothing is known of how far an open interval goes: no farther than its neighbour, or a tenth of the one cut
    beyond = (cuts[-1] - cuts[-2]) / 2 if len(cuts) > 1 else abs(cuts[-1]) / 10
    middle = (cuts[code - 1] + cuts[code]) / 2 if code < len(cuts) else cuts[-1] + (beyond or 1.0)
    short = float(f"{middle:.4g}")
    return short if bisect_left(cuts, short) == code else float(middle)
