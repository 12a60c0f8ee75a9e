"""Figures of a table beside plain Python on its text: Counter, statistics, and scikit-learn's mutual information."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
import shlex
import statistics
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import mutual_info_score

from bncli.cli.main import run
from bncli.errors import BncliError, UsageError
from bncli.files.reading import column_summaries as summary
from bncli.files.reading.source import Source
from bncli.steps.describe import ColumnReport, DescribeReport, describe, weighted_median
from tests.batches import blocks_of

SAMPLE = Path(__file__).parents[2] / "sample_data"


def looked_at(path: Path, **said: object) -> DescribeReport:
    return describe(Source((str(path),), **said))  # type: ignore[arg-type]


def written(folder: Path, text: str, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def column(report: DescribeReport, name: str) -> ColumnReport:
    return next(c for c in report.columns if c.name == name)


def columns_of(path: Path) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[i].strip() for row in rows] for i, name in enumerate(header)}


@pytest.mark.parametrize("name", ["tic_tac_toe.csv", "iris.csv", "wine_holes.csv", "tumours.csv", "balance_scale.csv"])
def test_counts_are_those_of_the_text(name: str) -> None:
    table = columns_of(SAMPLE / name)
    report = looked_at(SAMPLE / name)
    assert report.rows == len(next(iter(table.values())))
    assert [c.name for c in report.columns] == list(table)
    for found in report.columns:
        texts = table[found.name]
        present = [text for text in texts if text not in ("", "?")]
        assert found.missing == len(texts) - len(present)
        assert found.exact
        assert found.example == present[0]
        if found.type == "numeric":
            numbers = [float(text) for text in present]
            assert found.distinct == len(set(numbers))
            assert (found.smallest, found.largest) == (min(numbers), max(numbers))
            assert found.median == pytest.approx(statistics.median(numbers))
        else:
            assert found.distinct == len(set(present))
            assert dict(found.commonest).items() <= Counter(present).items()
            assert [n for _, n in found.commonest] == [n for _, n in Counter(present).most_common(5)]


@pytest.mark.parametrize("name", ["tic_tac_toe.csv", "balance_scale.csv"])
def test_bits_are_the_mutual_information_with_the_class(name: str) -> None:
    table = columns_of(SAMPLE / name)
    report = looked_at(SAMPLE / name)
    assert report.class_name is not None
    label = table[report.class_name]
    for found in report.columns:
        assert found.bits == pytest.approx(mutual_info_score(table[found.name], label) / math.log(2), abs=1e-9)


def test_bits_of_many_numbers_are_those_of_the_default_cuts(tmp_path: Path) -> None:
    report = looked_at(SAMPLE / "iris.csv")
    assert run(["discretize", str(SAMPLE / "iris.csv"), "-q", "-o", str(tmp_path / "binned.csv")]) == 0
    binned = columns_of(tmp_path / "binned.csv")
    for name, texts in binned.items():
        right = mutual_info_score(texts, binned["class"]) / math.log(2)
        assert column(report, name).bits == pytest.approx(right, abs=1e-9)


def test_a_missing_value_is_a_value_to_the_class(tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"{a},{y}\n" for a, y in [("u", 1), ("", 0), ("", 0), ("v", 1), ("u", 0), ("?", 1)] * 5)
    table = columns_of(written(tmp_path, text))
    right = mutual_info_score([a.replace("?", "") for a in table["a"]], table["y"]) / math.log(2)
    assert column(looked_at(tmp_path / "x.csv"), "a").bits == pytest.approx(right)


def test_weights_weigh_the_information_and_rows_of_weight_0_do_not_count(tmp_path: Path) -> None:
    rows = [("u", "0", 2), ("u", "1", 1), ("v", "1", 3), ("v", "0", 1), ("w", "1", 0), ("", "1", 0)]
    written(tmp_path, "a,y,w\n" + "".join(f"{a},{y},{w}\n" for a, y, w in rows))
    report = looked_at(tmp_path / "x.csv", weights="w", class_name="y")
    repeated = [(a, y) for a, y, w in rows for _ in range(w)]
    right = mutual_info_score(*zip(*repeated, strict=True)) / math.log(2)
    found = column(report, "a")
    assert found.bits == pytest.approx(right)
    assert (found.distinct, found.missing) == (2, 0)
    assert column(report, "w").reason == "the row weights"


def test_types_and_reasons(tmp_path: Path) -> None:
    lines = ["id,name,same,few,copy,leak,noise,y"]
    rng = np.random.default_rng(0)
    for i in range(200):
        few, y = int(rng.integers(0, 5)), int(rng.integers(0, 2))
        lines.append(f"{1000 + i},n{i},k,{few},{few},{'ab'[y]},{rng.normal():.6f},{y}")
    report = looked_at(written(tmp_path, "\n".join(lines) + "\n"))
    assert {c.name: c.type for c in report.columns} == {
        "id": "numeric",
        "name": "identifier",
        "same": "constant",
        "few": "numeric",
        "copy": "numeric",
        "leak": "categorical",
        "noise": "numeric",
        "y": "categorical",
    }
    assert not column(report, "name").use
    assert not column(report, "same").use
    assert "identifier" in column(report, "id").reason
    assert column(report, "copy").same_as == "few"
    assert "alone determines the class" in column(report, "leak").reason
    assert column(report, "leak").bits == pytest.approx(column(report, "y").bits)
    assert column(report, "noise").reason == (
        "numbers, but no cut point gives information about the class (interactions may still use them)"
    )
    assert shlex.split(report.recommended) == [
        "bncli",
        "fit",
        str(tmp_path / "x.csv"),
        "--ignore",
        "id",
        "--ignore",
        "copy",
    ]


def test_a_column_that_is_the_class_again_says_so(tmp_path: Path) -> None:
    text = "a,b,class\n" + "".join(f"{i % 3},{'ab'[i % 2]},{'ab'[i % 2]}\n" for i in range(30))
    report = looked_at(written(tmp_path, text))
    assert column(report, "b").same_as == "class"
    assert column(report, "class").same_as is None


@pytest.mark.parametrize("name", ["iris.csv", "tumours.csv", "monks1.csv", "wine_holes.csv"])
def test_fit_does_what_is_said(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Types as in the cuts of the default line; what is left out has no cut or is not there."""
    report = looked_at(SAMPLE / name)
    assert run(["discretize", str(SAMPLE / name), "-q", "--cuts-out", str(tmp_path / "c.json")]) == 0
    cuts = {a["name"]: a for a in json.loads((tmp_path / "c.json").read_text())["attributes"]}
    for found in report.columns:
        if found.name == report.class_name:
            continue
        attribute = cuts[found.name]
        assert attribute["type"] == found.type
        assert found.use == (attribute.get("cuts") != [])


