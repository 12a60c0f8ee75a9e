"""The sections on effects: plots or tables of the largest effects, and a form that explains the prediction of a row.

The effects are sorted by the fraction of the variance of the score that they explain, largest first.

The plot of a single attribute shows intervals. Let N be the number of training rows with a value, and p the model's
probability of the class for a row that is average except for this value. Log-odds estimated from N rows have the
standard error 1 / sqrt(N p (1 - p)), and the effect is drawn with an interval of plus or minus twice this error. These
intervals show how precise an estimate from N rows can be, and do not depend on how the model was fitted. They are left
out if they are on average wider than the range of the effect. For a model of two classes fitted with intervals (`fit
--intervals`), the 90 % intervals of its own parameters are drawn instead.

The page of a model of two classes also has a nomogram: the effects of single attributes as points to add up by hand.

In the form, the reader chooses values and sees the predicted probability and the contribution of each value. The page
computes them with the JavaScript program that `export` writes. The tables of the program are the effects of the model,
so that one sum gives both the probability and the contributions. If the model is not a sum of effects, as when it
averages the probabilities of several models, the program has the model's own tables, and the page shows only the
probability. There is no form for a calibrated model, or if the page would be larger than MOST_BYTES.
"""

from __future__ import annotations

import math
import re
import string
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute
from bncli.engine.kernels.arrays import Array, Index
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
from bncli.files.pictures import effect_plots
from bncli.files.pictures.drawing import INSIDE, SHADES, axis_of
from bncli.files.pictures.effect_plots import (
    HeatAxis,
    NomogramPoints,
    Scale,
    ValueEffect,
    effect_bars,
    effect_steps,
    heat_map,
    interval_edges,
    nomogram,
    share_bars,
)
from bncli.files.pictures.page import (
    Block,
    Cards,
    FoldedBlocks,
    Grid,
    InteractivePanel,
    LabelSwitch,
    Paragraph,
    Picture,
    Section,
    count,
    percent,
    times,
)
from bncli.files.reading.source import MissingTokens
from bncli.steps.effects_and_regions import EffectsReport, NamedEffect

TITLE = "Effects"
MOST_EFFECTS = 50
SMALL_SHARE = 0.01
"""Effects that explain a smaller fraction of the variance are folded into one line."""
LEAST_PICTURES = 3
"""This many effects are always shown, even if they explain less than SMALL_SHARE of the variance."""
LISTED = 30
"""The maximum number of bars in the plot of the most important effects."""
MOST_NAMES = 24
"""The maximum number of values of a categorical attribute in a plot; the most frequent ones are drawn."""
MOST_INTERVALS = 300
MOST_NUMBERS = 60_000
"""The maximum number of numeric values stored in a page for redrawing plots for other classes."""
MOST_SENTENCES = 8
"""With more classes, a plot has a single sentence, about the class with the largest effect."""
MOST_SCALES = 15
"""The maximum number of attributes in a nomogram."""
_LEAST_POINTS = 0.5
"""An attribute is left out of the nomogram if its range has fewer points; the widest range has 100 points."""
_MOST_VALUES = 40
"""The maximum number of values per attribute in a nomogram."""
_STRONGEST = 8
_LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
_LEAST_SHARE = 1e-6
FORM_TITLE = "Explain a prediction"
MOST_BYTES = 990_000
"""The maximum size in bytes of a page with the program of its form."""
MOST_INPUTS = 60
MOST_OPTIONS = 200
_CHARACTERS_PER_ENTRY = 6
"""A lower bound on the number of characters of the program per table entry."""
_ZERO = 1e-13
"""Log-odds with a smaller absolute value are treated as rounding errors."""


def effects_section(report: EffectsReport, labels: tuple[str, ...], n_rows: float) -> Section:
    """Return the section on the effects of a model; `n_rows` is the total weight of the training rows."""
    return Section("effects", TITLE, tuple(_effects_blocks(report, labels, n_rows)))


