"""ONNX, a graph with which any ONNX runtime can score rows.

The graph has one input per column, of shape (N, 1), and the outputs `label` (N,) and `probabilities` (N, K). Numeric
columns are doubles, with NaN for a missing value. Text columns are strings, with the empty string for a missing value.
With the option `contributions` the graph also has the output `contributions` of shape (N, sets of attributes, K).

Writing needs the package onnx, and running the graph needs onnxruntime; both are in the extra `onnx`.
`onnx_graph.py` builds the graph.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bncli.errors import UsageError
from bncli.files.exports import ProgramFormat
from bncli.files.exports.programs import ProgramTarget

if TYPE_CHECKING:
    from bncli.engine.prediction.portable import PortableScorer

ROWS_PER_RUN = 4096


def onnx_bytes(scorer: PortableScorer, target: ProgramTarget) -> bytes:
    """Return the model as the bytes of an ONNX file.

    Raises UsageError if the package onnx is not installed, and ModelError if the model uses no column.
    """
    try:
        importlib.import_module("onnx")
    except ImportError as error:
        hint = "install it with python -m pip install 'bncli[onnx]', or install onnx and onnxruntime"
        raise UsageError("--to onnx needs the package 'onnx', which is not installed", hint=hint) from error
    from bncli.files.exports.onnx_graph import graph_bytes

    return graph_bytes(scorer, target)


def run_onnx(content: str | bytes, rows: list[dict[str, Any]]) -> list[list[float]] | None:
    """Return the probabilities that onnxruntime computes for the rows, or None if it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    import numpy as np

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    output = session.get_outputs()[1].name
    probabilities: list[list[float]] = []
    for first in range(0, len(rows), ROWS_PER_RUN):
        block = rows[first : first + ROWS_PER_RUN]
        feed = {}
        for node in session.get_inputs():
            values = [row[node.name] for row in block]
            if node.type == "tensor(string)":
                column = np.array(["" if value is None else value for value in values], object)
            else:
                column = np.array([np.nan if value is None else value for value in values], np.float64)
            feed[node.name] = column[:, None]
        probabilities += session.run([output], feed)[0].tolist()
    return probabilities


FORMAT = ProgramFormat(
    "onnx",
    "a graph that scores rows in any ONNX runtime",
    (".onnx",),
    onnx_bytes,
    run_onnx,
    "onnxruntime",
    is_text=False,
)
