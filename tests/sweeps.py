"""What is tried in the usual run and what in sweeps: parameters in pairs or in products, and examples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import settings


def every_pair(*axes: Sequence[Any]) -> list[Any]:
    """Cases for `pytest.mark.parametrize` in which every value of an axis meets every value of every other axis.

    Cases are taken greedily, the one with most new pairs first, the earlier of ties: with two axes all of them.
    """
    cases = list(itertools.product(*map(range, map(len, axes))))
    pairs = {case: {(a, case[a], b, case[b]) for a, b in itertools.combinations(range(len(case)), 2)} for case in cases}
    left, taken = set().union(*pairs.values()), set()
    while left:
        best = max(cases, key=lambda case: len(left & pairs[case]))
        taken.add(best)
        left -= pairs[best]
    return [_param([axis[i] for axis, i in zip(axes, case, strict=True)], True) for case in cases if case in taken]


def every_value(*axes: Sequence[Any]) -> list[Any]:
    """The product of the axes, with every single value in the usual run and as many cases as that takes."""
    most = max(map(len, axes))
    taken = {tuple(i % len(axis) for axis in axes) for i in range(most)}
    product = itertools.product(*map(range, map(len, axes)))
    return [_param([axis[i] for axis, i in zip(axes, case, strict=True)], case in taken) for case in product]


def examples(n: int) -> int:
    """Two thirds of `n` examples of a property in the usual run, twice `n` in the sweep."""
    is_sweep = settings.default.max_examples > settings.get_profile("house").max_examples
    return 2 * n if is_sweep else (2 * n + 2) // 3


def first_few(cases: Iterable[Any], n: int = 1) -> list[Any]:
    """The first `n` cases in the usual run, the others in the slow sweep."""
    return [_param([case], place < n) for place, case in enumerate(cases)]


def _param(values: list[Any], is_usual: bool) -> Any:
    return pytest.param(*values, marks=[] if is_usual else [pytest.mark.slow])
