"""XML as a tree, and what it may not do."""

import pytest

from bncli.errors import BncliError
from bncli.files.exports.xmlbif_parser import parse_xml


def test_a_tree_knows_its_texts_and_lines() -> None:
    root = parse_xml('<a x="1">\n <b> t &amp; <!-- no --> u<c>inner</c> </b>\n<b><![CDATA[<d>]]></b></a>', "f")
    assert (root.tag, root.attributes, root.text, root.line) == ("a", {"x": "1"}, "", 1)
    assert [(b.text, b.line) for b in root.all("b")] == [("t &  u", 2), ("<d>", 3)]
    assert root.all("b")[0].only("c").text == "inner"
    with pytest.raises(BncliError, match="expected one element c in a, found 0, f, line 1"):
        root.only("c")


def test_a_billion_laughs_end_at_the_first() -> None:
    lines = ['<!ENTITY l0 "ha">', *(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))]
    document = f"<!DOCTYPE a [{chr(10).join(lines)}]><a>&l9;</a>"
    with pytest.raises(BncliError, match="an entity of its own, 'l0', f, line 1; write out what it stands for"):
        parse_xml(document, "f")


@pytest.mark.parametrize(
    "text", ["", "x", "<a>", "<a></b>", "<a/><b/>", "<a>\0</a>", "<a b=1/>", "<a>\ud800</a>", b"\xff\xfe<"]
)
def test_what_is_no_xml(text: str | bytes) -> None:
    with pytest.raises(BncliError, match="not valid XML"):
        parse_xml(text, "f")
