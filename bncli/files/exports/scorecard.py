"""A scorecard: points for every value of every attribute, and of pairs and larger sets of attributes, as CSV or JSON.

    score = sum of the points of one row of every table
    P(second label) = 1 / (1 + exp(-(score - offset) / factor))
    factor = pdo / ln 2, offset = base - factor ln odds: `base` points mean odds of `odds` to 1, `pdo` more double them

The tables are the purified effects of the model (`bncli.engine.prediction.portable`), so a pair has only the
points that its two attributes alone cannot give. Each of the n single attributes also has offset/n and its share of the
base rate.

A value is written as it is, or in double quotes as in JSON if it could be misunderstood. Values with equal points are
joined by ` | `, the values of several attributes by ` & `. Numbers are intervals: `(1.5, 2.5]` contains 2.5 but not
1.5. `(missing)` and `(unseen)` have rows like any other value.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

from bncli.errors import ModelError
from bncli.files.exports import ProgramFormat
from bncli.files.exports.programs import ProgramTarget, literal

if TYPE_CHECKING:
    from bncli.engine.prediction.portable import Input, PortableScorer

MISSING, UNSEEN = "(missing)", "(unseen)"
PROBABILITY = "(probability)"
"""The attribute of the last row of a CSV file, whose value is the formula. Names that begin with `(` are quoted."""
MOST_ROWS = 100_000
SCORES_LISTED = 7
PDO, BASE, ODDS = 20.0, 600.0, 50.0
_AMBIGUOUS = re.compile(r'\A[("#]|(?:\A|\s)[|&](?:\s|\Z)|\A\s|\s\Z|\A\Z')


class _Row(NamedTuple):
    """One value per attribute of a set, its points, and how many points it is below the best row of the table."""

    values: tuple[str, ...]
    points: float
    below_best: float


class _Table(NamedTuple):
    """The rows of a set of attributes."""

    attributes: tuple[str, ...]
    rows: list[_Row]


class _Scale(NamedTuple):
    """How log-odds become points; `digits` is the number of decimals, None for all."""

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

    def round(self, points: float) -> float:
        # + 0 turns -0 into 0.
        return points if self.digits is None else round(points, self.digits or None) + 0


def scorecard_text(scorer: PortableScorer, target: ProgramTarget) -> str:
    """Return the scorecard as CSV, or as JSON if the option `json` is set.

    Raises ModelError if the model has not two classes, uses no column, has a calibration map, or needs too many rows.
    """
    if len(scorer.labels) != 2:
        what = f"a scorecard is for two classes, and the model has {len(scorer.labels)}"
        raise ModelError(what, hint="--to onnx and --to python take any number of classes")
    if not scorer.inputs:
        raise ModelError("the model looks at no column: there is nothing to give points for")
    if scorer.calibration is not None:
        what = "the model is calibrated by a map of its probabilities, which no points add up to"
        raise ModelError(what, hint="calibrate it by --method temperature, or export the model that was calibrated")
    options = target.options
    digits = options.get("digits", 0)
    scale = _Scale(options.get("pdo", PDO), options.get("base", BASE), options.get("odds", ODDS), digits)
    tables = _tables(scorer, target, scale)
    return _json_text(scorer, target, scale, tables) if options.get("json") else _csv_text(scorer, scale, tables)


def probabilities_by_score(text: str) -> list[tuple[int, float]]:
    """Return some whole scores from the least to the greatest that the CSV text allows, and the event's probability."""
    *rows, formula = list(csv.reader(io.StringIO(text)))[1:]
    found = re.search(r"\(score - (\S+)\) / (\S+)\)\)", formula[1])
    assert found is not None
    offset, factor = float(found[1]), float(found[2])
    points: dict[str, list[float]] = {}
    for attribute, _, own, *_ in rows:
        points.setdefault(attribute, []).append(float(own))
    low, high = (sum(map(end, points.values())) for end in (min, max))
    listed = dict.fromkeys(round(low + (high - low) * k / (SCORES_LISTED - 1)) for k in range(SCORES_LISTED))
    return [(score, 0.5 * (1 + math.tanh((score - offset) / factor / 2))) for score in listed]


