"""BIF as others write it, and what may be wrong with it."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.networks.network import NamedNetwork, Node
from bncli.errors import BncliError
from bncli.files.exports.bif import bif_text, read_bif


def read(text: str, where: str) -> NamedNetwork:
    return read_bif(text.encode(), where)


ASIA = """\
// From the repository of bnlearn
network "Chest Clinic" {
  property version 1.0 ;
  property "author = Lauritzen; Spiegelhalter" ;
}
variable smoke { type discrete [ 2 ] { yes, no }; property position = (73, 165) ; }
variable lung  { type discrete[2] { "yes" "no" }; }
variable "x ray" { type discrete [ 3 ] { <5, 5-10/yr, >=10 }; } /* not a
comment } */
probability ( smoke ) { table 0.5, 0.5; }
probability ( lung | smoke ) {
  (no) 0.01 .99;
  (yes) 1e-1, 9.0E-1;
}
"""
XRAY = 'probability ( "x ray" | lung, smoke ) { default 0.2, 0.3, 0.5; (no, yes) 1, 0, 0; }\n'


def test_a_network_of_another_program() -> None:
    network = read(ASIA + XRAY, "asia.bif")
    assert (network.name, network.class_name, network.method) == ("Chest Clinic", None, "file")
    assert network.dag.parents == {"smoke": (), "lung": ("smoke",), "x ray": ("lung", "smoke")}
    assert network.by_name["lung"].probabilities.tolist() == [[0.1, 0.9], [0.01, 0.99]]
    xray = network.by_name["x ray"]
    assert xray.states == ("<5", "5-10/yr", ">=10")
    assert xray.probabilities[1, 0].tolist() == [1, 0, 0]
    assert xray.probabilities[0].tolist() == [[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]]


def test_in_a_table_the_child_changes_slowest_and_the_last_parent_fastest() -> None:
    table = 'probability ( "x ray" | lung, smoke ) { table .1 .2 .3 .4  .2 .3 .4 .5  .7 .5 .3 .1; }'
    found = read(ASIA + table, "asia.bif").by_name["x ray"].probabilities
    assert found.shape == (2, 2, 3)
    assert found[0, 1].tolist() == [0.2, 0.3, 0.5]
    assert found[1, 0].tolist() == [0.3, 0.4, 0.3]


def test_headings_of_the_first_version_have_no_bar() -> None:
    assert read(ASIA + XRAY.replace("|", ""), "x").dag.parents["x ray"] == ("lung", "smoke")


def test_blocks_may_come_in_any_order() -> None:
    blocks = (ASIA + XRAY).split("probability")
    swapped = blocks[0] + "probability" + "probability".join(reversed(blocks[1:]))
    assert read(swapped, "x").dag == read(ASIA + XRAY, "x").dag


def test_the_written_file() -> None:
    nodes = (Node("y", ("no", "yes"), (), np.array([0.25, 0.75])), Node("a", ("0", "1"), ("y",), np.full((2, 2), 0.5)))
    assert bif_text(NamedNetwork("net", "y", nodes, "nb")) == (
        "network net {\n"
        "  property bncli_method = nb ;\n"
        "}\n"
        "variable y {\n"
        "  type discrete [ 2 ] { no, yes };\n"
        "  property bncli_role = class ;\n"
        "}\n"
        "variable a {\n"
        "  type discrete [ 2 ] { 0, 1 };\n"
        "}\n"
        "probability ( y ) {\n"
        "  table 0.25, 0.75;\n"
        "}\n"
        "probability ( a | y ) {\n"
        "  (no) 0.5, 0.5;\n"
        "  (yes) 0.5, 0.5;\n"
        "}\n"
    )


GOOD = """\
network n { }
variable a { type discrete [ 2 ] { u, v }; }
variable b { type discrete [ 2 ] { u, v }; }
probability ( a ) { table 0.5, 0.5; }
probability ( b | a ) { (u) 0.5, 0.5; (v) 0.5, 0.5; }
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "(v) 0.5, 0.5; }\n",
            "",
            r"expected '\(' or 'table' or .* found the end of the file, f\.bif, line 5, column 39",
        ),
        ("variable a", "variable b", r"the variable 'b' is declared twice, f\.bif, line 3, column 10"),
        ("variable b", "variable b b", r"expected '\{', found 'b', f\.bif, line 3, column 12"),
        ("[ 2 ]", "[ 3 ]", "the variable 'a' should have 3 states, but 2 are listed"),
        ("discrete", "continuous", "the variable 'a' is not discrete"),
        ("{ u, v }", "{ }", "should have 2 states, but 0 are listed"),
        ("{ u, v }", "{ u, u }", "'a' has the state 'u' twice, f.bif, line 2"),
        ("type discrete [ 2 ] { u, v };", "", "the variable 'a' has no type"),
        ("v }; }", "v }; type discrete [ 2 ] { u, v }; }", "the variable 'a' has two types"),
        ("( b | a )", "( b | c )", "the parent 'c' of 'b' is not a variable, f.bif, line 5"),
        ("( b | a )", "( c | a )", "'c' is not a variable, f.bif, line 5"),
        ("( b | a )", "( a | b )", "'a' has two probability blocks"),
        ("( a )", "( a | b )", "the table of 'a' has 2 numbers, not 4"),
        ("( a ) { table 0.5, 0.5;", "( a | b ) { table .5 .5 .5 .5;", "has a cycle: (a -> b -> a|b -> a -> b), f.bif"),
        ("( b | a ) { (u)", "( b | b ) { (u)", "has a cycle: b -> b, f.bif"),
        ("( b | a ) { (u) 0.5, 0.5; (v)", "( b | a, a ) { default .5 .5; (v, v)", "lists its parent 'a' twice, f.bif"),
        ("(v)", "(u)", r"the row \(u\) of 'b' is given twice, f\.bif, line 5"),
        ("(v)", "(w)", "'w' is not a state of 'a', f.bif, line 5"),
        ("(v)", "(v, v)", "the row lists 2 states for 1 parents"),
        ("(v) 0.5, 0.5;", "(v) 0.5;", "expected 2 numbers, one per state of 'b', found 1"),
        ("(v) 0.5, 0.5;", "", "'b' has only 1 of 2 rows"),
        ("(v) 0.5, 0.5;", "default 1;", "the default row of 'b' has the wrong length"),
        ("(v) 0.5, 0.5;", "default .5 .5; default .5 .5;", "there are two entries 'default'"),
        ("(v) 0.5, 0.5;", "table .5 .5 .5 .5;", "'b' has both a table and rows"),
        ("(v) 0.5, 0.5;", "(v) 0.5, 0.6;", "a row of the table of 'b' sums to 1.1, f.bif"),
        ("(v) 0.5, 0.5;", "(v) 1.5, -0.5;", "the table of 'b' contains 1.5, f.bif"),
        ("(v) 0.5, 0.5;", "(v) nan, 0.5;", "expected a number, found 'nan'"),
        ("(v) 0.5, 0.5;", "(v) 1_0, 0.5;", "expected a number, found '1_0'"),
        ("(v) 0.5, 0.5;", "(v) 0.5.5;", "expected a number, found '0.5.5'"),
        ("(v) 0.5, 0.5;", "(v) 0.5,, 0.5;", "expected a number or ';', found ','"),
        ("(v) 0.5, 0.5;", "(v) /* x */ 0.5 // y\n, 0.5 ;", None),
        ("(v) 0.5, 0.5;", "(v) 1e999, 0.5;", "the table of 'b' contains inf"),
        ("probability ( a ) { table 0.5, 0.5; }", "", "the variable 'a' has no probability block"),
        ("network n { }", "network n { property x }", "the property does not end with ';', f.bif, line 1, column 22"),
        ("network n { }", "network n { /* }", r"unexpected character: '/', f\.bif, line 1, column 13"),
        ("network n { }", "network n { } }", "expected 'variable' or 'probability', found '}'"),
        ("network n { }", 'network "n { }', "unexpected character: '\"', f.bif, line 1, column 9"),
        ("v }; }", "v }; property bncli_states = u ; }", "has 2 states, but its property bncli_states lists 1"),
        ("v }; }", "v }; property bncli_name = %ff ; }", "is not percent-encoded text, f.bif"),
        ("v }; }", "v }; property bncli_name = b ; }", "the node 'b' occurs twice, f.bif"),
        (
            "network n { }",
            "network n { property bncli_options = %5B ; }",
            "not valid JSON.*, f.bif, property bncli_opt",
        ),
        ("network n { }", "network n { property bncli_options = 3 ; }", "expected an object, found a number"),
        ("v }; }", "v }; property bncli_role = class ; }", None),
        ("b { type discrete [ 2 ] { u, v };", "b { type discrete [ 2 ] { u, v }; property bncli_role = class ;", None),
    ],
)
def test_faults_are_told_in_a_line_with_the_place(old: str, new: str, message: str | None) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if message is None:
        assert read(text, "f.bif").dag.parents == {"a": (), "b": ("a",)}
        return
    with pytest.raises(BncliError, match=message) as caught:
        read(text, "f.bif")
    assert "\n" not in str(caught.value)