@pytest.mark.parametrize("name", ["iris.csv", "tic_tac_toe.csv"])
def test_the_schema_file_gives_the_model_of_the_plain_line(name: str, tmp_path: Path) -> None:
    report = describe(Source((str(SAMPLE / name),)), schema_out=str(tmp_path / "s.json"))
    words = shlex.split(report.recommended)
    assert words[3:] == ["--schema", str(tmp_path / "s.json")]
    assert run([*words[1:], "-q", "--param", "map", "-o", str(tmp_path / "a.bnc")]) == 0
    assert run(["fit", str(SAMPLE / name), "-q", "--param", "map", "-o", str(tmp_path / "b.bnc")]) == 0
    assert (tmp_path / "a.bnc").read_bytes() == (tmp_path / "b.bnc").read_bytes()


def test_the_schema_file_never_overwrites_what_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "a,y\n1,u\n2,v\n3,u\n")
    beside = written(tmp_path, '{"class": "y"}', "x.schema.json")
    for target in (path, beside):
        before = target.read_bytes()
        with pytest.raises(UsageError, match="cannot write"):
            describe(Source((str(path),)), schema_out=str(target))
        assert target.read_bytes() == before


def test_numbers_of_columnar_files_are_read_as_such(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "x": pa.array([None if i % 7 == 0 else float(v) for i, v in enumerate(rng.normal(size=300))]),
            "k": pa.array(rng.integers(0, 2, 300)),
            "t": pa.array([str(i % 9) for i in range(300)]),
            "y": pa.array(["ab"[i % 2] for i in range(300)]),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    report = looked_at(tmp_path / "x.parquet")
    assert [c.type for c in report.columns] == ["numeric", "categorical", "categorical", "categorical"]
    assert column(report, "x").missing == 43
    assert column(report, "x").median == pytest.approx(
        statistics.median(v for v in table["x"].to_pylist() if v is not None)
    )
    assert dict(column(report, "k").commonest) == Counter(map(str, table["k"].to_pylist()))


def test_beyond_the_cap_figures_are_near_and_said_to_be_estimates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "MAX_VALUES", 512)
    rng = np.random.default_rng(5)
    n = 20_000
    y = rng.integers(0, 2, n)
    x = rng.normal(size=n) + y
    names = np.minimum(rng.zipf(1.4, n), 5000) * 2 + (rng.random(n) < 0.3) * y
    path = tmp_path / "x.csv"
    path.write_text("x,name,y\n" + "".join(f"{a:.9f},n{b},{c}\n" for a, b, c in zip(x, names, y, strict=True)))
    report = looked_at(path)
    found = column(report, "x")
    assert not found.exact
    assert found.distinct == pytest.approx(n, rel=0.15)
    assert found.smallest == pytest.approx(x.min())
    assert found.largest == pytest.approx(x.max())
    assert found.median == pytest.approx(np.median(x), abs=0.2)
    assert found.bits == pytest.approx(
        mutual_info_score(np.digitize(x, np.linspace(-2, 3, 12)), y) / math.log(2), rel=0.3
    )
    named = column(report, "name")
    assert named.distinct == pytest.approx(len(set(names)), rel=0.25)
    assert named.commonest[0] == Counter(f"n{b}" for b in names).most_common(1)[0]
    assert named.bits == pytest.approx(mutual_info_score(names, y) / math.log(2), rel=0.25)


