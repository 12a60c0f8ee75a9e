"""Words for values, and for what terms saw."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.prediction import contributions as wording
from bncli.engine.prediction.contributions import TermNames, TermText, value_names

AGE = NumericAttribute("age", True, (1.0,) * 4, (27.5, 41.0))
COLOUR = CategoricalAttribute("colour", False, (1.0, 1.0), ("blue", "red"))
SCHEMA = Schema("class", ("n", "y"), (AGE, COLOUR))


def test_values() -> None:
    assert value_names(AGE) == ("<=27.5", "27.5..41", ">41", "missing", "unknown")
    assert value_names(COLOUR) == ("blue", "red", "unknown")
    assert value_names(NumericAttribute("x", True, (1.0, 1.0), ())) == ("any", "missing", "unknown")


def test_cuts_that_look_alike_are_told_in_full() -> None:
    close = NumericAttribute("x", False, (1.0,) * 3, (1.0000001, 1.0000002))
    assert value_names(close)[1] == "1.0000001..1.0000002"


@pytest.mark.parametrize("largest", [1 << 62, 1])
def test_what_terms_saw(monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    monkeypatch.setattr(wording, "_LARGEST", largest)
    words = TermNames(SCHEMA, ((0,), (0, 1)), (0, 1))
    codes = [np.array([0, 4, 0], np.uint8), np.array([1, 2, 1], np.uint8)]
    places, wordings = words.of(np.array([[1, 1, 1], [0, -1, 0]]), codes)
    pair, other = TermText(("age", "colour"), ("<=27.5", "red")), TermText(("age", "colour"), ("unknown", "unknown"))
    age = TermText(("age",), ("<=27.5",))
    seen = [[None if p < 0 else wordings[p] for p in row] for row in places.tolist()]
    assert seen == [[pair, other, pair], [age, None, age]]
    assert len(wordings) == 3
