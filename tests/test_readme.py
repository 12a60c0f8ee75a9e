"""The README is true: every console block prints what it shows, every table is the catalogue's or what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from bncli.catalogue import CHOICES, COMMANDS, OPTIONS, SMOOTHINGS
from bncli.cli.numbers import metavar
from tests.published import classifiers, references
from tests.published.classifiers_evidence import evidence
from tests.published.classifiers_page import readme_table
from tests.published.references import recorded
from tests.transcripts import ROOT, UPDATING, blocks, replay, without_times, workplace

README = ROOT / "README.md"


def test_console_blocks(tmp_path: Path) -> None:
    folder = workplace(tmp_path)
    for block in blocks(README.read_text()):
        played = replay(block, folder)
        if UPDATING:
            README.write_text(README.read_text().replace(block, played, 1))
        else:
            assert without_times(played) == without_times(block)


@pytest.mark.parametrize("name", ["commands", "methods", "options", "results"])
def test_tables(name: str) -> None:
    made = {"commands": commands_table, "methods": methods_table, "options": options_table, "results": results_table}
    table = made[name]()
    source = "figures in tests/published" if name == "results" else "the catalogue"
    begin, end = f"<!-- {name}: made from {source} -->\n", f"<!-- end of {name} -->"
    text = README.read_text()
    head, rest = text.split(begin)
    written, tail = rest.split(end)
    if UPDATING:
        README.write_text(head + begin + table + end + tail)
    else:
        assert written == table


def commands_table() -> str:
    rows = [(f"`bncli {command.word}`", command.summary) for command in COMMANDS]
    return _table(("command", "what it does"), rows)


def methods_table() -> str:
    """Every word of every choice, the default in bold, with the options that it takes."""
    rows = []
    for choice in CHOICES:
        for method in choice.methods:
            word = f"**`{method.word}`**" if method.word == choice.default else f"`{method.word}`"
            options = ", ".join(f"`{flag}`" for flag in method.options)
            rows.append((f"`{choice.flag}`", word, method.summary, options))
    return _table(("option", "word (default in bold)", "meaning", "takes"), rows)


def options_table() -> str:
    shown = [o.metavar or metavar(o.kind) for o in OPTIONS]
    values = [f"`{value}`".replace("|", "\\|") if value else "" for value in shown]
    rows = [(f"`{o.flag}`", value, o.shown_default, o.summary) for o, value in zip(OPTIONS, values, strict=True)]
    return _table(("option", "value", "default", "meaning"), rows)


def results_table() -> str:
    """Learners beside each other."""
    return readme_table(evidence(recorded(classifiers.FIGURES) + recorded(references.FIGURES)))


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def test_numbers_of_smoothing_are_in_their_summaries() -> None:
    for method in SMOOTHINGS.methods:
        assert (f"[{method.number}]" in method.summary) == bool(method.number)


def test_every_room_is_described() -> None:
    text = README.read_text()
    for path in (ROOT / "bncli").rglob("*.py"):
        room = path.relative_to(ROOT / "bncli").parts[0]
        assert room.removesuffix(".py") in text or room == "__init__.py", f"the README does not mention {room}"
