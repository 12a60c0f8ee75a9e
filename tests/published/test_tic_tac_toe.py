"""The interactions of tic-tac-toe: Jakulin & Rish 2006, Kikuchi-Bayes, figure 2.

The figure shows the regions that the best step was made of: 5 squares, 4 pairs and 6 triples, each with the class. The
text has only their numbers; what the search finds reads as the game does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.structure_learners import kikuchi
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns

TABLE = Path(__file__).parents[2] / "sample_data" / "tic_tac_toe.csv"
SQUARES = "123456789"
"""The board's squares, row by row from the top left."""

CENTRE_AND_CORNERS = ["5", "1", "3", "7", "9"]
CENTRE_WITH_EACH_CORNER = ["15", "59", "35", "57"]
LINES = ["159", "357", "258", "123", "789", "147"]
"""Both diagonals, the middle column, and three of the four edges."""


def test_the_best_step_has_the_numbers_of_the_figure() -> None:
    columns = read_columns(Source((str(TABLE),)))
    data = learn_dataset(columns)
    found = kikuchi.learn(Counts(data), max_order=4, theta=1.0, max_candidates=100_000)
    assert found.trace is not None
    path = ["".join(SQUARES[i] for i in region) for region in found.regions[: found.trace.map_step]]
    assert path == CENTRE_AND_CORNERS + CENTRE_WITH_EACH_CORNER + LINES
    assert found.trace.df[found.trace.map_step] == 137
    assert found.trace.log_posterior[found.trace.map_step] == pytest.approx(-199.08, abs=0.01)
