"""Coverage of the intervals of probabilities on simulated networks whose probabilities are known.

    python -m tests.published.probability_intervals [REPEATS] > tests/published/probability_intervals.csv

Each repeat draws a naive Bayes network or a tree over ATTRIBUTES attributes of 2 to 4 values, every distribution from
Dirichlet(1, ..., 1), rows to learn from, and TEST_ROWS rows of the same network. The model is learned with the true
structure. Coverage is the share of pairs (test row, label) whose 90 % interval holds the true P(y | x).
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bncli
from bncli.engine.kernels.arrays import Array, Index

ATTRIBUTES, TEST_ROWS, LEVEL = 8, 1000, 0.9
ROWS, CLASSES = (200, 1_000, 10_000), (2, 5)
MODELS = (("nb", "map"), ("tan", "map"), ("nb", "weighted"), ("tan", "weighted"), ("nb", "discriminative"))
COLUMNS = ("structure", "param", "classes", "rows", "repeats", "coverage", "lowest_label", "width")


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


def draw_network(structure: str, n_labels: int, rng: np.random.Generator) -> TrueNetwork:
    """Return a random network with every probability from Dirichlet(1, ..., 1)."""
    sizes = rng.integers(2, 5, ATTRIBUTES)
    parents = [None if i == 0 or structure == "nb" else int(rng.integers(i)) for i in range(ATTRIBUTES)]
    shapes = [(n_labels, 1 if parent is None else sizes[parent]) for parent in parents]
    tables = [rng.dirichlet(np.ones(size), shape) for size, shape in zip(sizes, shapes, strict=True)]
    return TrueNetwork(rng.dirichlet(np.full(n_labels, 5.0)), parents, tables)


def coverage(structure: str, param: str, n_labels: int, n_rows: int, seed: int) -> tuple[Array, float]:
    """Return the coverage of each label's interval (K,) in one repeat, and the mean width."""
    rng = np.random.default_rng([seed, n_labels, n_rows])
    network = draw_network(structure, n_labels, rng)
    labels, values, _ = network.draw(n_rows, rng)
    _, test_values, truth = network.draw(TEST_ROWS, rng)
    parents: dict[str, list[str]] = {f"x{i}": [] if p is None else [f"x{p}"] for i, p in enumerate(network.parents)}
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder, "structure.json")
        arcs = {name: ["class", *of_name] for name, of_name in parents.items()}
        graph.write_text(json.dumps({"format": "bncli-structure", "version": 1, "class": "class", "parents": arcs}))
        table = {f"x{i}": column.astype(str) for i, column in enumerate(values)} | {"class": labels.astype(str)}
        learned = "nb" if structure == "nb" else str(graph)
        model = bncli.fit(
            table, structure=learned, param=param, class_="class", intervals=True, progress=lambda event: None
        )
    ends = model.predict_interval({f"x{i}": column.astype(str) for i, column in enumerate(test_values)}, LEVEL)
    truth = truth[:, [int(label) for label in model.classes_]]
    inside = (ends[:, :, 0] <= truth) & (truth <= ends[:, :, 1])
    return inside.mean(axis=0), float((ends[:, :, 1] - ends[:, :, 0]).mean())


def main(repeats: int) -> None:
    """Write the mean coverage of every setting."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for structure, param in MODELS:
        for n_labels in CLASSES:
            for n_rows in ROWS:
                results = [coverage(structure, param, n_labels, n_rows, seed) for seed in range(repeats)]
                shares = [float(found.mean()) for found, _ in results]
                width = np.mean([width for _, width in results])
                row = (f"{np.mean(shares):.3f}", f"{min(f.min() for f, _ in results):.3f}", f"{width:.3f}")
                writer.writerow((structure, param, n_labels, n_rows, repeats, *row))
                sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
