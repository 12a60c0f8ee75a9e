"""Names and identities of learners."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bncli.errors import UsageError
from bncli.steps.compare.entries import Learner, check_names
from bncli.steps.supplied_files import read_supplied
from tests.steps.compare.tables import NB, TAN


def test_names_differ() -> None:
    check_names([NB, TAN])
    with pytest.raises(UsageError, match="two learners are called 'nb'; it is given twice"):
        check_names([NB, TAN, replace(NB)])
    with pytest.raises(UsageError, match="two learners are called 'nb'; put NAME= before its options"):
        check_names([NB, replace(TAN, name="nb")])
    with pytest.raises(UsageError, match="no learner"):
        check_names([])


def test_identity_is_made_of_contents(tmp_path: Path) -> None:
    for name, content in (("a", '{"a": ["y"]}'), ("b", '{"a":["y"]}'), ("c", '{"b": ["y"]}')):
        head = '{"format": "bncli-structure", "version": 1, "class": "y", "parents": '
        (tmp_path / name).write_text(f"{head}{content}}}")
    a, b, c = (Learner("x", TAN.recipe, "", read_supplied(None, str(tmp_path / name))).identity() for name in "abc")
    assert a == b != c
    assert TAN.identity() == replace(TAN, options="written otherwise").identity() != NB.identity()
    json.dumps(TAN.identity(), allow_nan=False)
