"""The page of a pass on a cluster is what its figures give, and the bytes of a round are those that it has."""

from __future__ import annotations

import importlib.util

import pytest

from tests.published import cluster, cluster_page


def test_the_page_is_made_from_the_figures() -> None:
    assert cluster_page.page(cluster.read_rows()) == cluster_page.PAGE.read_text()


def test_more_workers_never_take_longer_on_paper() -> None:
    figures = cluster_page._figures(cluster.read_rows())
    for n_rows in (10**9, 10**10):
        seconds = [cluster_page.round_seconds(figures, n_rows, workers, 1.25e9) for workers in (1, 20, 200)]
        assert seconds == sorted(seconds, reverse=True)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="the extra 'cluster' is not installed")
def test_a_round_moves_as_many_bytes() -> None:
    """Seconds are those of the machine; that all places give the same bits is asserted on the way."""
    from bncli.steps.cluster.connection import connected

    with connected("local:2") as found:
        rows = cluster.measured(cluster.SIZES[0], found, 2)
    recorded = [row for row in cluster.read_rows() if int(row["rows"]) == cluster.SIZES[0]]
    for key in ("rows", "blocks", "place"):
        assert [str(row[key]) for row in rows] == [row[key] for row in recorded]
    for key in ("sent", "received"):  # the messages hold names of modules, which may change
        assert [int(str(row[key])) for row in rows] == pytest.approx([int(row[key]) for row in recorded], rel=2e-3)
