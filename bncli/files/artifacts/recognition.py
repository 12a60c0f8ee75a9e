"""What a file is, told from its first bytes: so that a mix-up can be named instead of guessed at."""

from __future__ import annotations

import re
from typing import NamedTuple

from bncli.errors import BncliError
from bncli.files.documents import Node, parse_json
from bncli.files.exports import export_formats
from bncli.files.paths import cannot_read

HEAD = 1 << 16
"""So many first bytes are enough to tell."""


class FileKind(NamedTuple):
    """What kind of file this is.

    `description` completes "this is ..."; `kind` is model, counts, cuts, structure, monitor, json (of another kind),
    the word of a format that models are exported in, or other.
    """

    kind: str
    description: str


_ARCHIVES = {
    b"model.json": FileKind("model", "a bncli model"),
    b"counts.json": FileKind("counts", "a bncli counts file"),
}
_MAGIC = {
    b"\x1f\x8b": "a gzip-compressed file",
    b"BZh": "a bzip2-compressed file",
    b"\xfd7zXZ\0": "an xz-compressed file",
    b"\x28\xb5\x2f\xfd": "a zstd-compressed file",
    b"PAR1": "a Parquet table",
    b"ARROW1": "an Arrow table",
    b"\xff\xff\xff\xff": "an Arrow table",
    b"\xff\xfe\0\0": "a UTF-32 text",
    b"\0\0\xfe\xff": "a UTF-32 text",
    b"\xff\xfe": "a UTF-16 text",
    b"\xfe\xff": "a UTF-16 text",
}


def recognise(head: bytes) -> FileKind:
    """Return what the file that begins with `head` is; a model may still turn out to be damaged."""
    if not head.strip():
        return FileKind("other", "an empty file")
    if head.startswith(b"PK\x03\x04"):
        # The name of the first member stands behind the 30 bytes of its header.
        found = next((known for name, known in _ARCHIVES.items() if head.startswith(name, 30)), None)
        return found or FileKind("other", "a ZIP archive of another kind")
    for magic, description in _MAGIC.items():
        if head.startswith(magic):
            return FileKind("other", description)
    if head[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        return _recognise_json(head[:HEAD])
    if b"\0" in head[:HEAD]:
        return FileKind("other", "a binary file of an unknown kind")
    for form in export_formats():
        if form.signature is not None and re.match(form.signature.beginning, head[:HEAD]):
            return FileKind(form.word, form.signature.description)
    return FileKind("other", "a text file, perhaps a table")


def _recognise_json(head: bytes) -> FileKind:
    named = re.search(rb'"format"\s*:\s*"bncli-(cuts|structure|monitor)"', head)
    if named is None:
        return FileKind("json", "a JSON file of another kind")
    kind = named[1].decode()
    return FileKind(kind, f"a bncli {kind} file")


def read_document(path: str, name: str, version: int) -> Node:
    """Return the JSON document of a `bncli-<name>` file of at most this version."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
            found = recognise(head)
            if found.kind not in (name, "json"):
                raise BncliError(f"this is {found.description}, not a bncli {name} file", where=path)
            document = parse_json(head + file.read(), path)
    except OSError as error:
        raise cannot_read(path, error) from error
    document.check_format(name, version)
    return document
