"""How much memory learning will take, told before anything is allocated; what cannot fit is refused.

The tables of a network have n_labels * (1 + sum over families f of the cells of f) entries. Learning holds several
vectors of that length at once, counted here in float64 numbers an entry, as they were measured on large tables:
closed forms 8, conjugate gradients 16, limited-memory BFGS and Newton 45 (differences of the last 15 steps, and what
conditions them); full BFGS holds two matrices of parameters squared besides.
Structure learners that look at pairs of attributes hold a few matrices of attributes squared.
"""

from __future__ import annotations

from dataclasses import replace

from bncli.catalogue import STRUCTURES
from bncli.engine.data.schema import Schema
from bncli.engine.structures.structure import Dag, Family, Structure
from bncli.errors import BncliError
from bncli.recipe import Recipe

CLOSED_FORM, FIRST_ORDER, QUASI_NEWTON = 8, 16, 45
"""Float64 numbers an entry of the tables."""
MATRICES = 6
"""Of attributes squared, in structure learners."""
BYTES = 8


def table_memory(structure: Structure, schema: Schema, recipe: Recipe) -> int:
    """Return bytes that learning the parameters of this structure takes, besides the rows."""
    return _memory(_entries(_families(structure, schema, recipe), len(schema.labels)), recipe)


def _memory(entries: int, recipe: Recipe) -> int:
    numbers = entries * {None: CLOSED_FORM, "bfgs": FIRST_ORDER, "cg": FIRST_ORDER, "cgb": FIRST_ORDER}.get(
        recipe.optimizer, QUASI_NEWTON
    )
    return BYTES * (numbers + (2 * entries * entries if recipe.optimizer == "bfgs" else 0))


def _entries(families: tuple[Family, ...], n_labels: int) -> int:
    return n_labels * (1 + sum(family.n_cells for family in families))


def _families(structure: Structure, schema: Schema, recipe: Recipe) -> tuple[Family, ...]:
    """Return those that get tables; closed forms go through all regions, an optimizer keeps to those of the best step.

    The tables of the regions' intersections are small beside theirs.
    """
    cardinalities = schema.cardinalities
    if isinstance(structure, Dag) or recipe.optimizer is not None:
        return structure.families(cardinalities, whole=schema.marginalizes)
    return tuple(Family.over(region, cardinalities) for region in structure.regions)


def refuse_wide(schema: Schema, recipe: Recipe, memory: int | None) -> None:
    """Raise BncliError where the structure learner's matrices do not fit in `memory` bytes (None: not known)."""
    n = len(schema.informative)
    needed = MATRICES * BYTES * n * n
    if memory is not None and recipe.structure not in ("nb", "file") and needed > memory:
        what = f"--structure {recipe.structure} compares {n:,} attributes two by two: {needed_and_free(needed, memory)}"
        raise BncliError(what, hint="leave columns out with --ignore, or use --structure nb")


def refuse_large(structure: Structure, schema: Schema, recipe: Recipe, memory: int | None) -> None:
    """Raise BncliError where the tables of the structure cannot be learnt in `memory` bytes (None: not known)."""
    needed = table_memory(structure, schema, recipe)
    if memory is None or needed <= memory:
        return
    families, n_labels = _families(structure, schema, recipe), len(schema.labels)
    largest = max(families, key=lambda f: f.n_cells)
    kind = "network" if isinstance(structure, Dag) else "regions"
    size = f"{_entries(families, n_labels):,} entries: {needed_and_free(needed, memory)}"
    what = f"the tables of the {kind} would have {size}"
    raise BncliError(
        f"{what}; the largest is over {_named(largest, schema)}", hint=_advice(structure, schema, recipe, memory)
    )


def _named(family: Family, schema: Schema) -> str:
    return ", ".join(f"{schema.attributes[i].name!r}" for i in family.attributes) + " and the class"


def _advice(structure: Structure, schema: Schema, recipe: Recipe, memory: int) -> str:
    """Return what fits: fewer parents, another optimiser or a closed form; else a column to leave out.

    The structure's method is named, since the structure may have come from a file.
    """
    if not isinstance(structure, Dag):
        return "use smaller regions (--max-order), or leave out columns with many levels with --ignore"
    method = STRUCTURES.method(recipe.structure)
    limit = method.single_attribute_limit[0] if method is not None and method.single_attribute_limit is not None else ""
    for k in range(max(map(len, structure.parents), default=0) - 1, -1, -1):
        thinned = replace(structure, parents=tuple(listed[:k] for listed in structure.parents))
        needed = table_memory(thinned, schema, recipe)
        if limit and k >= 1 and needed <= memory:
            return f"use --structure {recipe.structure} {limit} {k} (about {_size(needed)})"
    if recipe.structure == "gbn":
        return "use --structure gbn with a larger --epsilon, so that fewer attributes are joined"
    entries = _entries(structure.families(schema.cardinalities), len(schema.labels))
    closed = recipe.replaced(optimizer=None)
    if recipe.optimizer is not None and _memory(entries, closed) <= memory:
        return f"use --param map (about {_size(_memory(entries, closed))})"
    widest = max(structure.attributes, key=lambda i: (schema.cardinalities[i], -i))
    column = schema.attributes[widest]
    return f"leave out columns with many levels, first {column.name!r} ({column.cardinality:,}) with --ignore"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:,.1f} GiB" if n_bytes >= 2**29 else f"{n_bytes / 2**20:,.1f} MiB"


def needed_and_free(needed: int, memory: int) -> str:
    return f"about {_size(needed)} of memory, and {_size(memory)} are free"
