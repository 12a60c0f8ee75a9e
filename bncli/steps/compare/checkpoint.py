"""The file of `--resume`: every outcome as soon as it is there, so that a run that was stopped can go on.

The first line says what was run, the others hold an outcome each, all JSON:

    {"format": "bncli-outcomes", "version": 3, "bncli": ..., "protocol": {...}, "learners": [...], "data": [...], ...}
    {"data": 0, "learner": 1, "repeat": 0, "fold": 2, "rows": 30, "metrics": {...}, "seconds": {...}, ...}

`costs` are iterations and passes; `predicted` is base64 of zlib of the codes, little-endian, in as few bytes each as
the number of labels asks for.

Conventions: a file of another run is refused, whatever differs (data are known by their values, learners by their
recipes and the content of their files); a last line without an end, written when the run was killed, is cut off; any
other damage is an error that names the line. The file stays when the run is done.
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
from bncli.steps.compare.entries import COUNTS, Entry, Outcome
from bncli.steps.compare.runner import RunPlan, Task

FORMAT, VERSION = "bncli-outcomes", 3


class Checkpoint:
    """The outcomes of earlier runs and of this one; without a path nothing is written."""

    def __init__(self, path: str | None, plan: RunPlan, entries: Sequence[Entry]) -> None:
        self.path = path
        self._plan = plan
        self._entries = entries
        self._kept: dict[Task, Outcome] = {}
        self._file: BinaryIO | None = None
        if path is not None:
            # Reads what is there, cuts off half a line, and opens the file for more.
            header = _header(self._plan, self._entries)
            try:
                content = _read(path)
                whole = content[: content.rfind(b"\n") + 1]
                lines = whole.splitlines()
                if lines:
                    _check_header(lines[0], header, path)
                    for number, line in enumerate(lines[1:], 2):
                        self._take(line, f"{path}, line {number}")
                elif content and not content.startswith(b'{"format": "bncli-outcomes"'[: len(content)]):
                    raise _no_outcomes(path)
                # For appending, and never replaced: what earlier runs have kept is not at risk while this one writes.
                self._file = open(path, "ab")  # noqa: SIM115
                self._file.truncate(len(whole))
                if not lines:
                    self._write(header)
            except OSError as error:
                self.close()
                raise _failure(path, error) from error

    def kept(self) -> dict[Task, Outcome]:
        """Return what earlier runs have found."""
        return dict(self._kept)

    def add(self, task: Task, outcome: Outcome) -> None:
        """Write an outcome, and sees to it that it outlives this process."""
        if self._file is not None:
            self._write({**task._asdict(), **_outcome_json(outcome)})

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _take(self, line: bytes, where: str) -> None:
        try:
            fields = json.loads(line)
            task = Task(*(fields.pop(name) for name in Task._fields))
            data = self._entries[task.data]
            learner = self._plan.learners[task.learner].name
            dtype = code_dtype(data.n_labels)
            raw = zlib.decompress(base64.b64decode(fields["predicted"], validate=True))
            codes = np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype)
            if len(codes) != fields["rows"] or (codes >= data.n_labels).any():
                raise ValueError("not the labels of these rows")
            metrics = {str(name): None if value is None else float(value) for name, value in fields["metrics"].items()}
            seconds = {str(name): float(value) for name, value in fields["seconds"].items()}
            if not all(math.isfinite(value) for value in (*metrics.values(), *seconds.values()) if value is not None):
                raise ValueError("not finite")
            costs = {name: _count(fields["costs"][name]) for name in COUNTS}
            outcome = Outcome(
                data.name, learner, task.repeat, task.fold, int(fields["rows"]), metrics, seconds, costs, codes
            )
            in_range = task.repeat < self._plan.protocol.repeats and task.fold < self._plan.protocol.folds
            if min(task) < 0 or not in_range:
                raise ValueError("no such fold")
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, zlib.error) as error:
            hint = "delete this line, and the fold is tried again"
            raise BncliError("the line is damaged", where=where, hint=hint) from error
        self._kept.setdefault(task, outcome)

    def _write(self, fields: dict[str, Any]) -> None:
        assert self._file is not None
        try:
            self._file.write(json.dumps(fields, ensure_ascii=False).encode() + b"\n")
            self._file.flush()  # to the system, which keeps it when this process is killed
        except OSError as error:
            raise _failure(str(self.path), error) from error


_DIFFERENCES = {
    "version": "a version of this file that is not known here",
    "bncli": "another version of bncli",
    "protocol": "other --folds, --repeats or --seed",
    "unseen": "another --unseen",
    "learners": "other learners",
    "data": "other data",
}


def _read(path: str) -> bytes:
    if not os.path.exists(path):
        return b""
    if not os.path.isfile(path):
        raise BncliError("outcomes are kept in a file, and this is none", where=path, hint="choose another name")
    with open(path, "rb") as file:
        return file.read()


def _header(plan: RunPlan, entries: Sequence[Entry]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "bncli": __version__,
        "protocol": asdict(plan.protocol),
        "unseen": plan.unseen,
        "learners": [learner.identity() for learner in plan.learners],
        "data": [{"name": entry.name, "rows": entry.n_rows, "digest": entry.digest} for entry in entries],
    }


def _check_header(line: bytes, expected: dict[str, Any], path: str) -> None:
    try:
        header = json.loads(line)
    except ValueError as error:
        raise _no_outcomes(path) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _no_outcomes(path)
    expected = json.loads(json.dumps(expected))
    if header.get("version") in range(1, VERSION):
        what = "the outcomes in it are those of an older bncli: they lack the costs"
        raise BncliError(what, where=path, hint="start anew with another --resume FILE")
    for key, what in _DIFFERENCES.items():
        if header.get(key) != expected[key]:
            hint = "give the options of that run, or another --resume FILE"
            raise BncliError(f"the outcomes in it are of a run with {what}", where=path, hint=hint)


def _no_outcomes(path: str) -> BncliError:
    return BncliError("this is no file of outcomes", where=path, hint="choose another name for --resume")


def _failure(path: str, error: OSError) -> BncliError:
    return BncliError(f"cannot keep outcomes: {(error.strerror or str(error)).lower()}", where=path)


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    codes = outcome.predicted.astype(outcome.predicted.dtype.newbyteorder("<"))
    packed = base64.b64encode(zlib.compress(codes.tobytes())).decode()
    figures = {"metrics": outcome.metrics, "seconds": outcome.seconds, "costs": outcome.costs}
    return {"rows": outcome.rows, **figures, "predicted": packed}


def _count(value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise ValueError("no count")
    return value
