"""The graph of an ONNX file: columns become codes, codes digits, digits cells, and the entries of cells are added.

Nodes are few however many columns and tables there are: all numeric columns are coded by one binary search over their
cuts, and tables are looked up in blocks of MOST_TOGETHER, over the same inputs.

    codes          numeric: cuts below the value, found by halving, NaN to its own; texts: a LabelEncoder each
    digits         of every regrouped input, by one look-up
    cells          sum over the axes of digit * stride, one number per table
    scores         the sum of entries by stage (`prediction.portable`)
    probabilities  the average of softmaxes over the stages, and what a calibration makes of it

Names inside the graph begin with a prefix that no column's name begins with; where a column has the name of an output,
the output has an underscore more. Opset 18 and ai.onnx.ml 3.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import bncli
from bncli.engine.kernels.arrays import Array
from bncli.engine.prediction.portable import Input, PortableMap, PortableScorer, PortableTable
from bncli.engine.prediction.portable_effects import PortableEffects
from bncli.errors import ModelError
from bncli.files.exports.programs import ProgramTarget

OPSET = 18
ML_OPSET = 3
IR_VERSION = 8
MOST_TOGETHER = 64
"""Tables in a block: rows times them numbers are in memory at once."""
LEAST_TOGETHER = 16
"""Blocks that are larger end where the number of inputs of a table changes."""
MOST_MULTIPLIED = 64
"""Columns that a product of matrices picks from."""
MOST_UNUSED = 4
"""So many times as many digits as a block needs are multiplied by 0; of more, those needed are picked first."""
ML = "ai.onnx.ml"
_LEAST = 1e-300
"""Probabilities below it are taken for it where they are raised to a power."""


class _Graph:
    """Nodes and constants as they come, under names of their own."""

    def __init__(self, columns: Sequence[Input]) -> None:
        self.columns = columns
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._prefix = "_"
        while any(one.name.startswith(self._prefix) for one in columns):
            self._prefix += "_"

    def inputs(self) -> list[onnx.ValueInfoProto]:
        kinds = [TensorProto.STRING if one.cuts is None else TensorProto.DOUBLE for one in self.columns]
        named = zip(self.columns, kinds, strict=True)
        return [helper.make_tensor_value_info(one.name, kind, ["N", 1]) for one, kind in named]

    def output(self, word: str) -> str:
        """Return the word, longer where a column has that name."""
        while word in {one.name for one in self.columns}:
            word += "_"
        return word

    def constant(self, values: Any, kind: Any = np.int64) -> str:
        name = f"{self._prefix}c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, kind), name))
        return name

    def node(self, operation: str, *inputs: str, output: str = "", domain: str = "", **attributes: Any) -> str:
        """Add a node of one output, whose name it returns."""
        name = output or f"{self._prefix}n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, inputs, [name], domain=domain, **attributes))
        return name

    def split(self, joined: str, sizes: Sequence[int]) -> list[str]:
        """Return parts along axis 1."""
        names = [f"{self._prefix}n{len(self.nodes)}_{i}" for i in range(len(sizes))]
        self.nodes.append(helper.make_node("Split", [joined, self.constant(sizes)], names, axis=1))
        return names


class _Digits:
    """(N, distinct binnings of inputs): the digits that tables know of the codes, as doubles.

    Columns are picked and cells added up by products of matrices, which are exact and much faster than look-ups.
    """

    def __init__(self, graph: _Graph, codes: str, tables: Sequence[PortableTable]) -> None:
        self._graph = graph
        axes = (axis for table in tables for axis in _axes(table))
        self._columns = {axis: column for column, axis in enumerate(dict.fromkeys(axes))}
        # The column of every input among the codes: numbers come first.
        inputs = graph.columns
        order = sorted(range(len(inputs)), key=lambda p: inputs[p].cuts is None)
        places = [order.index(p) for p in range(len(inputs))]
        self._name = self._picked(
            graph.node("Cast", codes, to=TensorProto.DOUBLE), [places[p] for p, _ in self._columns] or [0], len(places)
        )
        if any(digits != tuple(range(len(digits))) for _, digits in self._columns):
            sizes = [len(digits) for _, digits in self._columns]
            flat = graph.constant([digit for _, digits in self._columns for digit in digits], np.float64)
            begins = graph.constant([np.cumsum([0, *sizes[:-1]])], np.float64)
            at = graph.node("Cast", graph.node("Add", self._name, begins), to=TensorProto.INT64)
            self._name = graph.node("Gather", flat, at)

    def _picked(self, values: str, columns: Sequence[int], width: int) -> str:
        """Return these columns of (N, width)."""
        if width > MOST_MULTIPLIED:
            return self._graph.node("Gather", values, self._graph.constant(columns), axis=1)
        return self._graph.node("MatMul", values, self._graph.constant(np.eye(width)[:, columns], np.float64))

    def zeros(self) -> str:
        """Return (N, 1)."""
        first = self._graph.node("Gather", self._name, self._graph.constant([0]), axis=1)
        return self._graph.node("Mul", first, self._graph.constant(0, np.float64))

    def entries(self, tables: Sequence[PortableTable]) -> str:
        """Return (N, tables, R): what every table says of the row."""
        graph, begins = self._graph, np.cumsum([0, *(table.entries.shape[1] for table in tables)])
        strides = np.zeros((len(self._columns) or 1, len(tables)))
        for t, table in enumerate(tables):
            for i, axis in enumerate(_axes(table)):
                strides[self._columns[axis], t] = math.prod(table.shape[i + 1 :])
        digits, used = self._name, np.flatnonzero(strides.any(axis=1))
        if 0 < len(used) < len(strides) / MOST_UNUSED:
            digits, strides = graph.node("Gather", digits, graph.constant(used), axis=1), strides[used]
        found = graph.node("MatMul", digits, graph.constant(strides, np.float64))
        at = graph.node("Add", graph.node("Cast", found, to=TensorProto.INT64), graph.constant([begins[:-1]]))
        values: Array = np.concatenate([table.entries for table in tables], axis=1).T
        return graph.node("Gather", graph.constant(values, np.float64), at)


def onnx_bytes(scorer: PortableScorer, target: ProgramTarget) -> bytes:
    """Return the model as an ONNX file; ModelError where it looks at no column."""
    if not scorer.inputs:
        hint = "there would be no input to tell the number of rows"
        raise ModelError("the model looks at no column: it cannot be written as ONNX", hint=hint)
    effects = target.effects(apart=True) if target.options.get("contributions") else None
    graph = _Graph(scorer.inputs)
    tables = [table.expanded() for table in scorer.tables]
    # (N, inputs): the codes, numbers first; `_place` says where.
    numeric = [one for one in scorer.inputs if one.cuts is not None]
    parts = [_numeric_codes(graph, numeric)] if numeric else []
    for one in scorer.inputs:
        if one.codes is not None:
            known = {**one.codes, **dict.fromkeys(("", *target.missing), one.missing)}
            parts.append(
                graph.node(
                    "LabelEncoder",
                    one.name,
                    domain=ML,
                    keys_strings=list(known),
                    values_int64s=[int(code) for code in known.values()],
                    default_int64=one.unobserved,
                )
            )
    digits = _Digits(graph, graph.node("Concat", *parts, axis=1), [*tables, *(effects.tables if effects else ())])
    # The outputs `label` and `probabilities`.
    probabilities = _probabilities(graph, digits, scorer)
    names = graph.output("label"), graph.output("probabilities")
    best = graph.node("ArgMax", probabilities, axis=1, keepdims=0)
    graph.node("Gather", graph.constant(list(scorer.labels), object), best, output=names[0])
    graph.node("Identity", probabilities, output=names[1])
    outputs = [
        helper.make_tensor_value_info(names[0], TensorProto.STRING, ["N"]),
        helper.make_tensor_value_info(names[1], TensorProto.DOUBLE, ["N", len(scorer.labels)]),
    ]
    if effects is not None:
        outputs.append(_contributions(graph, digits, effects, len(scorer.labels)))
    model = helper.make_model(
        helper.make_graph(graph.nodes, "bncli", graph.inputs(), outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
        ir_version=IR_VERSION,
        producer_name="bncli",
        producer_version=bncli.__version__,
    )
    # What the outputs mean: the class, its labels, and of contributions the sets of attributes and the base.
    found = {"class": scorer.class_name, "labels": json.dumps(scorer.labels)}
    if effects is not None:
        sets = [[scorer.inputs[p].name for p in tables[0].inputs] for tables in _sets(effects)]
        found |= {"contributions": json.dumps(sets), "base": json.dumps(effects.constant.tolist())}
    helper.set_model_props(model, found)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _numeric_codes(graph: _Graph, inputs: Sequence[Input]) -> str:
    """Return how many cuts lie below every value, and the code of what is missing."""
    names = [one.name for one in inputs]
    values = names[0] if len(names) == 1 else graph.node("Concat", *names, axis=1)
    missing = graph.constant([[one.missing for one in inputs]])
    codes = _below(graph, values, [one.cuts or () for one in inputs])
    return graph.node("Where", graph.node("IsNaN", values), missing, codes)


def _below(graph: _Graph, values: str, all_cuts: Sequence[Sequence[float]]) -> str:
    """Return how many cuts lie below every value, by halving all columns at once.

    Their cuts are filled up with infinity.
    """
    halvings = max(len(cuts).bit_length() for cuts in all_cuts)
    size = (1 << halvings) - 1
    cuts = [[*cuts, *[math.inf] * (size - len(cuts))] for cuts in all_cuts]
    begins = graph.constant([[p * size for p in range(len(cuts))]])
    place = begins
    if size:
        flat = graph.constant(np.array(cuts).ravel(), np.float64)
    for halving in reversed(range(halvings)):
        step = 1 << halving
        at = graph.node("Add", place, graph.constant(step - 1))
        above = graph.node("Less", graph.node("Gather", flat, at), values)
        moved = graph.node("Mul", graph.node("Cast", above, to=TensorProto.INT64), graph.constant(step))
        place = graph.node("Add", place, moved)
    return graph.node("Sub", place, begins)


def _probabilities(graph: _Graph, digits: _Digits, scorer: PortableScorer) -> str:
    """Return (N, K)."""
    n_stages, two = len(scorer.stages), len(scorer.labels) == 2
    joined = graph.node("Concat", *_scores(graph, digits, scorer), axis=1)
    scores = graph.node("Reshape", joined, graph.constant([-1, n_stages, 1 if two else len(scorer.labels)]))
    if two:
        nothing = graph.node("Mul", scores, graph.constant(0.0, np.float64))
        scores = graph.node("Concat", nothing, scores, axis=2)
    found = scorer.calibration
    if found is not None and found.powers and n_stages == 1:
        logs = graph.node("LogSoftmax", graph.node("Squeeze", scores, graph.constant([1])), axis=1)
        return _powers(graph, logs, found)
    weights = np.array([stage.weight for stage in scorer.stages])
    shares = graph.node("Softmax", scores, axis=2)
    weighted = graph.node("Mul", shares, graph.constant((weights / weights.sum())[:, None], np.float64))
    average = graph.node("ReduceSum", weighted, graph.constant([1]), keepdims=0)
    if found is None:
        return average
    if not found.powers:
        return _lines(graph, average, found, len(scorer.labels))
    positive = graph.node("Max", average, graph.constant(_LEAST, np.float64))
    return _powers(graph, graph.node("Log", positive), found)


def _scores(graph: _Graph, digits: _Digits, scorer: PortableScorer) -> list[str]:
    """Return (N, R) of every stage."""
    owners = [
        (s, table.expanded())
        for s, stage in enumerate(scorer.stages)
        for table in sorted(stage.tables, key=lambda table: len(table.inputs))
    ]
    parts: list[list[str]] = [[] for _ in scorer.stages]
    for block in _blocks(owners):
        found = digits.entries([table for _, table in block])
        runs = [(s, len(list(group))) for s, group in groupby(s for s, _ in block)]
        pieces = [found] if len(runs) == 1 else graph.split(found, [n for _, n in runs])
        for (s, _), piece in zip(runs, pieces, strict=True):
            parts[s].append(graph.node("ReduceSum", piece, graph.constant([1]), keepdims=0))
    scores: list[str] = []
    for stage, own in zip(scorer.stages, parts, strict=True):
        before = [digits.zeros()] if stage.anew else scores[-1:]
        scores.append(graph.node("Sum", *before, graph.constant([stage.shift], np.float64), *own))
    return scores


def _blocks(owners: Sequence[tuple[int, PortableTable]]) -> list[list[tuple[int, PortableTable]]]:
    """Run of tables that are looked up at once."""
    blocks: list[list[tuple[int, PortableTable]]] = []
    for one in owners:
        if not blocks or len(blocks[-1]) == MOST_TOGETHER or _ends(blocks[-1], one):
            blocks.append([])
        blocks[-1].append(one)
    return blocks


def _ends(block: Sequence[tuple[int, PortableTable]], new: tuple[int, PortableTable]) -> bool:
    return len(block) >= LEAST_TOGETHER and len(block[-1][1].inputs) != len(new[1].inputs)


def _powers(graph: _Graph, logs: str, found: PortableMap) -> str:
    """Of ln P, (N, K)."""
    scales, shifts = (graph.constant([part], np.float64) for part in found.powers)
    return graph.node("Softmax", graph.node("Add", graph.node("Mul", logs, scales), shifts), axis=1)


def _lines(graph: _Graph, shares: str, found: PortableMap, n_labels: int) -> str:
    """Of P, (N, K); of two labels the second has a line."""
    if n_labels == 2:
        shares = graph.node("Gather", shares, graph.constant([1]), axis=1)
    begins = np.cumsum([0, *(len(line.levels) for line in found.lines[:-1])])
    at = graph.node("Add", _below(graph, shares, [line.ends for line in found.lines]), graph.constant([begins]))
    starts, levels, slopes = (
        graph.node("Gather", graph.constant(np.concatenate(parts), np.float64), at)
        for parts in zip(*(line[1:] for line in found.lines), strict=True)
    )
    rise = graph.node("Mul", slopes, graph.node("Sub", shares, starts))
    values = graph.node("Add", levels, rise)
    if n_labels == 2:
        first = graph.node("Sub", graph.constant(1.0, np.float64), values)
        return graph.node("Concat", first, values, axis=1)
    whole = graph.node("ReduceSum", values, graph.constant([1]), keepdims=1)
    return graph.node("Div", values, whole)


def _contributions(graph: _Graph, digits: _Digits, effects: PortableEffects, n_labels: int) -> onnx.ValueInfoProto:
    """Return the output `contributions`, by set of attributes and label."""
    name, sets, found = graph.output("contributions"), _sets(effects), []
    for n_tables, alike in groupby(sets, key=len):
        owned = [(s, table) for s, tables in enumerate(alike) for table in tables]
        most = max(1, MOST_TOGETHER // n_tables) * n_tables
        blocks = _blocks(owned) if n_tables == 1 else [owned[i : i + most] for i in range(0, len(owned), most)]
        for block in blocks:
            values = digits.entries([table for _, table in block])
            if n_tables > 1:
                shape = graph.constant([-1, len(block) // n_tables, n_tables, n_labels])
                values = graph.node("ReduceSum", graph.node("Reshape", values, shape), graph.constant([2]), keepdims=0)
            found.append(values)
    graph.node("Concat", *found, axis=1, output=name)
    return helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["N", len(sets), n_labels])


def _sets(effects: PortableEffects) -> list[list[PortableTable]]:
    """Return the tables of every set of attributes, sets of one table first."""
    return sorted((list(tables) for _, tables in groupby(effects.tables, key=lambda one: one.inputs)), key=len)


def _axes(table: PortableTable) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Input and their digits."""
    return zip(table.inputs, table.digits, strict=True)
