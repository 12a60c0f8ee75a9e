"""Tables past memory: seconds of the processor, memory and bytes read of encode, fit and score, by the number of rows.

Run `python -m tests.published.past_memory FOLDER PARTS [LINE...]`: it makes PARTS Parquet files of ROWS_A_PART rows in
FOLDER (15 numbers, 15 names, two classes; 31 MB a million rows), measures the lines that `past_memory.csv` lacks for so
many rows (or those named), each in a process of its own with two threads, and writes the page. Seconds are those of the
processor, all threads together.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bncli.files.reading.training_rows import BUDGET
from bncli.recipe import Recipe
from bncli.steps.forecast import BASE_BYTES, VALUE_BYTES, expected_memory, expected_seconds
from tests.published.pages import read_csv, table, write_csv

FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")
ROWS_A_PART = 2_500_000
LINES = {
    "encode": "encode {parts} -o {codes}",
    "tan map": "fit {codes} --structure tan --param map -o {model}",
    "tan map, from Parquet": "fit {parts} --structure tan --param map -o {model}",
    "nb discriminative": "fit {codes} --structure nb --param discriminative --penalty 1 -o {model}",
    "tan discriminative": "fit {codes} --structure tan --param discriminative --penalty 1 -o {model}",
    "score": "score {model} {parts} -o /dev/null",
}
"""What is typed; the model scored is that of the line before it."""
FITS = {
    "tan map": {"structure": "tan", "param": "map"},
    "tan map, from Parquet": {"structure": "tan", "param": "map"},
    "nb discriminative": {"structure": "nb", "param": "discriminative", "penalty": 1.0},
    "tan discriminative": {"structure": "tan", "param": "discriminative", "penalty": 1.0},
}
"""The recipe of each line that fits."""
ATTRIBUTES, MOST_ROWS = 30, 100_000_000
_WRAPPER = """import sys
from bncli.__main__ import main
sys.argv[0] = "bncli"
try:
    main()
finally:
    print(open("/proc/self/io").read().split()[1], file=sys.stderr)
"""


class Figure(NamedTuple):
    """CPU seconds, resident bytes at most, bytes read by calls (mapped ones do not count), of one line."""

    line: str
    rows: int
    seconds: float
    resident: int
    read: int


def main() -> None:
    """Measures what is missing, and writes the page."""
    folder, n_parts, *lines = sys.argv[1:]
    paths = {"parts": f"{folder}/{n_parts}", "codes": f"{folder}/{n_parts}.codes", "model": f"{folder}/{n_parts}.bnc"}
    make(Path(paths["parts"]), int(n_parts))
    rows = int(n_parts) * ROWS_A_PART
    done = {(figure.line, figure.rows) for figure in recorded()}
    for line, typed in LINES.items():
        if line in lines if lines else (line, rows) not in done:
            figure = _measured(line, rows, typed.format(**paths).split())
            print(*figure, flush=True)
            others = [one for one in recorded() if (one.line, one.rows) != (line, rows)]
            write_csv(FIGURES, [Figure._fields, *sorted((*others, figure), key=_place)])
    PAGE.write_text(page(recorded()))


def _place(figure: Figure) -> tuple[int, int]:
    return list(LINES).index(figure.line), figure.rows


def make(folder: Path, n_parts: int) -> None:
    """The parts that are not there yet: every number and name leans on its left neighbour, some on the class."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(n_parts):
        path = folder / f"{part:03}.parquet"
        if not path.exists():
            parquet.write_table(_part(part), path, row_group_size=500_000)


def _part(part: int) -> pa.Table:
    n, rng = ROWS_A_PART, np.random.default_rng((17, part))
    y = rng.random(n, np.float32) < 0.4
    columns: dict[str, pa.Array] = {}
    last = rng.standard_normal(n, np.float32)
    for i in range(15):
        last = 0.8 * rng.standard_normal(n, np.float32) + 0.5 * last + y * np.float32(0.15 + 0.05 * (i % 4))
        columns[f"x{i:02}"] = pa.array(np.round(last, 3).astype(np.float64))
    names = pa.array([f"v{i}" for i in range(6)])
    left = rng.integers(0, 6, n, dtype=np.int8)
    for i in range(15):
        own, luck = rng.integers(0, 6, n, dtype=np.int8), rng.random(n, np.float32)
        left = np.where((luck > 0.85) & y, np.int8(i % 6), np.where(luck < 0.3, left, own))
        gaps = luck < 0.002 if i == 3 else None
        columns[f"c{i:02}"] = pa.DictionaryArray.from_arrays(pa.array(left, mask=gaps), names)
    columns["class"] = pa.DictionaryArray.from_arrays(pa.array(y.astype(np.int8)), pa.array(["no", "yes"]))
    return pa.table(columns)


