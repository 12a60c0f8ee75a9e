"""Groups of neighbours: laws, and what heavy elements do."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels.binning import group_ends


def sizes(mass: list[float], n_groups: int) -> list[float]:
    ends = group_ends(np.array(mass, np.float64), n_groups)
    return [float(sum(group)) for group in np.split(np.array(mass), [end + 1 for end in ends])]


def test_equal_elements_are_shared_out_evenly() -> None:
    assert sizes([1.0] * 12, 4) == [3, 3, 3, 3]
    assert sizes([1.0] * 7, 3) == [2, 2, 3]


def test_the_heavy_stand_alone() -> None:
    assert group_ends(np.array([1.0, 1, 30, 1, 1, 1, 1]), 4) == [1, 2, 4]
    assert group_ends(np.array([30.0, 1, 1]), 2) == [0]
    assert group_ends(np.array([1.0, 30, 1, 30, 1]), 3) == [0, 1, 2, 3], "more stretches than groups"


def test_without_weight_the_last_group_takes_the_rest() -> None:
    assert group_ends(np.zeros(5), 3) == [0, 1]
    assert group_ends(np.array([0.0, 5.0, 0.0]), 2) == [0, 1]


def test_few_elements() -> None:
    assert group_ends(np.array([2.0]), 3) == []
    assert group_ends(np.array([2.0, 1.0]), 3) == [0]
    assert group_ends(np.array([2.0, 1.0]), 1) == []


@given(st.lists(st.integers(0, 40).map(float), min_size=1, max_size=30), st.integers(1, 12))
def test_laws(mass: list[float], n_groups: int) -> None:
    ends = group_ends(np.array(mass), n_groups)
    assert ends == sorted(set(ends))
    assert set(ends) <= set(range(len(mass) - 1))
    share = sum(mass) / n_groups
    heavy = [i for i, m in enumerate(mass) if m > share]
    assert len(ends) + 1 <= max(n_groups, 2 * len(heavy) + 1)
    assert all(i in ends or i == len(mass) - 1 for i in heavy)
    assert all(i - 1 in ends or i == 0 for i in heavy)
    if not heavy:
        assert len(ends) + 1 == min(n_groups, len(mass))
