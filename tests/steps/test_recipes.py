"""Recipes made by a program work like those that were typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bncli.files.artifacts.model import read_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.fit import fit

MONKS = Source((str(Path(__file__).parents[2] / "sample_data" / "monks1.csv"),))


@pytest.mark.parametrize(
    "words",
    [
        {"structure": "tan", "param": "map"},
        {"structure": "kdb", "k": 2, "param": "discriminative"},
        {"structure": "kikuchi"},
        {"structure": "interactions"},
        {"structure": "auto"},
        {"param": "em"},
        {"param": "apn"},
        {"structure": "skdb", "param": "map"},
        {"structure": "hill-climb", "param": "acll"},
    ],
    ids=lambda words: " ".join(map(str, words.values())),
)
def test_few_words_are_enough_for_fit(tmp_path: Path, words: dict[str, Any]) -> None:
    recipe = Recipe(**words)
    report = fit(MONKS, recipe, output=str(tmp_path / "m.bnc"))
    assert read_model(str(tmp_path / "m.bnc")).recipe == recipe.replaced(group_levels=None)  # nothing was pooled
    assert report.log_loss < 0.7
