"""Without a structure, held-out rows choose between a tree and interactions; what is chosen is what typing it gives."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bncli.catalogue import LEARNING
from bncli.catalogue.choices import key_of
from bncli.engine import learn as learning
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.schema import ReadingRules
from bncli.engine.data.splits import SplitBy
from bncli.engine.learn import learn
from bncli.engine.model import Model, Tables, TriedStructure
from bncli.engine.prediction.out_of_fold import predict
from bncli.engine.structures.structure import Regions, Structure
from bncli.errors import BncliError
from bncli.files.artifacts.model import read_model, write_model
from bncli.recipe import Recipe
from bncli.recipe.defaults import GO_WITH_ALTERNATIVE, SuppliedKinds
from bncli.watch import Event, Note, Run, Stage, silent

TREE: dict[str, Any] = {"structure": "tan", "arcs": "cv"}
INTERACTIONS: dict[str, Any] = {"structure": "interactions"}


def default(**words: Any) -> Recipe:
    return Recipe.of(alternatives=True, **words)


def parity(n_rows: int = 240) -> Columns:
    """The class is the parity of two of three names: a tree finds it, so interactions cannot be much better."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (3, n_rows)).astype(np.uint8)
    return _columns({f"b{i}": CategoricalColumn(own, ("n", "y")) for i, own in enumerate(codes)}, codes[0] ^ codes[1])


def curve(n_rows: int = 200) -> Columns:
    """The log-odds are a wave of one number: few cuts lose much of it."""
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, n_rows))
    return _columns({"x": NumericColumn(x), "z": NumericColumn(z)}, rng.random(n_rows) < 1 / (1 + np.exp(-3 * x)))


def _columns(attributes: dict[str, Any], labels: Any) -> Columns:
    label = CategoricalColumn(np.asarray(labels).astype(np.uint8), ("no", "yes"))
    return Columns(len(label.codes), attributes, "class", label)


@cache
def alone(structure: str) -> Model:
    """Return the model of the curve by one of the two structures, typed."""
    return learn(curve(), Recipe.of(**(TREE if structure == "tan" else INTERACTIONS))).model


def same_tables(one: Model, other: Model) -> bool:
    assert isinstance(one.predictor, Tables)
    assert isinstance(other.predictor, Tables)
    return one.predictor.families == other.predictor.families and bool(
        np.array_equal(one.predictor.cells, other.predictor.cells)
    )


@pytest.mark.parametrize(("columns", "words"), [(parity(), TREE), (curve(), INTERACTIONS)], ids=["parity", "curve"])
def test_the_model_is_that_of_the_structure_with_the_lower_loss(columns: Columns, words: dict[str, Any]) -> None:
    chosen = learn(columns, default()).model
    losses = {}
    for typed in (TREE, INTERACTIONS):
        model = learn(columns, Recipe.of(**typed), run=Run(hold_out=True)).model
        losses[str(typed["structure"])] = model.held_out_log_loss
        if typed == words:
            assert same_tables(chosen, model)
            assert chosen.recipe == model.recipe
    assert chosen.penalty_cv is not None
    assert {tried.structure: tried.log_loss for tried in chosen.penalty_cv.structures} == losses
    assert (chosen.structure_learned == "interactions, chosen on held-out rows") == (words == INTERACTIONS)


@pytest.mark.slow
def test_a_gain_below_the_evidence_keeps_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "EVIDENCE", 1e9)
    assert learn(curve(), default()).model.recipe.structure == "tan"


@pytest.mark.slow
def test_many_rows_are_compared_on_a_sample_and_learned_from_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "COMPARED_ROWS", 100)
    model = learn(curve(), default()).model
    assert model.n_rows == 200
    assert same_tables(model, alone("interactions"))
    assert model.penalty_cv is not None
    assert [tried.structure for tried in model.penalty_cv.structures] == ["tan", "interactions"]


