"""Perfect graphs: every two parents of a common child are joined by an arc.

P(target | all other nodes) depends on the graph's *canonical form* alone: the target, its children, its parents and
its children's parents, with the target's parents married, that is, joined two by two. Where this form is perfect, the
distributions of the target are those of a log-linear model over the complete sets of the form (directions dropped),
hence of a logistic regression (Roos, Wettig, Grünwald, Myllymäki & Tirri 2005, Machine Learning 59). Naive Bayes,
trees, forests and k-dependence networks with k = 1 are perfect below their class; others need not be.

A graph is a mapping from nodes to their parents, without cycles; a node that is only a parent may be left out.
Conventions: between married nodes the arc points as the order of the whole graph does. Cost: the arcs, and the pairs of
parents.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

Node = TypeVar("Node", bound=Hashable)


class Unmarried(NamedTuple, Generic[Node]):
    """Two parents of `child` that no arc joins."""

    child: Node
    one: Node
    other: Node


def canonical_form(parents: Mapping[Node, tuple[Node, ...]], target: Node) -> dict[Node, tuple[Node, ...]]:
    """The canonical form for P(target | the others); the new parents of a node follow those that it had."""
    from graphlib import TopologicalSorter

    form = _blanket(parents, target)
    spouses = set(form.get(target, ()))
    in_order = [node for node in TopologicalSorter(parents).static_order() if node in spouses]
    for place, node in enumerate(in_order):
        own = form.get(node, ())
        form[node] = (*own, *(earlier for earlier in in_order[:place] if earlier not in own))
    return form


def first_unmarried(parents: Mapping[Node, tuple[Node, ...]], target: Node) -> Unmarried[Node] | None:
    """The first two parents of a common child that the canonical form leaves apart; None where it is perfect.

    Children and parents in the order of the mapping.

    >>> first_unmarried({"x": ("class",), "z": ("class",), "y": ("class", "x", "z")}, "class")
    Unmarried(child='y', one='x', other='z')
    """
    form = _blanket(parents, target)
    spouses = set(form.get(target, ()))
    known = {node: frozenset(listed) for node, listed in form.items()}
    for child, listed in form.items():
        for one, other in itertools.combinations(listed, 2) if child != target else ():
            joined = one in known.get(other, ()) or other in known.get(one, ())
            if not joined and not (one in spouses and other in spouses):
                return Unmarried(child, one, other)
    return None


def _blanket(parents: Mapping[Node, tuple[Node, ...]], target: Node) -> dict[Node, tuple[Node, ...]]:
    """The target's Markov blanket with the target, and the arcs inside it."""
    children = [node for node, listed in parents.items() if target in listed]
    members = {target, *parents.get(target, ()), *children}
    members.update(node for child in children for node in parents[child])
    return {node: tuple(p for p in listed if p in members) for node, listed in parents.items() if node in members}
