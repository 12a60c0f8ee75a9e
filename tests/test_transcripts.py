"""How transcripts are compared: what differs between processors passes, and what differs between programs does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.transcripts import replay, settled, without_times, workplace

FIT = "bncli fit data.csv"
CONVERGENCE = "bncli convergence *.csv"
PASSES = "bncli compare a.csv \\\n  --metric passes"
PYTHON = "bncli fit a.csv --json | python3 -c \"print(json.load(sys.stdin)['iterations'])\""

SAME = (
    (FIT, "largest difference in probability 1.4e-15", "largest difference in probability 8.9e-16"),
    (FIT, "largest difference in probability 0.0e+00", "largest difference in probability 3.3e-16"),
    (FIT, "[-67.33455907116466, 0.0047710244519123535]", "[-67.3345590711647, 0.004771024451898143]"),
    (FIT, "CLL -64.7503", "CLL -64.7502"),
    (FIT, "rest -0.001 +0.000", "rest -0.001 -0.000"),
    (FIT, "stopped     after 19 iterations", "stopped     after 20 iterations"),
    (FIT, '"iterations": 40', '"iterations": 44'),
    (FIT, "seconds     read 0.02  total 0.24", "seconds     read 0.01  total 10.30"),
    (CONVERGENCE, "extended   141   156   -129.6488", "extended   136   147   -129.6488"),
    (PASSES, "tic_tac_toe   16.7 ±0.6   16.0 ±0.0 *", "tic_tac_toe   16.7 ±0.6   15.7 ±0.6 *"),
    (PASSES, "d   1.00   18.4   3-0-0   0.901", "d   1.00   18.3   3-0-0   0.894"),
    (PYTHON, "cg 113 -61.022912", "cg 109 -61.022912"),
)
OTHER = (
    (FIT, "largest difference in probability 1.4e-15", "largest difference in probability 1.4e-13"),
    (FIT, "p 1.8e-02", "p 1.9e-02"),
    (FIT, "accuracy 0.9280", "accuracy 0.9281"),
    (FIT, "CLL -64.7503", "CLL -64.7505"),
    (FIT, "CLL -64.7503", "CLL +64.7503"),
    (FIT, "CLL -61.022917", "CLL -61.023"),
    (FIT, "p 0.50", "p 0.5"),
    (FIT, "p 0.50", "p 1"),
    (FIT, "569 rows", "570 rows"),
    (FIT, "569 rows", "569 records"),
    (FIT, "2,330 rows", "2330 rows"),
    (FIT, "tolerance 1e-32", "tolerance 1e-31"),
    (FIT, "x1 of 0.1.0", "x1 of 0.1.1"),
    (FIT, "levels <=0.8, 0.8..1.75", "levels <=0.8, 0.8..1.76"),
    (FIT, " 1.00", "1.00"),
    (FIT, "stopped     after 19 iterations", "stopped     after 24 iterations"),
    (FIT, "stopped     after 2 iterations", "stopped     after 3 iterations"),
    (FIT, "cg 113", "cg 114"),
    (FIT, "one\ntwo", "one"),
    (CONVERGENCE, "extended   141   156   -129.6488", "extended   120   156   -129.6488"),
    (CONVERGENCE, "extended   141   156   -129.6488", "extended   141   156   -129.7488"),
    (CONVERGENCE, "extended   2   3", "extended   2   2"),
    (PASSES, "tic_tac_toe   16.7 ±0.6", "tic_tac_toe   18.7 ±0.6"),
    (PASSES, "tic_tac_toe   16.7 ±0.6", "tic_tac_toe   16.7 ±1.7"),
    (PASSES, "958 rows", "957 rows"),
    (PASSES, "3-0-0", "2-0-1"),
)


@pytest.mark.parametrize(("command", "written", "played"), [*SAME, *((one[0], one[2], one[1]) for one in SAME)])
def test_what_differs_by_rounding_is_the_same(command: str, written: str, played: str) -> None:
    assert _agree(command, written, played)


@pytest.mark.parametrize(("command", "written", "played"), [*OTHER, *((one[0], one[2], one[1]) for one in OTHER)])
def test_what_means_something_else_is_not_the_same(command: str, written: str, played: str) -> None:
    assert not _agree(command, written, played)


def _agree(command: str, written: str, played: str) -> bool:
    told, expected = (f"$ {command}\n{text}\n$ ls\nfile\n" for text in (played, written))
    return without_times(settled(told, expected)) == without_times(expected)


def test_lines_that_differ_are_shown_as_played() -> None:
    played = settled("$ a\nn 3\nx 0.10000001\n$ b\n", "$ a\nn 4\nx 0.10000002\n$ b\n")
    assert played == "$ a\nn 3\nx 0.10000002\n$ b\n"


def test_the_python_of_the_shells_is_that_of_the_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is called so and comes first on the path."""
    other = tmp_path / "other"
    other.mkdir()
    for name in ("python", "python3"):
        (other / name).write_text("#!/bin/sh\necho another\n")
        (other / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(other), prepend=":")
    folder = tmp_path / "work"
    folder.mkdir()
    workplace(folder)
    for name in ("python", "python3"):
        assert replay(f'$ {name} -c "import sys, bncli; print(sys.prefix)"\n', folder).endswith(f"\n{sys.prefix}\n")
