"""A Python module that scores rows without any package: `predict_proba(row)` returns {label: probability}.

Before the module is written, a separate process runs it to verify its predictions.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from bncli.files.exports import ProgramFormat
from bncli.files.exports.programs import ProgramTarget, data_text, has_decision_rule, literal, run_program

if TYPE_CHECKING:
    from bncli.engine.prediction.portable import PortableScorer

_PROGRAM = '''\
"""P({class_name} | row) by the model {name}: written by bncli, needs nothing but Python.

    predict_proba({{"column": value, ...}})  ->  {{"label": probability, ...}}
    predict({{"column": value, ...}})        ->  the most probable label
{usage}
A value is a number, a string that contains a number, or another string. None, NaN and the strings in
MODEL["missing_texts"] are missing values. A string that did not occur in training is averaged over. A KeyError is
raised if the row lacks a column, and a ValueError if a number is needed and the value is not one.
"""

import re
from bisect import bisect_left
from math import {functions}

MODEL = {data}
_NUMERAL = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")


def predict_proba(row):
    """Return the probability of every label."""
    codes = [_code(one, row[one["name"]]) for one in MODEL["inputs"]]
    totals = [0.0] * len(MODEL["labels"])
    scores = []
    for stage in _STAGES:
        scores = [0.0] * len(stage["shift"]) if stage["anew"] else scores
        for added in [stage["shift"], *(_entry(table, codes) for table in stage["tables"])]:
            scores = [score + number for score, number in zip(scores, added)]
        for label, share in enumerate(_softmax(scores)):
            totals[label] += stage["weight"] * share
{calibrate}    whole = sum(totals)
    return {{label: total / whole for label, total in zip(MODEL["labels"], totals)}}


def predict(row):
    """Return the most probable label, the first of equals."""
    probabilities = predict_proba(row)
    return max(probabilities, key=probabilities.get)


{decide}{calibration}def _code(one, value):
    """Return the code of a value; an unknown value has the code len(frequencies), one past the last."""
    if value is None or value != value:
        return one["missing"]
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip(" \\t\\r\\n")
    if "codes" in one:
        if text in MODEL["missing_texts"]:
            return one["missing"]
        text = text.lower() if isinstance(value, bool) else text
        return one["codes"].get(text, len(one["frequencies"]))
    if isinstance(value, str):
        if text in MODEL["missing_numbers"]:
            return one["missing"]
        if not _NUMERAL.fullmatch(text):
            raise ValueError(f"column {{one['name']!r}}: {{text!r}} is not a number")
        value = float(text)
    if isinstance(value, bool) or value in (float("inf"), float("-inf")):
        raise ValueError(f"column {{one['name']!r}}: {{text!r}} is not a finite number")
    return bisect_left(one["cuts"], value)


def _entry(table, codes):
    """Return what a table adds to every score; unobserved values are averaged over, or the table adds 0."""
    cells = [(0, 1.0)]
    for place, digits, size, shares in table["axes"]:
        digit = digits[codes[place]]
        if digit < size:
            cells = [(cell * size + digit, weight) for cell, weight in cells]
        else:
            cells = [(cell * size + d, weight * q) for cell, weight in cells for d, q in enumerate(shares)]
    if len(cells) == 1 and cells[0][1] == 1.0:
        return table["rows"][cells[0][0]]
    return [sum(weight * entries[cell] for cell, weight in cells) for entries in table["entries"]]


def _softmax(scores):
    if len(MODEL["labels"]) == 2:  # one score: that of the second label minus that of the first
        scores = [0.0, scores[0]]
    highest = max(scores)
    shares = [exp(score - highest) for score in scores]
    whole = sum(shares)
    return [share / whole for share in shares]


def _prepared(table):
    """Return the table by cell, and by axis: input, digit of every code, number of digits, their frequencies."""
    axes = []
    averaged = table["averaged"] or [0] * len(table["shape"])
    for place, digits, size, average in zip(table["inputs"], table["digits"], table["shape"], averaged):
        shares = [0.0] * size if average else []
        for digit, frequency in zip(digits, MODEL["inputs"][place]["frequencies"]):
            if average:
                shares[digit] += frequency
        axes.append((place, digits, size, shares))
    return {{"axes": axes, "entries": table["entries"], "rows": list(zip(*table["entries"]))}}


for _one in MODEL["inputs"]:
    if "codes" in _one:
        _one["codes"] = dict(_one["codes"])
_STAGES = [dict(stage, tables=[_prepared(table) for table in stage["tables"]]) for stage in MODEL["stages"]]
'''
_CALIBRATE = "    totals = _calibrated(totals, scores)\n"
_POWERS = '''\
def _calibrated(totals, scores):
    """Return numbers proportional to exp(scale * ln P + shift)."""
    if len(_STAGES) == 1:
        logs = [0.0, scores[0]] if len(totals) == 2 else scores
        highest = max(logs)
        whole = highest + log(sum(exp(one - highest) for one in logs))
        logs = [one - whole for one in logs]
    else:
        logs = [log(max(total / sum(totals), 1e-300)) for total in totals]
    logs = [scale * one + shift for one, scale, shift in zip(logs, *MODEL["calibration"]["powers"])]
    return [exp(one - max(logs)) for one in logs]


'''
_LINES = '''\
def _calibrated(totals, scores):
    """Apply the line of every label to its P; with two labels, only the second has a line."""
    lines = MODEL["calibration"]["lines"]
    found = []
    for total, (ends, starts, levels, slopes) in zip(totals[-len(lines):], lines):
        share = total / sum(totals)
        place = bisect_left(ends, share)
        found.append(levels[place] + slopes[place] * (share - starts[place]))
    return found if len(lines) > 1 else [1.0 - found[0], found[0]]


'''
_USAGE = '    decide({"column": value, ...})         ->  the label of the decision, or None if the model abstains\n'
_DECIDE = '''\
def decide(row):
    """Return the label decided by the costs or the threshold, or None if the model abstains."""
    shares = list(predict_proba(row).values())
    rule, choice = MODEL["decisions"], shares.index(max(shares))
    if shares[choice] < rule.get("abstain_below", 0.0):
        return None
    if "costs" in rule:
        expected = [sum(p * costs[d] for p, costs in zip(shares, rule["costs"])) for d in range(len(shares))]
        choice = expected.index(min(expected))
    elif "threshold" in rule:
        choice = int(shares[1] >= rule["threshold"])
    return MODEL["labels"][choice]


'''


def python_text(scorer: PortableScorer, target: ProgramTarget) -> str:
    usage, decide = ("", "") if target.rule is None else (_USAGE, _DECIDE)
    functions, calibrate, calibration = "exp", "", ""
    if (known := scorer.calibration) is not None:
        calibrate, calibration = _CALIBRATE, _POWERS if known.powers else _LINES
        functions = "exp, log" if known.powers else "exp"
    return _PROGRAM.format(
        class_name=_docstring_text(scorer.class_name),
        name=_docstring_text(target.name),
        data=data_text(scorer, target),
        usage=usage,
        decide=decide,
        functions=functions,
        calibrate=calibrate,
        calibration=calibration,
    )


def _docstring_text(name: str) -> str:
    """Quote a name so that it cannot end the docstring around it."""
    return literal(name).replace('\\"', "'").replace("\\", "/")


_RUNNER = """\
import json, sys
sys.path.insert(0, sys.argv[1])
import program
rows = json.load(sys.stdin)
print(json.dumps([{expression} for row in rows]))
"""


def _run(expression: str, text: str, rows: list[dict[str, Any]]) -> list[Any]:
    """Evaluate an expression of `program` and `row` for every row, in an interpreter without installed packages."""
    command = [sys.executable, "-I", "-S", "-c", _RUNNER.format(expression=expression), "{}"]
    return run_program(command, {"program.py": text}, rows)


FORMAT = ProgramFormat(
    "python",
    "a Python module that scores rows by itself",
    (".py",),
    python_text,
    partial(_run, "list(program.predict_proba(row).values())"),
    decide=partial(_run, "program.decide(row)"),
    decides=has_decision_rule,
)
