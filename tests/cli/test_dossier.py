"""`bncli dossier`: figures are those of other commands and packages, every item stands once, bad input is one line."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from bncli.cli.main import run
from bncli.steps.dossier.checklists import CHECKLISTS, FIELDS, TRIPOD
from bncli.steps.dossier.findings import _name_periods
from tests.cli.conftest import SAMPLE_DATA, Bncli
from tests.steps.test_report import Read
from tests.sweeps import first_few

pytestmark = pytest.mark.usefixtures("fewer_export_rows")
Rows = list[list[str]]


def write(path: Path | str, header: list[str], rows: Rows) -> None:
    with Path(path).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def read(name: str) -> list[dict[str, str]]:
    with Path(name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models of the first rows of tumours, with a month and a site, and the others as test.csv."""
    folder = tmp_path_factory.mktemp("dossier")
    header, *rows = csv.reader((SAMPLE_DATA / "tumours.csv").read_text().splitlines())
    rows = [
        [f"2024-{1 + i % 3:02d}-{1 + i % 28:02d}", "north" if i % 5 else "south", *row] for i, row in enumerate(rows)
    ]
    write(folder / "train.csv", ["month", "site", *header], rows[:300])
    write(folder / "test.csv", ["month", "site", *header], rows[300:])
    plain = ["fit", str(folder / "train.csv"), "--ignore", "month,site", "-q"]
    assert run([*plain, "--structure", "tan", "--param", "map", "-o", str(folder / "m.bnc")]) == 0
    assert run([*plain, "--structure", "nb", "--increasing", "worst_area", "-o", str(folder / "nb.bnc")]) == 0
    assert run(["fit", str(SAMPLE_DATA / "iris.csv"), "--param", "map", "-q", "-o", str(folder / "iris.bnc")]) == 0
    return folder


@pytest.fixture
def table(bncli: Bncli, folder: Path) -> tuple[list[str], Rows]:
    """Header and rows of test.csv, in a folder with the models."""
    for path in folder.iterdir():
        shutil.copy(path, path.name)
    header, *rows = csv.reader(Path("test.csv").read_text().splitlines())
    return header, rows


def made(bncli: Bncli, *words: str, model: str = "m.bnc", data: str = "test.csv") -> dict[str, Any]:
    ran = bncli("dossier", model, "--data", data, "-o", "out", *words)
    assert ran.code == 0, ran.err
    content: dict[str, Any] = json.loads(Path("out/dossier.json").read_text(), parse_constant=pytest.fail)
    return content


@pytest.mark.usefixtures("table")
def test_figures_are_those_of_the_other_commands(bncli: Bncli) -> None:
    content = made(bncli, "--by", "site", "--beside", "nb.bnc")
    words = ("evaluate", "test.csv", "--model", "m.bnc", "--by", "site", "--gains", "--net-benefit", "--json")
    evaluated = json.loads(bncli(*words).out)
    del evaluated["seconds"], evaluated["schema_version"]
    assert content["evaluation"] == evaluated
    monitored = json.loads(bncli("monitor", "m.bnc", "test.csv", "--json").out)
    assert content["monitor"] == {name: own for name, own in monitored.items() if name != "schema_version"}
    verified = json.loads(bncli("verify", "m.bnc", "--disclosure", "--json").out)
    assert content["verification"]["disclosure"] == verified["disclosure"]
    assert content["verification"]["self_test"] == verified["self_test"]
    inspected = json.loads(bncli("inspect", "m.bnc", "--tables", "--effects", "--json").out)
    assert content["specification"]["tables"] == inspected["tables"]
    other = json.loads(bncli("evaluate", "test.csv", "--model", "nb.bnc", "--json").out)
    (challenger,) = content["challengers"]
    assert {name: challenger[name] for name in ("auc", "log_loss")} == {
        name: other[name] for name in ("auc", "log_loss")
    }
    difference = challenger["log_loss_difference"]
    assert difference["mean"] == pytest.approx(other["log_loss"] - evaluated["log_loss"], abs=1e-12)
    assert difference["low"] < difference["mean"] < difference["high"]
    described = json.loads(bncli("describe", "test.csv", "--class", "diagnosis", "--json").out)
    assert content["data"]["columns"] == described["columns"]
    for file in content["files"]:
        assert file["sha256"] == hashlib.sha256(Path(file["path"]).read_bytes()).hexdigest()
    assert [file["kind"] for file in content["files"]] == ["model", "data", "challenger"]


