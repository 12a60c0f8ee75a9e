"""The structure file: there and back, and what a hand may do wrong."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.networks.named_network import NamedNetwork, Node
from bncli.engine.structures.named_structure import NamedDag
from bncli.errors import BncliError
from bncli.files.artifacts.structure import read_structure, write_structure
from bncli.files.exports.bif import write_bif
from bncli.files.exports.dot import write_dot
from bncli.files.exports.structure_json import dump_structure
from bncli.files.exports.xmlbif import write_xmlbif

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = (
    st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
)


@st.composite
def named_dags(draw: st.DrawFn) -> NamedDag:
    """Parents come before their children in a hidden order; the children are listed in another."""
    order = draw(st.lists(TEXTS, unique=True, min_size=1, max_size=6))
    parents = {
        child: tuple(draw(st.lists(st.sampled_from(order[:i]), unique=True)) if i else ())
        for i, child in enumerate(order)
        if draw(st.booleans())
    }
    listed = {child: parents[child] for child in draw(st.permutations(list(parents)))}
    options = draw(st.dictionaries(TEXTS, SCALARS, max_size=3))
    return NamedDag(draw(st.sampled_from(order)), listed, draw(TEXTS), options)


@given(named_dags())
def test_there_and_back_is_the_same(tmp_path_factory: pytest.TempPathFactory, dag: NamedDag) -> None:
    path = tmp_path_factory.getbasetemp() / "structure.json"
    write_structure(str(path), dag)
    again = read_structure(str(path))
    assert again == dag
    assert list(again.parents) == list(dag.parents)
    assert dump_structure(again).encode() == path.read_bytes()


def test_the_file_is_readable() -> None:
    dag = NamedDag("sick", {"age": ("sick",), "pulse": ("sick", "age")}, "kdb", {"k": 1})
    assert dump_structure(dag) == (
        "{\n"
        '  "format": "bncli-structure",\n'
        '  "version": 1,\n'
        '  "class": "sick",\n'
        '  "method": "kdb",\n'
        '  "options": {"k": 1},\n'
        '  "parents": {\n'
        '    "age": ["sick"],\n'
        '    "pulse": ["sick", "age"]\n'
        "  }\n"
        "}\n"
    )


CHAIN = NamedDag("y", {"y": (), "a": ("y",), "b": ("y", "a")}, "kdb", {"k": 1})
BINARY = ("no", "yes")
NETWORK = NamedNetwork(
    "y",
    "y",
    (
        Node("y", BINARY, (), np.full(2, 0.5)),
        Node("a", BINARY, ("y",), np.full((2, 2), 0.5)),
        Node("b", BINARY, ("y", "a"), np.full((2, 2, 2), 0.5)),
    ),
    "kdb",
    {"k": 1},
)
TEXTS_OF_CHAIN = {
    "json": dump_structure(CHAIN),
    "bif": write_bif(NETWORK),
    "xmlbif": write_xmlbif(NETWORK),
    "dot": write_dot(CHAIN),
}


@pytest.mark.parametrize("text", TEXTS_OF_CHAIN.values(), ids=TEXTS_OF_CHAIN)
@pytest.mark.parametrize("change", [str, lambda text: "\ufeff" + text.replace("\n", "\r\n")], ids=["as-is", "windows"])
def test_the_content_tells_the_format(tmp_path: Path, text: str, change: Callable[[str], str]) -> None:
    dag = read(tmp_path, change(text).encode())
    assert dag == CHAIN
    assert dag.where == str(tmp_path / "structure.json")


@pytest.mark.parametrize("text", TEXTS_OF_CHAIN.values(), ids=TEXTS_OF_CHAIN)
def test_any_cut_or_changed_byte_is_a_graph_or_an_error(tmp_path: Path, text: str) -> None:
    random = np.random.default_rng(0)
    for cut in random.integers(0, len(text), 60):
        for damaged in (text[:cut].encode(), text[:cut].encode() + bytes([cut % 256]) + text[cut + 1 :].encode()):
            with suppress(BncliError):
                read(tmp_path, damaged)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"network n { }\nvariable \xff {", "the file is not UTF-8 text, .*json, line 2"),
        (b"digraph { \xff }", "the file is not UTF-8 text"),
        (b"digraph { a -> \0 }", "this is a binary file of an unknown kind"),
        (b"network n { } variable a { }", "the variable 'a' has no type, .*json, line 1, column 24"),
        (b"<BIF><NETWORK/></BIF>", "the network has no variables, .*json"),
        (b"<html></html>", "this is a text file"),
        (b"\xff\xfe<\0B\0", "this is a UTF-16 text, not a structure file"),
    ],
)
def test_faults_in_other_formats_name_the_file(tmp_path: Path, text: bytes, message: str) -> None:
    with pytest.raises(BncliError, match=message):
        read(tmp_path, text)


def document(**changes: Any) -> dict[str, Any]:
    return {"format": "bncli-structure", "version": 1, "class": "y", "parents": {"a": ["y"]}} | changes


def read(tmp_path: Path, content: object) -> NamedDag:
    path = tmp_path / "structure.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read_structure(str(path))


def test_a_file_by_hand_may_be_short(tmp_path: Path) -> None:
    assert read(tmp_path, document()) == NamedDag("y", {"a": ("y",)}, "file", {})


def test_the_class_may_have_parents_and_an_attribute_none(tmp_path: Path) -> None:
    parents = {"y": ["a"], "a": [], "b": ["a"]}
    assert read(tmp_path, document(parents=parents)).parents == {"y": ("a",), "a": (), "b": ("a",)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a;b\n", "this is a text file, perhaps a table, not a structure file, .*learn-structure writes one"),
        ({"format": "bncli-cuts"}, "this is a bncli cuts file, not a structure file"),
        (document(version=9), "written by a newer bncli .format version 9"),
        (document(regions=[["a"]]), "the structure has both 'parents' and 'regions', .*json; a structure is either"),
        (document(parents=[]), "expected an object, found a list, .*json, parents"),
        (document(parents={"a": "y"}), r"expected a list, found a text, .*json, parents\.a"),
        (document(parents={"a": [1]}), r"expected a text in quotes, found a number, .*json, parents\.a\[0\]"),
        (document(parents={"a": ["y", "y"]}), "'a' lists its parent 'y' twice"),
        (document(parents={"a": ["a"]}), "the structure has a cycle: a -> a"),
        (document(parents={"a": ["y"], "y": ["a"]}), "the structure has a cycle: (a -> y -> a|y -> a -> y)"),
        (document(parents={"a": ["y", "b"], "b": ["y", "c"], "c": ["a"]}), "has a cycle: a -> c -> b -> a"),
        (document(options={"k": None}), r"found null, .*json, options\.k"),
        (document(options={"k": [1]}), "found a list"),
        (document(method=1), "expected a text in quotes, found a number, .*json, method"),
        (b'{"format": "bncli-structure", "version": 1, "class": "y", "parents": {"a": ["y"], "a": []}}', "given twice"),
    ],
)
def test_faults_are_told_in_a_line_with_the_place(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(BncliError, match=message) as caught:
        read(tmp_path, content)
    assert "\n" not in str(caught.value)
    assert "structure.json" in str(caught.value)
