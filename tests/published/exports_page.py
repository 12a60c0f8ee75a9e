"""The page of exports, from their figures alone: python -m tests.published.exports_page writes exports.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.published import exports, exports_estimator, exports_gate
from tests.published.pages import short, table

PAGE = Path(__file__).with_suffix("").with_name("exports.md")
_HEADINGS = {"sqlite": "SQLite", "duckdb": "DuckDB", "bncli": "bncli, in memory", "score": "`bncli score`"}

HEAD = """# Models outside bncli: how near, how fast, how large

## How far what is written is from the model

Largest difference of a probability between the model and what was written, in the comparison that `bncli export` makes
before it keeps a file: {rows} rows, random ones for networks (bif, xmlbif), for the others made-up ones that show every
level, both sides of every cut, missing values and values never seen. Above 1e-9 a file is refused. Of scorecards the
difference is that before points are rounded. A letter says why there is no file. Learned from sample data
(`python -m tests.published.exports_gate`).

"""
SIZES = """
Kilobytes of the files, and how many numbers the tables of the program have (a network has others):

"""
SPEED = """
## Seconds a million rows

Seconds of the processor, all threads, and in brackets how many times those of `bncli score`, the command, which reads
a Parquet file and writes another, its start of about 0.9 seconds included. All others score what they hold: rows in a
table of the database, or arrays in memory, with what was exported loaded. The machine was busy with other work
(`python -m tests.published.exports`).

"""
CHECKS = """
## The checks of scikit-learn

`check_estimator` of scikit-learn {version} on `bncli.Classifier`, no check expected to fail; skipped is the one of
arrays of other libraries, which a variable of the environment turns on (`python -m tests.published.exports_estimator`).

"""


def page() -> str:
    gate, checks = exports_gate.recorded(), exports_estimator.recorded()
    rows = sorted({one.rows for one in gate if one.rows is not None})
    told = f"{rows[0]:,}" if len(rows) == 1 else f"{rows[0]:,} to {rows[-1]:,}"
    shown = [[one.learner, str(one.passed), str(one.skipped), str(one.failed)] for one in checks]
    parts = [
        HEAD.format(rows=told) + _gate(gate),
        SIZES + _sizes(gate),
        SPEED + speeds(exports.recorded()),
        CHECKS.format(version=checks[0].scikit_learn) + table(["`structure`", "passed", "skipped", "failed"], shown),
    ]
    return "\n".join(parts) + "\n"


def _gate(figures: Sequence[exports_gate.Figure]) -> str:
    """The differences, and below them why some are refused."""
    reasons = {one.refused: "" for one in figures if one.refused}
    letters = dict(zip(reasons, "abcdefghijklmnop", strict=False))
    lines = [
        [kind, *(letters[one.refused] if one.refused else f"{one.max_dp:.0e}" for one in _of(kind, figures))]
        for kind in exports_gate.KINDS
    ]
    told = "\n".join(f"- {letter}: {reason}" for reason, letter in letters.items())
    return f"{table(['kind', *exports_gate.FORMATS], lines)}\n\n{told}\n"


def _of(kind: str, figures: Sequence[exports_gate.Figure]) -> list[exports_gate.Figure]:
    by_format = {one.format: one for one in figures if one.kind == kind}
    return [by_format[form] for form in exports_gate.FORMATS]


def _sizes(figures: Sequence[exports_gate.Figure]) -> str:
    lines = []
    for kind in exports_gate.KINDS:
        own = _of(kind, figures)
        entries = next((one.entries for one in own if one.entries and one.format not in ("bif", "xmlbif")), None)
        sizes = ("" if one.bytes is None else short(one.bytes / 1000) for one in own)
        lines.append([kind, "" if entries is None else f"{entries:,}", *sizes])
    return table(["kind", "numbers", *exports_gate.FORMATS], lines) + "\n"


def speeds(figures: Sequence[exports.Figure]) -> str:
    """The table that the manual has too."""
    lines = []
    for name, word in exports.MODELS:
        found = {f.program: f for f in figures if (f.table, f.model) == (name, word)}
        whole = found["score"].seconds
        told = [f"{found[p].seconds:.1f} ({found[p].seconds / whole:.1f})" for p in exports.PROGRAMS[:-1]]
        lines.append([f"{name}, `{word}`", *told, f"{whole:.1f}"])
    return table(["model", *(_HEADINGS.get(program, program) for program in exports.PROGRAMS)], lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
