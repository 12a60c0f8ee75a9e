"""Adds up counts files: all rows behind them as if they had been counted together, or the earlier ones for less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bncli.engine.counting.counted_rows import CountedRows, added
from bncli.engine.data.schema import Attribute, Cuts
from bncli.errors import BncliError
from bncli.files.artifacts.counts import counts_summary, read_counts, tables_json, write_counts
from bncli.files.artifacts.cuts import attribute_json
from bncli.files.paths import check_outputs
from bncli.files.reading.column_builder import sorted_texts
from bncli.watch import Note, Progress, Run


@dataclass(frozen=True)
class MergeReport:
    """The sum, where it was written, and how many files went into it; `decay` is None where all count alike."""

    counts: str
    counted: CountedRows
    files: int
    decay: float | None

    def as_json(self) -> dict[str, Any]:
        """Return every figure by name."""
        return {"counts": self.counts, "files": self.files, "decay": self.decay} | counts_summary(self.counted)


def merge(
    paths: Sequence[str],
    output: str,
    *,
    decay: float | None = None,
    allow_repeated: bool = False,
    run: Run = Run(),
) -> MergeReport:
    """Add the counts in `paths`, in the order of time where there is a `decay`, and writes them.

    Raises BncliError where files do not count the same, or the same part (by its fingerprint) stands in two of them.
    """
    check_outputs((output,), paths)
    total = read_counts(paths[0])
    own_labels = [set(total.labels)] if total.n_rows else []
    counted_in = {part.fingerprint: paths[0] for part in total.parts}
    for done, path in enumerate(paths[1:], 1):
        run.watch(Progress(done, len(paths), path))
        one = read_counts(path)
        # BncliError that names the first thing in which two files do not count the same.
        first_path = paths[0]
        difference = next(_differences(total, one), None)
        if difference is not None:
            what, here, there = difference
            hint = "count all parts with the same cuts file, the same --structure and the same --missing"
            raise BncliError(f"{what}: {here}, but {there} in {first_path}", where=path, hint=hint)
        if not allow_repeated:
            _refuse_repeated(counted_in, one, path)
        own_labels += [set(one.labels)] if one.n_rows else []
        total = added([total, one], sorted_texts({*total.labels, *one.labels}), decay)
    # A slip of the pen in one file makes a label of its own: a note says which are not in every file.
    everywhere = set(total.labels).intersection(*own_labels)
    some = [label for label in total.labels if label not in everywhere]
    if some and own_labels:
        more = f" and {len(some) - 3} more" if len(some) > 3 else ""
        listed = ", ".join(f"'{label}'" for label in some[:3])
        run.watch(Note(f"not every file has the class {listed}{more}"))
    write_counts(output, total)
    return MergeReport(output, total, len(paths), decay)


def _differences(first: CountedRows, one: CountedRows) -> Iterator[tuple[str, str, str]]:
    """Yield what differs, how it is in `one`, how it is in the first."""
    if one.cuts.class_name != first.cuts.class_name:
        yield "the class differs", f"'{one.cuts.class_name}'", f"'{first.cuts.class_name}'"
    yield from _differing_attributes(first.cuts, one.cuts)
    if one.missing_tokens != first.missing_tokens:
        yield "what means a missing value differs", _tokens(one), _tokens(first)
    if one.wanted != first.wanted:
        yield "the tables differ", _tables(one, first), _tables(first, one)


def _differing_attributes(first: Cuts, one: Cuts) -> Iterator[tuple[str, str, str]]:
    pairs = zip(one.attributes, first.attributes, strict=False)
    for position, (a, b) in enumerate(pairs, 1):
        if a.name != b.name:
            yield f"attribute {position} differs", f"'{a.name}'", f"'{b.name}'"
        here, there = _described(a), _described(b)
        for key in sorted(here.keys() | there.keys()):
            if here.get(key) != there.get(key):
                yield f"the {key} of '{a.name}' differ", _short(here.get(key)), _short(there.get(key))
    if len(one.attributes) != len(first.attributes):
        yield "the attributes differ", f"{len(one.attributes)} of them", f"{len(first.attributes)}"
    if (one.method, dict(one.options)) != (first.method, dict(first.options)):
        yield "the cuts were made otherwise", _made(one), _made(first)


def _described(attribute: Attribute) -> dict[str, Any]:
    """Return all but whether values are missing, in which parts may differ."""
    return attribute_json(replace(attribute, missing=False))


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _made(cuts: Cuts) -> str:
    return " ".join([cuts.method, *(f"{key}={value}" for key, value in sorted(cuts.options.items()))])


def _tokens(counted: CountedRows) -> str:
    tokens = counted.missing_tokens
    return "the usual" if tokens is None else " ".join(map(repr, tokens))


def _tables(counted: CountedRows, other: CountedRows) -> str:
    """Return the first table that the other lacks; else how many there are."""
    if counted.wanted is None:
        return "pairs"
    lacking = next((s for s in counted.wanted if s not in (other.wanted or ())), None)
    if lacking is None:
        return f"{len(tables_json(counted))} tables"
    return "one over " + ", ".join(f"'{counted.cuts.attributes[i].name}'" for i in lacking)


def _refuse_repeated(counted_in: dict[str, str], one: CountedRows, path: str) -> None:
    """Raise BncliError that names the file in which a part is counted already.

    Else `counted_in` knows those of `one` too.
    """
    twice = [part for part in one.parts if part.fingerprint in counted_in]
    if twice:
        rows, first = sum(part.n_rows for part in twice), counted_in[twice[0].fingerprint]
        what = f"{rows:,} of its {one.n_rows:,} rows are counted already, in {first}"
        raise BncliError(what, where=path, hint="leave one of the files out; --allow-repeated adds it all the same")
    counted_in |= {part.fingerprint: path for part in one.parts}
