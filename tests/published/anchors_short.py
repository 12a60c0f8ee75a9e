"""auto beside the anchors in short: a table with two sentences for the manual, a paragraph for the README."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from tests.published.anchor_learners import ANCHORS
from tests.published.anchors import Figure
from tests.published.anchors_evidence import AHEAD, SIZES, Anchored, falling, ratio_of, won
from tests.published.pages import table

TOLD = 8
"""Tables named in the manual."""


def in_short(found: Anchored) -> str:
    """For the manual: auto beside every anchor by size, and where the best of them is ahead."""
    header = [f"{size}: {what}" for size in SIZES for what in ("log-loss, median ratio", "won-lost", "CPU, ratio")]
    lines = [[anchor, *(cell for size in SIZES for cell in _cells(found.where(size), anchor))] for anchor in ANCHORS]
    told = (_wrapped(f"{_begun(size)}, {_best_told(found, size, TOLD)}") for size in SIZES)
    return "\n\n".join([table(["`auto` beside", *header], lines), *told]) + "\n"


def in_a_paragraph(found: Anchored) -> str:
    """For the README: the same in two sentences."""
    sentences = []
    for size, where in zip(SIZES, ("fewer than 1,000 rows", "1,000 rows or more"), strict=True):
        pairs = {anchor: found.where(size).pairs(found.auto, anchor) for anchor in ANCHORS}
        each = [f"{_median(of):.2f} for {_bare(anchor)} ({_score(of)})" for anchor, of in pairs.items() if of]
        sentences.append(f"On tables of {where}: {', '.join(each)}; {_best_told(found, size, 2)}")
    return _wrapped(" ".join(sentences)) + "\n"


def _median(pairs: Sequence[tuple[Figure, Figure]]) -> float:
    """Of the tables' ratios; their mean would be carried by the few tables without noise."""
    return float(np.median([ratio_of([pair]) for pair in pairs]))


def _score(pairs: Sequence[tuple[Figure, Figure]]) -> str:
    against = won(pairs)
    return f"{against.wins}-{against.losses}"


def _begun(size: str) -> str:
    return f"{size[0].upper()}{size[1:]}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)


def _bare(anchor: str) -> str:
    return anchor.split(",")[0]


def _cells(found: Anchored, anchor: str) -> tuple[str, str, str]:
    pairs = found.pairs(found.auto, anchor)
    if not pairs:
        return "", "", ""
    return f"{_median(pairs):.2f}", _score(pairs), f"{ratio_of(pairs, 'fit', 'seconds'):.2g}"


def _best_told(found: Anchored, size: str, most: int) -> str:
    """Return the end of a sentence: on how many tables an anchor is ahead of auto, with `most` of them by name."""
    ratios = found.where(size).beside_best(found.auto)
    behind = falling({name: ratio for name, (ratio, _) in ratios.items() if ratio > 1 + AHEAD})
    told = f"at least one of them is ahead of `auto` on {len(behind)} of {len(ratios)} tables"
    if not behind:
        return f"{told}."
    named = ", ".join(f"{name} ({_bare(ratios[name][1])}, {ratios[name][0]:.2f})" for name in behind[:most])
    return f"{told}{':' if len(behind) <= most else ', most clearly on'} {named}."
