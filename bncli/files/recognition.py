"""What a file is, told from its first bytes: so that a mix-up can be named instead of guessed at."""

from __future__ import annotations

import re
from typing import NamedTuple

HEAD = 1 << 16
"""So many first bytes are enough to tell."""


class Recognised(NamedTuple):
    """`description` completes "this is ..."; `kind` is model, cuts, structure, bif, xmlbif, dot, json or other."""

    kind: str
    description: str


def recognise(head: bytes) -> Recognised:
    """What the file that begins with `head` is; a model may still turn out to be damaged."""
    if not head.strip():
        return Recognised("other", "an empty file")
    if head.startswith(b"PK\x03\x04"):
        is_model = head[30:40] == b"model.json"
        return (
            Recognised("model", "a bncli model") if is_model else Recognised("other", "a ZIP archive of another kind")
        )
    for magic, description in _MAGIC.items():
        if head.startswith(magic):
            return Recognised("other", description)
    if head[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        return _recognise_json(head[:HEAD])
    if b"\0" in head[:HEAD]:
        return Recognised("other", "a binary file of an unknown kind")
    for pattern, kind, description in _NETWORKS:
        if re.match(pattern, head[:HEAD]):
            return Recognised(kind, description)
    return Recognised("other", "a text file, perhaps a table")


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


_BLANK = rb"\A(?:\xef\xbb\xbf)?(?:\s++|//[^\n]*+|/\*(?s:.*?)\*/|\#[^\n]*+)*+"
"""What may stand before the first word of a BIF or DOT file: blanks and comments."""
_NAME = rb"""(?:"[^"\n]*"|[^\s{}"]+)"""
_NETWORKS = (
    (_BLANK + rb"(?:network(?:\s+" + _NAME + rb")?|variable\s+" + _NAME + rb")\s*\{", "bif", "a BIF network"),
    (_BLANK + rb"(?:strict\s+)?(?:di)?graph\b\s*(?:" + _NAME + rb")?\s*\{", "dot", "a DOT graph"),
    (rb"\A(?:\xef\xbb\xbf)?\s*<(?s:.*?)<BIF\b|\A(?:\xef\xbb\xbf)?\s*<BIF\b", "xmlbif", "an XMLBIF network"),
)


def _recognise_json(head: bytes) -> Recognised:
    named = re.search(rb'"format"\s*:\s*"bncli-(cuts|structure)"', head)
    if named is None:
        return Recognised("json", "a JSON file of another kind")
    kind = named[1].decode()
    return Recognised(kind, f"a bncli {kind} file")
