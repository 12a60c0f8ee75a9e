"""How CPU time and memory grow with rows and columns: growth.csv, and the picture of `bncli help speed`.

`python -m tests.performance.growth` measures the points that growth.csv lacks (delete lines to measure them again) and
draws the picture; `python -m tests.performance.growth draw` only draws. Tables are made, with two classes; ten columns
carry the class, two pairs of them interact. Half of the columns are names in tables of many rows, and all are numbers
in wide ones. Each point is one run of the command with one thread, from a Parquet file; a command that needs more than
MOST_MEMORY is left out.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bncli.files.pictures.drawing import Axis, Drawing, Frame, PanelLayout, axis_of
from tests.performance.measure import run
from tests.published.pages import read_csv, write_csv
from tests.transcripts import ROOT

TABLE = Path(__file__).with_name("growth.csv")
PICTURE = ROOT / "bncli" / "manual" / "speed-growth.svg"
HEADER = ("command", "rows", "columns", "cpu_seconds", "peak_mb")
COMMANDS = {
    "fit --structure nb --param map": ("--structure", "nb", "--param", "map"),
    "fit --structure tan --param weighted": ("--structure", "tan", "--param", "weighted"),
    "fit": (),
    "fit --structure interactions": ("--structure", "interactions"),
}
ROWS, COLUMNS = (10_000, 30_000, 100_000, 300_000, 1_000_000), (10, 100, 1_000, 5_000, 20_000)
FEW_ROWS, FEW_COLUMNS = 200, 30
MOST_MEMORY = 8 << 30
LIMITED = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MOST_MEMORY}, {MOST_MEMORY}))
from bncli.__main__ import main
sys.argv[0] = "bncli"
main()
"""
LAYOUT = PanelLayout(width=300.0, height=220.0, left=64.0, above=44.0, right=20.0, below=48.0, columns=2)


@dataclass(frozen=True)
class Point:
    """CPU seconds and the most memory of one command on one table."""

    command: str
    rows: int
    columns: int
    cpu: float
    peak_mb: float


def recorded() -> list[Point]:
    """What the file has."""
    if not TABLE.exists():
        return []
    _, *lines = read_csv(TABLE)
    return [Point(command, int(n), int(d), float(cpu), float(peak)) for command, n, d, cpu, peak in lines]


def sizes() -> Iterator[tuple[int, int]]:
    """Rows and columns of the tables."""
    yield from ((n, FEW_COLUMNS) for n in ROWS)
    yield from ((FEW_ROWS, d) for d in COLUMNS)


def made_table(n_rows: int, n_columns: int) -> pa.Table:
    """Return a table of these rows and columns, and a class."""
    rng = np.random.default_rng(n_rows + n_columns)
    z = rng.normal(size=n_rows)
    columns: dict[str, pa.Array] = {}
    odds, before = z.copy(), z
    for i in range(n_columns):
        x = rng.normal(size=n_rows) + (z * rng.uniform(-0.8, 0.8) if i < 10 else 0.0)
        if i < 4 and i % 2:
            odds += x * before
        before = x
        if i % 2 and n_rows > FEW_ROWS:
            levels = [f"level {k}" for k in range(3 + i % 10)]
            codes = np.clip((x + 3) / 6 * len(levels), 0, len(levels) - 1).astype(np.int8)
            columns[f"c{i}"] = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(levels))
        else:
            columns[f"x{i}"] = pa.array(np.round(x, 4))
    columns["class"] = pa.array(np.where(odds + rng.normal(size=n_rows) > 0, "yes", "no"))
    return pa.table(columns)


