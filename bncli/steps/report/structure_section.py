"""How is it built? The graph or the regions drawn, arcs by what they tell in bits, and the tables behind them.

Information is counted from the data of the report: of an arc between attributes I(child; parent | class), of a column
I(column; class), of a region I(its columns together; class). Counts of few rows make it look larger than it is.

How was it made? The recipe, fingerprints of the files, versions, and the command lines that make it again.
"""

from __future__ import annotations

import hashlib
import math
import platform
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bncli import __version__
from bncli.catalogue import MARGINALIZED
from bncli.catalogue.choices import flag_of
from bncli.engine.data.schema import CategoricalAttribute
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import conditional_mutual_information, mutual_information
from bncli.engine.model import Ensemble, Model, Pool
from bncli.engine.prediction.contributions import value_names
from bncli.engine.structures.regrouping import regroup_attribute
from bncli.engine.structures.structure import Dag, Family
from bncli.errors import BncliError
from bncli.files.pictures.network_drawings import (
    NetworkLayout,
    Node,
    Region,
    layered_layout,
    network_drawing,
    region_drawing,
    tree_layout,
)
from bncli.files.pictures.page import Block, FoldedBlocks, Grid, Listing, Paragraph, Picture, Section
from bncli.recipe import Recipe
from bncli.steps.report.page_text import count, listed
from bncli.steps.report.reliability_section import ScoredTable

QUESTION = "How is it built?"
MOST_NODES = 60
MOST_REGIONS = 80
MOST_CELLS = 4000
"""Of all tables that are shown."""
_ROWS = 24
_LABELS = 8
_MOST_COUNTED = 1 << 20
"""Cells of a table that is counted."""


class _Information:
    """In bits, counted from data; 0 without."""

    def __init__(self, model: Model, scored: ScoredTable | None) -> None:
        self._cardinalities = [n + 1 for n in model.schema.cardinalities]
        self._k = len(model.schema.labels)
        self._scored = scored
        self._codes = {} if scored is None else dict(zip(scored.used, scored.encoded.codes, strict=True))

    def of(self, attributes: Sequence[int], *, given_class: bool = False) -> float:
        """Return I(attributes together; class), or of two, given the class, I(first; second | class)."""
        shape = [*(self._cardinalities[a] for a in attributes), self._k]
        if self._scored is None or math.prod(shape) > _MOST_COUNTED or not all(a in self._codes for a in attributes):
            return 0.0
        cells = np.zeros(self._scored.report.rows, np.int64)
        for a, n in zip(attributes, shape, strict=False):
            cells = cells * n + self._codes[a]
        cells = cells * self._k + self._scored.report.predictions.codes
        counts = np.bincount(cells, self._scored.report.predictions.weights, math.prod(shape)).astype(np.float64)
        if given_class:
            return float(conditional_mutual_information(counts.reshape(shape))) / math.log(2)
        return float(mutual_information(counts.reshape(-1, self._k))) / math.log(2)


MAKING_QUESTION = "How was it made?"
_BLOCK = 1 << 20


def construction_section(model: Model, scored: ScoredTable | None) -> Section:
    """Return the section on a model, with information in bits where there are data."""
    found = model.predictor
    tables = found.combined if isinstance(found, Ensemble) and found.pool is Pool.LOGARITHMIC else model.tables
    families = [
        (family, table) for family, table in zip(tables.families, tables.weights, strict=True) if family.by_class
    ]
    if not families:
        return Section("built", QUESTION, (Paragraph("It looks at no column: there is nothing to draw."),))
    told = _Information(model, scored)
    is_graph = isinstance(model.structure, Dag) and not isinstance(model.predictor, Ensemble)
    blocks = list(_graph(model, told) if is_graph else _regions(model, families, told))
    if scored is None:
        blocks.append(Paragraph("How much each arc tells, in bits, needs data: add --data TEST.", "gap"))
    blocks += _shown_tables(model, families)
    return Section("built", QUESTION, tuple(blocks))


def _graph(model: Model, told: _Information) -> Iterator[Block]:
    """Yield the graph of a network; of very many nodes those that tell most."""
    dag, attributes = model.structure, model.schema.attributes
    assert isinstance(dag, Dag)
    bits = {i: told.of((i,)) for i in dag.nodes}
    shown = sorted(sorted(dag.nodes, key=lambda i: -bits[i])[:MOST_NODES])
    number = {i: n for n, i in enumerate(shown, 1)}
    children = set(dag.class_children)
    parents = {number[i]: [number[j] for j in dag.parents[i] if j in number] for i in shown}
    is_star = not any(parents.values())
    has_class = is_star or bool(dag.class_parents) or not children.issuperset(dag.nodes)
    nodes = [Node(model.schema.class_name, f"{model.schema.class_name}, the class", "", True)]
    nodes += [
        Node(attributes[i].name, f"{attributes[i].name}: {bits[i]:.3f} bits about the class", f"table-{i}")
        for i in shown
    ]
    if has_class:
        parents = {0: [number[j] for j in dag.class_parents if j in number]} | {
            number[i]: [*([0] if i in children else []), *parents[number[i]]] for i in shown
        }
    strengths = {
        (number[j], number[i]): told.of((i, j), given_class=True) for i in shown for j in dag.parents[i] if j in number
    }
    of_class = {(0, number[i]): bits[i] for i in shown if i in children} if has_class else {}
    most = max((*strengths.values(), *of_class.values()), default=0.0) or 1.0
    worded = {arc: (value / most, f"{value:.3f} bits") for arc, value in (strengths | of_class).items()}
    drawing = network_drawing(nodes, _layout(parents), worded)
    sentence = _graph_sentence(model, dag, has_class, strengths, [*nodes])
    yield Picture("network", "The network.", sentence, drawing, wide=True, links=True)
    if len(shown) < len(dag.nodes):
        yield Paragraph(
            f"Drawn are {len(shown)} of {count(len(dag.nodes), 'column')}; export --to dot has them all.", "gap"
        )


