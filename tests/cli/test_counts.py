"""`bncli count`, `bncli merge`, `--from-counts`: models from counts beside those of the whole table, byte by byte."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyarrow import csv, parquet

from bncli.files.artifacts.counts import read_counts
from bncli.files.reading.source import Source
from bncli.steps import count as count_step
from bncli.steps.learning_inputs import read_supplied
from tests.cli.conftest import Bncli
from tests.sweeps import first_few

HEADER = "a,colour,b,c,d,w,y\n"


def line(r: random.Random) -> str:
    """A row with missing values of both kinds, names, and a rare class."""
    y = r.choice(["x"] * 8 + ["y"] * 6 + ["rare"])
    a = f"{r.gauss(len(y), 1):.2f}" if r.random() > 0.02 else ""
    colour = r.choice(["red", "green", "?", f"blue{len(y)}"]) if r.random() < 0.3 else "red" if y == "x" else "green"
    return f"{a},{colour},{r.choice('pq')},{r.choice('uvw')},{r.randint(0, 9)},{r.choice([0, 1, 1, 2, 7])},{y}\n"


def tables(folder: Path, seed: int, n_parts: int) -> list[Path]:
    """all.csv, and its rows dealt to so many parts at random."""
    r = random.Random(seed)
    lines = [line(r) for _ in range(150)]
    (folder / "all.csv").write_text(HEADER + "".join(lines))
    owner = [r.randrange(n_parts) for _ in lines]
    parts = []
    for k in range(n_parts):
        parts.append(folder / f"p{k}.csv")
        parts[-1].write_text(HEADER + "".join(one for one, o in zip(lines, owner, strict=True) if o == k))
    return parts


def counted(bncli: Bncli, parts: list[Path], *words: object) -> list[Path]:
    made = [path.with_suffix(".counts") for path in parts]
    for path, output in zip(parts, made, strict=True):
        ran = bncli("count", path, *words, "-o", output)
        assert ran.code == 0, ran.err
    return made


def same_model(bncli: Bncli, table: list[object], counts: list[object], *words: object) -> None:
    assert bncli("fit", *table, *words, "-o", "whole.bnc").code == 0
    ran = bncli("fit", "--from-counts", *counts, *words, "-o", "merged.bnc")
    assert ran.code == 0, ran.err
    assert Path("merged.bnc").read_bytes() == Path("whole.bnc").read_bytes(), words


STRUCTURES = ("nb", "tan", "tan --structure-score bic --forest", "tan --structure-score acll", "kdb")
PARAMETERS = (
    "map",
    "map --smoothing mle",
    "map --smoothing laplace:2",
    "map --smoothing fgg",
    "map --smoothing bdeu",
    "map --smoothing hdp",
    "acll",
    "acll --class-pair-prior 1,100",
    "acll-uniform --pseudo-counts 2",
)


@pytest.mark.parametrize("seed", first_few((2, 1, 0), 2))
def test_models_of_merged_parts_are_those_of_the_whole_table(bncli: Bncli, tmp_path: Path, seed: int) -> None:
    parts = tables(tmp_path, seed, n_parts=2 + 3 * seed)
    weights = ["--weights", "w"] if seed == 1 else ["--ignore", "w"]
    assert bncli("discretize", "all.csv", *weights, "--cuts-out", "cuts.json").code == 0
    if seed == 2:  # written by hand, without a word of missing values
        content = json.loads(Path("cuts.json").read_text())
        assert any(attribute.pop("missing", False) for attribute in content["attributes"])
        Path("cuts.json").write_text(json.dumps(content))
    how = ["--cuts", "cuts.json", *weights, "-q"]
    made = counted(bncli, parts, *how)
    assert bncli("merge", *made, "-o", "sum.counts").code == 0
    r = random.Random(seed)
    for structure in STRUCTURES:
        for param in r.sample(PARAMETERS, 2):
            policy = r.choice(["level", "marginalize"])
            words = ["--structure", *structure.split(), "--param", *param.split(), "--missing-policy", policy]
            same_model(bncli, ["all.csv", *how], ["sum.counts", "-q"], *words)


@pytest.mark.slow
def test_larger_families_are_counted_for_a_structure_learnt_from_pairs(bncli: Bncli, tmp_path: Path) -> None:
    parts = tables(tmp_path, 7, n_parts=4)
    bncli("discretize", "all.csv", "--ignore", "w", "--cuts-out", "cuts.json")
    how = ["--cuts", "cuts.json", "--ignore", "w", "-q"]
    bncli("merge", *counted(bncli, parts, *how), "-o", "pairs.counts", "-q")
    assert bncli("learn-structure", "all.csv", *how, "--structure", "kdb", "--k", 3, "-o", "whole.json").code == 0
    words = ["--structure", "kdb", "--k", 3, "-o", "merged.json", "-q"]
    assert bncli("learn-structure", "--from-counts", "pairs.counts", *words).code == 0
    assert Path("merged.json").read_text() == Path("whole.json").read_text()
    made = counted(bncli, parts, *how, "--structure", "merged.json")
    bncli("merge", *made, "-o", "kdb.counts", "-q")
    for param in ("map --smoothing hdp", "acll"):
        assert (
            bncli("fit", "all.csv", *how, "--structure", "kdb", "--k", 3, "--param", *param.split(), "-o", "w.bnc").code
            == 0
        )
        words = ["--structure", "merged.json", "--param", *param.split(), "-q", "-o", "m.bnc"]
        assert bncli("fit", "--from-counts", "kdb.counts", *words).code == 0
        assert Path("m.bnc").read_bytes() == Path("w.bnc").read_bytes()


def test_order_nesting_and_threads_do_not_change_a_byte(bncli: Bncli, tmp_path: Path) -> None:
    parts = tables(tmp_path, 3, n_parts=4)
    bncli("discretize", "all.csv", "--cuts-out", "cuts.json")
    a, b, c, d = counted(bncli, parts, "--cuts", "cuts.json", "--threads", 2)
    bncli("merge", a, b, c, d, "-o", "1.counts")
    bncli("merge", d, b, a, c, "-o", "2.counts")
    bncli("merge", d, a, "-o", "3.counts")
    bncli("merge", c, b, "-o", "4.counts")
    bncli("merge", "3.counts", "4.counts", "-o", "5.counts")
    assert len({Path(f"{k}.counts").read_bytes() for k in (1, 2, 5)}) == 1
    again = counted(bncli, parts[:1], "--cuts", "cuts.json", "--threads", 1)[0].read_bytes()
    bncli("count", parts[0], "--cuts", "cuts.json", "--threads", 3, "-o", "again.counts")
    assert Path("again.counts").read_bytes() == again


def test_codes_are_counted_by_their_own_cuts(bncli: Bncli) -> None:
    bncli("encode", "wine_holes.csv", "-o", "w.codes")
    ran = bncli("count", "w.codes")
    assert ran.code == 0, ran.err
    same_model(bncli, ["wine_holes.csv"], ["w.counts"], "--structure", "tan", "--param", "map")
    assert bncli("count", "w.codes", "--cuts", "cuts.json").code == 2
    assert bncli("count", "w.codes", "--ignore", "class").code == 2


@pytest.mark.parametrize("weights", [["--weights", "w"], ["--ignore", "w"]], ids=["weights", "no weights"])
def test_rows_have_one_fingerprint_whatever_file_they_are_in(bncli: Bncli, tmp_path: Path, weights: list[str]) -> None:
    """Labels that are not met in their order, and an attribute whose codes just fit one byte."""
    r = random.Random(1)
    rows = [f"n{k % 255:03d},{k % 7},{r.choice([0, 1, 3])},{'zxy'[r.randrange(3)]}" for k in range(600)]
    (tmp_path / "t.csv").write_text("name,n,w,class\n" + "n000,1,1,z\n" + "\n".join(rows) + "\n")
    columns = csv.read_csv(tmp_path / "t.csv")
    parquet.write_table(columns, tmp_path / "t.parquet", row_group_size=50)
    assert bncli("discretize", "t.csv", *weights, "--cuts-out", "cuts.json").code == 0
    assert bncli("encode", "t.csv", *weights, "--cuts", "cuts.json", "-o", "t.codes").code == 0
    found = []
    for path, how in (("t.csv", True), ("t.parquet", True), ("t.codes", False)):
        said = [*weights, "--cuts", "cuts.json"] if how else []
        ran = bncli("count", path, *said, "-o", f"{path}.counts")
        assert ran.code == 0, ran.err
        found.append(read_counts(f"{path}.counts").parts)
    assert found[0] == found[1] == found[2]
    ran = bncli("merge", "t.csv.counts", "t.codes.counts", "-o", "twice.counts")
    assert "rows were already counted in t.csv.counts, t.codes.counts;" in ran.err


def test_every_file_of_a_count_is_a_part(bncli: Bncli, tmp_path: Path) -> None:
    parts = tables(tmp_path, 4, n_parts=4)
    bncli("discretize", "all.csv", "--cuts-out", "cuts.json")
    made = counted(bncli, parts, "--cuts", "cuts.json")
    ran = bncli("count", *parts[:3], "--cuts", "cuts.json", "-o", "three.counts", "--threads", 2)
    assert ran.code == 0, ran.err
    bncli("merge", *made[:3], "-o", "sum.counts")
    assert Path("three.counts").read_bytes() == Path("sum.counts").read_bytes()
    ran = bncli("merge", made[3], "three.counts", made[1], "-o", "no.counts")
    assert (ran.code, Path("no.counts").exists()) == (1, False)
    n_rows, three = (read_counts(str(path)).n_rows for path in (made[1], "three.counts"))
    assert (
        f"{n_rows} of the {n_rows} rows were already counted in three.counts, {made[1]}; leave one of the files out"
        in ran.err
    )
    ran = bncli("merge", made[1], made[3], "three.counts", "-o", "no.counts")
    assert f"{n_rows} of the {three} rows were already counted in {made[1]}, three.counts;" in ran.err
    assert bncli("merge", made[3], "three.counts", "-o", "all.counts").code == 0
    assert read_counts("all.counts").n_rows == 150


def test_files_of_the_same_rows_are_told(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "copy.csv").write_bytes((tmp_path / "iris.csv").read_bytes())
    bncli("discretize", "iris.csv", "--cuts-out", "cuts.json")
    ran = bncli("count", "iris.csv", "copy.csv", "--cuts", "cuts.json", "-o", "two.counts")
    assert (ran.code, read_counts("two.counts").n_rows) == (0, 300)
    assert "Warning: copy.csv has the same rows as iris.csv, which are counted twice" in ran.err


def test_beyond_the_most_parts_the_rest_is_one(bncli: Bncli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(count_step, "MOST_PARTS", 2)
    parts = tables(tmp_path, 4, n_parts=5)
    bncli("discretize", "all.csv", "--cuts-out", "cuts.json")
    supplied = read_supplied("cuts.json")
    report = count_step.count(Source(tuple(map(str, parts))), supplied, output=str(tmp_path / "c.counts"))
    assert sum(part.n_rows for part in report.counted.parts) == 150
    assert len(report.counted.parts) == 2


def test_a_part_without_rows_changes_nothing(bncli: Bncli, tmp_path: Path) -> None:
    bncli("discretize", "iris.csv", "--cuts-out", "cuts.json")
    (tmp_path / "none.csv").write_text((tmp_path / "iris.csv").read_text().splitlines()[0] + "\n")
    ran = bncli("count", "none.csv", "--cuts", "cuts.json")
    assert (ran.code, "Warning: there are no rows: all counts are 0" in ran.err) == (0, True)
    bncli("count", "iris.csv", "--cuts", "cuts.json")
    ran = bncli("merge", "none.counts", "iris.counts", "none.counts", "-o", "sum.counts")
    assert (ran.code, "not every file" in ran.err) == (0, False)
    assert Path("sum.counts").read_bytes() == Path("iris.counts").read_bytes()
    ran = bncli("fit", "--from-counts", "none.counts", "--param", "map")
    assert (ran.code, ran.err) == (
        1, "Error: these counts come from tables without rows; count a table with rows, and merge its counts\n",
    )  # fmt: skip


def test_what_is_old_fades(bncli: Bncli) -> None:
    bncli("discretize", "iris.csv", "--cuts-out", "cuts.json")
    Path("new.csv").write_text("".join(Path("iris.csv").read_text().splitlines(keepends=True)[:90]))
    for name in ("iris", "new"):
        bncli("count", f"{name}.csv", "--cuts", "cuts.json")
    ran = bncli("merge", "iris.counts", "new.counts", "--decay", 0.5, "-o", "d.counts", "--json")
    report = json.loads(ran.out)
    assert (report["rows"], report["weight"], report["decayed"], report["decay"]) == (239, 164.0, True, 0.5)
    old, new, both = (read_counts(f"{name}.counts") for name in ("iris", "new", "d"))
    assert both.labels == old.labels
    assert both.class_counts.tolist() == [0.5 * 50 + 50, 0.5 * 50 + 39, 0.5 * 50]
    assert {part.weight for part in both.parts} == {0.5, 1.0}
    assert new.n_rows == 89
    ran = bncli("fit", "--from-counts", "d.counts", "--param", "map", "--json", "-o", "d.bnc")
    report = json.loads(ran.out)
    assert (report["rows"], report["cll"], report["log_loss"]) == (239, None, None)
    assert bncli("score", "d.bnc", "iris.csv", "-o", "scores.csv").code == 0
    shown = bncli("inspect", "d.counts")
    assert (shown.code, "239, with total weight 164" in shown.out, "petal_length" in shown.out) == (
        0,
        True,
        True,
    )
    assert json.loads(bncli("inspect", "d.counts", "--json").out)["counted"] == "pairs"


def test_what_is_very_old_counts_for_nothing_and_is_read(bncli: Bncli) -> None:
    bncli("discretize", "iris.csv", "--cuts-out", "cuts.json")
    bncli("count", "iris.csv", "--cuts", "cuts.json")
    words = ["--decay", 1e-5, "--allow-repeated", "-o", "d.counts"]
    assert bncli("merge", *["iris.counts"] * 70, *words).code == 0
    assert min(part.weight for part in read_counts("d.counts").parts) == 0
    assert bncli("merge", "d.counts", "iris.counts", *words[:-1], "e.counts").code == 0
    assert read_counts("e.counts").class_counts.tolist() == pytest.approx([50 * (1 + 1e-5)] * 3, rel=1e-9)


@pytest.fixture
def known(bncli: Bncli) -> Bncli:
    """With cuts and counts of iris, and of it in another way."""
    bncli("discretize", "iris.csv", "--cuts-out", "cuts.json")
    bncli("count", "iris.csv", "--cuts", "cuts.json")
    bncli("learn-structure", "iris.csv", "--cuts", "cuts.json", "--structure", "kdb", "--k", 2, "-o", "kdb.json")
    bncli("count", "iris.csv", "--cuts", "cuts.json", "--structure", "kdb.json", "-o", "kdb.counts")
    text = Path("cuts.json").read_text()
    Path("other.json").write_text(text.replace("2.45", "2.5"))
    bncli("count", "iris.csv", "--cuts", "other.json", "-o", "other.counts")
    bncli("count", "iris.csv", "--cuts", "cuts.json", "--missing", "none", "-o", "tokens.counts")
    bncli("discretize", "monks1.csv", "--cuts-out", "monks.json")
    bncli("count", "monks1.csv", "--cuts", "monks.json")
    Path("cut.counts").write_bytes(Path("iris.counts").read_bytes()[:-7])
    bncli("learn-structure", "monks1.csv", "--structure", "kikuchi", "-o", "regions.json")
    Path("weights.csv").write_text("petal_length,sepal_length,sepal_width,petal_width,class,w\n1,1,1,1,setosa,0.5\n")
    Path("level.csv").write_text("a1,a2,a3,a4,a5,a6,class\n1,1,1,1,1,7,1\n")
    lost = "sepal_length,sepal_width,petal_length,petal_width,class\n1,2,3,4,\n1,2,3,4,setosa\n"
    Path("lost.csv").write_text(lost)
    return bncli


def test_every_refusal_is_a_line(known: Bncli) -> None:
    for words, code, told in REFUSED:
        ran = known(*words.split())
        assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1), (words, ran.err)
        assert ran.err.startswith("Error: ")
        assert told in ran.err, (words, ran.err)
    assert not Path("x.counts").exists()


REFUSED = [
    ("merge iris.counts monks1.counts -o x.counts", 1, "monks1.counts"),
    (
        "merge iris.counts other.counts -o x.counts",
        1,
        "the cuts of 'petal_length' differ from those in iris.counts: [2.5, 4.75] instead of [2.45, 4.75]",
    ),
    ("merge iris.counts kdb.counts -o x.counts", 1, "the tables differ from those in iris.counts: "),
    (
        "merge iris.counts tokens.counts -o x.counts",
        1,
        "the tokens for missing values differ from those in iris.counts: 'none' instead",
    ),
    ("merge iris.counts iris.counts -o x.counts", 1, "150 of the 150 rows were already counted in iris.counts"),
    ("merge iris.counts cut.counts -o x.counts", 1, "damaged or incomplete"),
    ("merge iris.counts cuts.json -o x.counts", 1, "this is a bncli cuts file, not a bncli counts file"),
    ("merge iris.counts gone.counts -o x.counts", 1, "gone.counts"),
    ("merge iris.counts", 2, "-o FILE is missing"),
    ("merge iris.counts -o iris.counts", 2, "cannot write 'iris.counts'"),
    ("merge iris.counts -o x.counts --decay 1", 2, "--decay"),
    ("merge iris.counts -o x.counts --decay 0", 2, "--decay"),
    ("count iris.csv -o x.counts", 2, "--cuts FILE is missing"),
    ("count iris.csv --cuts cuts.json --structure regions.json -o x.counts", 2, "regions are chosen"),
    ("count iris.csv --cuts monks.json -o x.counts", 1, "the cuts contain 'a1'"),
    ("count weights.csv --cuts cuts.json --weights w -o x.counts", 1, "the weight 0.5 is not a whole number"),
    ("count level.csv --cuts monks.json -o x.counts --on-bad-row skip", 1, "not among its levels in the cuts"),
    ("count lost.csv --cuts cuts.json -o x.counts", 1, "the class is missing in 1 row"),
    ("count iris.counts --cuts cuts.json -o x.counts", 1, "not a table"),
    ("fit iris.counts", 2, "iris.counts is not a table; read counts with --from-counts iris.counts"),
    ("fit --from-counts iris.csv --param map", 1, "not a bncli counts file"),
    ("fit --from-counts iris.counts", 2, "--param weighted needs the rows"),
    ("fit --from-counts iris.counts --structure auto", 2, "--structure auto needs the rows"),
    ("fit --from-counts iris.counts --structure hill-climb --param map", 2, "use --structure nb, tan or kdb"),
    ("fit --from-counts iris.counts --param discriminative", 2, "use --param map, acll or acll-uniform"),
    ("fit --from-counts iris.counts --param map --structure kdb --k 2", 1, "the counts have no table over"),
    ("fit --from-counts kdb.counts --param map --structure tan", 1, "the counts have no table over"),
    ("fit --from-counts iris.counts iris.csv --param map", 2, "replaces DATA"),
    ("fit --from-counts iris.counts --param map --class y", 2, "--class has no effect with --from-counts"),
    ("fit --from-counts iris.counts --param map --weights w", 2, "--weights has no effect with --from-counts"),
    ("fit --from-counts iris.counts --param map --cuts cuts.json", 2, "--cuts has no effect with --from-counts"),
    ("fit --from-counts iris.counts --param map --bins 5", 2, "--bins has no effect"),
    ("fit --from-counts iris.counts --param map --cluster local:1", 2, "--cluster has no effect"),
    ("fit --from-counts iris.counts --param kbma --structure regions.json", 2, "needs the rows"),
    ("learn-structure --from-counts iris.counts --scores", 2, "--scores"),
    ("learn-structure --from-counts iris.counts --structure gbn", 2, "--structure gbn needs the rows"),
    ("fit", 2, "Missing argument 'DATA...'"),
    ("learn-structure", 2, "Missing argument 'DATA...'"),
]


def test_a_class_that_only_some_parts_have_is_told(bncli: Bncli) -> None:
    bncli("discretize", "iris.csv", "--cuts-out", "cuts.json")
    lines = Path("iris.csv").read_text().splitlines(keepends=True)
    Path("slip.csv").write_text(lines[0] + lines[1].replace("setosa", "setsoa"))
    bncli("count", "iris.csv", "--cuts", "cuts.json")
    bncli("count", "slip.csv", "--cuts", "cuts.json")
    ran = bncli("merge", "iris.counts", "slip.counts", "-o", "sum.counts")
    assert "Note: some files lack the class labels 'setosa', 'setsoa', 'versicolor' and 1 more" in ran.err
    ran = bncli("merge", "iris.counts", "iris.counts", "--allow-repeated", "-o", "twice.counts")
    assert (ran.code, "rows        300" in ran.err) == (0, True)


def test_a_missing_class_among_numbers_is_told(bncli: Bncli) -> None:
    Path("n.csv").write_text("a,y\n1,0\n2,1\n3,2\n1,0\n2,1\n3,2\n1,NA\n")
    Path("cuts.json").write_text(json.dumps({
        "format": "bncli-cuts", "version": 1, "class": "y",
        "attributes": [{"name": "a", "type": "numeric", "cuts": [1.5, 2.5]}],
    }))  # fmt: skip
    ran = bncli("count", "n.csv", "--cuts", "cuts.json", "-o", "n.counts")
    assert ran.code == 1
    assert "the class 'y' is numeric, but some rows have 'NA'" in ran.err
    words = ["--cuts", "cuts.json", "--missing", "+NA", "--drop-unlabelled"]
    assert bncli("count", "n.csv", *words, "-o", "n.counts").code == 0
    same_model(bncli, ["n.csv", *words], ["n.counts"], "--structure", "nb", "--param", "map")
