"""The kind of a file, recognised from its first bytes, so that an error message can say what a wrong file is."""

from __future__ import annotations

import re
from typing import NamedTuple

from bncli.errors import BncliError
from bncli.files.exports import export_formats
from bncli.files.json_documents import Node, parse_json
from bncli.files.paths import cannot_read

HEAD_BYTES = 1 << 16
"""The number of bytes at the start of a file that `recognise` examines."""


class FileKind(NamedTuple):
    """The kind of a file.

    `kind` is model, counts, cuts, structure, monitor, json (any other JSON file), the name of an export format, or
    other. `description` completes the sentence "this is ...".
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
    """Return the kind of the file that begins with `head`; later parts of the file may be damaged."""
    if not head.strip():
        return FileKind("other", "an empty file")
    if head.startswith(b"PK\x03\x04"):
        # The name of the first member follows the 30 bytes of its header.
        archive = next((kind for name, kind in _ARCHIVES.items() if head.startswith(name, 30)), None)
        return archive or FileKind("other", "a ZIP archive of another kind")
    for magic, description in _MAGIC.items():
        if head.startswith(magic):
            return FileKind("other", description)
    head = head[:HEAD_BYTES]
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        name = re.search(rb'"format"\s*:\s*"bncli-(cuts|structure|monitor)"', head)
        if name is None:
            return FileKind("json", "a JSON file of another kind")
        return FileKind(name[1].decode(), f"a bncli {name[1].decode()} file")
    if b"\0" in head:
        return FileKind("other", "a binary file of an unknown kind")
    for form in export_formats():
        if form.signature is not None and re.match(form.signature.beginning, head):
            return FileKind(form.word, form.signature.description)
    return FileKind("other", "a text file, perhaps a table")


def read_document(path: str, name: str, version: int) -> Node:
    """Load a JSON file of the format `bncli-<name>` whose version is at most `version`.

    Raises BncliError if the file cannot be read, is of another kind or version, or is not valid JSON.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
            file_kind = recognise(head)
            if file_kind.kind not in (name, "json"):
                hint = "bncli score MODEL DATA --monitor FILE writes one" if name == "monitor" else ""
                raise BncliError(f"this is {file_kind.description}, not a bncli {name} file", where=path, hint=hint)
            document = parse_json(head + file.read(), path)
    except OSError as error:
        raise cannot_read(path, error) from error
    document.check_format(name, version)
    return document
