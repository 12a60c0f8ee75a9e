"""A file is known by its first bytes."""

import pytest

from bncli.files.artifacts.file_kinds import recognise


@pytest.mark.parametrize(
    ("head", "kind", "description"),
    [
        (b"", "other", "an empty file"),
        (b" \n\t", "other", "an empty file"),
        (b"PK\x03\x04" + b"\0" * 26 + b"model.json", "model", "a bncli model"),
        (b"PK\x03\x04" + b"\0" * 26 + b"word/document.xml", "other", "a ZIP archive of another kind"),
        (b"PK\x03\x04", "other", "a ZIP archive of another kind"),
        (b'{"format": "bncli-cuts"', "cuts", "a bncli cuts file"),
        (b'\xef\xbb\xbf\n {"version": 1, "format"\n: "bncli-structure"', "structure", "a bncli structure file"),
        (b'{"format": "bncli-news"', "json", "a JSON file of another kind"),
        (b"[", "json", "a JSON file of another kind"),
        (b"BZh91AY", "other", "a bzip2-compressed file"),
        (b"\xfd7zXZ\0", "other", "an xz-compressed file"),
        (b"\x28\xb5\x2f\xfd", "other", "a zstd-compressed file"),
        (b"ARROW1\0\0", "other", "an Arrow table"),
        (b"\xff\xfea\0", "other", "a UTF-16 text"),
        (b"\xff\xfe\0\0a\0\0\0", "other", "a UTF-32 text"),
        (b"\0\0\xfe\xff\0\0\0a", "other", "a UTF-32 text"),
        (b"\x7fELF\0", "other", "a binary file of an unknown kind"),
        (b"network asia {\n}", "bif", "a BIF network"),
        (b'\xef\xbb\xbf// x\n/* y\n*/ network "a b"\r\n{', "bif", "a BIF network"),
        (b"variable a{", "bif", "a BIF network"),
        (b"network,variable\n{,1\n", "other", "a text file, perhaps a table"),
        (b'<?xml version="1.0"?>\n<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> ]>\n<BIF VERSION="0.3">', "xmlbif",
         "an XMLBIF network"),
        (b"<BIF>", "xmlbif", "an XMLBIF network"),
        (b"<html><BIFF>", "other", "a text file, perhaps a table"),
        (b"# x\nstrict digraph { a }", "dot", "a DOT graph"),
        (b"graph x{", "dot", "a DOT graph"),
        (b"digraph,class\n1,2\n", "other", "a text file, perhaps a table"),
        (b"/*" * 30_000, "other", "a text file, perhaps a table"),
        (b"a,b,class\n", "other", "a text file, perhaps a table"),
    ],
)  # fmt: skip
def test_first_bytes(head: bytes, kind: str, description: str) -> None:
    assert recognise(head) == (kind, description)
