"""The query of a model: layer upon layer, each computing its columns once from those of the one below.

    valued    v0, ...       every input as a number or a text, NULL where it is missing
    coded     c0, ...       its code: by the cuts, which stand in the query, or by the table of levels
    grouped   c..., ...     digits of codes where a table joins some
    added     z<s>_<r>      the scores of stage s: shift and tables; of stages that go on from those before, their parts
    summed    z<s>_<r>      the scores of such stages
    highest   m<s>          the greatest score
    shares    e<s>_<y>      exp(score - greatest)
    divided   n<s>          the sum of the shares
    mixed     q<y>          sum over stages of weight * share / n
    logs      l<y>          of a model calibrated by powers: ln P
    scaled    g<y>          scale * l + shift
    topped    u             the greatest of them
    powers    q<y>          exp(g - u)
    summed    t             of a model calibrated by lines: the sum of q
    divided   p<y>          q / t
    lines     q<y>          the level of the line at p
    whole     t, best       the sum of q and the greatest of them
    expected  d<y>          with costs: sum over the labels of cost * q, of deciding for y
    lowest    cheapest      the smallest of them

Stages are taken `STAGES` at a time, from `added` to `mixed`, so that no layer is wide. For two labels there is one
score, the second's less the first's.

A portable model as one array of numbers, which a query adds up without knowing of averages or missing tables.

    S[r] of a stage = shift[r] + sum over its terms of numbers[r, base + sum over the axes of stride * digit]

Tables are expanded ("unobserved" has entries of its own), those of one stage over one input are added into one over its
codes, and those of one stage over the same digits into one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from bncli.errors import ModelError
from bncli.files.exports.sql_dialects import Dialect, identifier, number, total

if TYPE_CHECKING:
    from bncli.engine.kernels.arrays import Array
    from bncli.engine.prediction.portable import Input, PortableLine, PortableScorer, PortableStage, PortableTable
    from bncli.files.exports.programs import ProgramTarget

MOST_NUMBERS = 5_000_000
"""Of a file: some 100 MB."""
Coding = tuple[int, tuple[int, ...]]
"""An input and the digit of each of its codes."""


@dataclass(frozen=True)
class Term:
    """A table: its first cell, and by axis the coding's position in `SqlModel.codings` and the stride."""

    base: int
    axes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SqlStage:
    """As PortableStage, the tables being terms."""

    weight: float
    anew: bool
    shift: tuple[float, ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class SqlModel:
    """numbers (R, cells); of `codings` the first are the inputs themselves, code for code."""

    codings: tuple[Coding, ...]
    stages: tuple[SqlStage, ...]
    numbers: Array


ZERO = "0.0e0"
LEAST = "1e-300"
"""A probability below it is taken for it where it is raised to a power."""
STAGES = 16
MAPPED = 64
"""Levels at most that DuckDB looks for one after the other, in a map; for more it joins, of which it plans few."""
FLAT = 8
"""Cuts that are compared one after the other; of more, the middle one first."""


@dataclass
class Layers:
    """Those so far, each a name and its text."""

    dialect: Dialect
    texts: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, columns: Sequence[tuple[str, str]], source: str = "") -> None:
        """Add a layer of columns, (expression, name) each, selected from the last layer or from `source`."""
        if len(columns) > self.dialect.columns:
            what = f"the query needs {len(columns):,} columns, {self.dialect.product} has {self.dialect.columns:,}"
            raise ModelError(what, hint="export with another --dialect, or as python; or learn with fewer columns")
        name = f"{name}_{len(self.texts)}"
        shown = ",\n    ".join(one if one == alias else f"{one} AS {alias}" for one, alias in columns)
        source = source or self.texts[-1][0]
        self.texts.append((name, f"  SELECT\n    {shown}\n  FROM {source}{self.dialect.fence}"))

    def text(self) -> str:
        """WITH and all layers."""
        return "WITH " + ",\n".join(f"{name} AS NOT MATERIALIZED (\n{text}\n)" for name, text in self.texts)


