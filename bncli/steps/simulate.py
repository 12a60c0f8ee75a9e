"""Draws rows from a model or from a network made for the purpose, and writes them and the truth behind them.

Drawing and writing overlap, and memory does not grow with the rows. The seed decides the network first and then the
rows: more rows of the same network begin with the same rows. Missing values are decided apart, by the same seed: the
values that are not removed are those of the rows without missing values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.data.schema import CategoricalAttribute
from bncli.engine.kernels.arrays import Index
from bncli.engine.networks.network import Network, network_of, true_model
from bncli.engine.networks.simulation import (
    MissingCompletelyAtRandom,
    RandomNetworkKind,
    conditioning_network,
    count_missing,
    missing_shares,
    random_network,
    sample_blocks,
)
from bncli.engine.prediction.verification import with_self_test
from bncli.engine.structures.named_structure import name_dag
from bncli.errors import ModelError
from bncli.files.artifacts.model import read_model, write_model
from bncli.files.artifacts.structure import write_structure
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.simulated_rows import SUPPORTED_FORMATS, UNSUPPORTED_ENDINGS, open_rows, would_read_as_numbers
from bncli.steps.run import PipelineStage, Stopwatch
from bncli.watch import Note, Progress, Stage, Watch, silent


@dataclass(frozen=True)
class SimulateOutputs:
    """The files to write: rows (None or `-`: standard output) and their format, the network, the model of the truth."""

    rows: str | None = None
    format: str | None = None
    network: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class SimulateReport:
    """What was drawn from what, and which files were written (None: not asked for; `output` None: standard output).

    `model` is the file drawn from, `network` the name of a network that was made; the other is None. `probabilities`
    counts the entries of all tables. `missing` is the share of missing values that was asked for (None: none), or
    `model` where every attribute has its own from the model; `holes` counts the values that are missing, for whatever
    reason.
    """

    model: str | None
    network: str | None
    output: str | None
    rows: int
    attributes: int
    classes: int
    arcs: int
    perfect: bool
    probabilities: int
    missing: float | Literal["model"] | None
    holes: int
    network_file: str | None
    model_file: str | None
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return every field by name."""
        return asdict(self)


_MISSING = 1
"""What tells the seed of the missing values from that of the rows."""


class _Tally:
    """How often the rows have each code of each attribute, and how many of its values are missing."""

    def __init__(self, network: Network) -> None:
        self._names = [attribute.name for attribute in network.schema.attributes]
        self._counts: list[Index] = [np.zeros(n, np.intp) for n in network.schema.cardinalities]
        self.rows = 0
        self.missing_by_attribute = [0] * len(self._names)

    def counted(self, blocks: Iterator[Columns], rows: int, watch: Watch) -> Iterator[Columns]:
        """Yield the blocks, counted as they pass."""
        for block in blocks:
            for i, (counts, name) in enumerate(zip(self._counts, self._names, strict=True)):
                column = block.as_read[name]
                self.missing_by_attribute[i] += count_missing(column)
                if isinstance(column, CategoricalColumn) and len(counts):
                    counts += np.bincount(column.codes[column.codes >= 0], minlength=len(counts))
            yield block
            self.rows += block.n_rows
            watch(Progress(self.rows, rows))

    @property
    def missing(self) -> int:
        return sum(self.missing_by_attribute)

    @property
    def frequencies(self) -> list[list[float]]:
        return [counts.astype(np.float64).tolist() for counts in self._counts]


def simulate(
    origin: str | RandomNetworkKind | float,
    rows: int,
    outputs: SimulateOutputs = SimulateOutputs(),
    *,
    seed: int = 0,
    missing: float | Literal["model"] | None = None,
    watch: Watch = silent,
) -> SimulateReport:
    """Write `rows` rows, drawn from `origin`.

    That is the path of a model, a kind of random network, or the exponent of the conditioning experiment; only the
    networks that are made here may be written as a model with the true tables. Every attribute value is
    removed with probability `missing`, or with the share that the attribute had when the model was learnt.
    """
    output = None if outputs.rows == "-" else outputs.rows
    model_path = origin if isinstance(origin, str) else None
    refuse_ending(output, UNSUPPORTED_ENDINGS, SUPPORTED_FORMATS)
    check_outputs((output, outputs.network, outputs.model), (model_path,))
    stopwatch = Stopwatch(watch)
    stopwatch(Stage("network"))
    rng = np.random.Generator(np.random.PCG64(seed))
    network = _network(origin, rng)
    # Whoever learns from the rows must say again which numbers are names.
    levels = {a.name: a.levels for a in network.schema.attributes if isinstance(a, CategoricalAttribute)}
    names = [name for name in levels if would_read_as_numbers(levels[name])]
    if names:
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
        stopwatch(
            Note(f"values of {listed} are names that look like numbers: learn from these rows with --categorical")
        )
    stopwatch(Stage("rows"))
    tally, missing_values = _Tally(network), _missing_values(network, missing, seed)
    with open_rows(output, outputs.format) as file, PipelineStage(file.write) as writing:
        blocks = map(missing_values.applied_to, sample_blocks(network, rows, rng))
        for block in tally.counted(blocks, rows, stopwatch):
            writing.put(block)
    any_missing = missing is not None
    if outputs.network is not None:
        write_structure(outputs.network, name_dag(network.structure, network.schema))
    if outputs.model is not None:
        counts = tally.missing_by_attribute if any_missing else None
        model = true_model(network, tally.frequencies, tally.rows, counts)
        write_model(outputs.model, with_self_test(model))
    paths = (model_path, output, outputs.network, outputs.model)
    return _report(network, paths, tally, missing, stopwatch.seconds())


def _network(origin: str | RandomNetworkKind | float, rng: np.random.Generator) -> Network:
    if isinstance(origin, RandomNetworkKind):
        return random_network(origin, rng)
    if not isinstance(origin, str):
        return conditioning_network(origin)
    model = read_model(origin)
    try:
        return network_of(model)
    except ModelError as error:
        raise ModelError(error.what, where=origin, hint=error.hint) from error


def _missing_values(network: Network, missing: float | Literal["model"] | None, seed: int) -> MissingCompletelyAtRandom:
    """Their random streams follow from the seed and from nothing else."""
    n = len(network.schema.attributes)
    shares = missing_shares(network.schema) if missing == "model" else (missing or 0.0,) * n
    return MissingCompletelyAtRandom(shares, np.random.Generator(np.random.PCG64([seed, _MISSING])))


def _report(
    network: Network,
    paths: tuple[str | None, ...],
    tally: _Tally,
    missing: float | Literal["model"] | None,
    seconds: dict[str, float],
) -> SimulateReport:
    model, output, network_file, model_file = paths
    named = name_dag(network.structure, network.schema)
    return SimulateReport(
        model=model,
        network=None if model is not None else str(network.structure.options["network"]),
        output=output,
        rows=tally.rows,
        attributes=len(network.schema.attributes),
        classes=len(network.schema.labels),
        arcs=sum(len(parents) for parents in named.parents.values()),
        perfect=named.unmarried is None,
        probabilities=network.n_entries,
        missing=missing,
        holes=tally.missing,
        network_file=network_file,
        model_file=model_file,
        seconds=seconds,
    )