def _effects_blocks(report: EffectsReport, labels: tuple[str, ...], n_rows: float) -> Iterator[Block]:
    """Yield the introduction, the importance of the effects, the nomogram, the plots, and a note on omitted effects."""
    effects = [effect for effect in report.effects if effect.share > _LEAST_SHARE]
    if not effects:
        yield Paragraph("No attribute has an effect: every row gets the class frequencies.")
        return
    if len(labels) == 2:
        odds = math.exp(min(report.base[1], 50.0))
        start = f"An average row has odds of {odds:.3g} to 1 for {labels[1]} against {labels[0]}. "
    else:
        start = "The plots show the log-odds of a class against the geometric mean of the others. "
    bands = "Lines and bands are twice the standard error of log-odds estimated from the training rows with that value."
    if _has_margins(report, labels):
        bands = "Lines and bands are 90 % intervals."
    yield Paragraph(
        f"{start}Each value adds its log-odds to those of an average row: 0.69 doubles the odds, −0.69 halves them. "
        f"{bands}"
    )
    if report.models > 1:
        yield Paragraph(
            f"The model averages the probabilities of {report.models:,} models. The plots show the effects on their "
            "mean score."
        )
    shares = _share_picture(effects, labels)
    if len(labels) == 2:
        scales = _nomogram_picture(report, labels)
        yield Cards((shares,) if scales is None else (shares, scales))
    else:
        yield LabelSwitch(labels, _shown_label(labels))
    # Small joint effects have no plot, nor do effects that would make the page too large.
    main: list[Block] = [] if len(labels) == 2 else [shares]
    small, others_sentence = list[Picture](), list[NamedEffect]()
    left_out, n_numbers = list[NamedEffect](), 0
    taken = {"shares", "nomogram"}
    for number, effect in enumerate(effects[:MOST_EFFECTS]):
        is_small = effect.share < SMALL_SHARE and number >= LEAST_PICTURES
        if is_small and len(effect.attributes) > 1:
            others_sentence.append(effect)
            continue
        if len(effect.attributes) > 2:
            main.append(_strongest_entries(effect, labels))
            continue
        codes = [_shown_codes(attribute) for attribute in effect.axis_attributes]
        n_numbers += math.prod(map(len, codes)) * len(labels) * (len(labels) > 2)
        name = _picture_name(effect, taken)
        if n_numbers > MOST_NUMBERS:
            left_out.append(effect)
        elif len(effect.attributes) == 1:
            (small if is_small else main).append(_value_picture(report, labels, n_rows, effect, codes[0], name))
        else:
            main.append(_pair_picture(report, labels, effect, codes, name))
    if main:
        yield Cards(main)
    if small or others_sentence:
        below = [effect for i, effect in enumerate(effects[:MOST_EFFECTS]) if i >= LEAST_PICTURES]
        below = [effect for effect in below if effect.share < SMALL_SHARE]
        total = percent(sum(effect.share for effect in below))
        title = f"{count(len(below), 'effect')} below {percent(SMALL_SHARE)} of the variance, together {total}"
        blocks: list[Block] = [Cards(small)] if small else []
        if others_sentence:
            lines = [(" & ".join(effect.attributes), percent(effect.share)) for effect in others_sentence]
            blocks.append(Grid("Joint effects without a plot", ("attributes", "share of variance"), lines, (1,)))
        yield FoldedBlocks("small-effects", title, blocks)
    hidden = [*effects[MOST_EFFECTS:], *left_out]
    if hidden or report.left_out:
        share = sum(effect.share for effect in hidden) + (report.left_out.share if report.left_out else 0.0)
        n = len(hidden) + (report.left_out.n_effects if report.left_out else 0)
        yield Paragraph(
            f"{count(n, 'effect')} with {percent(share)} of the variance not shown; see bncli inspect --effects --csv.",
            "gap",
        )


def _picture_name(effect: NamedEffect, taken: set[str]) -> str:
    """Return a file name, without extension, for the plot of an effect, and add it in lower case to `taken`.

    The name consists of `effect-` and the attributes, of which at most 60 characters are kept. Characters that some
    file systems do not accept become `_`, and a number is appended if the name is already taken.
    """
    plain = re.sub(r"[^\w.+-]+", "_", "-".join(effect.attributes))[:60].strip("_.") or "attribute"
    name, n = f"effect-{plain}", 1
    while name.lower() in taken:
        n += 1
        name = f"effect-{plain}-{n}"
    taken.add(name.lower())
    return name


