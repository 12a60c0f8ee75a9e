"""Build the ONNX graph of a model: from columns to codes, to cells of tables, to scores and probabilities.

The graph has few nodes, even for many numeric columns and tables. One binary search over the cuts codes all numeric
columns, and tables are looked up in blocks of at most MOST_TOGETHER tables. Each text column has a node of its own.

    codes          numeric: the number of cuts below the value, by binary search; text: one LabelEncoder per column
    digits         the code of each value in the coarser grouping that a table uses, by one look-up
    cells          sum over the axes of digit * stride, one number per table
    scores         per stage, the shift plus the sum of entries, added to the scores of the stage before unless the
                   stage begins anew (`bncli.engine.prediction.portable`)
    probabilities  the weighted average of the softmaxes of the stages, then the calibration

Names inside the graph begin with a prefix that no column name has. If a column has the name of an output, the output
gets an underscore. The graph uses opset 18 and ai.onnx.ml 3.
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
from bncli.errors import ModelError
from bncli.files.exports.programs import ProgramTarget

OPSET = 18
ML_OPSET = 3
IR_VERSION = 8
MOST_TOGETHER = 64
"""The maximum number of tables in a block; looking up a block keeps one number per row, table and score in memory."""
LEAST_TOGETHER = 16
"""A block of at least this many tables ends where the number of inputs of a table changes."""
MOST_MULTIPLIED = 64
"""Up to this number of inputs, digits are selected by a matrix product, which is then faster than a look-up."""
MOST_UNUSED = 4
"""If a block needs less than 1/MOST_UNUSED of the digits, only those are selected before the matrix product."""
ML = "ai.onnx.ml"
_LEAST_PROBABILITY = 1e-300
"""Smaller probabilities are replaced by this one before their logarithm is taken."""


def graph_bytes(scorer: PortableScorer, target: ProgramTarget) -> bytes:
    """Return the model as an ONNX file; raise ModelError if it uses no column."""
    if not scorer.inputs:
        hint = "an ONNX graph needs an input to know the number of rows"
        raise ModelError("the model uses no column, so it cannot be written as ONNX", hint=hint)
    effects = None
    if target.options.get("contributions"):
        assert target.effects is not None
        effects = target.effects(apart=True)
    graph = _Graph(scorer.inputs)
    tables = [table.expanded() for table in scorer.tables]
    codes = _add_codes(graph, scorer.inputs, target.missing)
    digits = _Digits(graph, codes, [*tables, *(effects.tables if effects else ())])
    probabilities = _add_probabilities(graph, digits, scorer)
    label_name, probabilities_name = graph.output("label"), graph.output("probabilities")
    best = graph.node("ArgMax", probabilities, axis=1, keepdims=0)
    graph.node("Gather", graph.constant(list(scorer.labels), object), best, output=label_name)
    graph.node("Identity", probabilities, output=probabilities_name)
    outputs = [
        helper.make_tensor_value_info(label_name, TensorProto.STRING, ["N"]),
        helper.make_tensor_value_info(probabilities_name, TensorProto.DOUBLE, ["N", len(scorer.labels)]),
    ]
    # The meaning of the outputs: the class and its labels; for contributions the sets of attributes and the base.
    properties = {"class": scorer.class_name, "labels": json.dumps(scorer.labels)}
    if effects is not None:
        # the tables of every set of attributes, sets with few tables first
        by_set = sorted((list(own) for _, own in groupby(effects.tables, key=lambda table: table.inputs)), key=len)
        outputs.append(_add_contributions(graph, digits, by_set, len(scorer.labels)))
        names = [[scorer.inputs[p].name for p in tables[0].inputs] for tables in by_set]
        properties |= {"contributions": json.dumps(names), "base": json.dumps(effects.constant.tolist())}
    inputs = []
    for column in scorer.inputs:
        kind = TensorProto.STRING if column.cuts is None else TensorProto.DOUBLE
        inputs.append(helper.make_tensor_value_info(column.name, kind, ["N", 1]))
    model = helper.make_model(
        helper.make_graph(graph.nodes, "bncli", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
        ir_version=IR_VERSION,
        producer_name="bncli",
        producer_version=bncli.__version__,
    )
    helper.set_model_props(model, properties)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


class _Graph:
    """A graph whose inputs are `columns`: its nodes and constants, in the order in which they are added."""

    def __init__(self, columns: Sequence[Input]) -> None:
        self.columns = columns
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._prefix = "_"
        while any(column.name.startswith(self._prefix) for column in columns):
            self._prefix += "_"

    def output(self, word: str) -> str:
        """Return the name of an output: the word, with underscores if a column has that name."""
        while word in {column.name for column in self.columns}:
            word += "_"
        return word

    def constant(self, values: Any, kind: Any = np.int64) -> str:
        """Add a constant and return its name."""
        name = f"{self._prefix}c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, kind), name))
        return name

    def node(self, operation: str, *inputs: str, output: str = "", domain: str = "", **attributes: Any) -> str:
        """Add a node with one output and return its name."""
        name = output or f"{self._prefix}n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, inputs, [name], domain=domain, **attributes))
        return name

    def split(self, joined: str, sizes: Sequence[int]) -> list[str]:
        """Add a node that splits `joined` along axis 1 into parts of these sizes, and return the names of the parts."""
        names = [f"{self._prefix}n{len(self.nodes)}_{i}" for i in range(len(sizes))]
        self.nodes.append(helper.make_node("Split", [joined, self.constant(sizes)], names, axis=1))
        return names


def _add_codes(graph: _Graph, inputs: Sequence[Input], missing_texts: Sequence[str]) -> str:
    """Add nodes for the codes of the rows, (N, inputs), numeric columns first; return the name of the result."""
    parts = []
    numeric = [column for column in inputs if column.cuts is not None]
    if numeric:
        names = [column.name for column in numeric]
        values = names[0] if len(names) == 1 else graph.node("Concat", *names, axis=1)
        missing = graph.constant([[column.missing for column in numeric]])
        below = _count_below(graph, values, [column.cuts or () for column in numeric])
        parts.append(graph.node("Where", graph.node("IsNaN", values), missing, below))
    for column in inputs:
        if column.codes is not None:
            known = {**column.codes, **dict.fromkeys(("", *missing_texts), column.missing)}
            parts.append(
                graph.node(
                    "LabelEncoder",
                    column.name,
                    domain=ML,
                    keys_strings=list(known),
                    values_int64s=[int(code) for code in known.values()],
                    default_int64=column.unobserved,
                )
            )
    return graph.node("Concat", *parts, axis=1)


def _count_below(graph: _Graph, values: str, all_cuts: Sequence[Sequence[float]]) -> str:
    """Add nodes that count, for each value, its column's cuts below it; return the name of the result.

    One binary search runs in all columns at once. Their cuts are padded with infinity to the same number,
    2^halvings - 1.
    """
    halvings = max(len(cuts).bit_length() for cuts in all_cuts)
    size = (1 << halvings) - 1
    padded = [[*cuts, *[math.inf] * (size - len(cuts))] for cuts in all_cuts]
    begins = graph.constant([[p * size for p in range(len(padded))]])
    place = begins
    if size:
        flat = graph.constant(np.array(padded).ravel(), np.float64)
    for halving in reversed(range(halvings)):
        step = 1 << halving
        at = graph.node("Add", place, graph.constant(step - 1))
        above = graph.node("Less", graph.node("Gather", flat, at), values)
        moved = graph.node("Mul", graph.node("Cast", above, to=TensorProto.INT64), graph.constant(step))
        place = graph.node("Add", place, moved)
    return graph.node("Sub", place, begins)


class _Digits:
    """The digits of all rows, as doubles (N, axes): one column per distinct grouping of the codes of an input.

    Columns are selected and cells computed by matrix products, which are exact here and much faster than look-ups. With
    more than MOST_MULTIPLIED inputs, the columns are selected by a look-up.
    """

    def __init__(self, graph: _Graph, codes: str, tables: Sequence[PortableTable]) -> None:
        self._graph = graph
        axes = (axis for table in tables for axis in _axes(table))
        self._columns = {axis: column for column, axis in enumerate(dict.fromkeys(axes))}
        # The column of each input among the codes, where numbers come first.
        inputs = graph.columns
        order = sorted(range(len(inputs)), key=lambda p: inputs[p].cuts is None)
        columns_in_order = [order.index(p) for p, _ in self._columns] or [0]
        doubles = graph.node("Cast", codes, to=TensorProto.DOUBLE)
        if len(inputs) > MOST_MULTIPLIED:
            self._name = graph.node("Gather", doubles, graph.constant(columns_in_order), axis=1)
        else:
            picked = graph.constant(np.eye(len(inputs))[:, columns_in_order], np.float64)
            self._name = graph.node("MatMul", doubles, picked)
        if any(digits != tuple(range(len(digits))) for _, digits in self._columns):
            sizes = [len(digits) for _, digits in self._columns]
            flat = graph.constant([digit for _, digits in self._columns for digit in digits], np.float64)
            begins = graph.constant([np.cumsum([0, *sizes[:-1]])], np.float64)
            at = graph.node("Cast", graph.node("Add", self._name, begins), to=TensorProto.INT64)
            self._name = graph.node("Gather", flat, at)

    def zeros(self) -> str:
        """Add a node of zeros (N, 1), and return its name."""
        first = self._graph.node("Gather", self._name, self._graph.constant([0]), axis=1)
        return self._graph.node("Mul", first, self._graph.constant(0, np.float64))

    def entries(self, tables: Sequence[PortableTable]) -> str:
        """Add nodes for the entries of every table for every row, (N, tables, R); return the name of the result."""
        graph, begins = self._graph, np.cumsum([0, *(table.entries.shape[1] for table in tables)])
        strides = np.zeros((len(self._columns) or 1, len(tables)))
        for t, table in enumerate(tables):
            for i, axis in enumerate(_axes(table)):
                strides[self._columns[axis], t] = math.prod(table.shape[i + 1 :])
        digits, used = self._name, np.flatnonzero(strides.any(axis=1))
        if 0 < len(used) < len(strides) / MOST_UNUSED:
            digits, strides = graph.node("Gather", digits, graph.constant(used), axis=1), strides[used]
        cells = graph.node("MatMul", digits, graph.constant(strides, np.float64))
        at = graph.node("Add", graph.node("Cast", cells, to=TensorProto.INT64), graph.constant([begins[:-1]]))
        values: Array = np.concatenate([table.entries for table in tables], axis=1).T
        return graph.node("Gather", graph.constant(values, np.float64), at)


def _axes(table: PortableTable) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield, for each axis, the index of its input and the digit of each of the input's codes."""
    return zip(table.inputs, table.digits, strict=True)


