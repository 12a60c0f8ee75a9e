"""`bncli describe`: what is printed fits a page of 80 columns, and goes where it belongs."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from bncli.cli.main import run
from tests import started
from tests.cli.conftest import SAMPLE_DATA, Bncli
from tests.office import OFFICE, TABLES, sheet_of, write
from tests.sweeps import first_few


def test_a_line_a_column(bncli: Bncli) -> None:
    ran = bncli("describe", "iris.csv")
    assert ran.code == 0
    assert ran.err == ""
    lines = ran.out.splitlines()
    assert lines[0] == "150 rows, 5 columns"
    assert lines[1] == "Class class: setosa 33.3 %, versicolor 33.3 %, virginica 33.3 %; 1.585 bits"
    (petal,) = [line.split() for line in lines if line.startswith(" petal_length") and "numeric" in line]
    assert petal == ["petal_length", "numeric", "43", "-", "1.357", "uses"]
    (values,) = [line.split() for line in lines if line.startswith(" petal_length") and "numeric" not in line]
    assert values == ["petal_length", "1.4", "1", "4.35", "6.9"]
    assert lines[-1] == "Recommended: bncli fit iris.csv"


def test_what_warnings_add_to_the_command(bncli: Bncli) -> None:
    shutil.copy(SAMPLE_DATA / "visits.csv", "visits.csv")
    ran = bncli("describe", "visits.csv")
    assert "If the warnings about the rows are right, add --group patient to the command" in ran.out
    assert ran.out.splitlines()[-1] == "Recommended: bncli fit visits.csv"
    assert json.loads(bncli("describe", "visits.csv", "--json").out)["recommended"] == "bncli fit visits.csv"


UNUSUAL = {"prefer not to say", "n.d.", "<5"}
"""What nobody can know to be no number."""


def readable(folder: Path, name: str, n_rows: int = 900) -> Path:
    """The office table in UTF-8, whatever encoding it is made in."""
    path = write(name, folder, n_rows=n_rows)
    path.write_text(path.read_text(encoding=TABLES[name].encoding), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", first_few(OFFICE, 4))
def test_it_fits_80_columns(name: str, bncli: Bncli, tmp_path: Path) -> None:
    ran = bncli("describe", readable(tmp_path, name, 300).name, "--class", TABLES[name].class_name)
    assert ran.code == 0
    *lines, recommended = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert recommended.startswith(f"Recommended: bncli fit {TABLES[name].file}")


def test_long_names_are_shortened_and_odd_ones_do_no_harm(bncli: Bncli, tmp_path: Path) -> None:
    long, odd = "x" * 1000, "bell\a[red]"
    rows = "".join(f"{i % 7},{'y' * 500}{i % 3},{i % 2}\n" for i in range(60))
    (tmp_path / "x.csv").write_text(f"{long},{odd},class\n{rows}")
    ran = bncli("describe", "x.csv")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "\a" not in ran.out
    assert "[red]" in ran.out
    assert "xxx..." in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("name", OFFICE)
def test_the_recommended_line_runs_and_mends_what_marks_spoil(name: str, bncli: Bncli, tmp_path: Path) -> None:
    """With the marks it names, a column that was meant as numbers or dates is one."""
    path = readable(tmp_path, name)
    first = json.loads(bncli("describe", path.name, "--class", TABLES[name].class_name, "--json").out)
    words = shlex.split(first["recommended"])
    again = json.loads(bncli("describe", *words[2:], "--json").out)
    types = {column["name"]: column["type"] for column in again["columns"]}
    sheet = sheet_of(name, n_rows=900)
    for column, made in sheet.items():
        if made.kind == "date":
            assert types[column] == "date"
        elif made.kind == "numeric" and not UNUSUAL.intersection(made.texts):
            assert types[column] == "numeric" or len(set(made.texts)) <= 3
        elif made.kind in ("identifier", "constant") and column not in words:
            assert types[column] == made.kind
    assert bncli(*words[1:], "-q", "--structure", "nb", "--param", "map", "-o", "m.bnc").code == 0


def test_from_a_pipe_in_any_format(bncli: Bncli, tmp_path: Path) -> None:
    text = (SAMPLE_DATA / "iris.csv").read_bytes()
    done = subprocess.run([started.bncli(), "describe", "-", "--json"], input=text, capture_output=True)
    piped = json.loads(done.stdout)
    filed = json.loads(bncli("describe", "iris.csv", "--json").out)
    assert piped["columns"] == filed["columns"]
    assert piped["recommended"] == "bncli fit - -o model.bnc"


def test_a_schema_file_is_written_and_told_on_the_standard_error(bncli: Bncli, tmp_path: Path) -> None:
    ran = bncli("describe", "tumours.csv", "--schema-out", "s.json")
    assert ran.err == "written     s.json\n"
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["class"] == "diagnosis"
    assert content["categorical"] == ["size", "outline", "symmetry"]
    assert bncli("fit", "tumours.csv", "--schema", "s.json", "-q", "--param", "map").code == 0


def test_what_cannot_be_written_is_said_before_anything_is_read(bncli: Bncli) -> None:
    ran = bncli("describe", "iris.csv", "--schema-out", "no/such/folder.json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    assert bncli("describe", "iris.csv", "--schema-out", "iris.csv").code == 2


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (("nowhere.csv",), 1, "nowhere.csv"),
        (("iris.csv", "--class", "petal"), 2, "there is no column 'petal'"),
        (("iris.csv", "--ignore", "class", "--class", "class"), 2, "class"),
        ((), 2, "DATA"),
    ],
)
def test_mistakes_are_told_in_a_line(words: tuple[str, ...], code: int, what: str, bncli: Bncli) -> None:
    ran = bncli("describe", *words)
    assert ran.code == code
    assert what in ran.err
    assert "Traceback" not in ran.err


def test_very_wide_tables_show_what_tells_most(bncli: Bncli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bncli.cli.describe._MOST_COLUMNS", 20)
    header = ",".join([*(f"c{i}" for i in range(50)), "y"])
    rows = [",".join([*("01"[r % 3 == i % 3 if i % 40 else r % 2] for i in range(50)), "uv"[r % 2]]) for r in range(40)]
    (tmp_path / "x.csv").write_text("\n".join([header, *rows]) + "\n")
    ran = bncli("describe", "x.csv")
    assert ran.code == 0
    assert "... and 31 more columns" in ran.out
    assert {" c0", " c40", " y"} <= {line[:5].rstrip() for line in ran.out.splitlines()}
    assert len(json.loads(bncli("describe", "x.csv", "--json").out)["columns"]) == 51


def test_help_loads_no_numpy() -> None:
    code = "import sys; from bncli.cli.main import run; run(['describe', '--help']); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.rstrip().endswith("False")


def test_settings_reach_it(monkeypatch: pytest.MonkeyPatch, bncli: Bncli) -> None:
    monkeypatch.setenv("BNCLI_CLASS", "petal_width")
    assert json.loads(bncli("describe", "iris.csv", "--json").out)["class"] == "petal_width"
    assert run(["help", "describe"]) == 0


def test_names_that_are_values_and_a_guessed_class_are_warnings(bncli: Bncli, tmp_path: Path) -> None:
    rows = ["red,old,3,yes", "blue,new,4,no", "red,old,5,no", "blue,old,6,yes"] * 3
    (tmp_path / "bare.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "named.csv").write_text("\n".join(["colour,age,size,sold", *rows]) + "\n")
    report = json.loads(bncli("describe", str(tmp_path / "bare.csv"), "--json").out)
    assert report["warnings"][0] == (
        "some columns contain their own name as a value ('red', 'old', 'yes'): "
        "is the header missing? Add --names a,b,c to give one"
    )
    ran = bncli("describe", str(tmp_path / "named.csv"))
    assert "Warning: 'sold' is used as the class because it is the last column" in ran.out
    assert "header" not in ran.out
    typed = json.loads(bncli("describe", str(tmp_path / "named.csv"), "--class", "sold", "--json").out)
    assert typed["warnings"] == []


def test_a_header_without_rows_recommends_nothing(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("a,b,y\n")
    report = json.loads(bncli("describe", "h.csv", "--json").out)
    assert (report["rows"], report["recommended"]) == (0, "")
    assert report["notes"] == ["the table has a header and no rows"]
    assert [(one["use"], one["reason"]) for one in report["columns"]] == [(False, "there are no rows")] * 3
    ran = bncli("describe", "h.csv", "--report", "h.html")
    assert ran.code == 0
    assert "Recommended" not in ran.out
    assert "bncli fit" not in (tmp_path / "h.html").read_text()


def test_columns_of_structs_lists_and_maps_are_left_out(bncli: Bncli, tmp_path: Path) -> None:
    n = 60
    table = pa.table(
        {
            "x": [float(i % 17) for i in range(n)],
            "s": pa.array([{"a": i} for i in range(n)]),
            "class": ["u" if i % 17 < 6 else "v" for i in range(n)],
            "l": pa.array([[1, i] for i in range(n)]),
            "m": pa.array([[("k", i)] for i in range(n)], pa.map_(pa.string(), pa.int64())),
            "f": pa.array([[1, i] for i in range(n)], pa.list_(pa.int64(), 2)),
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as file:
        file.write_table(table)
    models = []
    for name in ("t.parquet", "t.arrow"):
        ran = bncli("fit", name, "--structure", "nb", "--param", "map", "-o", f"{name}.bnc")
        assert ran.code == 0
        for column, word in (("s", "struct"), ("m", "map")):
            assert (
                f"Note: column {column} was left out because of {word} values; flatten it, or add --ignore NAME\n"
                in ran.err
            )
        assert (
            "Note: columns l, f were left out because of list values; flatten them, or add --ignore NAME\n" in ran.err
        )
        models.append((tmp_path / f"{name}.bnc").read_bytes())
        assert bncli("score", f"{name}.bnc", name, "-q").out.count("\n") == n + 1
        report = json.loads(bncli("describe", name, "--json").out)
        columns = {one["name"]: one for one in report["columns"]}
        assert list(columns) == list(table.schema.names)
        assert columns["s"]["type"] == "nested"
        assert columns["s"]["reason"] == "contains structs; flatten it, or add --ignore s"
        assert "--ignore s --ignore l --ignore m --ignore f" in report["recommended"]
        quiet = bncli(*shlex.split(report["recommended"])[1:], "--structure", "nb", "--param", "map", "-o", "n.bnc")
        assert "holds" not in quiet.err
        models.append((tmp_path / "n.bnc").read_bytes())
    assert len(set(models)) == 1
    assert "which cannot be read as text" in bncli("fit", "t.parquet", "--categorical", "s").err
    parquet.write_table(table.drop_columns(["class"]), tmp_path / "u.parquet")
    assert json.loads(bncli("describe", "u.parquet", "--json").out)["class"] == "x"


@pytest.mark.parametrize("words", [["k.A."], ["k.A.", "n. b.", "<5", "a b"]])
def test_the_recommended_command_has_the_missing_values_that_a_note_advises(
    bncli: Bncli, tmp_path: Path, words: list[str]
) -> None:
    rows = [f"{words[i % len(words)] if i % 7 == 0 else i + 0.5},{'uv'[i % 3 == 0]}" for i in range(300)]
    (tmp_path / "t.csv").write_text("a,class\n" + "\n".join(rows) + "\n")
    report = json.loads(bncli("describe", "t.csv", "--schema-out", "s.json", "--json").out)
    assert all(f"--missing {shlex.quote(f'+{word}')}" in report["recommended"] for word in words)
    assert "a" not in json.loads((tmp_path / "s.json").read_text())["ignore"]
    ran = bncli(*shlex.split(report["recommended"])[1:], "--structure", "nb", "--param", "map", "-o", "m.bnc", "--json")
    assert ran.code == 0
    (attribute,) = json.loads(bncli("inspect", "m.bnc", "--json").out)["attributes"]
    assert attribute["type"] == "numeric"
