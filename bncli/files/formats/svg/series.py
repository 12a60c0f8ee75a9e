"""One number over time: a dot and a line from file to file, and a dashed line of what it is compared with.

Files have the same room each and are numbered from 1; the axis upwards begins at 0 where no number is below. Where a
number is unknown the line is broken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bncli.files.formats.svg.axes import axis_of
from bncli.files.formats.svg.drawing import Drawing

WIDTH = 340.0
_LEFT, _TOP, _WIDE, _HIGH = 56.0, 26.0, 270.0, 130.0
Series = Sequence[float | None]


def series_curve(title: str, upwards: str, values: Series, dashed: Series, names: Sequence[str]) -> Drawing:
    """values and dashed (files,); `names` of the files are told when a dot is pointed at."""
    drawing = Drawing(WIDTH, _TOP + _HIGH + 40, title)
    known = [value for value in (*values, *dashed) if value is not None]
    axis = axis_of(known if min(known, default=0.0) < 0 else [0.0, *known], logarithmic=False)
    bottom, right = _TOP + _HIGH, _LEFT + _WIDE

    def place(number: int, value: float) -> tuple[float, float]:
        return _LEFT + _WIDE * (number + 0.5) / len(values), _TOP + _HIGH * (1 - axis.share(value))

    drawing.line("faint", (_LEFT, _TOP), (right, _TOP), (right, bottom), (_LEFT, bottom), (_LEFT, _TOP))
    drawing.text(_LEFT, _TOP - 9, f"↑ {upwards}", size=11)
    drawing.text(right, bottom + 34, "file →", anchor="end", size=11)
    for tick in axis.ticks:
        _, y = place(0, tick)
        drawing.line("faint", (_LEFT, y), (_LEFT - 4, y))
        drawing.text(_LEFT - 7, y + 3.5, f"{tick + 0.0:.4g}", anchor="end", size=10)
    for number in range(0, len(values), math.ceil(len(values) / 12)):
        x, _ = place(number, axis.low)
        drawing.line("faint", (x, bottom), (x, bottom + 4))
        drawing.text(x, bottom + 16, f"{number + 1}", anchor="middle", size=10)
    for part in _unbroken(dashed):
        ends = [place(i, value) for i, value in part]
        first, last = ends[0][0], ends[-1][0]
        half = _WIDE / len(values) / 2
        drawing.line("dashed", (first - half, ends[0][1]), *ends, (last + half, ends[-1][1]))
    for part in _unbroken(values):
        drawing.line("curve", *(place(i, value) for i, value in part))
        for i, value in part:
            drawing.dot(*place(i, value), f"{names[i]}: {value:.4g}")
    return drawing


def _unbroken(values: Series) -> list[list[tuple[int, float]]]:
    """Runs of known numbers, each with its place."""
    runs: list[list[tuple[int, float]]] = [[]]
    for i, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((i, value))
    return [run for run in runs if run]
