"""Structures drawn as trees: every node once, below the right one, within so many lines."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bncli.cli.terminal_tables import structure_trees

Parents = Mapping[str, tuple[str, ...]]


def drawn(class_name: str | None, parents: Parents, encoding: str = "utf-8") -> list[str]:
    """The lines as they are printed, without the legend."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    out = Console(file=file, width=160, markup=False, highlight=False)
    with out.capture() as capture:
        for part in structure_trees(class_name, parents)[1:]:
            out.print(part)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_tree() -> None:
    parents = {"a": ("y", "c"), "b": ("y", "c"), "c": ("y",), "d": ("y", "a")}
    assert drawn("y", parents) == ["y", "└── c", "    ├── a", "    │   └── d", "    └── b"]


def test_further_parents_stand_in_brackets() -> None:
    parents = {"a": ("y",), "b": ("y", "a"), "c": ("y", "b", "a"), "d": ("y", "a", "b", "c")}
    assert drawn("y", parents) == ["y", "└── a", "    ├── b", "    │   └── c (and on a)", "    └── d (and on b, c)"]


def test_the_parents_of_the_class_and_nodes_without_it() -> None:
    parents = {"y": ("a", "b"), "b": ("a",), "c": ("a",), "d": ("y", "a"), "e": ("b", "c"), "f": ()}
    assert drawn("y", parents) == [
        "y (depends on a, b)",
        "f",
        "a",
        "├── b (not on the class)",
        "│   └── e (and on c; not on the class)",
        "├── c (not on the class)",
        "└── d",
    ]


def test_a_graph_without_a_class() -> None:
    legend, *trees = structure_trees(None, {"b": ("a",), "c": ("b", "a")})
    assert legend == "Structure: each attribute depends on the one above it"
    assert len(trees) == 1
    assert drawn(None, {"b": ("a",), "c": ("b", "a")}) == ["a", "└── b", "    └── c (and on a)"]


def test_a_class_alone() -> None:
    assert drawn("y", {}) == ["y"]


def test_wide_data_are_cut_short() -> None:
    lines = drawn("y", {f"a{i}": ("y",) for i in range(5000)})
    assert len(lines) == 201
    assert lines[-1] == "... and 4,801 more"


def test_a_long_chain_goes_on_below() -> None:
    chain: Parents = {"a0": ("y",)} | {f"a{i}": ("y", f"a{i - 1}") for i in range(1, 40)}
    lines = drawn("y", chain)
    assert lines[16] == f"{' ' * 60}└── a15 ..."
    assert lines[17:19] == ["... a15", "└── a16"]
    assert lines[-1].endswith("└── a39")
    assert len(lines) == 1 + 40 + 2
    assert (
        drawn("y", {"a0": ("y",)} | {f"a{i}": ("y", f"a{i - 1}") for i in range(1, 9999)})[-1] == "... and 9,800 more"
    )


def test_names_cannot_steer_the_terminal() -> None:
    assert drawn("y", {"[red]a\x1b[31m\n": ("y",)}) == ["y", "└── [red]a?[31m?"]


def test_a_terminal_that_has_no_box_characters() -> None:
    assert drawn("y", {"a": ("y",), "b": ("y",)}, "ascii") == ["y", "+-- a", "`-- b"]


@st.composite
def graphs(draw: st.DrawFn) -> Parents:
    names = draw(st.permutations(["y", *(f"a{i}" for i in range(draw(st.integers(0, 12))))]))
    return {
        name: tuple(draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=4))) if place else ()
        for place, name in enumerate(names)
    }


@given(graphs())
def test_every_node_once_and_every_arc_told(parents: Parents) -> None:
    lines = drawn("y", parents)
    path: list[str] = []
    told: dict[str, set[str]] = {}
    for line in lines:
        guides, name, remarks = re.fullmatch(r"([│├└─ ]*)(\w+)(?: \((.*)\))?", line).groups()  # type: ignore[union-attr]
        del path[len(guides) // 4 :]
        known = {path[-1]} if path else set()
        remarks = remarks or ""
        for part in remarks.split("; "):
            if part.startswith(("and on ", "depends on ")):
                known |= set(part.split(" on ")[1].split(", "))
        if path and "not on the class" not in remarks:
            known.add("y")
        assert name not in told
        told[name] = known
        path.append(name)
    assert told == {name: set(listed) for name, listed in parents.items()}
