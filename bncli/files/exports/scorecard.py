"""A scorecard: points for every value of every attribute, and of pairs and larger sets of attributes, as CSV or JSON.

    score = sum of the points of one row of every table
    P(second label) = 1 / (1 + exp(-(score - offset) / factor))
    factor = pdo / ln 2, offset = base - factor ln odds

A score of `base` means that the odds of the second label are `odds` to 1, and `pdo` more points double the odds.

The tables are the purified effects of the model (`bncli.engine.prediction.portable`), so a pair has only the points
that its two attributes cannot give separately. The offset and the constant of the effects are divided equally among the
tables of single attributes, and added to all their rows.

A card (`--structure card`) has integer points of its own, which are written as they are unless a scale is given:

    P(second label) = 1 / (1 + exp(-(score - offset) / factor))
    P(label) = exp((base + score) / factor) / (the sum of this over the labels), with more than two labels

Its tables are those of the model, and each row stands for values, or pairs of values, that have the same points. With
more than two labels there is a column of points per label, and a row `(base)`.

A value is written as it is, or in double quotes as in JSON if it could be misunderstood. Values with equal points are
joined by ` | `, the values of several attributes by ` & `. Numeric values are intervals: `(1.5, 2.5]` contains 2.5 but
not 1.5. `(missing)` and `(unseen)` have rows like any other value.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bncli.errors import ModelError
from bncli.files.exports import ProgramFormat
from bncli.files.exports.programs import ProgramTarget, literal

if TYPE_CHECKING:
    from bncli.engine.prediction.portable import Input, PortableScorer, PortableTable

MISSING, UNSEEN = "(missing)", "(unseen)"
BASE_POINTS, PROBABILITY = "(base)", "(probability)"
"""Names in the last rows of a CSV card: base points and the formula. Columns whose names start with `(` are quoted."""
POINTS_OF = "points_"
"""The prefix of a label in the heading of its column of points, with more than two labels."""
OWN_UNIT = "unit"
"""The option that holds the log-odds of one point of a card."""
MOST_ROWS = 100_000
SCORES_LISTED, TOTALS_LISTED = 7, 11
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
    """The scale on which log-odds become points; `digits` is the number of decimals, None for full precision."""

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

    With the option `unit`, a card is written with its own points, each worth `unit` nats. Raises ModelError if the
    model uses no column, has a calibration map or needs too many rows, or if it does not have two classes and `unit` is
    not set.
    """
    options = target.options
    digits, unit = options.get("digits", 0), options.get(OWN_UNIT)
    if len(scorer.labels) != 2 and unit is None:
        what = f"a scorecard needs two classes, but the model has {len(scorer.labels)}"
        raise ModelError(what, hint="use --to onnx or --to python, which work for any number of classes")
    if not scorer.inputs:
        raise ModelError("the model uses no column, so there are no points")
    if scorer.calibration is not None:
        what = "the model is calibrated by a map of its probabilities, which sums of points cannot represent"
        raise ModelError(what, hint="calibrate it with --method temperature, or export the uncalibrated model")
    if unit is not None:
        (stage,) = scorer.stages
        own = [_own_rows(scorer, each, unit, digits) for each in stage.tables]
        names = [tuple(scorer.inputs[p].name for p in each.inputs) for each in stage.tables]
        if len(scorer.labels) != 2:
            return _many_labels_text(scorer, target, (stage.shift / unit).tolist(), list(zip(names, own, strict=True)))
        scale = _Scale(math.log(2) / unit, -float(stage.shift[0]) / unit, 1.0, digits)
        tables = []
        for attributes, listed in zip(names, own, strict=True):
            best = max(points for _, (points,) in listed)
            rows = [_Row(values, points, scale.round(best - points)) for values, (points,) in listed]
            tables.append(_Table(attributes, rows))
    else:
        scale = _Scale(options.get("pdo", PDO), options.get("base", BASE), options.get("odds", ODDS), digits)
        tables = _tables(scorer, target, scale)
    if options.get("json"):
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
        return _lines_of_json(head, [(table.attributes, [row._asdict() for row in table.rows]) for table in tables])
    # A header, one line per row, and a last line without points that has the formula of the probability.
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


