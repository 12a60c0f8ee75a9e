"""Add up counts files, as if all their rows had been counted together; earlier counts may be given less weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bncli.engine.counting.counted_rows import CountedRows, merge_counts
from bncli.errors import BncliError
from bncli.files.artifacts.counts import counts_summary, read_counts, tables_json, write_counts
from bncli.files.artifacts.cuts import attribute_json
from bncli.files.paths import check_outputs
from bncli.files.reading.values import sort_levels
from bncli.watch import Note, Progress, Run


@dataclass(frozen=True)
class MergeReport:
    """The sum of several counts files, the file it was written to, and their number.

    decay: the factor by which earlier counts were multiplied, or None if all files have equal weight.
    """

    counts: str
    counted: CountedRows
    files: int
    decay: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the summary of the sum, with its file, the number of files, and the decay."""
        return {"counts": self.counts, "files": self.files, "decay": self.decay} | counts_summary(self.counted)


def merge(
    paths: Sequence[str], output: str, *, decay: float | None = None, allow_repeated: bool = False, run: Run = Run()
) -> MergeReport:
    """Add the counts in the files `paths`, and write the sum to `output`.

    decay: the factor by which the sum so far is multiplied before each further file is added, in the given order.
    Raises BncliError if the files were not counted in the same way, or if the same rows (by their fingerprint) are in
    two of them and `allow_repeated` is false.
    """
    check_outputs((output,), paths)
    total = read_counts(paths[0])
    labels_of_files = [set(total.labels)] if total.n_rows else []
    file_of_part = {part.fingerprint: paths[0] for part in total.parts}
    for done, path in enumerate(paths[1:], 1):
        run.watch(Progress(done, len(paths), path))
        other = read_counts(path)
        difference = next(_counting_differences(total, other), None)
        if difference is not None:
            what, here, there = difference
            hint = "count all parts with the same cuts file, the same --structure and the same --missing"
            raise BncliError(f"{what} in {paths[0]}: {here} instead of {there}", where=path, hint=hint)
        if not allow_repeated:
            repeated = [part for part in other.parts if part.fingerprint in file_of_part]
            if repeated:
                rows, first = sum(part.n_rows for part in repeated), file_of_part[repeated[0].fingerprint]
                what = f"{rows:,} of the {other.n_rows:,} rows were already counted in {first}"
                hint = "leave one of the files out, or add --allow-repeated to count the rows twice"
                raise BncliError(what, where=path, hint=hint)
            file_of_part |= {part.fingerprint: path for part in other.parts}
        labels_of_files += [set(other.labels)] if other.n_rows else []
        total = merge_counts([total, other], sort_levels({*total.labels, *other.labels}), decay)
    # A typing error in one file makes a class of its own, so a note lists the classes that are not in every file.
    everywhere = set(total.labels).intersection(*labels_of_files)
    rare = [label for label in total.labels if label not in everywhere]
    if rare and labels_of_files:
        plural = "s" if len(rare) > 1 else ""
        more = f" and {len(rare) - 3} more" if len(rare) > 3 else ""
        listed = ", ".join(f"'{label}'" for label in rare[:3])
        run.watch(Note(f"some files lack the class label{plural} {listed}{more}"))
    write_counts(output, total)
    return MergeReport(output, total, len(paths), decay)


def _counting_differences(first: CountedRows, other: CountedRows) -> Iterator[tuple[str, str, str]]:
    """Yield each difference in how two files were counted: (description, value in `other`, value in `first`)."""
    cuts, first_cuts = other.cuts, first.cuts
    if cuts.class_name != first_cuts.class_name:
        yield "the class differs from that", f"'{cuts.class_name}'", f"'{first_cuts.class_name}'"
    for position, (a, b) in enumerate(zip(cuts.attributes, first_cuts.attributes, strict=False), 1):
        if a.name != b.name:
            yield f"attribute {position} differs from that", f"'{a.name}'", f"'{b.name}'"
        # Files may differ in whether an attribute has missing values.
        here, there = (attribute_json(replace(attribute, missing=False)) for attribute in (a, b))
        for key in sorted(here.keys() | there.keys()):
            if here.get(key) != there.get(key):
                differ = "differs from that" if key in ("form", "type") else "differ from those"
                yield f"the {key} of '{a.name}' {differ}", _shorten(here.get(key)), _shorten(there.get(key))
    if len(cuts.attributes) != len(first_cuts.attributes):
        yield "the number of attributes differs from that", str(len(cuts.attributes)), str(len(first_cuts.attributes))
    if (cuts.method, dict(cuts.options)) != (first_cuts.method, dict(first_cuts.options)):
        here_made, there_made = (
            " ".join([c.method, *(f"{key}={value}" for key, value in sorted(c.options.items()))])
            for c in (cuts, first_cuts)
        )
        yield "the method of the cuts differs from that", here_made, there_made
    if other.missing_tokens != first.missing_tokens:
        here_tokens, there_tokens = (
            "the default tokens" if tokens is None else " ".join(map(repr, tokens))
            for tokens in (other.missing_tokens, first.missing_tokens)
        )
        yield "the tokens for missing values differ from those", here_tokens, there_tokens
    if other.requested != first.requested:
        yield "the tables differ from those", _describe_tables(other, first), _describe_tables(first, other)


def _shorten(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _describe_tables(counted: CountedRows, other: CountedRows) -> str:
    """Describe the counted tables: `pairs`, the first table that the other file lacks, or the number of tables."""
    if counted.requested is None:
        return "pairs"
    lacking = next((s for s in counted.requested if s not in (other.requested or ())), None)
    if lacking is None:
        return f"{len(tables_json(counted))} tables"
    return "a table over " + ", ".join(f"'{counted.cuts.attributes[i].name}'" for i in lacking)
