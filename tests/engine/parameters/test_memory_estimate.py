"""What learning will take: told in proportion to the tables, refused where it does not fit, with what would."""

from __future__ import annotations

import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.parameters.memory_estimate import refuse_large, refuse_wide, table_memory
from bncli.engine.structures.structure import Dag, Regions, SearchTrace
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Run
from tests.datasets import random_dataset

CLOSED = Recipe.of(param="map")
KDB = CLOSED.replaced(structure="kdb", k=4)


def wide(*cardinalities: int) -> Schema:
    levels = [tuple(f"v{v}" for v in range(n)) for n in cardinalities]
    attributes = tuple(CategoricalAttribute(f"a{i}", False, (1.0,) * len(v), v) for i, v in enumerate(levels))
    return Schema("class", ("n", "y"), attributes)


def chain(n: int, k: int) -> Dag:
    """Every attribute under the k before it."""
    return Dag(tuple(tuple(range(max(0, i - k), i))[::-1] for i in range(n)), tuple(range(n)))


def entries(schema: Schema, dag: Dag) -> int:
    return len(schema.labels) * (1 + sum(family.n_cells for family in dag.families(schema.cardinalities)))


@pytest.mark.parametrize(("optimizer", "numbers"), [(None, 8), ("cg", 16), ("cgb", 16), ("lbfgs", 45), ("newton", 45)])
def test_in_proportion_to_the_entries(optimizer: str | None, numbers: int) -> None:
    schema, dag = wide(3, 4, 5), chain(3, 2)
    assert entries(schema, dag) == 2 * (1 + 3 + 12 + 60)
    assert table_memory(dag, schema, Recipe().replaced(optimizer=optimizer)) == 8 * numbers * entries(schema, dag)


def test_bfgs_needs_matrices() -> None:
    schema, dag = wide(10, 10), chain(2, 1)
    n = entries(schema, dag)
    assert table_memory(dag, schema, Recipe().replaced(optimizer="bfgs")) == 8 * (16 * n + 2 * n * n)


def test_what_fits_and_what_nobody_knows_is_not_refused() -> None:
    schema, dag = wide(*(50,) * 8), chain(8, 4)
    needed = table_memory(dag, schema, KDB)
    refuse_large(dag, schema, KDB, needed)
    refuse_large(dag, schema, KDB, None)
    refuse_wide(schema, KDB, None)
    with pytest.raises(BncliError):
        refuse_large(dag, schema, KDB, needed - 1)


def test_fewer_parents_that_would_fit_are_named() -> None:
    schema, dag = wide(*(50,) * 8), chain(8, 4)
    two = table_memory(chain(8, 2), schema, KDB)
    with pytest.raises(BncliError) as refused:
        refuse_large(dag, schema, KDB, two)
    assert str(refused.value).startswith(
        f"the tables of the network would have {entries(schema, dag):,} entries: about 149.8 GiB"
    )
    largest = "the largest is over 'a4', 'a3', 'a2', 'a1', 'a0' and the class"
    assert f"{largest}; use --structure kdb --k 2 (about" in str(refused.value)
    searching = KDB.replaced(structure="hill-climb", k=None, max_parents=4)
    with pytest.raises(BncliError, match="use --structure hill-climb --max-parents 2"):
        refuse_large(dag, schema, searching, two)


def test_a_closed_form_that_would_fit_is_named() -> None:
    schema, dag = wide(500, 500), chain(2, 1)
    with pytest.raises(BncliError, match=r"; use --param map \(about 30\.6 MiB\)"):
        refuse_large(dag, schema, Recipe(), 40 << 20)


def test_fewer_arcs_are_advised_where_a_threshold_decides() -> None:
    schema, dag = wide(500, 500), chain(2, 1)
    with pytest.raises(BncliError, match="; use --structure gbn with a larger --epsilon"):
        refuse_large(dag, schema, CLOSED.replaced(structure="gbn"), 1 << 20)


def test_else_a_column_is_named() -> None:
    schema, dag = wide(500, 70_000), chain(2, 1)
    with pytest.raises(BncliError, match=r"first 'a1' \(70,000\) with --ignore"):
        refuse_large(dag, schema, CLOSED, 1 << 20)


def test_regions_take_all_their_tables_or_those_of_the_best_step() -> None:
    schema = wide(10, 20, 30)
    trace = SearchTrace((1, 2, 3), (-3.0, -2.0, -1.0), (-3.0, -2.0, -9.0), 1)
    regions = Regions(((0, 1), (0, 1, 2)), trace)
    kbma = CLOSED.replaced(structure="kikuchi", param="kbma")
    assert table_memory(regions, schema, kbma) == 8 * 8 * 2 * (1 + 200 + 6000)
    assert table_memory(regions, schema, Recipe().replaced(structure="kikuchi")) == 8 * 45 * 2 * (1 + 200)
    with pytest.raises(
        BncliError, match=r"tables of the regions .* over 'a0', 'a1', 'a2' and the class; .*--max-order"
    ):
        refuse_large(regions, schema, kbma, 1000)


def test_too_many_attributes_to_compare() -> None:
    schema = wide(*(2,) * 1000)
    refuse_wide(schema, Recipe(), 48 * 1000**2)
    with pytest.raises(BncliError, match=r"--structure tan compares 1,000 attributes two by two: about 45\.8 MiB"):
        refuse_wide(schema, Recipe(), 48 * 1000**2 - 1)
    refuse_wide(schema, Recipe().replaced(structure="nb"), 1)


def test_nothing_is_counted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from bncli.engine import learn

    data = random_dataset(30, (3, 3, 3), 2)
    counts = Counts(data)
    monkeypatch.setattr(Counts, "pair_batches", None)
    monkeypatch.setattr(Counts, "tables", None)
    with pytest.raises(BncliError, match="two by two"):
        learn.learn_structure(counts, Recipe(), Run(memory=100))


def test_closed_forms_go_through_all_regions_and_an_optimizer_through_the_best() -> None:
    schema = wide(3, 4, 5)
    regions = Regions(((0,), (1,), (0, 1), (1, 2)), SearchTrace((0,) * 5, (0.0,) * 5, (0.0,) * 5, 3))
    assert table_memory(regions, schema, CLOSED) == 8 * 8 * 2 * (1 + 3 + 4 + 12 + 20)
    assert table_memory(regions, schema, Recipe().replaced(optimizer="cg")) == 8 * 16 * 2 * (1 + 12)


def test_regions_too_large() -> None:
    with pytest.raises(
        BncliError, match=r"the tables of the regions would have .*the largest is over 'a0', 'a1', .*use"
    ):
        refuse_large(Regions(((2,), tuple(range(16)))), wide(*(20,) * 16), CLOSED, 2**40)
