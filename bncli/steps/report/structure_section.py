"""The sections on the structure of a model (drawing and tables) and its provenance (recipe, versions, file hashes).

The drawing shows mutual information in bits, estimated from the scored rows:
- for an arc between attributes, I(child; parent | class);
- for an attribute, and for an arc from the class to it, I(attribute; class);
- for a region, which is a set of attributes with one table, I(all its attributes jointly; class).

Estimates from few rows are biased upwards.
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
    Node,
    Region,
    layered_layout,
    network_drawing,
    region_drawing,
    tree_layout,
)
from bncli.files.pictures.page import (
    Block,
    Cards,
    FoldedBlocks,
    Grid,
    Listing,
    Paragraph,
    Picture,
    Section,
    count,
    figure,
    listed,
)
from bncli.recipe import Recipe
from bncli.steps.report.reliability_section import ScoredTable

MOST_EDITED = 200
TITLE = "Model structure"
MAKING_TITLE = "Provenance"
MOST_NODES = 60
MOST_REGIONS = 80
MOST_CELLS = 4000
"""The maximum total number of cells of all tables of parameters on a page."""
_ROWS = 8
_LABELS = 8
_MOST_COUNTED = 1 << 20
"""The maximum number of cells of a contingency table for mutual information."""
_BLOCK = 1 << 20
"""The number of bytes of a file that are read at a time."""


class _Information:
    """Mutual information in bits, estimated from the scored rows.

    It is 0 without scored rows, for attributes that were not scored, and for tables of more than _MOST_COUNTED cells.
    """

    def __init__(self, model: Model, scored: ScoredTable | None) -> None:
        self._cardinalities = [n + 1 for n in model.schema.cardinalities]
        self._k = len(model.schema.labels)
        self._scored = scored
        self._codes = {} if scored is None else dict(zip(scored.used, scored.encoded.codes, strict=True))

    def of(self, attributes: Sequence[int], *, given_class: bool = False) -> float:
        """Return I(attributes jointly; class) or, for two attributes with `given_class`, I(first; second | class)."""
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


def construction_section(model: Model, scored: ScoredTable | None) -> Section:
    """Return the section on the structure of a model, with mutual information if rows were scored."""
    predictor = model.predictor
    is_linear = isinstance(predictor, Ensemble) and predictor.pool is Pool.LOGARITHMIC
    tables = predictor.combined if isinstance(predictor, Ensemble) and is_linear else model.tables
    families = [
        (family, table) for family, table in zip(tables.families, tables.weights, strict=True) if family.by_class
    ]
    if not families:
        return Section("built", TITLE, (Paragraph("The model uses no attribute, so there is nothing to draw."),))
    information = _Information(model, scored)
    is_graph = isinstance(model.structure, Dag) and not isinstance(model.predictor, Ensemble)
    blocks = list(_graph_blocks(model, information) if is_graph else _region_blocks(model, families, information))
    if scored is None:
        blocks.append(Paragraph("The information of each arc needs rows with known classes: add --data TEST.", "gap"))
    # the tables, folded, up to MOST_CELLS cells, and the names of those left out
    n_cells, left_out, folded = 0, list[str](), list[Block]()
    for number, (family, table) in enumerate(families):
        names = " & ".join(model.schema.attributes[a].name for a in family.attributes)
        if number >= MOST_NODES + MOST_REGIONS:
            left_out.append(names)
            continue
        grid = _table_grid(model, family, table)
        n_cells += len(grid.rows) * len(grid.headings)
        if n_cells > MOST_CELLS:
            left_out.append(names)
            continue
        key = tuple(sorted(family.attributes)) if family.child is None else (family.child,)
        folded.append(FoldedBlocks(f"table-{'-'.join(map(str, key))}", f"Table of {names}", (grid,)))
    blocks.append(FoldedBlocks("tables", f"Tables of the model ({len(folded):,})", folded))
    if left_out:
        blocks.append(Paragraph(f"Tables not shown (see bncli inspect --tables): {listed(left_out)}.", "gap"))
    return Section("built", TITLE, tuple(blocks))


def _graph_blocks(model: Model, information: _Information) -> Iterator[Block]:
    """Yield the drawing of a network, and a note if it does not show all attributes.

    At most MOST_NODES attributes are drawn: those with the highest mutual information with the class or, without scored
    rows, the first ones.
    """
    dag, attributes, class_name = model.structure, model.schema.attributes, model.schema.class_name
    assert isinstance(dag, Dag)
    bits = {i: information.of((i,)) for i in dag.nodes}
    shown = sorted(sorted(dag.nodes, key=lambda i: -bits[i])[:MOST_NODES])
    number = {i: n for n, i in enumerate(shown, 1)}  # 0 is the class
    children = set(dag.class_children)
    parents = {number[i]: [number[j] for j in dag.parents[i] if j in number] for i in shown}
    # a class that is a parent of every attribute and has no parents is drawn only if no arc joins two attributes
    is_star = not any(parents.values())
    has_class = is_star or bool(dag.class_parents) or not children.issuperset(dag.nodes)
    nodes = [Node(class_name, f"{class_name}, the class", "", True)]
    nodes += [
        Node(attributes[i].name, f"{attributes[i].name}: {bits[i]:.3f} bits about the class", f"table-{i}")
        for i in shown
    ]
    if has_class:
        parents = {0: [number[j] for j in dag.class_parents if j in number]} | {
            number[i]: [*([0] if i in children else []), *parents[number[i]]] for i in shown
        }
    strengths = {
        (number[j], number[i]): information.of((i, j), given_class=True)
        for i in shown
        for j in dag.parents[i]
        if j in number
    }
    of_class = {(0, number[i]): bits[i] for i in shown if i in children} if has_class else {}
    most = max((*strengths.values(), *of_class.values()), default=0.0) or 1.0
    with_tips = {arc: (value / most, f"{value:.3f} bits") for arc, value in (strengths | of_class).items()}
    if all(len(own) <= 1 for own in parents.values()):
        layout = tree_layout({node: own[0] if own else None for node, own in parents.items()})
    else:
        layout = layered_layout(parents)
    between = count(dag.n_arcs, "arc") if dag.n_arcs else "no arc"
    sentence = f"{count(len(dag.nodes), 'attribute')}, {between} between them."
    if not has_class:
        sentence += f" The class, {class_name}, is also a parent of every attribute (not drawn)."
    if strengths and max(strengths.values()) > 0:
        (parent, child), strongest = max(strengths.items(), key=lambda item: item[1])
        ends = f"from {nodes[parent].name} to {nodes[child].name}"
        sentence += f" The strongest arc is {ends}: {strongest:.3f} bits, given the class."
    title = f"Network for {class_name}" + ("" if has_class else f": every attribute also depends on {class_name}")
    drawing = network_drawing(title, nodes, layout, with_tips)
    yield Picture("network", "Network", sentence, drawing, wide=True, links=True)
    if len(shown) < len(dag.nodes):
        yield Paragraph(
            f"{len(shown)} of {count(len(dag.nodes), 'attribute')} are drawn; bncli export --to dot writes all.", "gap"
        )


def _region_blocks(
    model: Model, families: Sequence[tuple[Family, Array]], information: _Information
) -> Iterator[Block]:
    """Yield a drawing of at most MOST_REGIONS regions and MOST_NODES attributes, and a note if regions are left out.

    A region is a set of attributes with a table. Those with the highest mutual information with the class are drawn.
    """
    sets = list(dict.fromkeys(tuple(sorted(family.attributes)) for family, _ in families))
    bits = {own: information.of(own) for own in sets}
    drawn = sorted(sets, key=lambda own: -bits[own])[:MOST_REGIONS]
    used = sorted({a for own in drawn for a in own}, key=lambda a: -information.of((a,)))[:MOST_NODES]
    shown = sorted(used)
    number = {a: n for n, a in enumerate(shown)}
    drawn = [own for own in drawn if all(a in number for a in own)]
    most = max((bits[own] for own in drawn), default=0.0) or 1.0
    attributes = model.schema.attributes
    links = {own: f"table-{'-'.join(map(str, own))}" for own in drawn}
    nodes = []
    for a in shown:
        tip = f"{attributes[a].name}: {information.of((a,)):.3f} bits about the class"
        nodes.append(Node(attributes[a].name, tip, links.get((a,), "")))
    regions = []
    for own in drawn:
        names = " & ".join(attributes[a].name for a in own)
        tip = f"{names}: {bits[own]:.3f} bits"
        regions.append(Region(tuple(number[a] for a in own), bits[own] / most, tip, links[own]))
    larger = sum(len(own) > 2 for own in sets)
    sentence = (
        f"{count(len(shown), 'attribute')} in {count(len(sets), 'set')}, each with a table of scores. "
        f"Lines join sets of two{f'; areas enclose sets of three or more ({larger:,})' if larger else ''}."
    )
    title = f"Sets of attributes that predict {model.schema.class_name} together"
    drawing = region_drawing(title, nodes, regions)
    yield Picture("regions", "Attribute sets", sentence, drawing, wide=True, links=True)
    if len(drawn) < len(sets):
        largest = f"The {len(drawn)} of {count(len(sets), 'set')} with the most information about the class"
        yield Paragraph(f"{largest} are drawn.", "gap")


def _table_grid(model: Model, family: Family, table: Array) -> Grid:
    """Return the first _ROWS rows of a table, with a column for each of the first _LABELS classes.

    The entries are probabilities if the table is a conditional distribution of a network, and scores otherwise.
    """
    attributes = model.schema.attributes
    is_network = isinstance(model.structure, Dag) and model.recipe.param in MARGINALIZED
    has_probabilities = is_network and family.child is not None
    binned = [attributes[a] if g is None else regroup_attribute(attributes[a], g) for a, g in family.binned_attributes]
    names = [value_names(attribute)[:-1] for attribute in binned]
    labels = model.schema.labels[:_LABELS]
    numbers = np.exp(table) if has_probabilities else table
    rows = []
    for cell in range(min(_ROWS, len(table))):
        digits = np.unravel_index(cell, family.shape)
        values = [own[int(digit)] for own, digit in zip(names, digits, strict=True)]
        rows.append((*values, *(f"{number:.4g}" for number in numbers[cell, :_LABELS])))
    first, *others = (attributes[a].name for a in family.attributes)
    if has_probabilities:
        caption = f"P({first} | {', '.join((*others, model.schema.class_name))})"
    else:
        caption = f"Score of each class for {' & '.join((first, *others))}"
    if len(rows) < len(table):
        caption += f", the first {len(rows)} of {len(table):,} rows"
    if len(labels) < len(model.schema.labels):
        caption += f", the first {len(labels)} labels"
    headings = (*(attributes[a].name for a in family.attributes), *labels)
    return Grid(caption, headings, rows, tuple(range(len(names), len(headings))))


def provenance_section(model: Model, files: Sequence[tuple[str, str]], commands: Sequence[str]) -> Section:
    """Return the section on the provenance of a model.

    files: the kind and path of each file to hash. commands: command lines shown after the one that fits the model.
    """
    schema = model.schema
    facts = [
        ("class", schema.class_name),
        ("training rows", f"{model.n_rows:,}"),
        ("columns", f"{len(schema.attributes):,}, of which the model uses {len(model.attributes):,}"),
        ("missing values", "treated as a separate value" if not schema.marginalizes else "marginalized"),
        ("fitted by", f"bncli {model.version}"),
        _versions(),
    ]
    tables = (Grid("Model", ("property", "value"), facts), _recipe_grid(model.recipe))
    blocks: list[Block] = [Cards(tables)]
    # the effects changed by hand, one row per value
    rows = []
    for edit in model.edits:
        label = len(schema.labels) - 1 if edit.label is None else schema.labels.index(edit.label)
        for cell, before, after in zip(edit.cells, edit.before, edit.values, strict=True):
            numbers = (figure(before[label]), figure(after[label]))
            rows.append((" & ".join(edit.effect), edit.action, cell, *numbers, edit.why, edit.by, edit.when))
    if rows:
        headings = ("effect", "edit", "value", "log-odds before", "log-odds after", "why", "by", "when")
        more = f" (the first {MOST_EDITED:,} of {len(rows):,} values)" if len(rows) > MOST_EDITED else ""
        blocks.append(Grid(f"Effects changed by hand{more}", headings, rows[:MOST_EDITED], (3, 4)))
    blocks += _hash_grids(files)
    command = fit_command(model)
    if command is None:
        blocks.append(
            Paragraph("No single command reproduces this model, because a part of it was supplied as a file.", "gap")
        )
    else:
        blocks.append(Paragraph("Commands that reproduce the model and the page, with the training table as TRAIN:"))
    blocks.append(Listing([*([] if command is None else [command]), *commands]))
    return Section("made", MAKING_TITLE, tuple(blocks))


def evaluation_provenance(files: Sequence[str], recipe: Recipe | None, kind: str = "data") -> Section:
    """Return the section on the provenance of an evaluation: versions, file hashes, and the recipe unless it is None.

    kind: the name of the kind of the files, such as "data".
    """
    tables = [Grid("Versions", ("property", "value"), [_versions()])]
    if recipe is not None:
        tables.append(_recipe_grid(recipe))
    hashes = _hash_grids([(kind, path) for path in files])
    return Section("made", MAKING_TITLE, (Cards(tables), *hashes))


def _versions() -> tuple[str, str]:
    return ("page written by", f"bncli {__version__}, Python {platform.python_version()}, NumPy {np.__version__}")


def _hash_grids(files: Sequence[tuple[str, str]]) -> list[Grid]:
    """Return a list with one table, the SHA-256 of the files that can be read again, or [] if there are none."""
    hashes = [(kind, path, digest) for kind, path in files if (digest := file_hash(path)) is not None]
    return [Grid("Fingerprints", ("file", "path", "SHA-256"), hashes)] if hashes else []


def file_hash(path: str) -> str | None:
    """Return the SHA-256 of a file in hexadecimal, or None if it cannot be read or is a stream such as a pipe."""
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


def _recipe_grid(recipe: Recipe) -> Grid:
    options = [
        (flag_of(key), ", ".join(map(str, value)) if isinstance(value, tuple) else str(value))
        for key, value in recipe.as_dict().items()
        if value is not None
    ]
    return Grid("Options that the model was fitted with", ("option", "value"), options)


def fit_command(model: Model) -> str | None:
    """Return a `bncli fit` command that reproduces a model, without superfluous options, or None if no command does.

    The command lists the columns, since the model does not record which columns of its table were left out.
    """
    # A model without pooled levels does not record whether pooling was allowed; the command line then forbids it.
    has_names = any(isinstance(attribute, CategoricalAttribute) for attribute in model.schema.attributes)
    recipe = model.recipe.replaced(group_levels=model.recipe.group_levels or ("off" if has_names else "auto"))
    options = {
        key: value
        for key, value in recipe.as_dict().items()
        if value is not None and ((key, value) != ("discretize", "auto"))
    }
    if not _is_recipe_of(options, recipe):
        # the smoothing of a starting point is recorded even if the point is not computed, but the option is then
        # refused
        options.pop("smoothing", None)
    if not _is_recipe_of(options, recipe):
        return None
    for key in reversed(list(options)):
        fewer = {other: value for other, value in options.items() if other != key}
        if _is_recipe_of(fewer, recipe):
            options = fewer
    words = ["--use", ",".join(attribute.name for attribute in model.schema.attributes)]
    for key, value in options.items():
        values = value if isinstance(value, tuple) else (value,)
        words += [flag_of(key)] if value is True else [word for own in values for word in (flag_of(key), str(own))]
    if model.uncertainty is not None:
        words.append("--intervals")
    return shlex.join(["bncli", "fit", "TRAIN", "--class", model.schema.class_name, *words, "-o", "MODEL.bnc"])


def _is_recipe_of(options: dict[str, Any], recipe: Recipe) -> bool:
    """Return whether the options are valid and resolve to the recipe."""
    try:
        return Recipe.of(**options) == recipe
    except BncliError:
        return False
