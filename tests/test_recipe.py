"""A recipe for cuts or a structure that are given names the methods that made them."""

from bncli.recipe import Recipe


def test_given_cuts() -> None:
    assert Recipe(discretize="equal-width", bins=4).with_cuts("mdl", {}) == Recipe()
    assert Recipe().with_cuts("equal-width", {"bins": 4}) == Recipe(discretize="equal-width", bins=4)


def test_a_given_structure() -> None:
    assert Recipe(structure="kdb", k=3).with_structure("tan", {}) == Recipe()
    assert Recipe(structure="file").with_structure("kdb", {"k": 2}) == Recipe(structure="kdb", k=2)
