"""Which file named a class that is not there."""

from __future__ import annotations

import pytest

from bncli.engine.structure import NamedDag
from bncli.errors import UsageError
from bncli.steps.given import class_named_by, file_with_class


def told(path: str | None, class_name: str | None, what: str, hint: str = "") -> str:
    with pytest.raises(UsageError) as caught, class_named_by(path, class_name):
        raise UsageError(what, where="x.csv", hint=hint)
    return str(caught.value)


def test_the_file_is_named() -> None:
    assert told("st.json", "y", "no column 'y'") == "no column 'y', x.csv; st.json names it as the class"
    assert told("st.json", "y", "no column 'y'", "'Y'?") == "no column 'y', x.csv; st.json names it as the class; 'Y'?"


def test_other_errors_stay_as_they_are() -> None:
    assert told("st.json", "y", "no column 'z'") == "no column 'z', x.csv"
    assert told(None, "y", "no column 'y'") == "no column 'y', x.csv"


def test_without_an_error_nothing_happens() -> None:
    with class_named_by("st.json", "y"):
        pass


def test_which_file_says_what_the_class_is() -> None:
    marked, unmarked = NamedDag("y", {"a": ("y",)}, where="st.json"), NamedDag(None, {"a": ("y",)}, where="st.bif")
    assert file_with_class(marked, "cuts.json") == "st.json"
    assert file_with_class(unmarked, "cuts.json") == "cuts.json"
    assert file_with_class(None, "cuts.json") == "cuts.json"
    assert file_with_class(unmarked, None) is None