@pytest.mark.parametrize("size", [40, 1000, 1 << 20])
def test_blocks_and_threads_change_nothing(size: int, tmp_path: Path) -> None:
    source = Source((str(SAMPLE / "wine_holes.csv"),))
    first = summary.summarise_table(source)
    with blocks_of(size):
        other = summary.summarise_table(source, threads=2)
    for name, found in first.columns.items():
        again = other.columns[name]
        assert found.digest == again.digest
        assert (found.low, found.high, found.example) == (again.low, again.high, again.example)
        assert found.counted.rows.tolist() == again.counted.rows.tolist()
        assert found.counted.by_class.tolist() == again.counted.by_class.tolist()


def test_one_column_alone_has_no_class(tmp_path: Path) -> None:
    report = looked_at(written(tmp_path, "a\n1\n2\n2\n5\n"))
    assert report.class_name is None
    assert column(report, "a").bits is None
    assert column(report, "a").median == 2
    assert report.notes


def test_a_class_that_is_always_missing_is_described_and_another_proposed(tmp_path: Path) -> None:
    text = "a,b,y\n" + "".join(f"{i % 7 / 2},{'uv'[i % 2]},\n" for i in range(40))
    report = looked_at(written(tmp_path, text))
    assert column(report, "y").type == "constant"
    assert not column(report, "y").use
    assert "--class b" in report.recommended
    assert run([*shlex.split(report.recommended)[1:], "--ignore", "y", "-q", "-o", str(tmp_path / "m.bnc")]) == 0


def test_a_class_of_numbers_is_no_class(tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"{'uv'[i % 2]},{i * 1.5}\n" for i in range(600))
    report = looked_at(written(tmp_path, text))
    assert column(report, "y").type == "numeric"
    assert not column(report, "y").use
    assert "numbers" in column(report, "y").reason
    assert column(report, "y").distinct == 600
    assert column(report, "a").bits is None
    assert "--class a" in report.recommended


def test_rows_without_a_class_are_counted_and_the_flag_recommended(tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"{i % 7},{['u', 'v', ''][i % 3]}\n" for i in range(60))
    report = looked_at(written(tmp_path, text))
    assert report.of_class is not None
    assert report.of_class.unlabelled == 20
    assert report.of_class.rows == (20, 20)
    assert "--drop-unlabelled" in report.recommended
    assert run([*shlex.split(report.recommended)[1:], "-q", "-o", str(tmp_path / "m.bnc")]) == 0


def test_what_was_typed_is_in_the_recommended_line(tmp_path: Path) -> None:
    path = written(
        tmp_path, "a b|y|w|k|g\n" + "".join(f"{i % 7}|{i % 2}|1|{i % 3}|q{i % 2}\n" for i in range(60)), "o x.csv"
    )
    report = describe(
        Source(
            (str(path),),
            delimiter="|",
            class_name="y",
            weights="w",
            ignore=("k",),
            categorical=("a b",),
            missing_tokens=("-",),
        )
    )
    assert not column(report, "k").use
    words = shlex.split(report.recommended)
    assert words[2] == str(path)
    for flag, value in (
        ("--delimiter", "|"),
        ("--class", "y"),
        ("--weights", "w"),
        ("--ignore", "k"),
        ("--missing", "-"),
    ):
        assert words[words.index(flag) + 1] == value
    assert run([*words[1:], "-q", "-o", str(tmp_path / "m.bnc")]) == 0


