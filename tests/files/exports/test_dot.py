"""DOT as hands and programs write it, and what may be wrong with it."""

from __future__ import annotations

import pytest

from bncli.engine.structures.named_structure import NamedDag, NamedRegions
from bncli.errors import BncliError
from bncli.files.exports.dot import dot_text, read_dot


@pytest.mark.parametrize(
    ("text", "parents"),
    [
        ("digraph { a -> b }", {"a": (), "b": ("a",)}),
        ('strict digraph "x y" { "a b" -> c; c -> "a\\"b" [weight=2, label=<i<b>x</b>>]; lonely }',
         {"a b": (), "c": ("a b",), 'a"b': ("c",), "lonely": ()}),
        ("digraph g { a -> b -> c; a -> c; a -> c }", {"a": (), "b": ("a",), "c": ("b", "a")}),
        ("digraph { y -> {a b; c} {a, b} -> c }", {"y": (), "a": ("y",), "b": ("y",), "c": ("y", "a", "b")}),
        ("digraph { subgraph s { a; b } -> subgraph { c } }", {"a": (), "b": (), "c": ("a", "b")}),
        ("digraph { subgraph cluster_0 { label=x; color=blue; a -> b } b -> c }", {"a": (), "b": ("a",), "c": ("b",)}),
        ("// x\n# 1 file\ndigraph { /* a -> */\n# b\nb:n -> a:p:sw // c\n}", {"b": (), "a": ("b",)}),
        ("digraph { graph [rankdir=LR]; node [shape=box][color=red] edge []; rankdir=TB; a -> -1.5; é_1 }",
         {"a": (), "-1.5": ("a",), "é_1": ()}),
        ('digraph { "a" + "b" -> "c\\\nd" }', {"ab": (), "cd": ("ab",)}),
        ('digraph { "digraph" -> "{" [style="a]"] }', {"digraph": (), "{": ("digraph",)}),
        ("digraph {}", {}),
        ("\ufeffdigraph\r\n{\r\na\r\n->\r\nb\r\n}\r\n", {"a": (), "b": ("a",)}),
    ],
)  # fmt: skip
def test_what_is_read(text: str, parents: dict[str, tuple[str, ...]]) -> None:
    assert read_dot(text.encode(), "f") == NamedDag(None, parents)


def test_the_written_file() -> None:
    dag = NamedDag("sick", {"age": ("sick",), 'the "pulse"': ("sick", "age")}, "kdb", {"k": 1})
    assert dot_text(dag) == (
        "digraph structure {\n"
        '  bncli_method="kdb";\n'
        '  bncli_options="%7B%22k%22%3A1%7D";\n'
        '  "sick" [shape=doublecircle, bncli_role="class"];\n'
        '  "age";\n'
        '  "the _pulse_" [bncli_name="the%20%22pulse%22"];\n'
        '  "sick" -> "age";\n'
        '  "sick" -> "the _pulse_";\n'
        '  "age" -> "the _pulse_";\n'
        "}\n"
    )


def test_the_marks_of_a_subgraph_are_not_those_of_the_graph() -> None:
    text = 'digraph { subgraph { bncli_method="tan"; graph [bncli_method="tan"]; a } }'
    assert read_dot(text.encode(), "f").method == "file"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph { a -- b }", "the graph is not directed, f.gv, line 1, column 1"),
        ("digraph { a -- b }", "'--' has no direction, f.gv, line 1, column 13"),
        ("digraph { a -> }", "expected a name, found '}', f.gv, line 1, column 16"),
        ("digraph { a ->", "expected a name, found the end of the file"),
        ("digraph { a\n-> b", "expected a name, found the end of the file, f.gv, line 2, column 5"),
        (
            "digraph { a } digraph { b }",
            ("expected the end of the file after the graph, found 'digraph', f.gv, line 1, column 15"),
        ),
        ("digraph { a -> b -> a }", "the structure has a cycle: .*, f.gv"),
        ("digraph { a -> a }", "the structure has a cycle: a -> a, f.gv"),
        ('digraph { "a', "unexpected character: '\"', f.gv, line 1, column 11"),
        ("digraph { a [label=<b }", "the HTML text is not closed"),
        ("digraph { a [b=] }", "expected a name, found ']'"),
        ('digraph { "a" + b }', "expected a string in quotes, found 'b'"),
        ("digraph { a [bncli_name=x]; b [bncli_name=x] }", "two nodes have the same bncli_name, f.gv"),
        ("digraph { a [bncli_role=class]; b [bncli_role=class] }", "both 'a' and 'b' are marked as the class, f.gv"),
        ("digraph { bncli_options=3 }", "expected an object, found a number, .*bncli_options"),
        ("digraph " + "{" * 100_000, "subgraphs are nested more than 64 deep"),
        (
            "digraph {{ {{{}}} -> {{{}}} }}".format(*(" ".join(f"{x}{i}" for i in range(1500)) for x in "ab")),
            "the graph has more than 2,000,000 arcs, f.gv, line 1",
        ),
        ("digraph { a [x=" + "<a" * 50_000, "the HTML text is not closed"),
        ("digraph { " + "a -> " * 10_000, "expected a name, found the end"),
        ("", "expected 'digraph', found the end of the file"),
    ],
)
def test_faults_are_told_in_a_line_with_the_place(text: str, message: str) -> None:
    with pytest.raises(BncliError, match=message) as caught:
        read_dot(text.encode(), "f.gv")
    assert "\n" not in str(caught.value)


def test_regions_are_drawn_as_boxes() -> None:
    regions = NamedRegions("y", (("a",), ("a", 'q"'), ("region 1",)))
    assert dot_text(regions).splitlines() == [
        "graph structure {",
        '  "y" [shape=doublecircle, bncli_role="class"];',
        '  "a";',
        '  "q_" [bncli_name="q%22"];',
        '  "region 1";',
        '  "region_ 1" [shape=box, label="", width=0.15, height=0.15];',
        '  "region_ 1" -- "y";',
        '  "region_ 1" -- "a";',
        '  "region_ 1" -- "q_";',
        '  "region_ 2" [shape=box, label="", width=0.15, height=0.15];',
        '  "region_ 2" -- "y";',
        '  "region_ 2" -- "region 1";',
        "}",
    ]
