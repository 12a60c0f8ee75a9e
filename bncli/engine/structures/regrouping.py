"""Regrouped attributes as columns of their own, so that whoever reads the rows knows nothing of regrouping.

A family with a regrouped attribute (a merge of its codes, see `structures.binning`) is a plain family over a data set
that has one more column: the coarser codes. Each distinct pair of attribute and merge is one column, whichever families
share it. Cost: one narrow look-up a row and regrouped attribute, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.kernels.arrays import Codes
from bncli.engine.structures.binning import coarse
from bncli.engine.structures.structure import Family, Merge

View = tuple[int, Merge]
"""A regrouped attribute: its number, and the merge of its codes."""


def with_views(data: Dataset, families: Sequence[Family]) -> tuple[Dataset, tuple[Family, ...]]:
    """The data with a column for each regrouped attribute of the families, and the families over these columns.

    The families stay in their order and keep their cells. Where nothing is regrouped, all is as it was.
    """
    views = views_of(families)
    if not views:
        return data, tuple(families)
    first = len(data.codes)
    column = {view: first + v for v, view in enumerate(views)}
    schema = data.schema
    attributes = (*schema.attributes, *(coarse(schema.attributes[a], merge) for a, merge in views))
    codes = (*data.codes, *(merged(data.codes[a], merge) for a, merge in views))
    extended = replace(data, schema=replace(schema, attributes=attributes), codes=codes)
    return extended, tuple(_over_columns(family, column) for family in families)


def views_of(families: Iterable[Family]) -> tuple[View, ...]:
    """Each regrouped attribute of these families once, in the order of first use."""
    seen = (view for family in families for view in family.seen)
    return tuple(dict.fromkeys((a, merge) for a, merge in seen if merge is not None))


def merged(codes: Codes, merge: Merge) -> Codes:
    """The coarse codes, in the narrowest type; the code one past the last, "unobserved", stays one past the last."""
    n_codes = max(merge) + 1
    return np.array((*merge, n_codes), code_dtype(n_codes + 1))[codes]


def _over_columns(family: Family, column: dict[View, int]) -> Family:
    if not family.merges:
        return family
    attributes = tuple(a if merge is None else column[a, merge] for a, merge in family.seen)
    child = None if family.child is None else attributes[family.attributes.index(family.child)]
    return replace(family, attributes=attributes, child=child, merges=())
