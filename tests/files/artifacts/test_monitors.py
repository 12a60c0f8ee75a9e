"""Monitor files: what is written is read back, and what is damaged is one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bncli.engine.prediction.monitoring import (
    AttributeCounts,
    LogProbabilitySketch,
    Moments,
    Monitor,
    MonitorCounts,
    MonitoredModel,
)
from bncli.errors import BncliError
from bncli.files.artifacts.monitors import monitor_json, read_monitor, write_monitor


def monitor() -> Monitor:
    counts, training = np.array([30.0, 10.0, 5.0]), np.array([100.5, 200.0, 50.0])
    attribute = AttributeCounts("age", training, True, counts, 5, 2)
    moments = [Moments(47, 40.0, 35.5), Moments(47, -400.0, 5000.0), Moments(10, 3.5, 2.0)]
    tally = MonitorCounts(
        [attribute],
        np.array([40.0, 7.0]),
        47,
        moments[0],
        moments[1],
        LogProbabilitySketch({200: 40, 210: 7}),
        moments[2],
    )
    tally.classes = np.array([6.0, 4.0])
    tally.entropy, tally.loss_variance, tally.correct = Moments(47, 9.5, 3.0), Moments(47, 4.0, 1.5), Moments(10, 9, 9)
    labels = np.array([0] * 6 + [1] * 4 + [-1] * 37)
    tally.log_odds.add(np.linspace(-3, 2, 47), labels)
    return Monitor(MonitoredModel("abc", "ill", ("no", "yes"), 350, 0.25), tally)


def test_round_trip(tmp_path: Path) -> None:
    path = str(tmp_path / "m.json")
    write_monitor(path, monitor())
    assert monitor_json(read_monitor(path)) == monitor_json(monitor())


def test_files_of_older_versions_lack_what_was_added_later(tmp_path: Path) -> None:
    content = json.loads(json.dumps(monitor_json(monitor())))
    for name in ("accuracy", "auc", "expected"):
        del content[name]
    for name in ("entropy", "loss_variance", "correct", "log_odds"):
        del content["counts"][name]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(content))
    old = read_monitor(str(path))
    assert (old.accuracy, old.auc) == (None, None)
    assert old.expected["accuracy"] == monitor().expected["accuracy"]
    assert [old.expected[name].value for name in ("log_loss", "auc")] == [None, None]
    old.tally.merge(monitor().tally)
    assert [old.expected[name].value for name in ("log_loss", "auc")] == [None, None]
    assert (old.accuracy, old.auc) == (None, None)


def changed(value: Any, keys: tuple[Any, ...], new: Any) -> None:
    *before, last = keys
    for key in before:
        value = value[key]
    value[last] = new


@pytest.mark.parametrize(
    ("keys", "new", "said"),
    [
        (("format",), "bncli-news", "not a bncli monitor file"),
        (("version",), 99, "written by a newer bncli"),
        (("counts",), 3, "expected an object"),
        (("more",), 3, "unknown key 'more'"),
        (("model", "labels"), ["no", "no"], "listed twice"),
        (("counts", "predictions"), [1], "expected 2 counts"),
        (("counts", "predictions"), [1, -1], "out of range"),
        (("counts", "attributes", 0, "training"), [1, 2], "expected 2 counts"),
        (("counts", "attributes", 0, "training"), [1, 2, -3], "cannot be negative"),
        (("counts", "attributes", 0, "counts"), [1, 2, 300], "more values than rows"),
        (("counts", "surprise"), [[1]], "an interval and its count"),
        (("counts", "log_p"), [1, 2], "a sum and a sum of squares"),
        (("counts", "log_odds"), [[1, 2]], "expected an interval, its rows"),
        (("counts", "log_odds"), [[1, 2, 2, 1]], "more labelled rows than rows, 2"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, keys: tuple[Any, ...], new: Any, said: str) -> None:
    content = json.loads(json.dumps(monitor_json(monitor())))
    changed(content, keys, new)
    path = tmp_path / "m.json"
    path.write_text(json.dumps(content))
    with pytest.raises(BncliError, match=said) as caught:
        read_monitor(str(path))
    assert str(path) in str(caught.value)


def test_another_kind_of_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BncliError, match="this is a text file"):
        read_monitor(str(path))
