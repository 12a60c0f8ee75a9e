"""The tables of a comparison as they are printed."""

from __future__ import annotations

import io
import math
import re

import pytest
from rich.console import Console as RichConsole

from bncli.cli.compare import comparison_tables
from bncli.cli.console import Console
from bncli.steps.compare.analysis import CompareReport, analyse
from tests.sweeps import every_pair
from tests.trials import random_trial, trial_of


def printed(report: CompareReport) -> list[str]:
    out = RichConsole(width=160, highlight=False, markup=False)
    with out.capture() as capture:
        for part in comparison_tables(report):
            out.print(part)
    return [line.strip() for line in capture.get().splitlines() if line.strip()]


def test_one_data_set() -> None:
    losses = {("s", "a"): [0.1, 0.2], ("s", "b"): [0.1, 0.3], ("s", "c"): [None, None]}
    lines = printed(analyse(trial_of(losses, seconds={"b": 2.5}), metrics=["error", "cll"]))
    assert lines[0] == "100 rows; 2-fold cross-validation, stratified, seed 0"
    assert lines[1] == "s"
    assert lines[2].split() == ["learner", "error", "cll"]
    assert lines[4].split() == ["a", "0.1500", "±0.0707", "*", "-0.1500", "±0.0707", "*"]
    assert lines[5].split() == ["b", "0.2000", "±0.1414", "=", "-0.2000", "±0.1414", "="]
    assert lines[6].split() == ["c", "-", "-"]
    assert lines[7] == "Differences, with 95 % intervals"
    assert sum(line.startswith("* best") for line in lines) == 1
    assert lines[-2].split() == ["b", "2.500", "2.50", "0.250", "2.50"]
    assert not any("Friedman" in line or "W-D-L" in line for line in lines)


def test_one_learner_is_compared_with_nothing() -> None:
    lines = printed(analyse(random_trial(1, 3), metrics=["error"]))
    assert not any(word in line for line in lines for word in ("Friedman", "best", "W-D-L"))


def test_few_data_sets_say_what_they_cannot_show() -> None:
    text = " ".join(printed(analyse(random_trial(3, 3, seed=1), metrics=["error"])))
    assert "With 3 data sets the p-value of the sign test is at least 0.25" in text
    assert "With" not in " ".join(printed(analyse(random_trial(3, 6, seed=1), metrics=["error"])))
    assert "With" not in " ".join(printed(analyse(random_trial(3, 3, seed=1), metrics=["fit_seconds"])))


def test_several_data_sets() -> None:
    report = analyse(random_trial(3, 6, seed=1), metrics=["error"], baseline="learner 1")
    lines = printed(report)
    start = next(i for i, line in enumerate(lines) if line.startswith("error over 6 data sets"))
    assert lines[0].startswith("6 data sets, 600 rows;")
    rows = lines[start + 3 : start + 6]
    summary = report.summaries["error"]
    assert [row.split()[2] for row in rows] == [f"{rank:.2f}" for rank in sorted(summary.average_ranks.values())]
    (baseline,) = [row for row in rows if row.startswith("learner 1")]
    assert baseline.endswith("baseline")
    pair = summary.against("learner 0", "learner 1")
    assert pair is not None
    (row,) = [row for row in rows if row.startswith("learner 0")]
    assert f"{pair.wins}-{pair.draws}-{pair.losses}" in row.split()
    assert f"{pair.ratio:.3f}" == row.split()[5]
    assert re.fullmatch(r"Friedman: chi² [0-9.]+, exact p [0-9.]+", lines[start + 6])
    assert f"{summary.critical_difference:.2f} apart differ" in lines[start + 7]


def test_letters_join_who_is_not_told_apart() -> None:
    losses = {
        (f"s{i}", name): [level + 0.001 * i] * 2
        for i in range(12)
        for name, level in zip("abcd", (0.1, 0.2, 0.3, 0.4), strict=True)
    }
    lines = printed(analyse(trial_of(losses), metrics=["error"]))
    start = next(i for i, line in enumerate(lines) if line.startswith("error over"))
    letters = {row.split()[0]: row.split()[2] for row in lines[start + 4 : start + 7]}
    assert letters == {"b": "ab", "c": "bc", "d": "c"}
    assert lines[start + 7] == "Friedman: chi² 36.00, exact p <0.0001"


def test_more_data_sets_have_the_approximations_of_friedmans_test() -> None:
    lines = printed(analyse(random_trial(4, 20), metrics=["error"]))
    assert any(
        re.fullmatch(r"Friedman: chi² [0-9.]+, p <?[0-9.]+; Iman-Davenport: F [0-9.]+, p <?[0-9.]+", x) for x in lines
    )


def test_gaps_are_told() -> None:
    losses = {(data, name): [0.1, 0.2] for data in "stu" for name in "ab"} | {
        ("s", "c"): [0.1, 0.1],
        ("u", "c"): [1, 1],
    }
    lines = printed(analyse(trial_of(losses), metrics=["error"]))
    assert any(line.split()[0] == "t" and line.split()[-1] == "-" for line in lines)
    assert "Data sets left out because a learner has no figure there: t" in lines
    assert any(line.split() == ["t", "c", "too", "large"] for line in lines)


def test_many_learners_are_told_in_several_tables() -> None:
    report = analyse(random_trial(20, 3), metrics=["error"])
    lines = printed(report)
    assert "error, further learners" in lines
    heads = [line for line in lines if line.startswith("data ")]
    assert sum(head.count("learner") for head in heads if " - " not in head) == 20
    assert all(len(line) <= 160 for line in lines)
    figures = lines[: next(i for i, line in enumerate(lines) if line.startswith("Differences"))]
    assert not any("±" in line for line in figures)


