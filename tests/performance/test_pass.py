"""One pass: conditional log-likelihood and gradient.

Beside a fused C kernel (K up to 10) or scipy's sparse matrices (more classes), both of which are given the cells ready
made. Tables are random; every contestant must find the same CLL and the same gradient.
"""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pytest

from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate
from tests.performance.workloads import real, simulated, structure, with_threads
from tests.performance.yardsticks import Array, c_pass, csr_pass

pytestmark = pytest.mark.performance


def table(name: str) -> Dataset:
    if name == "simulated":
        return simulated(60_000)
    return real(name, 60_000 if name == "covertype" else None)


@pytest.mark.parametrize("word", ["nb", "tan"])
@pytest.mark.parametrize("name", ["adult", "covertype", "simulated", "letter"])
def test_beside_the_yardsticks(name: str, word: str, record: Recorder) -> None:
    data = table(name)
    families = structure(data, word).families(data.schema.cardinalities)
    likelihood = conditional_likelihood(data, families)
    tables = random_tables(likelihood)
    row_major = np.ascontiguousarray(tables.T)
    in_c, sparse = c_pass(data, families), csr_pass(data, families)
    for cll, gradient in (in_c(row_major), sparse(row_major)):
        own_cll, own_gradient = likelihood.value_and_gradient(tables)
        assert own_cll == pytest.approx(cll, rel=1e-9)
        np.testing.assert_allclose(own_gradient[:, 1:], gradient.T[:, 1:], atol=1e-6 * abs(own_gradient).max())
    times = alternate(
        {
            "own": lambda: likelihood.value_and_gradient(tables),
            "c": lambda: in_c(row_major),
            "csr": lambda: sparse(row_major),
        },
        repeats=15,
    )
    own, c, csr = (times[k].cpu for k in ("own", "c", "csr"))
    few = data.n_labels <= 10
    what = f"{name} {word.upper()}, {data.n_rows:,} rows, K = {data.n_labels}"
    detail = f"own {own * 1e3:.2f} ms, C {c * 1e3:.2f} ms, CSR {csr * 1e3:.2f} ms"
    limit = (1.2 if data.n_labels == 2 else 2.0) if few else 1.0
    record(what, own / (c if few else csr), "x the C kernel" if few else "x scipy CSR", limit, detail)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one core only")
@pytest.mark.parametrize("n_labels", [2, 5])
def test_two_threads_use_two_cores(n_labels: int, record: Recorder) -> None:
    """Wall time, least of many; the C kernel says whether there was a second core to be had.

    The two are not timed in turn: OpenMP's threads spin for a while after they are done.
    """
    data = simulated(800_000, (5,) * 30, 2) if n_labels == 2 else simulated(800_000)
    families = structure(data, "tan").families(data.schema.cardinalities)
    own = {n: conditional_likelihood(with_threads(data, n), families) for n in (1, 2)}
    in_c = {n: c_pass(data, families, n) for n in (1, 2)}
    tables = random_tables(own[1])
    row_major = np.ascontiguousarray(tables.T)
    one, two = (own[n].value_and_gradient(tables) for n in (1, 2))
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])
    times = alternate({f"own {n}": partial(own[n].value_and_gradient, tables) for n in (1, 2)}, repeats=25)
    times |= alternate({f"C {n}": partial(in_c[n], row_major) for n in (1, 2)}, repeats=15)
    shares = {who: times[f"{who} 2"].wall / times[f"{who} 1"].wall for who in ("own", "C")}
    detail = ", ".join(f"{name} {timing.wall * 1e3:.0f} ms" for name, timing in times.items())
    if shares["C"] > 0.7:
        pytest.skip(f"no second core was free: the C kernel gains nothing from it either ({detail})")
    what = f"two threads, simulated TAN, 800,000 rows, K = {n_labels}"
    missed = "what one thread does alone and waiting for the lock: tests/published/threads.md"
    record(what, shares["own"], "x the wall time of one", 1.2 * shares["C"], detail, missed=missed)


def random_tables(likelihood: ConditionalLikelihood) -> Array:
    """Tables with a bias of 0, which the yardsticks leave out."""
    tables = np.random.default_rng(0).normal(0, 0.3, (likelihood.data.n_labels, likelihood.n_cells))
    tables[:, 0] = 0.0
    return tables