def _share_picture(effects: Sequence[NamedEffect], labels: tuple[str, ...]) -> Picture:
    """Draw the fractions of the variance that the first effects explain as bars."""
    first = [effect for i, effect in enumerate(effects[:LISTED]) if effect.share >= SMALL_SHARE or i < LEAST_PICTURES]
    rows = [(effect.attributes, effect.share) for effect in first]
    whose = labels[1] if len(labels) == 2 else "all labels"
    drawing = share_bars(
        f"Shares of the variance of the log-odds of {whose}", rows, [percent(effect.share) for effect in first]
    )
    total, n = 0.0, 0
    for effect in effects:
        total, n = total + effect.share, n + 1
        if total >= 0.8:
            break
    who = f"{n} of {len(effects):,} effects explain" if n > 1 else f"{' & '.join(effects[0].attributes)} alone explains"
    return Picture("shares", "Importance", f"{who} {percent(total)} of the variance of the score.", drawing)


def _shown_label(labels: Sequence[str]) -> int:
    """Return the index of the class that plots show initially: the second of two classes, otherwise the first."""
    return 1 if len(labels) == 2 else 0


def _shown_codes(attribute: Attribute) -> Index:
    """Return the codes that a plot shows, in ascending order: all, or only the most frequent if there are too many."""
    most = MOST_INTERVALS if isinstance(attribute, NumericAttribute) else MOST_NAMES
    if attribute.cardinality <= most:
        return np.arange(attribute.cardinality)
    order = np.argsort(-np.array(attribute.frequencies), kind="stable")
    return np.sort(order[:most])


def _value_picture(
    report: EffectsReport, labels: Sequence[str], n_rows: float, effect: NamedEffect, codes: Index, name: str
) -> Picture:
    """Draw the effect of an attribute as steps over its intervals, or as a bar for each of the values `codes`.

    n_rows: the total weight of the training rows. name: the name of the picture.
    """
    attribute, title, label = effect.axis_attributes[0], effect.attributes[0], _shown_label(labels)
    values = effect.values[codes]
    weights = np.array(attribute.frequencies)[codes]
    total = max(float(sum(attribute.frequencies)), 1e-300)
    rows = weights / total * n_rows
    names = [effect.names[0][code] for code in codes]
    # twice the standard error of every value and class, (values, K)
    scores = report.base + values
    k = scores.shape[-1]
    scaled = scores * ((k - 1) / k)
    shares = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    errors = np.asarray(2 / np.sqrt(np.maximum(rows[:, None] * shares * (1 - shares), 1e-9)))
    # bounds that are on average as wide as the range of the effect are uninformative
    span = max(float(np.ptp(values[rows > 0], axis=0).max(initial=0.0)), 1e-9)
    has_bounds = float(np.average(errors.mean(axis=1), weights=np.maximum(rows, 1e-9))) <= span / 2
    errors = errors if has_bounds else np.zeros_like(errors)
    if _has_margins(report, labels):
        assert effect.margins is not None
        errors = effect.margins[codes]
    # wide intervals of rare values are cut off, so that the effects remain readable
    ends = np.concatenate(((values - errors).ravel(), (values + errors).ravel(), values.ravel()))
    ends = np.clip(ends, 1.6 * min(values.min(), -0.05), 1.6 * max(values.max(), 0.05))
    axis = axis_of([0.0, *ends.tolist()], logarithmic=False)
    columns = (values[:, label].tolist(), errors[:, label].tolist(), weights.tolist())
    points = [
        ValueEffect(value_name, value, value - error, value + error, weight / total)
        for value_name, value, error, weight in zip(names, *columns, strict=True)
    ]
    is_curve = isinstance(attribute, NumericAttribute) and len(codes) == attribute.cardinality
    if is_curve and isinstance(attribute, NumericAttribute):
        cuts = [f"{cut:.5g}" for cut in attribute.cuts] + ["missing"] * attribute.missing
        edges = interval_edges(attribute.cuts, len(points))
        drawing = effect_steps(f"{title}: effect on {labels[label]}", points, cuts, axis, edges, title)
        frame: list[float] = [*effect_plots.STEPS_FRAME]
    else:
        edges = []
        drawing = effect_bars(f"{title}: effect on {labels[label]}", points, axis)
        frame = [*effect_plots.BARS_FRAME]
    redraw: dict[str, Any] | None = None
    if len(labels) > 2:
        redraw = {"kind": "steps" if is_curve else "bars", "frame": frame, "low": axis.low, "high": axis.high}
        redraw |= {"inside": INSIDE, "values": _thousandths(values), "base": report.base.tolist()}
        redraw |= {"rows": np.round(rows, 1).tolist() if has_bounds else None}
        redraw |= {"edges": [round(edge, 4) for edge in edges]}
    sentences = [_value_sentence(labels[y], y, effect, names, values, rows) for y in _described_labels(labels, values)]
    others_sentence = f" The {len(codes)} most frequent of {attribute.cardinality:,} values are shown."
    sentences = _qualified(labels, sentences, others_sentence if len(codes) < attribute.cardinality else "")
    several = tuple(sentences) if len(sentences) > 1 else ()
    caption = f"{title} ({percent(effect.share)})"
    return Picture(name, caption, sentences[0], drawing, redraw=redraw, sentences=several)


