"""Random networks to draw artificial data from, in which the truth is known.

Every distribution of a node given its parents is drawn from the Dirichlet distribution with all parameters 1: all
distributions over its values are equally likely. What is the parent of what follows from a `Spec`:

    p.n.d.N    each of n attributes has the class and the p - 1 attributes before it (where there are so many) as
               parents; N rows. Perfect. The artificial data of Feelders & Ivanovs 2006, e.g. 2.30.2-3.1000
    nb         the class alone
    tan        the class and one attribute that comes earlier in a random order
    kdb        the class and k attributes that come earlier in a random order, or all where there are fewer
    conditioning   see `conditioning_network`; not random

An attribute has d values; d written 2-3 is drawn for each, 2 and 3 with equal probabilities. Conventions: in p.n.d.N
the class has a number of labels drawn in the same way (the paper does not say; the flops in its Table 2 fit this). The
class is called `class` and its labels c0, c1 ...; attributes are x1, x2 ..., values v0, v1 ..., all numbers with as
many digits as the largest has, so that they sort. Dirichlet numbers are the gaps between sorted uniform numbers: no
logarithm is taken, so that a seed gives the same network on any machine.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.networks.network import Network, table_shapes
from bncli.engine.structures.structure import Dag
from bncli.errors import UsageError

Range = tuple[int, int]
"""A number drawn from the first to the last, both included, all equally likely."""

MOST_ENTRIES = 1 << 25
"""Probabilities in all tables of a network together: 256 MiB, and as much again while rows are drawn."""
MOST_ATTRIBUTES = 10_000
MOST_VALUES = 10_000
_NAME = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)(?:-([0-9]+))?\.([0-9]+)")


@dataclass(frozen=True)
class Spec:
    """A kind of random network: `k` is the most attribute parents of an attribute, `name` what it is called.

    ordered: the parents are the attributes just before; otherwise earlier ones in a random order, drawn at random.
    rows: how many the name asks for; None where it does not say. options: what its structure file says of it.
    """

    name: str
    k: int
    attributes: int = 10
    values: Range = (3, 3)
    classes: Range = (2, 2)
    ordered: bool = False
    rows: int | None = None
    options: dict[str, int | float | str | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, (least, most), low, high in (
            ("attributes", (self.attributes, self.attributes), 1, MOST_ATTRIBUTES),
            ("values", self.values, 2, MOST_VALUES),
            ("classes", self.classes, 2, MOST_VALUES),
        ):
            if not low <= least <= most <= high:
                number = str(least) if least == most else f"{least}-{most}"
                raise UsageError(
                    f"a network of {number} {what} cannot be drawn", hint=f"from {low} to {high:,} are possible"
                )


def named_spec(name: str) -> Spec | None:
    """What a name p.n.d.N stands for; None where it is no such name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    if max(map(len, filter(None, match.groups()))) > 15:
        raise UsageError(f"a number in the network {name!r} is too large")
    parents, attributes, least, most, rows = (int(number) if number else 0 for number in match.groups())
    if parents < 1 or rows < 1:
        what = "parent (the class)" if parents < 1 else "row"
        raise UsageError(f"the network {name!r} needs at least one {what}", hint="for example 2.30.2-3.1000")
    values = (least, most or least)
    return Spec(name, parents - 1, attributes, values, values, True, rows, {"network": name})


def random_network(spec: Spec | str, rng: np.random.Generator) -> Network:
    """A network of this kind, or of this name p.n.d.N; UsageError where its tables would not fit into memory."""
    if isinstance(spec, str):
        named = named_spec(spec)
        if named is None:
            raise UsageError(f"there is no network {spec!r}", hint="a name is like 2.30.2-3.1000")
        spec = named
    _refuse_size(spec.values[0] ** min(spec.k + 1, spec.attributes) * spec.classes[0])  # one table at least is as large
    n_labels = int(rng.integers(*spec.classes, endpoint=True))
    cardinalities = rng.integers(*spec.values, size=spec.attributes, endpoint=True).tolist()
    structure = _preceding(spec) if spec.ordered else _scattered(spec, rng)
    shapes = table_shapes(structure, cardinalities, n_labels)
    _refuse_size(sum(map(math.prod, shapes)))
    *theta, theta_class = (_dirichlet(shape[0], shape[1:], rng) for shape in (*shapes[:-1], (n_labels,)))
    return Network(_schema(cardinalities, n_labels), structure, theta_class, tuple(theta))


