"""Tokens know their place."""

import re

import pytest

from bncli.errors import BncliError
from bncli.files.exports.tokens import Token, Tokens, quoted_token

GRAMMAR = re.compile(r'(?P<skip>\s+)|"(?P<quoted>[^"]*)"|(?P<mark>[;{])|(?P<word>[a-z]+)')


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
