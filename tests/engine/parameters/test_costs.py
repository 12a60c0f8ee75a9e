"""Compare flops with numbers worked out by hand; memory is refused before anything is allocated."""

from __future__ import annotations

import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.parameter_learners.conditional import build_space_lr_roos
from bncli.engine.parameters.costs import (
    Flops,
    about_memory,
    free_table_flops,
    logistic_flops,
    needed_and_free,
    network_flops,
    refuse_large,
    refuse_wide,
    table_memory,
)
from bncli.engine.structures.structure import Dag, Regions, SearchTrace
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Run
from tests.datasets import random_dataset

FIGURE_1 = Dag(((), (), (0,), (2,), ()), (2, 3, 4), (0, 1))
"""Class parents 1 and 2; children 3 (parent 1), 4 (parent 3) and 5: families {1, 2}, {1, 3}, {3, 4}, {5}."""
BINARY = (2, 2, 2, 2, 2)


def test_naive_bayes_by_hand() -> None:
    """Two attributes of 3 and 4 values, K = 3 classes, N = 10 rows.

    Free tables: r = (1 + 3 + 4) 3 = 24, |Z| = 3 ones in each of 10 rows = 30;
    cost_CLL = 30 * 3 + 10 * 5 = 140, cost_grad = 30 * 3 + 2 * 10 * 3 = 150.
    With class 0 fixed: r = 16, cost_CLL = 30 * 2 + 10 * 5 = 110.
    Network: D = (1 + 3 + 4) 3 = 24; cost_CLL = 72 + 10 (2 * 3 + 2 * 3 + 2) = 212,
    cost_grad = 72 + 10 (2 * 2 * 3 + 2 + 7 (3 + 3 + 4)) = 72 + 10 * 84 = 912.
    """
    families = Dag(((), ()), (0, 1)).families((3, 4))
    assert free_table_flops(families, 10, 3) == Flops(24, 140, 150)
    assert logistic_flops(16, 30, 10, 3) == Flops(16, 110, 150)
    assert network_flops(families, 10, 3) == Flops(24, 212, 912)


def test_the_papers_example_has_14_parameters_as_mapped_by_roos() -> None:
    """|Z| = 1 + n - |pa(0)| = 4 ones per row; the intercept is in the table over the class's parents.

    Free tables have twice as many, and a bias that remains.
    """
    data = random_dataset(100, BINARY, 2)
    costs = build_space_lr_roos(Counts(data), FIGURE_1, smoothing="laplace:1").flops
    assert costs == Flops(14, 400 * 1 + 100 * 4, 400 * 2 + 2 * 100 * 2)
    free = free_table_flops(FIGURE_1.families(BINARY), 100, 2)
    assert free == Flops(30, 500 * 2 + 100 * 4, 500 * 2 + 2 * 100 * 2)


def test_the_papers_example_as_a_network() -> None:
    """D = 4 * 2 entries of P(class | 1, 2) and 2 * (4 + 4 + 2) of the children's; n = 3 children with 2 values each."""
    costs = network_flops(FIGURE_1.families(BINARY), 100, 2)
    assert costs == Flops(28, 84 + 100 * (6 + 4 + 2), 84 + 100 * (12 + 3 + 5 * (3 + 6)))


def test_the_cll_costs_about_the_same_in_both_spaces() -> None:
    """The paper remarks on it; in the network the gradient costs 2 + 2 times the mean number of values as much."""
    families = Dag(((),) * 30, tuple(range(30))).families((4,) * 30)
    free, nets = free_table_flops(families, 100_000, 3), network_flops(families, 100_000, 3)
    assert nets.cll == pytest.approx(free.cll, rel=0.1)
    assert nets.gradient / free.gradient == pytest.approx(2 + 2 * 4, rel=0.15)


def test_iterations_by_hand() -> None:
    """r = 3, cost_CLL = 100, cost_grad = 1000; two iterations with 4 + 1 evaluations, and one at the start."""
    costs = Flops(3, 100, 1000)
    assert costs.spent("bfgs", 2, 6) == 2 * (12 * 9 + 8 * 3 + 1000) + 5 * (4 * 3 + 100)
    assert costs.spent("cg", 2, 6) == costs.spent("cgb", 2, 6) == 2 * (30 + 1000) + 5 * 112
    assert costs.spent("bfgs", 0, 1) == costs.spent("cg", 0, 1) == 0


@pytest.mark.parametrize("optimizer", ["lbfgs", "newton", ""])
def test_nothing_is_said_of_other_optimizers(optimizer: str) -> None:
    assert Flops(3, 100, 1000).spent(optimizer, 2, 6) is None


CLOSED = Recipe.of(param="map")
KDB = CLOSED.replaced(structure="kdb", k=4)


def wide(*cardinalities: int) -> Schema:
    levels = [tuple(f"v{v}" for v in range(n)) for n in cardinalities]
    attributes = tuple(CategoricalAttribute(f"a{i}", False, (1.0,) * len(v), v) for i, v in enumerate(levels))
    return Schema("class", ("n", "y"), attributes)


def chain(n: int, k: int) -> Dag:
    """Return a graph in which every attribute has the k attributes before it as parents."""
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
        f"the tables of the network would have {entries(schema, dag):,} entries: this needs about 149.8 GiB"
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
    with pytest.raises(BncliError, match=r"with --ignore, beginning with 'a1' \(70,000\)"):
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
    with pytest.raises(
        BncliError, match=r"--structure tan compares all pairs of 1,000 attributes: this needs about 45\.8 MiB"
    ):
        refuse_wide(schema, Recipe(), 48 * 1000**2 - 1)
    refuse_wide(schema, Recipe().replaced(structure="nb"), 1)


def test_nothing_is_counted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from bncli.engine import learn

    data = random_dataset(30, (3, 3, 3), 2)
    counts = Counts(data)
    monkeypatch.setattr(Counts, "pair_batches", None)
    monkeypatch.setattr(Counts, "tables", None)
    with pytest.raises(BncliError, match="all pairs of"):
        learn.learn_structure(counts, Recipe(), Run(memory=100))


def test_closed_forms_go_through_all_regions_and_an_optimizer_through_the_best() -> None:
    schema = wide(3, 4, 5)
    regions = Regions(((0,), (1,), (0, 1), (1, 2)), SearchTrace((0,) * 5, (0.0,) * 5, (0.0,) * 5, 3))
    assert table_memory(regions, schema, CLOSED) == 8 * 8 * 2 * (1 + 3 + 4 + 12 + 20)
    assert table_memory(regions, schema, Recipe().replaced(optimizer="cg")) == 8 * 16 * 2 * (1 + 12)


def test_regions_too_large() -> None:
    with pytest.raises(
        BncliError, match=r"the tables of the regions would have .*the largest is over 'a0', 'a1', .*lower --max-order"
    ):
        refuse_large(Regions(((2,), tuple(range(16)))), wide(*(20,) * 16), CLOSED, 2**40)


def test_hopeless_sizes_are_readable() -> None:
    assert about_memory(3 << 30) == "about 3.0 GiB"
    assert about_memory(3 << 20) == "about 3.0 MiB"
    assert about_memory(102 << 20, in_gib=True) == "about 0.1 GiB"
    assert about_memory(78_125 * 10**9 << 30) == "more than 1,000,000 GiB"
    assert needed_and_free(1 << 90, 1 << 30) == "this needs more than 1,000,000 GiB of memory, but only 1.0 GiB is free"
