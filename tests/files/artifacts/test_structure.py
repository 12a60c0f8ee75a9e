"""The structure file: graphs and regions, round trips, other formats, and mistakes made by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.networks.network import NamedNetwork, Node
from bncli.engine.structures.named_structure import NamedDag, NamedRegions, NamedStructure
from bncli.engine.structures.structure import SearchTrace
from bncli.errors import BncliError
from bncli.files.artifacts.structure import read_structure, write_structure
from bncli.files.exports.bif import bif_text
from bncli.files.exports.dot import dot_text
from bncli.files.exports.structure_json import dump_structure
from bncli.files.exports.xmlbif import xmlbif_text

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
    "bif": bif_text(NETWORK),
    "xmlbif": xmlbif_text(NETWORK),
    "dot": dot_text(CHAIN),
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


def read(tmp_path: Path, content: object) -> NamedStructure:
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
        (document(parents={"a": "y"}), r"expected a list, found a string, .*json, parents\.a"),
        (document(parents={"a": [1]}), r"expected a string in quotes, found a number, .*json, parents\.a\[0\]"),
        (document(parents={"a": ["y", "y"]}), "'a' lists its parent 'y' twice"),
        (document(parents={"a": ["a"]}), "the structure has a cycle: a -> a"),
        (document(parents={"a": ["y"], "y": ["a"]}), "the structure has a cycle: (a -> y -> a|y -> a -> y)"),
        (document(parents={"a": ["y", "b"], "b": ["y", "c"], "c": ["a"]}), "has a cycle: a -> c -> b -> a"),
        (document(options={"k": None}), r"found null, .*json, options\.k"),
        (document(options={"k": [1]}), "found a list"),
        (document(method=1), "expected a string in quotes, found a number, .*json, method"),
        (b'{"format": "bncli-structure", "version": 1, "class": "y", "parents": {"a": ["y"], "a": []}}', "given twice"),
    ],
)
def test_faults_are_told_in_a_line_with_the_place(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(BncliError, match=message) as caught:
        read(tmp_path, content)
    assert "\n" not in str(caught.value)
    assert "structure.json" in str(caught.value)


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def named_regions(draw: st.DrawFn) -> NamedRegions:
    """Names of any kind; with statistics only where no region is inside an earlier one."""
    class_name, *names = draw(st.lists(TEXTS, unique=True, min_size=2, max_size=6))
    listed = draw(st.lists(st.lists(st.sampled_from(names), unique=True, min_size=1).map(tuple), max_size=6))
    grown = [r for i, r in enumerate(listed) if not any(set(r) <= set(earlier) for earlier in listed[:i])]
    found = draw(st.booleans())
    n = len(grown) + 1
    trace = SearchTrace(
        tuple(draw(st.lists(st.integers(0, 2**40), min_size=n, max_size=n))),
        tuple(draw(st.lists(FINITE, min_size=n, max_size=n))),
        tuple(draw(st.lists(FINITE | st.just(-math.inf), min_size=n, max_size=n))),
        draw(st.integers(0, n - 1)),
    )
    options = draw(st.dictionaries(TEXTS, SCALARS, max_size=3))
    regions = tuple(grown if found else listed)
    bins = draw(st.lists(st.none() | st.integers(2, 40), max_size=3).map(tuple))
    gains = tuple(draw(st.lists(FINITE, min_size=len(regions), max_size=len(regions)))) if draw(st.booleans()) else ()
    trace_or_not = trace if found else None
    some = st.none() | st.lists(FINITE, max_size=3, unique=True).map(lambda cuts: tuple(sorted(cuts)))
    cuts = tuple(tuple(draw(some) for _ in region) for region in regions) if draw(st.booleans()) else ()
    return NamedRegions(class_name, regions, trace_or_not, draw(TEXTS), options, bins=bins, gains=gains, cuts=cuts)


@given(named_regions())
def test_regions_come_back(tmp_path_factory: pytest.TempPathFactory, regions: NamedRegions) -> None:
    path = tmp_path_factory.getbasetemp() / "regions.json"
    write_structure(str(path), regions)
    again = read_structure(str(path))
    assert again == regions
    assert again.where == str(path)
    assert dump_structure(again).encode() == path.read_bytes()


REGIONS = NamedRegions(
    "sick",
    (("age",), ("pulse",), ("age", "pulse")),
    SearchTrace((1, 2, 3, 4), (-9.0, -8.0, -7.5, -7.0), (-9.5, -9.0, -8.75, -math.inf), 2),
    "kikuchi",
    {"max_order": 4, "theta": 1.0},
)


def test_the_file_of_regions_is_readable() -> None:
    assert dump_structure(REGIONS) == (
        "{\n"
        '  "format": "bncli-structure",\n'
        '  "version": 1,\n'
        '  "class": "sick",\n'
        '  "method": "kikuchi",\n'
        '  "options": {"max_order": 4, "theta": 1.0},\n'
        '  "regions": [\n'
        '    ["age"],\n'
        '    ["pulse"],\n'
        '    ["age", "pulse"]\n'
        "  ],\n"
        '  "df": [1, 2, 3, 4],\n'
        '  "log_likelihood": [-9.0, -8.0, -7.5, -7.0],\n'
        '  "log_posterior": [-9.5, -9.0, -8.75, null],\n'
        '  "map_step": 2\n'
        "}\n"
    )


STATISTICS: dict[str, Any] = {
    "df": [1, 2, 3],
    "log_likelihood": [-3, -2.0, -1.0],
    "log_posterior": [-4.0, -3.0, -3.5],
    "map_step": 1,
}


def regions_document(**changes: Any) -> dict[str, Any]:
    content = {"format": "bncli-structure", "version": 1, "class": "y", "regions": [["a"], ["b", "a"]]} | changes
    return {key: value for key, value in content.items() if value is not ...}


def test_a_file_of_regions_by_hand_may_be_short(tmp_path: Path) -> None:
    assert read(tmp_path, regions_document()) == NamedRegions("y", (("a",), ("b", "a")))
    assert read(tmp_path, regions_document(regions=[])) == NamedRegions("y", ())
    inside = regions_document(regions=[["b", "a"], ["a"], ["a"]])
    assert read(tmp_path, inside) == NamedRegions("y", (("b", "a"), ("a",), ("a",)))


def test_statistics_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, regions_document(**STATISTICS, method="kikuchi"))
    trace = SearchTrace((1, 2, 3), (-3.0, -2.0, -1.0), (-4.0, -3.0, -3.5), 1)
    assert found == NamedRegions("y", (("a",), ("b", "a")), trace, "kikuchi")


def test_what_the_bootstrap_says_is_kept_where_it_was_asked(tmp_path: Path) -> None:
    found = read(tmp_path, regions_document(**STATISTICS, bootstrap_log_loss=[3.5, 2.5, 2]))
    assert isinstance(found, NamedRegions)
    assert found.trace is not None
    assert found.trace.bootstrap_log_loss == (3.5, 2.5, 2.0)
    assert json.loads(dump_structure(found))["bootstrap_log_loss"] == [3.5, 2.5, 2.0]
    assert read(tmp_path, dump_structure(found).encode()) == found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parents": {"a": ["y"]}}, "the structure has both 'parents' and 'regions'"),
        ({"regions": ...}, "the key 'parents' is missing"),
        ({"class": ...}, "the key 'class' is missing"),
        ({"arcs": 1}, "unknown key 'arcs'"),
        ({"regions": {}}, "expected a list, found an object, .*json, regions"),
        ({"regions": ["a"]}, r"expected a list, found a string, .*json, regions\[0\]"),
        ({"regions": [["a"], ["b", 1]]}, r"expected a string in quotes, found a number, .*json, regions\[1\]\[1\]"),
        ({"regions": [["a"], []]}, r"regions\[1\] is empty"),
        ({"regions": [["a"], ["b", "b"]]}, r"regions\[1\] names 'b' twice"),
        ({"regions": [["a", "y"]]}, r"regions\[0\] names the class 'y'"),
        ({"regions": [[f"x{i}" for i in range(17)]]}, r"regions\[0\] has 17 attributes"),
        (
            {"df": [1, 2, 3]},
            "the key 'log_likelihood' is missing, .*json; give all of df, log_likelihood, log_posterior, map_",
        ),
        (STATISTICS | {"map_step": ...}, "the key 'map_step' is missing"),
        (STATISTICS | {"regions": [["a", "b"], ["b"]]}, r"regions\[1\] is inside an earlier region"),
        (STATISTICS | {"regions": [["a"], ["a"]]}, r"regions\[1\] is inside an earlier region"),
        ({"bootstrap_log_loss": [1.0, 2.0, 3.0]}, "the key 'df' is missing"),
        (STATISTICS | {"bootstrap_log_loss": [1.0]}, "bootstrap_log_loss has 1 values for 2 regions"),
        (STATISTICS | {"bootstrap_log_loss": [1.0, 2.0, None]}, r"found null, .*json, bootstrap_log_loss\[2\]"),
        (STATISTICS | {"df": [1, 2]}, "df has 2 values for 2 regions"),
        (
            STATISTICS | {"df": [1, 2, 3.5]},
            r"without a decimal point or exponent, found 3.5, .*json, df\[2\]",
        ),
        (STATISTICS | {"df": [1, 2, -3]}, r"out of range, .*json, df\[2\]"),
        (STATISTICS | {"log_likelihood": [0.0, 0.0, None]}, r"expected a number, found null, .*log_likelihood\[2\]"),
        (STATISTICS | {"log_likelihood": [0.0, 0.0, 10**400]}, r"too large, .*json, log_likelihood\[2\]"),
        (STATISTICS | {"log_posterior": 1}, "expected a list, found a number, .*json, log_posterior"),
        (STATISTICS | {"log_posterior": [0.0, 0.0, math.nan]}, "NaN is not a JSON number"),
        (STATISTICS | {"log_posterior": [0.0, 0.0, -math.inf]}, "-Infinity is not a JSON number"),
        (
            STATISTICS | {"map_step": 3},
            "map_step is 3, .*json; it must be the number of regions in the best model, from 0 to 2",
        ),
        (STATISTICS | {"map_step": -1}, "map_step is -1"),
        (
            STATISTICS | {"map_step": 1.0},
            "without a decimal point or exponent, found 1.0, .*json, map_step",
        ),
    ],
)
def test_faults_of_regions_name_the_place(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BncliError, match=message) as caught:
        read(tmp_path, regions_document(**changes))
    assert "\n" not in str(caught.value)
    assert "structure.json" in str(caught.value)


def test_statistics_belong_to_regions(tmp_path: Path) -> None:
    graph = {"format": "bncli-structure", "version": 1, "class": "y", "parents": {"a": ["y"]}, "df": [1]}
    with pytest.raises(BncliError, match="unknown key 'df'"):
        read(tmp_path, graph)


def test_any_cut_or_changed_byte_is_a_structure_or_an_error(tmp_path: Path) -> None:
    text = dump_structure(REGIONS).encode()
    for cut in np.random.default_rng(0).integers(0, len(text), 150):
        for damaged in (text[:cut], text[:cut] + bytes([cut % 256]) + text[cut + 1 :]):
            with suppress(BncliError):
                read(tmp_path, damaged)


def test_bins_stand_beside_the_regions(tmp_path: Path) -> None:
    binned = NamedRegions("y", (("a",), ("a", "b")), bins=(None, 8))
    assert '  "bins": [null, 8]\n' in dump_structure(binned)
    assert "bins" not in dump_structure(replace(binned, bins=()))
    assert read(tmp_path, regions_document(bins=[None, 8])).bins == (None, 8)


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        (8, "expected a list, found a number, .*bins"),
        ([2.5], r"expected a whole number.*bins\[0\]"),
        ([True], r"expected a whole number.*bins\[0\]"),
        ([4, 1], r"bins\[1\] is 1, .*at least 2 intervals"),
        ([4] * 17, "bins has 17 entries"),
    ],
)
def test_bins_that_are_none(tmp_path: Path, bins: Any, message: str) -> None:
    with pytest.raises(BncliError, match=message):
        read(tmp_path, regions_document(bins=bins))


def test_gains_stand_beside_the_regions(tmp_path: Path) -> None:
    ranked = NamedRegions("y", (("a",), ("a", "b")), gains=(2.5, -1.0))
    assert '  "gains": [2.5, -1.0]\n' in dump_structure(ranked)
    assert "gains" not in dump_structure(replace(ranked, gains=()))
    n = len(read(tmp_path, regions_document()).regions)  # type: ignore[union-attr]
    assert read(tmp_path, regions_document(gains=[1] * n)).gains == (1.0,) * n  # type: ignore[union-attr]
    for gains, message in (([1.0] * (n + 1), "gains has"), (["much"] * n, "expected a number"), (3, "expected a list")):
        with pytest.raises(BncliError, match=message):
            read(tmp_path, regions_document(gains=gains))


def test_cuts_stand_beside_the_regions(tmp_path: Path) -> None:
    cut = NamedRegions("y", (("a",), ("a", "b")), cuts=((None,), ((1.5, 2.0), ())))
    assert '  "cuts": [\n    {},\n    {"a": [1.5, 2.0], "b": []}\n  ]\n' in dump_structure(cut)
    assert "cuts" not in dump_structure(replace(cut, cuts=()))
    assert read(tmp_path, regions_document(regions=[["a"], ["a", "b"]], cuts=[{}, {"a": [1.5, 2], "b": []}])) == cut


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        ({}, "expected a list, found an object, .*cuts"),
        ([{}], "expected 2 entries, found 1, .*give an object for each region"),
        ([{}, []], r"expected an object, found a list, .*cuts\[1\]"),
        ([{"b": [1]}, {}], r"unknown key 'b', .*cuts\[0\]"),
        ([{"a": 1}, {}], r"expected a list, found a number, .*cuts\[0\]\.a"),
        ([{"a": ["1"]}, {}], r"expected a number, found a string"),
        ([{"a": [2, 1]}, {}], r"cuts\[0\] of 'a' are not increasing"),
        ([{"a": [1, 1]}, {}], r"cuts\[0\] of 'a' are not increasing"),
        ([{"a": [10**400]}, {}], "number"),
    ],
)
def test_cuts_that_are_none(tmp_path: Path, cuts: Any, message: str) -> None:
    with pytest.raises(BncliError, match=message):
        read(tmp_path, regions_document(regions=[["a"], ["a", "b"]], cuts=cuts))


def test_a_graph_has_no_bins(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(
        '{"format": "bncli-structure", "version": 1, "class": "y", "parents": {}, "bins": [2]}'
    )
    with pytest.raises(BncliError, match="unknown key 'bins'"):
        read_structure(str(tmp_path / "g.json"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"structure_score": "foo"},
            "'structure_score' is 'foo', .*options.structure_score; .*unknown --structure-score 'foo'",
        ),
        ({"structure_score": "bdeu:x"}, "needs a number above 0, not 'x'"),
        ({"loss": "none"}, "it should be one of rmse, error, log-loss"),
        ({"forest": "maybe"}, "it should be true or false"),
    ],
)
def test_an_option_with_a_value_of_no_choice(tmp_path: Path, options: Any, message: str) -> None:
    document = {"format": "bncli-structure", "version": 1, "class": "y", "method": "tan", "options": options}
    with pytest.raises(BncliError, match=message):
        read(tmp_path, document | {"parents": {"a": ["y"]}})
    read(tmp_path, document | {"options": {"colour": "red", "structure_score": "bdeu:2"}, "parents": {"a": ["y"]}})
