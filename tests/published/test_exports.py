"""The manual's speeds of what is exported are those that were measured."""

from __future__ import annotations

from tests.manual_tables import MANUAL
from tests.published.exports import MODELS, measured, page_rows, recorded


def test_the_manual_says_what_was_measured() -> None:
    assert page_rows(recorded()) in (MANUAL / "export.md").read_text()


def test_every_program_scores_the_same_rows() -> None:
    name, word = next(iter(MODELS))
    assert {one.program for one in measured(name, word, 600)} == {"bncli", "sqlite", "duckdb", "onnxruntime"}
