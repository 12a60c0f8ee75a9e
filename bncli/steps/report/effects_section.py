"""What does it say? Every set of attributes by how much it matters, each as a picture with one sentence.

Intervals: a value that N training rows have is taken as known to twice the standard error of log-odds counted from so
many rows, 1 / sqrt(N p (1 - p)), p being what the model says of an otherwise average row with this value. They say how
much so many rows can tell, not how the model was learnt.

The nomogram of a model of two classes: its effects of single attributes as points that are added up by hand.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array, Index
from bncli.files.pictures import effect_plots
from bncli.files.pictures.drawing import INSIDE, SHADES, Drawing, axis_of
from bncli.files.pictures.effect_plots import (
    HeatAxis,
    NomogramPoints,
    Scale,
    ValueEffect,
    effect_bars,
    effect_steps,
    heat_map,
    nomogram,
    share_bars,
)
from bncli.files.pictures.page import Block, Grid, LabelSwitch, Paragraph, Picture, Pictures, Section
from bncli.steps.effects_and_regions import EffectsReport, NamedEffect
from bncli.steps.report.page_text import percent, times

MOST_SCALES = 15
_LEAST_POINTS = 0.5
"""Of 100: what moves the sum by less is left out."""
_MOST_VALUES = 40
QUESTION = "What does it say?"
MOST_EFFECTS = 50
LISTED = 30
MOST_NAMES = 24
"""Values of a category in a picture: of more the commonest."""
MOST_INTERVALS = 200
MOST_NUMBERS = 60_000
"""That a page holds to draw the other classes."""
MOST_SENTENCES = 8
"""Classes of which every picture has a sentence each."""
_STRONGEST = 8
_LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
_LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class EffectsSection:
    """What effects are told of: the report, the labels, the class shown first, the weight of the training rows."""

    report: EffectsReport
    labels: tuple[str, ...]
    rows: float

    @property
    def label(self) -> int:
        """The second of two, else the first."""
        return 1 if len(self.labels) == 2 else 0

    def told_of(self, values: Array) -> Sequence[int]:
        """Return the labels that have a sentence: the one shown.

        Of several all; of too many the one it says most of.
        """
        if len(self.labels) == 2:
            return (self.label,)
        if len(self.labels) <= MOST_SENTENCES:
            return range(len(self.labels))
        return (int(np.abs(values.reshape(-1, len(self.labels))).max(axis=0).argmax()),)

    def prefixed(self, sentence: str) -> str:
        """Of too many labels the sentence is not of the one that is drawn."""
        return (
            sentence
            if len(self.labels) <= MOST_SENTENCES
            else f"What it says most: {sentence[0].lower()}{sentence[1:]}"
        )

    @property
    def single(self) -> dict[str, NamedEffect]:
        """Effects of one attribute, by its name."""
        return {one.attributes[0]: one for one in self.report.effects if len(one.attributes) == 1}


def effects_section(report: EffectsReport, labels: tuple[str, ...], rows: float) -> Section:
    """Return the section on a model that was learnt from rows of this weight."""
    told = EffectsSection(report, labels, rows)
    return Section("effects", QUESTION, tuple(_blocks(told)))


def _blocks(told: EffectsSection) -> Iterator[Block]:
    report, labels = told.report, told.labels
    some = [one for one in report.effects if one.share > _LEAST_SHARE]
    if not some:
        yield Paragraph("No attribute has an effect: every row gets the class frequencies.")
        return
    yield Paragraph(_preface(told))
    if report.models > 1:
        yield Paragraph(
            f"The model averages the probabilities of {report.models:,} models; told are effects of the average score."
        )
    yield _shares(told, some)
    if len(labels) > 2:
        yield LabelSwitch(labels, told.label)
    if len(labels) == 2 and (picture := nomogram_picture(report, labels)) is not None:
        yield picture
    alone, pairs, left_out = _pictures(told, some)
    yield from (Pictures(pictures) for pictures in (alone, pairs) if pictures)
    yield from _larger(told, some)
    hidden = some[MOST_EFFECTS:]
    if hidden or report.left_out or left_out:
        share = sum(one.share for one in (*hidden, *left_out)) + (report.left_out.share if report.left_out else 0.0)
        n = len(hidden) + len(left_out) + (report.left_out.n_effects if report.left_out else 0)
        yield Paragraph(
            f"Left out here: {n:,} effects with {percent(share)} of the variance; inspect --effects --csv has them.",
            "gap",
        )


def _preface(told: EffectsSection) -> str:
    labels = told.labels
    if len(labels) == 2:
        base = told.report.base[1]
        start = f"An average row has odds of {math.exp(min(base, 50.0)):.3g} to 1 for {labels[1]} against {labels[0]}; "
    else:
        start = "What is shown are log-odds of a class against the others (their geometric mean) of an average row; "
    return (
        f"{start}every value adds its log-odds to that, so 0.69 doubles the odds and −0.69 halves them. "
        "Lines and bands tell how sure so many training rows can be of a value: twice its standard error."
    )


def _shares(told: EffectsSection, effects: Sequence[NamedEffect]) -> Picture:
    listed = effects[:LISTED]
    rows = [(one.attributes, one.share) for one in listed]
    drawing = share_bars("Shares of the score's variance", rows, [percent(one.share) for one in listed])
    total, n = 0.0, 0
    for one in effects:
        total, n = total + one.share, n + 1
        if total >= 0.8:
            break
    those = f"{n} of {len(effects):,} effects make" if n > 1 else f"{' & '.join(effects[0].attributes)} alone makes"
    return Picture("shares", "What matters most.", f"{those} {percent(total)} of the score's variance.", drawing)


def _pictures(
    told: EffectsSection, effects: Sequence[NamedEffect]
) -> tuple[list[Picture], list[Picture], list[NamedEffect]]:
    """Return those of one attribute, of two, and what finds no room."""
    alone, pairs, left_out, numbers = list[Picture](), list[Picture](), list[NamedEffect](), 0
    for number, one in enumerate(effects[:MOST_EFFECTS], 1):
        if len(one.attributes) > 2:
            continue
        kept = [_kept(attribute) for attribute in one.seen]
        numbers += math.prod(map(len, kept)) * len(told.labels) * (len(told.labels) > 2)
        if numbers > MOST_NUMBERS:
            left_out.append(one)
            continue
        name = f"effect-{number:02d}"
        if len(one.attributes) == 1:
            alone.append(_single(told, one, kept, name))
        else:
            pairs.append(_pair(told, one, kept, name))
    return alone, pairs, left_out


def _kept(attribute: Attribute) -> Index:
    """Return the codes that are shown: all, or of too many the commonest, in their order."""
    most = MOST_INTERVALS if isinstance(attribute, NumericAttribute) else MOST_NAMES
    if attribute.cardinality <= most:
        return np.arange(attribute.cardinality)
    order = np.argsort(-np.array(attribute.frequencies), kind="stable")
    return np.sort(order[:most])


def _single(told: EffectsSection, effect: NamedEffect, kept: Sequence[Index], name: str) -> Picture:
    attribute, codes = effect.seen[0], kept[0]
    values = effect.values[codes]
    weights = np.array(attribute.frequencies)[codes]
    total = max(float(sum(attribute.frequencies)), 1e-300)
    rows = weights / total * told.rows
    names = [effect.names[0][code] for code in codes]
    # Twice the standard error of every value and class, (values, K).
    scores = told.report.base + values
    k = scores.shape[-1]
    scaled = scores * ((k - 1) / k)
    shares = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    errors = np.asarray(2 / np.sqrt(np.maximum(rows[:, None] * shares * (1 - shares), 1e-9)))
    axis = axis_of(
        [
            0.0,
            *np.clip(
                np.concatenate(((values - errors).ravel(), (values + errors).ravel(), values.ravel())),
                1.6 * min(values.min(), -0.05),
                1.6 * max(values.max(), 0.05),
            ).tolist(),
        ],
        logarithmic=False,
    )
    shown = [
        ValueEffect(one, value, value - error, value + error, weight / total)
        for one, value, error, weight in zip(
            names, *(column.tolist() for column in (values[:, told.label], errors[:, told.label], weights)), strict=True
        )
    ]
    title = effect.attributes[0]
    is_curve = isinstance(attribute, NumericAttribute) and len(codes) == attribute.cardinality
    if is_curve and isinstance(attribute, NumericAttribute):
        cuts = [f"{cut:.5g}" for cut in attribute.cuts] + ["missing"] * attribute.missing
        drawing = effect_steps(title, shown, cuts, axis)
        frame: list[float] = [*effect_plots.STEPS_FRAME]
    else:
        drawing = effect_bars(title, shown, axis)
        frame = [*effect_plots.BARS_FRAME]
    redraw: dict[str, Any] | None = None
    if len(told.labels) > 2:
        redraw = {"kind": "steps" if is_curve else "bars", "frame": frame, "low": axis.low, "high": axis.high}
        redraw |= {"inside": INSIDE, "values": _thousandths(values), "rows": np.round(rows, 1).tolist()}
        redraw |= {"base": told.report.base.tolist()}
    sentences = [_sentence(told.labels[label], label, effect, names, values, rows) for label in told.told_of(values)]
    sentences = [told.prefixed(one) for one in sentences]
    if len(codes) < attribute.cardinality:
        rest = f" Shown are the {len(codes)} commonest of {attribute.cardinality:,} values."
        sentences = [f"{one}{rest}" for one in sentences]
    return _captioned_picture(name, f"{title} ({percent(effect.share)}).", sentences, drawing, redraw)


def _thousandths(values: Array) -> list[str]:
    """Return a text a class: whole thousandths, three letters of base64 each, the most significant first; 0 is 2^17."""
    whole = np.clip(np.round(1000 * values.reshape(-1, values.shape[-1]).T), -(1 << 17), (1 << 17) - 1) + (1 << 17)
    octets = (whole.astype(np.int64)[..., None] >> np.array([12, 6, 0])) & 63
    return ["".join(_LETTERS[one] for one in row.ravel().tolist()) for row in octets]


def _sentence(of: str, label: int, effect: NamedEffect, names: Sequence[str], values: Array, rows: Array) -> str:
    """Return what is to be seen of the label called `of`, from values with enough rows behind them."""
    attribute = effect.seen[0]
    column = np.where(rows >= min(5.0, rows.max(initial=0.0)), values[:, label], 0.0)
    high, low = int(column.argmax()), int(column.argmin())
    if isinstance(attribute, NumericAttribute) and attribute.cuts:
        steps = np.diff(values[: attribute.n_values, label])
        if len(steps) == len(attribute.cuts) and ((steps >= 0).all() or (steps <= 0).all()):
            cut = int(np.abs(steps).argmax())
            way, ends = (
                ("rise" if steps[cut] > 0 else "fall"),
                (times(float(values[i, label])) for i in (0, len(steps))),
            )
            largest = f"most of all above {attribute.cuts[cut]:.5g} ({times(float(steps[cut]))})"
            return f"The odds of {of} {way} with {effect.attributes[0]} from {' to '.join(ends)}, {largest}."
    highest, lowest = (f"{names[code]} ({times(float(column[code]))})" for code in (high, low))
    return f"The odds of {of} are highest for {highest} and lowest for {lowest}."


def _captioned_picture(
    name: str, title: str, sentences: Sequence[str], drawing: Drawing, redraw: Mapping[str, Any] | None
) -> Picture:
    """With the sentence of every class, or the only one."""
    several = tuple(sentences) if len(sentences) > 1 else ()
    return Picture(name, title, sentences[0], drawing, redraw=redraw, sentences=several)


def _pair(told: EffectsSection, effect: NamedEffect, kept: Sequence[Index], name: str) -> Picture:
    values = effect.values[np.ix_(*kept)]
    axes, alone = [], []
    for place in (0, 1):
        single = told.single.get(effect.attributes[place])
        numbers = _alone(single, effect.seen[place], kept[place])
        alone.append(numbers)
        names = [effect.names[place][code] for code in kept[place]]
        shown = None if numbers is None else numbers[:, told.label]
        axes.append(HeatAxis(effect.attributes[place], names, shown))
    title = " & ".join(effect.attributes)
    drawing = heat_map(title, axes[0], axes[1], values[..., told.label])
    redraw = _redrawn_map(values, alone) if len(told.labels) > 2 else None
    sentences = [_pair_sentence(told.labels[label], axes, values[..., label]) for label in told.told_of(values)]
    sentences = [told.prefixed(one) for one in sentences]
    if any(len(codes) < attribute.cardinality for codes, attribute in zip(kept, effect.seen, strict=True)):
        sentences = [f"{one} Of many values the commonest are shown." for one in sentences]
    return _captioned_picture(name, f"{title} ({percent(effect.share)}).", sentences, drawing, redraw)


def _alone(single: NamedEffect | None, seen: Attribute, kept: Index) -> Array | None:
    """Return what the values of one axis do alone, (values, K), where that is told over the same values."""
    if single is None or single.seen[0].cardinality != seen.cardinality:
        return None
    return np.asarray(single.values[kept])


def _redrawn_map(values: Array, alone: Sequence[Array | None]) -> dict[str, Any]:
    """Layers (numbers a class, columns, left, top, width, height of a cell), one scale for all classes."""
    rows, columns, _ = values.shape
    wide, high = effect_plots.MAP_SIDE / columns, effect_plots.MAP_SIDE / rows
    left, top, margin = effect_plots.MAP_LEFT, effect_plots.MAP_TOP + effect_plots.MAP_EDGE + 4, effect_plots.MAP_EDGE
    layers: list[list[Any]] = [[_thousandths(values), columns, left, top, round(wide, 1), round(high, 1)]]
    if alone[1] is not None:
        layers.append([_thousandths(alone[1]), columns, left, effect_plots.MAP_TOP, round(wide, 1), margin])
    if alone[0] is not None:
        layers.append([_thousandths(alone[0]), 1, left + effect_plots.MAP_SIDE + 4, top, margin, round(high, 1)])
    return {"kind": "map", "layers": layers, "shades": SHADES, "scale": effect_plots.heat_scale(values, *alone)}


def _pair_sentence(of: str, axes: Sequence[HeatAxis], cells: Array) -> str:
    i, j = divmod(int(np.abs(cells).argmax()), cells.shape[1])
    both = f"{axes[0].name} {axes[0].values[i]} and {axes[1].name} {axes[1].values[j]}"
    most = f"the odds of {of} most: {times(float(cells[i, j]))}"
    return f"Beyond what each says alone, {both} together change {most}."


def _larger(told: EffectsSection, effects: Sequence[NamedEffect]) -> Iterator[Block]:
    """Yield the strongest entries of sets of three or more attributes."""
    for one in (one for one in effects[:MOST_EFFECTS] if len(one.attributes) > 2):
        hidden = int(len(told.labels) == 2)
        values = one.values[..., hidden:]
        order = np.argsort(-np.abs(values), axis=None, kind="stable")[:_STRONGEST]
        axes = (*one.names, told.labels[hidden:])
        rows = [
            (
                *(names[code] for names, code in zip(axes, cell, strict=True)),
                f"{values[cell]:+.3f}",
                times(values[cell]),
            )
            for cell in zip(*np.unravel_index(order, values.shape), strict=True)
        ]
        title = f"{' & '.join(one.attributes)} ({percent(one.share)}), strongest"
        yield Grid(title, (*one.attributes, "class", "log-odds", "odds"), rows, (len(axes), len(axes) + 1))


def nomogram_scales(report: EffectsReport) -> list[NamedEffect]:
    """Return the effects of single attributes that are worth points, the first few."""
    single = [one for one in report.effects if len(one.attributes) == 1 and one.share > 0][:MOST_SCALES]
    ranges = [float(np.ptp(one.values[:, 1])) for one in single]
    least = _LEAST_POINTS / 100 * max(ranges, default=0.0)
    return [one for one, range_ in zip(single, ranges, strict=True) if range_ >= least]


def nomogram_points(report: EffectsReport, single: Sequence[NamedEffect]) -> NomogramPoints:
    """Of a model of two classes: the points of each value; of very many values those that move most."""
    scales = []
    for one in single:
        named = zip(one.names[0], one.values[:, 1].tolist(), strict=True)
        scales.append(Scale(one.attributes[0], sorted(named, key=lambda pair: -abs(pair[1]))[:_MOST_VALUES]))
    return effect_plots.nomogram_points(scales, float(report.base[1]))


def nomogram_picture(report: EffectsReport, labels: tuple[str, ...]) -> Picture | None:
    """Return None where no single attribute has an effect."""
    single = nomogram_scales(report)
    if not single:
        return None
    drawing = nomogram(nomogram_points(report, single), labels[1])
    share = sum(one.share for one in single)
    widest = max(single, key=lambda one: float(np.ptp(one.values[:, 1]))).attributes[0]
    sentence = f"Add up the points of a row and read P({labels[1]}) under the sum; {widest} can move it most."
    if share < 1 - 1e-9:
        sentence += (
            f" {percent(1 - share)} of the score's variance is left out: sets of columns, and the least columns."
        )
    return Picture("nomogram", "Nomogram.", sentence, drawing, wide=True)
