"""Legal names: none collide, and every original comes back from its properties. Tokens know their place."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.networks.network import NamedNetwork, Node
from bncli.errors import BncliError
from bncli.files.exports.network_text import (
    Token,
    Tokens,
    escape_network,
    legal_names,
    origin_properties,
    parse_property,
    percent_decode,
    percent_encode,
    quoted_token,
    read_origin,
    restore_network,
    to_identifier,
    to_visible_line,
)
from tests.networks import NASTY, assert_same

GRAMMAR = re.compile(r'(?P<skip>\s+)|"(?P<quoted>[^"]*)"|(?P<mark>[;{])|(?P<word>[a-z]+)')


@pytest.mark.parametrize("legal", [to_identifier, to_visible_line])
@pytest.mark.parametrize("fold", [str, str.lower])
@given(texts=st.lists(NASTY, unique=True, max_size=12))
def test_no_two_are_the_same_and_legal_ones_stay(legal, fold, texts) -> None:  # type: ignore[no-untyped-def]
    found = legal_names(texts, legal, fold)
    assert len({fold(text) for text in found}) == len(texts) == len(found)
    assert all(legal(text) == text for text in found)
    fine = [text for text in texts if legal(text) == text]
    first = {fold(text): text for text in reversed(fine)}
    for text, name in zip(texts, found, strict=True):
        assert name == text or first.get(fold(text)) != text


def test_the_first_of_those_that_collide_is_the_legal_one() -> None:
    assert legal_names(["a b", "a_b", "a-b", "a_b_2"], to_identifier) == ("a_b_3", "a_b", "a_b_4", "a_b_2")


def test_many_collisions_take_no_longer_than_they_are_many() -> None:
    found = legal_names(["é" * n for n in range(1, 800)] + ["+" * n for n in range(1, 800)], to_identifier)
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
    assert to_identifier(text) == name


@pytest.mark.parametrize(("text", "name"), [("a  b\n", "a b"), ("\x00", "_"), (" ", "_"), ("(-inf, 2]", "(-inf, 2]")])
def test_visible_texts(text: str, name: str) -> None:
    assert to_visible_line(text) == name


@given(NASTY)
def test_what_is_encoded_is_decoded(text: str) -> None:
    written = percent_encode(text)
    assert percent_decode(written) == text
    assert written.isascii()
    assert not set(written) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%_.-~")
    assert not any(word in written for word in ("variable", "probability", "property"))


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(BncliError, match="is not percent-encoded text"):
        percent_decode("%ff")


RULES: dict[str, Any] = {
    "legal_network": to_identifier,
    "legal_node": to_identifier,
    "legal_state": to_identifier,
    "fold": str.lower,
}
NODES = (
    Node("y", ("no", "yes!"), (), np.array([0.25, 0.75])),
    Node("Y", ("0.5", "_0_5"), ("y",), np.full((2, 2), 0.5)),
)
NETWORK = NamedNetwork("my net", "y", NODES, "kdb", {"k": 2, "a": 0.1})


def test_only_what_is_lost_is_kept() -> None:
    escaped = escape_network(NETWORK, **RULES)
    assert (escaped.name, [node.name for node in escaped.nodes]) == ("my_net", ["y", "Y_2"])
    assert escaped.properties == {
        "bncli_name": "my%20net",
        "bncli_method": "kdb",
        "bncli_options": "%7B%22a%22%3A0.1%2C%22k%22%3A2%7D",
    }
    assert escaped.nodes[0].properties == {"bncli_role": "class", "bncli_states": "no yes%21"}
    assert escaped.nodes[0].states == ("no", "yes")
    assert escaped.nodes[1].properties == {"bncli_name": "Y", "bncli_states": "0.5 _0_5"}
    assert escaped.nodes[1].states == ("_0_5_2", "_0_5")
    assert_same(restore_network(escaped, "f"), NETWORK)
    assert origin_properties("file", {}) == {}


def test_whatever_is_wrong_names_the_file() -> None:
    escaped = escape_network(NETWORK, **RULES)
    with pytest.raises(BncliError, match="the network has no variables, f"):
        restore_network(escaped._replace(nodes=()), "f")
    with pytest.raises(BncliError, match="is not percent-encoded text, f; leave the property out"):
        restore_network(escaped._replace(properties={"bncli_method": "%ff"}), "f")


@pytest.mark.parametrize(
    "options", ["%", "x", "%5B1%5D", "%7B%22a%22%3A%5B%5D%7D", "%7B%22a%22%3ANaN%7D", "%5B" * 99_999]
)
def test_options_are_plain_values_by_name(options: str) -> None:
    with pytest.raises(BncliError, match="f, property bncli_options"):
        read_origin({"bncli_options": options}, "f")


def test_properties() -> None:
    assert parse_property(" a = b = c ") == ("a", "b = c")
    assert parse_property("just words") == ("just words", "")


def test_one_after_the_other() -> None:
    tokens = Tokens('\ufeff a "{"{\n', "f", GRAMMAR)
    assert tokens.next == Token("word", "a", 1)
    assert not tokens.at("b")
    assert tokens.take_if("b", "a")
    assert not tokens.take_if("{"), "what is quoted is no mark"
    assert tokens.take() == Token("quoted", "{", 3)
    assert tokens.expect("{", ";").text == "{"
    assert tokens.take() == tokens.take() == Token("end", "", 8)


def test_places() -> None:
    tokens = Tokens("a\n  b", "f", GRAMMAR)
    tokens.take()
    with pytest.raises(BncliError, match=r"expected ';' or '{', found 'b', f, line 2, column 3"):
        tokens.expect(";", "{")
    with pytest.raises(BncliError, match="x, f, line 1, column 1; y"):
        tokens.fail("x", at=0, hint="y")
    with pytest.raises(BncliError, match="unexpected character: '!', f, line 1, column 1"):
        Tokens("!", "f", GRAMMAR)


def test_a_stretch_may_be_taken_raw() -> None:
    tokens = Tokens("a !!; b", "f", re.compile(GRAMMAR.pattern + "|(?P<other>!)"))
    tokens.take()
    assert tokens.take_raw(re.compile("[^;]*;")) == "!!;"
    assert tokens.take_raw(re.compile("[^;]*;")) is None
    assert tokens.take().text == "b"


def test_descriptions_are_short() -> None:
    assert quoted_token(Token("end", "", 0)) == "the end of the file"
    assert quoted_token(Token("word", "a" * 41, 0)) == "'" + "a" * 37 + "...'"
