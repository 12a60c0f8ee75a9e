"""Fine cuts and coarser binnings of them."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.data.columns import NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute
from bncli.engine.discretizers.mdl import cut_points
from bncli.engine.ensembles import grids
from bncli.engine.structures.regrouping import group_intervals
from bncli.engine.structures.structure import Dag
from tests.engine.ensembles.rows import coded, mixed


@pytest.mark.parametrize(("n_rows", "intervals"), [(90, grids.FINE // 2), (grids.MANY_ROWS - 1, grids.FINE // 2)])
def test_few_rows_have_half_as_many_intervals_in_single_attributes(n_rows: int, intervals: int) -> None:
    data = coded(mixed(n_rows))
    assert data.schema.attributes[0].n_values == min(n_rows, grids.FINEST)
    single = grids.singles(data, grids.mdl_binnings(data))[0]
    assert single is not None
    assert max(single) + 1 == intervals
    assert isinstance(data.schema.attributes[2], CategoricalAttribute)
    assert grids.singles(data, grids.mdl_binnings(data))[2] is None


def test_of_many_rows_single_attributes_have_the_sharp_cuts_too() -> None:
    data = coded(mixed(grids.MANY_ROWS))
    steps, sharp, single = (
        group_intervals(data.schema.attributes[0], grids.FINE),
        grids.mdl_binnings(data)[0],
        grids.singles(data, grids.mdl_binnings(data))[0],
    )
    assert steps is not None
    assert sharp is not None
    assert single is not None
    for code in range(1, len(single)):
        parted = steps[code] != steps[code - 1] or sharp[code] != sharp[code - 1]
        assert single[code] - single[code - 1] == parted


def test_of_many_rows_the_sharp_cuts_are_among_the_fine_ones() -> None:
    columns = mixed(grids.MANY_ROWS)
    attribute, column = coded(columns).schema.attributes[0], columns.attributes["x"]
    assert isinstance(attribute, NumericAttribute)
    assert isinstance(column, NumericColumn)
    assert columns.label is not None
    sharp = cut_points(column.values, columns.label.codes.astype(np.uint8), 2, None)
    assert sharp
    assert set(sharp) < set(attribute.cuts)


def test_a_sharp_binning_joins_the_intervals_between_the_cuts_of_these_rows() -> None:
    data = coded(mixed(400))
    grouping = grids.mdl_binnings(data)[0]
    assert grouping is not None
    cuts = cut_points(data.codes[0], data.labels, 2, None)
    assert grouping == tuple(int(sum(code > cut for cut in cuts)) for code in range(data.schema.cardinalities[0]))


def test_missing_values_stay_apart_in_an_mdl_binning() -> None:
    data = coded(mixed(400))
    grouping = grids.mdl_binnings(data)[1]
    assert grouping is not None
    assert grouping[-1] == max(grouping[:-1]) + 1
    assert grids.mdl_binnings(data)[3] is None


def test_viewed_rows_and_families_through_the_same_views_agree() -> None:
    data = coded(mixed(200))
    binnings = grids.few(data, 4)
    seen = grids.regrouped(data, binnings)
    assert seen.schema.attributes[0].n_values == 4
    assert all((codes < n).all() for codes, n in zip(seen.codes, seen.schema.cardinalities, strict=True))
    dag = Dag(((), (0,), (), ()), (0, 1, 2, 3))
    for family in grids.regrouped_families(dag.families(seen.schema.cardinalities), binnings):
        widths = [
            n if m is None else max(m) + 1 for (_, m), n in zip(family.binned_attributes, family.shape, strict=True)
        ]
        assert tuple(widths) == family.shape
