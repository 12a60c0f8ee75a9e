"""The page of two threads is that of its figures, and these say what it says."""

from statistics import median

import pytest

from tests.published.threads import (
    CLASSES,
    LOOK_UPS_ONE,
    LOOK_UPS_TWO,
    ONE,
    PAGE,
    TWO,
    Figure,
    expected,
    page,
    recorded,
)


def test_the_page_is_made_from_the_figures() -> None:
    assert PAGE.read_text() == page(recorded())


@pytest.mark.parametrize("classes", CLASSES)
def test_two_threads_share_the_kernels_and_seldom_wait(classes: int) -> None:
    one, two, looked_up_by_one, looked_up = (of(classes, name) for name in (ONE, TWO, LOOK_UPS_ONE, LOOK_UPS_TWO))
    assert len(one) == len(two) >= 20
    assert median(f.load for f in two) < 1.5
    assert median(f.kernels for f in two) < 1.1 * median(f.kernels for f in one)
    assert median(f.blocked for f in two) < 0.15 * median(f.kernels for f in two)
    assert median(f.blocked for f in looked_up) > 2 * median(f.blocked for f in two)
    assert median(a.wall / b.wall for a, b in zip(two, one, strict=True)) < 0.75
    assert median(a.wall / b.wall for a, b in zip(looked_up, looked_up_by_one, strict=True)) > 0.8
    assert expected(recorded(), classes) < 0.7


def of(classes: int, contestant: str) -> list[Figure]:
    return [f for f in recorded() if (f.classes, f.contestant) == (classes, contestant)]
