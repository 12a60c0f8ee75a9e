"""Coverage of the intervals of probabilities on simulated networks whose probabilities are known.

Run `python -m tests.published.probability_intervals [PARAM ...]`: it measures all parameters or these, and writes
`probability_intervals.csv` and the page `probability_intervals.md`.

Each repeat draws a naive Bayes network or a tree over ATTRIBUTES attributes of 2 to 4 values, every distribution from
Dirichlet(c, ..., c), rows to learn from, and TEST_ROWS rows of the same network. The model is learned with the true
structure; `auto` finds its own tables. Coverage is the share of pairs (test row, label) whose 90 % interval holds the
true P(y | x).
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bncli
from bncli.engine.kernels.arrays import Array, Index
from tests.published import pages

ATTRIBUTES, TEST_ROWS, LEVEL = 8, 1000, 0.9
REPEATS, REPEATS_OF_AUTO = 12, 6
BOUNDS = (0.87, 0.93)
TEXT = """# Coverage of 90 % intervals of probabilities

Share of pairs (test row, label) whose 90 % interval (`fit --intervals`, `score --interval 0.9`) holds the true
probability, over {repeats} random networks per setting ({of_auto} for `auto`) with {attributes} attributes of 2 to 4
values and {n:,} test rows. Every distribution of an attribute is drawn from Dirichlet(c, ..., c): with c = 1 most rows
are nearly certain (log-odds of 6 and more are usual), with c = 4 few are. The model has the true structure, except
that `auto` finds its own. Bold: outside 0.87 to 0.93. The standard error of a figure is about 0.02. Made by
`python -m tests.published.probability_intervals`.

{table}
"""
ROWS, CLASSES = (200, 1_000, 10_000), (2, 5)
MODELS = (
    ("nb", "map", 1),
    ("tan", "map", 1),
    ("nb", "weighted", 1),
    ("nb", "weighted", 4),
    ("tan", "weighted", 4),
    ("nb", "discriminative", 4),
    ("nb", "auto", 4),
    ("tan", "auto", 4),
)
FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")


class Figure(NamedTuple):
    """Mean coverage and mean width of the intervals over the repeats of one setting; `c` of the Dirichlet."""

    structure: str
    param: str
    c: int
    classes: int
    rows: int
    repeats: int
    coverage: float
    width: float


class TrueNetwork(NamedTuple):
    """prior (K,); per attribute its parent or None, and P(value | parent value, class), (K, parents, values)."""

    prior: Array
    parents: list[int | None]
    conditional: list[Array]

    def draw(self, n_rows: int, rng: np.random.Generator) -> tuple[Index, list[Index], Array]:
        """Return labels (N,), the values of each attribute (N,), and the true P(y | x_t) (N, K)."""
        labels = rng.choice(len(self.prior), n_rows, p=self.prior)
        values: list[Index] = []
        log_p = np.tile(np.log(self.prior), (n_rows, 1))
        for parent, table in zip(self.parents, self.conditional, strict=True):
            of_parent = np.zeros(n_rows, np.intp) if parent is None else values[parent]
            below = table[labels, of_parent].cumsum(axis=1)
            values.append(np.minimum((rng.random((n_rows, 1)) > below).sum(axis=1), table.shape[2] - 1))
            log_p += np.log(table[:, of_parent, values[-1]].T)
        p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        return labels, values, p / p.sum(axis=1, keepdims=True)


def draw_network(structure: str, n_labels: int, c: float, rng: np.random.Generator) -> TrueNetwork:
    """Return a random network with every distribution of an attribute from Dirichlet(c, ..., c)."""
    sizes = rng.integers(2, 5, ATTRIBUTES)
    parents = [None if i == 0 or structure == "nb" else int(rng.integers(i)) for i in range(ATTRIBUTES)]
    shapes = [(n_labels, 1 if parent is None else sizes[parent]) for parent in parents]
    tables = [rng.dirichlet(np.full(size, float(c)), shape) for size, shape in zip(sizes, shapes, strict=True)]
    return TrueNetwork(rng.dirichlet(np.full(n_labels, 5.0)), parents, tables)


def coverage(structure: str, param: str, c: float, n_labels: int, n_rows: int, seed: int) -> tuple[Array, float]:
    """Return the coverage of each label's interval (K,) in one repeat, and the mean width."""
    rng = np.random.default_rng([seed, n_labels, n_rows])
    network = draw_network(structure, n_labels, c, rng)
    labels, values, _ = network.draw(n_rows, rng)
    _, test_values, truth = network.draw(TEST_ROWS, rng)
    parents: dict[str, list[str]] = {f"x{i}": [] if p is None else [f"x{p}"] for i, p in enumerate(network.parents)}
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder, "structure.json")
        arcs = {name: ["class", *of_name] for name, of_name in parents.items()}
        graph.write_text(json.dumps({"format": "bncli-structure", "version": 1, "class": "class", "parents": arcs}))
        table = {f"x{i}": column.astype(str) for i, column in enumerate(values)} | {"class": labels.astype(str)}
        how = {"structure": "nb" if structure == "nb" else str(graph), "param": param}
        how = {"structure": "auto"} if param == "auto" else how
        model = bncli.fit(table, **how, class_="class", intervals=True, progress=lambda event: None)
    ends = model.predict_interval({f"x{i}": column.astype(str) for i, column in enumerate(test_values)}, LEVEL)
    truth = truth[:, [int(label) for label in model.classes_]]
    inside = (ends[:, :, 0] <= truth) & (truth <= ends[:, :, 1])
    return inside.mean(axis=0), float((ends[:, :, 1] - ends[:, :, 0]).mean())


