"""The graph that a greedy search changes: what it allows against trying every change, on random walks."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from bncli.engine.structure_learners.hill_climb import Arcs
from bncli.engine.structures.structure import Dag
from tests.conformance.test_structure_learners import is_acyclic


def dag_of(present: np.ndarray) -> Dag:
    n = len(present)
    parents = tuple(tuple(np.flatnonzero(present[:, i]).tolist()) for i in range(n))
    return Dag(parents, tuple(range(n)))


def changed(present: np.ndarray, kind: str, j: int, i: int) -> np.ndarray | None:
    """The arcs after a change, or None where there is nothing to change."""
    after = present.copy()
    if kind == "add":
        if i == j or present[j, i] or present[i, j]:
            return None
        after[j, i] = True
        return after
    if not present[j, i]:
        return None
    after[j, i] = False
    after[i, j] = kind == "reverse"
    return after


def slow(present: np.ndarray, kind: str, max_parents: int, perfect: bool) -> np.ndarray:
    """Which arcs may be changed: every change made and looked at."""
    n = len(present)
    allowed = np.zeros((n, n), bool)
    for j, i in itertools.product(range(n), repeat=2):
        after = changed(present, kind, j, i)
        if after is not None:
            dag = dag_of(after)
            grown = kind == "delete" or after.sum(axis=0)[j if kind == "reverse" else i] <= max_parents
            allowed[j, i] = is_acyclic(dag) and grown and ((dag.unmarried is None) or not perfect)
    return allowed


@pytest.mark.parametrize("perfect", [False, True])
@pytest.mark.parametrize("max_parents", [1, 2, 3, 9])
@pytest.mark.parametrize("n", [0, 1, 2, 4, 6])
def test_what_is_allowed_is_what_can_be_made(n: int, max_parents: int, perfect: bool) -> None:
    rng = np.random.default_rng(n)
    arcs = Arcs(n, max_parents=max_parents, perfect=perfect)
    for _ in range(25):
        allowed = {"add": arcs.may_add(), "delete": arcs.may_delete(), "reverse": arcs.may_reverse()}
        for kind, matrix in allowed.items():
            np.testing.assert_array_equal(matrix, slow(arcs.present, kind, max_parents, perfect), err_msg=kind)
        moves = [(kind, j, i) for kind, matrix in allowed.items() for j, i in np.argwhere(matrix).tolist()]
        additions = [move for move in moves if move[0] == "add"]
        if not moves:
            break
        options = additions if additions and rng.random() < 0.6 else moves
        kind, j, i = options[rng.integers(len(options))]
        expected = changed(arcs.present, kind, j, i)
        change: Callable[[int, int], None] = getattr(arcs, kind)
        change(j, i)
        np.testing.assert_array_equal(arcs.present, expected)


def test_parents() -> None:
    arcs = Arcs(3, max_parents=2, perfect=False)
    arcs.add(2, 0)
    arcs.add(1, 0)
    assert arcs.parents(0) == {1, 2}
    assert arcs.parents(1) == set()