def is_clear(monkeypatch: pytest.MonkeyPatch, columns: Columns, means: tuple[float, float], spread: float) -> bool:
    """Compare two recipes whose losses are normal variates around `means`; return whether the first fold decides."""
    rng = np.random.default_rng(0)

    def losses(training: Columns, held_out: Columns, recipe: Recipe, *_: object) -> tuple[float, Any]:
        assert (training.n_rows, held_out.n_rows) == (800, 200)
        is_other = recipe.structure == "interactions"
        return 3.0, means[is_other] + spread * is_other * rng.normal(size=held_out.n_rows)

    of_all = [TriedStructure("tan", 1.0, 0.5), TriedStructure("interactions", 1.0, 0.4)]
    monkeypatch.setattr(learning, "_held_out_losses", losses)
    monkeypatch.setattr(learning, "_choose", lambda *_: None)
    monkeypatch.setattr(learning, "_tried_structures", lambda _: of_all)
    best, tried = learning._compare_on_sample(columns, default().competing(), ReadingRules(), Run(), silent)
    if tried == of_all:
        assert best.structure == "interactions"
        return False
    gain = 200 * (tried[0].log_loss - tried[1].log_loss)
    assert (best.structure == "interactions") == (gain > learning.EVIDENCE)
    assert [trial.log_loss for trial in tried] == pytest.approx(means, abs=spread / 3 + 1e-12)
    return True


