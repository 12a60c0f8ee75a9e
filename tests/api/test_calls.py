"""What every call shares: errors and notes in keywords, and progress bars, here in a notebook with a fake IPython."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy

import bncli
from bncli.api import calls
from bncli.api.calls import error_in_keywords, python_call
from bncli.errors import BncliError, ModelError, UsageError

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
    monkeypatch.setattr(calls, "_REDRAW_SECONDS", 0.0)
    return pictures


def test_a_notebook_shows_a_bar_that_goes_away(shown: list[str]) -> None:
    with pytest.warns(UserWarning, match="name"):
        bncli.fit(ROWS, structure="nb", progress=True)
    assert any("parameters" in picture for picture in shown)
    assert any('<progress value="' in picture for picture in shown)
    assert shown[-1] == ""


def test_it_goes_away_after_an_error_too(shown: list[str]) -> None:
    with pytest.raises(BncliError):
        bncli.fit({"class": ["x", "y"]}, progress=True)
    assert shown[-1] == ""


def test_what_is_told_is_escaped(shown: list[str]) -> None:
    bar = calls._notebook_bar()
    assert bar is not None
    bar.stage("read")
    bar.progress(1, 2, "<b>")
    assert shown[-1] == '<progress value="1" max="2"></progress> read &lt;b&gt;'


def test_the_bar_is_drawn_again_after_a_while_only(shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_REDRAW_SECONDS", 3600.0)
    bar = calls._notebook_bar()
    assert bar is not None
    bar.stage("read")
    drawn = len(shown)
    bar.progress(1, 2, "")
    assert len(shown) == drawn
    monkeypatch.setattr(calls, "_REDRAW_SECONDS", 0.0)
    bar.progress(1, 2, "")
    assert len(shown) == drawn + 1


def test_elsewhere_there_is_none_but_warnings(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="name"):
        bncli.fit(ROWS, structure="nb", param="map", progress=True)
    assert capfd.readouterr() == ("", "")
    with pytest.warns(UserWarning, match="name"):
        bncli.fit(ROWS, structure="nb", param="map", progress=False)


def test_what_it_cannot_be() -> None:
    with pytest.raises(UsageError, match="progress is of type str; it should be True or a function"):
        bncli.fit(ROWS, progress="bar")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "python"),
    [
        ("add --categorical NAME to keep one", "add categorical=NAME to keep one"),
        ("use --param discriminative, or --init zero", "use param='discriminative', or init='zero'"),
        ("--k has no effect with --structure nb", "k= has no effect with structure='nb'"),
        ("learn nb, tan, kdb --k 1 or hill-climb", "learn nb, tan, kdb k=1 or hill-climb"),
        ("with --class", "with class_="),
        ("leave such rows out with --drop-unlabelled", "leave such rows out with drop_unlabelled=True"),
        ("--drop-incomplete leaves them out", "drop_incomplete=True leaves them out"),
        ("--ignore 'a b'", "ignore='a b'"),
        ("--missing-policy level, or leave it", "missing_policy='level', or leave it"),
        ("if the delimiter is wrong, set it with --delimiter", "if the delimiter is wrong, set it with delimiter="),
        ("add --on-bad-row skip to leave it out", "add on_bad_row='skip' to leave it out"),
        ("leave it out: --keep-all", ""),
        ("well-known words -- and more", "well-known words -- and more"),
        ("Invalid value for '--penalty': '-1' is none", "Invalid value for penalty=: '-1' is none"),
        ("the column '--ignore' is there", "the column '--ignore' is there"),
        ("add --group patient if they belong together", "add group='patient' if they belong together"),
        ("--group clinic,patient, or --time is left out", "group='clinic,patient', or time= is left out"),
        ("--gap 30d is longer", "gap='30d' is longer"),
        ("--missing +- makes them missing", "missing='+-' makes them missing"),
        ("--threshold best:f1", "threshold='best:f1'"),
        ("--dates soon", "dates= soon"),
        ("--tolerance 1e-8", "tolerance=1e-8"),
    ],
)
def test_hints(command: str, python: str) -> None:
    assert error_in_keywords(BncliError("something", hint=command)).hint == python


def test_the_kind_and_the_place_stay() -> None:
    error = error_in_keywords(ModelError("--k is wrong", where="the table row 2", hint="leave --k out"))
    assert type(error) is ModelError
    assert str(error) == "k= is wrong, the table row 2; leave k= out"
    with pytest.raises(UsageError, match=r"^seed=3 is it$"), python_call():
        raise UsageError("--seed 3 is it")


def test_notes_too() -> None:
    codes = {"a": [1, 2, 3] * 9, "class": ["x", "y", "y"] * 9}
    with pytest.warns(UserWarning, match="if they are codes, add categorical=NAME"):
        bncli.fit(codes, structure="nb", param="map")


def test_from_the_doors() -> None:
    rows = {"a": [1, 2] * 9, "class": ["x", None] * 9}
    with pytest.raises(BncliError, match=r"the class is missing in 9 rows, the table.*drop_unlabelled=True"):
        bncli.fit(rows)
    with pytest.raises(UsageError, match="k= has no effect"):
        bncli.evaluate(rows, structure="nb", k=2)
    with pytest.raises(BncliError) as raised:
        bncli.fit({"class": ["x", "y"]})
    assert "--" not in str(raised.value)


def test_every_blas_of_the_wheels_has_one_thread_within_a_call_and_its_own_number_after_it() -> None:
    packages = ((np, "numpy.libs"), (scipy, "scipy.libs"))
    libraries = [
        path for package, name in packages for path in (Path(package.__path__[0]).parent / name).glob("*openblas*")
    ]
    if not libraries:
        pytest.skip("numpy and scipy were not installed from wheels with OpenBLAS")
    functions = calls._openblas_functions()
    assert len(functions) == len(libraries)
    before = [get_threads() for get_threads, _ in functions]
    try:
        for (_, set_threads), threads in zip(functions, (2, 1), strict=False):
            set_threads(threads)
        chosen = [get_threads() for get_threads, _ in functions]
        with calls.one_blas_thread():
            assert {get_threads() for get_threads, _ in functions} == {1}
        assert [get_threads() for get_threads, _ in functions] == chosen
    finally:
        for (_, set_threads), threads in zip(functions, before, strict=True):
            set_threads(threads)


def test_another_blas_is_limited_through_threadpoolctl(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = {"blas": [3, 1], "openmp": [5]}

    def library(api: str, i: int) -> Any:
        return SimpleNamespace(
            get_num_threads=lambda: threads[api][i], set_num_threads=lambda n: threads[api].__setitem__(i, n)
        )

    class Controller:
        def select(self, user_api: str) -> Any:
            return SimpleNamespace(lib_controllers=[library(user_api, i) for i in range(len(threads[user_api]))])

    module = ModuleType("threadpoolctl")
    module.ThreadpoolController = Controller  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "threadpoolctl", module)
    monkeypatch.setattr(calls, "_openblas_functions", tuple)
    calls._blas_functions.cache_clear()
    try:
        with calls.one_blas_thread():
            assert threads == {"blas": [1, 1], "openmp": [5]}
        assert threads == {"blas": [3, 1], "openmp": [5]}
    finally:
        calls._blas_functions.cache_clear()
