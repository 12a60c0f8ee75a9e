"""XML from unknown sources as a small tree that knows its lines; nothing in a document can make it grow.

Conventions: a document type may declare elements and attributes, as those of XMLBIF files do, but no entities, and
nothing outside the document is read: entities that stand for one another are how a kilobyte becomes a gigabyte
("billion laughs"), and external ones read files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from bncli.errors import BncliError

MAX_DEPTH = 64
"""So deep may elements be nested."""


@dataclass
class Element:
    """An element: its text is that between its tags, blanks around it left out, without the text of inner elements."""

    tag: str
    attributes: Mapping[str, str]
    where: str
    line: int
    texts: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts).strip()

    def all(self, tag: str) -> list[Element]:
        """The inner elements with this tag."""
        return [child for child in self.children if child.tag == tag]

    def only(self, tag: str) -> Element:
        """The one inner element with this tag."""
        found = self.all(tag)
        if len(found) != 1:
            self.fail(f"expected one element {tag} in {self.tag}, found {len(found)}")
        return found[0]

    def fail(self, what: str, *, hint: str = "") -> NoReturn:
        raise BncliError(what, where=f"{self.where}, line {self.line}", hint=hint)


def parse_xml(text: str | bytes, where: str) -> Element:
    """The root element of a document; bytes are decoded as the document says."""
    from xml.parsers import expat

    builder = _Builder(where)
    try:
        builder.parser.Parse(text.removeprefix("\ufeff") if isinstance(text, str) else text, True)
    except expat.ExpatError as error:
        what = f"not valid XML: {expat.ErrorString(error.code)}"
        raise BncliError(what, where=f"{where}, line {error.lineno}, column {error.offset + 1}") from error
    except (LookupError, ValueError) as error:
        raise BncliError(f"not valid XML: {error}", where=where) from error
    return builder.root.children[0]


class _Builder:
    """Collects what expat reports."""

    def __init__(self, where: str) -> None:
        from xml.parsers import expat

        self.root = Element("", {}, where, 1)
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._refuse
        self.parser.SkippedEntityHandler = self._refuse
        self._path = [self.root]

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, self.root.where, self.parser.CurrentLineNumber)
        if len(self._path) > MAX_DEPTH:
            element.fail(f"elements are nested more than {MAX_DEPTH} deep")
        self._path[-1].children.append(element)
        self._path.append(element)

    def _end(self, tag: str) -> None:
        self._path.pop()

    def _text(self, text: str) -> None:
        self._path[-1].texts.append(text)

    def _refuse(self, name: str, *rest: Any) -> None:
        place = f"{self.root.where}, line {self.parser.CurrentLineNumber}"
        what = f"the document uses an entity of its own, '{name}'"
        raise BncliError(what, where=place, hint="write out what it stands for")
