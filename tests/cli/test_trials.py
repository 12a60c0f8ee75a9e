"""How candidates are told."""

from bncli.cli.trials import trial_lines
from bncli.engine.model import TriedCandidate


def test_a_line_each() -> None:
    lines = trial_lines(
        (TriedCandidate("all pairs", 0.03, 0.25, 0.125, 1.0), TriedCandidate("tree", 300.0, 1.5, 0.5, 0.0))
    )
    assert lines == [
        "candidates  2, with the losses of rows held out and the weight in the ensemble",
        "            candidate  penalty  log-loss   error  weight",
        "            all pairs     0.03   0.25000  0.1250    1.00",
        "            tree           300   1.50000  0.5000       -",
    ]


def test_no_candidates_no_lines() -> None:
    assert trial_lines(()) == []