def probabilities_by_score(text: str, n_listed: int = SCORES_LISTED) -> list[tuple[int, float]]:
    """Return up to `n_listed` integer scores of a CSV card, from lowest to highest, each with P(second label).

    The scores are evenly spaced before they are rounded.
    """
    *rows, formula = list(csv.reader(io.StringIO(text)))[1:]
    found = re.search(r"\(score - (\S+)\) / (\S+)\)\)", formula[1])
    assert found is not None
    offset, factor = float(found[1]), float(found[2])
    points: dict[str, list[float]] = {}
    for attribute, _, own, *_ in rows:
        points.setdefault(attribute, []).append(float(own))
    low, high = (sum(map(end, points.values())) for end in (min, max))
    listed = dict.fromkeys(round(low + (high - low) * k / (n_listed - 1)) for k in range(n_listed))
    return [(score, 0.5 * (1 + math.tanh((score - offset) / factor / 2))) for score in listed]


def _tables(scorer: PortableScorer, target: ProgramTarget, scale: _Scale) -> list[_Table]:
    """Return the tables of points, without sets of several attributes whose points are all 0.

    Raises ModelError for more than MOST_ROWS rows.
    """
    assert target.effects is not None
    effects = target.effects()
    n_rows = sum(table.entries.shape[1] for table in effects.tables)
    if n_rows > MOST_ROWS:
        what = (
            f"the scorecard would have {n_rows:,} rows, over sets of up to {len(effects.tables[-1].inputs)} attributes"
        )
        hint = f"the maximum is {MOST_ROWS:,}: learn with fewer parents, or with --structure interactions"
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


def _own_rows(
    scorer: PortableScorer, table: PortableTable, unit: float, digits: int | None
) -> list[tuple[tuple[str, ...], tuple[float, ...]]]:
    """Return the rows of a table of a card: a string per attribute, and the points of each score (R,).

    Rows of values seen in training come first, then rows with other values, whose points are averages or 0.
    """
    import numpy as np

    from bncli.engine.parameters.card_tables import equal_rows

    inputs = [scorer.inputs[p] for p in table.inputs]
    n_intervals = [
        0 if column.cuts is None else own[len(column.cuts)] + 1
        for column, own in zip(inputs, table.digits, strict=True)
    ]
    numbers = (table.entries / unit).T
    row_of = equal_rows(np.rint(numbers), table.shape, n_intervals)
    listed: list[tuple[list[set[int]], list[float]]] = []
    for row in range(int(row_of.max()) + 1):
        cells = np.flatnonzero(row_of == row)
        axes = [set(axis.tolist()) for axis in np.unravel_index(cells, table.shape)]
        listed.append((axes, np.rint(numbers[cells[0]]).tolist()))
    expanded_table = table.expanded()
    points = (expanded_table.entries / unit).T.reshape(*expanded_table.shape, -1)
    listed += [
        ([{place} for place in cell], points[cell].tolist())
        for cell in np.ndindex(expanded_table.shape)
        if any(place == n for place, n in zip(cell, table.shape, strict=True))
    ]
    rows = []
    for axes, own in listed:
        values = tuple(
            _value_texts(column, tuple(int(place in axis) for place in axis_digits), 2)[1]
            for column, axis_digits, axis in zip(inputs, table.digits, axes, strict=True)
        )
        if all(values):
            rows.append((values, tuple(x if digits is None else round(x, digits or None) + 0 for x in own)))
    return rows