@pytest.mark.parametrize(
    ("gain", "spread", "clear"),
    [(0.2, 0.5, True), (-0.2, 0.5, True), (0.01, 0.5, False), (0.0, 0.1, False), (5e-4, 0.0, True), (2e-3, 0.0, False)],
)
def test_one_fold_of_a_sample_decides_if_the_difference_is_clear(
    gain: float, spread: float, clear: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold has 200 rows: 0.2 nats per row are six standard errors, 0.01 not one. EVIDENCE is 1.1 nats."""
    assert is_clear(monkeypatch, curve(1000), (0.5, 0.5 - gain), spread) == clear


def test_few_units_are_never_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    for n_rows, clear in ((50, False), (2, True)):
        columns = replace(curve(1000), split_by=SplitBy(np.arange(1000) // n_rows))
        assert is_clear(monkeypatch, columns, (0.5, 0.4), 0.1) == clear


@pytest.mark.parametrize("words", [TREE, INTERACTIONS])
def test_losses_of_a_sample_are_those_of_models_without_these_rows(words: dict[str, Any]) -> None:
    columns, recipe = curve(), Recipe.of(**words)
    training, held_out = columns.take(np.arange(50, 200)), columns.take(np.arange(50))
    penalty, losses = learning._held_out_losses(training, held_out, recipe, ReadingRules(), Run())
    model = learn(training, recipe.replaced(penalty=penalty, **({"arcs": "off"} if "arcs" in words else {}))).model
    assert held_out.label is not None
    expected = -predict(model, held_out)[held_out.label.codes, np.arange(50)]
    if words is INTERACTIONS:
        np.testing.assert_allclose(losses, expected, atol=0.01)
    assert losses.mean() == pytest.approx(expected.mean(), rel=0.05)


LIMITS = (("MOST_ATTRIBUTES", 1, "attributes"), ("MOST_CLASSES", 1, "classes"), ("MOST_CELLS", 100, "values"))


@pytest.mark.parametrize(("limit", "value", "word"), LIMITS)
def test_a_large_table_keeps_the_tree_and_a_note_says_so(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, word: str
) -> None:
    monkeypatch.setattr(learning, limit, value)
    heard: list[Event] = []
    model = learn(curve(), default(), run=Run(watch=heard.append)).model
    assert same_tables(model, alone("tan"))
    assert model.penalty_cv is not None
    assert model.penalty_cv.structures == ()
    (note,) = (event.text for event in heard if isinstance(event, Note))
    assert note.startswith("--structure interactions was not compared with tan: ")
    assert word in note


@pytest.mark.slow
def test_a_refusal_of_the_alternative_keeps_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(structure: Structure, *_: object) -> None:
        if isinstance(structure, Regions):
            raise BncliError("too large")

    monkeypatch.setattr(learning, "refuse_large", refuse)
    for n_rows in (1000, 100):
        monkeypatch.setattr(learning, "COMPARED_ROWS", n_rows)
        heard: list[Event] = []
        model = learn(curve(), default(), run=Run(watch=heard.append)).model
        assert same_tables(model, alone("tan"))
        notes = [event.text for event in heard if isinstance(event, Note)]
        assert notes == ["--structure interactions was not compared with tan: too large"]


def test_one_row_cannot_be_compared() -> None:
    assert learn(curve().take(np.array([0])), default()).model.recipe.structure == "tan"


def test_weights_count_as_rows() -> None:
    """Each row of weight 2 is the same evidence as two rows, so the same structure wins by twice the nats."""
    columns = curve(60)
    weighted = replace(columns, weights=np.full(60, 2.0))
    assert learn(weighted, default()).model.penalty_cv.structures  # type: ignore[union-attr]


def test_the_record_is_kept_in_the_file(tmp_path: Path) -> None:
    model = learn(curve(), default()).model
    write_model(str(tmp_path / "m.bnc"), model)
    again = read_model(str(tmp_path / "m.bnc"))
    assert again.penalty_cv == model.penalty_cv
    assert again.recipe == model.recipe
    assert again.recipe.alternative is None


DECIDING = (
    *(("discretize", "mdl"), ("structure", "tan"), ("structure_score", "bic"), ("param", "weighted"), ("penalty", "1")),
    *(("arcs", "cv"), ("smoothing", "m-estimate"), ("optimizer", "newton"), ("tolerance", "1e-3")),
)


@pytest.mark.parametrize(("key", "value"), DECIDING)
def test_what_decides_the_model_leaves_no_alternative(key: str, value: str) -> None:
    assert default(**{key: value}).alternative is None


def test_options_about_neither_structure_leave_it_open() -> None:
    known = {key_of(entry.flag) for entry in LEARNING} | {"seed"}
    assert {key_of(flag) for flag in GO_WITH_ALTERNATIVE} <= known
    words: dict[str, Any] = {"seed": 3, "group_levels": "off", "class_weights": "balanced", "max_attributes": 2}
    recipe = default(**words)
    assert recipe.alternative == "interactions"
    own, other = recipe.competing()
    assert own == Recipe.of(**words)
    assert other == Recipe.of(structure="interactions", **words)


def test_supplied_files_leave_no_alternative() -> None:
    for files in (SuppliedKinds(cuts="c"), SuppliedKinds(structure="s")):
        assert Recipe.of(alternatives=True, files=files).alternative is None
    assert Recipe.of(alternatives=True, files=SuppliedKinds(trace="t")).alternative == "interactions"


@pytest.mark.parametrize("compared_rows", [learning.COMPARED_ROWS, 150], ids=["all rows", "a sample"])
def test_the_comparison_is_a_stage_of_its_own(monkeypatch: pytest.MonkeyPatch, compared_rows: int) -> None:
    """Its seconds would otherwise be those of reading, or of the stage before it."""
    monkeypatch.setattr(learning, "COMPARED_ROWS", compared_rows)
    heard: list[Event] = []
    learn(curve(), default(), run=Run(watch=heard.append))
    stages = [event.name for event in heard if isinstance(event, Stage)]
    assert stages.count("compare") == 1
    assert (stages[0] == "compare") == (compared_rows == 150)
    assert stages[-1] == "parameters"


@pytest.mark.parametrize("n_groups", [2, 3])
def test_few_large_groups_are_compared_on_rows_of_all_of_them(n_groups: int) -> None:
    """A sample of whole groups would hold one group, of which nothing can be held out."""
    n_rows = learning.COMPARED_ROWS + 1
    columns = replace(curve(n_rows), split_by=SplitBy(np.arange(n_rows) * n_groups // n_rows))
    model = learn(columns, default(seed=0)).model
    assert model.penalty_cv is not None
    assert [one.structure for one in model.penalty_cv.structures] == ["tan", "interactions"]
    assert model.recipe.structure == "interactions"
