"""Which families a row needs, against what changes when a family's numbers do."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.inference.elimination import requisite, supporting
from bncli.engine.structures.structure import Dag, Family
from tests.engine.inference.enumeration import Problem, enumerate_completions, problem
from tests.strategies import dags


@st.composite
def cases(draw: st.DrawFn) -> tuple[Problem, Problem]:
    """The same network twice, in one of them with other numbers in every family but with the same missing values."""
    n = draw(st.integers(1, 5))
    dag, share = draw(dags(n)), draw(st.sampled_from([0.3, 0.7]))
    return problem(dag, (2,) * n, 2, 6, share, 2), problem(dag, (2,) * n, 2, 6, share, 4)


@settings(deadline=None)
@given(cases())
def test_a_family_that_is_not_needed_changes_nothing(case: tuple[Problem, Problem]) -> None:
    one, other = case
    hidden = {i: codes == 2 for i, codes in enumerate(one.data.codes)}
    hidden = {i: rows for i, rows in hidden.items() if any(i in family.attributes for family in one.families)}
    before, start = enumerate_completions(one), 1
    conditional = requisite(one.families, hidden, 6)
    joint = supporting(one.families, hidden, 6)
    for family, bears, counts in zip(one.families, conditional, joint, strict=True):
        part = slice(start, start + family.n_cells)
        start = part.stop
        cells = one.cells.copy()
        cells[:, part] = other.cells[:, part]
        after = enumerate_completions(Problem(one.data, one.families, cells))
        np.testing.assert_allclose(after.log_joint[:, ~counts], before.log_joint[:, ~counts], atol=1e-12)
        np.testing.assert_allclose(after.log_posterior[:, ~bears], before.log_posterior[:, ~bears], atol=1e-12)
        assert (counts | ~bears).all()


def needed(dag: Dag, hidden: set[int]) -> tuple[set[int | None], set[int | None]]:
    n = len(dag.parents)
    families: tuple[Family, ...] = dag.families((2,) * n, whole=True)
    rows = {i: np.array([i in hidden]) for i in range(n)}
    found = (requisite(families, rows, 1), supporting(families, rows, 1))
    conditional, joint = ({f.child for f, r in zip(families, each, strict=True) if r[0]} for each in found)
    return conditional, joint


def test_barren_nodes_fall_away() -> None:
    """class -> a0 -> a1 -> a2."""
    chain = Dag(((), (0,), (1,)), (0,))
    assert needed(chain, {0, 1, 2}) == (set(), set())
    assert needed(chain, {0, 2}) == ({0, 1}, {0, 1})
    assert needed(chain, {1, 2}) == ({0}, {0})


def test_a_known_common_child_opens_the_path_to_its_other_parent() -> None:
    """class -> a0 <- a1 <- a2."""
    collider = Dag(((1,), (2,), ()), (0,))
    assert needed(collider, {1}) == ({0, 1}, {0, 1, 2})
    assert needed(collider, {1, 2}) == ({0, 1, 2}, {0, 1, 2})
    assert needed(collider, {2}) == ({0}, {0, 1, 2})
    assert needed(collider, {0}) == (set(), {1, 2})


def test_a_known_parent_of_the_class_is_the_end() -> None:
    """a0 -> a1 -> class -> a2."""
    above = Dag(((), (0,), ()), (2,), (1,))
    assert needed(above, set()) == ({2, None}, {0, 1, 2, None})
    assert needed(above, {1}) == ({1, 2, None}, {0, 1, 2, None})
    assert needed(above, {0, 1, 2}) == ({0, 1, None}, {0, 1, None})
