"""Comparison through files: what is checked before the work, what is reported, what is written."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from bncli.engine.evaluation.cross_validation import Protocol
from bncli.errors import BncliError, UsageError
from bncli.files.reading.source import Source
from bncli.steps.compare import compare as module
from bncli.steps.compare.analysis import CompareReport
from bncli.steps.compare.compare import CompareOutputs, ComparisonSettings, compare
from bncli.steps.evaluate.evaluate import evaluate
from bncli.watch import Event, Run, Stage
from tests.steps.compare.tables import IMPROBABLE, NB, TAN, write_table


@pytest.fixture
def sources(tmp_path: Path) -> list[Source]:
    return [write_table(tmp_path / f"{name}.csv", 40 + 6 * seed, seed) for seed, name in enumerate("abc")]


def test_the_figures_are_those_of_evaluate(sources: list[Source]) -> None:
    report = compare(
        sources, [NB, TAN], Protocol(4, 2, 7), question=ComparisonSettings(metrics=["rmse", "auc", "rmse"])
    )
    assert report.metrics[:2] == ("rmse", "auc")
    for source, data in zip(sources, "abc", strict=True):
        for learner in (NB, TAN):
            alone = evaluate(source, learner.recipe, Protocol(4, 2, 7))
            for metric in ("rmse", "auc"):
                figure = report.figure(data, learner.name, metric)
                assert figure is not None
                assert alone.std is not None
                assert (figure.mean, figure.std) == pytest.approx((alone.metrics[metric], alone.std[metric]))


def test_all_outputs(sources: list[Source], tmp_path: Path) -> None:
    paths = {name: str(tmp_path / f"out.{name}") for name in ("csv", "latex", "diagram", "scatter")}
    report = compare(sources, [NB, TAN], Protocol(2, 1, 0), outputs=CompareOutputs(**paths))
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 2 * 2
    assert all((tmp_path / f"out.{name}").stat().st_size for name in paths)
    values = json.loads(json.dumps(report.as_json()))
    assert values["protocol"] == {"folds": 2, "repeats": 1, "seed": 0}
    assert [one["name"] for one in values["data"]] == ["a", "b", "c"]
    folds = [fold["error"] for fold in values["folds"] if (fold["data"], fold["learner"]) == ("a", "nb")]
    assert values["data"][0]["results"][0]["error"]["mean"] == pytest.approx(fmean(folds))


def test_it_is_shown_before_it_is_written(sources: list[Source], tmp_path: Path) -> None:
    """The diagram cannot be drawn: only one learner has figures."""
    shown: list[CompareReport] = []
    path = tmp_path / "d.svg"
    with pytest.raises(BncliError, match="average ranks"):
        compare(
            sources[:2],
            [NB, IMPROBABLE],
            Protocol(2, 1, 0),
            outputs=CompareOutputs(diagram=str(path), show=shown.append),
        )
    assert len(shown) == 1
    assert not path.exists()


def test_gaps_are_in_the_report(sources: list[Source]) -> None:
    report = compare(sources, [NB, IMPROBABLE, TAN], Protocol(2, 1, 0))
    assert set(report.gaps) == {(data, "improbable") for data in "abc"}
    assert set(report.figures) == {(data, learner) for data in "abc" for learner in ("nb", "tan")}
    nothing = compare(sources, [IMPROBABLE], Protocol(2, 1, 0))
    assert nothing.figures == {}
    assert len(nothing.gaps) == 3


def test_a_run_goes_on_with_processes(sources: list[Source], tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    first = compare(sources, [NB, TAN], Protocol(3, 1, 0), outputs=CompareOutputs(resume=str(path)))
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 3 * 2 * 3
    path.write_text("".join(lines[:-5]) + lines[-5][:9])
    again = compare(sources, [NB, TAN], Protocol(3, 1, 0), run=Run(2), outputs=CompareOutputs(resume=str(path)))
    assert again.figures == first.figures
    assert len(path.read_text().splitlines()) == len(lines)
    with pytest.raises(BncliError, match="a run with other learners"):
        compare(sources, [TAN, NB], Protocol(3, 1, 0), outputs=CompareOutputs(resume=str(path)))
    Path(sources[1].paths[0]).write_text(Path(sources[1].paths[0]).read_text().replace(",a,", ",b,", 1))
    with pytest.raises(BncliError, match="a run with other data"):
        compare(sources, [NB, TAN], Protocol(3, 1, 0), outputs=CompareOutputs(resume=str(path)))


def test_wrong_words_are_found_before_a_table_is_read(
    sources: list[Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(module, "read_entries", never)
    here = str(tmp_path)
    with pytest.raises(UsageError, match="no metric 'logloss'; did you mean log-loss"):
        compare(sources, [NB], question=ComparisonSettings(metrics=["error", "logloss"]))
    with pytest.raises(UsageError, match="no learner 'tam'; did you mean tan"):
        compare(sources, [NB, TAN], question=ComparisonSettings(baseline="tam"))
    with pytest.raises(UsageError, match="two learners are called 'nb'"):
        compare(sources, [NB, NB])
    with pytest.raises(UsageError, match="bad rows"):
        compare([Source(sources[0].paths, on_bad_row="bad.csv")], [NB])
    with pytest.raises(BncliError, match="there is no folder"):
        compare(sources, [NB], outputs=CompareOutputs(latex=f"{here}/no/x.tex"))
    with pytest.raises(UsageError, match="it is read from"):
        compare(sources, [NB, TAN], outputs=CompareOutputs(resume=sources[2].paths[0]))
    with pytest.raises(UsageError, match="it is written as"):
        compare(sources, [NB, TAN], outputs=CompareOutputs(csv=f"{here}/x", resume=f"{here}/x"))
    with pytest.raises(UsageError, match="--diagram"):
        compare(sources[:1], [NB, TAN], outputs=CompareOutputs(diagram=f"{here}/x.svg"))


def test_what_the_watch_hears(sources: list[Source]) -> None:
    heard: list[Event] = []
    compare(sources[:1], [NB], Protocol(2, 1, 0), run=Run(watch=heard.append))
    assert [event.name for event in heard if isinstance(event, Stage)] == ["read", "run", "analyse"]
