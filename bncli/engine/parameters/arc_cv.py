"""The arcs between attributes that rows held out support, chosen with the penalty: all of them, some, or none.

A structure search always finds arcs; whether they help to tell the class is another question, and on few rows, or
below an attribute of many values, they often hurt. So networks that differ in their arcs compete on the same folds,
each along its own path of penalties (`penalty_cv`):

    class      the class alone: its frequencies
    none       the class is the only parent of each attribute
    supported  of each attribute's parents as many, in their order, as give it the highest BIC,
                   ll(i | class, first m parents) - (ln N) / 2 * (r_i - 1) q_m K,    m = 0, 1, ...
    all        the arcs that the search found

A network takes the place of one of fewer arcs where the rows held out are by more than EVIDENCE nats likelier under it,
all of them together: odds of 3 to 1. The search is repeated in every fold, on the rows of that fold alone: arcs found
on the rows that judge them would flatter themselves.

Conventions: of MANY_ROWS rows and more the networks compete on the first FEW_FOLDS folds, and all folds choose the
penalty of the one that won. `supported` competes where, over all rows, it has arcs, but at most the share FEW of them:
a network of nearly the same arcs has nearly the same loss. The path of a network begins near the penalty that was best
with fewer arcs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.model import ChosenPenalty, TriedArcs
from bncli.engine.parameters.optimization import Space
from bncli.engine.parameters.penalty_cv import HeldOutFold
from bncli.engine.structures.scores import bic
from bncli.engine.structures.structure import Dag

FEW = 0.75
MANY_ROWS, FEW_FOLDS = 10_000, 2
EVIDENCE = math.log(3.0)

Search = Callable[[Counts], Dag]
ArcSpace = Callable[[Counts, Dag], Space]
PathOf = Callable[..., ChosenPenalty]
"""`penalty_path` but for folds, space, `near` and `what`."""


class ChosenArcs(NamedTuple):
    """The network with the arcs that won, and its penalty."""

    structure: Dag
    penalty: ChosenPenalty


def choose_arcs(
    counts: Counts,
    structure: Dag,
    search: Search,
    space_of: ArcSpace,
    *,
    folds: Sequence[HeldOutFold],
    path: PathOf,
) -> ChosenArcs:
    """Return the best of the networks that `structure`, found in `counts` by `search`, and its subsets of arcs make.

    `space_of` makes the parameter space of some rows and a network, `path` follows it on the folds (`penalty_path`).
    """
    networks = _distinct(counts, structure)
    judges = folds if sum(fold.rows.n_rows for fold in folds) < MANY_ROWS else folds[:FEW_FOLDS]
    contest = _ArcSearch(_CachedSearch(search), space_of, path)
    chosen: dict[str, ChosenPenalty] = {}
    near: float | None = None
    for word in networks:
        chosen[word] = contest.path(word, judges, near)
        # the class alone says nothing about the penalty of tables
        near = None if word == "class" else chosen[word].penalty
    tried = tuple(
        TriedArcs(word, networks[word].n_arcs, chosen[word].penalty, loss_of(chosen[word])) for word in chosen
    )
    best = _best(tried, sum(fold.rows.total_weight for fold in judges))
    if len(judges) < len(folds):
        chosen[best.arcs] = contest.path(best.arcs, folds, best.penalty)
    return ChosenArcs(networks[best.arcs], replace(chosen[best.arcs], arcs=tried))


def naive_bayes_loss(
    search: Search, space_of: ArcSpace, *, folds: Sequence[HeldOutFold], path: PathOf, near: float
) -> float:
    """Return the log-loss of the rows held out, nats a row, under the network without arcs between attributes.

    `near` is the penalty that is best with the arcs; the other arguments are those of `choose_arcs`.
    """
    return loss_of(_ArcSearch(_CachedSearch(search), space_of, path).path("none", folds, near))


def loss_of(chosen: ChosenPenalty) -> float:
    """Return the log-loss at the penalty that won, under directions if there are any: the others are without."""
    return next((one.log_loss for one in chosen.tried if one.penalty == chosen.penalty), 0.0)


def _best(tried: Sequence[TriedArcs], weight: float) -> TriedArcs:
    """Return the winner; `tried` from few arcs to many, by log-losses a row of so much weight."""
    best = tried[0]
    for one in tried[1:]:
        if weight * (best.log_loss - one.log_loss) > EVIDENCE:
            best = one
    return best


class _ArcSearch(NamedTuple):
    """What the networks have in common: how arcs are found, and what is made of them."""

    search: Search
    space_of: ArcSpace
    follow: PathOf

    def path(self, word: str, folds: Sequence[HeldOutFold], near: float | None) -> ChosenPenalty:
        """Return the path of penalties of the network called `word`, from near a penalty."""
        choose = partial(_space, space_of=self.space_of, subset=_SUBSETS[word], search=self.search)
        return self.follow(folds, choose, near=near, what=f"arcs {word}, ")


class _CachedSearch:
    """A search that remembers what it found in the rows of each fold."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._found: dict[int, tuple[Counts, Dag]] = {}

    def __call__(self, counts: Counts) -> Dag:
        if id(counts) not in self._found:
            # the counts are kept too: an id is unique among living objects only
            self._found[id(counts)] = counts, self._search(counts)
        return self._found[id(counts)][1]


def _space(counts: Counts, space_of: ArcSpace, subset: Callable[[Counts, Dag], Dag], search: Search) -> Space:
    return space_of(counts, subset(counts, search(counts)))


def _distinct(counts: Counts, structure: Dag) -> dict[str, Dag]:
    """Return the networks that compete, from few arcs to many."""
    networks = {word: subset(counts, structure) for word, subset in _SUBSETS.items()}
    if not 0 < networks["supported"].n_arcs <= FEW * structure.n_arcs:
        del networks["supported"]
    if not structure.n_arcs:
        del networks["all"]
    return networks


def _class_alone(_: Counts, structure: Dag) -> Dag:
    return replace(structure, parents=((),) * len(structure.parents), class_children=(), class_parents=())


def _no_arcs(_: Counts, structure: Dag) -> Dag:
    return replace(structure, parents=((),) * len(structure.parents))


def supported(counts: Counts, structure: Dag) -> Dag:
    """Return the network with the first parents of each child of the class that maximise its BIC."""
    return replace(
        structure,
        parents=tuple(
            _supported_parents(counts, child, parents) if child in structure.class_children else parents
            for child, parents in enumerate(structure.parents)
        ),
    )


def _supported_parents(counts: Counts, child: int, parents: tuple[int, ...]) -> tuple[int, ...]:
    if not parents:
        return ()
    whole = counts.tables([(child, *parents)])[0]
    scores = []
    for m in range(len(parents) + 1):
        table = whole.sum(axis=tuple(range(m + 1, len(parents) + 1)))
        scores.append(float(bic(table.reshape(len(table), -1, table.shape[-1]))))
    return parents[: int(np.argmax(scores))]


def _all(_: Counts, structure: Dag) -> Dag:
    return structure


_SUBSETS: dict[str, Callable[[Counts, Dag], Dag]] = {
    "class": _class_alone,
    "none": _no_arcs,
    "supported": supported,
    "all": _all,
}
