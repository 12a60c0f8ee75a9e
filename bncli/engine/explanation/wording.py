"""The words of an explanation: what a code of an attribute stands for, and what a term saw in a row.

A numeric value is told as its interval: `<=27.5`, `27.5..41` (above 27.5, up to 41), `>41`. A missing value that counts
as a value is `missing`; what the model knows nothing of is `unknown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Codes, Index

_LARGEST = 1 << 62


class Wording(NamedTuple):
    """A term and what it saw: the values of its attributes in words."""

    attributes: tuple[str, ...]
    values: tuple[str, ...]


def value_names(attribute: Attribute) -> tuple[str, ...]:
    """What every code stands for, "unknown" the last."""
    values = _intervals(attribute.cuts) if isinstance(attribute, NumericAttribute) else attribute.levels
    return (*values, *(["missing"] * attribute.missing), "unknown")


def _intervals(cuts: Sequence[float]) -> tuple[str, ...]:
    if not cuts:
        return ("any",)
    texts = [f"{cut:.6g}" for cut in cuts]
    if len(set(texts)) < len(texts):
        texts = [repr(float(cut)) for cut in cuts]
    between = (f"{low}..{high}" for low, high in pairwise(texts))
    return (f"<={texts[0]}", *between, f">{texts[-1]}")


class Words:
    """Names for what terms saw. `terms`: the attributes of each; codes come for the attributes `used`."""

    def __init__(self, schema: Schema, terms: Sequence[tuple[int, ...]], used: Sequence[int]) -> None:
        self._place = {a: position for position, a in enumerate(used)}
        self._names = {a: schema.attributes[a].name for a in used}
        self._values = {a: value_names(schema.attributes[a]) for a in used}
        self._terms = terms

    def of(self, chosen: Index, codes: Sequence[Codes]) -> tuple[Index, tuple[Wording, ...]]:
        """chosen (m, N): the terms named for each row, -1 none. What was seen, as places in a list; -1 none."""
        flat = chosen.ravel()
        places = np.full(flat.shape, -1, np.intp)
        wordings: list[Wording] = []
        order = np.argsort(flat, kind="stable")
        terms, starts = np.unique(flat[order], return_index=True)
        for term, entries in zip(terms.tolist(), np.split(order, starts)[1:], strict=True):
            if term >= 0:
                found, seen = self._seen(self._terms[term], entries % chosen.shape[1], codes)
                places[entries] = found + len(wordings)
                wordings += seen
        return places.reshape(chosen.shape), tuple(wordings)

    def _seen(self, attributes: tuple[int, ...], rows: Index, codes: Sequence[Codes]) -> tuple[Index, list[Wording]]:
        """Which of the listed wordings each of these rows has."""
        digits = {a: codes[self._place[a]][rows].astype(np.int64) for a in attributes}
        cells = np.zeros(len(rows), np.int64)
        size = 1
        for a in attributes:
            base = len(self._values[a])
            if size * base > _LARGEST:
                cells = np.unique(cells, return_inverse=True)[1].astype(np.int64)
                size = len(rows)
            cells = cells * base + digits[a]
            size *= base
        _, first, places = np.unique(cells, return_index=True, return_inverse=True)
        names = tuple(self._names[a] for a in attributes)
        values = zip(*([self._values[a][d] for d in digits[a][first].tolist()] for a in attributes), strict=True)
        return places.astype(np.intp).ravel(), [Wording(names, seen) for seen in values]