def test_figures_of_periods_are_those_of_scikit_learn(bncli: Bncli, table: tuple[list[str], Rows]) -> None:
    periods = made(bncli, "--time", "month")["periods"]
    assert bncli("score", "m.bnc", "test.csv", "-o", "scores.csv", "-q").code == 0
    p = np.array([float(row["p_malignant"]) for row in read("scores.csv")])
    _, rows = table
    true = np.array([row[-1] == "malignant" for row in rows])
    assert [period["value"] for period in periods] == ["2024-01", "2024-02", "2024-03"]
    for period in periods:
        own = np.array([row[0].startswith(period["value"]) for row in rows])
        assert period["rows"] == own.sum()
        assert period["auc"] == pytest.approx(roc_auc_score(true[own], p[own]), abs=1e-9)
        assert period["log_loss"] == pytest.approx(log_loss(true[own], p[own]), abs=1e-9)
        assert period["accuracy"] == pytest.approx(accuracy_score(true[own], p[own] > 0.5), abs=1e-9)
        low, high = period["ci"]["log_loss"]
        assert low < period["log_loss"] < high
        log_odds = np.log(p[own]) - np.log1p(-p[own]) + period["calibration_in_the_large"]
        assert (1 / (1 + np.exp(-log_odds))).sum() == pytest.approx(true[own].sum(), abs=1e-7)


def test_figures_of_periods_that_the_probabilities_do_not_promise_are_named(
    bncli: Bncli, table: tuple[list[str], Rows]
) -> None:
    header, rows = table
    other = {"benign": "malignant", "malignant": "benign"}
    wrong = [[*row[:-1], other[row[-1]]] if row[0].startswith("2024-02") else row for row in rows]
    write("wrong.csv", header, wrong)
    content = made(bncli, "--time", "month", data="wrong.csv")
    (fact,) = (i["facts"] for i in content["checklists"]["model_validation"] if i["item"] == "M3")
    text = " ".join(fact)
    n_compared = 0
    for period in content["periods"]:
        for name, title in (("accuracy", "accuracy"), ("log_loss", "log-loss"), ("auc", "AUC")):
            ends = period["expected"]["ci"][name]
            if ends is not None and period[name] is not None:
                n_compared += 1
                is_outside = not ends[0] <= period[name] <= ends[1]
                assert is_outside == (f"{title} of {period['value']} (" in text)
    assert "accuracy of 2024-02 (" in text
    assert f"{n_compared} figures were compared" in text


@pytest.mark.slow
@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("column", first_few(["day", "many", "year"], 2))
def test_periods_of_many_times(bncli: Bncli, column: str) -> None:
    """Days of two years become years or quarters; many numbers become tenths of the rows; few days stay days."""
    header, *rows = csv.reader(Path("test.csv").read_text().splitlines())
    times = {
        "day": [f"2024-05-{1 + i % 20:02d}" for i in range(len(rows))],
        "year": [f"{2000 + i % 7}-{1 + i % 12:02d}-11" for i in range(len(rows))],
        "many": [f"{i * 7 % len(rows)}" for i in range(len(rows))],
    }
    write(
        "timed.csv",
        [*header[:-1], "when", header[-1]],
        [[*r[:-1], t, r[-1]] for r, t in zip(rows, times[column], strict=True)],
    )
    values = [period["value"] for period in made(bncli, "--time", "when", data="timed.csv")["periods"]]
    expected = {"day": sorted(set(times["day"])), "year": [str(2000 + i) for i in range(7)]}
    if column == "many":
        assert len(values) == 10
    else:
        assert values == expected[column]


def test_close_times_are_periods_of_different_names() -> None:
    times = np.array([1_700_000_000_001.0, 1_700_000_000_000.0, 0.5])
    assert _name_periods(times, False)[1] == ("0.5", "1700000000000", "1700000000001")


@pytest.mark.usefixtures("table")
def test_the_model_can_be_recomputed_from_the_file(bncli: Bncli) -> None:
    """By the program, and by hand: the sum of one entry per table, normalized over the labels."""
    specification = made(bncli)["specification"]
    assert bncli("score", "m.bnc", "test.csv", "-o", "scores.csv", "-q").code == 0
    expected = [float(row["p_malignant"]) for row in read("scores.csv")]
    program: dict[str, Any] = {}
    exec(specification["python"], program)
    rows = read("test.csv")
    names = {attribute["name"]: attribute for attribute in specification["attributes"]}
    for row, p in list(zip(rows, expected, strict=True))[:40]:
        values = {name: float(row[name]) if names[name]["type"] == "numeric" else row[name] for name in names}
        assert program["predict_proba"](values)["malignant"] == pytest.approx(p, abs=1e-9)
        codes = {}
        for name, attribute in names.items():
            if attribute["type"] == "numeric":
                codes[name] = sum(cut < values[name] for cut in attribute["cuts"])
            else:
                codes[name] = attribute["levels"].index(row[name])
        scores = np.zeros(2)
        for one in specification["tables"]:
            entry: Any = one["values"]
            for name in one["attributes"]:
                entry = entry[codes[name]]
            scores += np.array(entry)
        assert 1 / (1 + math.exp(scores[0] - scores[1])) == pytest.approx(p, abs=1e-9)


