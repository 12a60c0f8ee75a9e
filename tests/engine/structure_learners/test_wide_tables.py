"""Search on wide tables: the same structure as without narrowing, and arcs among the most informative attributes."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.catalogue import STRUCTURES
from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import ChunkedColumn, ColumnsJoinedOnDemand
from bncli.engine.data.dataset import Dataset
from bncli.engine.learn import learn_structure
from bncli.engine.structure_learners.dependence import relevance
from bncli.engine.structure_learners.wide_tables import FEW_SEARCHED, MOST_SEARCHED, WIDE, narrow
from bncli.engine.structures.structure import Dag, Regions
from bncli.recipe import Recipe
from bncli.watch import Event, Note, Run
from tests.datasets import random_dataset

ONE_VALUE = (1,) * (WIDE // 2)
FEW = (*ONE_VALUE, 2, 3, 1, 2, 4, *ONE_VALUE, 3, 2)


@pytest.mark.parametrize("method", [word for word in STRUCTURES.words if word != "auto"])
def test_attributes_of_one_value_change_nothing(method: str) -> None:
    data = random_dataset(300, FEW, 3)
    informative = data.schema.informative
    alone = random_dataset(300, [FEW[i] for i in informative], 3)
    alone = Dataset(alone.schema, tuple(data.codes[i] for i in informative), data.labels)
    wide, short = (learn_structure(Counts(each), Recipe.of(structure=method)) for each in (data, alone))
    if isinstance(short, Regions):
        assert isinstance(wide, Regions)
        assert wide.regions == tuple(tuple(informative[i] for i in region) for region in short.regions)
        assert (wide.binnings, wide.trace) == (short.binnings, short.trace)
        return
    assert isinstance(wide, Dag)
    assert wide.class_children == tuple(informative[i] for i in short.class_children)
    assert wide.class_parents == tuple(informative[i] for i in short.class_parents)
    assert len(wide.parents) == len(FEW)
    assert [wide.parents[i] for i in informative] == [tuple(informative[i] for i in p) for p in short.parents]
    assert wide.n_arcs == short.n_arcs


@pytest.mark.parametrize("method", sorted(MOST_SEARCHED))
def test_arcs_join_the_most_informative_attributes(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setitem(MOST_SEARCHED, method, 30)
    data = random_dataset(40, (2,) * (WIDE + 1), 2, seed=3)
    most = 30
    strongest = set(np.argsort(-relevance(Counts(data)), kind="stable")[:most].tolist())
    events: list[Event] = []
    recipe = Recipe.of(structure=method)
    structure = learn_structure(Counts(data), recipe, Run(watch=events.append))
    assert isinstance(structure, Dag)
    assert structure.n_arcs > 0
    for i, parents in enumerate(structure.parents):
        assert not parents or strongest.issuperset((i, *parents))
    outside = set(range(WIDE + 1)) - strongest
    assert outside.intersection(structure.class_children) == (set() if method in ("gbn", "skdb") else outside)
    notes = [event.text for event in events if isinstance(event, Note) and "searches for arcs" in event.text]
    assert len(notes) == 1
    assert notes[0].startswith(f"{method} searches for arcs among the {most} attributes")
    assert f"the other {WIDE + 1 - most} " in notes[0]


def test_more_rows_support_more_attributes() -> None:
    for n_rows, searched in ((100, FEW_SEARCHED), (400, 400), (2_000, 1_000)):
        data = random_dataset(n_rows, (2,) * (WIDE + 1), 2)
        counts, indices = narrow(Counts(data), "tan", lambda event: None)
        assert len(indices) == len(counts.schema.attributes) == searched


def test_naive_bayes_says_nothing_about_arcs() -> None:
    counts, events = Counts(random_dataset(30, (2,) * (WIDE + 1), 2)), list[Event]()
    structure = learn_structure(counts, Recipe.of(structure="nb"), Run(watch=events.append))
    assert isinstance(structure, Dag)
    assert structure.class_children == counts.schema.informative
    assert [event.text for event in events if isinstance(event, Note)] == []


def test_a_table_that_is_not_wide_keeps_its_counts() -> None:
    counts = Counts(random_dataset(30, (1,) * (WIDE - 2) + (2, 2), 2))
    assert narrow(counts, "tan", lambda event: None) == (counts, tuple(range(WIDE)))


def test_columns_in_parts_are_narrowed_too() -> None:
    data = random_dataset(60, FEW, 2)
    parts = ColumnsJoinedOnDemand([ChunkedColumn((codes[:20], codes[20:])) for codes in data.codes])
    in_parts = Dataset(data.schema, parts, data.labels)
    assert learn_structure(Counts(in_parts), Recipe.of(structure="tan")) == learn_structure(
        Counts(data), Recipe.of(structure="tan")
    )
