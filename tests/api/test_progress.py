"""`progress=True`: a bar in a notebook, where IPython is a fake; and what else it may be."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import bncli
from bncli.api import messages as progress
from bncli.errors import UsageError

ROWS = {"a": [1.5, 2.0, 3.0] * 9, "name": [f"n{i}" for i in range(27)], "class": ["x", "y", "y"] * 9}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook would show one after the other."""
    pictures: list[str] = []

    def display(picture: str, *, display_id: bool) -> Any:
        assert display_id
        pictures.append(picture)
        return SimpleNamespace(update=pictures.append)

    ipython, module = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    module.HTML, module.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    return pictures


def test_a_notebook_shows_a_bar_that_goes_away(shown: list[str]) -> None:
    with pytest.warns(UserWarning, match="name"):
        bncli.fit(ROWS, structure="nb", progress=True)
    assert any("parameters" in picture for picture in shown)
    assert any('<progress value="' in picture for picture in shown)
    assert shown[-1] == ""


def test_it_goes_away_after_an_error_too(shown: list[str]) -> None:
    with pytest.raises(bncli.errors.BncliError):
        bncli.fit({"class": ["x", "y"]}, progress=True)
    assert shown[-1] == ""


def test_what_is_told_is_escaped(shown: list[str]) -> None:
    bar = progress._notebook_bars()
    assert bar is not None
    bar.stage("read")
    bar.progress(1, 2, "<b>")
    assert shown[-1] == '<progress value="1" max="2"></progress> read &lt;b&gt;'


def test_elsewhere_there_is_none_but_warnings(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="name"):
        bncli.fit(ROWS, structure="nb", param="map", progress=True)
    assert capfd.readouterr() == ("", "")
    with pytest.warns(UserWarning, match="name"):
        bncli.fit(ROWS, structure="nb", param="map", progress=False)


def test_what_it_cannot_be() -> None:
    with pytest.raises(UsageError, match="progress is a str, and should be True or a function"):
        bncli.fit(ROWS, progress="bar")  # type: ignore[arg-type]
