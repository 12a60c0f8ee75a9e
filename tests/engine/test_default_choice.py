"""Without a structure, held-out rows choose between a tree and interactions; what is chosen is what typing it gives."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from bncli.catalogue import LEARNING
from bncli.catalogue.choices import key_of
from bncli.engine import learn as learning
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.schema import ReadingRules
from bncli.engine.data.splits import SplitBy
from bncli.engine.learn import SuppliedParts, _HeldOutModels, _PenaltyChoice, _TriedFolds, learn
from bncli.engine.model import ChosenPenalty, HeldOutLoss, Model, Tables, TriedStructure
from bncli.engine.prediction.scoring import log_probabilities_of
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
def test_the_model_is_that_of_the_structure_with_the_lower_loss(
    columns: Columns, words: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "CLEAR_UNITS", 1000)  # all folds are compared
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


def chessboard(n_rows: int) -> Columns:
    """The class is decided by the signs of two numbers together, which no cut of one number shows to a tree."""
    rng = np.random.default_rng(2)
    x, z = rng.uniform(-1, 1, (2, n_rows))
    is_yes = (x * z > 0) ^ (rng.random(n_rows) < 0.1)
    return _columns({"x": NumericColumn(x), "z": NumericColumn(z)}, is_yes)


@pytest.mark.parametrize("words", [TREE, INTERACTIONS])
def test_a_clear_difference_on_some_folds_gives_the_model_of_the_typed_structure(
    words: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fits that were compared are continued, which must not change the result."""
    columns, winner = curve(400), int(words is INTERACTIONS)
    compared: list[int] = []

    def compare(choices: list[Any], rows: Columns, quiet: Run, watch: object) -> tuple[int, list[TriedStructure]]:
        compared.extend(len(choice.try_folds(n, quiet).losses) for n in (1, 3) for choice in choices)
        return winner, [TriedStructure("tan", 1.0, 0.5), TriedStructure("interactions", 1.0, 0.4)]

    monkeypatch.setattr(learning, "_compare_folds", compare)
    model = learn(columns, default()).model
    typed = learn(columns, Recipe.of(**words)).model
    assert compared == [80, 80, 240, 240]
    assert same_tables(model, typed)
    assert model.recipe == typed.recipe
    assert model.penalty_cv is not None
    assert replace(model.penalty_cv, structures=()) == typed.penalty_cv


def test_one_fold_decides_about_a_chessboard() -> None:
    model = learn(chessboard(600), default()).model
    assert model.recipe.structure == "interactions"
    assert model.penalty_cv is not None
    losses = [tried.log_loss for tried in model.penalty_cv.structures]
    assert losses[0] > losses[1]
    assert losses[1] != model.held_out_log_loss  # that of all folds


class Choice(NamedTuple):
    """A recipe whose folds have these losses, [fold][row]."""

    recipe: Recipe
    losses: list[Any]
    folds: list[int]
    n_folds: int = 5

    def try_folds(self, n: int, _: Run) -> _TriedFolds:
        self.folds.append(n)
        return _TriedFolds("all", ChosenPenalty(3.0, ()), np.concatenate(self.losses[:n]), HeldOutLoss(0.0, 0.0, 0, 0))


def folds_compared(
    columns: Columns, means: tuple[float, float], spread: float, n_folds: int = 5
) -> tuple[int, int | None]:
    """Compare two recipes whose losses are normal variates around `means`; return the number of folds, and the winner.

    A fold has 200 rows, and every fold the same losses.
    """
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200)
    noise = spread * (noise - noise.mean()) / noise.std()
    own, other = default().competing()
    choices = [Choice(own, [np.full(200, means[0])] * 5, []), Choice(other, [means[1] + noise] * 5, [], n_folds)]
    winner, tried = learning._compare_folds(choices, columns, Run(), silent)  # type: ignore[arg-type]
    assert [one.structure for one in tried] == (["tan", "interactions"] if choices[0].folds else [])
    assert [one.log_loss for one in tried] == pytest.approx(list(means) if choices[0].folds else [])
    assert choices[0].folds == choices[1].folds == list(range(1, len(choices[0].folds) + 1))
    return len(choices[0].folds), winner


@pytest.mark.parametrize(
    ("gain", "spread", "folds", "winner"),
    [
        (0.2, 0.5, 1, 1),
        (-0.2, 0.5, 1, 0),
        (0.06, 0.5, 2, 1),
        (-0.04, 0.5, 4, 0),
        (0.02, 0.5, 4, None),
        (0.0, 0.1, 4, None),
        (5e-4, 0.0, 1, 0),
        (2e-3, 0.0, 3, 1),
    ],
)
def test_folds_are_compared_until_the_difference_is_clear(
    gain: float, spread: float, folds: int, winner: int | None
) -> None:
    """On a fold 0.2 nats per row are 5.7 standard errors, 0.06 are 1.7, on two folds 2.4. EVIDENCE is 1.1 nats."""
    assert folds_compared(curve(1000), (0.5, 0.5 - gain), spread) == (folds, winner)