def _layout(parents: dict[int, list[int]]) -> NetworkLayout:
    if all(len(listed) <= 1 for listed in parents.values()):
        return tree_layout({node: listed[0] if listed else None for node, listed in parents.items()})
    return layered_layout(parents)


def _graph_sentence(
    model: Model, dag: Dag, has_class: bool, strengths: dict[tuple[int, int], float], nodes: Sequence[Node]
) -> str:
    n = dag.n_arcs
    between = count(n, "arc") if n else "no arc"
    arcs = f"{count(len(dag.nodes), 'column')} with {between} between them."
    if not has_class:
        arcs += f" {model.schema.class_name}, the class, is a parent of every one, which is not drawn."
    if strengths and max(strengths.values()) > 0:
        (parent, child), bits = max(strengths.items(), key=lambda one: one[1])
        arcs += (
            f" The strongest arc is from {nodes[parent].name} to {nodes[child].name}: {bits:.3f} bits, given the class."
        )
    return arcs


def _regions(model: Model, families: Sequence[tuple[Family, Array]], told: _Information) -> Iterator[Block]:
    """Yield the sets of attributes that are looked up together."""
    sets = list(dict.fromkeys(tuple(sorted(family.attributes)) for family, _ in families))
    bits = {one: told.of(one) for one in sets}
    chosen = sorted(sets, key=lambda one: -bits[one])[:MOST_REGIONS]
    used = sorted({a for one in chosen for a in one}, key=lambda a: -told.of((a,)))[:MOST_NODES]
    shown = sorted(used)
    number = {a: n for n, a in enumerate(shown)}
    chosen = [one for one in chosen if all(a in number for a in one)]
    most = max((bits[one] for one in chosen), default=0.0) or 1.0
    attributes = model.schema.attributes
    place = {one: f"table-{'-'.join(map(str, one))}" for one in chosen}
    nodes = [
        Node(attributes[a].name, f"{attributes[a].name}: {told.of((a,)):.3f} bits about the class", place.get((a,), ""))
        for a in shown
    ]
    edges = []
    for one in chosen:
        names = " & ".join(attributes[a].name for a in one)
        tip = f"{names}: {bits[one]:.3f} bits"
        edges.append(Region(tuple(number[a] for a in one), bits[one] / most, tip, place[one]))
    larger = sum(len(one) > 2 for one in sets)
    sentence = (
        f"{count(len(shown), 'column')} in {count(len(sets), 'set')} looked up together with the class: a line "
        f"joins two of them{f', an area three or more ({larger:,})' if larger else ''}."
    )
    drawing = region_drawing(nodes, edges)
    yield Picture("regions", "What is looked up together.", sentence, drawing, wide=True, links=True)
    if len(chosen) < len(sets):
        yield Paragraph(f"Drawn are {len(chosen)} of {count(len(sets), 'set')}, those that tell most.", "gap")


def _shown_tables(model: Model, families: Sequence[tuple[Family, Array]]) -> Iterator[Block]:
    """Folded tables, as many as there is room for."""
    cells, hidden, folded = 0, list[str](), list[Block]()
    for family, table in families[: MOST_NODES + MOST_REGIONS]:
        grid = _table(model, family, table)
        cells += len(grid.rows) * len(grid.headings)
        names = " & ".join(model.schema.attributes[a].name for a in family.attributes)
        if cells > MOST_CELLS:
            hidden.append(names)
            continue
        is_child = family.child is not None
        key = (family.child,) if is_child else tuple(sorted(family.attributes))
        folded.append(FoldedBlocks(f"table-{'-'.join(map(str, key))}", f"Table of {names}", (grid,)))
    yield FoldedBlocks("tables", f"The tables behind it: {len(folded):,}", folded)
    if hidden:
        yield Paragraph(f"Tables left out here, inspect --tables has them: {listed(hidden)}.", "gap")