@pytest.mark.parametrize("loss", [math.inf, 1e9])
def test_large_and_infinite_figures(loss: float) -> None:
    lines = printed(analyse(trial_of({("s", "a"): [loss, loss], ("s", "b"): [0.1, 0.1]}), metrics=["error"]))
    assert ("∞" if math.isinf(loss) else "1000000000.0") in lines[4].split()


def test_names_cannot_steer_the_terminal() -> None:
    lines = printed(analyse(trial_of({("[red]\x1b[31m", "a\nb"): [0.1, 0.2]}), metrics=["error"]))
    assert any(line.startswith("a?b") for line in lines)
    assert not any("\x1b" in line for line in lines)


def on_a_page(report: CompareReport, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that a terminal of this width gets."""
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout", out)
    Console().tables(*comparison_tables(report))
    return out.buffer.getvalue().decode().splitlines()  # type: ignore[attr-defined]


NAMES = (
    "nb",
    "hill-climb max-parents=3 map smoothing=hdp",
    "interactions penalty=0.5 cells",
    "kikuchi",
    "kdb 2 acll",
    "tan weighted newton tolerance=1e-9",
    "tan weighted lbfgs tolerance=1e-9",
)


@pytest.mark.parametrize(("width", "n_sets", "n_learners"), every_pair([60, 80, 160], [1, 4], [2, 3, 7]))
def test_no_word_is_broken_and_no_line_too_long(
    width: int, n_sets: int, n_learners: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = {
        (f"customers of branch {data} in the year 2024", NAMES[i]): [0.1 * i + 0.01 * data, 0.11 * i]
        for data in range(n_sets)
        for i in range(n_learners)
        if (data, i) != (3, 1)
    }
    report = analyse(trial_of(losses), metrics=["error", "accuracy", "rmse", "cll"], baseline=NAMES[1])
    wide, lines = on_a_page(report, 1000, monkeypatch), on_a_page(report, width, monkeypatch)
    assert max(map(len, lines)) <= width
    lines = [line for line in lines if line.strip() != "Differences: see --json, or use shorter learner names"]
    whole, told = ({word.strip(",") for line in page for word in line.split()} for page in (wide, lines))
    assert {word for word in told - whole if set(word) != {"─"}} <= {"…", "further", "learners", "figures", "columns"}


def test_a_legend_answers_for_each_column_of_the_second_table(monkeypatch: pytest.MonkeyPatch) -> None:
    report = analyse(random_trial(3, 6, seed=1), metrics=["error", "rmse"])
    lines = on_a_page(report, 100, monkeypatch)
    first, second = [i for i, line in enumerate(lines) if line.startswith(" learner ") and "W-D-L" in line]
    for heading in re.split(r" {3,}", lines[first].strip())[1:]:
        answers = [line for line in lines if line.startswith(f"{heading:<10}")]
        assert len(answers) == 1, heading
        assert len(answers[0]) <= 80
        assert first < lines.index(answers[0]) < second


def test_names_that_would_look_alike_are_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{'x' * 20}{i}{'y' * 20}" for i in range(3)]
    report = analyse(trial_of({("s", name): [0.1, 0.2] for name in names}), metrics=["error"])
    lines = on_a_page(report, 80, monkeypatch)
    assert sum(line.split()[:1] == [name] for line in lines for name in names) == 6


def told(report: CompareReport, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines with anything in them."""
    return [line.strip() for line in on_a_page(report, 160, monkeypatch) if line.strip()]


COSTLY = {(data, name): [0.1, 0.2] for data in "stu" for name in ("map", "slow", "fast")}


def test_costs_have_ratios_and_no_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(COSTLY, seconds={"map": 0.2, "slow": 0.3, "fast": 0.1}, iterations={"slow": 30, "fast": 10})
    lines = told(analyse(trial, metrics=["iterations"], baseline="fast"), monkeypatch)
    start = next(i for i, line in enumerate(lines) if line.startswith("iterations over 3 data sets"))
    assert lines[start + 1].split() == ["learner", "rank", "mean", "W-D-L", "ratio"]
    assert lines[start + 3].split() == ["fast", "1.00", "10.0", "baseline"]
    assert lines[start + 4].split() == ["slow", "2.00", "30.0", "0-0-3", "3.000"]
    assert lines[start + 5] == "Learners left out because parameters in closed form have no iterations: map"
    assert lines[start + 6].startswith("rank ")
    assert next(line for line in lines if line.startswith("s ")).split() == [
        "s", "-", "30.0", "±0.0", "10.0", "±0.0", "*",
    ]  # fmt: skip
    assert not any(word in line for line in lines for word in ("Friedman", "Nemenyi", "t-test", "sign p"))
    lines = told(analyse(trial, metrics=["iterations"]), monkeypatch)
    assert "The baseline map is one of them; choose another with --baseline" in lines


def test_a_table_more_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(COSTLY, rows=[10, 20, 30])
    report = analyse(trial, metrics=["error"], groups={"rows<20": ("s",), "rows>=20": ("t", "u")})
    lines = told(report, monkeypatch)
    small, large = (
        next(i for i, line in enumerate(lines) if line.startswith(f"error over {over}, each learner against map"))
        for over in ("1 data set of rows<20", "2 data sets of rows>=20")
    )
    assert lines[small + 1].split() == ["learner", "rank", "W-D-L", "ratio"]
    assert "Wilcoxon" in lines[large + 1]
    assert any("Friedman" in line for line in lines[large:])
    assert not any("Friedman" in line for line in lines[small:large])
