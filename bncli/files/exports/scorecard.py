"""A scorecard: points for every value of every attribute, of pairs and of larger sets, as CSV or JSON.

    score = sum of the points of one row of every table
    P(second label) = 1 / (1 + exp(-(score - offset) / factor))
    factor = pdo / ln 2, offset = base - factor ln odds: `base` points are odds of `odds` to 1, `pdo` more double them

The tables are the purified effects (`bncli.engine.explanation`), so that pairs say only what their attributes alone
cannot. An attribute has offset/n of the n attributes besides, and its part of the base rate.

A value is written as it is, or in double quotes as in JSON where it could be taken for something else; values that
count alike are joined by ` | `, those of several attributes by ` & `; numbers are intervals, `(1.5, 2.5]` with 2.5 but
without 1.5; `(missing)` and `(unseen)` are rows as any. `formats.scorecard_reading` reads it.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from bncli.errors import ModelError
from bncli.files.exports import ProgramFormat
from bncli.files.exports.programs import ProgramTarget, text_of

if TYPE_CHECKING:
    from bncli.engine.prediction.portable import Input, PortableScorer, PortableTable


MISSING, UNSEEN = "(missing)", "(unseen)"
PROBABILITY = "(probability)"
"""Stands for an attribute in the last row of a CSV file, whose value is the formula. Names that begin so are quoted."""
MOST_ROWS = 100_000
PDO, BASE, ODDS = 20.0, 600.0, 50.0
_MISLEADING = re.compile(r'\A[("#]|(?:\A|\s)[|&](?:\s|\Z)|\A\s|\s\Z|\A\Z')


class _Row(NamedTuple):
    """A value, or one of every attribute of a set, and its points."""

    values: tuple[str, ...]
    points: float


class _Table(NamedTuple):
    """The rows of a set of attributes."""

    attributes: tuple[str, ...]
    rows: tuple[_Row, ...]

    @property
    def best(self) -> float:
        """Most points that a row has."""
        return max(row.points for row in self.rows)


class _Scale(NamedTuple):
    """What turns log-odds into points; digits None: as they are."""

    pdo: float
    base: float
    odds: float
    digits: int | None

    @property
    def factor(self) -> float:
        return self.pdo / math.log(2)

    @property
    def offset(self) -> float:
        return self.base - self.factor * math.log(self.odds)

    def rounded(self, points: float) -> float:
        """So many digits behind the point; never -0."""
        return points if self.digits is None else round(points, self.digits or None) + 0


def write_scorecard(scorer: PortableScorer, target: ProgramTarget) -> str:
    """Return the card, as JSON where the options say `json`; ModelError where there can be none."""
    if len(scorer.labels) != 2:
        what = f"a scorecard is for two classes, and the model has {len(scorer.labels)}"
        raise ModelError(what, hint="--to onnx and --to python take any number of classes")
    if not scorer.inputs:
        raise ModelError("the model looks at no column: there is nothing to give points for")
    if scorer.calibration is not None:
        what = "the model is calibrated by a map of its probabilities, which no points add up to"
        raise ModelError(what, hint="calibrate it by --method temperature, or export the model that was calibrated")
    chosen = target.options
    scale = _Scale(chosen.get("pdo", PDO), chosen.get("base", BASE), chosen.get("odds", ODDS), chosen.get("digits", 0))
    tables = list(_tables(scorer, target, scale))
    return _json_text(scorer, target, scale, tables) if chosen.get("json") else _csv_text(scorer, scale, tables)


def _tables(scorer: PortableScorer, target: ProgramTarget, scale: _Scale) -> Iterator[_Table]:
    """Larger sets that give no points are left out."""
    effects = target.effects()
    n_rows = sum(table.entries.shape[1] for table in effects.tables)
    if n_rows > MOST_ROWS:
        what = (
            f"the scorecard would have {n_rows:,} rows, over sets of up to {len(effects.tables[-1].inputs)} attributes"
        )
        hint = f"at most {MOST_ROWS:,} are written: learn with fewer parents, or with --structure interactions"
        raise ModelError(what, hint=hint)
    alone = sum(len(table.inputs) == 1 for table in effects.tables)
    share = (scale.offset + scale.factor * float(effects.constant[1])) / alone
    for table in effects.tables:
        extra = share if len(table.inputs) == 1 else 0.0
        points = [scale.rounded(extra + scale.factor * w) for w in table.entries[1].tolist()]
        if len(table.inputs) == 1 or any(points):
            yield _table(scorer, table, points)


def _table(scorer: PortableScorer, table: PortableTable, points: list[float]) -> _Table:
    """Return the cells to which some row of values leads."""
    inputs = [scorer.inputs[p] for p in table.inputs]
    axes = [_words(one, digits, n) for one, digits, n in zip(inputs, table.digits, table.shape, strict=True)]
    cells = zip(itertools.product(*axes), points, strict=True)
    return _Table(tuple(one.name for one in inputs), tuple(_Row(words, own) for words, own in cells if all(words)))


def _words(one: Input, digits: tuple[int, ...], n_digits: int) -> list[str]:
    """Return what every digit stands for; empty where nothing leads to it."""
    members: list[list[str]] = [[] for _ in range(n_digits)]
    if one.cuts is not None:
        ends = [-math.inf, *one.cuts, math.inf]
        for digit, alike in itertools.groupby(range(len(one.cuts) + 1), key=lambda code: digits[code]):
            first, *_, last = [*alike] * 2
            high = ends[last + 1]
            members[digit].append(f"({ends[first]!r}, {high!r}{')' if high == math.inf else ']'}")
    for text, code in (one.codes or {}).items():
        members[digits[code]].append(plain(text))
    members[digits[one.missing]].append(MISSING)
    if one.codes is not None:
        members[digits[one.unobserved]].append(UNSEEN)
    return [" | ".join(found) for found in members]


def plain(text: str) -> str:
    """Return the text, in quotes where it could be taken for something else."""
    return text_of(text) if _MISLEADING.search(text) or not text.isprintable() else text


def _csv_text(scorer: PortableScorer, scale: _Scale, tables: list[_Table]) -> str:
    """Return a heading, a line per row, and a last line without points that says what the score means."""
    label, name = text_of(scorer.labels[1]), text_of(scorer.class_name)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("attribute", "value", "points", "below_best"))
    for table in tables:
        attribute = " & ".join(map(plain, table.attributes))
        for row in table.rows:
            below = scale.rounded(table.best - row.points)
            writer.writerow((attribute, " & ".join(row.values), repr(row.points), repr(below)))
    formula = f"P({name} = {label}) = 1 / (1 + exp(-(score - {scale.offset!r}) / {scale.factor!r}))"
    writer.writerow((PROBABILITY, formula, "", ""))
    return lines.getvalue()


def _json_text(scorer: PortableScorer, target: ProgramTarget, scale: _Scale, tables: list[_Table]) -> str:
    """Return the same as an object, a line per row."""
    head = {
        "format": "bncli-scorecard",
        "version": 1,
        "model": target.name,
        "class": scorer.class_name,
        "labels": list(scorer.labels),
        "towards": scorer.labels[1],
        "probability": "1 / (1 + exp(-(score - offset) / factor))",
        "pdo": scale.pdo,
        "base": scale.base,
        "odds": scale.odds,
        "offset": scale.offset,
        "factor": scale.factor,
    }
    parts = [f"  {text_of(key)}: {text_of(value)}" for key, value in head.items()]
    shown = ",\n".join(_json_table(table, scale) for table in tables)
    return "{\n" + ",\n".join([*parts, f'  "tables": [\n{shown}\n  ]']) + "\n}\n"


def _json_table(table: _Table, scale: _Scale) -> str:
    rows: list[dict[str, Any]] = [
        {"values": row.values, "points": row.points, "below_best": scale.rounded(table.best - row.points)}
        for row in table.rows
    ]
    listed = ",\n".join(f"      {text_of(row)}" for row in rows)
    return f'    {{"attributes": {text_of(table.attributes)}, "rows": [\n{listed}\n    ]}}'


def _run(text: Any, rows: list[dict[str, Any]]) -> list[list[float]]:
    from bncli.files.exports.scorecard_reading import run_scorecard

    return run_scorecard(text, rows)


FORMAT = ProgramFormat(
    "scorecard", "points for every value, of two classes: CSV or JSON", (".csv",), write_scorecard, _run, rounds=True
)