def sql_model(scorer: PortableScorer) -> SqlModel:
    """Raise ModelError where there are too many numbers for a text."""
    size = sum(table.expanded_size for table in scorer.tables)
    if size > MOST_NUMBERS:
        what = f"the model is too large to be written as SQL: {size:,} table entries"
        raise ModelError(what, hint=f"at most {MOST_NUMBERS:,} can be; learn with fewer parents, or with --effort 1")
    places: dict[Coding, int] = {}
    for p, one in enumerate(scorer.inputs):
        places[p, tuple(range(one.unobserved + 1))] = p
    blocks: list[Array] = []
    stages = [_stage(stage, places, blocks) for stage in scorer.stages]
    empty = np.zeros((len(scorer.stages[0].shift), 0))
    return SqlModel(tuple(places), tuple(stages), np.concatenate([empty, *blocks], axis=1))


def _stage(stage: PortableStage, places: dict[Coding, int], blocks: list[Array]) -> SqlStage:
    merged: dict[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], PortableTable] = {}
    for table in map(_over_codes, stage.tables):
        key = (table.inputs, table.digits)
        known = merged.get(key)
        merged[key] = table if known is None else replace(table, entries=known.entries + table.entries)
    terms = []
    for table in merged.values():
        base = sum(block.shape[1] for block in blocks)
        blocks.append(table.entries)
        codings = [places.setdefault(coding, len(places)) for coding in zip(table.inputs, table.digits, strict=True)]
        strides = [math.prod(table.shape[i + 1 :]) for i in range(len(table.shape))]
        terms.append(Term(base, tuple(zip(codings, strides, strict=True))))
    return SqlStage(stage.weight, stage.anew, tuple(stage.shift.tolist()), tuple(terms))


def _over_codes(table: PortableTable) -> PortableTable:
    """Return the expanded table, over the codes themselves if it has one axis."""
    from bncli.engine.prediction.portable import PortableTable

    table = table.expanded()
    digits = tuple(tuple(map(int, axis)) for axis in table.digits)
    if len(digits) != 1:
        return replace(table, digits=digits)
    codes = tuple(range(len(digits[0])))
    return PortableTable(table.inputs, (codes,), (len(codes),), table.entries[:, list(digits[0])])


def query(scorer: PortableScorer, model: SqlModel, dialect: Dialect, target: ProgramTarget, stem: str) -> Layers:
    """Return the layers up to `whole`, or `lowest`, over the table target.options["input"].

    Stem: of the tables' names.
    """
    layers = Layers(dialect)
    table, key = target.options["input"], target.options["key"]
    values = [_value(one, dialect, target) for one in scorer.inputs]
    named = [(f"t.{identifier(key)}", "row_key"), *((value, f"v{p}") for p, value in enumerate(values))]
    layers.add("valued", named, f"{identifier(table)} AS t")
    codes = _add_codes(layers, scorer.inputs, identifier(f"{stem}_levels"))
    grouped = list(enumerate(model.codings))[len(codes) :]
    if grouped:
        digits = [(_digit(f"c{p}", digits), f"c{c}") for c, (p, digits) in grouped]
        layers.add("grouped", [*kept("row_key", *codes), *digits])
    q = [f"q{y}" for y in range(len(scorer.labels))]
    found = scorer.calibration
    has_logs = found is not None and bool(found.powers) and len(model.stages) == 1
    _add_stages(layers, model, len(q), identifier(f"{stem}_weights"), has_logs)
    if found is not None and found.powers:
        _add_powers(layers, found.powers, q, has_logs)
    elif found is not None:
        _add_lines(layers, found.lines, q)
    layers.add("whole", [*kept("row_key", *q), (total(q), "t"), (dialect.most(q), "best")])
    if target.rule is not None and target.rule.costs is not None:
        add_costs(layers, target.rule.costs, q)
    return layers


def _value(one: Input, dialect: Dialect, target: ProgramTarget) -> str:
    column = f"t.{identifier(dialect.shortened(one.name))}"
    if one.cuts is None:
        return dialect.text_value(column, target.missing)
    return dialect.number_value(column, target.missing_numbers)