def _tables(scorer: PortableScorer, target: ProgramTarget, scale: _Scale) -> list[_Table]:
    """Return the tables of points, without sets of several attributes that give no points."""
    assert target.effects is not None
    effects = target.effects()
    n_rows = sum(table.entries.shape[1] for table in effects.tables)
    if n_rows > MOST_ROWS:
        what = (
            f"the scorecard would have {n_rows:,} rows, over sets of up to {len(effects.tables[-1].inputs)} attributes"
        )
        hint = f"at most {MOST_ROWS:,} are written: learn with fewer parents, or with --structure interactions"
        raise ModelError(what, hint=hint)
    n_single = sum(len(table.inputs) == 1 for table in effects.tables)
    share = (scale.offset + scale.factor * float(effects.constant[1])) / n_single
    tables = []
    for table in effects.tables:
        is_single = len(table.inputs) == 1
        extra = share if is_single else 0.0
        points = [scale.round(extra + scale.factor * w) for w in table.entries[1].tolist()]
        if not is_single and not any(points):
            continue
        inputs = [scorer.inputs[p] for p in table.inputs]
        digits_of, shape = table.digits, table.shape
        if is_single and target.options.get("join_equal"):
            # Values with the same effect share a row.
            place = {entry: k for k, entry in enumerate(dict.fromkeys(table.entries[1].tolist()))}
            positions = [place[entry] for entry in table.entries[1].tolist()]
            digits_of, shape = (tuple(positions[digit] for digit in table.digits[0]),), (len(place),)
            points = [points[positions.index(k)] for k in range(len(place))]
        axes = [_value_texts(column, digits, n) for column, digits, n in zip(inputs, digits_of, shape, strict=True)]
        # Cells that no row of values leads to have an empty text.
        cells = [pair for pair in zip(itertools.product(*axes), points, strict=True) if all(pair[0])]
        best = max(own for _, own in cells)
        rows = [_Row(values, own, scale.round(best - own)) for values, own in cells]
        tables.append(_Table(tuple(column.name for column in inputs), rows))
    return tables


def _value_texts(column: Input, digits: tuple[int, ...], n_digits: int) -> list[str]:
    """Return the values of an input that each digit stands for; empty if there are none."""
    members: list[list[str]] = [[] for _ in range(n_digits)]
    if column.cuts is not None:
        ends = [-math.inf, *column.cuts, math.inf]
        for digit, codes in itertools.groupby(range(len(column.cuts) + 1), key=lambda code: digits[code]):
            first, *_, last = [*codes] * 2
            high = ends[last + 1]
            members[digit].append(f"({ends[first]!r}, {high!r}{')' if high == math.inf else ']'}")
    for text, code in (column.codes or {}).items():
        members[digits[code]].append(quote_if_ambiguous(text))
    members[digits[column.missing]].append(MISSING)
    if column.codes is not None:
        members[digits[column.unobserved]].append(UNSEEN)
    return [" | ".join(texts) for texts in members]


def quote_if_ambiguous(text: str) -> str:
    """Return a name or a value in double quotes if it could be misunderstood, else as it is."""
    return literal(text) if _AMBIGUOUS.search(text) or not text.isprintable() else text


