"""Every structure learner obeys what somebody knows, or refuses it in one line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bncli.catalogue import STRUCTURES
from bncli.catalogue.option_kinds import Knowledge
from bncli.engine.counting.counts import Counts
from bncli.engine.learn import learn_structure
from bncli.engine.structures.structure import Dag, Structure
from bncli.errors import BncliError, UsageError
from bncli.recipe import Recipe
from tests.datasets import random_dataset
from tests.sweeps import examples

DATA = random_dataset(150, (2, 3, 2, 3, 2), 2, seed=4)
NAMES = [attribute.name for attribute in DATA.schema.attributes]
LEARNERS = [m.word for m in STRUCTURES.methods if STRUCTURES.module_of(m.word) and m.word not in ("nb", "card")]
PAIRS = st.lists(st.sampled_from([*itertools.permutations(NAMES, 2)]), max_size=3)


@st.composite
def consistent(draw: st.DrawFn) -> dict[str, Any]:
    """Knowledge that does not contradict itself."""
    content: dict[str, Any] = {"forbid": draw(PAIRS), "no_interaction": draw(PAIRS), "require": draw(PAIRS)}
    if draw(st.booleans()):
        content["root"] = draw(st.sampled_from(NAMES))
    if draw(st.booleans()):
        content["max_parents"] = draw(st.integers(0, 2))
    if draw(st.booleans()):
        tier = draw(st.sets(st.sampled_from(NAMES), min_size=1, max_size=3))
        content["before"] = [sorted(tier), sorted({*NAMES[:3]} - tier)]
    try:
        Knowledge.parse(content)
    except ValueError:
        assume(False)
    return content


def violations(structure: Structure, content: dict[str, Any]) -> Iterator[str]:
    """What a structure does against the knowledge, by its names, as the manual says it."""
    tiers = {name: number for number, tier in enumerate(content.get("before", [])) for name in tier}
    if not isinstance(structure, Dag):
        for region in structure.regions:
            for a, b in itertools.permutations([NAMES[i] for i in region], 2):
                if (a, b) in content["forbid"] or (a, b) in content["no_interaction"]:
                    yield f"{a} and {b} in one region"
            if len(region) > content.get("max_parents", 9) + 1:
                yield "a region too large"
        return
    arcs = {(NAMES[j], NAMES[i]) for i, parents in enumerate(structure.parents) for j in parents}
    yield from (f"no arc {arc}" for arc in content["require"] if tuple(arc) not in arcs)
    for a, b in arcs:
        if (a, b) in content["forbid"] or b == content.get("root"):
            yield f"an arc {a} -> {b}"
        if a in tiers and b in tiers and tiers[a] > tiers[b]:
            yield f"an arc {a} -> {b} against the tiers"
    for i, parents in enumerate(structure.parents):
        if len(parents) > content.get("max_parents", 9):
            yield f"{len(parents)} parents"
        together = [NAMES[i], *(NAMES[j] for j in parents)] if parents else []
        for a, b in itertools.permutations(together, 2):
            if (a, b) in content["no_interaction"]:
                yield f"{a} and {b} in one table"


@pytest.mark.parametrize("word", LEARNERS)
@given(content=consistent())
@settings(max_examples=examples(8))
def test_what_is_known_is_obeyed_or_refused(word: str, content: dict[str, Any]) -> None:
    refusal = None
    if word == "gbn":
        content.pop("max_parents", None)
    try:
        structure = learn_structure(Counts(DATA), Recipe(structure=word, knowledge=content))
    except BncliError as error:
        refusal = error
    if refusal is not None:
        assert "--knowledge" in refusal.what
        directions = bool(content["require"] or content.get("before") or content.get("root"))
        assert directions or word == "gbn", "only what concerns directions may be too much"
        return
    assert not list(violations(structure, content))
    if Recipe(structure=word, knowledge=content).knowledge is not None:
        assert structure.options["knowledge"] == Knowledge.parse(content).text


@pytest.mark.parametrize("word", LEARNERS)
def test_knowledge_that_says_nothing_new_changes_nothing(word: str) -> None:
    free = learn_structure(Counts(DATA), Recipe(structure=word))
    content: dict[str, Any] = {} if word == "gbn" else {"max_parents": 4}
    if isinstance(free, Dag):
        arcs = [(NAMES[j], NAMES[i]) for i, parents in enumerate(free.parents) for j in parents]
        content["forbid"] = [(b, a) for a, b in arcs]
    held = learn_structure(Counts(DATA), Recipe(structure=word, knowledge=content))
    if isinstance(free, Dag) and isinstance(held, Dag):
        assert (held.parents, held.class_children, held.class_parents) == (
            free.parents,
            free.class_children,
            free.class_parents,
        )
    elif not isinstance(free, Dag) and not isinstance(held, Dag):
        assert held.regions == free.regions


def test_a_name_that_does_not_exist_is_refused() -> None:
    for word in LEARNERS:
        with pytest.raises(UsageError, match="not an attribute of the table"):
            learn_structure(Counts(DATA), Recipe(structure=word, knowledge={"forbid": [["nowhere", NAMES[0]]]}))


@pytest.mark.parametrize("word", ["auto", "nb", "gbn", "card"])
def test_what_cannot_obey_refuses(word: str) -> None:
    with pytest.raises(UsageError, match=f"--structure {word}"):
        Recipe(structure=word, knowledge={"max_parents": 1})


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"require": [["a", "b"]], "forbid": [["a", "b"]]}, "a -> b is required, but"),
        ({"require": [["a", "b"]], "forbid": [["a", "*"]]}, "a -> b is required, but"),
        ({"require": [["a", "b"]], "no_interaction": [["b", "a"]]}, "a -> b is required, but"),
        ({"require": [["a", "b"]], "root": "b"}, "it is the root"),
        ({"require": [["a", "b"]], "before": [["b"], ["a"]]}, "a -> b is required, but"),
        ({"require": [["a", "b"], ["b", "c"], ["c", "a"]]}, "form a cycle"),
        ({"require": [["a", "c"], ["b", "c"]], "max_parents": 1}, "2 required parents"),
        ({"require": [["a", "c"], ["b", "c"]], "no_interaction": [["a", "b"]]}, "in one table"),
        ({"require": [["a", "*"]]}, "must name both columns"),
        ({"before": [["a"], ["a", "b"]]}, "two tiers"),
        ({"before": ["a"]}, "list of lists"),
        ({"forbid": ["ab"]}, "list of pairs"),
        ({"forbid": [["a", "b", "c"]]}, "list of pairs"),
        ({"forbid": [["a", 1]]}, "list of pairs"),
        ({"forbid": [["a", "a"]]}, "twice in one pair"),
        ({"forbidden": []}, "did you mean forbid"),
        ({"root": ["a"]}, "name of one column"),
        ({"max_parents": -1}, "whole number"),
        ({"max_parents": True}, "whole number"),
        ([], "a table with the keys"),
        ("k.toml", "there is no file"),
    ],
)
def test_what_contradicts_itself_is_refused(content: Any, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Knowledge.parse(content)


def test_the_text_of_knowledge_is_canonical() -> None:
    one = Knowledge.parse(
        {"no_interaction": [["b", "a"]], "forbid": [["b", "a"], ["a", "b"], ["b", "a"]], "require": []}
    )
    assert one.text == '{"forbid":[["a","b"],["b","a"]],"no_interaction":[["a","b"]]}'
    assert Knowledge.parse(one.text) == one
    assert Recipe(structure="tan", knowledge={}).knowledge is None
    assert Knowledge.parse({"root": "ä"}).text == '{"root":"ä"}'


@pytest.mark.parametrize("name", ["id", "#id", "(a)", "zz"])
def test_the_star_stands_for_every_column_whatever_its_name(name: str) -> None:
    for pair in ([name, "*"], ["*", name]):
        known = Knowledge.parse({"no_interaction": [pair]})
        assert not known.allows_together(name, "b")
        assert not known.allows_together("b", name)
        assert known.allows_together("b", "c")
        with pytest.raises(ValueError, match="no_interaction excludes it"):
            Knowledge.parse({"no_interaction": [pair], "require": [[name, "b"]]})