def _table(model: Model, family: Family, table: Array) -> Grid:
    """Return the first entries of a table, a column per class: probabilities of a network, or natural logs."""
    attributes = model.schema.attributes
    is_network = isinstance(model.structure, Dag) and model.recipe.param in MARGINALIZED
    seen = [attributes[a] if g is None else regroup_attribute(attributes[a], g) for a, g in family.binned_attributes]
    names = [value_names(one)[:-1] for one in seen]
    labels = model.schema.labels[:_LABELS]
    numbers = np.exp(table) if is_network and family.child is not None else table
    rows = []
    for cell in range(min(_ROWS, len(table))):
        digits = np.unravel_index(cell, family.shape)
        values = [named[int(digit)] for named, digit in zip(names, digits, strict=True)]
        rows.append((*values, *(f"{number:.4g}" for number in numbers[cell, :_LABELS])))
    first, *others = (attributes[a].name for a in family.attributes)
    kind = (
        f"P({first} | {', '.join((*others, model.schema.class_name))})"
        if is_network and family.child is not None
        else f"What {' & '.join((first, *others))} adds to the score of each class"
    )
    more = "" if len(rows) == len(table) else f", the first {len(rows)} of {len(table):,} rows"
    more += "" if len(labels) == len(model.schema.labels) else f", the first {len(labels)} labels"
    headings = (*(attributes[a].name for a in family.attributes), *labels)
    return Grid(kind + more, headings, rows, tuple(range(len(names), len(headings))))


def provenance_section(model: Model, files: Sequence[tuple[str, str]], lines: Sequence[str]) -> Section:
    """Of a model, of files (what it is, its path), and the command lines besides the one that learnt it."""
    schema = model.schema
    facts = [
        ("class", schema.class_name),
        ("training rows", f"{model.n_rows:,}"),
        ("columns", f"{len(schema.attributes):,}, of which the model looks at {len(model.attributes):,}"),
        ("missing values", "count as a value of their own" if not schema.marginalizes else "are marginalized"),
        ("learnt by", f"bncli {model.version}"),
        ("this page by", f"bncli {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"),
    ]
    blocks: list[Block] = [Grid("The model", ("what", "value"), facts)]
    marks = [(what, path, print_) for what, path in files if (print_ := fingerprint(path)) is not None]
    if marks:
        blocks.append(Grid("Fingerprints", ("file", "path", "SHA-256"), marks))
    blocks.append(_recipe(model.recipe))
    command = fit_command(model)
    if command is None:
        blocks.append(
            Paragraph("The recipe cannot be typed as one command: a file was supplied for a part of it.", "gap")
        )
    else:
        blocks.append(Paragraph("The command lines that make it again, with the training table in place of TRAIN:"))
    blocks.append(Listing([*([] if command is None else [command]), *lines]))
    return Section("made", MAKING_QUESTION, tuple(blocks))


def _recipe(recipe: Recipe) -> Grid:
    set_ = [(flag_of(key), str(value)) for key, value in recipe.as_dict().items() if value is not None]
    return Grid(f"The recipe: {count(len(set_), 'option')} that had a part", ("option", "value"), set_)


def evaluation_provenance(files: Sequence[str], recipe: Recipe | None, what: str = "data") -> Section:
    """Of an evaluation: files and what they are, and the recipe of what was learnt in it."""
    facts = [("this page by", f"bncli {__version__}, Python {platform.python_version()}, NumPy {np.__version__}")]
    blocks: list[Block] = [Grid("Versions", ("what", "value"), facts)]
    marks = [(what, path, print_) for path in files if (print_ := fingerprint(path)) is not None]
    if marks:
        blocks.append(Grid("Fingerprints", ("file", "path", "SHA-256"), marks))
    return Section("made", MAKING_QUESTION, (*blocks, *([] if recipe is None else [_recipe(recipe)])))


def fingerprint(path: str) -> str | None:
    """Return the SHA-256 of a file; None of what is no file that can be read twice."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            if not file.seekable():
                return None
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()


def fit_command(model: Model) -> str | None:
    """Return the shortest `bncli fit` that means the recipe of a model; None where none does."""
    # a model in which no levels are pooled does not say whether they might have been: without the rule they are not
    has_names = any(isinstance(one, CategoricalAttribute) for one in model.schema.attributes)
    recipe = model.recipe.replaced(group_levels=model.recipe.group_levels or ("off" if has_names else "auto"))
    words = {
        key: value
        for key, value in recipe.as_dict().items()
        if value is not None and ((key, value) != ("discretize", "auto"))
    }
    if not _means(words, recipe):
        words.pop("smoothing", None)  # it is recorded of a start that is not made, too, where it cannot be typed
    if not _means(words, recipe):
        return None
    for key in reversed(list(words)):
        fewer = {other: value for other, value in words.items() if other != key}
        if _means(fewer, recipe):
            words = fewer
    typed: list[str] = []
    for key, value in words.items():
        typed += [flag_of(key)] if value is True else [flag_of(key), str(value)]
    return shlex.join(["bncli", "fit", "TRAIN", "--class", model.schema.class_name, *typed, "-o", "MODEL.bnc"])


def _means(words: dict[str, Any], recipe: Recipe) -> bool:
    try:
        return Recipe.of(**words) == recipe
    except BncliError:
        return False