def _has_margins(report: EffectsReport, labels: Sequence[str]) -> bool:
    """Return whether to draw the model's own intervals, which a page of more than two classes cannot redraw."""
    return len(labels) == 2 and all(effect.margins is not None for effect in report.effects)


def _described_labels(labels: Sequence[str], values: Array) -> Sequence[int]:
    """Return the indices of the classes that have a sentence.

    They are the second of two classes, all classes if there are at most MOST_SENTENCES, or the most affected class.
    """
    if len(labels) == 2:
        return (1,)
    if len(labels) <= MOST_SENTENCES:
        return range(len(labels))
    return (int(np.abs(values.reshape(-1, len(labels))).max(axis=0).argmax()),)


def _qualified(labels: Sequence[str], sentences: Sequence[str], others_sentence: str) -> list[str]:
    """Append `others_sentence` to each sentence.

    With more than MOST_SENTENCES classes, each sentence begins by saying that it is about the most affected class,
    since the plot may show another one.
    """
    if len(labels) > MOST_SENTENCES:
        sentences = [f"Largest effect on any class: {sentence[0].lower()}{sentence[1:]}" for sentence in sentences]
    return [f"{sentence}{others_sentence}" for sentence in sentences]


def _thousandths(values: Array) -> list[str]:
    """Encode values (..., K) as a string per class: round(1000 value) + 2^17, in three base64 digits each.

    Values whose rounded thousandths lie outside -2^17, ..., 2^17 - 1 are clipped.
    """
    whole = np.clip(np.round(1000 * values.reshape(-1, values.shape[-1]).T), -(1 << 17), (1 << 17) - 1) + (1 << 17)
    sextets = (whole.astype(np.int64)[..., None] >> np.array([12, 6, 0])) & 63
    return ["".join(_LETTERS[sextet] for sextet in row.ravel().tolist()) for row in sextets]


def _value_sentence(
    label_name: str, label: int, effect: NamedEffect, names: Sequence[str], values: Array, rows: Array
) -> str:
    """Return a sentence on how the odds of a class change with the values of an attribute.

    If the odds rise or fall monotonically over the intervals, it describes this trend. Otherwise it gives the values
    with the highest and lowest odds, among values with at least five rows if most rows have such values.
    """
    attribute = effect.axis_attributes[0]
    if isinstance(attribute, NumericAttribute) and attribute.cuts:
        steps = np.diff(values[: attribute.n_values, label])
        if len(steps) == len(attribute.cuts) and ((steps >= 0).all() or (steps <= 0).all()):
            cut = int(np.abs(steps).argmax())
            direction = "rise" if steps[cut] > 0 else "fall"
            ends = " to ".join(times(float(values[i, label])) for i in (0, len(steps)))
            largest = f"most strongly above {attribute.cuts[cut]:.5g} ({times(float(steps[cut]))})"
            return f"The odds of {label_name} {direction} with {effect.attributes[0]} from {ends}, {largest}."
    # values with few rows are ignored, unless most rows have such values
    known = rows >= 5.0
    known = known if rows[known].sum() >= rows.sum() / 2 else rows > 0
    column = values[:, label]
    extremes = (np.where(known, column, -np.inf).argmax(), np.where(known, column, np.inf).argmin())
    highest, lowest = (f"{names[i]} ({times(float(column[i]))})" for i in map(int, extremes))
    return f"The odds of {label_name} are highest for {highest} and lowest for {lowest}."


