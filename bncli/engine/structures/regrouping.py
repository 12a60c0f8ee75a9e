"""Regrouped attributes as columns of their own, so that whoever reads the rows knows nothing of regrouping.

A family with a regrouped attribute (a grouping of its codes, see `structures.binning`) is a plain family over a data
set that has one more column: the coarser codes. Each distinct pair of attribute and grouping is one column, whichever
families share it. Cost: one narrow look-up a row and regrouped attribute, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.kernels.arrays import Codes
from bncli.engine.structures.binning import coarse
from bncli.engine.structures.structure import Family, Grouping

RegroupedAttribute = tuple[int, Grouping]
"""A regrouped attribute: its number, and the grouping of its codes."""


def with_regrouped_columns(data: Dataset, families: Sequence[Family]) -> tuple[Dataset, tuple[Family, ...]]:
    """The data with a column for each regrouped attribute of the families, and the families over these columns.

    The families stay in their order and keep their cells. Where nothing is regrouped, all is as it was.
    """
    regrouped = regrouped_attributes(families)
    if not regrouped:
        return data, tuple(families)
    first = len(data.codes)
    column = {pair: first + v for v, pair in enumerate(regrouped)}
    schema = data.schema
    attributes = (*schema.attributes, *(coarse(schema.attributes[a], grouping) for a, grouping in regrouped))
    codes = (*data.codes, *(coarse_codes(data.codes[a], grouping) for a, grouping in regrouped))
    extended = replace(data, schema=replace(schema, attributes=attributes), codes=codes)
    return extended, tuple(_over_columns(family, column) for family in families)


def regrouped_attributes(families: Iterable[Family]) -> tuple[RegroupedAttribute, ...]:
    """Each regrouped attribute of these families once, in the order of first use."""
    seen = (pair for family in families for pair in family.binned_attributes)
    return tuple(dict.fromkeys((a, grouping) for a, grouping in seen if grouping is not None))


def coarse_codes(codes: Codes, grouping: Grouping) -> Codes:
    """The coarse codes, in the narrowest type; the code one past the last, "unobserved", stays one past the last."""
    n_codes = max(grouping) + 1
    return np.array((*grouping, n_codes), code_dtype(n_codes + 1))[codes]


def _over_columns(family: Family, column: dict[RegroupedAttribute, int]) -> Family:
    if not family.groupings:
        return family
    attributes = tuple(a if grouping is None else column[a, grouping] for a, grouping in family.binned_attributes)
    child = None if family.child is None else attributes[family.attributes.index(family.child)]
    return replace(family, attributes=attributes, child=child, groupings=())
