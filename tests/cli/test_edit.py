"""`bncli edit`: effects become what is typed, other rows keep their predictions, and nothing is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bncli as package
from bncli.engine.prediction.edits import undo_edit, with_positive_label
from bncli.engine.prediction.verification import largest_edit_difference
from bncli.files.artifacts.model import dump_model, read_model
from tests.cli.conftest import SAMPLE_DATA, Bncli
from tests.sweeps import first_few

WHY = ("--why", "a coding error")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("edited")
    recipes: dict[str, dict[str, Any]] = {
        "nb": {"structure": "nb", "param": "map"},
        "tan": {"structure": "tan", "param": "weighted", "penalty": 1.0},
        "pairs": {"structure": "interactions", "penalty": 3.0},
        "warm": {"structure": "nb", "param": "map", "calibrate": "temperature"},
    }
    paths = {name: folder / f"{name}.bnc" for name in (*recipes, "iris")}
    for name, options in recipes.items():
        package.fit(SAMPLE_DATA / "tumours.csv", **options).save(paths[name])
    package.fit(SAMPLE_DATA / "iris.csv", structure="nb", param="map").save(paths["iris"])
    return paths


def copied(fitted: dict[str, Path], name: str, folder: Path) -> Path:
    path = folder / f"{name}.bnc"
    path.write_bytes(fitted[name].read_bytes())
    return path


def curve(bncli: Bncli, path: Path, *attributes: str) -> Any:
    effects = json.loads(bncli("inspect", str(path), "--effects", "--json").out)["effects"]
    return np.array(next(e["values"] for e in effects if e["attributes"] == [*attributes]))


def probabilities(path: Path, table: str = "tumours.csv") -> Any:
    return np.asarray(package.load(path).predict_proba(SAMPLE_DATA / table))


@pytest.mark.parametrize("name", first_few(["tan", "pairs", "nb", "warm"], 2))
def test_a_value_that_is_set_has_its_log_odds_and_other_rows_their_predictions(
    bncli: Bncli, fitted: dict[str, Path], tmp_path: Path, name: str
) -> None:
    path = copied(fitted, name, tmp_path)
    before = curve(bncli, path, "outline")
    ran = bncli("edit", str(path), "--effect", "outline", "--set", "jagged=0.9", "--set", "smooth=-0.5", *WHY)
    assert ran.code == 0, ran.err
    assert "outline: set, log-odds of malignant" in ran.err
    after = curve(bncli, path, "outline")
    assert after[1:] == pytest.approx(np.array([[-0.9, 0.9], [0.5, -0.5]]), abs=1e-9)
    table = (SAMPLE_DATA / "tumours.csv").read_text().splitlines()
    column = table[0].split(",").index("outline")
    is_other = np.array([line.split(",")[column] == "dented" for line in table[1:]])
    old, new = probabilities(fitted[name]), probabilities(path)
    assert new[is_other] == pytest.approx(old[is_other], abs=1e-12)
    assert np.abs(new - old)[~is_other].max() > 0.01
    (edit,) = json.loads(bncli("inspect", str(path), "--json").out)["edits"]
    assert edit["values"] == {"jagged": 0.9, "smooth": -0.5}
    assert edit["before"] == pytest.approx({"jagged": before[1, 1], "smooth": before[2, 1]})
    assert (edit["effect"], edit["why"], edit["by"], edit["when"]) == ("outline", "a coding error", None, None)
    assert bncli("verify", str(path)).code == 0
    assert bncli("edit", str(path), "--undo").code == 0
    assert path.read_bytes() == fitted[name].read_bytes()


def test_effects_become_flat_smooth_and_monotone(bncli: Bncli, fitted: dict[str, Path], tmp_path: Path) -> None:
    path = copied(fitted, "tan", tmp_path)
    original = curve(bncli, path, "radius")
    assert not (np.diff(original[:, 1]) >= 0).all()
    assert bncli("edit", str(path), "--effect", "radius", "--monotone", "up", *WHY).code == 0
    rising = curve(bncli, path, "radius")
    assert (np.diff(rising[:, 1]) >= -1e-12).all()
    assert (
        bncli("edit", str(path), "--effect", "worst_area", "--smooth", *WHY, "--by", "Ana", "--when", "2026").code == 0
    )
    frequencies = np.array(read_model(str(path)).schema.attributes[6].frequencies)
    weights = frequencies / frequencies.sum()
    expected = []
    old = curve(bncli, fitted["tan"], "worst_area")
    for i in range(4):
        kernel = [weights[j] * (1 if i == j else 0.5) for j in range(4) if abs(i - j) <= 1]
        expected.append(np.average([old[j, 1] for j in range(4) if abs(i - j) <= 1], weights=kernel))
    assert curve(bncli, path, "worst_area")[:, 1] == pytest.approx(expected - weights @ np.array(expected))
    assert bncli("edit", str(path), "--effect", "outline,radius", "--flatten", *WHY).code == 0
    assert np.abs(curve(bncli, path, "radius", "outline")).max() < 1e-12
    listed = bncli("edit", str(path), "--list").out
    assert [line for line in listed.splitlines() if not line.startswith(" ")] == [
        "radius: monotone up, log-odds of malignant",
        "worst_area: smooth",
        "radius & outline: flatten",
    ]
    assert "why: a coding error, by Ana, on 2026" in listed
    assert bncli("verify", str(path)).code == 0
    for _ in range(3):
        assert bncli("edit", str(path), "--undo").code == 0
    assert path.read_bytes() == fitted["tan"].read_bytes()
    assert bncli("edit", str(path), "--undo").code == 2
    assert bncli("edit", str(path), "--list").out == "no edits\n"


def test_a_cell_of_a_pair_is_set(bncli: Bncli, fitted: dict[str, Path], tmp_path: Path) -> None:
    path = copied(fitted, "tan", tmp_path)
    ran = bncli("edit", str(path), "--effect", "radius,outline", "--set", "<=13.095,smooth=0.25", *WHY)
    assert ran.code == 0, ran.err
    assert curve(bncli, path, "radius", "outline")[0, 2, 1] == pytest.approx(0.25)
    changed = np.abs(probabilities(path) - probabilities(fitted["tan"])).max(axis=1) > 1e-12
    table = [line.split(",") for line in (SAMPLE_DATA / "tumours.csv").read_text().splitlines()]
    radius, outline = table[0].index("radius"), table[0].index("outline")
    assert changed.tolist() == [float(row[radius]) <= 13.095 and row[outline] == "smooth" for row in table[1:]]


def test_with_more_labels_the_others_move_alike(bncli: Bncli, fitted: dict[str, Path], tmp_path: Path) -> None:
    path = copied(fitted, "iris", tmp_path)
    typed = ("edit", str(path), "--effect", "petal_width", "--set", ">1.75=2", *WHY)
    ran = bncli(*typed)
    assert (ran.code, "--label is missing: the class has 3 labels" in ran.err) == (2, True)
    before = curve(bncli, path, "petal_width")
    assert bncli(*typed, "--label", "virginica").code == 0
    after = curve(bncli, path, "petal_width")
    assert after[-1, 2] == pytest.approx(2)
    step = after - before
    assert step[:, 0] == pytest.approx(step[:, 1])
    (edit,) = json.loads(bncli("inspect", str(path), "--json").out)["edits"]
    assert edit["values"][">1.75"]["virginica"] == 2
    assert bncli("verify", str(path)).code == 0


@pytest.mark.slow
def test_refit_holds_out_the_groups_of_the_model(bncli: Bncli, tmp_path: Path) -> None:
    """Of rows that stand there three times, a fold of rows has copies to learn from, and a fold of groups has none."""
    header, *lines = (SAMPLE_DATA / "tumours.csv").read_text().splitlines()
    rows = [f"{line},p{i}" for i, line in enumerate(lines[:150]) for _ in range(3)]
    (tmp_path / "copies.csv").write_text("\n".join([f"{header},patient", *rows]) + "\n")
    losses = []
    for option in ("--ignore", "--group"):
        path = str(tmp_path / f"{option[2:]}.bnc")
        words = ("--structure", "tan", "--class", "diagnosis", "--penalty", "1", "-q", "-o", path)
        assert bncli("fit", str(tmp_path / "copies.csv"), option, "patient", *words).code == 0
        edit = ("edit", path, "--effect", "worst_area", "--flatten", *WHY, "-q", "--json")
        losses.append(json.loads(bncli(*edit, "--refit", str(tmp_path / "copies.csv")).out)["done"]["refit"])
    assert losses[1]["log_loss_before"] > 1.05 * losses[0]["log_loss_before"]
    assert losses[1]["log_loss"] > 1.05 * losses[0]["log_loss"]
    refused = bncli(*edit, "--refit", "tumours.csv")
    assert (refused.code, "no column 'patient'" in refused.err) == (2, True), refused.err


def test_refit_keeps_the_effect_and_fits_the_rest(bncli: Bncli, fitted: dict[str, Path], tmp_path: Path) -> None:
    path, plain = copied(fitted, "tan", tmp_path), tmp_path / "plain.bnc"
    typed = ("edit", str(path), "--effect", "worst_area", "--set", ">1214=0.9", *WHY)
    assert bncli(*typed, "-o", str(plain)).code == 0
    ran = bncli(*typed, "--refit", "tumours.csv", "--json", "-q")
    refit = json.loads(ran.out)["done"]["refit"]
    assert refit["rows"] == 569
    assert refit["log_loss"] > refit["log_loss_before"] > 0
    assert curve(bncli, path, "worst_area") == pytest.approx(curve(bncli, plain, "worst_area"), abs=1e-9)
    labels = [line.rsplit(",", 1)[1] for line in (SAMPLE_DATA / "tumours.csv").read_text().splitlines()[1:]]
    true = np.array([label == "malignant" for label in labels]).astype(int)

    def log_loss(model: Path) -> float:
        return float(-np.log(probabilities(model)[np.arange(len(true)), true]).mean())

    assert log_loss(fitted["tan"]) < log_loss(path) < log_loss(plain)
    assert bncli("verify", str(path)).code == 0
    assert bncli("edit", str(path), "--undo").code == 0
    assert path.read_bytes() == fitted["tan"].read_bytes()


def test_an_edit_is_shown_everywhere_and_files_are_reproducible(
    bncli: Bncli, fitted: dict[str, Path], tmp_path: Path
) -> None:
    first, second = tmp_path / "a.bnc", tmp_path / "b.bnc"
    for output in (first, second):
        typed = ("--effect", "size", "--set", "large=1", *WHY, "-o", str(output))
        assert bncli("edit", str(fitted["nb"]), *typed).code == 0
    assert first.read_bytes() == second.read_bytes()
    assert dump_model(read_model(str(first))) == first.read_bytes()
    assert "why: a coding error" in bncli("inspect", str(first)).out
    difference = bncli("diff", str(fitted["nb"]), str(first)).out
    assert "edits       + size: set, log-odds of malignant" in difference
    (none, edits) = json.loads(bncli("diff", str(fitted["nb"]), str(first), "--json").out)["edits"]
    assert (none, edits[0]["values"]) == ([], {"large": 1})
    assert bncli("report", str(first), "-o", str(tmp_path / "r.html"), "-q").code == 0
    assert "a coding error" in (tmp_path / "r.html").read_text()
    reverse = with_positive_label(read_model(str(first)), "benign")
    assert reverse.edits[0].values == ((1.0, -1.0),)
    assert largest_edit_difference(reverse) < 1e-12
    restored = with_positive_label(undo_edit(reverse), "malignant")
    assert dump_model(restored) == fitted["nb"].read_bytes()


def test_a_record_that_does_not_fit_is_found(bncli: Bncli, fitted: dict[str, Path], tmp_path: Path) -> None:
    from dataclasses import replace

    path = copied(fitted, "nb", tmp_path)
    assert bncli("edit", str(path), "--effect", "size", "--set", "large=1", *WHY).code == 0
    model = read_model(str(path))
    path.write_bytes(dump_model(replace(model, edits=(replace(model.edits[0], values=((-2.0, 2.0),)),))))
    ran = bncli("verify", str(path))
    assert ran.code == 3
    assert "the numbers of a recorded edit differ from those of the model by up to 1.0e+00" in ran.err
    path.write_bytes(dump_model(replace(model, edits=(replace(model.edits[0], cells=("huge",)),))))
    assert "does not match the model" in bncli("verify", str(path)).err
    path.write_bytes(dump_model(replace(model, edits=(replace(model.edits[0], action="no"),))))
    assert "'no' is not one of 'set', 'flatten'" in bncli("verify", str(path)).err


@pytest.mark.parametrize(
    ("typed", "what"),
    [
        ("--effect nope --flatten --why x", "--effect nope: the model has no such attribute"),
        ("--effect size --set huge=1 --why x", "--set huge=1: size has no value 'huge'"),
        ("--effect size --set large --why x", "--set large: the log-odds are missing"),
        ("--effect size --set large=nan --why x", "'nan' is not a finite number"),
        ("--effect size --set large=1 --set large=2 --why x", "--set names the value 'large' twice"),
        ("--effect size --set large=1 --flatten --why x", "--set and --flatten cannot be combined"),
        ("--effect size --flatten", "--why TEXT is missing"),
        ("--flatten --why x", "--effect NAME is missing"),
        ("--effect size --why x", "an edit needs --set, --flatten, --smooth or --monotone"),
        (
            "--effect size --smooth --why x",
            "--smooth needs the effect of a single numeric attribute, but size is not one",
        ),
        ("--effect size --flatten --label benign --why x", "--label has no effect without --set or --monotone"),
        ("--effect size --set large=1 --label no --why x", "--label no: the class has no such label"),
        ("--effect size,radius --flatten --why x", "no table of the model contains these attributes together"),
        ("--effect size,size --flatten --why x", "names an attribute twice"),
        ("--undo", "there is no edit to undo"),
        ("--undo --why x", "--why has no effect with --undo"),
        ("--list -o x.bnc", "--output has no effect with --list"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    bncli: Bncli, fitted: dict[str, Path], tmp_path: Path, typed: str, what: str
) -> None:
    path = copied(fitted, "nb", tmp_path)
    ran = bncli("edit", str(path), *typed.split())
    assert ran.code == 2
    assert what in ran.err
    assert ran.err.count("\n") == 1
    assert path.read_bytes() == fitted["nb"].read_bytes()


def test_an_edit_keeps_directions(bncli: Bncli, tmp_path: Path) -> None:
    path = tmp_path / "up.bnc"
    package.fit(SAMPLE_DATA / "tumours.csv", structure="nb", penalty=1.0, increasing=["radius"]).save(path)
    ran = bncli("edit", str(path), "--effect", "radius", "--set", ">17.88=-9", *WHY)
    assert ran.code == 2
    assert "violates a monotone direction of the model (radius)" in ran.err
    assert bncli("edit", str(path), "--effect", "radius", "--flatten", *WHY).code == 0


def test_models_without_a_table_to_edit_are_refused(bncli: Bncli, tmp_path: Path) -> None:
    path = tmp_path / "x.bnc"
    package.fit(SAMPLE_DATA / "monks1.csv", structure="kikuchi", param="kbma").save(path)
    ran = bncli("edit", str(path), "--effect", "a1", "--flatten", *WHY)
    assert (ran.code, "averages the probabilities of several models" in ran.err) == (3, True)
    package.fit(SAMPLE_DATA / "wine_holes.csv", structure="nb", param="map", missing_policy="marginalize").save(path)
    ran = bncli("edit", str(path), "--effect", "ash", "--flatten", *WHY)
    assert (ran.code, "marginalizes missing values" in ran.err) == (3, True)


@pytest.mark.slow
def test_an_ensemble_is_edited_in_one_of_its_tables(bncli: Bncli, tmp_path: Path) -> None:
    path = tmp_path / "auto.bnc"
    assert bncli("fit", "tumours.csv", "--structure", "auto", "--effort", "1", "-o", str(path), "-q").code == 0
    original = path.read_bytes()
    ran = bncli("edit", str(path), "--effect", "outline", "--flatten", *WHY)
    assert ran.code == 0, ran.err
    assert np.abs(curve(bncli, path, "outline")).max() < 1e-9
    assert bncli("verify", str(path)).code == 0
    refused = bncli("edit", str(path), "--effect", "size", "--flatten", *WHY, "--refit", "tumours.csv")
    assert (refused.code, "--refit needs a model with a single set of tables" in refused.err) == (3, True)
    assert bncli("edit", str(path), "--undo").code == 0
    assert path.read_bytes() == original
