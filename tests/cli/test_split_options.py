"""`--group` and `--time`: rows that belong together, and rows in the order of time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import bncli as package
from bncli.errors import BncliError
from tests.cli.conftest import Bncli

FAST = ("--structure", "nb", "--param", "map")
HEADER = ("patient", "visit", "age", "weight", "smoker", "outcome")
Row = list[str]


def visits(n_patients: int, seed: int) -> list[Row]:
    """Patients with 3 to 8 visits each, whose attributes hardly change and whose outcome is drawn at random."""
    rng = np.random.default_rng(seed)
    rows = []
    for patient in range(n_patients):
        age, weight, smoker = rng.integers(20, 90), rng.normal(78, 14), rng.choice(["no", "yes"])
        outcome, day = "bad" if rng.random() < 0.43 else "good", np.datetime64("2020-01-01") + int(rng.integers(600))
        for _ in range(rng.integers(3, 9)):
            day += int(rng.integers(10, 60))
            rows.append([f"p{patient}", str(day), str(age), f"{weight + rng.normal(0, 0.3):.1f}", smoker, outcome])
    return rows


def write(name: str, rows: list[Row], change: Callable[[int, Row], None] = lambda i, row: None) -> str:
    rows = [list(row) for row in rows]
    for i, row in enumerate(rows):
        change(i, row)
    Path(name).write_text("\n".join(",".join(row) for row in [list(HEADER), *rows]) + "\n")
    return name


def setting(column: str, value: Callable[[int, str], str]) -> Callable[[int, Row], None]:
    """Return a change of one column, from the number of the row and the old value."""

    def change(i: int, row: Row) -> None:
        row[HEADER.index(column)] = value(i, row[HEADER.index(column)])

    return change


def evaluated(bncli: Bncli, *words: str) -> dict[str, Any]:
    ran = bncli("evaluate", *words, "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def test_groups_give_the_truth_about_visits(bncli: Bncli) -> None:
    """The loss that is reported is the loss on new patients, and beyond chance without groups."""
    write("visits.csv", visits(120, 1))
    write("new.csv", visits(400, 2))
    words = ("--ignore", "visit", "--structure", "tan", "--arcs", "all", "--penalty", "1")
    grouped = evaluated(bncli, "visits.csv", "--group", "patient", *words)
    plain = evaluated(bncli, "visits.csv", "--ignore", "patient", *words)
    true = evaluated(bncli, "visits.csv", "--test", "new.csv", "--group", "patient", *words)
    assert grouped["split"] == {"kind": "group", "columns": ["patient"], "units": 120}
    assert plain["split"]["kind"] == "rows"
    assert plain["log_loss"] < 0.6 * true["log_loss"]
    assert grouped["log_loss"] == pytest.approx(true["log_loss"], rel=0.12)


def test_fit_holds_out_whole_groups_and_the_model_records_them(bncli: Bncli) -> None:
    rows = visits(60, 1)
    words = ("fit", write("visits.csv", rows), "--group", "patient", "--ignore", "visit", "--structure", "nb")
    report = json.loads(bncli(*words, "-o", "m.bnc", "--json").out)
    assert report["split"] == {"kind": "group", "columns": ["patient"], "units": 60}
    assert (report["held_out"]["rows"], report["held_out"]["units"]) == (len(rows), 60)
    assert report["held_out"]["log_loss"] > 0.95 * report["held_out"]["base_log_loss"]
    assert "patient" not in json.dumps(json.loads(bncli("inspect", "m.bnc", "--json").out)["attributes"])
    assert json.loads(bncli("inspect", "m.bnc", "--json").out)["split"] == report["split"]
    assert "patient (60 groups)" in bncli("inspect", "m.bnc").out
    assert f"{len(rows)} rows of 60 groups" in bncli(*words, "-o", "n.bnc").err


@pytest.mark.parametrize(
    "words",
    [
        ("--structure", "tan"),
        pytest.param(("--structure", "auto", "--effort", "1"), marks=pytest.mark.slow),
        ("--structure", "nb", "--param", "map", "--calibrate", "temperature"),
        pytest.param(("--structure", "nb", "--param", "map", "--threshold", "best:f1"), marks=pytest.mark.slow),
        ("--structure", "nb", "--param", "map", "--sets", "0.2"),
        pytest.param(("--structure", "nb", "--param", "extended", "--early-stop", "cv"), marks=pytest.mark.slow),
        ("--structure", "nb", "--param", "map", "--max-attributes", "2"),
        ("--structure", "skdb", "--k", "1", "--param", "map"),
    ],
)
def test_one_row_per_group_gives_the_bytes_without_groups(bncli: Bncli, words: tuple[str, ...]) -> None:
    write("rows.csv", visits(12, 3), setting("patient", lambda i, old: f"p{i}"))
    for option, name in (("--ignore", "plain.bnc"), ("--group", "grouped.bnc")):
        assert bncli("fit", "rows.csv", option, "patient", *words, "-o", name, "-q").code == 0
    assert Path("plain.bnc").read_bytes() == Path("grouped.bnc").read_bytes()


def test_only_groups_that_are_tested_are_counted(bncli: Bncli) -> None:
    # one row per group and day: the first of four blocks is learned from only
    rows = [f"p{i},2024-{1 + i // 20:02d}-{1 + i % 20:02d},{i % 7},{'uv'[i % 3 % 2]}\n" for i in range(80)]
    Path("days.csv").write_text("patient,day,lab,ill\n" + "".join(rows))
    ran = bncli(
        *("evaluate", "days.csv", "--group", "patient", "--time", "day", "--folds", "4"),
        *("--structure", "nb", "--param", "map"),
    )
    assert "60 rows of 60 groups" in ran.out


def test_hundreds_of_groups_stand_beside_a_column_of_names(bncli: Bncli) -> None:
    rows = [f"p{i // 2},{'yn'[i // 2 % 2]},{i % 7},{'uv'[i // 2 % 3 % 2]}\n" for i in range(700)]
    Path("many.csv").write_text("patient,smoker,lab,ill\n" + "".join(rows))
    ran = bncli("evaluate", "many.csv", "--group", "patient", "--structure", "nb", "--param", "map")
    assert ran.code == 0
    assert "700 rows of 350 groups" in ran.out


def test_one_row_per_group_gives_the_figures_without_groups(bncli: Bncli) -> None:
    write("rows.csv", visits(12, 3), setting("patient", lambda i, old: f"p{i}"))
    plain, grouped = (evaluated(bncli, "rows.csv", option, "patient", *FAST) for option in ("--ignore", "--group"))
    for report in (plain, grouped):
        del report["seconds"], report["split"]
        for fold in report["folds"]:
            del fold["seconds"]
    assert plain == grouped


def test_the_bootstrap_of_regions_draws_whole_groups(bncli: Bncli) -> None:
    write("rows.csv", visits(30, 3))
    write("alone.csv", visits(30, 3), setting("patient", lambda i, old: f"p{i}"))
    words = ("--structure", "kikuchi", "--bootstrap", "2", "-q")
    by_rows = bncli("learn-structure", "rows.csv", "--ignore", "patient", *words).out
    assert bncli("learn-structure", "alone.csv", "--group", "patient", *words).out == by_rows
    by_groups = json.loads(bncli("learn-structure", "rows.csv", "--group", "patient", *words).out)
    expected = json.loads(by_rows)
    assert by_groups["regions"] == expected["regions"]
    assert by_groups["bootstrap_log_loss"] != expected["bootstrap_log_loss"]


METHODS = (
    ("--structure", "auto", "--effort", "1"),
    ("--structure", "interactions"),
    ("--structure", "nb", "--param", "map", "--calibrate", "per-class"),
    ("--structure", "nb", "--param", "map", "--threshold", "best:f1"),
    ("--structure", "nb", "--param", "map", "--sets", "0.2"),
    ("--structure", "nb", "--param", "extended", "--early-stop", "cv"),
    ("--structure", "nb", "--param", "map", "--max-attributes", "2"),
    ("--structure", "skdb", "--k", "1", "--param", "map"),
    ("--structure", "tan", "--arcs", "cv", "--window", "4", "--gap", "5d"),
)
GROUPS, TIMES = ("--group", "patient"), ("--time", "visit")


@pytest.mark.parametrize(
    ("words", "split"),
    # every method with both, and with one of the two
    [(words, split) for i, words in enumerate(METHODS) for split in ((*GROUPS, *TIMES), (GROUPS, TIMES)[i % 2])],
)
def test_every_method_takes_groups_and_times(bncli: Bncli, words: tuple[str, ...], split: tuple[str, ...]) -> None:
    if "--window" in words and "--time" not in split:
        words = words[:4]
    write("visits.csv", visits(60 if "--threshold" in words else 30, 4))
    ran = bncli("fit", "visits.csv", *split, *words, "-o", "m.bnc", "--json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert (
        report["split"]["kind"] == {1: "group" if split[0] == "--group" else "time", 2: "group+time"}[len(split) // 2]
    )
    if report["held_out"] is not None and "--time" in split and "auto" not in words:
        assert report["held_out"]["rows"] < report["rows"]


def test_blocks_are_drawn_and_stand_on_the_page(bncli: Bncli) -> None:
    """One dot per block, which says its dates and its loss; error bars that end where the intervals do."""
    words = (write("visits.csv", visits(60, 5)), *FAST, "--time", "visit", "--ignore", "patient")
    blocks = evaluated(bncli, *words, "--svg", "drawn", "--report", "page.html")["blocks"]
    root = ElementTree.parse("drawn/blocks.svg").getroot()
    dots = list(root.iter("{http://www.w3.org/2000/svg}circle"))
    tips = [title.text for dot in dots for title in dot.iter("{http://www.w3.org/2000/svg}title")]
    assert tips == [
        f"{block['from']} to {block['to']}, {block['rows']} rows: {block['log_loss']:.4g}" for block in blocks
    ]
    page = Path("page.html").read_text()
    assert "Stability over time" in page
    for block in blocks:
        low, high = block["ci"]["log_loss"]
        assert f"{low:.4f} - {high:.4f}" in page


def test_blocks_follow_in_time(bncli: Bncli) -> None:
    """The blocks of an independent loop over the sorted rows."""
    rows = visits(60, 5)
    write("visits.csv", rows)
    found = evaluated(bncli, "visits.csv", "--time", "visit", "--folds", "4", "--ignore", "patient", *FAST)
    assert found["split"] == {"kind": "time", "columns": ["visit"], "units": len(rows)}
    assert len(found["blocks"]) == len(found["folds"]) == 3
    days = sorted(row[1] for row in rows)
    before = 0
    for block in found["blocks"]:
        own = [day for day in days if block["from"] <= day <= block["to"]]
        assert len(own) == block["rows"]
        assert block["train_rows"] == sum(day < block["from"] for day in days)
        assert block["train_rows"] >= before + block["rows"] // 2
        before = block["train_rows"]
    assert found["rows"] == sum(block["rows"] for block in found["blocks"])
    assert found["log_loss"] == pytest.approx(np.mean([block["log_loss"] for block in found["blocks"]]))
    with_gap = evaluated(bncli, "visits.csv", "--time", "visit", "--folds", "4", "--gap", "30d", *FAST)
    for block in with_gap["blocks"]:
        last = str(np.datetime64(block["from"]) - 30)
        assert block["train_rows"] == sum(day < last for day in days)
    windowed = evaluated(bncli, "visits.csv", "--time", "visit", "--folds", "4", "--window", "1", *FAST)
    firsts = [days[0], *(block["from"] for block in found["blocks"])]
    for first, block in zip(firsts, windowed["blocks"], strict=False):
        assert block["train_rows"] == sum(first <= day < block["from"] for day in days)
    assert "Blocks in time order" in bncli("evaluate", "visits.csv", "--time", "visit", *FAST).out


def test_tested_rows_alone_are_written_and_grouped(bncli: Bncli) -> None:
    rows = visits(40, 6)
    write("visits.csv", rows)
    words = ("--time", "visit", "--by", "smoker", "--predictions", "p.csv", "--threshold", "0.4", "--reliability")
    found = evaluated(bncli, "visits.csv", *words, *FAST)
    assert len(Path("p.csv").read_text().splitlines()) == found["rows"] + 1 < len(rows)
    assert sum(group["rows"] for group in found["groups"]) == found["rows"]
    first = min(block["from"] for block in found["blocks"])
    smokers = sum(row[4] == "yes" and row[1] >= first for row in rows)
    assert [group["rows"] for group in found["groups"] if group["value"] == "yes"] == [smokers]


@pytest.mark.slow
def test_learning_curves_and_comparisons_take_whole_groups(bncli: Bncli) -> None:
    write("visits.csv", visits(60, 7))
    found = evaluated(bncli, "visits.csv", "--group", "patient", "--train-rows", "30,100,all", "--folds", "3", *FAST)
    assert [point["rows"] for point in found["learning_curve"]][:2] == [30, 100]
    learner = (
        "--learner",
        "a=--structure nb --param map",
        "--learner",
        "b=--structure nb --param map --smoothing laplace",
    )
    for split, n_folds in ((("--group", "patient"), 3), (("--time", "visit"), 2)):
        words = (*split, "--folds", "3", *learner, "--jobs", "1", "--resume", f"{split[1]}.jsonl")
        ran = bncli("compare", "visits.csv", *words, "--json")
        assert ran.code == 0, ran.err
        assert len(Path(f"{split[1]}.jsonl").read_text().splitlines()) == 1 + 2 * n_folds
        assert bncli("compare", "visits.csv", *words, "--json").out == ran.out
    ran = bncli("compare", "visits.csv", "--group", "smoker", *learner, "--folds", "2", "--repeats", "2", "--jobs", "1")
    assert ran.code == 0, ran.err


def test_columns_of_groups_are_attributes_only_if_they_are_named(bncli: Bncli) -> None:
    write("visits.csv", visits(40, 8))
    for words, names in (((), False), (("--categorical", "smoker"), True)):
        ran = bncli("fit", "visits.csv", "--group", "smoker,patient", *words, *FAST, "-o", "m.bnc", "--json")
        assert json.loads(ran.out)["split"]["columns"] == ["smoker", "patient"]
        attributes = json.loads(bncli("inspect", "m.bnc", "--json").out)["attributes"]
        assert ("smoker" in [attribute["name"] for attribute in attributes]) is names


@pytest.mark.parametrize(
    ("change", "words", "code", "message"),
    [
        (("patient", lambda i, old: "x"), ("--group", "patient"), 1, "all rows belong to one group"),
        (
            ("patient", lambda i, old: str(i % 3)),
            ("--group", "patient"),
            1,
            "5 folds need at least 5 groups of rows, but 'patient' has only 3, visits.csv; use --folds 3",
        ),
        (("visit", lambda i, old: "soon" if i == 5 else old), ("--time", "visit"), 1, "for example 'soon'"),
        (("visit", lambda i, old: "2020-01-01"), ("--time", "visit"), 1, "the same time in every row"),
        (("visit", lambda i, old: "7"), ("--time", "visit"), 1, "the same time in every row"),
        (("visit", lambda i, old: "" if i == 5 else old), ("--time", "visit"), 1, "1 row has no time"),
        (
            ("visit", lambda i, old: f"2020-01-0{i % 2 + 1}"),
            ("--time", "visit"),
            1,
            "not 5, visits.csv; use --folds 2",
        ),
        (
            ("visit", lambda i, old: old),
            ("--time", "visit", "--gap", "9999d"),
            1,
            "--gap 9999d is longer",
        ),
        (("visit", lambda i, old: old), ("--time", "visit", "--gap", "30"), 2, "contains dates; give for example 30d"),
        (("visit", lambda i, old: str(i)), ("--time", "visit", "--gap", "30d"), 2, "contains numbers"),
        (("visit", lambda i, old: old), ("--time", "visit", "--gap", "soon"), 2, "takes a duration"),
        (("visit", lambda i, old: old), ("--gap", "30d"), 2, "--gap has no effect without --time"),
        (("visit", lambda i, old: old), ("--window", "1"), 2, "--window has no effect without --time"),
        (("visit", lambda i, old: old), ("--time", "visit", "--window", "5"), 2, "--window 5 has no effect, since"),
        (("visit", lambda i, old: old), ("--time", "visit", "--repeats", "2"), 2, "--repeats has no effect"),
        (
            ("visit", lambda i, old: old),
            ("--time", "visit", "--group", "visit"),
            2,
            "both with --group and with --time",
        ),
        (
            ("patient", lambda i, old: str(i % 2)),
            ("--group", "patient", "--folds", "2", "--max-attributes", "2"),
            1,
            "--max-attributes needs held-out rows, but all rows belong to one group",
        ),
        (
            ("patient", lambda i, old: str(i % 4)),
            ("--group", "patient", "--folds", "2", "--calibrate", "per-class"),
            1,
            "only 2 groups have the label",
        ),
        (("visit", lambda i, old: old), ("--group", "pateint"), 2, "did you mean 'patient'?"),
        (("visit", lambda i, old: old), ("--group", "outcome", "--class", "outcome"), 2, "contains the class"),
        (("visit", lambda i, old: old), ("--group", "age", "--weights", "age"), 2, "contains the row weights"),
        (("visit", lambda i, old: old), ("--group", "smoker", "--time", "visit"), 1, "contains no new group"),
    ],
)
def test_what_cannot_be_split_is_one_clear_line(
    bncli: Bncli, change: tuple[str, Callable[[int, str], str]], words: tuple[str, ...], code: int, message: str
) -> None:
    write("visits.csv", visits(40, 9), setting(*change))
    ran = bncli("evaluate", "visits.csv", *words, *FAST)
    lines = [line for line in ran.err.splitlines() if line.startswith("Error")]
    assert (ran.code, len(lines)) == (code, 1), ran.err
    assert message in lines[0]


def test_fewer_groups_than_folds_are_fewer_folds_and_reported(bncli: Bncli) -> None:
    write("visits.csv", visits(20, 9), setting("patient", lambda i, old: str(i % 3)))
    ran = bncli("fit", "visits.csv", "--group", "patient", "--structure", "nb", "-o", "m.bnc")
    assert "only 3 groups in 'patient', so rows are held out in at most 3 folds, not 5" in ran.err
    write("more.csv", visits(20, 9), setting("patient", lambda i, old: str(i % 5)))
    ran = bncli("fit", "more.csv", "--group", "patient", "--structure", "nb", "-o", "m.bnc")
    assert "groups, so" not in ran.err


def test_rows_without_a_group_and_labels_of_one_group_are_reported(bncli: Bncli) -> None:
    rows = visits(40, 10)
    write("some.csv", rows, setting("patient", lambda i, old: "" if i in (3, 4) else old))
    ran = bncli("evaluate", "some.csv", "--group", "patient", *FAST)
    assert "2 rows lack a value in 'patient'; each is treated as a separate group" in ran.err
    assert evaluated(bncli, "some.csv", "--group", "patient", *FAST)["split"]["units"] == 42
    write("ugly.csv", [[*row[:-1], "ugly" if row[0] == "p3" else row[-1]] for row in rows])
    ran = bncli("fit", "ugly.csv", "--group", "patient", *FAST, "-o", "m.bnc")
    assert ran.code == 0
    assert "rows of the label 'ugly' belong to one group" in ran.err
    write("alike.csv", rows, setting("patient", lambda i, old: rows[i][-1]))
    for words in (("fit", "alike.csv", "-o", "m.bnc"), ("evaluate", "alike.csv", "--folds", "2")):
        ran = bncli(*words, "--group", "patient", "--structure", "auto")
        assert ran.err.count("one group") == 1, ran.err
        assert (
            "each label of 'outcome' has all its rows in one group of 'patient', so held-out rows have labels"
            in ran.err
        )


def test_columns_of_lists_cannot_name_groups_or_times(bncli: Bncli) -> None:
    rows = visits(20, 9)
    of_lists = {"ids": [[int(row[0][1:])] for row in rows], "point": [{"x": i} for i in range(len(rows))]}
    columns = {name: [row[i] for row in rows] for i, name in enumerate(HEADER)}
    parquet.write_table(pa.table({**columns, **of_lists}), "nested.parquet")
    assert bncli("fit", "nested.parquet", *FAST, "-o", "m.bnc").code == 0
    for option, name, text in (
        ("--group", "ids", "--group ids: that column contains lists, which cannot name a group"),
        ("--time", "ids", "--time ids: that column contains lists, which cannot be times"),
        ("--group", "point", "--group point: that column contains structs, which cannot name a group"),
    ):
        for words in (FAST, ("--model", "m.bnc"))[: 1 if option == "--time" else 2]:
            ran = bncli("evaluate", "nested.parquet", *words, option, name)
            assert ran.code == 2
            errors = [line for line in ran.err.splitlines() if line.startswith("Error")]
            assert errors == [f"Error: {text}, nested.parquet; choose a column of single values"], ran.err


@pytest.mark.parametrize(
    ("texts", "earlier"),
    [
        (["1.3.2020", "2.3.2020", "15.3.2020", "1.4.2020"], [0, 1, 2]),
        (["9:30", "10:30", "11:00", "8:00"], [3, 0, 1]),
        (["3,5", "2,5", "10,0", "11,5"], [1, 0, 2]),
    ],
)
def test_times_are_read_as_attributes_are(bncli: Bncli, texts: list[str], earlier: list[int]) -> None:
    rows = [(texts[i % 4], "ab"[i % 3 == 0], "xy"[i % 5 > 2]) for i in range(40)]
    Path("t.csv").write_text("\n".join([";".join(row) for row in [("when", "a", "y"), *rows]]) + "\n")
    found = evaluated(bncli, "t.csv", "--time", "when", "--folds", "4", *FAST)
    assert [block["train_rows"] for block in found["blocks"]] == [10, 20, 30]
    assert [block["rows"] for block in found["blocks"]] == [10, 10, 10]
    last = next(i for i in range(4) if i not in earlier)
    assert found["blocks"][-1]["from"] == found["blocks"][-1]["to"]
    assert str(found["blocks"][-1]["to"])[:4] in (texts[last].replace(",", ".")[:4], "2020", "1970")


def test_codes_and_clusters_refuse_groups(bncli: Bncli) -> None:
    write("visits.csv", visits(40, 11))
    assert bncli("encode", "visits.csv", "-o", "v.codes", "-q").code == 0
    for words, message in (
        (("v.codes", "--group", "patient"), "--group has no effect on v.codes"),
        (("visits.csv", "--group", "patient", "--cluster", "local:1"), "leave --cluster out"),
    ):
        ran = bncli("fit", *words, "--param", "map", "-o", "m.bnc")
        assert ran.code == 2
        assert message in ran.err


def test_python_takes_the_same_words(bncli: Bncli) -> None:
    rows = visits(40, 12)
    write("visits.csv", rows)
    words: dict[str, Any] = {"structure": "nb", "param": "map"}
    model = package.fit("visits.csv", group="patient", ignore="visit", **words)
    assert model.report["split"] == {"kind": "group", "columns": ["patient"], "units": 40}
    with pytest.warns(UserWarning, match="if (they|these) belong together"):
        mine = package.evaluate("visits.csv", time="visit", window=1, gap="3d", folds=3, **words)
    cli = evaluated(bncli, "visits.csv", "--time", "visit", "--window", "1", "--gap", "3d", "--folds", "3", *FAST)
    assert mine["blocks"] == cli["blocks"]
    assert package.evaluate("visits.csv", test="visits.csv", group=["patient"], ignore="visit", **words)["rows"] == len(
        rows
    )
    compared = package.compare(["visits.csv"], {"a": "--param map"}, group="patient", ignore="visit", folds=3)
    assert compared["protocol"]["folds"] == 3
    with pytest.raises(BncliError, match="whole number of blocks"):
        package.fit("visits.csv", time="visit", window=1.5, **words)


def test_columns_of_categories_may_be_groups_and_are_no_attributes(bncli: Bncli) -> None:
    rows = visits(20, 12)
    table: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(HEADER)}
    table |= {name: [float(text) for text in table[name]] for name in ("age", "weight")}
    table |= {name: pa.array(table[name]).dictionary_encode() for name in ("patient", "visit")}
    model = package.fit(table, group="patient", time="visit", structure="nb", param="map")
    assert model.report["split"]["kind"] == "group+time"
    assert set(model.scorer().columns) <= {"age", "weight", "smoker"}
    kept = package.fit(table, group="patient", categorical="patient", ignore="visit", structure="nb", param="map")
    assert "patient" in kept.scorer().columns


def test_the_classifier_takes_groups() -> None:
    pytest.importorskip("sklearn")
    from bncli.api.estimator import Classifier

    rows = visits(60, 13)
    x = np.array([[float(row[2]), float(row[3])] for row in rows])
    y, groups = [row[-1] for row in rows], [row[0] for row in rows]
    options = {"arcs": "all", "penalty_center": 0.0}
    grouped = Classifier("tan", options=options).fit(x, y, groups=groups)
    plain = Classifier("tan", options=options).fit(x, y)
    single = Classifier("tan", options=options).fit(x, y, groups=np.arange(len(y)))
    assert grouped.model_ is not None
    assert plain.model_ is not None
    assert single.model_ is not None
    losses = [each.model_.report["held_out"]["log_loss"] for each in (grouped, plain)]
    assert losses[0] > losses[1]
    assert grouped.model_.report["split"]["units"] == 60
    with pytest.raises(ValueError, match="inconsistent"):
        Classifier().fit(x, y, groups=groups[:-1])
