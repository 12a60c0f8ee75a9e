"""Cross-validation: what each fold learns and sees."""

from dataclasses import replace

import numpy as np
import pytest

from bncli.engine.data.columns import MISSING, CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.cutting import cuts_of, learn_dataset
from bncli.engine.data.schema import ReadingRules
from bncli.engine.data.splits import SplitBy
from bncli.engine.evaluation.cross_validation import (
    CrossValidation,
    FoldProgress,
    Protocol,
    Split,
    cross_validate,
    draw_splits,
    hold_out,
    out_of_fold,
    predict,
    predict_and_measure,
    sample_others,
)
from bncli.engine.learn import SuppliedParts, learn
from bncli.errors import BncliError, ModelError
from bncli.recipe import Recipe
from bncli.watch import Event, Note, Progress, Run, Stage

RECIPE = Recipe.of(structure="nb", param="map")


def table(n: int, seed: int = 0) -> Columns:
    """A number and a word that follow the class, with missing values; the class `never` has no rows."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    words = np.where(rng.random(n) < 0.1, MISSING, (labels + rng.integers(0, 2, n)) % 3)
    return Columns(
        n,
        {
            "number": NumericColumn(rng.normal(size=n) + 3 * labels),
            "word": CategoricalColumn(words.astype(np.int8), ("a", "b", "c")),
        },
        "y",
        CategoricalColumn(labels.astype(np.int8), ("no", "yes", "never")),
    )


def test_each_fold_is_what_learning_without_its_rows_predicts() -> None:
    columns = table(60)
    folds = list(cross_validate(columns, CrossValidation(RECIPE, Protocol(3, 2, 1))))
    assert [(f.repeat, f.number) for f in folds] == [(r, f) for r in (0, 1) for f in (0, 1, 2)]
    for repeat in (0, 1):
        rows = np.concatenate([f.rows for f in folds if f.repeat == repeat])
        assert sorted(rows.tolist()) == list(range(60))
    fold = folds[4]
    others = np.setdiff1d(np.arange(60), fold.rows)
    model = learn(columns.take(others), RECIPE).model
    assert (predict(model, columns.take(fold.rows)) == fold.measured.log_probabilities).all()
    assert fold.measured.metrics.confusion.sum() == len(fold.rows)
    assert fold.measured.metrics.accuracy > 0.5


def test_every_row_gets_the_prediction_of_the_first_repeat() -> None:
    columns = table(30)
    folds = list(cross_validate(columns, CrossValidation(RECIPE, Protocol(2, 3))))
    predictions = out_of_fold(folds)[1]
    assert predictions.shape == (3, 30)
    for fold in folds[:2]:
        assert (predictions[:, fold.rows] == fold.measured.log_probabilities).all()


def test_cuts_are_learnt_in_the_fold_unless_given() -> None:
    """A model of the training rows keeps its own cuts; given ones stay, whatever the rows say."""
    columns = table(40)
    cuts = cuts_of(learn_dataset(columns, discretize="equal-width", bins=3).schema, "equal-width", {"bins": 3})
    free = cross_validate(columns, CrossValidation(RECIPE, Protocol(2)))
    bound = cross_validate(columns, CrossValidation(RECIPE, Protocol(2), supplied=SuppliedParts(cuts)))
    assert (out_of_fold(free)[1] != out_of_fold(bound)[1]).any()


def test_the_same_seed_gives_the_same_predictions_for_any_threads() -> None:
    columns = table(50)
    first = out_of_fold(cross_validate(columns, CrossValidation(RECIPE, Protocol(5, seed=3))))[1]
    assert (
        out_of_fold(cross_validate(columns, CrossValidation(RECIPE, Protocol(5, seed=3)), Run(3)))[1] == first
    ).all()
    assert (out_of_fold(cross_validate(columns, CrossValidation(RECIPE, Protocol(5, seed=4))))[1] != first).any()


def test_a_fold_alone_is_that_of_the_cross_validation() -> None:
    columns = table(40)
    folds = list(cross_validate(columns, CrossValidation(RECIPE, Protocol(4, 2, 9))))
    for fold in (folds[6], folds[1]):
        split = draw_splits(columns, Protocol(4, 2, 9), fold.repeat)[fold.number]
        assert sorted([*split.rows, *split.others]) == list(range(40))
        alone = hold_out(columns, CrossValidation(RECIPE), split)
        assert (alone.repeat, alone.number, alone.penalty) == (fold.repeat, fold.number, fold.penalty)
        assert (alone.rows == fold.rows).all()
        assert (alone.measured.log_probabilities == fold.measured.log_probabilities).all()


def test_what_the_watch_hears() -> None:
    events: list[Event] = []
    list(cross_validate(table(20), CrossValidation(RECIPE, Protocol(2)), Run(watch=events.append)))
    fit, score, again = Stage("fit"), Stage("score"), Stage("evaluate")
    folds = [Progress(0, 2, "fold 1 of 2"), Progress(1, 2, "fold 2 of 2"), Progress(2, 2)]
    cut = [[Progress(f, 2, f"fold {f + 1} of 2: {name}") for name in ("number", "word")] for f in range(2)]
    assert events == [fit, folds[0], *cut[0], score, again, fit, folds[1], *cut[1], score, again, folds[2]]


def test_each_model_is_also_measured_on_the_rows_of_the_next_fold() -> None:
    columns, protocol = table(61), Protocol(3, 2, 5)
    folds = list(cross_validate(columns, CrossValidation(RECIPE, protocol, sizes=(20,))))
    assert columns.label is not None
    for repeat in range(2):
        splits = draw_splits(columns, protocol, repeat)
        for fold, split in zip([f for f in folds if f.repeat == repeat and f.size is None], splits, strict=True):
            rows = splits[(split.number + 1) % 3].rows
            assert set(rows) <= set(split.others)
            log_p = predict(learn(columns.take(split.others), RECIPE).model, columns.take(rows))
            expected = -np.mean([log_p[columns.label.codes[row], i] for i, row in enumerate(rows)])
            assert fold.training_log_loss == pytest.approx(expected, rel=1e-12)
    assert all(fold.training_log_loss is None for fold in folds if fold.size is not None)
    # a block is not learned from before it is tested
    times = replace(columns, split_by=SplitBy(times=np.arange(61.0)))
    by_time = cross_validate(times, CrossValidation(RECIPE, Protocol(3, by_time=True)))
    assert [fold.training_log_loss for fold in by_time] == [None, None]


def test_samples_of_a_fold_are_nested_and_each_is_learnt_from_alone() -> None:
    columns, protocol = table(61), Protocol(3, 2, 5)
    folds = list(cross_validate(columns, CrossValidation(RECIPE, protocol, sizes=(7, 20, 41))))
    # of 61 rows in 3 folds 40 or 41 are learned from: where there are no more than 41, no sample is drawn
    assert [(f.repeat, f.number, f.size) for f in folds] == [
        (r, f, size) for r in (0, 1) for f in (0, 1, 2) for size in (None, 7, 20)
    ]
    for whole, *sampled in (folds[i : i + 3] for i in range(0, 18, 3)):
        split = draw_splits(columns, protocol, whole.repeat)[whole.number]
        samples = list(sample_others(columns, split, (7, 20, 41), protocol.seed))
        assert [len(sample.others) for sample in samples] == [7, 20]
        assert set(samples[0].others) < set(samples[1].others) < set(split.others)
        for fold, sample in zip(sampled, samples, strict=True):
            assert (np.diff(sample.others) > 0).all()
            assert (fold.rows == whole.rows).all()
            model = learn(columns.take(sample.others), RECIPE).model
            assert (predict(model, columns.take(fold.rows)) == fold.measured.log_probabilities).all()
            (alone,) = sample_others(columns, split, (len(sample.others),), protocol.seed)
            assert (alone.others == sample.others).all()


def test_samples_differ_between_repeats_folds_and_seeds() -> None:
    columns = table(60)
    splits = [
        replace(draw_splits(columns, Protocol(3), 0)[fold], repeat=repeat) for repeat in (0, 1) for fold in (0, 1)
    ]
    drawn = [
        tuple(sample.others)
        for seed in (0, 1)
        for split in splits
        for sample in sample_others(columns, split, (9,), seed)
    ]
    assert len(set(drawn)) == 8


def test_the_watch_hears_of_samples_by_their_rows() -> None:
    events: list[Event] = []
    list(cross_validate(table(20), CrossValidation(RECIPE, Protocol(2), sizes=(2, 4)), Run(watch=events.append)))
    told = [(event.done, event.detail) for event in events if isinstance(event, Progress) and ":" not in event.detail]
    # 10 rows, then 2, then 4: 16 of them are a fold
    where = ["fold 1 of 2", "fold 1 of 2, 2 rows", "fold 1 of 2, 4 rows"]
    assert [detail for _, detail in told] == [*where, *(one.replace("1 of", "2 of") for one in where), ""]
    assert [done for done, _ in told] == pytest.approx([0, 10 / 16, 12 / 16, 1, 26 / 16, 28 / 16, 2])
    assert {event.total for event in events if isinstance(event, Progress)} == {2}


@pytest.mark.slow
def test_the_watch_hears_what_auto_tries_inside_a_fold() -> None:
    events: list[Event] = []
    list(cross_validate(table(60), CrossValidation(Recipe.of(structure="auto"), Protocol(2)), Run(watch=events.append)))
    assert {type(event) for event in events} == {Stage, Progress}
    done = [event.done for event in events if isinstance(event, Progress)]
    assert done == sorted(done)
    assert any(0 < share < 1 for share in done)
    assert any(1 < share < 2 for share in done)
    told = {event.detail for event in events if isinstance(event, Progress)}
    assert any(detail.startswith("fold 1 of 2: singles, penalty 30, fold ") for detail in told)


def test_a_value_of_one_fold_only_is_unknown_to_the_model() -> None:
    columns = table(20)
    words = columns.attributes["word"]
    assert isinstance(words, CategoricalColumn)
    words.codes[:] = np.arange(20) % 2
    words.codes[7] = 2
    assert np.isfinite(out_of_fold(cross_validate(columns, CrossValidation(RECIPE, Protocol(4))))[1]).all()
    with pytest.raises(ModelError, match="'word' has values that were never seen in training, in 1 row"):
        list(cross_validate(columns, CrossValidation(RECIPE, Protocol(4), reading_rules=ReadingRules(unseen="error"))))


def test_rows_must_have_a_class() -> None:
    with pytest.raises(BncliError, match="has no class column"):
        list(cross_validate(Columns(4, {}, "y", None), CrossValidation(RECIPE)))
    model = learn(table(20), RECIPE).model
    with pytest.raises(ModelError, match="has no class column"):
        predict_and_measure(model, Columns(0, {}, "y", None))


def test_nine_tenths_of_a_fold_go_into_trying_candidates() -> None:
    """Stages before and after have no measure: the bar waits."""
    heard: list[Event] = []
    split = Split(0, 1, np.arange(4), np.arange(4, 20))
    inside = FoldProgress(heard.append, split, (1, 5), 1.0, 1.0)
    for event in (
        Progress(1, 2, "reading"),
        Stage("candidates"),
        Progress(1, 4, "tree"),
        Progress(4, 4, "pairs"),
        Stage("parameters"),
        Progress(1, 2, "fit"),
    ):
        inside(event)
    done = [event.done for event in heard if isinstance(event, Progress)]
    assert done == pytest.approx([1.0, 1.225, 1.9, 1.9])


@pytest.mark.parametrize(("size", "told"), [(1, "1 row"), (2, "2 rows"), (None, None)])
def test_warnings_inside_a_fold_name_the_size_of_the_sample(size: int | None, told: str | None) -> None:
    heard: list[Event] = []
    split = Split(0, 1, np.arange(4), np.arange(4, 20), size)
    inside = FoldProgress(heard.append, split, (0, 5), 0.0, 1.0)
    inside(Note("nothing fits", warning=True))
    inside.report("tree")
    sample = f", {told}" if told else ""
    learned = f", learned from {told}" if told else ""
    note, progress = heard
    assert isinstance(note, Note)
    assert note.text == f"in the first fold{learned}, nothing fits"
    assert progress == Progress(0.0, 5, f"fold 1 of 5{sample}: tree")