def _measured(line: str, rows: int, words: list[str]) -> Figure:
    """The figures of one command, in a process of its own."""
    command = [sys.executable, "-c", _WRAPPER, *words, "--threads", "2", "--quiet"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(told)
    return Figure(line, rows, round(usage.ru_utime + usage.ru_stime, 1), usage.ru_maxrss * 1024, int(told.split()[-1]))


def recorded() -> list[Figure]:
    """The figures kept."""
    if not FIGURES.exists():
        return []
    return [Figure(line, int(n), float(s), int(m), int(r)) for line, n, s, m, r in read_csv(FIGURES)[1:]]


def _foreseen(figures: list[Figure]) -> list[tuple[str, ...]]:
    found = []
    for f in figures:
        if f.line in FITS:
            seconds, memory = foreseen(f.line, f.rows)
            cells = (f"{seconds:,.0f}", f"{f.seconds:,.0f}", f"{memory / 1e9:.2f}", f"{f.resident / 1e9:.2f}")
            found.append((f.line, f"{f.rows:,}", *cells))
    return found


def foreseen(line: str, rows: int) -> tuple[float, int]:
    """Seconds and bytes of a fit, as `forecast` has them; the table need not be there."""
    recipe, values = Recipe.of(**FITS[line]), rows * ATTRIBUTES * VALUE_BYTES
    rounds = 0 if "{codes}" in LINES[line] else 2 if values > BUDGET else 1
    seconds = expected_seconds(rows, ATTRIBUTES, rounds, recipe)
    return seconds, expected_memory(rows, ATTRIBUTES, values, rounds, recipe)


def _missing(figures: list[Figure]) -> str:
    """What was not run on the largest table, and what it would take."""
    most = {line: max((f for f in figures if f.line == line), key=lambda f: f.rows) for line in LINES}
    told = [f"- {line}: {_scaled(f)}" for line, f in most.items() if f.rows < MOST_ROWS]
    intro = f"Not run to the end on {MOST_ROWS:,} rows; in proportion to the most rows that were:"
    return "\n".join(["", intro, "", *told]) if told else ""


def _scaled(f: Figure) -> str:
    """What a line would take of MOST_ROWS; memory only where it grows with the rows all the way."""
    more = MOST_ROWS / f.rows
    seconds = f"about {f.seconds * more:,.0f} CPU s"
    if "{codes}" not in LINES[f.line]:
        return seconds
    return f"{seconds}, {(BASE_BYTES + (f.resident - BASE_BYTES) * more) / 1e9:.1f} GB at most"


def page(figures: list[Figure]) -> str:
    """The page, from the figures alone."""
    cells = [
        (
            f.line,
            f"{f.rows:,}",
            f"{f.seconds:,.0f}",
            f"{1e6 * f.seconds / f.rows:.2f}",
            f"{f.resident / 1e9:.2f}",
            f"{f.read / 1e9:.2f}",
        )
        for f in figures
    ]
    header = ("line", "rows", "CPU s", "CPU µs a row", "resident GB", "GB read")
    lines = "\n".join(f"- {name}: `bncli {typed}`" for name, typed in LINES.items())
    return f"""# Past memory: tables of many million rows and 30 columns

15 numbers, 15 names, two classes, as Parquet parts of {ROWS_A_PART:,} rows. CPU seconds are of all threads together (of
two at most); resident is the most memory that the process held at once, mapped pages of the codes included, which the
system may drop at any time; GB read are by calls, so that those mapped do not count.

{table(header, cells)}

The lines, with `--threads 2`:

{lines}

From 16 million rows on these values are more than the budget of 2 GiB, and are read in two rounds; cuts are those of a
sample then, 278 where 10,000,000 rows have 611, and the discriminative tree has 12,486 parameters where those have
52,710, which is why it takes them longer. Fits in closed form hold no more than the mapped codes and what two row
blocks take; discriminative ones hold fused codes of all rows, 30 to 45 bytes a row, and let the pages of the mapped
ones go. All grow with the rows: what is said below of more rows than were run is a forecast.

`fit --dry-run` foresees, beside what was measured:

{table(("line", "rows", "CPU s, foreseen", "measured", "GB, foreseen", "measured"), _foreseen(figures))}
{_missing(figures)}

Made by `python -m tests.published.past_memory FOLDER PARTS`.
"""


if __name__ == "__main__":
    main()
