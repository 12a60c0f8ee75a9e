"""A recipe for cuts or a structure that are given names the methods that made them."""

from typing import Any

import pytest

from bncli.errors import BncliError
from bncli.recipe import Recipe


def test_given_cuts() -> None:
    assert Recipe(discretize="equal-width", bins=4).with_cuts("mdl", {}) == Recipe()
    assert Recipe().with_cuts("equal-width", {"bins": 4}) == Recipe(discretize="equal-width", bins=4)


def test_a_given_structure() -> None:
    plain = Recipe().replaced(structure_score=None, forest=None)
    assert Recipe(structure="kdb", k=3).with_structure("tan", {}) == plain
    assert Recipe(structure="kdb", k=3).with_structure("tan", {"structure_score": "cmi", "forest": False}) == Recipe()
    assert Recipe().replaced(structure="file").with_structure("kdb", {"k": 2}) == plain.replaced(structure="kdb", k=2)
    assert Recipe().with_structure("gbn", {"epsilon": 1, "colour": "red"}) == plain.replaced(
        structure="gbn", epsilon=1.0
    )


@pytest.mark.parametrize(("name", "value"), [("k", "two"), ("k", True), ("k", 1.5), ("forest", 1), ("epsilon", "x")])
def test_an_option_of_another_type_is_an_error(name: str, value: Any) -> None:
    with pytest.raises(BncliError, match=f"the structure's option '{name}' is {value!r}"):
        Recipe().with_structure("tan", {name: value})
