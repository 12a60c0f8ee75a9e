"""The cost model against numbers worked out by hand, on the network of the paper's figure 1."""

from __future__ import annotations

import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.parameter_learners import lr_roos
from bncli.engine.parameters import flops
from bncli.engine.parameters.flops import Costs
from bncli.engine.structures.structure import Dag
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
    assert flops.of_free_tables(families, 10, 3) == Costs(24, 140, 150)
    assert flops.logistic(16, 30, 10, 3) == Costs(16, 110, 150)
    assert flops.of_networks(families, 10, 3) == Costs(24, 212, 912)


def test_the_papers_example_has_14_parameters_as_mapped_by_roos() -> None:
    """|Z| = 1 + n - |pa(0)| = 4 ones a row; the intercept is in the table over the class's parents.

    Free tables have twice as many, and a bias, which nothing takes away.
    """
    data = random_dataset(100, BINARY, 2)
    costs = lr_roos.space(Counts(data), FIGURE_1, smoothing="laplace:1").costs
    assert costs == Costs(14, 400 * 1 + 100 * 4, 400 * 2 + 2 * 100 * 2)
    free = flops.of_free_tables(FIGURE_1.families(BINARY), 100, 2)
    assert free == Costs(30, 500 * 2 + 100 * 4, 500 * 2 + 2 * 100 * 2)


def test_the_papers_example_as_a_network() -> None:
    """D = 4 * 2 entries of P(class | 1, 2) and 2 * (4 + 4 + 2) of the children's; n = 3 children with 2 values each."""
    costs = flops.of_networks(FIGURE_1.families(BINARY), 100, 2)
    assert costs == Costs(28, 84 + 100 * (6 + 4 + 2), 84 + 100 * (12 + 3 + 5 * (3 + 6)))


def test_the_cll_costs_about_the_same_in_both_spaces() -> None:
    """As the paper remarks; the gradient costs 2 + 2 times the mean number of values as much in the network."""
    families = Dag(((),) * 30, tuple(range(30))).families((4,) * 30)
    free, nets = flops.of_free_tables(families, 100_000, 3), flops.of_networks(families, 100_000, 3)
    assert nets.cll == pytest.approx(free.cll, rel=0.1)
    assert nets.gradient / free.gradient == pytest.approx(2 + 2 * 4, rel=0.15)


def test_iterations_by_hand() -> None:
    """r = 3, cost_CLL = 100, cost_grad = 1000; two iterations with 4 + 1 evaluations, and the start's."""
    costs = Costs(3, 100, 1000)
    assert costs.spent("bfgs", 2, 6) == 2 * (12 * 9 + 8 * 3 + 1000) + 5 * (4 * 3 + 100)
    assert costs.spent("cg", 2, 6) == costs.spent("cgb", 2, 6) == 2 * (30 + 1000) + 5 * 112
    assert costs.spent("bfgs", 0, 1) == costs.spent("cg", 0, 1) == 0


@pytest.mark.parametrize("optimizer", ["lbfgs", "newton", ""])
def test_nothing_is_said_of_other_optimizers(optimizer: str) -> None:
    assert Costs(3, 100, 1000).spent(optimizer, 2, 6) is None
