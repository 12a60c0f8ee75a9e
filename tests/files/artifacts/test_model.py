"""The model file: round trips, equal bytes, the self-test, and files that are damaged or made to do harm."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import (
    ChosenPenalty,
    DecisionRule,
    HeldOutScores,
    Model,
    PredictionSets,
    Restarts,
    Shrinkage,
    Tables,
    Threshold,
    TriedPenalty,
)
from bncli.engine.prediction.verification import with_self_test
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError, ModelError
from bncli.files.artifacts.archive import npy_bytes, pack
from bncli.files.artifacts.model import dump_model, format_version, read_model, write_model
from bncli.recipe import Recipe
from tests.files.archives import damaged, damaged_inside, forged, members, read, sealed
from tests.missing_values import network_model
from tests.sweeps import examples

SCHEMA = Schema(
    "diagnosis",
    ("no", "yes", "läuft"),
    (
        NumericAttribute("age", False, (3.0, 2.0, 5.5), (27.5, 41.0)),
        CategoricalAttribute("colour", True, (4.0, 5.5, 1.0), ("blue", "red")),
        NumericAttribute("constant", False, (10.5,), ()),
        CategoricalAttribute("empty", True, (10.5,), ()),
    ),
    ("-", "none"),
    "error",
)


def model_of(schema: Schema, dag: Dag, recipe: Recipe = Recipe()) -> Model:  # noqa: B008
    """A model with tables that any mix-up of cells would change."""
    families = dag.families(schema.cardinalities)
    n_labels = len(schema.labels)
    weights = tuple(
        np.sin(np.arange(f.n_cells * n_labels, dtype=float) + i).reshape(-1, n_labels) for i, f in enumerate(families)
    )
    return Model(schema, dag, Tables(np.linspace(-1, 1, n_labels), families, weights), recipe, 11, "0.1.0")


# Of the recipe, what a default may change is said, for version_1.bnc holds it.
MODEL = model_of(
    SCHEMA,
    Dag(((), (0,), (), ()), (0, 1), (), "tan", {}),
    Recipe(penalty=1.0, optimizer="lbfgs", tolerance=1e-8),
)
BYTES = dump_model(MODEL)


def assert_same(one: Model, other: Model) -> None:
    assert (one.schema, one.structure, one.recipe) == (other.schema, other.structure, other.recipe)
    assert (one.n_rows, one.version, one.tables.families) == (other.n_rows, other.version, other.tables.families)
    assert one.penalty_cv == other.penalty_cv
    for a, b in zip((one.tables.bias, *one.tables.weights), (other.tables.bias, *other.tables.weights), strict=True):
        assert a.dtype == b.dtype == np.float64
        np.testing.assert_array_equal(a, b)


def test_there_and_back_is_the_same(tmp_path: Path) -> None:
    write_model(str(tmp_path / "m.bnc"), MODEL)
    again = read_model(str(tmp_path / "m.bnc"))
    assert_same(again, MODEL)
    assert dump_model(again) == (tmp_path / "m.bnc").read_bytes() == BYTES


@st.composite
def models(draw: st.DrawFn) -> Model:
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    names = draw(st.lists(texts, unique=True, min_size=2, max_size=5))
    levels = st.lists(texts.filter(bool), unique=True, min_size=2, max_size=3).map(tuple)
    attributes = []
    for name in names[1:]:
        values, missing = draw(levels), draw(st.booleans())
        frequencies = tuple(draw(st.floats(1e-300, 1e9)) for _ in range(len(values) + missing))
        holes = 0.0 if missing else draw(st.floats(0, 1e9))
        attributes.append(CategoricalAttribute(name, missing, frequencies, values, missing_weight=holes))
    schema = Schema(names[0], draw(levels), tuple(attributes), draw(st.none() | levels), "average")
    order = draw(st.permutations(range(len(attributes))))
    parents = {
        i: tuple(draw(st.lists(st.sampled_from(order[:rank]), unique=True)) if rank else ())
        for rank, i in enumerate(order)
    }
    children = tuple(sorted(draw(st.sets(st.sampled_from(order)))))
    dag = Dag(tuple(parents[i] for i in range(len(attributes))), children, (), draw(texts), {})
    recipe = Recipe().replaced(penalty=draw(st.none() | st.floats(0, 1e9)), k=draw(st.none() | st.integers(0, 9)))
    return model_of(schema, dag, recipe)


@given(models())
@settings(max_examples=examples(16))
def test_any_model_comes_back(tmp_path_factory: pytest.TempPathFactory, model: Model) -> None:
    again = read(tmp_path_factory.getbasetemp(), dump_model(model))
    assert_same(again, model)
    assert dump_model(again) == dump_model(model)


def test_a_penalty_that_was_chosen_is_kept_with_those_tried(tmp_path: Path) -> None:
    chosen = ChosenPenalty(3.0, (TriedPenalty(300.0, 0.7), TriedPenalty(3.0, 0.1)))
    model = replace(MODEL, recipe=MODEL.recipe.replaced(penalty="cv", seed=7), penalty_cv=chosen)
    again = read(tmp_path, dump_model(model))
    assert (again.penalty_cv, again.penalty, again.recipe) == (chosen, 3.0, model.recipe)
    assert (MODEL.penalty_cv, MODEL.penalty) == (None, 1.0)
    assert replace(MODEL, recipe=MODEL.recipe.replaced(penalty=None)).penalty is None


def test_the_criterion_of_a_threshold_is_one_that_can_be_typed(tmp_path: Path) -> None:
    schema = Schema("y", ("a", "b"), (NumericAttribute("x", False, (3.0, 2.0), (0.5,)),))
    model = model_of(schema, Dag(((),), (0,), (), "nb", {}), Recipe())
    for chosen in ("", "best:f1", "top=5%"):
        rule = DecisionRule(threshold=Threshold(0.4, chosen))
        assert read(tmp_path, dump_model(replace(model, rule=rule))).rule == rule
    with pytest.raises(ModelError, match=r"'no' is neither a probability nor one of best:f1, .*decisions.threshold"):
        read(tmp_path, dump_model(replace(model, rule=DecisionRule(threshold=Threshold(0.4, "no")))))


def test_held_out_probabilities_of_a_rule_may_be_0_and_1_and_no_more(tmp_path: Path) -> None:
    scores = HeldOutScores(tuple((0.0, 0.5, 1.0) for _ in MODEL.schema.labels), None, split=True)
    rule = DecisionRule(sets=PredictionSets(0.1), held_out=scores)
    assert read(tmp_path, dump_model(replace(MODEL, rule=rule))).rule == rule
    above = replace(scores, probabilities=tuple((0.0, 0.5, math.nextafter(1.0, 2.0)) for _ in MODEL.schema.labels))
    with pytest.raises(ModelError, match="between 0 and 1"):
        read(tmp_path, dump_model(replace(MODEL, rule=replace(rule, held_out=above))))


def test_how_far_tables_were_shrunk_is_kept_and_models_that_were_not_do_not_speak_of_it(tmp_path: Path) -> None:
    plain = ChosenPenalty(3.0, (TriedPenalty(300.0, 0.7), TriedPenalty(3.0, 0.1)))
    chosen = replace(plain, shrinkage=Shrinkage(0.3, 0.05))
    bytes_of = {
        one: dump_model(replace(MODEL, recipe=MODEL.recipe.replaced(penalty="cv", seed=7), penalty_cv=one))
        for one in (plain, chosen)
    }
    assert read(tmp_path, bytes_of[chosen]).penalty_cv == chosen
    assert (b"shrunk" in bytes_of[plain], b"shrunk" in bytes_of[chosen]) == (False, True)


def test_where_random_starts_ended_is_kept_and_models_without_them_do_not_speak_of_them(tmp_path: Path) -> None:
    model = replace(MODEL, recipe=MODEL.recipe.replaced(restarts=2), restarts=Restarts((-3.0, -1.5, -2.0)))
    again = read(tmp_path, dump_model(model))
    assert (again.restarts, again.recipe) == (model.restarts, model.recipe)
    assert b"restarts" not in BYTES


SHRUNK = {"chosen": 1.0, "tried": [{"lambda": 1.0, "log_loss": 1.0}]}
FORGED_STRUCTURES = SHRUNK | {"structures": [{"structure": "no", "lambda": 1.0, "log_loss": 0.6}]}
FORGED_SPLIT = {"kind": "no", "columns": [], "units": 3}
FORGED_ARCS = {"chosen": 1.0, "tried": [], "arcs": [{"arcs": "no", "n_arcs": 0, "lambda": 1.0, "log_loss": 0.6}]}
ENDS = {"objectives": [1.0, 2.0], "kept": 1, "best": 2.0, "spread": 1.0, "rows": "training"}


def test_equal_models_are_equal_bytes_however_their_arrays_lie() -> None:
    weights = tuple(np.asfortranarray(w).astype(">f8") for w in MODEL.tables.weights)
    recipe = MODEL.recipe.replaced(penalty=1, tolerance=np.float64(1e-8))  # whole numbers and NumPy's are numbers, too
    assert dump_model(replace(MODEL, predictor=replace(MODEL.tables, weights=weights), recipe=recipe)) == BYTES


def test_the_first_version_stays_readable() -> None:
    """The file is MODEL as the first release wrote it, without options that came later; it is never made anew."""
    later = dict.fromkeys(("structure_score", "forest", "missing_policy", "group_levels"))
    older = replace(MODEL, recipe=MODEL.recipe.replaced(**later))
    assert_same(read_model(str(Path(__file__).with_name("version_1.bnc"))), older)


def test_the_container_has_the_same_bytes_everywhere() -> None:
    content = pack([("model.json", b"{}"), ("bias.npy", npy_bytes(np.arange(6.0).reshape(2, 3)))])
    assert hashlib.sha256(content).hexdigest() == "9220975044cbfe73b900548f19a8f302b80a6097d8d073143fa5ccd6d9b2155f"


def test_an_option_that_an_older_recipe_does_not_know_had_no_effect(tmp_path: Path) -> None:
    older = read(tmp_path, forged(BYTES, lambda description: description["recipe"].pop("smoothing")))
    assert older.recipe == MODEL.recipe.replaced(smoothing=None)


@pytest.mark.parametrize(
    "damaged", [{"nobody": [1.0]}, {SCHEMA.attributes[0].name: [1.0]}, {SCHEMA.attributes[0].name: "much"}, [1.0]]
)
def test_plain_frequencies_are_checked(tmp_path: Path, damaged: object) -> None:
    with pytest.raises(ModelError, match="plain_frequencies"):
        read(tmp_path, forged(BYTES, lambda description: description.update(plain_frequencies=damaged)))


def test_models_without_any_table(tmp_path: Path) -> None:
    model = model_of(replace(SCHEMA, attributes=SCHEMA.attributes[2:]), Dag(((), ()), ()))
    assert_same(read(tmp_path, dump_model(model)), model)


def test_the_class_may_have_parents(tmp_path: Path) -> None:
    model = model_of(SCHEMA, Dag(((), (), (), ()), (), (1, 0)))
    again = read(tmp_path, dump_model(model))
    assert again.tables.families[0].child is None
    assert_same(again, model)


def test_other_tools_read_it(tmp_path: Path) -> None:
    path = tmp_path / "m.bnc"
    path.write_bytes(BYTES)
    listing = subprocess.run([sys.executable, "-m", "zipfile", "-l", path], capture_output=True, text=True, check=True)
    assert "tables/1.npy" in listing.stdout
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["tables/1"], MODEL.tables.weights[1])
        np.testing.assert_array_equal(arrays["bias"], MODEL.tables.bias)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.comment.decode() == hashlib.sha256(BYTES[:-64]).hexdigest()
        assert json.loads(archive.read("model.json"))["recipe"]["structure"] == "tan"


def test_arrays_are_read_only(tmp_path: Path) -> None:
    assert not read(tmp_path, BYTES).tables.weights[0].flags.writeable


def test_a_model_may_come_through_a_pipe(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(BYTES,))
    writer.start()
    assert_same(read_model(str(fifo)), MODEL)
    writer.join()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_not_written(value: float) -> None:
    weights = (MODEL.tables.weights[0], np.full_like(MODEL.tables.weights[1], value))
    with pytest.raises(BncliError, match="not finite"):
        dump_model(replace(MODEL, predictor=replace(MODEL.tables, weights=weights)))


def test_every_cut_off_file_is_refused(tmp_path: Path) -> None:
    for length in range(len(BYTES)):
        with pytest.raises(ModelError):
            read(tmp_path, BYTES[:length])


@given(damaged(BYTES))
@settings(max_examples=examples(100))
def test_any_damaged_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    if content != BYTES:
        with pytest.raises(ModelError) as caught:
            read(tmp_path_factory.getbasetemp(), content)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "this is an empty file, not a bncli model"),
        (b"a,b\n1,2\n", "this is a text file, perhaps a table"),
        (b'{"format": "bncli-cuts"}', "this is a bncli cuts file"),
        (b'{"format": "bncli-structure"}', "this is a bncli structure file"),
        (b"\x1f\x8b\x08\0", "this is a gzip-compressed file"),
        (b"PAR1", "this is a Parquet table"),
        (b"\x80\x04\x95\0\0", "this is a binary file"),
        (pack([("other.json", b"{}")]), "this is a ZIP archive of another kind"),
        (
            BYTES[:-1],
            "the model file is damaged or incomplete: its checksum does not match, .*m.bnc; copy the file again",
        ),
    ],
)
def test_what_is_no_model_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        read(tmp_path, content)
    assert caught.value.exit_code == 3


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file, "):
        read_model(str(tmp_path / "nothing.bnc"))
    with pytest.raises(ModelError, match="cannot read the model: this is a folder"):
        read_model(str(tmp_path))


def test_a_label_of_frequency_0_is_allowed(tmp_path: Path) -> None:
    model = read(tmp_path, forged(BYTES, lambda d: d["schema"].update(label_frequencies=[1.0, 0.0, 2.0])))
    assert model.schema.label_frequencies == (1.0, 0.0, 2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=10, new="x"), "written by a newer bncli .format version 10.*upgrade bncli"),
        (lambda d: d.update(format="bncli-cuts"), "not a bncli model file"),
        (lambda d: d.pop("format"), "not a bncli model file"),
        (lambda d: d.pop("schema"), "the key 'schema' is missing"),
        (lambda d: d.update(extra=1), "unknown key 'extra'"),
        (lambda d: d.update(rows=-1), "out of range, .*model.json, rows"),
        (lambda d: d.update(rows=1.5), "expected a whole number"),
        (lambda d: d["recipe"].pop("param"), "the key 'param' is missing, .*recipe"),
        (lambda d: d["recipe"].update(smooth="mle"), "unknown key 'smooth', .*recipe"),
        (lambda d: d["recipe"].update(penalty="vc"), "expected a number, found a string, .*recipe.penalty"),
        (lambda d: d["recipe"].update(tolerance="cv"), "expected a number, found a string, .*recipe.tolerance"),
        (lambda d: d["recipe"].update(param="no"), "'no' is not one of 'map', .*recipe.param"),
        (lambda d: d["recipe"].update(init="no"), "'no' is not one of 'zero', 'generative', .*recipe.init"),
        (lambda d: d["recipe"].update(smoothing="no:1"), "'no:1' is not one of 'mle', .*recipe.smoothing"),
        (lambda d: d["recipe"].update(missing_policy="no"), "'no' is not one of 'level', .*recipe.missing_policy"),
        (lambda d: d.update(penalty_cv=FORGED_ARCS), "'no' is not one of 'class', 'none', .*penalty_cv.arcs.0..arcs"),
        (lambda d: d.update(penalty_cv=FORGED_STRUCTURES), "'no' is not one of 'nb', .*structures.0..structure"),
        (lambda d: d.update(split=FORGED_SPLIT), "'no' is not one of 'rows', 'group', .*split.kind"),
        (lambda d: d.update(penalty_cv=3), "expected an object, found a number, .*penalty_cv"),
        (lambda d: d.update(restarts={"objectives": [1.0]}), "the key 'kept' is missing, .*restarts"),
        (lambda d: d.update(restarts=ENDS | {"objectives": [1.0]}), "at least two starts, .*restarts.objectives"),
        (lambda d: d.update(restarts=ENDS | {"rows": "some"}), "training or held-out, .*restarts.rows"),
        (lambda d: d.update(restarts=ENDS | {"kept": 0}), "the best objective .*restarts"),
        (lambda d: d.update(penalty_cv={"chosen": 3}), "the key 'tried' is missing, .*penalty_cv"),
        (lambda d: d.update(penalty_cv={"chosen": 0, "tried": []}), "a penalty must be above 0, .*penalty_cv.chosen"),
        (lambda d: d.update(penalty_cv={"chosen": 1, "tried": [{"lambda": 1}]}), "'log_loss' is missing, .*tried.0."),
        (
            lambda d: d.update(penalty_cv=SHRUNK | {"shrunk": {"factor": 1.0, "log_loss": 1}}),
            "must be between 0 and 1, .*",
        ),
        (
            lambda d: d.update(penalty_cv=SHRUNK | {"shrunk": {"factor": 0.0, "log_loss": 1}}),
            "must be between 0 and 1, .*",
        ),
        (lambda d: d.update(penalty_cv=SHRUNK | {"shrunk": {"factor": 0.5}}), "'log_loss' is missing, .*shrunk"),
        (lambda d: d.update(penalty_cv=SHRUNK | {"shrunk": 0.5}), "expected an object, found a number, .*shrunk"),
        (lambda d: d["recipe"].update(structure=None), "expected a string in quotes, found null, .*recipe.structure"),
        (lambda d: d["schema"].update(labels=[]), "the class has no labels"),
        (lambda d: d["schema"].update(labels=["no", "no", "x"]), "'no' is listed twice"),
        (lambda d: d["schema"].update(labels=["no", "yes"]), "bias.npy does not have the size"),
        (lambda d: d["schema"].update(unseen="guess"), "'average' or 'error', .*schema.unseen"),
        (lambda d: d["schema"].update(missing_tokens="-"), "expected a list, found a string"),
        (lambda d: d["schema"]["attributes"][0].update(name="colour"), "the name 'colour' is given twice"),
        (lambda d: d["schema"]["attributes"][0].update(frequencies=[1.0]), "expected 3 frequencies, found 1"),
        (
            lambda d: d["schema"]["attributes"][0].update(frequencies=[0, 0, 0]),
            "frequencies must be at least 0, with a finite sum above 0",
        ),
        (
            lambda d: d["schema"]["attributes"][0].update(frequencies=[1, 2, -3]),
            "frequencies must be at least 0, with a finite sum above 0",
        ),
        (
            lambda d: d["schema"]["attributes"][0].update(frequencies=[1e308] * 3),
            "frequencies must be at least 0, with a finite sum above 0",
        ),
        (lambda d: d["schema"]["attributes"][0].update(holes=-1), "a weight of missing values cannot be negative"),
        (lambda d: d["schema"]["attributes"][0].update(holes="many"), "expected a number, found a string"),
        (lambda d: d["schema"]["attributes"][0].update(cuts=[1.0, 1.0]), "the cuts are not increasing"),
        (lambda d: d["schema"]["attributes"][0].update(missing=1), "expected true or false"),
        (lambda d: d["schema"]["attributes"][0].pop("missing"), "the key 'missing' is missing"),
        (lambda d: d["structure"]["parents"].update(age=["diagnosis", "colour"]), "has a cycle: .*structure"),
        (lambda d: d["structure"]["parents"].update(age=["diagnosis", "agee"]), "unknown attribute 'agee'"),
        (lambda d: d["structure"].update({"class": "other"}), "for the class 'other'"),
        (lambda d: d["families"].pop(), "its members are not those in its description"),
        (lambda d: d["families"].append(d["families"][0]), "its members are not those in its description"),
        (lambda d: d["families"][0].update(attributes=[]), "every attribute of a table must be in the schema"),
        (lambda d: d["families"][0].update(attributes=["nobody"]), "every attribute of a table must be in the schema"),
        (lambda d: d["families"][0].update(attributes=["age", "age"]), "'age' is listed twice"),
        (lambda d: d["families"][1].update(child="age"), "the child of a table must be its first attribute"),
        (lambda d: d["families"][0].update(child=["age"]), "the child of a table must be its first attribute"),
        (lambda d: d["families"][0].update(attributes=["age", "colour"]), "tables/0.npy does not have the size"),
        (lambda d: d["schema"].update(towards="yes"), "no attribute has a direction, .*schema.towards"),
        (lambda d: d["schema"].update(towards="maybe"), "the class has no label 'maybe', .*schema.towards"),
        (lambda d: d["schema"].update(towards=1), "expected a string in quotes, found a number, .*schema.towards"),
        (
            lambda d: d["schema"]["attributes"][0].update(direction="increasing"),
            "attributes have directions, so the key 'towards' must name one of the 3 labels, .*schema",
        ),
        (
            lambda d: d["schema"]["attributes"][0].update(direction="up"),
            "a direction must be 'increasing' or 'decreasing'",
        ),
        (lambda d: d["schema"]["attributes"][1].update(direction="increasing"), "unknown key 'direction'"),
        (
            lambda d: d["schema"].update(missing_policy="level"),
            ("the only allowed value is 'marginalize'; leave the key out"),
        ),
        (lambda d: d["schema"].update(missing_policy="marginalize"), "'colour' has a level for missing values"),
        (
            lambda d: d["schema"].update(label_frequencies=[1.0, 2.0]),
            "expected 3 numbers of at least 0, one per label, .*label_frequencies",
        ),
        (lambda d: d["schema"].update(label_frequencies=[1.0, 2.0, -1.0]), "expected 3 numbers of at least 0"),
        (
            lambda d: d.update(class_weights=[1.0, 2.0, 1.0]),
            "need the key 'label_frequencies' of the schema, .*class_weights",
        ),
        (
            lambda d: (d["schema"].update(label_frequencies=[1, 2, 1]), d.update(class_weights=[1, 0, 1])),
            "class weights must be above 0",
        ),
    ],
)
def test_a_forged_description_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        read(tmp_path, forged(BYTES, change))
    assert "m.bnc" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_newer_version_is_told_before_anything_else(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="newer bncli"):
        read(tmp_path, pack([("model.json", b'{"format": "bncli-model", "version": 99}'), ("news", b"")]))


def test_a_huge_schema_allocates_nothing(tmp_path: Path) -> None:
    def widen(description: dict[str, Any]) -> None:
        levels = [str(i) for i in range(2_000)]
        huge = {"type": "categorical", "levels": levels, "missing": False, "frequencies": [1] * len(levels)}
        names = [f"a{i}" for i in range(4)]
        description["schema"]["attributes"] += [{"name": name, **huge} for name in names]
        description["families"][0].update(attributes=names, child=None)

    with pytest.raises(ModelError, match=r"tables/0\.npy does not have the size"):
        read(tmp_path, forged(BYTES, widen))


WRONG_ARRAYS = {
    "not finite": npy_bytes(np.full((3, 3), np.nan)),
    "infinite": npy_bytes(np.full((3, 3), np.inf)),
    "other shape": npy_bytes(np.zeros((9, 1))),
    "flat": npy_bytes(np.zeros(9)),
    "Fortran order": npy_bytes(np.zeros((3, 3))).replace(b"False", b"True "),
    "big-endian": npy_bytes(np.zeros((3, 3))).replace(b"<f8", b">f8"),
    "objects": npy_bytes(np.zeros((3, 3))).replace(b"<f8", b"|O8"),
    "no array": b"x" * len(npy_bytes(np.zeros((3, 3)))),
    "too short": npy_bytes(np.zeros((3, 3)))[:-1],
    "too long": npy_bytes(np.zeros((3, 3))) + b"\0",
    "nothing": b"",
}


@pytest.mark.parametrize("what", WRONG_ARRAYS)
def test_a_forged_array_is_refused(tmp_path: Path, what: str) -> None:
    content = {**members(BYTES), "tables/0.npy": WRONG_ARRAYS[what]}
    with pytest.raises(ModelError, match=r"tables/0\.npy"):
        read(tmp_path, pack(content.items()))


def test_members_must_be_those_described(tmp_path: Path) -> None:
    without = {name: data for name, data in members(BYTES).items() if name != "bias.npy"}
    for content in ({**members(BYTES), "extra": b""}, without, dict(reversed(members(BYTES).items()))):
        with pytest.raises(ModelError):
            read(tmp_path, pack(content.items()))
    with pytest.raises(ModelError, match=r"model\.json is missing|another kind"):
        read(tmp_path, pack([("model.jsonx", b"{}")]))


def zipped(compression: int, entries: list[tuple[str, bytes]]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in entries:
            archive.writestr(name, data)
        archive.comment = b"0" * 64
    return sealed(file.getvalue())


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"compressed|overlap"):
        read(tmp_path, zipped(zipfile.ZIP_DEFLATED, list(members(BYTES).items())))
    bomb = [*members(BYTES).items(), ("bomb", b"\0" * 10_000_000)]
    with pytest.raises(ModelError, match=r"compressed|overlap"):
        read(tmp_path, zipped(zipfile.ZIP_DEFLATED, bomb))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_doubled_member_is_refused(tmp_path: Path) -> None:
    entries = list(members(BYTES).items())
    with pytest.raises(ModelError, match="doubled"):
        read(tmp_path, zipped(zipfile.ZIP_STORED, [*entries, entries[0]]))


@given(damaged_inside(BYTES))
@settings(max_examples=examples(100))
def test_a_sealed_archive_with_damaged_insides_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """A forger can seal anything; the file is then a model (a change that no check can know) or a ModelError."""
    try:
        model = read(tmp_path_factory.getbasetemp(), content)
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert all(np.isfinite(w).all() for w in model.tables.weights)


@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_sums_out_reads_as_it_was_written(tmp_path: Path, seed: int) -> None:
    """A graph with nodes below and above the class, and some that it touches only through others."""
    dag = Dag(((), (0,), (1,), (), ()), (2,), (3,), "file", {})
    model = network_model(dag, (2, 3, 2, 2, 3), 3, seed)
    holes = replace(model.schema.attributes[4], frequencies=(0.0, 0.0, 0.0), missing_weight=40.0)
    model = replace(model, schema=replace(model.schema, attributes=(*model.schema.attributes[:4], holes)))
    assert_same(read(tmp_path, dump_model(model)), model)


def test_a_model_that_sums_out_needs_the_table_of_every_node(tmp_path: Path) -> None:
    model = network_model(Dag(((), (0,), (1,)), (2,)), (2, 3, 2), 2, 0)
    families = model.structure.families(model.schema.cardinalities)
    tables = Tables(model.tables.bias, families, model.tables.weights[: len(families)])
    with pytest.raises(
        ModelError, match=r"there must be one table per node of the structure, with its parents, .*families"
    ):
        read(tmp_path, dump_model(replace(model, predictor=tables)))


TESTED = with_self_test(MODEL)
CONTENT = dump_model(TESTED)
CODES, SAID = "self_test/codes.npy", "self_test/probabilities.npy"


def test_it_comes_back(tmp_path: Path) -> None:
    again = read(tmp_path, CONTENT)
    assert TESTED.self_test is not None
    assert again.self_test is not None
    np.testing.assert_array_equal(again.self_test.codes, TESTED.self_test.codes)
    np.testing.assert_array_equal(again.self_test.probabilities, TESTED.self_test.probabilities)
    assert dump_model(again) == CONTENT
    assert format_version(str(tmp_path / "m.bnc")) == 6
    assert list(members(CONTENT)) == [*members(BYTES), CODES, SAID]


def test_files_without_one_keep_their_version_and_bytes(tmp_path: Path) -> None:
    assert read(tmp_path, BYTES).self_test is None
    assert format_version(str(tmp_path / "m.bnc")) == 4
    assert b"self_test" not in BYTES
    older = read_model(str(Path(__file__).with_name("version_1.bnc")))
    assert older.self_test is None


@pytest.mark.parametrize(("levels", "descr"), [(200, "|u1"), (300, "<u2"), (255, "|u1"), (256, "<u2")])
def test_codes_are_in_the_narrowest_type(tmp_path: Path, levels: int, descr: str) -> None:
    many = CategoricalAttribute("colour", False, (1.0,) * levels, tuple(f"l{i}" for i in range(levels)))
    attributes = (SCHEMA.attributes[0], many, *SCHEMA.attributes[2:])
    content = dump_model(with_self_test(model_of(replace(SCHEMA, attributes=attributes), MODEL.structure)))
    assert f"'descr': '{descr}'".encode() in members(content)[CODES]
    assert dump_model(read(tmp_path, content)) == content


def without(name: str) -> bytes:
    return pack([(member, data) for member, data in members(CONTENT).items() if member != name])


def with_codes(codes: np.ndarray) -> bytes:
    return pack({**members(CONTENT), CODES: npy_bytes(codes)}.items())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (without(CODES), "its members are not those in its description"),
        (without(SAID), "its members are not those in its description"),
        (forged(CONTENT, lambda d: d.pop("self_test")), "its members are not those in its description"),
        (forged(CONTENT, lambda d: d.update(self_test=10**15)), "codes.npy does not have the size"),
        (forged(CONTENT, lambda d: d.update(self_test=0)), "self_test"),
        (with_codes(np.full((2, 32), 200, np.uint8)), "does not contain 32 codes of each attribute"),
        (with_codes(np.zeros((32, 2), np.uint8)), "does not contain 32 codes of each attribute"),
        (with_codes(np.zeros((2, 32), np.uint16)), "codes.npy does not have the size"),
        (pack({**members(CONTENT), SAID: npy_bytes(np.full((3, 32), np.nan))}.items()), "finite float64"),
        (pack({**members(BYTES), "x.npy": b"", "y.npy": b""}.items()), "its members are not those"),
    ],
)
def test_a_forged_one_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read(tmp_path, content)


@given(data=st.data())
@settings(max_examples=examples(50), deadline=None)
def test_damage_inside_is_an_error_or_a_model(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Under a forged checksum numbers may change; nothing but a ModelError may come of anything else."""
    content = data.draw(damaged_inside(CONTENT))
    with contextlib.suppress(ModelError):
        assert read(tmp_path_factory.getbasetemp(), content).self_test is not None
