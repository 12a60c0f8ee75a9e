"""I(A; B | Z) against its definition, one configuration at a time, however the cells are counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners import partial_dependence
from bncli.engine.structure_learners.partial_dependence import CLASS_NODE, PartialDependence, standing_for, sum_n_log_n
from tests.datasets import random_dataset
from tests.missing_values import complete_rows, with_missing
from tests.oracles import weights_of
from tests.strategies import datasets


def slow(data: Dataset, a: int, b: int, given_nodes: Collection[int]) -> float:
    """sum P(a, b, z) ln [P(a, b, z) P(z) / (P(a, z) P(b, z))], from dictionaries."""
    joint, of_a, of_b, of_z = Counter[object](), Counter[object](), Counter[object](), Counter[object]()
    for t, w in enumerate(weights_of(data)):
        x, y, *z = (int((data.labels if i == CLASS_NODE else data.codes[i])[t]) for i in (a, b, *sorted(given_nodes)))
        for counter, key in ((joint, (x, y, *z)), (of_a, (x, *z)), (of_b, (y, *z)), (of_z, tuple(z))):
            counter[key] += w  # type: ignore[assignment]
    total = sum(weights_of(data))
    return math.fsum(
        n / total * math.log(n * of_z[tuple(z)] / (of_a[x, *z] * of_b[y, *z])) for (x, y, *z), n in joint.items()
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[Dataset, int, int, list[frozenset[int]]]:
    data = draw(datasets(max_attributes=5).filter(lambda data: len(data.codes) > 1))
    a, b, *rest = draw(st.permutations([CLASS_NODE, *range(len(data.codes))]))
    some = st.frozensets(st.sampled_from(rest)) if rest else st.just(frozenset[int]())
    return data, a, b, draw(st.lists(some, min_size=1, max_size=4))


@pytest.mark.parametrize("table", ["whole", "places", "sorted"])
@given(asked=questions())
def test_equals_the_definition(table: str, asked: tuple[Dataset, int, int, list[frozenset[int]]]) -> None:
    data, a, b, sets = asked
    with pytest.MonkeyPatch.context() as patch:
        if table != "whole":
            patch.setattr(partial_dependence, "SMALL_TABLE", 1)
            patch.setattr(partial_dependence, "CELLS_PER_ROW", 0)
            patch.setattr(partial_dependence, "ROUND", 100)
        if table == "sorted":
            patch.setattr(partial_dependence, "PLACES", 1)
            patch.setattr(partial_dependence, "NUMBERS_PER_ROW", 0)
        answers = PartialDependence(data).given(a, b, sets)
    assert answers == pytest.approx([slow(data, a, b, z) for z in sets], abs=1.1e-12)


@pytest.mark.parametrize("table", ["whole", "places", "sorted"])
@given(asked=questions(), share=st.sampled_from([0.3, 1.0]))
def test_missing_values_leave_the_rows_that_have_all_that_is_asked_for(
    table: str, asked: tuple[Dataset, int, int, list[frozenset[int]]], share: float
) -> None:
    data, a, b, sets = asked
    incomplete = with_missing(data, share)
    with pytest.MonkeyPatch.context() as patch:
        if table != "whole":
            patch.setattr(partial_dependence, "SMALL_TABLE", 1)
            patch.setattr(partial_dependence, "CELLS_PER_ROW", 0)
        if table == "sorted":
            patch.setattr(partial_dependence, "PLACES", 1)
            patch.setattr(partial_dependence, "NUMBERS_PER_ROW", 0)
        answers = PartialDependence(incomplete).given(a, b, sets)
    whole = [complete_rows(incomplete, (z | {a, b}) - {CLASS_NODE}) for z in sets]
    expected = [slow(rows, a, b, z) if rows.n_rows else 0.0 for rows, z in zip(whole, sets, strict=True)]
    assert answers == pytest.approx(expected, abs=1.1e-12)


@given(questions())
def test_answers_are_kept_symmetric_and_never_negative(
    asked: tuple[Dataset, int, int, list[frozenset[int]]],
) -> None:
    data, a, b, sets = asked
    dependence = PartialDependence(data)
    answers = dependence.given(a, b, sets)
    assert dependence.given(b, a, sets) == answers
    assert min(answers) >= 0.0
    assert [dependence.given(a, b, [z]) for z in sets] == [[answer] for answer in answers]


def test_a_chain_rule_between_different_questions() -> None:
    """I(A; BC | Z) = I(A; B | Z) + I(A; C | BZ) = I(A; C | Z) + I(A; B | CZ)."""
    dependence = PartialDependence(random_dataset(500, (3, 2, 4, 3), 3))
    z = frozenset({3})
    one = dependence.given(0, 1, [z])[0] + dependence.given(0, CLASS_NODE, [z | {1}])[0]
    other = dependence.given(0, CLASS_NODE, [z])[0] + dependence.given(0, 1, [z | {CLASS_NODE}])[0]
    assert one == pytest.approx(other, abs=3e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_neither_threads_nor_blocks_change_an_answer(weighted: bool) -> None:
    data = random_dataset(20_000, (9,) * 8, 3, weighted=weighted)
    assert len(data.bounds()) > 1
    sets = [frozenset(range(2, m)) for m in range(2, 9)]
    answers = [PartialDependence(replace(data, threads=threads)).given(0, 1, sets) for threads in (1, 2, 3)]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][4] == pytest.approx(slow(data, 0, 1, sets[4]), abs=1e-11)


def test_more_nodes_than_a_number_holds() -> None:
    """40 attributes of 9 values: 9^40 configurations. All rows differ, so that no two agree and nothing is shared."""
    data = random_dataset(300, (9,) * 40, 2)
    assert PartialDependence(data).given(0, 1, [frozenset(range(2, 40)), frozenset({CLASS_NODE})]) == pytest.approx(
        [0.0, slow(data, 0, 1, [CLASS_NODE])], abs=1e-12
    )
    twice = data.take(np.repeat(np.arange(300), 2))
    copied = replace(twice, codes=(twice.codes[0], twice.codes[0], *twice.codes[2:]))
    assert PartialDependence(copied).given(0, 1, [frozenset(range(2, 40))])[0] == 0.0
    moved = tuple(np.where(np.arange(600) % 2, 1 - codes.clip(0, 1), codes.clip(0, 1)) for codes in copied.codes[:2])
    (shared,) = PartialDependence(replace(copied, codes=(*moved, *copied.codes[2:]))).given(
        0, 1, [frozenset(range(2, 40))]
    )
    assert shared == pytest.approx(math.log(2), abs=1e-12)


def test_without_rows_nothing_is_shared() -> None:
    assert PartialDependence(random_dataset(0, (2, 3), 2)).given(0, 1, [frozenset(), frozenset({CLASS_NODE})]) == [0, 0]


@pytest.mark.parametrize("places", [0, 1 << 24])
@given(cells=st.lists(st.integers(0, 9), max_size=30))
def test_a_row_stands_for_all_of_its_number(places: int, cells: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial_dependence, "PLACES", places)
        patch.setattr(partial_dependence, "NUMBERS_PER_ROW", 0)
        found = standing_for(np.array(cells, np.intp), 10).tolist()
    assert all(0 <= row < len(cells) for row in found)
    assert all(
        (x == y) == (a == b) for x, a in zip(cells, found, strict=True) for y, b in zip(cells, found, strict=True)
    )


@given(st.lists(st.integers(0, 9) | st.floats(0, 1e6), max_size=20))
def test_the_sum_is_that_of_its_terms(counts: list[float]) -> None:
    expected = math.fsum(n * math.log(n) for n in counts if n > 0)
    assert sum_n_log_n(np.array(counts, float)) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    rows = [int(n) for n in counts if n < 10]
    of_rows = math.fsum(n * math.log(n) for n in rows if n > 0)
    assert sum_n_log_n(np.array(rows, np.int64)) == pytest.approx(of_rows, rel=1e-12, abs=1e-12)