def main(params: Sequence[str]) -> None:
    """Measure the settings with these parameters, and write the figures and the page."""
    figures = [figure for figure in recorded() if figure.param not in params]
    for structure, param, c in MODELS:
        for n_labels, n_rows in itertools.product(CLASSES, ROWS) if param in params else ():
            repeats = REPEATS_OF_AUTO if param == "auto" else REPEATS
            results = [coverage(structure, param, c, n_labels, n_rows, seed) for seed in range(repeats)]
            share = round(float(np.mean([found.mean() for found, _ in results])), 3)
            width = round(float(np.mean([width for _, width in results])), 3)
            figures.append(Figure(structure, param, c, n_labels, n_rows, repeats, share, width))
            print(*figures[-1], flush=True)
            in_order = sorted(figures, key=lambda figure: MODELS.index(figure[:3]))
            pages.write_csv(FIGURES, [Figure._fields, *in_order])
    PAGE.write_text(page(recorded()))


def recorded() -> list[Figure]:
    """Return the figures in the file."""
    kinds = (str, str, int, int, int, int, float, float)
    rows = pages.read_csv(FIGURES)[1:]
    return [Figure(*(kind(text) for kind, text in zip(kinds, row, strict=True))) for row in rows]  # type: ignore[arg-type]


def page(figures: Sequence[Figure]) -> str:
    """Return the page, with coverage outside BOUNDS in bold."""
    rows = []
    for structure, param, c in MODELS:
        for n_labels in CLASSES:
            found = {
                f.rows: f for f in figures if (f.structure, f.param, f.c, f.classes) == (structure, param, c, n_labels)
            }
            shares = [f"{found[n].coverage:.3f}" if n in found else "-" for n in ROWS]
            outside = [n in found and not BOUNDS[0] <= found[n].coverage <= BOUNDS[1] for n in ROWS]
            shares = [f"**{share}**" if is_out else share for share, is_out in zip(shares, outside, strict=True)]
            rows.append([structure, param, str(c), str(n_labels), *shares])
    heading = ["structure", "param", "c", "classes", *(f"{n:,} rows" for n in ROWS)]
    table = pages.table(heading, rows)
    return TEXT.format(repeats=REPEATS, of_auto=REPEATS_OF_AUTO, table=table, n=TEST_ROWS, attributes=ATTRIBUTES)


if __name__ == "__main__":
    main(sys.argv[1:] or sorted({param for _, param, _ in MODELS}))
