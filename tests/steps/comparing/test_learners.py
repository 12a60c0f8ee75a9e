"""Names and identities of learners."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bncli.errors import BncliError, UsageError
from bncli.steps.comparing.learners import Learner, check_names
from tests.steps.comparing.tables import NB, TAN


def test_names_differ() -> None:
    check_names([NB, TAN])
    with pytest.raises(UsageError, match="two learners are called 'nb'; it is given twice"):
        check_names([NB, TAN, replace(NB)])
    with pytest.raises(UsageError, match="two learners are called 'nb'; put NAME= before its options"):
        check_names([NB, replace(TAN, name="nb")])
    with pytest.raises(UsageError, match="no learner"):
        check_names([])


def test_identity_is_made_of_contents(tmp_path: Path) -> None:
    for name, content in (("a.json", "1"), ("b.json", "1"), ("c.json", "2")):
        (tmp_path / name).write_text(content)
    a, b, c = (Learner("x", TAN.recipe, cuts=str(tmp_path / f"{name}.json")).identity() for name in "abc")
    assert a == b != c
    assert TAN.identity() == replace(TAN, options="written otherwise").identity() != NB.identity()
    json.dumps(TAN.identity(), allow_nan=False)
    with pytest.raises(BncliError, match=r"cannot read: .*, .*gone\.json"):
        Learner("x", TAN.recipe, structure=str(tmp_path / "gone.json")).identity()