def _value_texts(column: Input, digits: tuple[int, ...], n_digits: int) -> list[str]:
    """Return a string per digit: the values of an input with that digit, joined by ` | `; empty if there are none."""
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
    """Return a name or a value in double quotes if it could be misunderstood, and otherwise unchanged."""
    return literal(text) if _AMBIGUOUS.search(text) or not text.isprintable() else text


def _lines_of_json(head: Mapping[str, Any], tables: Sequence[tuple[tuple[str, ...], list[dict[str, Any]]]]) -> str:
    """Format a JSON object with one line per key and one per row of a table."""
    parts = [f"  {literal(key)}: {literal(value)}" for key, value in head.items()]
    table_texts = []
    for attributes, rows in tables:
        listed = ",\n".join(f"      {literal(row)}" for row in rows)
        table_texts.append(f'    {{"attributes": {literal(attributes)}, "rows": [\n{listed}\n    ]}}')
    joined = ",\n".join(table_texts)
    return "{\n" + ",\n".join([*parts, f'  "tables": [\n{joined}\n  ]']) + "\n}\n"


def _many_labels_text(
    scorer: PortableScorer,
    target: ProgramTarget,
    base: Sequence[float],
    tables: Sequence[tuple[tuple[str, ...], list[tuple[tuple[str, ...], tuple[float, ...]]]]],
) -> str:
    """Format a card of more than two labels: points per label and row, base points per label, and the formula."""
    factor = 1 / target.options[OWN_UNIT]
    if target.options.get("json"):
        head = {
            "format": "bncli-scorecard",
            "version": 1,
            "model": target.name,
            "class": scorer.class_name,
            "labels": list(scorer.labels),
            "probability": "exp((base + score) / factor) / the sum of that over labels",
            "base": list(base),
            "factor": factor,
        }
        listed = [(names, [{"values": values, "points": own} for values, own in rows]) for names, rows in tables]
        return _lines_of_json(head, listed)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("attribute", "value", *(f"{POINTS_OF}{label}" for label in scorer.labels)))
    for attributes, rows in tables:
        for values, own in rows:
            attribute = " & ".join(map(quote_if_ambiguous, attributes))
            writer.writerow((attribute, " & ".join(values), *map(repr, own)))
    writer.writerow((BASE_POINTS, "", *map(repr, base)))
    formula = (
        f"P({literal(scorer.class_name)} = label) = exp(({BASE_POINTS} + score) / {factor!r}) / the sum over labels"
    )
    writer.writerow((PROBABILITY, formula, *([""] * len(scorer.labels))))
    return lines.getvalue()


class _Axis:
    """The values of one attribute of a table, in equivalence classes: values listed in the same rows are equivalent.

    rows: per row of the table, the list of this attribute's values that share the row.
    """

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        groups = {tuple(members): k for k, members in enumerate(dict.fromkeys(map(tuple, rows)))}
        bounds = {members: [_interval(member) for member in members] for members in groups}
        self._ends = sorted({high for own in bounds.values() for _, high in filter(None, own)})
        found: dict[float | str, set[int]] = {}
        for members, group in groups.items():
            for member, bound in zip(members, bounds[members], strict=True):
                if bound is not None:
                    first, last = (bisect_left(self._ends, end) for end in bound)
                    inside: Sequence[float | str] = self._ends[first + (bound[0] in self._ends) : last + 1]
                else:
                    inside = [member if member.startswith("(") else f"={unquote(member)}"]
                for value in inside:
                    found.setdefault(value, set()).add(group)
        classes = {members: k for k, members in enumerate(dict.fromkeys(map(frozenset, found.values())))}
        self._class_of = {value: classes[frozenset(members)] for value, members in found.items()}
        self._of_group = [[k for members, k in classes.items() if group in members] for group in groups.values()]
        self._groups = groups

    def classes(self, members: Sequence[str]) -> list[int]:
        """Return the equivalence classes of the values that a row lists."""
        return self._of_group[self._groups[tuple(members)]]

    def find(self, value: float | str | None) -> int:
        """Return the equivalence class of a data value, where None is a missing value.

        A string that no row lists has the class of UNSEEN, or -1 if there is no row for unseen values.
        """
        if value is None:
            return self._class_of[MISSING]
        if isinstance(value, str):
            return self._class_of.get(f"={value}", self._class_of.get(UNSEEN, -1))
        return self._class_of[self._ends[bisect_left(self._ends, value)]]


