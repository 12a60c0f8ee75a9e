"""Random counts of families, and the properties that every score has."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[np.float64]
Score = Callable[[Array], Array]


@st.composite
def family_counts(draw: st.DrawFn, whole: bool = False) -> Array:
    """(m, r, q, K), many cells empty; whole numbers or weights."""
    shape = draw(st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(2, 4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = rng.integers(0, draw(st.sampled_from([2, 9, 1000])), shape).astype(np.float64)
    if not whole and draw(st.booleans()):
        counts *= rng.uniform(0.1, 2.0, shape)
    return counts


def columns(family: Array) -> Iterator[list[float]]:
    """The counts of the child's values in each configuration of the attribute parents and the class."""
    for j, c in itertools.product(range(family.shape[1]), range(family.shape[2])):
        yield [float(n) for n in family[:, j, c]]


def check_batches(score: Score, counts: Array) -> None:
    """A batch is scored as its families are one by one; batch axes may be many or none; the counts are left alone."""
    before = counts.copy()
    together = score(counts)
    assert together.shape == counts.shape[:1]
    np.testing.assert_allclose(together, [score(family) for family in counts], rtol=1e-12, atol=1e-9)
    assert score(counts[:0]).shape == (0,)
    assert score(counts[np.newaxis, :, np.newaxis]).shape == (1, len(counts), 1)
    np.testing.assert_array_equal(counts, before)


def check_permutations(score: Score, counts: Array) -> None:
    """The order of values, configurations and classes does not matter."""
    turned = np.ascontiguousarray(counts[:, ::-1, ::-1, ::-1])
    np.testing.assert_allclose(score(turned), score(counts), rtol=1e-12, atol=1e-9)


def gains(score: Score, counts: Array) -> tuple[Array, Array]:
    """What the arcs j -> i and i -> j gain, for counts (..., |i|, |j|, K)."""
    turned = counts.swapaxes(-3, -2)
    return tuple(score(n) - score(n.sum(axis=-2, keepdims=True)) for n in (counts, turned))  # type: ignore[return-value]


def check_equivalent(score: Score, counts: Array) -> None:
    forward, backward = gains(score, counts)
    largest = float(np.abs(score(counts)).max())
    assert forward == pytest.approx(backward, rel=1e-9, abs=1e-11 * max(largest, 1.0))
