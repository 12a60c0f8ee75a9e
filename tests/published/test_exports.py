"""The page of exports, and what the manual says of their speed, are those that the figures give."""

from __future__ import annotations

import importlib.util

import pytest

from tests.manual_tables import MANUAL
from tests.published import exports, exports_estimator, exports_gate, exports_page
from tests.published.exports import MODELS, PROGRAMS, measured
from tests.sweeps import first_few

NEEDED = ("duckdb", "onnx", "onnxruntime")
NEEDS_ALL = pytest.mark.skipif(
    any(importlib.util.find_spec(package) is None for package in NEEDED), reason=f"needs {', '.join(NEEDED)}"
)


def test_the_page_is_made_from_the_figures() -> None:
    assert exports_page.page() == exports_page.PAGE.read_text()


def test_the_manual_says_what_was_measured() -> None:
    assert exports_page.speeds(exports.recorded()) in (MANUAL / "export.md").read_text()


def test_figures_are_complete() -> None:
    """A million rows in every program; every kind in every format within the tolerance or refused for a reason."""
    figures = exports.recorded()
    assert {(one.table, one.model, one.program) for one in figures} == {(*m, p) for m in MODELS for p in PROGRAMS}
    assert {one.rows for one in figures} == {1_000_000}
    gate = exports_gate.recorded()
    assert len(gate) == len(exports_gate.KINDS) * len(exports_gate.FORMATS)
    assert all(one.refused or (one.max_dp is not None and one.max_dp <= 1e-9) for one in gate)
    assert all(one.refused or (one.rows is not None and one.rows >= 10_000) for one in gate)
    assert all(one.failed == 0 for one in exports_estimator.recorded())
    assert [one.learner for one in exports_estimator.recorded()] == [*exports_estimator.LEARNERS]


@pytest.mark.slow
@NEEDS_ALL
def test_every_program_scores_the_same_rows() -> None:
    name, word = next(iter(MODELS))
    assert {one.program for one in measured(name, word, 600)} == {*PROGRAMS}


@pytest.mark.parametrize("kind", first_few(["tree and isotonic maps", "tree, `map`"]))
def test_the_gate_gives_these_figures(kind: str) -> None:
    recorded = {one.format: one for one in exports_gate.recorded() if one.kind == kind}
    for one in exports_gate.measured(kind, lambda form: form in ("bif", "python", "SQLite")):
        known = recorded[one.format]
        assert (one.rows, one.entries, one.refused) == (known.rows, known.entries, known.refused)
        if one.max_dp is not None and known.max_dp is not None:
            assert one.max_dp < 100 * known.max_dp + 1e-12


@pytest.mark.slow
@NEEDS_ALL
@pytest.mark.usefixtures("fewer_export_rows")
@pytest.mark.parametrize(
    "kind", [kind for kind in exports_gate.KINDS if kind != "`auto`"]
)  # it is as for three classes
def test_the_gate_of_every_kind(kind: str) -> None:
    recorded = {one.format: one.refused for one in exports_gate.recorded() if one.kind == kind}
    found = exports_gate.measured(kind, lambda form: form not in ("PostgreSQL", "javascript"))
    assert all(one.refused == recorded[one.format] for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["tan", "auto"])  # naive Bayes has them in the usual run
def test_the_checks_of_scikit_learn(learner: str) -> None:
    found = exports_estimator.measured(learner)
    recorded = {one.learner: one for one in exports_estimator.recorded()}[learner]
    assert found.failed == 0
    assert found == recorded or found.scikit_learn != recorded.scikit_learn
