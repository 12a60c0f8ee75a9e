"""Convergence: effort and arrival of every trace, lags by their definition, and what cannot be compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.errors import BncliError
from bncli.steps.convergence import ConvergenceSettings, TracePath, convergence
from bncli.steps.run import TRACE_COLUMNS
from tests.sweeps import examples

HEADER = ",".join(TRACE_COLUMNS)


def write(path: Path, *nlls: float, penalty: float = 0.0, likelihood: str = "cll") -> TracePath:
    """A trace with these NLLs after iterations 0, 1, ...; an iteration is two passes."""
    path.parent.mkdir(exist_ok=True, parents=True)
    rows = []
    for i, nll in enumerate(nlls):
        cll, ll = (f"{-nll}", "") if likelihood == "cll" else ("", f"{-nll}")
        rows.append(f"{i},{cll},{penalty},1,1,{2 * i + 1},{i + 1},,{ll},0.5")
    path.write_text("\n".join([HEADER, *rows, ""]))
    return TracePath(str(path))


def test_effort_and_arrival(tmp_path: Path) -> None:
    a = write(tmp_path / "t/a.csv", 100, 50, 11, 10)
    b = write(tmp_path / "t/b.csv", 100, 90, 80, 30, 11.5, penalty=1.0)
    found = convergence([b, a], ConvergenceSettings(by="passes", of="nll", within=0.1)).traces
    assert [(t.table, t.name, t.iterations, t.passes, t.flops, t.arrived) for t in found] == [
        ("t", "b", 4, 9, None, None),
        ("t", "a", 3, 7, None, 5.0),
    ]
    assert [(t.start, t.end, t.penalty) for t in found] == [(-100, -11.5, 1.0), (-100, -10, 0.0)]


def test_the_penalty_counts_unless_the_likelihood_alone_is_asked_for(tmp_path: Path) -> None:
    a, b = write(tmp_path / "t/a.csv", 100, 10), write(tmp_path / "t/b.csv", 100, 10, penalty=5.0)
    assert [t.arrived for t in convergence([a, b]).traces] == [1, None]
    assert [t.arrived for t in convergence([a, b], ConvergenceSettings(of="nll")).traces] == [1, 1]


def test_every_folder_is_a_table_of_its_own(tmp_path: Path) -> None:
    paths = [write(tmp_path / folder / "a.csv", *nlls) for folder, nlls in (("t", (9, 8)), ("u", (5, 1)))]
    assert [(t.table, t.arrived) for t in convergence(paths).traces] == [("t", 1), ("u", 1)]
    named = [TracePath(paths[0].path, "x"), TracePath(paths[1].path, "y")]
    assert [(t.table, t.name) for t in convergence(named).traces] == [("t", "x"), ("u", "y")]


def test_folders_of_one_name_are_two_tables(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{one}/iris/{name}.csv", 9, 8, 7) for one in "ab" for name in ("w", "d")]
    report = convergence(paths, ConvergenceSettings(lag="w", at=1))
    tables = [str(tmp_path / one / "iris") for one in "ab"]
    assert [trace.table for trace in report.traces] == [tables[0]] * 2 + [tables[1]] * 2
    assert [each.table for each in report.lags[0].tables] == tables


def lag_of(tmp_path: Path, baseline: list[float], other: list[float], at: int) -> tuple[int, bool]:
    paths = [write(tmp_path / "t/w.csv", *baseline), write(tmp_path / "t/d.csv", *other)]
    (lags,) = convergence(paths, ConvergenceSettings(lag="w", at=at)).lags
    assert (lags.name, lags.mean, lags.median) == ("d", lags.tables[0].lag, lags.tables[0].lag)
    return lags.tables[0][1:]


@pytest.mark.parametrize(
    ("baseline", "other", "lag"),
    [
        ([9, 5, 3, 1], [9, 8, 7, 6, 4, 3, 2], (3, True)),
        ([9, 8, 7, 6, 4, 3, 2], [9, 5, 3, 1], (-3, True)),
        ([9, 5, 3, 1], [9, 5, 3, 1], (0, True)),
        ([9, 5, 3, 1], [9, 8, 7, 6], (1, False)),
        ([9, 5], [9, 8, 7, 6, 5], (2, True)),
        ([9, 5, 3], [9], (0, False)),
    ],
)
def test_lags_by_hand(tmp_path: Path, baseline: list[float], other: list[float], lag: tuple[int, bool]) -> None:
    assert lag_of(tmp_path, baseline, other, at=2) == lag


@settings(max_examples=examples(20), deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12),
    st.lists(st.integers(1, 30), min_size=1, max_size=12),
    st.integers(1, 6),
)
def test_lags_are_antisymmetric(
    tmp_path_factory: pytest.TempPathFactory, one: list[int], other: list[int], at: int
) -> None:
    """Traces that fall: whoever is behind by n iterations, the other is ahead by as many."""
    folder = tmp_path_factory.mktemp("lags")
    falling = [sorted(map(float, run), reverse=True) for run in (one, other)]
    forth, back = lag_of(folder, *falling, at), lag_of(folder, *reversed(falling), at)
    assert forth[0] == -back[0]
    assert forth[1] == back[1]
    last = [run[min(at, len(run) - 1)] for run in falling]
    assert forth[0] * (last[1] - last[0]) >= 0


def test_lags_over_tables_and_drawings(tmp_path: Path) -> None:
    paths = []
    for i, folder in enumerate("tuv"):
        paths.append(write(tmp_path / folder / "w.csv", 9, 4, 3))
        paths.append(write(tmp_path / folder / "d.csv", 9, *[5] * i, 4, 3))
    paths.append(write(tmp_path / "x/d.csv", 9, 8))
    curves, bars = tmp_path / "c.svg", tmp_path / "h.svg"
    report = convergence(paths, ConvergenceSettings(lag="w", at=1), svg=str(curves), histogram=str(bars))
    (lags,) = report.lags
    assert [(each.table, each.lag) for each in lags.tables] == [("t", 0), ("u", 1), ("v", 2)]
    told = report.as_json()["lag"]
    assert (told["baseline"], told["at"]) == ("w", 1)
    assert [told["lags"][0][key] for key in ("mean", "median", "behind", "equal", "ahead")] == [1.0, 1.0, 2, 1, 0]
    assert curves.read_text().count("−CLL, nats") == 4
    assert "1: 1</title>" in bars.read_text()


def test_lags_count_iterations_whatever_the_unit(tmp_path: Path) -> None:
    """An iteration is two passes here."""
    paths = [write(tmp_path / "t/w.csv", 9, 4, 3), write(tmp_path / "t/d.csv", 9, 5, 4, 3)]
    bars = tmp_path / "h.svg"
    for unit, heading in (("iterations", "iterations"), ("passes", "iterations, not passes")):
        report = convergence(paths, ConvergenceSettings(by=unit, lag="w", at=1), histogram=str(bars))
        assert report.lags[0].tables[0].lag == 1
        assert report.settings.heading_of_lags == f"Lag behind w after iteration 1, in {heading}"
        assert f"Lag behind w after iteration 1, in {heading}" in bars.read_text()


def fails(paths: list[TracePath], settings: ConvergenceSettings | None = None, **outputs: str) -> str:
    with pytest.raises(BncliError) as caught:
        convergence(paths, settings or ConvergenceSettings(), **outputs)
    return str(caught.value)


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    a, b = write(tmp_path / "t/a.csv", 2, 1), write(tmp_path / "t/b.csv", 2, 1, likelihood="ll")
    other, alone = write(tmp_path / "u/a.csv", 2, 1), write(tmp_path / "u/c.csv", 2, 1)
    assert "a.csv has cll" in fails([a, b])
    assert "two traces in a folder have the name 'a'" in fails([a, TracePath(b.path, "a")])
    assert "two traces in a folder have the name 'a'" in fails([a, a])
    assert "has no flops" in fails([a], ConvergenceSettings(by="flops"))
    assert "use --by passes" in fails([a], ConvergenceSettings(by="flops"))
    assert "there is no trace 'w'; the names are a, c" in fails([a, alone], ConvergenceSettings(lag="w"))
    assert "all traces have the name of the baseline" in fails([a, other], ConvergenceSettings(lag="a"))
    assert "no folder contains 'a' and another" in fails([a, alone], ConvergenceSettings(lag="a"))
    assert "--histogram draws lags" in fails([a], histogram="h.svg")
    assert "drawings can be written only as SVG" in fails([a], svg="h.png")
    assert "is the same file" in fails([a], svg=a.path)
    assert "traces must be files, not the standard input; give" in fails([a, TracePath("-", "b")])
    many = [TracePath(a.path, f"n{i}") for i in range(19)]
    assert "at most 18 names" in fails(many, svg=str(tmp_path / "c.svg"))


def test_a_report_without_lags(tmp_path: Path) -> None:
    assert convergence([write(tmp_path / "t/a.csv", 2, 1)]).as_json()["lag"] is None
