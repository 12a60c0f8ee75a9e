"""An ES module that scores rows by itself, in browsers and Node: `predict_proba(row)` returns {label: probability}.

Before the module is written, Node runs it to verify its predictions, if Node is installed.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from bncli.files.exports import ProgramFormat
from bncli.files.exports.programs import ProgramTarget, data_text, has_decision_rule, literal, run_program

if TYPE_CHECKING:
    from bncli.engine.kernels.arrays import Array
    from bncli.engine.prediction.portable import PortableScorer

_PROGRAM = """\
// P({class_name} | row) by the model {name}: written by bncli, needs no library.
//
//     predict_proba({{"column": value, ...}})  ->  {{"label": probability, ...}}
//     predict({{"column": value, ...}})        ->  the most probable label
{usage}//
// A value is a number, a string that contains a number, or another string. null, NaN and the strings in
// MODEL.missing_texts are missing values. A string that did not occur in training is averaged over. An Error is thrown
// if the row lacks a column, or if a number is needed and the value is not one.

const MODEL = {data};
const NUMERAL = /^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$/;

/** The labels of the class, in the order of the model. */
export const labels = MODEL.labels;

/** Return the probability of every label. */
export function predict_proba(row) {{
  const codes = MODEL.inputs.map((one) => codeOf(one, row));
  {kind} totals = MODEL.labels.map(() => 0);
  let scores = [];
  for (const stage of STAGES) {{
    scores = stage.anew ? stage.shift.slice() : scores.map((score, r) => score + stage.shift[r]);
    for (const table of stage.tables) {{
      entryOf(table, codes).forEach((number, r) => {{ scores[r] += number; }});
    }}
    softmax(scores).forEach((share, label) => {{ totals[label] += stage.weight * share; }});
  }}
{calibrate}  const whole = totals.reduce((a, b) => a + b);
  return Object.fromEntries(MODEL.labels.map((label, i) => [label, totals[i] / whole]));
}}

/** Return the most probable label, the first of equals. */
export function predict(row) {{
  const probabilities = predict_proba(row);
  return MODEL.labels.reduce((best, label) => (probabilities[label] > probabilities[best] ? label : best));
}}

{decide}{calibration}/** Return the code of a value; that of an unknown value is frequencies.length. */
function codeOf(one, row) {{
  if (!Object.prototype.hasOwnProperty.call(row, one.name)) {{
    throw new Error(`the row has no column ${{JSON.stringify(one.name)}}`);
  }}
  let value = row[one.name];
  if (value === null || value === undefined || Number.isNaN(value)) return one.missing;
  const text = String(value).replace(/^[ \\t\\r\\n]+|[ \\t\\r\\n]+$/g, "");
  if (one.codes) {{
    if (MODEL.missing_texts.includes(text)) return one.missing;
    return one.codes.has(text) ? one.codes.get(text) : one.frequencies.length;
  }}
  if (typeof value === "string") {{
    if (MODEL.missing_numbers.includes(text)) return one.missing;
    value = NUMERAL.test(text) ? Number(text) : NaN;
  }}
  if (typeof value !== "number" || !Number.isFinite(value)) {{
    throw new Error(`column ${{JSON.stringify(one.name)}}: ${{JSON.stringify(text)}} is not a number`);
  }}
  return countBelow(one.cuts, value);
}}

/** Return how many of the ascending numbers are less than the value. */
function countBelow(numbers, value) {{
  let low = 0;
  for (let high = numbers.length; low < high;) {{
    const middle = (low + high) >> 1;
    if (numbers[middle] < value) low = middle + 1; else high = middle;
  }}
  return low;
}}