def test_every_item_stands_once_and_every_field_has_an_item() -> None:
    for checklist in CHECKLISTS:
        numbers = Counter(item.number for item in checklist.items)
        assert set(numbers.values()) == {1}
        assert all(item.fields or item.facts for item in checklist.items)
    tripod = {"".join(filter(str.isdigit, item.number)) for item in TRIPOD.items}
    assert tripod == {str(number) for number in range(1, 28)}
    named = {field for checklist in CHECKLISTS for item in checklist.items for field in item.fields}
    assert named == {*FIELDS}


@pytest.mark.slow
@pytest.mark.usefixtures("table")
def test_every_fact_is_known_where_everything_is_given(bncli: Bncli) -> None:
    """The words by which items refer to facts are those that `facts_of` knows."""
    Path("about.toml").write_text('properties = ["radius never decides alone"]\n')
    words = ("--time", "month", "--by", "site", "--beside", "m.bnc", "--about", "about.toml")
    content = made(bncli, *words, model="nb.bnc")
    for checklist in CHECKLISTS:
        answers = content["checklists"][checklist.word]
        assert [answer["item"] for answer in answers] == [item.number for item in checklist.items]
        for item, answer in zip(checklist.items, answers, strict=True):
            assert len(answer["facts"]) == len(item.facts), item
            assert answer["missing"] == list(item.fields)
    assert "--increasing worst_area" in content["specification"]["command"]
    first, second = content["verification"]["properties"]
    assert first["property"] == "the probability of malignant never falls as worst_area rises"
    assert (first["holds"], first["counter_example"]) == (True, None)
    assert second["property"] == "radius never decides alone"


@pytest.mark.slow
@pytest.mark.usefixtures("table")
def test_what_a_person_writes_answers_items(bncli: Bncli) -> None:
    template = bncli("dossier", "--template").out
    empty = tomllib.loads(template)
    assert empty.pop("properties") == []
    assert empty == dict.fromkeys(FIELDS, "")
    Path("about.toml").write_text(template)
    none = made(bncli, "--about", "about.toml")
    assert none["files"][-1]["kind"] == "about"
    assert set(none["about"].values()) == {None}
    unanswered = [answer for answer in none["checklists"]["tripod_ai"] if answer["item"] == "17"]
    assert [(answer["status"], answer["missing"]) for answer in unanswered] == [("not provided", ["ethics"])]
    Path("about.toml").write_text("\n".join(f'{name} = "<b>{name}</b> & more"' for name in FIELDS))
    every = made(bncli, "--about", "about.toml")
    statuses = {answer["status"] for answers in every["checklists"].values() for answer in answers}
    assert "partly provided" not in statuses
    page = Path("out/dossier.html").read_text()
    assert "&lt;b&gt;intended_use&lt;/b&gt; &amp; more" in page
    assert "<b>intended_use" not in page
    places = re.findall(r' id="([^"]+)"', page)
    assert len(places) == len(set(places))
    assert {*re.findall(r'href="#([^"]+)"', page)} <= {*places}
    for outside in ("http://", "https://", " src=", "@import"):
        assert outside not in page.replace("http://www.w3.org", "")


@pytest.mark.slow
@pytest.mark.usefixtures("table")
def test_the_same_bytes_whatever_the_threads(bncli: Bncli) -> None:
    found = []
    for threads in ("1", "2"):
        made(bncli, "--threads", threads, "--time", "month")
        found.append([Path(f"out/dossier.{ending}").read_bytes() for ending in ("html", "json")])
    assert found[0] == found[1]


def change(month: str | None, label: str) -> Callable[[list[str]], list[str]]:
    return lambda row: [*row[:-1], label] if month is None or row[0].startswith(month) else row


