"""Reads a scorecard as a stranger would, from its text alone, and adds up the points of rows, to check it.

See `bncli.files.exports.scorecard` for the notation.
"""

from __future__ import annotations

import csv
import json
import math
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

_MEMBER = re.compile(r'("(?:[^"\\]|\\.)*"|.*?)( \| | & |\Z)', re.DOTALL)
_INTERVAL = re.compile(r"\((\S+), (\S+)[\])]")
_FORMULA = re.compile(r"exp\(-\(score - (\S+)\) / (\S+)\)\)$")
_Listed = list[tuple[tuple[str, ...], list[list[str]], float]]


@dataclass
class _Axis:
    """What leads to which place: texts, ends of intervals, and the two words for what is neither."""

    places: dict[str, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    special: dict[str, int] = field(default_factory=dict)
    intervals: dict[float, int] = field(default_factory=dict)
    _ends: list[float] = field(default_factory=list)

    def place(self, members: list[str]) -> int:
        """Return the place of a value of the card, a new one where it is new."""
        key = " | ".join(members)
        if key not in self.places:
            self.places[key] = len(self.places)
            for member in members:
                self._learn(member, self.places[key])
        return self.places[key]

    def _learn(self, member: str, place: int) -> None:
        interval = _INTERVAL.fullmatch(member)
        if interval is not None:
            self.intervals[float(interval[2])] = place
            self._ends = sorted(self.intervals)
        elif member.startswith("("):
            self.special[member] = place
        else:
            self.texts[_text(member)] = place

    def of(self, value: float | str | None) -> int:
        """Return the place of a value of a row."""
        if value is None:
            return self.special["(missing)"]
        if isinstance(value, str):
            return self.texts[value] if value in self.texts else self.special["(unseen)"]
        return self.intervals[self._ends[bisect_left(self._ends, value)]]


class _Points:
    """The points of a set of attributes."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self._attributes = attributes
        self._axes = [_Axis() for _ in attributes]
        self._points: dict[tuple[int, ...], float] = {}

    def add(self, values: list[list[str]], points: float) -> None:
        cell = tuple(axis.place(members) for axis, members in zip(self._axes, values, strict=True))
        self._points[cell] = points

    def of(self, row: dict[str, Any]) -> float:
        """Return what the row gets."""
        named = zip(self._axes, self._attributes, strict=True)
        return self._points[tuple(axis.of(row[name]) for axis, name in named)]


def run_scorecard(text: str, rows: list[dict[str, Any]]) -> list[list[float]]:
    """Return P of both labels for every row; None in a row is a missing value."""
    offset, factor, listed = _of_json(text) if text.startswith("{") else _of_csv(text)
    tables: dict[tuple[str, ...], _Points] = {}
    for attributes, values, points in listed:
        tables.setdefault(attributes, _Points(attributes)).add(values, points)
    found = []
    for row in rows:
        log_odds = (sum(table.of(row) for table in tables.values()) - offset) / factor
        least = math.exp(-abs(log_odds))
        pair = [least / (1 + least), 1 / (1 + least)]
        found.append(pair if log_odds >= 0 else pair[::-1])
    return found


def _of_json(text: str) -> tuple[float, float, _Listed]:
    card = json.loads(text)
    listed = [
        (tuple(table["attributes"]), [_axes(value)[0] for value in row["values"]], float(row["points"]))
        for table in card["tables"]
        for row in table["rows"]
    ]
    return card["offset"], card["factor"], listed


def _axes(text: str) -> list[list[str]]:
    """Of every attribute the values that are joined."""
    found: list[list[str]] = [[]]
    for match in _MEMBER.finditer(text):
        found[-1].append(match[1])
        if not match[2]:
            break
        if match[2] == " & ":
            found.append([])
    return found


def _of_csv(text: str) -> tuple[float, float, _Listed]:
    """Offset, factor, and the rows: attributes, the values of each of them, points."""
    *rows, last = csv.DictReader(text.splitlines(keepends=True))
    formula = _FORMULA.search(last["value"])
    if formula is None:
        raise ValueError("the last row is no formula")
    listed = [
        (tuple(_text(name) for (name,) in _axes(row["attribute"])), _axes(row["value"]), float(row["points"]))
        for row in rows
    ]
    return float(formula[1]), float(formula[2]), listed


def _text(word: str) -> str:
    return str(json.loads(word)) if word.startswith('"') else word