@pytest.mark.parametrize(("gain", "winner"), [(0.2, 1), (0.02, 1), (0.0, 0), (-0.02, 0)])
def test_a_difference_on_the_last_fold_of_few_decides(gain: float, winner: int) -> None:
    """With five folds, the differences of 0.02 and 0 would not be clear after two."""
    compared = 1 if gain == 0.2 else 2
    assert folds_compared(curve(1000), (0.5, 0.5 - gain), 0.5, n_folds=2) == (compared, winner)


def test_few_units_are_never_clear() -> None:
    for rows_per_unit, found in ((50, (0, None)), (2, (1, 1))):
        columns = replace(curve(1000), split_by=SplitBy(np.arange(1000) // rows_per_unit))
        assert folds_compared(columns, (0.5, 0.4), 0.1) == found


@pytest.mark.parametrize("words", [TREE, INTERACTIONS])
def test_losses_of_a_fold_are_those_of_a_model_without_these_rows(words: dict[str, Any]) -> None:
    recipe = Recipe.of(penalty="10", **words)
    choice = _PenaltyChoice.of([curve()], recipe, SuppliedParts(), ReadingRules(), Run())
    _, penalty, losses, _ = choice.try_folds(1, Run())
    (fold,) = choice.folds
    expected = []
    for word in ("none", "all"):
        chosen = ChosenPenalty(penalty.penalty, ())
        models = _HeldOutModels(recipe, SuppliedParts(), ReadingRules(), choice.structure, word, chosen, Run())
        log_p = log_probabilities_of(models.fit(fold.counts.data, Run()).predictor, fold.rows)
        expected.append(-log_p[fold.rows.labels, np.arange(fold.rows.n_rows)])
    # of two attributes, a tree has one arc or none
    assert any(np.allclose(losses, own, rtol=0.02) for own in expected)


@pytest.mark.parametrize("winner", [0, 1])
def test_only_the_notes_on_the_winner_are_given(winner: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree merges the levels of a name, which interactions keep: a note says so of the tree alone."""
    rng = np.random.default_rng(0)
    levels = tuple(f"n{i}" for i in range(40))
    names = rng.integers(0, len(levels), 800).astype(np.uint8)
    columns = _columns({"name": CategoricalColumn(names, levels)}, rng.random(800) < 0.1 + 0.8 * (names % 2))
    monkeypatch.setattr(learning, "_compare_folds", lambda *_: (winner, []))
    heard: list[Event] = []
    learn(columns, default(), run=Run(watch=heard.append))
    notes = [event.text for event in heard if isinstance(event, Note)]
    assert [note for note in notes if "pooled" in note] == notes
    assert len(notes) == 1 - winner


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


@pytest.mark.parametrize(("limit", "value"), [("ROWS_PER_LABEL", 101), ("MOST_LABEL_CELLS", 799)])
def test_many_classes_with_few_rows_or_many_values_keep_the_tree(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    """The curve has 200 rows, two attributes and two classes."""
    monkeypatch.setattr(learning, "MANY_LABELS", 1)
    assert learning._not_compared(curve(), Run()) == ""
    monkeypatch.setattr(learning, limit, value)
    assert learning._not_compared(curve(), Run()).startswith("there are 2 classes, ")


@pytest.mark.parametrize("hold_out", [False, True])
def test_of_many_classes_the_penalty_of_the_sample_is_kept(monkeypatch: pytest.MonkeyPatch, hold_out: bool) -> None:
    monkeypatch.setattr(learning, "MANY_LABELS", 1)
    monkeypatch.setattr(learning, "COMPARED_ROWS", 501)
    model = learn(chessboard(600), default(), run=Run(hold_out=hold_out)).model
    assert model.recipe.structure == "interactions"
    assert model.penalty_cv is not None
    tan, interactions = model.penalty_cv.structures
    assert tan.log_loss > interactions.log_loss
    assert model.penalty == interactions.penalty == model.penalty_cv.penalty
    assert same_tables(model, learn(chessboard(600), Recipe.of(penalty=str(model.penalty), **INTERACTIONS)).model)
    assert model.held_out is not None
    if hold_out:
        typed = learn(chessboard(600), Recipe.of(**INTERACTIONS), run=Run(hold_out=True)).model
        assert model.held_out.rows == 600
        assert model.held_out.log_loss == pytest.approx(typed.held_out_log_loss, rel=0.05)
    else:  # the loss of a fold of the sample of 500 rows
        assert model.held_out.rows == 100
        assert model.held_out.log_loss == pytest.approx(interactions.log_loss, rel=1e-9)


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
