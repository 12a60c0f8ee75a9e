"""The page of tables past memory is that of its figures, and the figures hold what is promised."""

from tests.published.past_memory import FITS, LINES, PAGE, foreseen, page, recorded


def test_the_page_is_made_from_the_figures() -> None:
    assert PAGE.read_text() == page(recorded())


def test_every_line_stays_within_eight_gigabytes() -> None:
    figures = recorded()
    assert figures
    assert {figure.line for figure in figures} <= set(LINES)
    assert all(figure.resident < 8e9 for figure in figures)


def test_a_dry_run_is_within_a_factor_of_two() -> None:
    fits = [figure for figure in recorded() if figure.line in FITS]
    assert {figure.line for figure in fits} == set(FITS)
    for figure in fits:
        seconds, memory = foreseen(figure.line, figure.rows)
        assert 0.5 < seconds / figure.seconds < 2, figure
        assert 0.5 < memory / figure.resident < 2, figure
