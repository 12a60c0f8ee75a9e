"""Holm's correction beside its description, step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.evaluation.correction import holm
from bncli.errors import BncliError

p_values = st.lists(st.one_of(st.floats(0, 1), st.sampled_from((0.0, 0.01, 0.02, 0.05, 1.0))), max_size=12)


def rejected(p: list[float], level: float) -> set[int]:
    """The smallest against level / m, the next against level / (m - 1), ..., up to the first that is not rejected."""
    found: set[int] = set()
    for step, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[i] * (len(p) - step) > level:
            break
        found.add(i)
    return found


@given(p_values, st.floats(0.001, 0.999))
def test_rejects_what_the_steps_reject(p: list[float], level: float) -> None:
    assert set(np.flatnonzero(holm(p) <= level)) == rejected(p, level)


@given(p_values)
def test_laws(p: list[float]) -> None:
    """Between the p-values themselves and Bonferroni's, in the same order."""
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1.0, np.array(p) * len(p))).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()
    assert np.array_equal(holm(p[::-1]), adjusted[::-1])


def test_example() -> None:
    """Demsar 2006, JMLR 7, section 3.2.2: 0.016, 0.019 and 0.607; none is rejected but the first two at 0.05."""
    assert holm([0.016, 0.607, 0.019]) == pytest.approx([0.048, 0.607, 0.048])
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.2]) == 0.2
    assert len(holm([])) == 0


@pytest.mark.parametrize("p", [[1.1], [-0.1], [math.nan], [[0.5]], 0.5])
def test_refused(p: list[float]) -> None:
    with pytest.raises(BncliError, match="p-values"):
        holm(p)
