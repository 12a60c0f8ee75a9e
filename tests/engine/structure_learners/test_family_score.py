"""A rule as the user writes it leads to its module and number."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.scores import acll, acll_uniform, aic, bdeu, bic, k2, ll
from bncli.engine.structure_learners.arc_scores import family_score

COUNTS = np.random.default_rng(3).integers(0, 20, (4, 3, 2, 3)).astype(float)


@pytest.mark.parametrize(("word", "module"), [("ll", ll), ("bic", bic), ("aic", aic), ("k2", k2)])
def test_a_word(word: str, module: object) -> None:
    rule = family_score(word)
    np.testing.assert_array_equal(rule.score(COUNTS), module.family_scores(COUNTS))  # type: ignore[attr-defined]
    assert rule.equivalent is (word != "k2")


@pytest.mark.parametrize(("word", "module"), [("bdeu", bdeu), ("acll", acll), ("acll-uniform", acll_uniform)])
@pytest.mark.parametrize("number", ["1", "5", "0.25", "1e2"])
def test_a_word_and_a_number(word: str, module: object, number: str) -> None:
    rule = family_score(f"{word}:{number}")
    expected = module.family_scores(COUNTS, float(number))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(rule.score(COUNTS), expected)
    assert rule.equivalent is (word == "bdeu")
