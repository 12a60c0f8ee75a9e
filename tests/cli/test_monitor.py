"""`bncli monitor`: files of one model are joined, others refused."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Bncli
from tests.steps.test_report import Read


@pytest.fixture
def weeks(bncli: Bncli) -> list[str]:
    """Three monitors of thirds of a table, in the order of the table, and one of all of it."""
    assert bncli("fit", "iris.csv", "--param", "map", "-o", "m.bnc").code == 0
    header, *lines = Path("iris.csv").read_text().splitlines(keepends=True)
    for number in range(3):
        Path(f"{number}.csv").write_text(header + "".join(lines[number * 50 : (number + 1) * 50]))
        assert bncli("score", "m.bnc", f"{number}.csv", "-o", "s.csv", "--monitor", f"{number}.json").code == 0
    assert bncli("score", "m.bnc", "iris.csv", "-o", "s.csv", "--monitor", "all.json").code == 0
    return [f"{number}.json" for number in range(3)]


def test_joined_parts_are_the_whole(bncli: Bncli, weeks: list[str]) -> None:
    joined = json.loads(bncli("monitor", *weeks, "--json").out)
    overall = json.loads(Path("all.json").read_text())
    for key in ("rows", "drift", "drifted", "predictions", "log_p_quantiles"):
        assert joined[key] == overall[key]
    for key in ("mean_confidence", "mean_log_p", "log_loss"):
        assert joined[key] == pytest.approx(overall[key])
    for one, other in zip(joined["attributes"], overall["attributes"], strict=True):
        series = one.pop("series")
        assert one == other
        assert [len(values) for values in series.values()] == [3] * 5
    single = [json.loads(Path(week).read_text()) for week in weeks]
    assert [one["drifted"] for one in joined["monitors"]] == [one["drifted"] for one in single]
    assert [one["file"] for one in joined["monitors"]] == weeks


def test_text_and_picture(bncli: Bncli, weeks: list[str]) -> None:
    done = bncli("monitor", *weeks, "all.json", "--svg", "drift.svg")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines() if line.startswith(" ")]
    assert [line[0] for line in lines if line[0].endswith(".json")] == [*weeks, "all.json"] * 2
    bars = {line[0]: line[1] for line in lines if "_" in line[0]}
    assert bars.pop("sepal_width") == "██▅▁"
    assert list(bars.values()) == ["███▁"] * 3
    picture = Path("drift.svg").read_text()
    ET.fromstring(picture)
    assert all(name in picture for name in ("petal_width", "sepal_width", "limit 0.1"))


def test_a_page_tells_what_drifted_in_which_file(bncli: Bncli, weeks: list[str]) -> None:
    assert bncli("monitor", *weeks, "all.json", "--report", "weeks.html").code == 0
    read = Read(Path("weeks.html").read_text(encoding="utf-8"))
    assert "In 3 of 4 files (0.json, 1.json, 2.json)" in read.text
    assert "Drifted in 3 of 4 files; PSI at most" in read.text
    # the label whose thirds these are goes from all rows to none; the dashed line is what was true
    assert "Predicted for 100.0 % of rows in 0.json, 33.3 % in all.json. True labels (dashed): 100.0 %" in read.text
    assert "No value is missing" in read.text
    places = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(places) == len(set(places))


def test_a_page_of_unseen_and_missing_values_and_of_rows_without_class(bncli: Bncli, weeks: list[str]) -> None:
    header, first, *_ = Path("iris.csv").read_text().splitlines()
    name, cells = header.rsplit(",", 1)[0], first.rsplit(",", 1)[0].split(",")
    Path("gone.csv").write_text("\n".join([name, *[",".join(["", *cells[1:]])] * 40]) + "\n")
    Path("none.csv").write_text(name + "\n")
    for part in ("gone", "none"):
        assert bncli("score", "m.bnc", f"{part}.csv", "-o", "s.csv", "--monitor", f"{part}.json").code == 0
    Path("last.json").write_bytes(Path("none.json").read_bytes())
    assert bncli("monitor", "none.json", "gone.json", "last.json", "--report", "gone.html").code == 0
    told = Read(Path("gone.html").read_text(encoding="utf-8")).text
    assert "100.0 % of rows in gone.json" in told
    assert "The error rate is unknown, because these rows have no class" in told


def test_a_page_is_not_written_over_a_monitor(bncli: Bncli, weeks: list[str]) -> None:
    before = Path(weeks[1]).read_bytes()
    assert bncli("monitor", *weeks, "--report", weeks[1]).code == 2
    assert Path(weeks[1]).read_bytes() == before


def test_one_monitor_is_enough(bncli: Bncli, weeks: list[str]) -> None:
    assert bncli("monitor", weeks[0], "--svg", "one.svg").code == 0
    ET.fromstring(Path("one.svg").read_text())


def test_monitors_of_another_model_are_refused(bncli: Bncli, weeks: list[str]) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "--structure", "nb", "-o", "other.bnc").code == 0
    assert bncli("score", "other.bnc", "iris.csv", "-o", "s.csv", "--monitor", "other.json").code == 0
    done = bncli("monitor", weeks[0], "other.json", "--svg", "drift.svg")
    assert done.code == 3
    assert done.err.startswith("Error: the monitor belongs to a different model from that of 0.json, other.json;")
    assert not Path("drift.svg").exists()


def test_a_monitor_that_was_tampered_with(bncli: Bncli, weeks: list[str]) -> None:
    content = json.loads(Path("1.json").read_text())
    content["counts"]["attributes"][0]["training"][0] += 1
    Path("1.json").write_text(json.dumps(content))
    done = bncli("monitor", *weeks)
    assert (done.code, done.err.startswith("Error: the monitor describes the model differently")) == (3, True)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("iris.csv", "this is a text file, perhaps a table, not a bncli monitor file, iris.csv"),
        ("m.bnc", "this is a bncli model, not a bncli monitor file, m.bnc"),
        ("none.json", "no such file, none.json"),
    ],
)
def test_what_is_no_monitor(bncli: Bncli, weeks: list[str], path: str, said: str) -> None:
    done = bncli("monitor", weeks[0], path)
    assert done.code == 1
    assert done.err.startswith(f"Error: {said}"), done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gone.bnc", "iris.csv", "-o", "a.json"), "Error: no such file, gone.bnc"),
        (("1.json", "--on-bad-row", "skip"), "Error: --on-bad-row has no effect on monitors: they contain counts"),
        (("1.json", "-o", "a.json"), "Error: --output has no effect on monitors: they contain counts, not rows;"),
    ],
)
def test_options_about_rows_need_a_model(bncli: Bncli, weeks: list[str], words: tuple[str, ...], message: str) -> None:
    assert bncli("monitor", *words).err.startswith(message)


def test_a_model_and_rows_are_counted_as_scoring_counts_them(bncli: Bncli) -> None:
    assert bncli("fit", "wine_holes.csv", "--structure", "nb", "--param", "map", "-q", "-o", "m.bnc").code == 0
    assert bncli("score", "m.bnc", "wine_holes.csv", "-q", "-o", "s.csv", "--monitor", "scored.json").code == 0
    report = bncli("monitor", "m.bnc", "wine_holes.csv", "-o", "counted.json", "--json")
    assert (report.code, report.err) == (0, "")
    assert Path("counted.json").read_bytes() == Path("scored.json").read_bytes()
    joined = json.loads(bncli("monitor", "scored.json", "--json").out)
    found = json.loads(report.out)
    for one in (found, joined):
        one["mean_confidence"] = round(one["mean_confidence"], 12)
        one["log_loss"] = round(one["log_loss"], 12)
    assert {**found, "monitors": None} == {**joined, "monitors": None}
    assert found["monitors"][0]["file"] == "wine_holes.csv"
    ran = bncli("monitor", "m.bnc", "wine_holes.csv")
    assert (ran.code, ran.err) == (0, "no drift in 13 attributes; these rows look like the training rows\n")
    assert "wine_holes.csv" in ran.out


def test_values_never_seen_are_named_as_what_drifted(bncli: Bncli) -> None:
    """And such an attribute comes first, however small its PSI."""
    rows = [f"{'pqr'[i % 3]},{i % 7},{'uv'[i % 7 < 3]}" for i in range(300)]
    Path("t.csv").write_text("\n".join(["a,b,class", *rows, ""]))
    Path("new.csv").write_text(
        "\n".join(["a,b,class", *(f"s{row[1:]}" if i % 4 == 0 else row for i, row in enumerate(rows)), ""])
    )
    assert bncli("fit", "t.csv", "--structure", "nb", "--param", "map", "-q", "-o", "m.bnc").code == 0
    ran = bncli("monitor", "m.bnc", "new.csv", "--fail-on-drift")
    assert ran.code == 4
    assert "drift in 1 of 2 attributes: a (25 % never seen in training), new.csv" in ran.err
    lines = ran.out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(" attribute")) + 2
    assert [line.split()[0] for line in lines[first : first + 2]] == ["a", "b"]


def test_what_goes_with_rows_does_not_go_with_monitors(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--structure", "nb", "--param", "map", "-q", "-o", "m.bnc").code == 0
    assert bncli("monitor", "m.bnc", "iris.csv", "-o", "m.json", "-q").code == 0
    for words in (("-o", "x.json"), ("--missing", "x"), ("--fail-on-drift",), ("--format", "csv")):
        ran = bncli("monitor", "m.json", *words)
        assert (ran.code, "bncli monitor MODEL DATA" in ran.err) == (2, True)
    assert bncli("monitor", "m.bnc", "nothing.csv").code == 1
    assert "no column" in bncli("monitor", "m.bnc", "tumours.csv").err


def test_expected_figures_stand_beside_the_measured_ones(bncli: Bncli) -> None:
    """Without labels there are only the expected ones; they are the same, and so are those of joined parts."""
    assert bncli("fit", "tumours.csv", "--param", "map", "-q", "-o", "m.bnc").code == 0
    header, *lines = Path("tumours.csv").read_text().splitlines(keepends=True)
    for number, part in enumerate((lines[:200], lines[200:])):
        Path(f"{number}.csv").write_text(header + "".join(part))
        assert bncli("monitor", "m.bnc", f"{number}.csv", "-q", "-o", f"{number}.json").code == 0
    joined = json.loads(bncli("monitor", "0.json", "1.json", "--json").out)
    overall = json.loads(bncli("monitor", "m.bnc", "tumours.csv", "--json").out)
    assert joined["expected"].pop("ci").keys() == overall["expected"].pop("ci").keys() == joined["expected"].keys()
    assert joined["expected"] == pytest.approx(overall["expected"], abs=1e-12)
    measured = json.loads(bncli("evaluate", "tumours.csv", "--model", "m.bnc", "--json").out)
    assert [overall[name] for name in ("accuracy", "log_loss")] == pytest.approx(
        [measured[name] for name in ("accuracy", "log_loss")], abs=1e-12
    )
    assert overall["auc"] == pytest.approx(measured["auc"], abs=1e-3)
    cells = [line.rsplit(",", 1)[0] if header.endswith("diagnosis\n") else line.split(",", 1)[1] for line in lines]
    names = header.rsplit(",", 1)[0] if header.endswith("diagnosis\n") else header.split(",", 1)[1]
    Path("unlabelled.csv").write_text("\n".join(part.rstrip("\n") for part in (names, *cells)) + "\n")
    ran = bncli("score", "m.bnc", "unlabelled.csv", "-o", "s.csv", "--monitor", "u.json")
    assert "expected from the probabilities: accuracy 0.9" in ran.err
    unlabelled = json.loads(Path("u.json").read_text())
    assert {name: unlabelled["expected"][name] for name in ("accuracy", "log_loss", "auc")} == overall["expected"]
    assert (unlabelled["accuracy"], unlabelled["auc"], unlabelled["log_loss"]) == (None, None, None)
    text = bncli("monitor", "u.json").out
    assert "measured" not in text
    assert "AUC" in text


def test_periods_without_rows_labels_or_events_are_named(bncli: Bncli) -> None:
    assert bncli("fit", "tumours.csv", "--param", "map", "-q", "-o", "m.bnc").code == 0
    header, *lines = Path("tumours.csv").read_text().splitlines(keepends=True)
    at = header.rstrip("\n").split(",").index("diagnosis")

    def without_label(line: str) -> str:
        cells = line.rstrip("\n").split(",")
        return ",".join([*cells[:at], "", *cells[at + 1 :]]) + "\n"

    labels = [line.rstrip("\n").split(",")[at] for line in lines]
    benign = [line for line, label in zip(lines, labels, strict=True) if label == labels[0]]
    parts = {"both": lines, "one": benign, "none": map(without_label, lines[:50]), "empty": []}
    for name, part in parts.items():
        Path(f"{name}.csv").write_text(header + "".join(part))
        ran = bncli("score", "m.bnc", f"{name}.csv", "-o", "s.csv", "--monitor", f"{name}.json")
        assert ran.code == 0
        assert ("measured on" in ran.err) == (name in ("both", "one"))
        assert (f"all have the label '{labels[0]}'" in ran.err) == (name == "one")
    ran = bncli("monitor", *(f"{name}.json" for name in parts))
    notes = [line for line in ran.err.splitlines() if line.startswith("Note: ")]
    assert notes == [
        "Note: there are no rows in empty.json",
        "Note: there are no labels in none.json, so only expected figures are available",
        f"Note: all labelled rows in one.json have the label '{labels[0]}': the AUC needs both labels",
    ]
    joined = json.loads(bncli("monitor", *(f"{name}.json" for name in parts), "--json").out)
    auc, accuracy, expected = (
        [monitor[key] is not None for monitor in joined["monitors"]] for key in ("auc", "accuracy", "mean_confidence")
    )
    assert (auc, accuracy) == ([True, False, False, False], [True, True, False, False])
    assert expected == [True, True, True, False]
    assert bncli("monitor", "none.json").err == ""


def test_labels_that_the_model_does_not_have_are_counted(bncli: Bncli) -> None:
    assert bncli("fit", "tumours.csv", "--structure", "nb", "--param", "map", "-q", "-o", "m.bnc").code == 0
    text = Path("tumours.csv").read_text().replace(",benign\n", ",unsure\n", 2)
    Path("new.csv").write_text(text)
    note = (
        "Warning: 2 rows have a class that is not a label of the model; they are not included in the measured figures"
    )
    for words in (("monitor", "m.bnc", "new.csv"), ("score", "m.bnc", "new.csv", "-o", "s.csv", "--monitor", "m.json")):
        assert note in bncli(*words).err
    assert "not a label" not in bncli("monitor", "m.bnc", "tumours.csv").err


def test_no_file_is_counted_twice(bncli: Bncli, weeks: list[str]) -> None:
    ran = bncli("monitor", weeks[0], weeks[1], f"./{weeks[0]}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "Error: ./0.json is given twice; its rows would be counted twice\n"