def measure() -> None:
    """Measure what is not recorded, the small tables first, and record each point at once."""
    points = recorded()
    known = {(point.command, point.rows, point.columns) for point in points}
    with tempfile.TemporaryDirectory() as folder:
        for n_rows, n_columns in sorted(sizes(), key=lambda size: size[0] * size[1]):
            data = Path(folder, "t.parquet")
            parquet.write_table(made_table(n_rows, n_columns), data)
            for command, options in COMMANDS.items():
                if (command, n_rows, n_columns) in known:
                    continue
                words = ("fit", str(data), *options, "--threads", "1", "-q", "-o", str(Path(folder, "m.bnc")))
                try:
                    done = run((sys.executable, "-c", LIMITED, *words))
                except AssertionError as error:
                    print(command, n_rows, n_columns, error, flush=True)
                    continue
                points.append(Point(command, n_rows, n_columns, done.cpu, done.peak_mb))
                write(points)
                print(command, n_rows, n_columns, f"{done.cpu:.1f} s, {done.peak_mb:.0f} MB", flush=True)


def write(points: Sequence[Point]) -> None:
    """Write the file, by command and size."""
    order = list(COMMANDS)
    lines = sorted(points, key=lambda p: (order.index(p.command), p.columns, p.rows))
    numbers = [(p.command, p.rows, p.columns, f"{p.cpu:.3g}", f"{p.peak_mb:.0f}") for p in lines]
    write_csv(TABLE, [HEADER, *numbers])


def picture(points: Sequence[Point]) -> str:
    """Return the picture: CPU seconds and memory over rows, and over columns."""
    drawing, frames = LAYOUT.sheet("CPU seconds and memory of bncli fit, one thread", 4, head=34.0 + 18 * len(COMMANDS))
    for number, command in enumerate(COMMANDS):
        y = 52.0 + 18 * number
        drawing.series(number, (16, y - 4), (46, y - 4))
        drawing.text(54, y, f"bncli {command}")
    by_rows = [point for point in points if point.columns == FEW_COLUMNS]
    by_columns = [point for point in points if point.rows == FEW_ROWS]
    panels = (
        (by_rows, "rows", f"rows, {FEW_COLUMNS} columns", "cpu", "CPU seconds"),
        (by_columns, "columns", f"columns, {FEW_ROWS} rows", "cpu", "CPU seconds"),
        (by_rows, "rows", f"rows, {FEW_COLUMNS} columns", "peak_mb", "MB at the peak"),
        (by_columns, "columns", f"columns, {FEW_ROWS} rows", "peak_mb", "MB at the peak"),
    )
    for frame, (shown, size, across_name, figure, upwards_name) in zip(frames, panels, strict=True):
        across = axis_of([getattr(point, size) for point in shown], True)
        upwards = axis_of([getattr(point, figure) for point in shown], True)
        draw_axes(drawing, frame, across, upwards, across_name, upwards_name)
        for number, command in enumerate(COMMANDS):
            own = sorted((getattr(p, size), getattr(p, figure)) for p in shown if p.command == command)
            drawing.series(number, *(frame.place(across.share(x), upwards.share(y)) for x, y in own))
            for x, y in own:
                drawing.dot(*frame.place(across.share(x), upwards.share(y)), f"bncli {command}: {x:,} {size}, {y:,.3g}")
    return drawing.source()


def draw_axes(drawing: Drawing, frame: Frame, across: Axis, upwards: Axis, across_name: str, upwards_name: str) -> None:
    """Draw the outline of a panel, its ticks and the names of its axes."""
    frame.outline()
    drawing.text(frame.left, frame.top - 10, upwards_name, size=11)
    drawing.text(frame.left + frame.width, frame.top + frame.height + 34, across_name, anchor="end", size=11)
    for tick in across.ticks:
        frame.tick_below(frame.place(across.share(tick), 0.0)[0], f"{tick:,.0f}" if tick >= 1 else f"{tick:g}")
    for tick in upwards.ticks:
        frame.tick_left(frame.place(0.0, upwards.share(tick))[1], f"{tick:,.6g}")


if __name__ == "__main__":
    if sys.argv[1:] != ["draw"]:
        measure()
    PICTURE.write_text(picture(recorded()))
