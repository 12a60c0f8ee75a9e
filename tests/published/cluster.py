"""A pass over the rows on a cluster of this machine beside one thread and two: seconds, and bytes moved.

    python -m tests.published.cluster        writes tests/published/cluster.csv; what it holds already is not done again

A row of the table: so many rows of 30 attributes with four values each and two classes, all families of naive Bayes, a
place (1 thread, 2 threads, 2 workers of one thread each), the least and the middle of the wall seconds of `passes`
passes, and the bytes that a round takes to the workers and back. The passes of the three places take turns, so that a
busy machine is busy for all of them; the least of many is what the machine can do when it is left alone.
"""

from __future__ import annotations

import csv
import statistics
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.data.cutting import cuts_of, learn_dataset
from bncli.engine.data.dataset import Dataset, block_bounds
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.structures.structure import Dag
from bncli.files.artifacts.codes import CodedRows, CodesHeader, write_codes
from bncli.steps.cluster.connection import Cluster, connected
from bncli.steps.cluster.fitting import WorkerBlocks, distribute_rows
from bncli.watch import silent

CSV = Path(__file__).with_suffix(".csv")
FIELDS = ("rows", "blocks", "place", "passes", "least", "middle", "sent", "received")
SIZES = (1 << 17, 1 << 19, 1 << 21, 1 << 22)
N_ATTRIBUTES, N_VALUES = 30, 4
PLACES = ("1 thread", "2 threads", "2 workers")


def coded(n_rows: int) -> Dataset:
    """Rows of attributes that follow the class loosely."""
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, n_rows, np.uint8)
    levels = tuple("abcd"[:N_VALUES])
    columns = {}
    for i in range(N_ATTRIBUTES):
        codes = rng.integers(0, N_VALUES, n_rows, np.uint8)
        np.copyto(codes, labels, where=rng.random(n_rows, np.float32) < 0.1)
        columns[f"x{i}"] = CategoricalColumn(codes, levels)
    return learn_dataset(Columns(n_rows, columns, "class", CategoricalColumn(labels, ("no", "yes"))))


def written(data: Dataset, path: Path) -> None:
    """The rows as a file of codes."""
    cuts = cuts_of(data.schema, "mdl", {})
    heading = CodesHeader(cuts, data.schema.labels, data.n_rows)
    blocks = (CodedRows([c[a:b] for c in data.codes], data.labels[a:b]) for a, b in block_bounds(data.n_rows))
    write_codes(str(path), heading, blocks)


def measured(n_rows: int, cluster: Cluster, passes: int) -> list[dict[str, object]]:
    """A row for each place."""
    data = coded(n_rows)
    families = Dag(((),) * N_ATTRIBUTES, tuple(range(N_ATTRIBUTES)), method="nb").families(data.schema.cardinalities)
    with tempfile.TemporaryDirectory() as folder:
        written(data, path := Path(folder) / "rows.codes")
        distributed: list[WorkerBlocks] = []
        there = distribute_rows(data, path=str(path), cluster=cluster, watch=silent, distributed=distributed)
        (keeper,) = distributed
        sums = [conditional_likelihood(one, families) for one in (data, replace(data, threads=2), there)]
        cells = np.random.default_rng(1).normal(size=(2, sums[0].n_cells)) / 10
        first = [one.value_and_gradient(cells) for one in sums]
        assert all(value == first[0][0] and (gradient == first[0][1]).all() for value, gradient in first)
        before = (keeper.sent, keeper.received)
        spent = [[_seconds(one, cells) for one in sums] for _ in range(passes)]
    bytes_moved = [(keeper.sent - before[0]) // passes, (keeper.received - before[1]) // passes]
    return [
        {
            "rows": n_rows,
            "blocks": len(block_bounds(n_rows)),
            "place": place,
            "passes": passes,
            "least": f"{min(seconds):.4f}",
            "middle": f"{statistics.median(seconds):.4f}",
            "sent": bytes_moved[0] if place == "2 workers" else 0,
            "received": bytes_moved[1] if place == "2 workers" else 0,
        }
        for place, seconds in zip(PLACES, zip(*spent, strict=True), strict=True)
    ]


def _seconds(likelihood: ConditionalLikelihood, cells: np.ndarray) -> float:
    begun = time.perf_counter()
    likelihood.value_and_gradient(cells)
    return time.perf_counter() - begun


def read_rows() -> list[dict[str, str]]:
    with CSV.open(newline="") as file:
        return list(csv.DictReader(file))


def _write(rows: Iterable[dict[str, object]]) -> None:
    new = not CSV.exists()
    with CSV.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    known = {int(row["rows"]) for row in read_rows()} if CSV.exists() else set()
    with connected("local:2") as cluster:
        for n_rows in SIZES:
            if n_rows not in known:
                _write(measured(n_rows, cluster, 20 if n_rows < 1 << 21 else 10))


if __name__ == "__main__":
    main()
