"""The README is true and short: every console block prints what it shows, every table is made from its source."""

from __future__ import annotations

from pathlib import Path

from tests.manual_tables import renewed
from tests.transcripts import ROOT, UPDATING, blocks, replay, settled, without_times, workplace

README = ROOT / "README.md"
MOST_LINES, WIDEST = 250, 120


def test_console_blocks(tmp_path: Path) -> None:
    folder = workplace(tmp_path)
    for block in blocks(README.read_text()):
        played = replay(block, folder)
        if UPDATING:
            README.write_text(README.read_text().replace(f"```console\n{block}```", f"```console\n{played}```", 1))
        else:
            assert without_times(settled(played, block)) == without_times(block)


def test_tables() -> None:
    text = README.read_text()
    if UPDATING:
        README.write_text(renewed(text))
    else:
        assert renewed(text) == text


def test_it_is_short() -> None:
    lines = README.read_text().splitlines()
    assert len(lines) <= MOST_LINES
    assert not [line for line in lines if len(line) > WIDEST]


def test_every_room_is_described() -> None:
    rooms = {path.name for path in (ROOT / "bncli").iterdir() if path.is_dir() and not path.name.startswith("__")}
    text = README.read_text()
    assert {room for room in rooms if f"| `{room}/` |" in text} == rooms
