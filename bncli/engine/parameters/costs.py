"""The cost of a fit: memory, which is checked before any is allocated, and floating-point operations for the trace.

**Memory.** The tables of a network have n_labels * (1 + sum over families f of the cells of f) entries. Learning holds
several vectors of that length at once; measured on large tables, closed forms hold 8, conjugate gradients and BFGS 16,
limited-memory BFGS and Newton 45 float64 values per entry (differences of the last steps, and the preconditioner).
BFGS also holds two P x P matrices for P parameters. Structure learners that compare pairs of n attributes hold a few
n x n matrices.

**Flops.** The cost model of Feelders & Ivanovs (2006) counts floating-point operations per iteration, not seconds. With
N rows, K classes, r free parameters, |Z| the number of ones in the indicator matrix of the predictors (the intercept
included), n attributes with d_i values and D = r network parameters:

    logistic regression:  cost_CLL = |Z|(K - 1) + N(K + 2),        cost_grad = |Z|K + 2NK
    Bayesian network:     cost_CLL = 3D + N(nK + 2K + 2),          cost_grad = 3D + N(2nK + n + (2K + 1)(3 + sum_i d_i))

    iteration of BFGS:         12 r^2 + 8r + (4r + cost_CLL) count_CLL + cost_grad
    iteration of CG and CGB:           10r + (4r + cost_CLL) count_CLL + cost_grad

count_CLL is the number of evaluations of the conditional log-likelihood in the iteration.

Conventions: the evaluation at the start belongs to no iteration and is not counted. N is the number of rows, regardless
of their weights. Free tables have K columns instead of the K - 1 of a logistic regression, so that cost_CLL = |Z|K +
N(K + 2), and Z has one 1 per row for each table and for the bias. In a network, an intercept that is replaced by a
table over the class's parents is not counted, and neither is the penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bncli.catalogue import STRUCTURES
from bncli.engine.data.schema import Schema
from bncli.engine.structures.structure import Dag, Family, Structure
from bncli.errors import BncliError
from bncli.recipe import Recipe

CLOSED_FORM, FIRST_ORDER, QUASI_NEWTON = 8, 16, 45
"""The number of float64 values that learning holds in memory per entry of the tables."""
WITH_FOLDS = 2
"""Choosing the penalty takes this many times the memory of the optimizer alone (measured: 1.6 to 3)."""
NOTED = 1 << 30
"""If learning the tables takes more bytes than this, a note says so before they are learned."""
LARGE_EPSILON = 0.05
"""The minimum epsilon of gbn, in bits, that a message recommends if its tables are too large."""
MOST_NAMED = 5
"""The maximum number of attributes of a table that a message names."""
MOST_GIB = 1_000_000
BEYOND_COUNTING = 1e15
MATRICES = 6
"""The number of n x n matrices that structure learners keep in memory, for n attributes."""
BYTES = 8


@dataclass(frozen=True)
class Flops:
    """The r, cost_CLL and cost_grad of the cost model, for a parameter space and a data set."""

    n_parameters: int
    cll: int
    gradient: int

    def spent(self, optimizer: str, iterations: int, cll_evaluations: int) -> int | None:
        """Return the flops of the iterations, or None for an optimizer that the model does not cover.

        `cll_evaluations` includes the evaluation at the start.
        """
        r = self.n_parameters
        overhead = {"bfgs": 12 * r * r + 8 * r, "cg": 10 * r, "cgb": 10 * r}.get(optimizer)
        if overhead is None:
            return None
        return iterations * (overhead + self.gradient) + (cll_evaluations - 1) * (4 * r + self.cll)


def logistic_flops(n_parameters: int, n_ones: int, n_rows: int, n_labels: int) -> Flops:
    """Return the costs of a logistic regression with class 0 as the reference; n_ones = |Z|."""
    cll = n_ones * (n_labels - 1) + n_rows * (n_labels + 2)
    return Flops(n_parameters, cll, n_ones * n_labels + 2 * n_rows * n_labels)


def free_table_flops(families: Sequence[Family], n_rows: int, n_labels: int) -> Flops:
    """Return the costs of tables with one free entry per cell and class, including the bias."""
    n_cells, n_ones = 1 + sum(family.n_cells for family in families), (1 + len(families)) * n_rows
    flops = logistic_flops(n_cells * n_labels, n_ones, n_rows, n_labels)
    return replace(flops, cll=flops.cll + n_ones)


def network_flops(families: Sequence[Family], n_rows: int, n_labels: int) -> Flops:
    """Return the costs of a network with one parameter per cell and class."""
    n_values = [family.shape[0] for family in families if family.child is not None]
    # the class has a distribution of its own, or a table over its parents
    n_cells = sum(family.n_cells for family in families) + all(family.child is not None for family in families)
    n, n_parameters = len(n_values), n_cells * n_labels
    cll = 3 * n_parameters + n_rows * (n * n_labels + 2 * n_labels + 2)
    per_row = 2 * n * n_labels + n + (2 * n_labels + 1) * (3 + sum(n_values))
    return Flops(n_parameters, cll, 3 * n_parameters + n_rows * per_row)


def refuse_wide(schema: Schema, recipe: Recipe, memory: int | None) -> None:
    """Raise BncliError if the matrices of the structure learner do not fit in `memory` bytes; None means no limit."""
    n = len(schema.informative)
    needed = MATRICES * BYTES * n * n
    if memory is not None and recipe.structure not in ("nb", "file") and needed > memory:
        what = (
            f"--structure {recipe.structure} compares all pairs of {n:,} attributes: {needed_and_free(needed, memory)}"
        )
        raise BncliError(what, hint="leave columns out with --ignore, or use --structure nb")


def refuse_large(structure: Structure, schema: Schema, recipe: Recipe, memory: int | None) -> None:
    """Raise BncliError if the tables of the structure cannot be learned in `memory` bytes; None means no limit."""
    needed = table_memory(structure, schema, recipe)
    if memory is None or needed <= memory:
        return
    families, n_labels = _families(structure, schema, recipe), len(schema.labels)
    largest = max(families, key=lambda family: family.n_cells)
    kind = "network" if isinstance(structure, Dag) else "regions"
    size = f"{_short(_n_entries(families, n_labels), ',')} entries: {needed_and_free(needed, memory)}"
    names = [repr(schema.attributes[i].name) for i in largest.attributes]
    more = f", {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    over = f"{', '.join(names[:MOST_NAMED])}{more} and the class"
    what = f"the tables of the {kind} would have {size}; the largest is over {over}"
    raise BncliError(what, hint=_advice(structure, schema, recipe, memory))


def describe_large(structure: Structure, schema: Schema, recipe: Recipe) -> str:
    """Describe the size of the tables, and how to make them smaller; "" if learning them takes at most NOTED bytes."""
    needed = fitting_memory(structure, schema, recipe)
    if needed <= NOTED:
        return ""
    families = _families(structure, schema, recipe)
    largest = max(families, key=lambda family: family.n_cells)
    size = f"{_short(_n_entries(families, len(schema.labels)), ',')} entries"
    of_child = "" if largest.child is None else f", of {schema.attributes[largest.child].name!r},"
    over = f"the largest{of_child} is over {len(largest.attributes)} attributes"
    what = f"the tables have {size} ({over}), so learning is slow and needs {about_memory(needed)} of memory"
    return f"{what}; to make them smaller, {_advice(structure, schema, recipe, needed // 8)}"


def _advice(structure: Structure, schema: Schema, recipe: Recipe, memory: int) -> str:
    """Return a hint that recommends fewer parents, a larger --epsilon, a closed form, or leaving out columns.

    For regions, it recommends a lower --max-order or leaving out columns. The hint names the method of the recipe, even
    if the structure came from a file.
    """
    if not isinstance(structure, Dag):
        return "lower --max-order, or leave out columns with many levels with --ignore"
    method = STRUCTURES.method(recipe.structure)
    limit = method.single_attribute_limit[0] if method is not None and method.single_attribute_limit is not None else ""
    for k in range(max(map(len, structure.parents), default=0) - 1, -1, -1):
        thinned = replace(structure, parents=tuple(parents[:k] for parents in structure.parents))
        needed = table_memory(thinned, schema, recipe)
        if limit and k >= 1 and needed <= memory:
            return f"use --structure {recipe.structure} {limit} {k} ({about_memory(needed)})"
    if recipe.structure == "gbn":
        epsilon = f"{max(LARGE_EPSILON, 5 * (recipe.epsilon or 0.0)):g}"
        return f"use --structure gbn with a larger --epsilon, such as {epsilon}, so that fewer attributes are joined"
    n_entries = _n_entries(structure.families(schema.cardinalities), len(schema.labels))
    needed = _memory(n_entries, recipe.replaced(optimizer=None))
    if recipe.optimizer is not None and needed <= memory:
        return f"use --param map ({about_memory(needed)})"
    widest = max(structure.attributes, key=lambda i: (schema.cardinalities[i], -i))
    column = schema.attributes[widest]
    return f"leave out columns with many levels with --ignore, beginning with {column.name!r} ({column.cardinality:,})"


def table_memory(structure: Structure, schema: Schema, recipe: Recipe) -> int:
    """Return the memory in bytes for learning the parameters of a structure, without the rows."""
    return _memory(_n_entries(_families(structure, schema, recipe), len(schema.labels)), recipe)


def fitting_memory(structure: Structure, schema: Schema, recipe: Recipe) -> int:
    """Return the memory in bytes for learning the parameters, including the folds that choose a penalty, if any."""
    return table_memory(structure, schema, recipe) * (WITH_FOLDS if recipe.penalty == "cv" else 1)


def _memory(n_entries: int, recipe: Recipe) -> int:
    per_entry = {None: CLOSED_FORM, "bfgs": FIRST_ORDER, "cg": FIRST_ORDER, "cgb": FIRST_ORDER}
    numbers = n_entries * per_entry.get(recipe.optimizer, QUASI_NEWTON)
    return BYTES * (numbers + (2 * n_entries * n_entries if recipe.optimizer == "bfgs" else 0))


def _n_entries(families: tuple[Family, ...], n_labels: int) -> int:
    return n_labels * (1 + sum(family.n_cells for family in families))


def _families(structure: Structure, schema: Schema, recipe: Recipe) -> tuple[Family, ...]:
    """Return the families that get tables: the structure's families, or all regions for closed forms of regions.

    The tables of intersections of regions are comparatively small and left out.
    """
    cardinalities = schema.cardinalities
    if isinstance(structure, Dag) or recipe.optimizer is not None:
        return structure.families(cardinalities, all_factors=schema.marginalizes)
    return tuple(Family.over(region, cardinalities) for region in structure.regions)


def needed_and_free(needed: int, memory: int) -> str:
    return f"this needs {about_memory(needed)} of memory, but only {_memory_text(memory)} is free"


def about_memory(n_bytes: int, *, in_gib: bool = False) -> str:
    """Format an estimated size in MiB or GiB; above MOST_GIB, which no machine has, say only that it is more."""
    if n_bytes > MOST_GIB << 30:
        return f"more than {MOST_GIB:,} GiB"
    return f"about {n_bytes / 2**30:,.1f} GiB" if in_gib else f"about {_memory_text(n_bytes)}"


def _memory_text(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:,.1f} GiB" if n_bytes >= 2**29 else f"{n_bytes / 2**20:,.1f} MiB"


def _short(number: float, form: str) -> str:
    """Format a number by `form`, or as a power of ten if it is very large."""
    return format(number, form) if number < BEYOND_COUNTING else f"{number:.0e}"
