"""The page of tables past memory is that of its figures, and the figures hold what is promised."""

from tests.published.past_memory import LINES, PAGE, page, recorded


def test_the_page_is_made_from_the_figures() -> None:
    assert PAGE.read_text() == page(recorded())


def test_every_line_stays_within_eight_gigabytes() -> None:
    figures = recorded()
    assert figures
    assert {figure.line for figure in figures} <= set(LINES)
    assert all(figure.resident < 8e9 for figure in figures)
