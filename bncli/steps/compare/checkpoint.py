"""The file of `--resume`: every outcome as soon as it is known, so that an interrupted run can continue.

The file has JSON lines. The first one describes the run, and each of the others holds an outcome:

    {"format": "bncli-outcomes", "version": 3, "bncli": ..., "protocol": {...}, "learners": [...], "data": [...], ...}
    {"data": 0, "learner": 1, "repeat": 0, "fold": 2, "rows": 30, "metrics": {...}, "seconds": {...}, ...}

`costs` are iterations and passes. `predicted` is base64 of zlib of the label codes, little-endian, in the narrowest
type.

Conventions: the file of any other run is refused (data sets are compared by their values, learners by their recipes and
the content of their files). A last line without a newline, written when the process was killed, is cut off. Any other
damage is an error that names the line. The file remains when the run ends.
"""

from __future__ import annotations

import base64
import json
import math
import os
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, BinaryIO

import numpy as np

from bncli import __version__
from bncli.engine.data.dataset import code_dtype
from bncli.errors import BncliError
from bncli.steps.compare.trials import COUNTS, DataSet, Outcome, RunPlan, Task

FORMAT, VERSION = "bncli-outcomes", 3
_DIFFERENCES = {
    "version": "a version of this file that is not known here",
    "bncli": "another version of bncli",
    "protocol": "other --folds, --repeats or --seed",
    "unseen": "another --unseen",
    "learners": "other learners",
    "data": "other data",
}


class Checkpoint:
    """The outcomes of earlier runs, and a file that receives the new outcomes; without a path nothing is written."""

    def __init__(self, path: str | None, plan: RunPlan, data_sets: Sequence[DataSet]) -> None:
        """Read the outcomes in the file, cut off an incomplete line, and open the file for more."""
        self.path = path
        self.outcomes: dict[Task, Outcome] = {}
        self._file: BinaryIO | None = None
        if path is None:
            return
        header = {
            "format": FORMAT,
            "version": VERSION,
            "bncli": __version__,
            "protocol": asdict(plan.protocol),
            "unseen": plan.unseen,
            "learners": [learner.identity() for learner in plan.learners],
            "data": [{"name": one.name, "rows": one.n_rows, "digest": one.digest} for one in data_sets],
        }
        try:
            content = b""
            if os.path.exists(path):
                if not os.path.isfile(path):
                    what = "outcomes are kept in a file, and this is none"
                    raise BncliError(what, where=path, hint="choose another name")
                with open(path, "rb") as file:
                    content = file.read()
            complete = content[: content.rfind(b"\n") + 1]
            lines = complete.splitlines()
            if lines:
                _check_header(lines[0], header, path)
                for number, line in enumerate(lines[1:], 2):
                    try:
                        task, outcome = _parse_outcome(line, plan, data_sets)
                    except (ValueError, KeyError, TypeError, IndexError, AttributeError, zlib.error) as error:
                        where, hint = f"{path}, line {number}", "delete this line, and the fold is tried again"
                        raise BncliError("the line is damaged", where=where, hint=hint) from error
                    self.outcomes.setdefault(task, outcome)
            elif content and not content.startswith(b'{"format": "bncli-outcomes"'[: len(content)]):
                raise _not_outcomes(path)
            # the file is appended to and never replaced, so that the outcomes in it are not at risk
            self._file = open(path, "ab")  # noqa: SIM115
            self._file.truncate(len(complete))
            if not lines:
                self._write(header)
        except OSError as error:
            self.close()
            raise _write_error(path, error) from error

    def add(self, task: Task, outcome: Outcome) -> None:
        """Write an outcome so that it outlives this process."""
        if self._file is not None:
            codes = outcome.predicted.astype(outcome.predicted.dtype.newbyteorder("<"))
            packed = base64.b64encode(zlib.compress(codes.tobytes())).decode()
            results = {"metrics": outcome.metrics, "seconds": outcome.seconds, "costs": outcome.costs}
            self._write({**task._asdict(), "rows": outcome.rows, **results, "predicted": packed})

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, fields: dict[str, Any]) -> None:
        assert self._file is not None
        try:
            self._file.write(json.dumps(fields, ensure_ascii=False).encode() + b"\n")
            self._file.flush()  # the operating system keeps it if this process is killed
        except OSError as error:
            raise _write_error(str(self.path), error) from error


def _check_header(line: bytes, expected: dict[str, Any], path: str) -> None:
    """Raise BncliError if the first line of a file does not describe this run."""
    try:
        header = json.loads(line)
    except ValueError as error:
        raise _not_outcomes(path) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _not_outcomes(path)
    if header.get("version") in range(1, VERSION):
        what = "the outcomes in it are those of an older bncli: they lack the costs"
        raise BncliError(what, where=path, hint="start anew with another --resume FILE")
    expected = json.loads(json.dumps(expected))
    for key, what in _DIFFERENCES.items():
        if header.get(key) != expected[key]:
            hint = "give the options of that run, or another --resume FILE"
            raise BncliError(f"the outcomes in it are of a run with {what}", where=path, hint=hint)


def _not_outcomes(path: str) -> BncliError:
    return BncliError("this is not a file of outcomes", where=path, hint="choose another name for --resume")


def _write_error(path: str, error: OSError) -> BncliError:
    return BncliError(f"cannot store outcomes: {(error.strerror or str(error)).lower()}", where=path)


def _parse_outcome(line: bytes, plan: RunPlan, data_sets: Sequence[DataSet]) -> tuple[Task, Outcome]:
    """Return the task and the outcome in a line; raise ValueError or another error if it holds none."""
    fields = json.loads(line)
    task = Task(*(fields.pop(name) for name in Task._fields))
    data_set, learner = data_sets[task.data], plan.learners[task.learner].name
    is_known = task.repeat < plan.protocol.repeats and task.fold < plan.protocol.n_splits
    if min(task) < 0 or not is_known:
        raise ValueError("no such fold")
    dtype = code_dtype(data_set.n_labels)
    packed = zlib.decompress(base64.b64decode(fields["predicted"], validate=True))
    codes = np.frombuffer(packed, dtype.newbyteorder("<")).astype(dtype)
    if len(codes) != fields["rows"] or (codes >= data_set.n_labels).any():
        raise ValueError("not the labels of these rows")
    metrics = {str(name): None if value is None else float(value) for name, value in fields["metrics"].items()}
    seconds = {str(name): float(value) for name, value in fields["seconds"].items()}
    if not all(math.isfinite(value) for value in (*metrics.values(), *seconds.values()) if value is not None):
        raise ValueError("not finite")
    costs = {name: fields["costs"][name] for name in COUNTS}
    if any(value is not None and (type(value) is not int or value < 0) for value in costs.values()):
        raise ValueError("not a count")
    rows = int(fields["rows"])
    return task, Outcome(data_set.name, learner, task.repeat, task.fold, rows, metrics, seconds, costs, codes)