/** Return what a table adds to every score; unobserved values are averaged over, or the table adds 0. */
function entryOf(table, codes) {{
  let cells = [[0, 1]];
  let averaged = false;
  for (const [place, digits, size, shares] of table.axes) {{
    const digit = digits[codes[place]];
    if (digit < size) {{
      for (const pair of cells) pair[0] = pair[0] * size + digit;
    }} else {{
      averaged = true;
      cells = cells.flatMap(([cell, weight]) => shares.map((q, d) => [cell * size + d, weight * q]));
    }}
  }}
  if (!averaged) return table.entries.map((entries) => entries[cells[0][0]]);
  return table.entries.map((entries) => cells.reduce((sum, [cell, weight]) => sum + weight * entries[cell], 0));
}}

function softmax(scores) {{
  // with two labels there is one score: that of the second minus that of the first
  const all = MODEL.labels.length === 2 ? [0, scores[0]] : scores;
  const highest = Math.max(...all);
  const shares = all.map((score) => Math.exp(score - highest));
  const whole = shares.reduce((a, b) => a + b);
  return shares.map((share) => share / whole);
}}

/** Return the table with its axes: input, digit of every code, number of digits, their frequencies. */
function prepared(table) {{
  const axes = table.inputs.map((place, i) => {{
    const shares = table.averaged[i] ? new Array(table.shape[i]).fill(0) : [];
    if (table.averaged[i]) {{
      MODEL.inputs[place].frequencies.forEach((q, code) => {{ shares[table.digits[i][code]] += q; }});
    }}
    return [place, table.digits[i], table.shape[i], shares];
  }});
  return {{ axes, entries: {entries} }};
}}
{unpacked}
for (const one of MODEL.inputs) {{
  if (one.codes) one.codes = new Map(one.codes);
}}
const STAGES = MODEL.stages.map((stage) => ({{ ...stage, tables: stage.tables.map(prepared) }}));
"""
_CALIBRATE = "  totals = calibrated(totals, scores);\n"
_POWERS = """\
/** Return numbers proportional to exp(scale * ln P + shift). */
function calibrated(totals, scores) {
  let logs = totals.length === 2 ? [0, scores[0]] : scores;
  if (STAGES.length === 1) {
    const highest = Math.max(...logs);
    const whole = highest + Math.log(logs.map((one) => Math.exp(one - highest)).reduce((a, b) => a + b));
    logs = logs.map((one) => one - whole);
  } else {
    const whole = totals.reduce((a, b) => a + b);
    logs = totals.map((total) => Math.log(Math.max(total / whole, 1e-300)));
  }
  const [scales, shifts] = MODEL.calibration.powers;
  logs = logs.map((one, label) => scales[label] * one + shifts[label]);
  const highest = Math.max(...logs);
  return logs.map((one) => Math.exp(one - highest));
}

"""
_LINES = """\
/** Apply the line of every label to its P; with two labels, only the second has a line. */
function calibrated(totals) {
  const whole = totals.reduce((a, b) => a + b);
  const lines = MODEL.calibration.lines;
  const found = lines.map(([ends, starts, levels, slopes], i) => {
    const share = totals[i + totals.length - lines.length] / whole;
    const place = countBelow(ends, share);
    return levels[place] + slopes[place] * (share - starts[place]);
  });
  return lines.length > 1 ? found : [1 - found[0], found[0]];
}

"""
_USAGE = '//     decide({"column": value, ...})         ->  the label of the decision, or null if the model abstains\n'
_DECIDE = """\
/** Return the label decided by the costs or the threshold, or null if the model abstains. */
export function decide(row) {
  const probabilities = predict_proba(row);
  const shares = MODEL.labels.map((label) => probabilities[label]);
  const { costs, threshold, abstain_below: least = 0 } = MODEL.decisions;
  let choice = shares.indexOf(Math.max(...shares));
  if (shares[choice] < least) return null;
  if (costs) {
    const expected = shares.map((_, d) => shares.reduce((sum, p, label) => sum + p * costs[label][d], 0));
    choice = expected.indexOf(Math.min(...expected));
  } else if (threshold !== undefined) {
    choice = shares[1] >= threshold ? 1 : 0;
  }
  return MODEL.labels[choice];
}

