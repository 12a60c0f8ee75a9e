"""Make a model from a file with a Bayesian network, written by an expert or by another program."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bncli.engine.data.schema import NumericAttribute
from bncli.engine.prediction.network_models import model_of_network
from bncli.engine.prediction.verification import with_self_test
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError
from bncli.files.artifacts.file_kinds import recognise
from bncli.files.artifacts.model import write_model
from bncli.files.exports import EXPORTS, NetworkFormat, export_format
from bncli.files.paths import cannot_read, check_outputs, default_output_path
from bncli.watch import Note, Watch, silent


@dataclass(frozen=True)
class ImportReport:
    """A summary of the model that was made from a network file.

    class_name, labels: what the model predicts. attributes: the number of nodes other than the class. numeric: the
    names of the attributes whose states are intervals. arcs: number of arcs between attributes. class_parents: number
    of attributes that are parents of the class. probabilities: number of entries of all tables. missing_policy: how the
    model treats missing values.
    """

    network: str
    output: str
    class_name: str
    labels: tuple[str, ...]
    attributes: int
    numeric: tuple[str, ...]
    arcs: int
    class_parents: int
    probabilities: int
    missing_policy: str

    def as_json(self) -> dict[str, Any]:
        """Return every field by name, with `class_name` as `class`."""
        return {("class" if key == "class_name" else key): value for key, value in asdict(self).items()}


def import_network(
    path: str, output: str | None = None, class_name: str | None = None, *, watch: Watch = silent
) -> ImportReport:
    """Convert the network in the file `path` to a model, and write it to `output` (by default beside the network).

    class_name: the node to predict, or None to choose it as `model_of_network` does. Raises BncliError if the file
    cannot be read or does not contain a network with probabilities, and UsageError if the network has no such class.
    """
    output = output or default_output_path((path,), ".bnc")
    check_outputs((output,), (path,))
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise cannot_read(path, error) from error
    file_kind = recognise(data)
    form = export_format(file_kind.kind) if file_kind.kind in EXPORTS else None
    if not isinstance(form, NetworkFormat) or form.read is None:
        what = f"this is {file_kind.description}, not a network with its probabilities"
        raise BncliError(
            what, where=path, hint="give a BIF or XMLBIF file; other programs can save networks in these formats"
        )
    network = form.read(data, path)
    try:
        model, is_dense = model_of_network(network, class_name)
    except BncliError as error:
        raise type(error)(error.what, where=path, hint=error.hint) from None
    if is_dense:
        what = "the network is too dense to marginalize rows with most values missing: such rows cannot be scored"
        watch(Note(f"{what}, and the frequencies of values were estimated from rows drawn from the network"))
    write_model(output, with_self_test(model))
    schema, graph = model.schema, model.structure
    assert isinstance(graph, Dag)
    return ImportReport(
        path,
        output,
        schema.class_name,
        schema.labels,
        len(schema.attributes),
        tuple(attribute.name for attribute in schema.attributes if isinstance(attribute, NumericAttribute)),
        graph.n_arcs,
        len(graph.class_parents),
        sum(node.probabilities.size for node in network.nodes),
        schema.missing_policy,
    )
