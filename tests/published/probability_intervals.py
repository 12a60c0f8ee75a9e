"""Coverage of the intervals of probabilities on simulated networks whose probabilities are known.

Run `python -m tests.published.probability_intervals`: it measures the settings that `probability_intervals.csv` does
not contain with at least as many networks as here, adds each to the file when it is finished, and writes the page
`probability_intervals.md`. Everything takes about 50 minutes on one core.

Each repeat draws a naive Bayes network or a tree over ATTRIBUTES attributes of 2 to 4 values, every distribution from
Dirichlet(c, ..., c), rows to learn from, and TEST_ROWS rows of the same network. The model is learned with the true
structure; `auto` finds its own tables. Coverage is the share of pairs (test row, label) whose 90 % interval holds the
true P(y | x). If values are missing, every value is missing with the same probability, also in the test rows: the model
marginalizes them, and the truth is the probability given the known values.

Networks are independent and rows of one network are not, so the standard error of a figure is the standard deviation
over the networks, divided by the square root of their number.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bncli
from bncli.engine.kernels.arrays import Array, Index, Mask
from tests.published import pages

ATTRIBUTES, TEST_ROWS, LEVEL = 8, 1000, 0.9
REPEATS, REPEATS_OF_AUTO = 60, 12
BOUNDS = (0.87, 0.93)
TEXT = """# Coverage of 90 % intervals of probabilities

Share of pairs (test row, label) whose 90 % interval (`fit --intervals`, `score --interval 0.9`) holds the true
probability, over {repeats} or more random networks per setting ({of_auto} for `auto`; the CSV file beside this page has
the numbers) with {attributes} attributes of 2 to 4 values and {n:,} test rows. Every distribution of an attribute is
drawn from Dirichlet(c, ..., c): with c = 1 most rows are nearly certain (log-odds of 6 and more are usual), with c = 4
few are. The model has the true structure, except that `auto` finds its own. Where values are missing, they are so at
random, in training and test rows alike, and are marginalized; the true probability is then the one given the known
values. Behind ± is the standard error over the networks. Bold: outside 0.87 to 0.93. Made by
`python -m tests.published.probability_intervals`.

{table}

## Outside 0.87 to 0.93

{outside}

{why}
"""
WHY = """\
With c = 4 the distributions of a network are more even than smoothing assumes. If a quarter of the values is missing,
200 rows of five classes leave about seven rows per distribution, and the intervals are those of the weaker prior.

The intervals of `auto` are a spread of rival models, not a posterior. In naive Bayes networks they are up to 1.6
times as wide as those of `weighted` with the true structure (column `width` of the file): the spread between
components counts even if one of them is right. In trees with five classes, 40 rows per class hardly show the
interactions: on the first four networks, the log-odds of `auto` against those of the class frequencies are 0.13 to
0.27 times the true ones (slope through the origin), and intervals contain such shrinkage only in part."""
ROWS, CLASSES = (200, 1_000, 10_000), (2, 5)
MODELS = (
    ("nb", "map", 1, 0.0),
    ("tan", "map", 1, 0.0),
    ("nb", "weighted", 1, 0.0),
    ("nb", "weighted", 4, 0.0),
    ("tan", "weighted", 4, 0.0),
    ("nb", "discriminative", 4, 0.0),
    ("tan", "map", 1, 0.25),
    ("tan", "map", 4, 0.0),
    ("tan", "map", 4, 0.25),
    ("nb", "auto", 4, 0.0),
    ("tan", "auto", 4, 0.0),
)
FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")


class Figure(NamedTuple):
    """Mean coverage and mean width of the intervals over the repeats of one setting.

    c: parameter of the Dirichlet distributions. missing: share of the values that are missing.
    """

    structure: str
    param: str
    c: int
    missing: float
    classes: int
    rows: int
    repeats: int
    coverage: float
    standard_error: float
    width: float


class TrueNetwork(NamedTuple):
    """prior (K,); per attribute its parent or None, and P(value | parent value, class), (K, parents, values)."""

    prior: Array
    parents: list[int | None]
    conditional: list[Array]

    def draw(self, n_rows: int, rng: np.random.Generator) -> tuple[Index, list[Index]]:
        """Return labels (N,), and the values of each attribute (N,)."""
        labels = rng.choice(len(self.prior), n_rows, p=self.prior)
        values: list[Index] = []
        for parent, table in zip(self.parents, self.conditional, strict=True):
            of_parent = np.zeros(n_rows, np.intp) if parent is None else values[parent]
            below = table[labels, of_parent].cumsum(axis=1)
            values.append(np.minimum((rng.random((n_rows, 1)) > below).sum(axis=1), table.shape[2] - 1))
        return labels, values

    def probabilities(self, values: Sequence[Index], known: Sequence[Mask]) -> Array:
        """Return the true P(y | known values of row t), (N, K); the parent of an attribute comes before it."""
        agree = []  # P(known values of x_i's descendants | x_i, y), times 1 if row t can have the value x_i
        for column, is_known, table in zip(values, known, self.conditional, strict=True):
            possible = (column[:, np.newaxis] == np.arange(table.shape[2])) | ~is_known[:, np.newaxis]
            agree.append(np.repeat(possible[:, np.newaxis].astype(float), len(self.prior), axis=1))
        p = np.tile(self.prior, (len(values[0]), 1))
        for i, parent in reversed(list(enumerate(self.parents))):
            of_parent = np.einsum("ypx,tyx->typ", self.conditional[i], agree[i])
            if parent is None:
                p *= of_parent[:, :, 0]
            else:
                agree[parent] *= of_parent
        return np.asarray(p / p.sum(axis=1, keepdims=True))


def draw_network(structure: str, n_labels: int, c: float, rng: np.random.Generator) -> TrueNetwork:
    """Return a random network with every distribution of an attribute from Dirichlet(c, ..., c)."""
    sizes = rng.integers(2, 5, ATTRIBUTES)
    parents = [None if i == 0 or structure == "nb" else int(rng.integers(i)) for i in range(ATTRIBUTES)]
    shapes = [(n_labels, 1 if parent is None else sizes[parent]) for parent in parents]
    tables = [rng.dirichlet(np.full(size, float(c)), shape) for size, shape in zip(sizes, shapes, strict=True)]
    return TrueNetwork(rng.dirichlet(np.full(n_labels, 5.0)), parents, tables)


def coverage(
    structure: str, param: str, c: float, missing: float, n_labels: int, n_rows: int, seed: int
) -> tuple[Array, float]:
    """Return the coverage of each label's interval (K,) in one repeat, and the mean width."""
    rng = np.random.default_rng([seed, n_labels, n_rows])
    network = draw_network(structure, n_labels, c, rng)
    labels, values = network.draw(n_rows, rng)
    _, test_values = network.draw(TEST_ROWS, rng)
    known, test_known = ([rng.random(len(column)) >= missing for column in each] for each in (values, test_values))
    parents: dict[str, list[str]] = {f"x{i}": [] if p is None else [f"x{p}"] for i, p in enumerate(network.parents)}
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder, "structure.json")
        arcs = {name: ["class", *of_name] for name, of_name in parents.items()}
        graph.write_text(json.dumps({"format": "bncli-structure", "version": 1, "class": "class", "parents": arcs}))
        table = as_table(values, known) | {"class": labels.astype(str)}
        how = {"structure": "nb" if structure == "nb" else str(graph), "param": param}
        how = {"structure": "auto"} if param == "auto" else how
        how |= {"missing_policy": "marginalize"} if missing else {}
        model = bncli.fit(table, **how, class_="class", intervals=True, threads=1, progress=lambda event: None)
    ends = model.predict_interval(as_table(test_values, test_known), LEVEL)
    truth = network.probabilities(test_values, test_known)[:, [int(label) for label in model.classes_]]
    inside = (ends[:, :, 0] <= truth) & (truth <= ends[:, :, 1])
    return inside.mean(axis=0), float((ends[:, :, 1] - ends[:, :, 0]).mean())


