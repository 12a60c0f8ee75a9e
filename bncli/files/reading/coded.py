"""A `.codes` file as a table: whatever else can be said of how a table is read was settled when it was encoded."""

from __future__ import annotations

from collections.abc import Sequence

from bncli.engine.data.columns import Columns
from bncli.errors import UsageError
from bncli.files.codes import is_codes, read_codes
from bncli.files.reading.source import Source

_FLAGS = {
    "format": "--format",
    "delimiter": "--delimiter",
    "ignore": "--ignore",
    "categorical": "--categorical",
    "numeric": "--numeric",
    "weights": "--weights",
    "schema_file": "--schema",
    "missing_tokens": "--missing",
    "on_bad_row": "--on-bad-row",
    "drop_unlabelled": "--drop-unlabelled",
    "dates": "--dates",
    "decimal": "--decimal",
    "encoding": "--encoding",
}


def are_codes(paths: Sequence[str]) -> bool:
    """Whether the paths name one file of codes."""
    return len(paths) == 1 and is_codes(paths[0])


def read_coded(source: Source) -> Columns:
    """The rows of the `.codes` file that is the source; UsageError for what was said of it in vain."""
    plain = Source(source.paths)
    for field, flag in _FLAGS.items():
        if getattr(source, field) != getattr(plain, field):
            what = f"{flag} has no effect on {source.paths[0]}, whose rows are codes"
            raise UsageError(what, hint="say it when the table is encoded")
    found = read_codes(source.paths[0])
    if source.class_name not in (None, found.heading.cuts.class_name):
        what = f"the class of {found.path} is '{found.heading.cuts.class_name}'"
        raise UsageError(what, hint=f"encode the table again with --class '{source.class_name}'")
    return found.columns()