"""


_UNPACKED = """\

/** Decode base64 into whole numbers of WIDTH bytes each, times a step. */
function unpacked([step, letters]) {
  const bytes = atob(letters);
  return Array.from({ length: bytes.length / WIDTH }, (_, i) => {
    let whole = 0;
    for (let b = WIDTH * i; b < WIDTH * (i + 1); b++) whole = 256 * whole + bytes.charCodeAt(b);
    return step * (whole - 2 ** (8 * WIDTH - 1));
  });
}
"""
_RUNNER = """\
import { readFileSync } from "node:fs";
import * as program from "./program.mjs";
const rows = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(rows.map(%s)));
"""


def javascript_text(scorer: PortableScorer, target: ProgramTarget) -> str:
    usage, decide = ("", "") if target.rule is None else (_USAGE, _DECIDE)
    return _program(
        scorer, target, usage=usage, decide=decide, data=data_text(scorer, target), entries="table.entries", unpacked=""
    )


def packed_javascript(scorer: PortableScorer, target: ProgramTarget) -> str:
    """Return the text of a module without decisions whose tables take about seven or eight characters per entry.

    An entry is an integer of 40 or 48 bits in base64, times a step that depends on its row of scores. Its error is at
    most 2^-39 (2^-47) times the largest absolute entry of the row, or 1.2e-308 if that is more, and 0 stays exactly 0.
    40 bits are used if the errors of all tables then sum to at most 2e-10.
    """
    together = sum(float(abs(table.entries).max(initial=0.0)) for table in scorer.tables)
    n_bytes = 5 if together * 2**-39 <= 2e-10 else 6
    return _program(
        scorer,
        target,
        usage="",
        decide="",
        data=data_text(scorer, target, partial(_pack_entries, n_bytes)),
        entries="table.entries.map(unpacked)",
        unpacked=_UNPACKED.replace("WIDTH", str(n_bytes)),
    )


def _program(scorer: PortableScorer, target: ProgramTarget, **parts: str) -> str:
    known = scorer.calibration
    calibration = "" if known is None else _POWERS if known.powers else _LINES
    return _PROGRAM.format(
        class_name=literal(scorer.class_name),
        name=literal(target.name),
        kind="const" if known is None else "let",
        calibrate="" if known is None else _CALIBRATE,
        calibration=calibration,
        **parts,
    )


def _pack_entries(n_bytes: int, entries: Array) -> list[Any]:
    """Encode each row of scores as [step, base64 string]; a step is never subnormal, which would lose digits."""
    import base64

    packed: list[Any] = []
    for row in entries:
        zero = 1 << (8 * n_bytes - 1)
        largest = float(abs(row).max(initial=0.0))
        step = max(largest / (zero - 1), sys.float_info.min) if largest else 1.0
        octets = ((row / step).round() + zero).astype(">u8").view("u1").reshape(-1, 8)[:, 8 - n_bytes :]
        packed.append([step, base64.b64encode(octets.tobytes()).decode()])
    return packed


def _run(function: str, text: str, rows: list[dict[str, Any]]) -> list[Any] | None:
    """Call a function of the program for every row in Node; return the results, or None if Node is not installed."""
    import shutil

    node = shutil.which("node")
    if node is None:
        return None
    return run_program([node, "{}/run.mjs"], {"program.mjs": text, "run.mjs": _RUNNER % function}, rows)


_PROBABILITIES = "(row) => { const found = program.predict_proba(row); return program.labels.map((y) => found[y]); }"
FORMAT = ProgramFormat(
    "javascript",
    "an ES module that scores rows by itself",
    (".js", ".mjs"),
    javascript_text,
    partial(_run, _PROBABILITIES),
    "Node",
    decide=partial(_run, "program.decide"),
    decides=has_decision_rule,
)