def _add_codes(layers: Layers, inputs: Sequence[Input], levels: str) -> list[str]:
    """Return the names of the codes' columns."""
    source, known = layers.texts[-1][0], [p for p, one in enumerate(inputs) if one.codes]
    mapped: dict[int, int] = {}
    if layers.dialect.has_maps:
        mapped = {p: i for i, p in enumerate(known, start=1) if len(inputs[p].codes or ()) <= MAPPED}
    if mapped:
        one = f"SELECT l.input, map(list(l.level), list(l.code)) AS codes FROM {levels} AS l GROUP BY l.input"
        source += f",\n  (SELECT list(codes ORDER BY input) AS known FROM ({one}) AS maps) AS maps"
    columns = []
    for p, one_input in enumerate(inputs):
        code = _level_code(one_input, p, levels, layers.dialect, mapped.get(p))
        if one_input.cuts is not None:
            code = _chosen(f"v{p}", one_input.cuts, list(map(str, range(len(one_input.cuts) + 1))))
        columns.append((f"CASE WHEN v{p} IS NULL THEN {one_input.missing} ELSE {code} END", f"c{p}"))
    layers.add("coded", [*kept("row_key"), *columns], source)
    return [name for _, name in columns]


def _level_code(one: Input, p: int, levels: str, dialect: Dialect, mapped: int | None) -> str:
    """Return the SQL that looks a code up in the table of levels, or in the map of the `mapped`-th input."""
    if mapped is not None:
        return f"coalesce(known[{mapped}][v{p}], {one.unobserved})"
    value = f'v{p} COLLATE "C"' if dialect.has_arrays else f"v{p}"
    found = f"SELECT l.code FROM {levels} AS l WHERE l.input = {p} AND l.level = {value}"
    return f"coalesce(({found}), {one.unobserved})"


def _chosen(value: str, cuts: Sequence[float], choices: Sequence[str]) -> str:
    """choices[i], i being how many cuts the value is above."""
    if len(cuts) <= FLAT:
        tests = " ".join(f"WHEN {value} <= {number(cut)} THEN {choices[i]}" for i, cut in enumerate(cuts))
        return f"CASE {tests} ELSE {choices[-1]} END" if cuts else choices[0]
    half = len(cuts) // 2
    below, above = (
        _chosen(value, cuts[:half], choices[: half + 1]),
        _chosen(value, cuts[half + 1 :], choices[half + 1 :]),
    )
    return f"CASE WHEN {value} <= {number(cuts[half])} THEN {below} ELSE {above} END"


def _digit(code: str, digits: Sequence[int]) -> str:
    """Return the digit of a code, by runs of codes that share theirs."""
    runs = [(digit, list(run)) for digit, run in itertools.groupby(range(len(digits)), key=digits.__getitem__)]
    tests = " ".join(f"WHEN {code} <= {run[-1]} THEN {digit}" for digit, run in runs[:-1])
    return f"CASE {tests} ELSE {runs[-1][0]} END" if tests else str(runs[-1][0])


def _add_stages(layers: Layers, model: SqlModel, n_labels: int, weights: str, has_logs: bool) -> None:
    """Up to q<y>, or of the one stage there is l<y>."""
    codes = [f"c{c}" for c in range(len(model.codings))]
    scores = [f"s{r}" for r in range(len(model.numbers))]
    shares = [f"q{y}" for y in range(n_labels)]
    for first in range(0, len(model.stages), STAGES):
        chunk = model.stages[first : first + STAGES]
        ahead = model.stages[first + STAGES : first + STAGES + 1]
        carried = ["row_key", *(codes if ahead else []), *(shares if first else [])]
        _add_scores(layers, chunk, carried, scores, weights)
        goes_on = scores if ahead and not ahead[0].anew else []
        if has_logs:
            _add_logs(layers, n_labels)
        else:
            _add_mix(layers, chunk, carried, goes_on, n_labels)