def _preceding(spec: Spec) -> Dag:
    """The nearest attribute first."""
    parents = tuple(tuple(range(i - 1, max(i - 1 - spec.k, -1), -1)) for i in range(spec.attributes))
    return Dag(parents, tuple(range(spec.attributes)), (), "random", spec.options)


def _scattered(spec: Spec, rng: np.random.Generator) -> Dag:
    order = rng.permutation(spec.attributes)
    parents: list[tuple[int, ...]] = [()] * spec.attributes
    for place, i in enumerate(order.tolist()):
        if place and spec.k:
            parents[i] = tuple(order[rng.choice(place, min(spec.k, place), replace=False)].tolist())
    return Dag(tuple(parents), tuple(range(spec.attributes)), (), "random", spec.options)


def _refuse_size(entries: int) -> None:
    """Sizes as powers of ten where they are beyond any number that one would like to read."""
    if entries > MOST_ENTRIES:
        size = f"{entries:,}" if entries < 10**15 else f"about 10^{len(str(entries)) - 1}"
        raise UsageError(
            f"the tables of this network would hold {size} probabilities or more; the most is {MOST_ENTRIES:,}",
            hint="take fewer parents, values or attributes",
        )


def _dirichlet(n: int, given: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Shape (n, *given): over its first axis, each a distribution drawn uniformly from all distributions."""
    marks = rng.random((math.prod(given), n - 1))
    marks.sort(axis=1)
    theta: Array = np.diff(marks, axis=1, prepend=0.0, append=1.0).T
    return np.ascontiguousarray(theta).reshape(n, *given)


def _schema(cardinalities: list[int], n_labels: int) -> Schema:
    """Without rows, there are no frequencies."""
    names = numbered("x", len(cardinalities), first=1)
    attributes = (
        CategoricalAttribute(name, False, (), numbered("v", n)) for name, n in zip(names, cardinalities, strict=True)
    )
    return Schema("class", numbered("c", n_labels), tuple(attributes))


def numbered(letter: str, n: int, first: int = 0) -> tuple[str, ...]:
    """n names: the letter and numbers of equal length, so that their order is that of the numbers."""
    width = len(str(n - 1 + first))
    return tuple(f"{letter}{number:0{width}d}" for number in range(first, n + first))


MOST_EXPONENT = 300.0


def conditioning_network(exponent: float) -> Network:
    """Three binary attributes, uniform and independent, whose influence on the class differs by powers of ten:

        P(y = 1 | x) = 1 / (1 + exp(-(10^a x_1 + x_2 + 10^-a x_3))),   x_i in {0, 1}, a = exponent

    The class has the attributes as parents. The larger a, the worse conditioned is the likelihood of a logistic
    regression on such data (Zaidi et al. 2017, section 5.5.1, where the 1 + is lost in print; a from 0 to 1).
    """
    if not 0 <= exponent <= MOST_EXPONENT:
        raise UsageError(f"the exponent {exponent:g} is not between 0 and {MOST_EXPONENT:g}")
    x = np.indices((2, 2, 2)).astype(np.float64)
    score = 10.0**exponent * x[0] + x[1] + 10.0**-exponent * x[2]
    theta_class = np.stack([np.exp(-score), np.ones_like(score)], axis=-1) / (1.0 + np.exp(-score))[..., np.newaxis]
    attributes = tuple(CategoricalAttribute(name, False, (), ("0", "1")) for name in numbered("x", 3, first=1))
    options: dict[str, int | float | str | bool] = {"network": "conditioning", "exponent": exponent}
    structure = Dag(((), (), ()), (), (0, 1, 2), "conditioning", options)
    return Network(Schema("class", ("0", "1"), attributes), structure, theta_class, (np.full(2, 0.5),) * 3)