def _csv_text(scorer: PortableScorer, scale: _Scale, tables: list[_Table]) -> str:
    """Return a header, one line per row, and a last line without points that has the formula of the probability."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("attribute", "value", "points", "below_best"))
    for table in tables:
        attribute = " & ".join(map(quote_if_ambiguous, table.attributes))
        for row in table.rows:
            writer.writerow((attribute, " & ".join(row.values), repr(row.points), repr(row.below_best)))
    event = f"{literal(scorer.class_name)} = {literal(scorer.labels[1])}"
    formula = f"P({event}) = 1 / (1 + exp(-(score - {scale.offset!r}) / {scale.factor!r}))"
    writer.writerow((PROBABILITY, formula, "", ""))
    return lines.getvalue()


def _json_text(scorer: PortableScorer, target: ProgramTarget, scale: _Scale, tables: list[_Table]) -> str:
    """Return the same content as a JSON object, with one line per row."""
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
    parts = [f"  {literal(key)}: {literal(value)}" for key, value in head.items()]
    table_texts = []
    for table in tables:
        rows = ",\n".join(f"      {literal(row._asdict())}" for row in table.rows)
        table_texts.append(f'    {{"attributes": {literal(table.attributes)}, "rows": [\n{rows}\n    ]}}')
    joined = ",\n".join(table_texts)
    return "{\n" + ",\n".join([*parts, f'  "tables": [\n{joined}\n  ]']) + "\n}\n"


class _Axis:
    """The values of one attribute of a table, numbered in the order in which the scorecard lists them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._special: dict[str, int] = {}
        self._intervals: dict[float, int] = {}
        self._ends: list[float] = []

    def add(self, members: list[str]) -> int:
        """Return the number of these joined values; a new one if they were not listed before."""
        key = " | ".join(members)
        if key in self._numbers:
            return self._numbers[key]
        number = self._numbers[key] = len(self._numbers)
        for member in members:
            interval = re.fullmatch(r"\((\S+), (\S+)[\])]", member)
            if interval is not None:
                self._intervals[float(interval[2])] = number
                self._ends = sorted(self._intervals)
            elif member.startswith("("):
                self._special[member] = number
            else:
                self._texts[unquote(member)] = number
        return number

    def find(self, value: float | str | None) -> int:
        """Return the number of the listed values that a value of a row belongs to."""
        if value is None:
            return self._special[MISSING]
        if isinstance(value, str):
            return self._texts[value] if value in self._texts else self._special[UNSEEN]
        return self._intervals[self._ends[bisect_left(self._ends, value)]]


def run_scorecard(text: str, rows: list[dict[str, Any]]) -> list[list[float]]:
    """Return P of both labels for every row, from the text of the scorecard alone; None is a missing value.

    The text is read as a person would read it, to verify what `scorecard_text` wrote.
    """
    import json

    listed: list[tuple[tuple[str, ...], list[list[str]], float]] = []
    if text.startswith("{"):
        card = json.loads(text)
        offset, factor = card["offset"], card["factor"]
        for table in card["tables"]:
            for row in table["rows"]:
                values = [split_values(value)[0] for value in row["values"]]
                listed.append((tuple(table["attributes"]), values, float(row["points"])))
    else:
        *lines, last = csv.DictReader(text.splitlines(keepends=True))
        formula = re.search(r"exp\(-\(score - (\S+)\) / (\S+)\)\)$", last["value"])
        if formula is None:
            raise ValueError("the last row is not a formula")
        offset, factor = float(formula[1]), float(formula[2])
        for line in lines:
            attributes = tuple(unquote(name) for (name,) in split_values(line["attribute"]))
            listed.append((attributes, split_values(line["value"]), float(line["points"])))
    tables: dict[tuple[str, ...], tuple[list[_Axis], dict[tuple[int, ...], float]]] = {}
    for attributes, values, own in listed:
        axes, points = tables.setdefault(attributes, ([_Axis() for _ in attributes], {}))
        points[tuple(axis.add(members) for axis, members in zip(axes, values, strict=True))] = own
    probabilities = []
    for row in rows:
        score = 0.0
        for attributes, (axes, points) in tables.items():
            score += points[tuple(axis.find(row[name]) for axis, name in zip(axes, attributes, strict=True))]
        log_odds = (score - offset) / factor
        odds_against = math.exp(-abs(log_odds))
        pair = [odds_against / (1 + odds_against), 1 / (1 + odds_against)]
        probabilities.append(pair if log_odds >= 0 else pair[::-1])
    return probabilities


def split_values(text: str) -> list[list[str]]:
    """Return the joined values of each attribute in a text such as `a | b & c`, still in quotes if they have any."""
    axes: list[list[str]] = [[]]
    for match in re.finditer(r'("(?:[^"\\]|\\.)*"|.*?)( \| | & |\Z)', text, re.DOTALL):
        axes[-1].append(match[1])
        if not match[2]:
            break
        if match[2] == " & ":
            axes.append([])
    return axes


def unquote(text: str) -> str:
    """Return the name or value that `quote_if_ambiguous` wrote."""
    import json

    return str(json.loads(text)) if text.startswith('"') else text


FORMAT = ProgramFormat(
    "scorecard",
    "points for every value, of two classes: CSV or JSON",
    (".csv",),
    scorecard_text,
    run_scorecard,
    rounds=True,
)