def _add_contributions(
    graph: _Graph, digits: _Digits, by_set: Sequence[Sequence[PortableTable]], n_labels: int
) -> onnx.ValueInfoProto:
    """Add the output `contributions`, (N, sets of attributes, K), and return its description.

    by_set: the tables of every set, sets with few tables first.
    """
    name, parts = graph.output("contributions"), []
    for n_tables, sets in groupby(by_set, key=len):
        owned = [(s, table) for s, tables in enumerate(sets) for table in tables]
        most = max(1, MOST_TOGETHER // n_tables) * n_tables
        blocks = (
            _blocks_of_tables(owned) if n_tables == 1 else [owned[i : i + most] for i in range(0, len(owned), most)]
        )
        for block in blocks:
            values = digits.entries([table for _, table in block])
            if n_tables > 1:
                shape = graph.constant([-1, len(block) // n_tables, n_tables, n_labels])
                values = graph.node("ReduceSum", graph.node("Reshape", values, shape), graph.constant([2]), keepdims=0)
            parts.append(values)
    graph.node("Concat", *parts, axis=1, output=name)
    return helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["N", len(by_set), n_labels])


def _add_probabilities(graph: _Graph, digits: _Digits, scorer: PortableScorer) -> str:
    """Add nodes for the probabilities, (N, K), and return the name of the result."""
    n_stages, n_labels = len(scorer.stages), len(scorer.labels)
    joined = graph.node("Concat", *_add_scores(graph, digits, scorer), axis=1)
    scores = graph.node("Reshape", joined, graph.constant([-1, n_stages, 1 if n_labels == 2 else n_labels]))
    if n_labels == 2:
        first = graph.node("Mul", scores, graph.constant(0.0, np.float64))
        scores = graph.node("Concat", first, scores, axis=2)
    calibration = scorer.calibration
    if calibration is not None and calibration.powers and n_stages == 1:
        logs = graph.node("LogSoftmax", graph.node("Squeeze", scores, graph.constant([1])), axis=1)
    else:
        weights = np.array([stage.weight for stage in scorer.stages])
        shares = graph.node("Softmax", scores, axis=2)
        weighted = graph.node("Mul", shares, graph.constant((weights / weights.sum())[:, None], np.float64))
        average = graph.node("ReduceSum", weighted, graph.constant([1]), keepdims=0)
        if calibration is None:
            return average
        if not calibration.powers:
            return _apply_lines(graph, average, calibration, n_labels)
        positive = graph.node("Max", average, graph.constant(_LEAST_PROBABILITY, np.float64))
        logs = graph.node("Log", positive)
    # softmax(scale * ln P + shift), from ln P (N, K)
    scales, shifts = (graph.constant([part], np.float64) for part in calibration.powers)
    return graph.node("Softmax", graph.node("Add", graph.node("Mul", logs, scales), shifts), axis=1)


def _add_scores(graph: _Graph, digits: _Digits, scorer: PortableScorer) -> list[str]:
    """Add nodes for the scores of every stage, (N, R) each, and return their names."""
    owned = [
        (s, table.expanded())
        for s, stage in enumerate(scorer.stages)
        for table in sorted(stage.tables, key=lambda table: len(table.inputs))
    ]
    parts: list[list[str]] = [[] for _ in scorer.stages]
    for block in _blocks_of_tables(owned):
        entries = digits.entries([table for _, table in block])
        runs = [(s, len(list(run))) for s, run in groupby(s for s, _ in block)]
        pieces = [entries] if len(runs) == 1 else graph.split(entries, [n for _, n in runs])
        for (s, _), piece in zip(runs, pieces, strict=True):
            parts[s].append(graph.node("ReduceSum", piece, graph.constant([1]), keepdims=0))
    scores: list[str] = []
    for stage, own in zip(scorer.stages, parts, strict=True):
        before = [digits.zeros()] if stage.anew else scores[-1:]
        scores.append(graph.node("Sum", *before, graph.constant([stage.shift], np.float64), *own))
    return scores


def _blocks_of_tables(owned: Sequence[tuple[int, PortableTable]]) -> list[list[tuple[int, PortableTable]]]:
    """Return the blocks of tables that are looked up together; each table is paired with the index of its owner."""
    blocks: list[list[tuple[int, PortableTable]]] = []
    for pair in owned:
        block = blocks[-1] if blocks else []
        is_new_size = bool(block) and len(block[-1][1].inputs) != len(pair[1].inputs)
        if not block or len(block) == MOST_TOGETHER or (len(block) >= LEAST_TOGETHER and is_new_size):
            blocks.append([])
        blocks[-1].append(pair)
    return blocks


def _apply_lines(graph: _Graph, probabilities: str, calibration: PortableMap, n_labels: int) -> str:
    """Add nodes that calibrate probabilities (N, K) by lines; return the name of the result.

    There is one line per label, but with two labels only one, for the second.
    """
    if n_labels == 2:
        probabilities = graph.node("Gather", probabilities, graph.constant([1]), axis=1)
    lines = calibration.lines
    begins = np.cumsum([0, *(len(line.levels) for line in lines[:-1])])
    segment = _count_below(graph, probabilities, [line.ends for line in lines])
    at = graph.node("Add", segment, graph.constant([begins]))
    starts, levels, slopes = (
        graph.node("Gather", graph.constant(np.concatenate(parts), np.float64), at)
        for parts in zip(*((line.starts, line.levels, line.slopes) for line in lines), strict=True)
    )
    rise = graph.node("Mul", slopes, graph.node("Sub", probabilities, starts))
    values = graph.node("Add", levels, rise)
    if n_labels == 2:
        first = graph.node("Sub", graph.constant(1.0, np.float64), values)
        return graph.node("Concat", first, values, axis=1)
    total = graph.node("ReduceSum", values, graph.constant([1]), keepdims=1)
    return graph.node("Div", values, total)
