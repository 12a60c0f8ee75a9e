"""Recipes: what makes one, what none can hold, and the methods that made cuts or a structure that are supplied."""

import copy
import pickle
import re
from typing import Any

import pytest

from bncli.catalogue import KEYS, PARAMETERS, STRUCTURES
from bncli.errors import BncliError, UsageError
from bncli.recipe import Recipe


def test_given_cuts() -> None:
    assert Recipe(discretize="equal-width", bins=4).with_cuts("mdl", {}) == Recipe().replaced(group_levels=None)
    made = {"bins": 4, "group_levels": 7}
    assert Recipe().with_cuts("equal-width", made) == Recipe(discretize="equal-width", **made)


def test_a_given_structure() -> None:
    plain = Recipe().replaced(structure_score=None, forest=None)
    kept = plain.replaced(arcs="all")
    assert Recipe(structure="kdb", k=3).with_structure("tan", {}) == kept
    assert Recipe(structure="kdb", k=3).with_structure("tan", {"structure_score": "cmi", "forest": False}) == Recipe(
        arcs="all"
    )
    assert Recipe().replaced(structure="file").with_structure("kdb", {"k": 2}) == plain.replaced(structure="kdb", k=2)
    assert Recipe().with_structure("gbn", {"epsilon": 1, "colour": "red"}) == plain.replaced(
        structure="gbn", epsilon=1.0
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("k", "two"), ("k", True), ("k", 1.5), ("forest", 1), ("epsilon", "x"), ("degrees_of_freedom", "many")]
    + [("structure_score", word) for word in ("foo", "bdeu:x", "bdeu:-1", "cmi:2", "")]
    + [("loss", "none")],
)
def test_an_option_of_another_type_is_an_error(name: str, value: Any) -> None:
    with pytest.raises(BncliError, match=f"the structure's option '{name}' is {value!r}"):
        Recipe().with_structure("tan", {name: value})


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ({"structur": "tan"}, "there is no learning option 'structur'; did you mean structure?"),
        ({"structure": "tam"}, "unknown --structure 'tam'; did you mean tan?"),
        ({"structure": "kdb", "k": 1001}, "Invalid value for '--k': 1001 is too large: the maximum is 1000"),
        ({"structure": "kdb", "k": True}, "Invalid value for '--k': 'True' is not a whole number of at least 0"),
        (
            {"penalty": float("nan")},
            "Invalid value for '--penalty': 'nan' is not a finite number of at least 0, nor cv",
        ),
        ({"penalty": "__import__('os')"}, "Invalid value for '--penalty'"),
        ({"level": 5}, "Invalid value for '--level': '5' is not one of '1', '2', '3', '4'"),
        ({"coding": "cell", "param": "discriminative"}, "Invalid value for '--coding': 'cell' is not one of"),
        ({"seed": -1}, "Invalid value for '--seed': '-1' is not a whole number"),
        ({"structure": "nb", "k": 2}, "--k has no effect with --structure nb"),
    ],
)
def test_what_no_recipe_can_hold_is_one_clear_error(words: dict[str, Any], line: str) -> None:
    for make in (Recipe.of, Recipe):
        with pytest.raises(UsageError) as refused:
            make(**words)
        assert str(refused.value).startswith(line)


def test_texts_and_numbers_mean_the_same() -> None:
    assert Recipe.of(structure="kdb", k="2", penalty="1", level="3") == Recipe(structure="kdb", k=2, penalty=1, level=3)
    assert Recipe.of(structure=None, k=None, forest=False) == Recipe.of()


def test_recipes_are_values() -> None:
    one, same, other = Recipe(penalty=1), Recipe(penalty=1.0), Recipe(penalty=2)
    assert (one == same, hash(one) == hash(same), one != other, one != "Recipe") == (True, True, True, True)
    assert len({one, same, other}) == 2
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    with pytest.raises(AttributeError, match="cannot be changed"):
        one.penalty = 2.0
    with pytest.raises(AttributeError, match="a recipe has no option 'colour'"):
        one.colour  # noqa: B018
    one.as_dict()["penalty"] = 3.0
    assert (one.penalty, one.replaced(penalty=2.0)) == (1.0, other)
    assert "penalty=1.0" in repr(one)


def test_what_a_file_does_not_say_is_none() -> None:
    recorded = Recipe.recorded({"structure": "tan", "colour": "red"})
    assert recorded.as_dict() == dict.fromkeys(KEYS) | {"structure": "tan"}


REFUSED = (
    r"--smoothing has no effect with --param (discriminative|extended|lr|lr-roos) and --init zero"
    r"|unknown --discretize 'auto'"
)
"""What is recorded and cannot be typed: the smoothing of a start that is not made, and the cuts of auto."""


@pytest.mark.parametrize("param", [None, *PARAMETERS.words])
@pytest.mark.parametrize("structure", [None, *STRUCTURES.words])
def test_a_recipe_said_again_is_itself(structure: str | None, param: str | None) -> None:
    """Or what it records is refused: a value that no one may type."""
    try:
        recipe = Recipe.of(structure=structure, param=param)
    except UsageError as refused:
        assert param is not None
        assert "cannot be used with" in str(refused)  # noqa: PT017
        return
    said = {key: value for key, value in recipe.as_dict().items() if value is not None}
    try:
        assert Recipe.of(**said) == recipe
    except UsageError as refused:
        assert re.search(REFUSED, str(refused))  # noqa: PT017
