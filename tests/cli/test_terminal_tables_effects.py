"""Effects to look at: curves as bars, grids, and what is strongest."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.cli.console import Console
from bncli.cli.terminal_tables import effect_tables
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute
from bncli.steps.effects_and_regions import EffectsReport, NamedEffect

AGE = NumericAttribute("age", False, (1.0, 1.0), (27.5,))
COLOUR = CategoricalAttribute("colour", False, (1.0,) * 9, tuple(f"c{i}" for i in range(9)))
CURVE = NamedEffect(("age",), 0.75, np.array([[1.0, -1.0], [-0.5, 0.5]]), (AGE,), (None,))


def shown(report: EffectsReport, labels: list[str], capfdbinary: pytest.CaptureFixture[bytes]) -> str:
    Console().tables(*effect_tables(report, labels))
    return capfdbinary.readouterr().out.decode()


def test_a_curve_has_bars_on_both_sides(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = shown(EffectsReport(np.array([0.25, -0.25]), (CURVE,), 1), ["no", "yes"], capfdbinary)
    assert "Log-odds of yes, the positive label, against no: base -0.250, plus these effects" in text
    assert "age (75.0%)" in text
    assert f" <=27.5     -1.000   {'█' * 16}|\n" in text
    assert f" >27.5      +0.500   {' ' * 16}|{'█' * 8}\n" in text


def test_a_grid_is_for_what_is_narrow(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    pair = NamedEffect(("colour", "age"), 0.2, np.ones((9, 2, 2)), (COLOUR, AGE), (None, None))
    many = CategoricalAttribute("colour", False, (1.0,) * 30, tuple(f"c{i}" for i in range(30)))
    wide = NamedEffect(("age", "colour"), 0.05, np.arange(120.0).reshape(2, 30, 2), (AGE, many), (None, None))
    text = shown(EffectsReport(np.zeros(2), (pair, wide), 12), ["no", "yes"], capfdbinary)
    assert "average score of 12 models" in text
    assert " colour     <=27.5      >27.5" in text
    assert " c0       █ +1.000   █ +1.000" in text
    assert "age by colour (5.0%), strongest effects" in text
    assert " >27.5   c29      yes     +119.000" in text
    assert "+118.000" not in text


def test_a_wide_pair_is_a_heat_map_of_shades(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    values = np.zeros((2, 9, 2))
    values[0, :, 1] = [4, 3, 2, 1, 0, -1, -2, -3, -4]
    pair = NamedEffect(("age", "colour"), 0.2, values, (AGE, COLOUR), (None, None))
    text = shown(EffectsReport(np.zeros(2), (pair,), 1), ["no", "yes"], capfdbinary)
    assert "Cells of pairs: ░▒▓█ positive, ·∘○● negative" in text
    assert " <=27.5   ██▓▓▒▒░░  ··∘∘○○●●\n" in text
    assert "colour: a c0, b c1, c c2, d c3, e c4, f c5, g c6, h c7, i c8; the largest absolute value is 4.000" in text


def test_points_of_a_nomogram_add_up_to_the_probability(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    other = NamedEffect(("colour",), 0.2, np.zeros((9, 2)), (COLOUR,), (None,))
    other.values[1] = [-0.5, 0.5]
    text = shown(EffectsReport(np.array([-1.0, 1.0]), (CURVE, other), 1), ["no", "yes"], capfdbinary)
    assert " age         <=27.5 0, >27.5 100" in text
    assert " colour      c0 0, c2 0, c3 0, c4 0, c5 0, c6 0, c7 0, c8 0, c1 33" in text
    # of points s the log-odds are 1 - 1 + 1.5 s / 100
    assert "             0      0.5\n" in text
    assert "           133" not in text
    assert "            92      0.8\n" in text


def test_many_classes_show_a_pair_for_the_one_that_it_moves_most(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    values = np.zeros((2, 2, 3))
    values[1, 0] = [-1.0, 3.0, -2.0]
    pair = NamedEffect(("age", "age"), 0.2, values, (AGE, AGE), (None, None))
    text = shown(EffectsReport(np.zeros(3), (pair,), 1), ["a", "b", "c"], capfdbinary)
    assert "age by age (20.0%), log-odds of b" in text
    assert " >27.5    ██\n" in text


def test_many_classes_are_columns_or_the_strongest(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    labels = ["a", "b", "c"]
    curve = CURVE._replace(values=np.array([[1.0, -1.0, 0.0], [-0.5, 0.5, 0.0]]))
    pair = NamedEffect(("age", "colour"), 0.1, np.arange(54.0).reshape(2, 9, 3), (AGE, COLOUR), (None, None))
    text = shown(EffectsReport(np.array([1.0, -1.0, 0.0]), (curve, pair), 1), labels, capfdbinary)
    assert "Base: a +1.000, b -1.000, c +0.000" in text
    assert " <=27.5   +1.000   -1.000   +0.000" in text
    assert "age by colour (10.0%), log-odds of c" in text
    many = NamedEffect(("age",), 1.0, np.arange(20.0).reshape(2, 10), (AGE,), (None,))
    assert "age (100.0%), strongest effects" in shown(
        EffectsReport(np.zeros(10), (many,), 1), list("abcdefghij"), capfdbinary
    )


def test_the_rest_is_counted(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    report = EffectsReport(np.zeros(2), (CURVE,) * 30 + (CURVE._replace(share=0.01),) * 2, 1)
    text = shown(report, ["no", "yes"], capfdbinary)
    assert "... and 2 more effects with 2.0% in total" in text
    assert text.count("age (75.0%)") == 12


def test_without_effects_that_is_said(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = shown(EffectsReport(np.array([0.25, -0.25]), (), 1), ["no", "yes"], capfdbinary)
    assert text.endswith("No attribute has an effect.\n")