def _pair_picture(
    report: EffectsReport, labels: Sequence[str], effect: NamedEffect, codes: Sequence[Index], name: str
) -> Picture:
    """Draw the joint effect of two attributes as a heat map, with the effect of each attribute along an edge."""
    label = _shown_label(labels)
    values = effect.values[np.ix_(*codes)]
    of_one = {own.attributes[0]: own for own in report.effects if len(own.attributes) == 1}
    axes, edges = [], []
    for place in (0, 1):
        own = of_one.get(effect.attributes[place])
        # no edge is drawn if the attribute's own effect has other values
        has_edge = own is not None and own.names[0] == effect.names[place]
        edge = np.asarray(own.values[codes[place]]) if own is not None and has_edge else None
        edges.append(edge)
        names = [effect.names[place][code] for code in codes[place]]
        axes.append(HeatAxis(effect.attributes[place], names, None if edge is None else edge[:, label]))
    title = " & ".join(effect.attributes)
    drawing = heat_map(f"{title}: joint effect on {labels[label]}", axes[0], axes[1], values[..., label])
    redraw: dict[str, Any] | None = None
    if len(labels) > 2:
        # layers: numbers per class, columns, and left, top, width and height of a cell; all classes have one scale
        n_rows, n_columns, _ = values.shape
        wide, high = round(effect_plots.MAP_SIDE / n_columns, 1), round(effect_plots.MAP_SIDE / n_rows, 1)
        left, margin = effect_plots.MAP_LEFT, effect_plots.MAP_EDGE
        top = effect_plots.MAP_TOP + margin + 4
        layers: list[list[Any]] = [[_thousandths(values), n_columns, left, top, wide, high]]
        if edges[1] is not None:
            layers.append([_thousandths(edges[1]), n_columns, left, effect_plots.MAP_TOP, wide, margin])
        if edges[0] is not None:
            layers.append([_thousandths(edges[0]), 1, left + effect_plots.MAP_SIDE + 4, top, margin, high])
        redraw = {"kind": "map", "layers": layers, "shades": SHADES, "scale": effect_plots.heat_scale(values, *edges)}
    sentences = []
    for y in _described_labels(labels, values):
        cells = values[..., y]
        i, j = divmod(int(np.abs(cells).argmax()), cells.shape[1])
        both = f"{axes[0].name} {axes[0].values[i]} and {axes[1].name} {axes[1].values[j]}"
        most = f"the odds of {labels[y]}: {times(float(cells[i, j]))}"
        sentences.append(f"Largest change beyond the separate effects: {both} together change {most}.")
    is_partial = any(
        len(own) < attribute.cardinality for own, attribute in zip(codes, effect.axis_attributes, strict=True)
    )
    sentences = _qualified(labels, sentences, " The most frequent values are shown." if is_partial else "")
    several = tuple(sentences) if len(sentences) > 1 else ()
    caption = f"{title} ({percent(effect.share)})"
    return Picture(name, caption, sentences[0], drawing, redraw=redraw, sentences=several)


def _strongest_entries(effect: NamedEffect, labels: Sequence[str]) -> Grid:
    """Return a table of the entries with the largest absolute values in an effect of three or more attributes."""
    first_label = int(len(labels) == 2)
    values = effect.values[..., first_label:]
    order = np.argsort(-np.abs(values), axis=None, kind="stable")[:_STRONGEST]
    axes = (*effect.names, labels[first_label:])
    rows = []
    for cell in zip(*np.unravel_index(order, values.shape), strict=True):
        names = (axis[code] for axis, code in zip(axes, cell, strict=True))
        rows.append((*names, f"{values[cell]:+.3f}", times(values[cell])))
    title = f"{' & '.join(effect.attributes)} ({percent(effect.share)}), strongest"
    return Grid(title, (*effect.attributes, "class", "log-odds", "odds"), rows, (len(axes), len(axes) + 1))


