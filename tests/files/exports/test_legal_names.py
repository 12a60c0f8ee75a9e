"""Legal names: none collide, the legal ones stay, and every original can be kept in a property."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.exports.legal_names import decoded, distinct, encoded, identifier, printed
from tests.networks import NASTY


@pytest.mark.parametrize("legal", [identifier, printed])
@pytest.mark.parametrize("fold", [str, str.lower])
@given(texts=st.lists(NASTY, unique=True, max_size=12))
def test_no_two_are_the_same_and_legal_ones_stay(legal, fold, texts) -> None:  # type: ignore[no-untyped-def]
    found = distinct(texts, legal, fold)
    assert len({fold(text) for text in found}) == len(texts) == len(found)
    assert all(legal(text) == text for text in found)
    fine = [text for text in texts if legal(text) == text]
    first = {fold(text): text for text in reversed(fine)}
    for text, name in zip(texts, found, strict=True):
        assert name == text or first.get(fold(text)) != text


def test_the_first_of_those_that_collide_is_the_legal_one() -> None:
    assert distinct(["a b", "a_b", "a-b", "a_b_2"], identifier) == ("a_b_3", "a_b", "a_b_4", "a_b_2")


def test_many_collisions_take_no_longer_than_they_are_many() -> None:
    found = distinct(["é" * n for n in range(1, 800)] + ["+" * n for n in range(1, 800)], identifier)
    assert len(set(found)) == 1598


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("petal_width", "petal_width"),
        ("Café au lait", "Cafe_au_lait"),
        ("(-inf, 2.5]", "minus_inf_2_5"),
        ("(-1.5, -.5]", "minus_1_5_minus_5"),
        ("2-3", "_2_3"),
        ("", "_"),
        ("日本", "_"),
    ],
)
def test_identifiers(text: str, name: str) -> None:
    assert identifier(text) == name


@pytest.mark.parametrize(("text", "name"), [("a  b\n", "a b"), ("\x00", "_"), (" ", "_"), ("(-inf, 2]", "(-inf, 2]")])
def test_visible_texts(text: str, name: str) -> None:
    assert printed(text) == name


@given(NASTY)
def test_what_is_encoded_is_decoded(text: str) -> None:
    written = encoded(text)
    assert decoded(written) == text
    assert written.isascii()
    assert not set(written) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%_.-~")
    assert not any(word in written for word in ("variable", "probability", "property"))


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        decoded("%ff")
