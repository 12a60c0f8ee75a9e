"""Draw rows from a model or from a generated network; write the rows and, on request, the network and true model.

Drawing and writing overlap, and memory does not grow with the number of rows. The seed determines the network first,
and then the rows: if more rows are drawn from the same network, the first rows are the same. Missing values have their
own random stream from the same seed, so the remaining values are the same as without missing values.
"""

from __future__ import annotations

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

_MISSING_STREAM = 1
"""The number that distinguishes the random stream of the missing values from the stream of the rows."""
_LISTED = 5


@dataclass(frozen=True)
class SimulateOutputs:
    """The files to write.

    rows: the file of the rows; None or `-` for the standard output. format: the format of the rows, or None to choose
    it by the extension of the file. network, model: files for the true network and model, or None not to write them.
    """

    rows: str | None = None
    format: str | None = None
    network: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class SimulateReport:
    """The result of a simulation.

    model, network: the model file from which rows were drawn, or the name of a generated network; the other is None.
    output: the file of the rows, or None for the standard output. arcs: number of arcs, including those from or to the
    class. perfect: whether the graph is perfect. probabilities: number of entries of all tables. missing: the requested
    probability of a missing value, or `model` if each attribute has its own probability from the model; None if not
    requested. holes: number of missing values, regardless of the reason. network_file, model_file: None if not written.
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


def simulate(
    origin: str | RandomNetworkKind | float,
    rows: int,
    outputs: SimulateOutputs = SimulateOutputs(),
    *,
    seed: int = 0,
    missing: float | Literal["model"] | None = None,
    watch: Watch = silent,
) -> SimulateReport:
    """Draw `rows` rows from `origin`, and write them.

    origin: the path of a model, a kind of random network, or the exponent of the conditioning experiment. missing: the
    probability with which each attribute value is removed, or "model" for the proportion of missing values that its
    attribute had in training. outputs.model: a file for a model with the true tables, which the command line accepts
    for random networks only. Raises ModelError if the model is not a network.
    """
    output = None if outputs.rows == "-" else outputs.rows
    model_path = origin if isinstance(origin, str) else None
    refuse_ending(output, UNSUPPORTED_ENDINGS, SUPPORTED_FORMATS)
    check_outputs((output, outputs.network, outputs.model), (model_path,))
    stopwatch = Stopwatch(watch)
    stopwatch(Stage("network"))
    rng = np.random.Generator(np.random.PCG64(seed))
    if isinstance(origin, RandomNetworkKind):
        network = random_network(origin, rng)
    elif not isinstance(origin, str):
        network = conditioning_network(origin)
    else:
        original = read_model(origin)
        try:
            network = network_of(original)
        except ModelError as error:
            raise ModelError(error.what, where=origin, hint=error.hint) from error
    schema = network.schema
    # A learner that reads the rows cannot know which numbers are names.
    names = [
        a.name for a in schema.attributes if isinstance(a, CategoricalAttribute) and would_read_as_numbers(a.levels)
    ]
    if names:
        listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else "")
        stopwatch(
            Note(
                f"values of {listed} are categories that look like numbers; to learn from these rows, add "
                "--categorical NAME"
            )
        )
    stopwatch(Stage("rows"))
    shares = missing_shares(schema) if missing == "model" else (missing or 0.0,) * len(schema.attributes)
    remover = MissingCompletelyAtRandom(shares, np.random.Generator(np.random.PCG64([seed, _MISSING_STREAM])))
    tally = _Tally(network)
    with open_rows(output, outputs.format) as file, PipelineStage(file.write) as writing:
        for block in map(remover.applied_to, sample_blocks(network, rows, rng)):
            tally.add(block)
            writing.put(block)
            stopwatch(Progress(tally.rows, rows))
    named = name_dag(network.structure, schema)
    if outputs.network is not None:
        write_structure(outputs.network, named)
    if outputs.model is not None:
        frequencies = [counts.astype(np.float64).tolist() for counts in tally.counts]
        model = true_model(network, frequencies, tally.rows, None if missing is None else tally.missing)
        write_model(outputs.model, with_self_test(model))
    return SimulateReport(
        model=model_path,
        network=None if model_path is not None else str(network.structure.options["network"]),
        output=output,
        rows=tally.rows,
        attributes=len(schema.attributes),
        classes=len(schema.labels),
        arcs=sum(len(parents) for parents in named.parents.values()),
        perfect=named.unmarried is None,
        probabilities=network.n_entries,
        missing=missing,
        holes=sum(tally.missing),
        network_file=outputs.network,
        model_file=outputs.model,
        seconds=stopwatch.seconds(),
    )


class _Tally:
    """Counts of the rows drawn: for each attribute, the rows with each code and the missing values."""

    def __init__(self, network: Network) -> None:
        self._names = [attribute.name for attribute in network.schema.attributes]
        self.counts: list[Index] = [np.zeros(n, np.intp) for n in network.schema.cardinalities]
        self.rows = 0
        self.missing = [0] * len(self._names)

    def add(self, block: Columns) -> None:
        """Count the rows of a block."""
        for i, (counts, name) in enumerate(zip(self.counts, self._names, strict=True)):
            column = block.as_read[name]
            self.missing[i] += count_missing(column)
            if isinstance(column, CategoricalColumn) and len(counts):
                counts += np.bincount(column.codes[column.codes >= 0], minlength=len(counts))
        self.rows += block.n_rows
