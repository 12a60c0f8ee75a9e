"""What the product is measured against: a fused C kernel, scipy's sparse matrices, a C loop that counts pairs.

The C kernel holds the scores of a row in registers, K known to the compiler, and runs over uint16 cells row by row; it
is compiled here with `gcc -O3 -march=native -ffast-math`.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.structures.structure import Family

Array = NDArray[np.float64]
Pass = Callable[[Array], tuple[float, Array]]

HERE = Path(__file__).parent


@cache
def compiled(source: str, *options: str) -> ctypes.CDLL:
    """A C file of this folder as a library; skips the test where there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc to compile the yardstick with")
    library = Path(mkdtemp(prefix="yardstick-")) / "yardstick.so"
    flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC", *options]
    subprocess.run([gcc, *flags, str(HERE / source), "-o", str(library), "-lm", "-lmvec"], check=True)
    return ctypes.CDLL(str(library))


def cells(data: Dataset, families: Sequence[Family]) -> NDArray[np.intp]:
    """The cell of every row in every family, (N, families), numbered as a pass numbers them: from 1, bias left out."""
    columns, offset = [], 1
    for family in families:
        cell = np.zeros(data.n_rows, np.intp)
        for attribute, radix in zip(family.attributes, family.shape, strict=True):
            cell = cell * radix + data.codes[attribute]
        columns.append(cell + offset)
        offset += family.n_cells
    return np.stack(columns, axis=1)


def c_pass(data: Dataset, families: Sequence[Family], threads: int = 1) -> Pass:
    """CLL and gradient of tables (n_cells, K) by the fused C kernel; the bias is taken as 0."""
    library = compiled("fused_pass.c", f"-DK={data.n_labels}", "-DREAL=double", "-DEXP=exp", "-DLOG=log")
    function = getattr(library, "pass")
    function.restype = ctypes.c_double
    rows = np.ascontiguousarray(cells(data, families), np.uint16)
    labels = np.ascontiguousarray(data.labels, np.uint8)

    def run(tables: Array) -> tuple[float, Array]:
        gradient = np.empty_like(tables)
        arrays = (_pointer(array) for array in (rows, labels, tables, gradient))
        n_rows, n, n_cells = ctypes.c_long(rows.shape[0]), ctypes.c_int(rows.shape[1]), ctypes.c_long(len(tables))
        cll = function(*arrays, n_rows, n, n_cells, ctypes.c_int(threads))
        return float(cll), gradient

    return run


def _pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def csr_pass(data: Dataset, families: Sequence[Family], block: int = 4096) -> Pass:
    """The same by scipy's compressed rows, one-hot, in blocks; the softmax on transposed copies, the faster way."""
    from scipy.sparse import csr_array

    rows = cells(data, families)
    n_cells = 1 + sum(family.n_cells for family in families)
    blocks = []
    for start in range(0, len(rows), block):
        columns = rows[start : start + block]
        starts = np.arange(0, columns.size + 1, columns.shape[1], dtype=np.int32)
        parts = (np.ones(columns.size), columns.ravel().astype(np.int32), starts)
        matrix = csr_array(parts, shape=(len(columns), n_cells))
        blocks.append((matrix, matrix.T, data.labels[start : start + block].astype(np.intp)))

    def run(tables: Array) -> tuple[float, Array]:
        gradient, cll = np.zeros(tables.shape), 0.0
        for matrix, transposed, labels in blocks:
            scores = np.ascontiguousarray((matrix @ tables).T)
            cll += _softmax_residuals(scores, labels)
            gradient += transposed @ np.ascontiguousarray(scores.T)
        return cll, gradient

    return run


def _softmax_residuals(scores: Array, labels: NDArray[np.intp]) -> float:
    """Scores (K, rows) become 1[y_t = y] - P(y | x_t); returns the sum of ln P(y_t | x_t)."""
    rows = np.arange(len(labels))
    scores -= scores.max(axis=0)
    own = scores[labels, rows]
    np.exp(scores, out=scores)
    norm = scores.sum(axis=0)
    scores /= -norm
    scores[labels, rows] += 1.0
    return float((own - np.log(norm)).sum())


def c_pairs(data: Dataset) -> Callable[[], NDArray[np.uint32]]:
    """All pair tables n[x_i, y, x_j], i < j, flat and one after the other, by a plain C loop, one thread."""
    function = compiled("pair_counts.c").pair_counts
    codes, labels = np.stack(data.codes).astype(np.uint8), data.labels.astype(np.uint8)
    cardinalities = np.array(data.schema.cardinalities, np.int32)
    n_pairs = (int(cardinalities.sum()) ** 2 - int((cardinalities**2).sum())) // 2
    n_rows, n, n_labels = ctypes.c_long(data.n_rows), ctypes.c_int(len(codes)), ctypes.c_int(data.n_labels)

    def run() -> NDArray[np.uint32]:
        tables = np.zeros(n_pairs * data.n_labels, np.uint32)
        function(_pointer(codes), _pointer(labels), _pointer(cardinalities), n_rows, n, n_labels, _pointer(tables))
        return tables

    return run