HOSTILE = {
    "empty": (b"", "empty"),
    "ragged": (b"a,b\n1,2\n3\n", "malformed row"),
    "not UTF-8": (b"a,b\nx\xff,2\n", "UTF-8"),
    "twice": (b"a,a\n1,2\n", "twice|two|same"),
    "zip": (b"PK\x03\x04xx", "ZIP"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_bad_files_are_refused_as_by_every_reader(kind: str, tmp_path: Path) -> None:
    content, what = HOSTILE[kind]
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(BncliError, match=what):
        looked_at(tmp_path / "x.csv")


def test_a_header_without_rows_is_a_table_of_none(tmp_path: Path) -> None:
    report = looked_at(written(tmp_path, "a,b\n"))
    assert report.rows == 0
    assert [c.distinct for c in report.columns] == [0, 0]
    assert {c.type for c in report.columns} == {"constant"}


def test_odd_values_do_no_harm(tmp_path: Path) -> None:
    text = 'a,b,y\n"x\ny",\u200b,u\n"1e999",é,v\n "nan" ,-0.0,u\n' + "z" * 100_000 + ",0.0,v\n"
    report = looked_at(written(tmp_path, text))
    assert report.rows == 4
    assert json.loads(json.dumps(report.as_json()))["rows"] == 4


@pytest.mark.parametrize("weights", [[1, 1, 1], [3, 0.0, 1], [2, 2, 2], [1, 4, 1], [5, 1, 1]])
def test_the_median_of_repeated_values(weights: list[int]) -> None:
    values = [4.0, 1.0, 9.0]
    repeated = [v for v, w in zip(values, weights, strict=True) for _ in range(int(w))]
    used = np.array(weights) > 0
    assert weighted_median(np.array(values)[used], np.array(weights, float)[used]) == statistics.median(repeated)


def test_dates_and_national_numbers_are_what_fit_makes_of_them(tmp_path: Path) -> None:
    lines = ["joined;paid;code;y"]
    days = [np.datetime64("2023-01-01") + 3 * i for i in range(90)]
    for i, day in enumerate(days):
        when = day.astype(object)
        lines.append(
            f"{when:%d.%m.%Y};€ {1000 + i}.234,5{i % 9};{i % 30:03d};{'uv'[when.month > 6]}".replace("€ 1", "€ 1.")
        )
    path = written(tmp_path, "\n".join(lines) + "\n")
    report = looked_at(path)
    assert [c.type for c in report.columns] == ["date", "numeric", "categorical", "categorical"]
    joined = column(report, "joined")
    assert (joined.smallest, joined.largest) == (str(days[0]), str(days[-1]))
    assert "day.month.year" in joined.reason
    assert joined.bits == pytest.approx(column(report, "y").bits)
    assert "codes" in column(report, "code").reason


def test_times_of_columnar_files_are_dates(tmp_path: Path) -> None:
    when = pa.array(np.datetime64("2024-02-28T12:00:00") + 3600 * np.arange(100), pa.timestamp("us"))
    table = pa.table({"at": when, "y": pa.array(["ab"[i % 2] for i in range(100)])})
    pq.write_table(table, tmp_path / "x.parquet")
    found = column(looked_at(tmp_path / "x.parquet"), "at")
    assert (found.type, found.distinct, found.missing) == ("date", 100, 0)
    assert (found.smallest, found.largest) == ("2024-02-28T12:00:00", "2024-03-03T15:00:00")
    assert found.example == "2024-02-28 12:00:00"


@pytest.mark.parametrize("odd", ["none", "99.99.2020"])
def test_a_value_that_was_not_kept_still_keeps_a_column_from_being_dates(
    odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The type is that of all values, however few of them are kept."""
    monkeypatch.setattr(summary, "MAX_VALUES", 64)
    days = np.datetime64("1990-01-01") + np.arange(400)
    texts = [f"{day.astype(object):%d.%m.%Y}" for day in days]
    for place in (3, 200, 390):
        spoilt = [*texts[:place], odd, *texts[place:]]
        text = "d,y\n" + "".join(f"{d},{'uv'[i % 2]}\n" for i, d in enumerate(spoilt))
        assert column(looked_at(written(tmp_path, text)), "d").type == "identifier"
    text = "d,y\n" + "".join(f"{d},{'uv'[i % 2]}\n" for i, d in enumerate(texts))
    found = column(looked_at(written(tmp_path, text)), "d")
    assert (found.type, found.smallest, found.largest) == ("date", "1990-01-01", str(days[-1]))


def test_marks_of_missing_values_are_recommended_where_they_spoil_numbers(tmp_path: Path) -> None:
    text = "a,b,y\n" + "".join(
        f"{'n/a' if i % 9 == 4 else i / 4},{'-' if i % 5 == 0 else 'pq'[i % 2]},{'uv'[i % 2]}\n" for i in range(80)
    )
    report = looked_at(written(tmp_path, text))
    words = shlex.split(report.recommended)
    assert words[words.index("--missing") + 1] == "+n/a"
    assert words.count("--missing") == 1
    assert column(looked_at(tmp_path / "x.csv", missing_tokens=("+n/a",)), "a").type == "numeric"


def test_a_column_without_a_name_is_like_any_other(tmp_path: Path) -> None:
    report = looked_at(written(tmp_path, ",y\n1,u\n2,v\n3,u\n"))
    assert [c.name for c in report.columns] == ["", "y"]
    assert column(report, "").median == 2


def test_bins_of_two_labels_are_counts_of_the_table(tmp_path: Path) -> None:
    table = columns_of(SAMPLE / "tumours.csv")
    report = looked_at(SAMPLE / "tumours.csv", positive="benign")
    assert report.bins is None
    report = describe(Source((str(SAMPLE / "tumours.csv"),), positive="benign"), bins=True)
    assert report.event == "benign"
    assert report.bins is not None
    ivs = [entry.iv for entry in report.bins]
    assert ivs == sorted(ivs, reverse=True)
    assert {entry.attribute for entry in report.bins} == set(table) - {"diagnosis"}
    entry = next(entry for entry in report.bins if entry.attribute == "outline")
    for value, own in zip(entry.values, entry.bins, strict=True):
        labels = [d for o, d in zip(table["outline"], table["diagnosis"], strict=True) if o == value]
        assert (own.rows, own.events) == (len(labels), labels.count("benign"))
        share = labels.count("benign") / table["diagnosis"].count("benign")
        others = labels.count("malignant") / table["diagnosis"].count("malignant")
        assert own.woe == pytest.approx(math.log(share / others))
    reverse = describe(Source((str(SAMPLE / "tumours.csv"),)), bins=True)
    assert reverse.event == "malignant"
    assert reverse.bins is not None
    assert [entry.iv for entry in reverse.bins] == pytest.approx(ivs)


def test_a_missing_value_is_a_bin(tmp_path: Path) -> None:
    path = written(
        tmp_path, "a,y\n" + "".join(f"{'?' if i % 4 == 0 else 'xy'[i % 2]},{'np'[i % 3 > 0]}\n" for i in range(60))
    )
    report = describe(Source((str(path),)), bins=True)
    assert report.bins is not None
    assert [(v, own.rows) for v, own in zip(report.bins[0].values, report.bins[0].bins, strict=True)] == [
        ("x", 15),
        ("y", 30),
        ("missing", 15),
    ]


def test_bins_need_two_labels() -> None:
    with pytest.raises(UsageError, match="--bins needs a class with two labels: 'class' has 3"):
        describe(Source((str(SAMPLE / "iris.csv"),)), bins=True)
    with pytest.raises(UsageError, match="no such label"):
        describe(Source((str(SAMPLE / "tumours.csv"),), positive="x"), bins=True)


def test_the_median_with_fractional_weights() -> None:
    assert weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.3, 1.5, 1.2])) == 2.0
    assert weighted_median(np.array([1.0, 2.0]), np.array([0.25, 0.25])) == 1.5


def test_times_of_day_of_columnar_files_are_shown_as_such(tmp_path: Path) -> None:
    at = pa.array([dt.time(i % 24, i // 24) for i in range(100)], pa.time64("us"))
    pq.write_table(pa.table({"at": at, "y": pa.array(["ab"[i % 2] for i in range(100)])}), tmp_path / "x.parquet")
    found = column(looked_at(tmp_path / "x.parquet"), "at")
    assert (found.smallest, found.largest, found.example) == ("00:00:00", "23:03:00", "00:00:00")