@pytest.mark.parametrize("month", first_few(["2024-02", None]))
def test_one_label_in_a_period(bncli: Bncli, table: tuple[list[str], Rows], month: str | None) -> None:
    header, rows = table
    write("one.csv", header, [*map(change(month, "benign"), rows)])
    content = made(bncli, "--time", "month", "--by", "site", data="one.csv")
    aucs = {period["value"]: period["auc"] for period in content["periods"]}
    assert aucs["2024-02"] is None
    assert (aucs["2024-01"] is None) == (month is None)


@pytest.mark.slow
def test_rows_without_a_class_are_counted_apart(bncli: Bncli, table: tuple[list[str], Rows]) -> None:
    header, rows = table
    write("gone.csv", header, [*map(change("2024-02", ""), rows)])
    content = made(bncli, "--time", "month", data="gone.csv")
    n_gone = sum(row[0].startswith("2024-02") for row in rows)
    assert (content["unlabelled_rows"], content["rows"]) == (n_gone, len(rows) - n_gone)
    overall = made(bncli, "--time", "month")
    for now, before in zip(content["periods"], overall["periods"], strict=True):
        assert now["expected"] == before["expected"]
        if now["value"] == "2024-02":
            assert (now["rows"], now["unlabelled_rows"], now["log_loss"], now["calibration_slope"]) == (
                (0, n_gone, None, None)
            )
            assert before["rows"] == n_gone
        else:
            assert now == before
    write("month.csv", header, [row for row in rows if row[0].startswith("2024-02")])
    monitor = json.loads(bncli("monitor", "m.bnc", "month.csv", "--json").out)
    expected = content["periods"][1]["expected"]
    for own, other in ((expected, monitor["expected"]), (expected["ci"], monitor["expected"]["ci"])):
        assert own.keys() == other.keys()
        for name in ("accuracy", "log_loss", "auc"):
            assert own[name] == pytest.approx(other[name], abs=1e-9)
    assert (
        "no row of 2024-02 has a class"
        in bncli("dossier", "m.bnc", "--data", "gone.csv", "--time", "month", "-o", "out").err
    )
    assert content["monitor"]["rows"] == len(rows)


def test_a_group_without_labels_is_named(bncli: Bncli, table: tuple[list[str], Rows]) -> None:
    header, rows = table
    site = rows[0][1]
    write("gone.csv", header, [[*row[:-1], ""] if row[1] == site else row for row in rows])
    ran = bncli("dossier", "m.bnc", "--data", "gone.csv", "--by", "site", "-o", "out")
    assert f"Warning: the figures by site leave out {site}, because no row with these values has a class" in ran.err
    values = [group["value"] for group in json.loads(Path("out/dossier.json").read_text())["evaluation"]["groups"]]
    assert sorted(values) == sorted({row[1] for row in rows} - {site})


