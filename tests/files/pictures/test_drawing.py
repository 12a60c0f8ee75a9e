"""SVG text: well-formed whatever the words are, and no word wider than it is taken to be."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.pictures.drawing import Drawing, shortened, text_width

SVG = "{http://www.w3.org/2000/svg}"


@given(st.text(st.characters(codec=None), max_size=20))
def test_any_words_make_a_document(text: str) -> None:
    drawing = Drawing(100, 50.5, text)
    drawing.text(1, 2.25, text, tip=text)
    drawing.dot(1 / 3, -0.001, text)
    root = ElementTree.fromstring(drawing.source().encode())
    assert root.get("viewBox") == "0 0 100 50.5"
    circle = root.find(f"{SVG}circle")
    assert circle is not None
    assert (circle.get("cx"), circle.get("cy")) == ("0.33", "0")


def test_names_out_of_files_do_not_become_markup() -> None:
    drawing = Drawing(10, 10, "a & b")
    drawing.text(0, 0, "<script>alert(1)</script>\x1b\ud800")
    root = ElementTree.fromstring(drawing.source().encode())
    assert [element.text for element in root.iter(f"{SVG}text")] == ["<script>alert(1)</script>??"]
    assert root.find(f".//{SVG}script") is None


@given(st.text(max_size=60), st.floats(10, 300))
def test_shortened_texts_fit(text: str, width: float) -> None:
    short = shortened(text, width)
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
    assert text_width(short) <= max(width, text_width("…"))


@pytest.mark.parametrize(
    "text", ["kdb 2 weighted", "NAIVE-BAYES", "mmmmWWW", "iiilll", "日本語の名前", "0.1234 ±0.0123"]
)
def test_no_font_is_wider_than_it_is_taken_to_be(text: str) -> None:
    """Widths in Helvetica, in thousandths of the size: letters and figures up to 556, most capitals up to 722."""
    helvetica = {"m": 833, "M": 833, "W": 944, " ": 278, ".": 278, "-": 278, "i": 222, "l": 222, "I": 278, "±": 584}

    def em(letter: str) -> float:
        return helvetica.get(letter, 1000 if ord(letter) > 0x3000 else 722 if letter.isupper() else 556) / 1000

    assert text_width(text, 10) >= 10 * sum(map(em, text))
