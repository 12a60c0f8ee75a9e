"""What the command line says of a model of very many tables: a page, not a thousand lines."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from bncli.cli.main import run
from bncli.engine.model import Ensemble, Model
from bncli.engine.prediction import effects
from bncli.files.artifacts.model import write_model
from tests.many_tables import mixed_ensemble, random_codes, random_schema


@pytest.fixture(scope="module")
def model() -> Model:
    return mixed_ensemble(random_schema(20, 3, intervals=9), 600)


@pytest.fixture(scope="module")
def path(model: Model, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("many") / "m.bnc")
    write_model(path, model)
    return path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(list(words)) == 0
    return capsys.readouterr().out


def test_inspect_counts_the_tables(capsys: pytest.CaptureFixture[str], path: str, model: Model) -> None:
    text = said(capsys, "inspect", path)
    assert isinstance(model.predictor, Ensemble)
    sizes = [len(family.attributes) for family in model.predictor.components[0].tables.families]
    counted = ", ".join(f"{sizes.count(n):,} over {n}" for n in sorted(set(sizes)))
    assert f"boosted is a sum of 600 tables, by attributes: {counted}" in " ".join(text.split())
    assert "few is a sum" not in text
    assert re.search(r"^\d{3} regions$", text, re.MULTILINE)
    assert len(text.splitlines()) < 80


@pytest.mark.slow
def test_effects_are_the_first_and_the_number_of_the_others(
    capsys: pytest.CaptureFixture[str], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "MOST_EFFECTS", 40)
    report = json.loads(said(capsys, "inspect", path, "--effects", "--json"))
    text = said(capsys, "inspect", path, "--effects")
    left_out = report["effects_left_out"]
    assert len(report["effects"]) == 40
    hidden = left_out["share"] + sum(effect["share"] for effect in report["effects"][30:])
    assert f"... and {left_out['count'] + 10:,} more effects with {100 * hidden:.1f}% in total" in text
    assert sum(effect["share"] for effect in report["effects"]) + left_out["share"] == pytest.approx(1.0)
    averaged = [effect for effect in report["effects"] if effect.get("averaged")]
    assert ("averages)" in text) == bool(averaged)


@pytest.mark.slow
def test_score_explains_by_sums_that_come_out(capsys: pytest.CaptureFixture[str], path: str, model: Model) -> None:
    columns = random_codes(model.schema, 5)
    data = Path(path).with_name("d.csv")
    with data.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([attribute.name for attribute in model.schema.attributes])
        writer.writerows([_text(model, a, int(column[t])) for a, column in enumerate(columns)] for t in range(5))
    text = said(capsys, "score", path, str(data), "--explain", "2", "--output-format", "jsonl", "-q")
    for line in text.splitlines():
        row = json.loads(line)
        total = row["base"] + row["rest"] + sum(row[f"explain_{i}"]["contribution"] for i in (1, 2))
        assert total == pytest.approx(row["log_odds"], abs=1e-9)


def _text(model: Model, a: int, code: int) -> str:
    attribute = model.schema.attributes[a]
    if code >= attribute.n_values:
        return ""
    if hasattr(attribute, "levels"):
        return str(attribute.levels[code])
    return repr(attribute.cuts[code] if code < len(attribute.cuts) else attribute.cuts[-1] + 1.0)


def test_exports_are_those_of_the_regions(capsys: pytest.CaptureFixture[str], path: str) -> None:
    for form in ("json", "dot"):
        assert len(said(capsys, "export", path, "--to", form)) < 100_000
    assert run(["export", path, "--to", "bif"]) == 3
    assert "is an ensemble" in capsys.readouterr().err