def _add_scores(
    layers: Layers, chunk: Sequence[SqlStage], carried: Sequence[str], scores: Sequence[str], weights: str
) -> None:
    """z<s>_<r> beside what is carried; the scores before the chunk are carried too, where it goes on from them."""
    goes_on = not chunk[0].anew
    named = "z" if all(stage.anew for stage in chunk) else "d"
    parts = [
        (_score(stage, r, weights, layers.dialect), f"{named}{s}_{r}")
        for s, stage in enumerate(chunk)
        for r in range(len(scores))
    ]
    source = layers.texts[-1][0]
    if layers.dialect.has_arrays:
        lists = ", ".join(f"array_agg(w.s{r} ORDER BY w.cell) AS w{r}" for r in range(len(scores)))
        source += f",\n  (SELECT {lists} FROM {weights} AS w) AS numbers"
    layers.add("added", [*kept(*carried, *(scores if goes_on else [])), *parts], source)
    if named == "d":
        layers.add("summed", [*kept(*carried), *_sums(chunk, scores)])


def _score(stage: SqlStage, r: int, weights: str, dialect: Dialect) -> str:
    """Return the shift and the entry of every table; cells are numbered from 1."""
    cells = [
        " + ".join([str(term.base + 1), *(f"c{c} * {stride}" if stride > 1 else f"c{c}" for c, stride in term.axes)])
        for term in stage.terms
    ]
    if dialect.has_arrays:
        return total([number(stage.shift[r]), *(f"w{r}[{cell}]" for cell in cells)])
    # One cursor for all tables: SQLite walks through all open ones whenever one is opened.
    added = f"(SELECT sum(w.s{r}) FROM {weights} AS w WHERE w.cell IN ({', '.join(cells)}))"
    return total([number(stage.shift[r]), *([added] if cells else [])])


def _sums(chunk: Sequence[SqlStage], scores: Sequence[str]) -> list[tuple[str, str]]:
    """Return what the stages add, from the last that begins anew, or from the scores before the chunk."""
    found = []
    for s in range(len(chunk)):
        start = max((i for i in range(s + 1) if chunk[i].anew), default=-1)
        for r, name in enumerate(scores):
            parts = [f"d{i}_{r}" for i in range(max(start, 0), s + 1)]
            found.append((total([name, *parts] if start < 0 else parts), f"z{s}_{r}"))
    return found


def _add_logs(layers: Layers, n_labels: int) -> None:
    """l<y> from the scores of the one stage."""
    scores = [f"z0_{r}" for r in range(n_labels if n_labels > 2 else 1)]
    terms = scores if n_labels > 2 else [ZERO, *scores]
    layers.add("highest", [*kept("row_key", *scores), (layers.dialect.most(terms), "m0")])
    whole = total([layers.dialect.power(f"{term} - m0") for term in terms])
    layers.add("shares", [*kept("row_key", *scores), (f"m0 + ln({whole})", "n0")])
    layers.add("logs", [*kept("row_key"), *((f"{term} - n0", f"l{y}") for y, term in enumerate(terms))])


def _add_mix(
    layers: Layers, chunk: Sequence[SqlStage], carried: Sequence[str], scores: Sequence[str], n_labels: int
) -> None:
    """q<y> from the scores of the chunk, with what is carried; `scores` are to be the last of them."""
    rows = range(n_labels if n_labels > 2 else 1)
    z = [f"z{s}_{r}" for s in range(len(chunk)) for r in rows]
    of_labels = [[f"z{s}_{r}" for r in rows] if n_labels > 2 else [ZERO, f"z{s}_0"] for s in range(len(chunk))]
    tops = [(layers.dialect.most(terms), f"m{s}") for s, terms in enumerate(of_labels)]
    last = [(f"z{len(chunk) - 1}_{r}", name) for r, name in enumerate(scores)]
    layers.add("highest", [*kept(*carried, *z), *last, *tops])
    carried = [*carried, *scores]
    powers = [
        (layers.dialect.power(f"{term} - m{s}"), f"e{s}_{y}")
        for s, terms in enumerate(of_labels)
        for y, term in enumerate(terms)
    ]
    layers.add("shares", [*kept(*carried), *powers])
    wholes = [(total([f"e{s}_{y}" for y in range(n_labels)]), f"n{s}") for s in range(len(chunk))]
    layers.add("divided", [*kept(*carried, *(name for _, name in powers)), *wholes])
    rest = [name for name in carried if not name.startswith("q")]
    mixed = []
    for y in range(n_labels):
        parts = [f"{number(stage.weight)} * e{s}_{y} / n{s}" for s, stage in enumerate(chunk)]
        mixed.append((total([*(name for name in carried if name == f"q{y}"), *parts]), f"q{y}"))
    layers.add("mixed", [*kept(*rest), *mixed])


