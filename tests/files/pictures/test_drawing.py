"""Drawings are well-formed whatever the text, no text is wider than assumed, and axes have round ticks."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.files.pictures.drawing import Drawing, axis_of, shortened, text_width
from tests.sweeps import examples

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


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), max_size=8))
def test_an_axis_holds_its_values(values: list[float]) -> None:
    axis = axis_of(values)
    shares = [axis.share(value) for value in sorted(values)]
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares)
    assert axis.logarithmic == (bool(values) and min(values) > 0 and max(values) > 4 * min(values))
    assert 1 <= len(axis.ticks) <= 6
    assert all(0 <= axis.share(tick) <= 1 for tick in axis.ticks)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=8))
def test_an_axis_can_be_required_to_be_logarithmic(values: list[float]) -> None:
    axis = axis_of(values, logarithmic=True)
    assert axis.logarithmic
    assert all(0 <= axis.share(value) <= 1 for value in values)
    assert 1 <= len(axis.ticks) <= 6
    assert axis.share(math.sqrt(axis.low * axis.high)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.02, 0.5], (0.02, 0.05, 0.1, 0.2, 0.5)),
        ([0.02, 2.0], (0.03, 0.1, 0.3, 1.0)),
        ([0.05, 0.4], (0.05, 0.1, 0.2)),
        ([1e-6, 1.0], (1e-6, 1e-4, 1e-2, 1.0)),
        ([0.0, 1.0], (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([0.62, 0.99], (0.7, 0.8, 0.9)),
        ([3.1, 3.1], (2.8, 3.0, 3.2, 3.4)),
    ],
)
def test_ticks_are_round(values: list[float], ticks: tuple[float, ...]) -> None:
    assert axis_of(values).ticks == pytest.approx(ticks)
