"""ONNX, bytes for any runtime: an input a column, shape (N, 1), outputs `label` (N,) and `probabilities` (N, K).

Numbers are doubles, NaN missing; texts are strings. `contributions`, where wanted, is (N, sets of attributes, K). The
packages onnx, to write, and onnxruntime, to run what was written, are the extra `onnx`. See `formats.onnx_graph`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bncli.errors import UsageError
from bncli.files.exports import ProgramFormat
from bncli.files.exports.programs import ProgramTarget

if TYPE_CHECKING:
    from bncli.engine.prediction.portable import PortableScorer


ROWS_AT_ONCE = 4096


def write_onnx(scorer: PortableScorer, target: ProgramTarget) -> bytes:
    """Return the bytes of the file; UsageError without the package."""
    try:
        importlib.import_module("onnx")
    except ImportError as error:
        hint = "install it: python -m pip install 'bncli[onnx]', or onnx and onnxruntime"
        raise UsageError("--to onnx needs the package 'onnx', which is not installed", hint=hint) from error
    from bncli.files.exports.onnx_graph import onnx_bytes

    return onnx_bytes(scorer, target)


def run_onnx(content: str | bytes, rows: list[dict[str, Any]]) -> list[list[float]] | None:
    """Return what onnxruntime says of the rows; None where there is none."""
    try:
        import onnxruntime
    except ImportError:
        return None
    import numpy as np

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    probabilities = session.get_outputs()[1].name
    found: list[list[float]] = []
    for first in range(0, len(rows), ROWS_AT_ONCE):
        block = rows[first : first + ROWS_AT_ONCE]
        feed = {}
        for one in session.get_inputs():
            values = [row[one.name] for row in block]
            if one.type == "tensor(string)":
                column = np.array(["" if value is None else value for value in values], object)
            else:
                column = np.array([np.nan if value is None else value for value in values], np.float64)
            feed[one.name] = column[:, None]
        found += session.run([probabilities], feed)[0].tolist()
    return found


FORMAT = ProgramFormat(
    "onnx", "a graph that runtimes of ONNX score by", (".onnx",), write_onnx, run_onnx, "onnxruntime", is_text=False
)
