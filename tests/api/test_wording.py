"""What errors say in Python: keywords, no flags."""

from __future__ import annotations

import pytest

import bncli
from bncli.api.messages import in_python, reworded
from bncli.errors import BncliError, ModelError, UsageError


@pytest.mark.parametrize(
    ("command", "python"),
    [
        ("--categorical NAME keeps one", "categorical=NAME keeps one"),
        ("use --param discriminative, or --init zero", "use param='discriminative', or init='zero'"),
        ("--k has no effect with --structure nb", "k= has no effect with structure='nb'"),
        ("learn nb, tan, kdb --k 1 or hill-climb", "learn nb, tan, kdb k=1 or hill-climb"),
        ("--class names the column", "class_= names the column"),
        ("--drop-unlabelled", "drop_unlabelled="),
        ("--ignore 'a b'", "ignore='a b'"),
        ("--missing-policy level, or leave it", "missing_policy='level', or leave it"),
        ("is the delimiter right? --delimiter", "is the delimiter right? delimiter="),
        ("--on-bad-row skip leaves it out", "on_bad_row='skip' leaves it out"),
        ("leave it out: --keep-all", ""),
        ("well-known words -- and more", "well-known words -- and more"),
        ("Invalid value for '--penalty': '-1' is none", "Invalid value for penalty=: '-1' is none"),
        ("the column '--ignore' is there", "the column '--ignore' is there"),
    ],
)
def test_hints(command: str, python: str) -> None:
    assert reworded(BncliError("something", hint=command)).hint == python


def test_the_kind_and_the_place_stay() -> None:
    error = reworded(ModelError("--k is wrong", where="the table row 2", hint="leave --k out"))
    assert type(error) is ModelError
    assert str(error) == "k= is wrong, the table row 2; leave k= out"
    with pytest.raises(UsageError, match=r"^seed=3 is it$"), in_python():
        raise UsageError("--seed 3 is it")


def test_notes_too() -> None:
    codes = {"a": [1, 2, 3] * 9, "class": ["x", "y", "y"] * 9}
    with pytest.warns(UserWarning, match="if they are codes: categorical=NAME"):
        bncli.fit(codes, structure="nb", param="map")


def test_from_the_doors() -> None:
    rows = {"a": [1, 2] * 9, "class": ["x", None] * 9}
    with pytest.raises(BncliError, match=r"the class is missing in 9 rows, the table.*drop_unlabelled="):
        bncli.fit(rows)
    with pytest.raises(UsageError, match="k= has no effect"):
        bncli.evaluate(rows, structure="nb", k=2)
    with pytest.raises(BncliError) as raised:
        bncli.fit({"class": ["x", "y"]})
    assert "--" not in str(raised.value)
