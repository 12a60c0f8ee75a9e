"""The page of two threads is that of its figures, and these say what it says."""

from statistics import median

from tests.published.threads import CLASSES, ONE, PAGE, TWO, expected, page, recorded


def test_the_page_is_made_from_the_figures() -> None:
    assert PAGE.read_text() == page(recorded())


def test_the_lock_is_not_what_bounds_two_threads() -> None:
    figures = recorded()
    for classes in CLASSES:
        one, two = ([f for f in figures if (f.classes, f.contestant) == (classes, name)] for name in (ONE, TWO))
        assert len(one) == len(two) >= 20
        assert median(f.kernels for f in two) < 1.1 * median(f.kernels for f in one)
        assert median(f.blocked for f in two) < 0.1 * median(f.kernels for f in two)
        assert expected(figures, classes) < 0.65
