"""The files in sample_data/ are what the script says they are, and agree with the published sets."""

import csv
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.make_sample_data import sample_data

FOLDER = Path(__file__).parent.parent / "sample_data"
MADE = sample_data()


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


@pytest.mark.parametrize("name", sorted(MADE))
def test_the_script_makes_the_file(name: str) -> None:
    assert (FOLDER / name).read_bytes() == MADE[name]


def test_the_folder_holds_nothing_else() -> None:
    """Models aside: trying the examples of the README leaves some."""
    assert {path.name for path in FOLDER.iterdir() if path.suffix != ".bnc"} == {*MADE, "README.md"}


@pytest.mark.parametrize("name", sorted(MADE))
def test_the_readme_names_the_file(name: str) -> None:
    assert f"`{name}`" in (FOLDER / "README.md").read_text()


def test_tic_tac_toe_has_the_documented_classes() -> None:
    assert Counter(row[-1] for row in rows(FOLDER / "tic_tac_toe.csv")) == {"positive": 626, "negative": 332}


def test_balance_scale_has_the_documented_classes() -> None:
    assert Counter(row[-1] for row in rows(FOLDER / "balance_scale.csv")) == {"L": 288, "R": 288, "B": 49}


def test_missing_values_are_about_a_tenth_of_the_cells_and_nothing_else_changed() -> None:
    whole, incomplete = rows(FOLDER / "wine.csv"), rows(FOLDER / "wine_holes.csv")
    cells = [(a, b) for x, y in zip(whole, incomplete, strict=True) for a, b in zip(x, y, strict=True)]
    assert 0.08 < sum(b == "" for _, b in cells) / len(cells) < 0.12
    assert all(b in (a, "") for a, b in cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tic_tac_toe.csv", "monks1.csv", "balance_scale.csv"])
def test_the_definition_gives_the_published_set(name: str) -> None:
    if "BNCLI_DATA" not in os.environ:
        pytest.skip("BNCLI_DATA is not set")
    published = rows(Path(os.environ["BNCLI_DATA"]) / name)
    assert Counter(map(tuple, published)) == Counter(map(tuple, rows(FOLDER / name)))


@pytest.mark.slow
def test_wine_is_the_published_set() -> None:
    if "BNCLI_DATA" not in os.environ:
        pytest.skip("BNCLI_DATA is not set")
    published = rows(Path(os.environ["BNCLI_DATA"]) / "wine.csv")
    ours = rows(FOLDER / "wine.csv")
    assert [list(map(float, row[:-1])) for row in published] == [list(map(float, row[:-1])) for row in ours]
    assert [f"cultivar_{row[-1]}" for row in published] == [row[-1] for row in ours]
