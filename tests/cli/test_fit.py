"""`bncli fit`, and the files that the other commands feed it."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from pathlib import Path

import pytest

from bncli.cli.model_text import first_names
from tests import started
from tests.cli.conftest import Bncli

FIT_KEYS = {
    "schema_version", "model", "rows", "attributes", "classes", "structure", "param", "parameters", "cll_start", "cll",
    "log_loss", "iterations", "evaluations", "stopped_by", "seconds", "held_out", "warnings",
}  # fmt: skip


def test_the_plain_line(bncli: Bncli, tmp_path: Path) -> None:
    ran = bncli("fit", "iris.csv", "--structure", "tan", "--param", "weighted")
    assert (ran.code, ran.out) == (0, "")
    assert (tmp_path / "iris.bnc").exists()
    note, first, second, *_ = ran.err.splitlines()
    assert re.fullmatch(
        r"Note: naive Bayes predicts better here: held-out log-loss 0\.\d+, against 0\.\d+ with all 3 arcs of tan; "
        r"add --arcs cv to choose arcs by held-out log-loss",
        note,
    )
    assert re.fullmatch(
        r"held-out    log-loss 0\.\d+ on 150 rows \(class frequencies alone: 1\.099; lower is better\)",
        first,
    )
    assert second == "class       class (setosa, versicolor, virginica)"
    for word in ("150", "tan", "weighted", "time  ", "iris.bnc"):
        assert word in ran.err
    assert "CLL" not in ran.err
    verbose = bncli("fit", "iris.csv", "--structure", "tan", "--penalty", "1", "-v").err
    for word in ("cuts  ", "CLL  ", "converged   after", "seconds     read"):
        assert word in verbose


def test_a_comparison_that_first_folds_decide_names_them(bncli: Bncli) -> None:
    rows = [
        "x,z,class",
        *(f"{x / 7:.3f},{z / 7:.3f},{(x > 0) ^ (z > 0)}" for x in range(-12, 13) for z in range(-12, 13)),
    ]
    Path("board.csv").write_text("\n".join(rows))
    lines = bncli("fit", "board.csv").err.splitlines()
    (compared,) = (line for line in lines if line.startswith("compared"))
    assert re.fullmatch(r"compared    held-out log-loss on the first folds: tan 0\.\d+, interactions 0\.\d+", compared)


def test_json_has_the_keys_that_scripts_rely_on(bncli: Bncli) -> None:
    ran = bncli("fit", "tumours.csv", "--structure", "nb", "--json", "--class", "diagnosis")
    report = json.loads(ran.out)
    assert ran.err == ""
    assert set(report) >= FIT_KEYS
    assert report["schema_version"] == 1
    assert (report["rows"], report["attributes"], report["classes"]) == (569, 7, 2)
    assert set(report["seconds"]) >= {"read", "discretize", "structure", "parameters", "total"}
    assert report["cll"] >= report["cll_start"]
    assert report["log_loss"] == pytest.approx(-report["cll"] / 569)


def test_quiet_says_nothing(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--penalty", "1", "--quiet") == (0, "", "")


STEPS = (
    ("", "", "--arcs cv"),
    ("", "--structure kdb --k 2", "--penalty 1"),
    ("--discretize equal-frequency --bins 4", "", "--penalty 1"),
    ("", "--structure nb", "--param map"),
    ("", "--structure nb", "--penalty cv --seed 5"),
)


@pytest.mark.parametrize(
    ("steps", "data"), [*zip(STEPS, ["iris", "wine_holes", "monks1", "iris", "wine_holes"], strict=True)]
)
def test_step_by_step_is_one_fit(bncli: Bncli, tmp_path: Path, steps: tuple[str, ...], data: str) -> None:
    cut, join, learn = (options.split() for options in steps)
    table = f"{data}.csv"
    assert bncli("fit", table, *cut, *join, *learn, "-o", "once.bnc", "-q").code == 0
    assert bncli("discretize", table, *cut, "--cuts-out", "cuts.json").code == 0
    assert bncli("learn-structure", table, "--cuts", "cuts.json", *join, "-o", "dag.json").code == 0
    assert bncli("fit", table, "--cuts", "cuts.json", "--structure", "dag.json", *learn, "-o", "steps.bnc").code == 0
    assert (tmp_path / "once.bnc").read_bytes() == (tmp_path / "steps.bnc").read_bytes()


def test_a_penalty_of_cross_validation_is_told(bncli: Bncli) -> None:
    ran = bncli("fit", "iris.csv", "--structure", "nb", "--penalty", "cv")
    (line,) = (line for line in ran.err.splitlines() if line.startswith("penalty "))
    report = json.loads(bncli("fit", "iris.csv", "--structure", "nb", "--json").out)  # it is the default
    tried = report["penalty_cv"]
    best = min(tried, key=lambda one: one["log_loss"])
    assert report["penalty"] == best["lambda"]
    least = min(one["lambda"] for one in tried)
    assert line == f"penalty     {report['penalty']:g}, chosen by cross-validation between {least:g} and 300"
    assert bncli("inspect", "iris.bnc").out.count("chosen by cross-validation") == 1
    shown = json.loads(bncli("inspect", "iris.bnc", "--json").out)
    assert (shown["penalty"], shown["penalty_cv"]) == (report["penalty"], tried)
    assert (shown["recipe"]["penalty"], shown["recipe"]["seed"]) == ("cv", 0)


def test_the_penalty_chosen_is_the_penalty_typed(bncli: Bncli) -> None:
    options = ("--penalty-center", "1", "--optimizer", "cg")
    chosen = json.loads(bncli("fit", "monks1.csv", *options, "--arcs", "all", "--json").out)
    words = ("--penalty", chosen["penalty"], *options)
    typed = json.loads(bncli("fit", "monks1.csv", *words, "--json").out)
    assert typed["penalty_cv"] is None
    assert all(chosen[key] == typed[key] for key in ("penalty", "cll_start", "cll", "iterations", "evaluations"))
    closed = json.loads(bncli("fit", "iris.csv", "--param", "map", "--json").out)
    assert (closed["penalty"], closed["penalty_cv"]) == (None, None)


@pytest.mark.slow
def test_the_seed_draws_the_folds_of_the_penalty(bncli: Bncli, tmp_path: Path) -> None:
    tried = []
    for seed in (1, 1, 2):
        assert bncli("fit", "tumours.csv", "--structure", "nb", "--seed", seed, "-o", f"{len(tried)}.bnc").code == 0
        tried.append(json.loads(bncli("inspect", f"{len(tried)}.bnc", "--json").out)["penalty_cv"])
    assert tried[0] == tried[1] != tried[2]
    assert (tmp_path / "0.bnc").read_bytes() == (tmp_path / "1.bnc").read_bytes()
    for seed in (1, 2):
        assert bncli("fit", "tumours.csv", "--penalty", 3, "--seed", seed, "-o", f"{seed}.bnc").code == 0
    assert (tmp_path / "1.bnc").read_bytes() == (tmp_path / "2.bnc").read_bytes()


@pytest.mark.parametrize("rows", [["1,a"], ["1,a", "2,a"], ["1,a", "2,a", "1,b", "2,b", "3,a"], ["1,a"] * 9 + ["2,b"]])
def test_few_rows_still_give_a_model_or_one_line(bncli: Bncli, tmp_path: Path, rows: list[str]) -> None:
    (tmp_path / "few.csv").write_text("\n".join(["x,class", *rows]) + "\n")
    ran = bncli("fit", "few.csv", "--categorical", "x")
    assert (ran.code == 0 and "penalty     " in ran.err) or (ran.code == 1 and ran.err.count("\n") == 1)


@pytest.mark.parametrize("text", ["CV", "vc", "-1", "nan", "inf", ""])
def test_other_penalties_are_refused(bncli: Bncli, text: str) -> None:
    ran = bncli("fit", "iris.csv", "--penalty", text)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "penalty" in ran.err


def test_threads_change_nothing(bncli: Bncli, tmp_path: Path) -> None:
    for threads in (1, 3):
        assert bncli("fit", "tumours.csv", "--structure", "nb", "--threads", threads, "-o", f"{threads}.bnc").code == 0
    assert (tmp_path / "1.bnc").read_bytes() == (tmp_path / "3.bnc").read_bytes()


def test_the_trace_has_a_row_an_iteration(bncli: Bncli, tmp_path: Path) -> None:
    report = json.loads(bncli("fit", "iris.csv", "--penalty", "1", "--trace", "trace.csv", "--json").out)
    rows = list(csv.DictReader((tmp_path / "trace.csv").read_text().splitlines()))
    assert [int(row["iteration"]) for row in rows] == list(range(report["iterations"] + 1))
    assert float(rows[0]["cll"]) == report["cll_start"]
    assert float(rows[-1]["cll"]) == report["cll"]
    objective = [float(row["cll"]) - float(row["penalty"]) for row in rows]
    assert objective == sorted(objective)


@pytest.mark.parametrize("optimizer", ["bfgs", "cg", "cgb"])
@pytest.mark.parametrize("param", ["discriminative", "extended", "weighted"])
def test_the_trace_of_a_published_optimizer_counts_flops(
    bncli: Bncli, tmp_path: Path, param: str, optimizer: str
) -> None:
    words = (
        "--param",
        param,
        "--optimizer",
        optimizer,
        "--penalty",
        "1",
        "--max-iterations",
        "3",
        "--trace",
        "trace.csv",
    )
    assert bncli("fit", "iris.csv", *words, "-q").code == 0
    rows = list(csv.DictReader((tmp_path / "trace.csv").read_text().splitlines()))
    assert [int(row["gradient_evaluations"]) for row in rows] == [1, 2, 3, 4]
    flops = [row["flops"] for row in rows]
    assert flops[0] == ("" if param == "weighted" else "0")
    assert param == "weighted" or [int(f) for f in flops] == sorted({int(f) for f in flops})


def test_a_cap_on_iterations_is_named(bncli: Bncli) -> None:
    report = json.loads(bncli("fit", "iris.csv", "--penalty", "1", "--max-iterations", "2", "--json").out)
    assert (report["iterations"], report["stopped_by"]) == (2, "max-iterations")


def test_the_class_of_a_structure_file_counts(bncli: Bncli, tmp_path: Path) -> None:
    parents = {"radius": ["size"], "texture": ["size", "radius"]}
    document = {"format": "bncli-structure", "version": 1, "class": "size", "parents": parents}
    (tmp_path / "mine.json").write_text(json.dumps(document))
    report = json.loads(bncli("fit", "tumours.csv", "--structure", "mine.json", "--penalty", "1", "--json").out)
    assert (report["classes"], report["used"], report["structure"]) == (3, 2, "file")
    assert bncli("fit", "tumours.csv", "--structure", "mine.json", "--class", "outline").code == 1


def test_a_closed_form_has_no_iterations(bncli: Bncli) -> None:
    ran = bncli("fit", "iris.csv", "--param", "map")
    assert "stopped" not in ran.err
    verbose = bncli("fit", "iris.csv", "--param", "map", "-v").err
    assert "parameters in closed form\n" in verbose
    assert "converged" not in verbose


def test_what_a_structure_file_leaves_out_is_named(bncli: Bncli, tmp_path: Path) -> None:
    document = {"format": "bncli-structure", "version": 1, "class": "diagnosis", "parents": {"radius": ["diagnosis"]}}
    (tmp_path / "mine.json").write_text(json.dumps(document))
    assert "1 of 7 used (not in mine.json: texture" in bncli("fit", "tumours.csv", "--structure", "mine.json").err


def test_what_a_structure_file_names_without_use_is_told_apart(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "mine.dot").write_text("digraph { diagnosis -> radius -> outline; texture }")
    used = bncli("fit", "tumours.csv", "--param", "map", "--structure", "mine.dot").err.splitlines()[2]
    assert used == (
        "attributes  1 of 7 used (not in mine.dot: smoothness, size, symmetry, worst_area"
        "; left out by the structure: texture, outline)"
    )


def test_what_a_learnt_structure_leaves_out_is_named(bncli: Bncli, tmp_path: Path) -> None:
    rows = [f"{i % 2},{i // 4 % 2},{'ny'[i % 2]}" for i in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,class", *rows]) + "\n")
    ran = bncli("fit", "t.csv", "--param", "map", "--structure", "gbn")
    assert "1 of 2 used (left out by the structure: b)\n" in ran.err


def test_few_names_are_listed() -> None:
    assert first_names(("a", "b")) == "a, b"
    assert first_names([str(i) for i in range(2000)]) == "0, 1, 2, 3, 4, 5, 6, 7 and 1,992 more"


def test_uninformative_attributes_are_named(bncli: Bncli, tmp_path: Path) -> None:
    rows = [f"{i % 7},same,{'yes' if i % 7 > 3 else 'no'}" for i in range(70)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,class", *rows]) + "\n")
    ran = bncli("fit", "t.csv")
    assert "1 of 2 used (not informative: b)" in ran.err


def test_a_model_to_stdout(bncli: Bncli, tmp_path: Path) -> None:
    fit = ("fit", "iris.csv", "--param", "map")
    words = [started.bncli(), *fit, "-o", "-", "-q"]
    piped = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    assert bncli(*fit).code == 0
    assert piped.stdout == (tmp_path / "iris.bnc").read_bytes()


def test_missing_values_of_columns_that_are_left_out_are_not_said_to_be_summed_out(
    bncli: Bncli, tmp_path: Path
) -> None:
    (tmp_path / "gaps.csv").write_text("a,b,class\n" + "x,,p\ny,,q\n,,p\ny,,q\n")
    ran = bncli("fit", "gaps.csv", "--param", "map", "--missing-policy", "marginalize")
    assert "missing     1 value (25 %) of the attributes used, marginalized\n" in ran.err


def test_without_rows_kept_back_the_summary_begins_with_the_class(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--param", "map").err.startswith("class       class (setosa")


def test_warnings_are_lines_of_their_own(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b,class\n" + "".join(f"{i % 5},{i % 3},{'yn'[i % 2]}\n" for i in range(120)))
    ran = bncli("fit", "x.csv", "--penalty", "1")
    (line,) = (line for line in ran.err.splitlines() if line.startswith("Warning: "))
    assert line.startswith("Warning: the model does not use any of the 2 attributes: ")
    report = json.loads(bncli("fit", "x.csv", "--json", "-q").out)
    assert report["warnings"] == [line.removeprefix("Warning: ")]
    assert report["held_out"].keys() == {"log_loss", "base_log_loss", "rows", "units"}
    ran = bncli("evaluate", "x.csv", "--penalty", "1", "--folds", "2")
    assert ran.err.count("Warning: in the first fold, the model does not use any of the 2 attributes: ") == 1
    assert ran.err.count("Warning: the predictions are no better than the class frequencies: ") == 1
    assert ran.err.count("Warning: ") == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fit nodir/x.csv", "there is no folder 'nodir', nodir/x.csv"),
        ("fit nodir/x.csv -o nodir/m.bnc", "there is no folder 'nodir', nodir/x.csv"),
        ("fit ~/x.csv", "no such file: the shell does not expand '~' in quotes or after '=', ~/x.csv; write "),
        ("fit https://a.b/x.csv", "this is a URL, but only files can be read, https://a.b/x.csv; download it first, "),
        ("evaluate s3://b/x.csv", "this is a URL, but only files can be read, s3://b/x.csv; download it first, e.g. "
            "aws "),
        ("compare http://a/x.csv", "this is a URL, but only files can be read, http://a/x.csv; download it first, "
            "e.g. "),
        ("discretize nodir/x.csv", "there is no folder 'nodir', nodir/x.csv"),
        ("learn-structure ~/x.csv", "no such file: the shell does not expand '~'"),
        ("evaluate iris.csv --param map --test http://a/x.csv", "this is a URL, but only files can be read, "
            "http://a/x"),
        ("fit iris.csv --cuts http://a/c.json", "this is a URL, but only files can be read, http://a/c.json; "
            "download "),
        ("fit iris.csv --schema ~/c.json", "no such file: the shell does not expand '~'"),
        ("fit iris.csv -o ~/m.bnc", "cannot write: the shell does not expand '~' in quotes or after '=', ~/m.bnc"),
        ("fit iris.csv -o s3://b/m.bnc", "cannot write to a URL, s3://b/m.bnc; write a file, then copy it there"),
    ],
)  # fmt: skip
def test_a_place_that_is_wrong_is_named_as_what_it_is(bncli: Bncli, words: str, message: str) -> None:
    ran = bncli(*words.split())
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Error: {message}")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [("score http://a/m.bnc iris.csv", 3), ("inspect ~/m.bnc", 3), ("fit iris.csv --structure http://a/t.json", 2)],
)
def test_so_is_that_of_a_model_or_a_structure(bncli: Bncli, words: str, code: int) -> None:
    ran = bncli(*words.split())
    assert (ran.code, ran.out) == (code, "")
    assert "this is a URL, but only files can be read" in ran.err or "the shell does not expand '~'" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x" * 10**6, "x y " * 250_000], ids=["a word", "words"])
def test_a_column_name_of_a_megabyte_is_shortened_wherever_it_is_printed(
    bncli: Bncli, tmp_path: Path, name: str
) -> None:
    rows = "".join(f"{i % 7},{'pq'[i % 2]},{i % 3},{'uv'[i % 2]}\n" for i in range(60))
    (tmp_path / "t.csv").write_text(f"{name},plain,b,class\n{rows}")
    for words in (
        "fit t.csv --param map",
        "fit t.csv --class nothing",
        "fit t.csv --structure hill-climb --param map -o h.bnc",
        "learn-structure t.csv --structure nb -o s.json",
        "discretize t.csv",
        "inspect t.bnc --tables",
        "inspect t.bnc --effects",
        "inspect s.json",
        "evaluate t.csv --param map",
        "score t.bnc iris.csv",
    ):
        ran = bncli(*words.split())
        assert len(ran.out) + len(ran.err) < 100_000, words
    assert json.loads(bncli("inspect", "t.bnc", "--json").out)["attributes"][0]["name"] == name.strip()


@pytest.mark.parametrize(
    "words",
    ["fit iris.csv --cuts f.json", "fit iris.csv --structure f.json", "inspect f.json", "fit iris.csv --schema f.json"],
)
def test_a_number_of_ten_thousand_digits_is_named(bncli: Bncli, tmp_path: Path, words: str) -> None:
    kind = "cuts" if "structure" not in words else "structure"
    (tmp_path / "f.json").write_text(f'{{"format": "bncli-{kind}", "version": {"1" * 10_000}}}')
    ran = bncli(*words.split())
    assert ran.err == "Error: the file contains a number of 10000 digits, f.json; check whether the file is damaged\n"


LOCAL_OPTIMA = ("fit", "monks1.csv", "--structure", "kdb", "--param", "extended", "--penalty", "1", "--json")


@pytest.mark.slow
def test_random_starts_are_told_kept_and_traced(bncli: Bncli, tmp_path: Path) -> None:
    fit = [*LOCAL_OPTIMA, "--k", "2", "--restarts", "2"]
    first = bncli(*fit, "-o", "one.bnc", "--trace", "t.csv", "--threads", "1")
    again = bncli(*fit, "-o", "two.bnc", "--threads", "2")
    report = json.loads(first.out)
    starts = report["restarts"]
    assert starts["kept"] > 0
    assert starts["spread"] > 0.004
    assert starts["best"] == max(starts["objectives"]) == json.loads(again.out)["restarts"]["best"]
    assert (tmp_path / "one.bnc").read_bytes() == (tmp_path / "two.bnc").read_bytes()
    last = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))[-1]
    assert (int(last["iteration"]), float(last["cll"])) == (report["iterations"], report["cll"])
    assert first.err.startswith("Note: the default start and 2 random ones reached objectives from -67.33")
    shown = json.loads(bncli("inspect", "one.bnc", "--json").out)
    assert (shown["restarts"], shown["recipe"]["restarts"], shown["recipe"]["seed"]) == (starts, 2, 0)
    assert "kept; the default and 2 random starts" in bncli("inspect", "one.bnc").out


def test_no_random_starts_leave_no_mark(bncli: Bncli, tmp_path: Path) -> None:
    fit = [*LOCAL_OPTIMA, "--max-iterations", "3"]
    assert json.loads(bncli(*fit, "-o", "one.bnc").out)["restarts"] is None
    bncli(*fit, "-o", "two.bnc", "--restarts", "0")
    assert (tmp_path / "one.bnc").read_bytes() == (tmp_path / "two.bnc").read_bytes()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--restarts -1", "'-1' is not a whole number of at least 0"),
        ("--restarts 1001", "1001 is too large: the maximum is 1000"),
        ("--restarts 99999999999999999999", "is too large"),
        ("--restarts 1.5", "'1.5' is not a whole number"),
        (
            "--restarts 3 --param weighted",
            "--restarts has no effect with --param weighted; use it with --param extend",
        ),
        ("--restarts 3 --param lr", "--restarts has no effect with --param lr"),
        ("--restarts 3 --param map", "--restarts has no effect with --param map"),
        ("--restarts 3 --structure kikuchi", "--restarts has no effect with --param kbma"),
    ],
)
def test_random_starts_that_cannot_be(bncli: Bncli, words: str, told: str) -> None:
    param = [] if "--param" in words or "kikuchi" in words else ["--param", "extended"]
    ran = bncli("fit", "monks1.csv", *param, *words.split())
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_the_distribution_behind_acll_is_typed_recorded_and_counts(bncli: Bncli, tmp_path: Path) -> None:
    fit = ("fit", "tumours.csv", "--structure-score", "acll", "--param", "acll")
    prior = ("--class-pair-prior", "1, 1000.0")
    plain, typed = (json.loads(bncli(*fit, *more, "--json").out)["cll"] for more in ((), prior))
    assert plain != typed
    # the rows are 569: the usual distribution, typed
    assert json.loads(bncli(*fit, "--class-pair-prior", "1,569", "--json").out)["cll"] == pytest.approx(plain)
    assert bncli(*fit, *prior, "-o", "a.bnc").code == 0
    recipe = json.loads(bncli("inspect", "a.bnc", "--json").out)["recipe"]
    assert (recipe["structure_score"], recipe["class_pair_prior"]) == ("acll:5/1,1000", "1,1000")
    assert bncli("learn-structure", "tumours.csv", "--structure-score", "acll", *prior, "-o", "tan.json").code == 0
    assert bncli("fit", "tumours.csv", "--structure", "tan.json", "--param", "acll", *prior, "-o", "b.bnc").code == 0
    assert (tmp_path / "a.bnc").read_bytes() == (tmp_path / "b.bnc").read_bytes()
    drawn = ("--class-pair-prior", "1,1000:1000", "--seed")
    assert bncli(*fit, *drawn, "7", "-o", "c.bnc").code == 0
    assert json.loads(bncli("inspect", "c.bnc", "--json").out)["recipe"]["class_pair_prior"] == "1,1000:1000:7"
    assert bncli(*fit, *drawn, "7", "-o", "d.bnc", "--threads", "2").code == 0
    assert (tmp_path / "c.bnc").read_bytes() == (tmp_path / "d.bnc").read_bytes()


@pytest.mark.parametrize(
    ("prior", "told"),
    [
        ("1", "'1' should be A,B"),
        ("", "the value is empty"),
        ("1,x", "'1,x' has a number that is not between 0.001 and 1e+12"),
        ("0,1000", "has a number that is not between"),
        ("-1,1000", "has a number that is not between"),
        ("1,nan", "has a number that is not between"),
        ("1,1000:5", "'5' is not a whole number of at least 100"),
        ("1,1000:99999999999", "is too large: the maximum is 1000000"),
        ("1,1000:1000:x", "'x' is not a whole number"),
        ("1,1000:1000:1:1", "should be A,B"),
        ("beta,1,1", "has no closed form: give the number of draws, as in beta,1,1:100000"),
        ("beta,1,1,1:1000", "should be A,B"),
    ],
)
def test_distributions_that_cannot_be(bncli: Bncli, prior: str, told: str) -> None:
    ran = bncli("fit", "tumours.csv", "--param", "acll", "--class-pair-prior", prior)
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_a_distribution_of_other_classes_or_without_acll_is_one_line(bncli: Bncli) -> None:
    prior = ("--class-pair-prior", "1,2,3,1000")
    ran = bncli("fit", "tumours.csv", "--param", "acll", *prior)
    assert ran.code == 1
    assert "the class pair prior 1,2,3,1000 has 4 numbers, but there are 2 classes; give two numbers" in ran.err
    for words in (("--param", "map"), ("--param", "acll-uniform"), ("--structure-score", "acll-uniform")):
        ran = bncli("fit", "tumours.csv", *words, *prior)
        assert ran.code == 2
        assert "--class-pair-prior has no effect with" in ran.err