@pytest.mark.usefixtures("table")
def test_more_than_two_classes(bncli: Bncli) -> None:
    content = made(bncli, model="iris.bnc", data="iris.csv")
    assert content["evaluation"]["on_training_rows"] is True
    assert content["monitor"]["expected"]["auc"] is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("m.bnc", "-o", "out"), 2, "a dossier needs labelled rows; add --data TEST"),
        (("m.bnc", "--data", "test.csv"), 2, "the folder of the dossier is missing; add -o DIR"),
        (("--data", "test.csv", "-o", "out"), 2, "the model is missing"),
        (("--template", "m.bnc"), 2, "MODEL has no effect with --template"),
        (("--template", "-o", "out"), 2, "-o has no effect with --template"),
        (("m.bnc", "--data", "-", "-o", "out"), 2, "the data are read several times"),
        (("m.bnc", "--data", "test.csv", "-o", "test.csv"), 2, "-o needs a folder"),
        (("m.bnc", "--data", "test.csv", "-o", "no/such/out"), 1, "no/such"),
        (("m.bnc", "--data", "test.csv", "--time", "mont", "-o", "out"), 2, "mont"),
        (("m.bnc", "--data", "test.csv", "--by", "diagnosis", "-o", "out"), 2, "that is the class"),
        (("m.bnc", "--data", "iris.csv", "-o", "out"), 3, "iris.csv"),
        (("m.bnc", "--data", "other.csv", "-o", "out"), 3, "'ill', which is not a label of the model"),
        (("m.bnc", "--data", "unknown.csv", "-o", "out"), 1, "the class is missing in every row"),
        (("m.bnc", "--data", "bare.csv", "-o", "out"), 3, "the table has no column 'diagnosis'"),
        (("m.bnc", "--data", "test.csv", "--beside", "iris.bnc", "-o", "out"), 3, "a model for comparison"),
        (
            ("m.bnc", "--data", "test.csv", "--beside", "nb.bnc", "--beside", "./nb.bnc", "-o", "out"),
            2,
            "--beside ./nb.bnc is given twice",
        ),
        (("test.csv", "--data", "test.csv", "-o", "out"), 3, "not a bncli model"),
        (("m.bnc", "--data", "test.csv", "--about", "a.toml", "-o", "out"), 1, "no key 'intended_us', a.toml; did you"),
        (("m.bnc", "--data", "test.csv", "--about", "b.toml", "-o", "out"), 1, "'title' is not a string, b.toml"),
        (("m.bnc", "--data", "test.csv", "--about", "c.toml", "-o", "out"), 1, "the file is not valid TOML"),
        (("m.bnc", "--data", "test.csv", "--about", "d.toml", "-o", "out"), 2, "the model has no column 'colour'"),
        (("m.bnc", "--data", "test.csv", "--about", "e.toml", "-o", "out"), 1, "no such file, e.toml"),
        (("m.bnc", "--data", "test.csv", "--about", "f.toml", "-o", "out"), 1, "'properties' is not a list"),
    ],
)
def test_bad_input_is_one_line(
    bncli: Bncli, table: tuple[list[str], Rows], words: tuple[str, ...], code: int, said: str
) -> None:
    header, rows = table
    write("other.csv", header, [*map(change(None, "ill"), rows)])
    write("unknown.csv", header, [*map(change(None, ""), rows)])
    write("bare.csv", header[:-1], [row[:-1] for row in rows])
    texts = {"a": 'intended_us = ""', "b": "title = 3", "c": "title = ", "f": 'properties = "x"'}
    texts["d"] = 'properties = ["colour never decides alone"]'
    for name, text in texts.items():
        Path(f"{name}.toml").write_text(f"{text}\n")
    ran = bncli("dossier", *words)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert ran.err.startswith("Error: ")
    assert ran.err.count("\n") == 1
    assert not Path("out").exists()


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("data", "warns"), [("train.csv", True), ("test.csv", False)])
def test_training_rows_are_warned_about(bncli: Bncli, data: str, warns: bool) -> None:
    ran = bncli("dossier", "m.bnc", "--data", data, "-o", "out")
    assert ("Warning: the rows look like the training rows" in ran.err) is warns


@pytest.mark.usefixtures("table")
def test_the_page_says_how_it_is_made_and_what_use_each_threshold_is(bncli: Bncli) -> None:
    words = ("--time", "month", "--by", "site", "--beside", "nb.bnc")
    content = made(bncli, *words)
    page = Read(Path("out/dossier.html").read_text())
    assert "bncli dossier m.bnc --data test.csv --time month --by site --beside nb.bnc -o DIR" in page.text
    assert "bncli report" not in page.text
    benefit = {line["threshold"]: line["model"] for line in content["evaluation"]["net_benefit"]}
    shown = page.text.partition("at selected thresholds")[2]
    assert all(f"{threshold:g}{benefit[threshold]:.4f}" in shown for threshold in (0.05, 0.2, 0.9))
    assert "No other model was compared" not in page.text
    made(bncli)
    assert "No other model was compared (--beside)" in Read(Path("out/dossier.html").read_text()).text


@pytest.mark.usefixtures("table")
def test_the_page_lists_every_table_with_cells_of_few_rows(bncli: Bncli) -> None:
    assert (
        bncli("fit", "test.csv", "--structure", "tan", "--param", "map", "-o", "tan.bnc", "--class", "diagnosis").code
        == 0
    )
    disclosed = made(bncli, model="tan.bnc")["verification"]["disclosure"]
    rare = [one for one in disclosed["tables"] if one["below"] or one["unknown"]]
    text = Read(Path("out/dossier.html").read_text()).text
    assert rare
    assert all(
        f"{' & '.join(one['attributes'])}{one['cells']:,}{one['below']:,}{one['unknown']:,}" in text for one in rare
    )


@pytest.mark.usefixtures("table")
def test_the_sentence_on_fairness_keeps_the_names(bncli: Bncli, table: tuple[list[str], Rows]) -> None:
    header, rows = table
    named = [name.replace("site", "Site") for name in header]
    Path("named.csv").write_text("\n".join(",".join(row) for row in [named, *rows]) + "\n")
    made(bncli, "--by", "Site", data="named.csv")
    text = Read(Path("out/dossier.html").read_text()).text
    assert "Largest differences by Site for " in text
    assert "differences by site" not in text