def test_two_classes_are_one_too_many() -> None:
    with pytest.raises(BncliError, match="both 'a' and 'b' are marked as the class, f"):
        read(GOOD.replace("v }; }", "v }; property bncli_role = class ; }"), "f")


def test_every_truncation_is_a_short_error() -> None:
    """Cut after the last block, the network is whole or lacks a table; nowhere is there a crash."""
    for end in range(len(GOOD) - 2):
        with pytest.raises(BncliError):
            read(GOOD[:end], "f")


def test_a_default_row_cannot_ask_for_more_than_the_memory_holds() -> None:
    parents = [f"p{i}" for i in range(40)]
    text = "".join(f"variable {p} {{ type discrete [ 2 ] {{ u, v }}; }}\n" for p in ["c", *parents])
    text += "".join(f"probability ( {p} ) {{ table 0.5, 0.5; }}\n" for p in parents)
    with pytest.raises(BncliError, match="stands for more than 16,777,216 numbers"):
        read(text + f"probability ( c | {', '.join(parents)} ) {{ default 0.5, 0.5; }}", "f")
    with pytest.raises(BncliError, match="has only 0 of 1099511627776 rows"):
        read(text + f"probability ( c | {', '.join(parents)} ) {{ }}", "f")


def test_long_texts_take_no_more_than_their_length() -> None:
    """Neither recursion nor a search that starts again at every character."""
    with pytest.raises(BncliError):
        read("network n { " + "{" * 100_000, "f")
    with pytest.raises(BncliError, match="the property does not end"):
        read('network n { property "' + '" "' * 100_000, "f")
    with pytest.raises(BncliError, match="unexpected character"):
        read("/* " * 100_000, "f")


def test_rows_may_be_rounded_by_hand() -> None:
    text = "network n {} variable a { type discrete [ 3 ] { x, y, z }; } probability ( a ) { table 0.33, 0.33, 0.33; }"
    assert read(text, "f.bif").by_name["a"].probabilities.tolist() == [0.33, 0.33, 0.33]
    with pytest.raises(BncliError, match=r"sums to 0\.98"):
        read(text.replace("0.33, 0.33;", "0.33, 0.32;"), "f.bif")
