"""The manual's list of the papers' figures and tables is complete and names what is in this folder."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.manual_tables import MANUAL

FOLDER = Path(__file__).parent
PAPERS = {
    "Greiner": (15, 5, ("greiner",)),
    "Zaidi": (19, 4, ("zaidi", "zaidi_map")),
    "Carvalho": (1, 2, ("carvalho",)),
    "Jakulin": (2, 1, ("jakulin",)),
    "Feelders": (3, 2, ("feelders_ivanovs",)),
}
"""How many figures and tables each paper numbers, and its pages here."""


def rows_of(paper: str) -> list[tuple[set[str], str, str]]:
    """Return the rows of a paper's table: the figures and tables named, whether they are made, and where."""
    (section,) = re.findall(
        rf"^## {paper}.*?(?=^## |\Z)", (MANUAL / "sources.md").read_text(), re.MULTILINE | re.DOTALL
    )
    rows = re.findall(r"^\| (Figure|Table)s? ([\d, ]+) \| ([a-z ]+) \| (.*) \|$", section, re.MULTILINE)
    assert rows
    return [
        ({f"{kind} {number}" for number in numbers.split(", ")}, made, where) for kind, numbers, made, where in rows
    ]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_figure_and_table_of_a_paper_is_listed_once(paper: str) -> None:
    figures, tables, _ = PAPERS[paper]
    expected = [f"Figure {i}" for i in range(1, figures + 1)] + [f"Table {i}" for i in range(1, tables + 1)]
    assert Counter(name for names, _, _ in rows_of(paper) for name in names) == Counter(expected)


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_called_made_is_in_the_files(paper: str) -> None:
    """A quoted title is a heading of the page named before it."""
    for names, made, where in rows_of(paper):
        assert made in {"yes", "as numbers", "partly", "no"}
        files = re.findall(r"`(\w[\w-]*\.(?:md|svg))`", where)
        assert all((FOLDER / file).is_file() for file in files), names
        if made == "no":
            assert not files, names
        page = None
        for file, title in re.findall(r'`([\w-]+\.md)`|"([^"]+)"', where):
            page = file or page
            if title:
                assert page is not None
                assert re.search(rf"^##+ {re.escape(title)}$", (FOLDER / page).read_text(), re.MULTILINE), title


@pytest.mark.parametrize("paper", PAPERS)
def test_what_the_pages_and_drawings_make_is_listed_as_made(paper: str) -> None:
    made = {name for names, made, _ in rows_of(paper) if made != "no" for name in names}
    text = (MANUAL / "sources.md").read_text()
    for stem in PAPERS[paper][2]:
        page = (FOLDER / f"{stem}.md").read_text()
        headings = " ".join(re.findall("^#+ .*$", page, re.MULTILINE))
        named = {f"{kind.title()} {number}" for kind, number in re.findall(r"(figure|table) (\d+)", headings.lower())}
        assert named <= made
        assert f"`{stem}.md`" in text
        for drawing in FOLDER.glob(f"{stem}_*.svg"):
            assert drawing.name in page or drawing.name in text