def _interval(member: str) -> tuple[float, float] | None:
    match = re.fullmatch(r"\((\S+), (\S+)[\])]", member)
    return None if match is None else (float(match[1]), float(match[2]))


def run_scorecard(text: str, rows: list[dict[str, Any]]) -> list[list[float]]:
    """Compute the probability of every label for each row from the text of a scorecard; None is a missing value.

    The text is read as a person would read it, to verify what `scorecard_text` wrote. Raises ValueError if the last row
    of a CSV card is not a formula.
    """
    import json

    by_table: dict[tuple[str, ...], list[tuple[list[list[str]], list[float]]]] = {}
    if text.startswith("{"):
        card = json.loads(text)
        base, factor = card["base"], card["factor"]
        if "offset" in card:
            base = [0.0, -card["offset"]]
        for table in card["tables"]:
            for row in table["rows"]:
                values = [split_values(value)[0] for value in row["values"]]
                points = row["points"] if "offset" not in card else [0.0, row["points"]]
                by_table.setdefault(tuple(table["attributes"]), []).append((values, points))
    else:
        header, *lines, last = csv.reader(io.StringIO(text))
        is_two = "points" in header
        formula = re.search(r"exp\(-?\(.* / ([^\s)]+)\)", last[1])
        if formula is None:
            raise ValueError("the last row is not a formula")
        factor = float(formula[1])
        if is_two:
            offset = re.search(r"score - (\S+)\)", last[1])
            assert offset is not None
            base = [0.0, -float(offset[1])]
        else:
            base = list(map(float, lines.pop()[2:]))
        for attribute, value, *numbers in lines:
            attributes = tuple(unquote(name) for (name,) in split_values(attribute))
            points = [0.0, float(numbers[0])] if is_two else list(map(float, numbers))
            by_table.setdefault(attributes, []).append((split_values(value), points))
    tables = []
    for attributes, listed in by_table.items():
        axes = [_Axis([values[k] for values, _ in listed]) for k in range(len(attributes))]
        cells: dict[tuple[int, ...], list[float]] = {}
        for values, points in listed:
            for cell in itertools.product(*(axis.classes(own) for axis, own in zip(axes, values, strict=True))):
                cells[cell] = points
        tables.append((attributes, axes, cells))
    probabilities = []
    for row in rows:
        scores = list(base)
        for attributes, axes, cells in tables:
            own = cells[tuple(axis.find(row[name]) for axis, name in zip(axes, attributes, strict=True))]
            scores = [score + points for score, points in zip(scores, own, strict=True)]
        odds = [math.exp((score - max(scores)) / factor) for score in scores]
        probabilities.append([one / sum(odds) for one in odds])
    return probabilities


def split_values(text: str) -> list[list[str]]:
    """Split a string such as `a | b & c` into the list of values of each attribute; quotes are kept."""
    axes: list[list[str]] = [[]]
    for match in re.finditer(r'("(?:[^"\\]|\\.)*"|.*?)( \| | & |\Z)', text, re.DOTALL):
        axes[-1].append(match[1])
        if not match[2]:
            break
        if match[2] == " & ":
            axes.append([])
    return axes


def unquote(text: str) -> str:
    """Return the name or value from which `quote_if_ambiguous` made this string."""
    import json

    return str(json.loads(text)) if text.startswith('"') else text


FORMAT = ProgramFormat(
    "scorecard",
    "points for every value, as CSV or JSON; for two classes, or a card",
    (".csv",),
    scorecard_text,
    run_scorecard,
    rounds=True,
)