def as_table(values: Sequence[Index], known: Sequence[Mask]) -> dict[str, Any]:
    """Return the columns as text, with "" for values that are not known."""
    columns = zip(values, known, strict=True)
    return {f"x{i}": np.where(is_known, column.astype(str), "") for i, (column, is_known) in enumerate(columns)}


def main() -> None:
    """Measure the settings that the file does not contain with at least as many networks, and write the page."""
    figures = {figure[:6]: figure for figure in recorded()}
    settings = [
        (structure, param, c, missing, n_labels, n_rows)
        for structure, param, c, missing in MODELS
        for n_labels, n_rows in itertools.product(CLASSES, ROWS)
    ]
    for setting in settings:
        repeats = REPEATS_OF_AUTO if setting[1] == "auto" else REPEATS
        if setting not in figures or figures[setting].repeats < repeats:
            results = [coverage(*setting, seed) for seed in range(repeats)]
            shares, widths = np.array([(found.mean(), width) for found, width in results]).T
            error = shares.std(ddof=1) / np.sqrt(repeats)
            found = (round(float(number), 4) for number in (shares.mean(), error, widths.mean()))
            figures[setting] = Figure(*setting, repeats, *found)
            print(*figures[setting], flush=True)
            pages.write_csv(FIGURES, [Figure._fields, *(figures[each] for each in settings if each in figures)])
    PAGE.write_text(page(recorded()))


def recorded() -> list[Figure]:
    """Return the figures in the file."""
    kinds = (str, str, int, float, int, int, int, float, float, float)
    rows = pages.read_csv(FIGURES)[1:] if FIGURES.exists() else []
    return [Figure(*(kind(text) for kind, text in zip(kinds, row, strict=True))) for row in rows]  # type: ignore[arg-type]


def page(figures: Sequence[Figure]) -> str:
    """Return the page, with coverage outside BOUNDS in bold and listed."""
    of_setting = {figure[:6]: figure for figure in figures}
    rows, outside = [], []
    for structure, param, c, missing in MODELS:
        for n_labels in CLASSES:
            cells = []
            for n_rows in ROWS:
                figure = of_setting.get((structure, param, c, missing, n_labels, n_rows))
                if figure is None:
                    cells.append("-")
                    continue
                share = f"{figure.coverage:.3f} ± {figure.standard_error:.3f}"
                beyond = max(BOUNDS[0] - figure.coverage, figure.coverage - BOUNDS[1])
                cells.append(f"**{share}**" if beyond > 0 else share)
                if beyond > 0:
                    holes = f", {missing:.0%} missing" if missing else ""
                    chance = "" if beyond > 2 * figure.standard_error else ", two standard errors reach the range"
                    outside.append(
                        f"- {structure}, {param}, c = {c}{holes}, {n_labels} classes, {n_rows:,} rows: {share}{chance}"
                    )
            rows.append([structure, param, str(c), f"{missing:.0%}", str(n_labels), *cells])
    heading = ["structure", "param", "c", "missing", "classes", *(f"{n:,} rows" for n in ROWS)]
    return TEXT.format(
        repeats=REPEATS,
        of_auto=REPEATS_OF_AUTO,
        table=pages.table(heading, rows),
        outside="\n".join(outside),
        why=WHY,
        n=TEST_ROWS,
        attributes=ATTRIBUTES,
    )


if __name__ == "__main__":
    main()