def _nomogram_picture(report: EffectsReport, labels: tuple[str, ...]) -> Picture | None:
    """Draw the nomogram of a model of two classes; return None if no single attribute has an effect."""
    effects = nomogram_effects(report)
    if not effects:
        return None
    drawing = nomogram(nomogram_points(report, effects), labels[1])
    share = sum(effect.share for effect in effects)
    widest = max(effects, key=lambda effect: float(np.ptp(effect.values[:, 1]))).attributes[0]
    sentence = (
        f"Add the points of a row and read P({labels[1]}) below the sum. {widest} has the widest range of points."
    )
    if share < 1 - 1e-9:
        sentence += f" Joint and small effects with {percent(1 - share)} of the variance are left out."
    return Picture("nomogram", "Nomogram", sentence, drawing, wide=True)


def nomogram_effects(report: EffectsReport) -> list[NamedEffect]:
    """Return the effects in a nomogram: the first MOST_SCALES effects of single attributes, without very small ones."""
    effects = [effect for effect in report.effects if len(effect.attributes) == 1 and effect.share > 0][:MOST_SCALES]
    ranges = [float(np.ptp(effect.values[:, 1])) for effect in effects]
    least = _LEAST_POINTS / 100 * max(ranges, default=0.0)
    return [effect for effect, range_ in zip(effects, ranges, strict=True) if range_ >= least]


def nomogram_points(report: EffectsReport, effects: Sequence[NamedEffect]) -> NomogramPoints:
    """Return the nomogram's points of each value for a model of two classes.

    At most _MOST_VALUES values of an attribute are kept: the ones with the largest and the smallest effect, and others
    in descending order of the absolute effect.
    """
    scales = []
    for effect in effects:
        values = effect.values[:, 1]
        order = np.argsort(-np.abs(values), kind="stable").tolist()
        ends = {int(values.argmin()), int(values.argmax())}
        kept = [v for v in order if v not in ends][: _MOST_VALUES - len(ends)]
        of_values = [(effect.names[0][v], float(values[v])) for v in order if v in ends or v in kept]
        scales.append(Scale(effect.attributes[0], of_values))
    return effect_plots.nomogram_points(scales, float(report.base[1]))


def what_if_sections(model: Model, path: str, effects: EffectsReport) -> Iterator[tuple[Section, str]]:
    """Yield versions of the section with the form for the model at `path`, and their JavaScript, largest first.

    The caller uses the first version with which the whole page is small enough. The last version has no form and an
    empty program, and states why.
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
                section = Section("row", FORM_TITLE, _panel_blocks(model, version, effects, has_effects))
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
    yield Section("row", FORM_TITLE, (Paragraph(f"There is no form for entering a row: {why}. {hint}", "gap"),)), ""


def _scorer_of_effects(model: Model, scorer: PortableScorer) -> PortableScorer:
    """Return `scorer` with the effects as its tables; raise ModelError if the model is not a sum of effects.

    The log-odds V of K > 2 classes become scores V (K - 1) / K. With two classes, the log-odds of the second class are
    its score.
    """
    effects = make_portable_effects(model, scorer.inputs)
    k = len(scorer.labels)
    tables = []
    for table in effects.tables:
        if table.entries.any():
            scores = table.entries[1:2] if k == 2 else table.entries * ((k - 1) / k)
            # The entries for "unobserved" are left out if all are 0. They are averages of effects, which are 0, except
            # in a network.
            entries, shape, averages = scores.reshape(-1, *table.shape), table.shape, None
            unobserved = [np.moveaxis(entries, axis, 0)[-1] for axis in range(1, entries.ndim)]
            if all(np.allclose(values, 0.0, rtol=0.0, atol=_ZERO) for values in unobserved):
                scores = entries[(slice(None), *(slice(0, n - 1) for n in shape))].reshape(len(entries), -1)
                shape, averages = tuple(n - 1 for n in shape), (None,) * len(shape)
            tables.append(PortableTable(table.inputs, table.digits, shape, scores, averages))
    constant = effects.constant[1:2] if k == 2 else effects.constant * ((k - 1) / k)
    return replace(scorer, stages=(PortableStage(1.0, True, constant, tuple(tables)),))


def _panel_blocks(model: Model, scorer: PortableScorer, effects: EffectsReport, has_effects: bool) -> Sequence[Block]:
    """Return the form, with the most important columns first, and notes on columns and values that it leaves out."""
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
    """Return the most frequent level, or a number in the interval that contains the median (0 without cuts)."""
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
