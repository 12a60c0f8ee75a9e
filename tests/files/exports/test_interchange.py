"""What holds for every format of networks: there and back, and other programs read the same probabilities in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bncli.engine.networks.network import NamedNetwork, Node
from bncli.files.exports.bif import bif_text, read_bif
from bncli.files.exports.dot import dot_text, read_dot
from bncli.files.exports.xmlbif import read_xmlbif, xmlbif_text
from tests.networks import NASTY, assert_same, networks, posterior, probabilities

Writer = Callable[[NamedNetwork], str]
Reader = Callable[[bytes, str], NamedNetwork]
FORMATS = [pytest.param(bif_text, read_bif, id="bif"), pytest.param(xmlbif_text, read_xmlbif, id="xmlbif")]
PEER_SETTINGS = settings(
    max_examples=max(settings.default.max_examples // 5, 1),
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
"""Without shrinking: these programs are slow readers."""


@pytest.mark.parametrize(("write", "read"), FORMATS)
@given(network=networks())
def test_there_and_back_is_the_same(write: Writer, read: Reader, network: NamedNetwork) -> None:
    assert_same(read(write(network).encode(), "file"), network)


@pytest.mark.parametrize(("write", "read"), FORMATS)
@given(network=networks(st.text("abc", min_size=1, max_size=3)))
def test_plain_names_stay_as_they_are(write: Writer, read: Reader, network: NamedNetwork) -> None:
    assert "bncli_name" not in write(network)
    assert "bncli_states" not in write(network)


@pytest.mark.parametrize(("write", "read"), FORMATS)
@given(network=networks())
def test_a_file_that_was_rewrapped_says_the_same(write: Writer, read: Reader, network: NamedNetwork) -> None:
    """With the line ends and the byte-order mark of other systems."""
    assert_same(read(("\ufeff" + write(network).replace("\n", "\r\n")).encode(), "file"), network)


@given(networks())
def test_a_drawing_keeps_the_structure(network: NamedNetwork) -> None:
    again = read_dot(dot_text(network.dag).encode(), "file")
    assert again == network.dag


@given(networks())
def test_bif_is_ascii_and_its_names_are_identifiers_that_differ_in_more_than_case(network: NamedNetwork) -> None:
    text = bif_text(network)
    assert text.isascii()
    names = re.findall(r"^variable (\S+) \{$", text, re.MULTILINE)
    assert len(names) == len(network.nodes)
    assert all(name.isidentifier() for name in names)
    assert len({name.lower() for name in names}) == len(names)


NETWORK = NamedNetwork(
    "net",
    "Class",
    (
        Node("Class", ("yes", "no, never", "table"), (), probabilities(1, (3,))),
        Node("table1", ("(-inf, 2.5]", "(2.5, inf)"), ("Class",), probabilities(2, (3, 2))),
        Node("class", ("é", "e", "0", ""), ("table1", "Class"), probabilities(3, (2, 3, 4))),
        Node("variable", ("a;b", "a b", "A", "a", "%"), ("class", "Class", "table1"), probabilities(4, (4, 3, 2, 5))),
    ),
    "kdb",
    {"k": 2},
)


def in_file(network: NamedNetwork, write: Writer, read: Reader, row: dict[str, str]) -> dict[str, str]:
    """The row by the names that the file uses: every other program knows these alone."""
    text = write(network)
    stripped = "\n".join(line for line in text.splitlines() if "bncli_" not in line)
    plain = read(stripped.encode(), "file")
    pairs = zip(network.nodes, plain.nodes, strict=True)
    renamed = {node.name: (other.name, dict(zip(node.states, other.states, strict=True))) for node, other in pairs}
    return {renamed[name][0]: renamed[name][1][state] for name, state in row.items()}


def some_row(network: NamedNetwork, seed: int) -> dict[str, str]:
    random = np.random.default_rng(seed)
    others = [node for node in network.nodes if node.name != network.class_name]
    return {node.name: node.states[random.integers(len(node.states))] for node in others}


def written(network: NamedNetwork, write: Writer, path: Path) -> str:
    path.write_text(write(network), encoding="utf-8")
    return str(path)


def class_node(network: NamedNetwork, write: Writer, read: Reader) -> str:
    row = {network.class_name or "": network.by_name[network.class_name or ""].states[0]}
    return next(iter(in_file(network, write, read, row)))


def pgmpy_says(path: str, target: str, rows: list[dict[str, str]]) -> list[Any]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.inference import VariableElimination
        from pgmpy.readwrite import BIFReader, XMLBIFReader

        reader = BIFReader(path) if path.endswith(".bif") else XMLBIFReader(path)
        model = reader.get_model()
        assert model.check_model()
        inference = VariableElimination(model)
        return [inference.query([target], evidence=row, show_progress=False).values for row in rows]


def pyagrum_says(path: str, target: str, rows: list[dict[str, str]]) -> list[Any]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyagrum

        network = pyagrum.loadBN(path)
        found = []
        for row in rows:
            inference = pyagrum.LazyPropagation(network)
            inference.setEvidence(row)
            inference.makeInference()
            found.append(inference.posterior(target).toarray())
        return found


PEERS = [
    # The import of pgmpy alone takes seconds.
    pytest.param("pgmpy", pgmpy_says, bif_text, read_bif, "x.bif", 1e-12, id="pgmpy-bif", marks=pytest.mark.slow),
    pytest.param(
        "pgmpy", pgmpy_says, xmlbif_text, read_xmlbif, "x.xml", 1e-12, id="pgmpy-xmlbif", marks=pytest.mark.slow
    ),
    # pyAgrum keeps the numbers of BIF rows in single precision.
    pytest.param("pyagrum", pyagrum_says, bif_text, read_bif, "x.bif", 1e-6, id="pyagrum-bif"),
    pytest.param("pyagrum", pyagrum_says, xmlbif_text, read_xmlbif, "x.bifxml", 1e-12, id="pyagrum-xmlbif"),
]


@pytest.mark.parametrize(("package", "says", "write", "read", "name", "tolerance"), PEERS)
def test_other_programs_read_the_same_posteriors(
    tmp_path: Path, package: str, says: Any, write: Writer, read: Reader, name: str, tolerance: float
) -> None:
    pytest.importorskip(package)
    path, target = written(NETWORK, write, tmp_path / name), class_node(NETWORK, write, read)
    rows = [some_row(NETWORK, seed) for seed in range(4)]
    for row, found in zip(rows, says(path, target, [in_file(NETWORK, write, read, r) for r in rows]), strict=True):
        assert np.abs(found - posterior(NETWORK, row)).max() < tolerance


@pytest.mark.slow
def test_pgmpy_sees_our_properties(tmp_path: Path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    path = written(NETWORK, bif_text, tmp_path / "x.bif")
    nodes = readwrite.BIFReader(path, include_properties=True).get_model().nodes
    assert nodes["Class"] == {"bncli_role": "class", "bncli_states": "yes no%2C%20never table"}
    assert nodes["class_2"] == {"bncli_name": "class", "bncli_states": "%C3%A9 e 0 %"}


@pytest.mark.parametrize(("package", "says", "write", "read", "name", "tolerance"), PEERS)
@PEER_SETTINGS
@given(network=networks(NASTY, max_nodes=3), seed=st.integers(0, 99))
def test_other_programs_read_any_names(
    tmp_path_factory: pytest.TempPathFactory,
    package: str, says: Any, write: Writer, read: Reader, name: str, tolerance: float,
    network: NamedNetwork, seed: int,
) -> None:  # fmt: skip
    pytest.importorskip(package)
    path, target = written(network, write, tmp_path_factory.getbasetemp() / name), class_node(network, write, read)
    row = some_row(network, seed)
    (found,) = says(path, target, [in_file(network, write, read, row)])
    assert np.abs(found - posterior(network, row)).max() < tolerance