def _add_powers(layers: Layers, powers: Sequence[Sequence[float]], shares: Sequence[str], has_logs: bool) -> None:
    """q<y> from l<y>, or from the q<y> before; scales and shifts."""
    if not has_logs:
        layers.add("summed", [*kept("row_key", *shares), (total(shares), "t")])
        found = ((layers.dialect.most([f"{q} / t", LEAST]), f"l{y}") for y, q in enumerate(shares))
        layers.add("logs", [*kept("row_key"), *((f"ln({p})", name) for p, name in found)])
    scaled = [f"g{y}" for y in range(len(shares))]
    linear = (f"{number(scale)} * l{y} + {number(shift)}" for y, (scale, shift) in enumerate(zip(*powers, strict=True)))
    layers.add("scaled", [*kept("row_key"), *zip(linear, scaled, strict=True)])
    layers.add("topped", [*kept("row_key", *scaled), (layers.dialect.most(scaled), "u")])
    raised = ((layers.dialect.power(f"{g} - u"), q) for g, q in zip(scaled, shares, strict=True))
    layers.add("powers", [*kept("row_key"), *raised])


def _add_lines(layers: Layers, lines: Sequence[PortableLine], shares: Sequence[str]) -> None:
    """q<y> from the q<y> before; of two labels there is one line, that of the second."""
    layers.add("summed", [*kept("row_key", *shares), (total(shares), "t")])
    probabilities = [f"p{y}" for y in range(len(shares))]
    divided = ((f"{q} / t", p) for q, p in zip(shares, probabilities, strict=True))
    layers.add("divided", [*kept("row_key"), *divided])
    levels = [_level(p, line) for p, line in zip(probabilities[-len(lines) :], lines, strict=True)]
    if len(levels) == len(shares):
        layers.add("lines", [*kept("row_key"), *zip(levels, shares, strict=True)])
        return
    layers.add("line", [*kept("row_key"), (levels[0], shares[1])])
    layers.add("lines", [*kept("row_key", shares[1]), (f"1.0e0 - {shares[1]}", shares[0])])


def _level(p: str, line: PortableLine) -> str:
    segments = zip(*line[1:], strict=True)
    choices = [f"{number(level)} + {number(slope)} * ({p} - {number(start)})" for start, level, slope in segments]
    return _chosen(p, line.ends, choices)


def add_costs(layers: Layers, costs: Sequence[Sequence[float]], shares: Sequence[str]) -> None:
    """d<y> and `cheapest`, beside what the view shows; costs[true][decision]."""
    carried = ["row_key", *shares, "t", "best"]
    decisions = [f"d{d}" for d in range(len(shares))]
    priced = [[f"{number(row[d])} * {q}" for row, q in zip(costs, shares, strict=True)] for d in range(len(shares))]
    layers.add("expected", [*kept(*carried), *zip(map(total, priced), decisions, strict=True)])
    least = f"-({layers.dialect.most([f'-{d}' for d in decisions])})"
    layers.add("lowest", [*kept(*carried, *decisions), (least, "cheapest")])


def kept(*names: str) -> list[tuple[str, str]]:
    """Return columns of the layer below."""
    return [(name, name) for name in names]
