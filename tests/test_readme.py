"""The README is true and short: every console block prints what it shows, every table is made from its source."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from bncli.cli.commands import COMMANDS
from tests.manual_tables import MANUAL, renewed
from tests.transcripts import ROOT, UPDATING, blocks, parse, replay, settled, without_times, workplace

README = ROOT / "README.md"
MOST_LINES, WIDEST = 250, 120
EVALUATION = "bncli evaluate sample_data/tumours.csv"


def test_console_blocks(tmp_path: Path) -> None:
    """The long evaluation is played by the test of the quick start: its output is read from that page."""
    folder = workplace(tmp_path)
    page = "".join(blocks((MANUAL / "quick-start.md").read_text()))
    (folder / "evaluated").write_text(next(one.output for one in parse(page) if one.command == EVALUATION))
    for block in blocks(README.read_text()):
        read = block if UPDATING else block.replace(f"$ {EVALUATION}", "$ cat evaluated")
        played = replay(read, folder).replace("$ cat evaluated", f"$ {EVALUATION}")
        if UPDATING:
            README.write_text(README.read_text().replace(f"```console\n{block}```", f"```console\n{played}```", 1))
        else:
            assert without_times(settled(played, block)) == without_times(block)


def test_python_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workplace(tmp_path))
    (block,) = re.findall(r"^```pycon\n(.*?)^```$", README.read_text(), flags=re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest(block, {}, "README.md", str(README), 0)
    printed: list[str] = []
    assert doctest.DocTestRunner().run(test, out=printed.append).failed == 0, "".join(printed)


def test_every_block_is_run() -> None:
    """Those that install are run by `.ci/run` and `.ci/package`."""
    text = README.read_text()
    assert set(re.findall(r"^```(\w+)$", text, flags=re.MULTILINE)) == {"console", "pycon", "sh"}
    for line in "".join(re.findall(r"^```sh\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)).splitlines():
        assert re.match(r"python3 -m pip install|pipx install|uvx --from", line)


def test_links() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


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


def test_every_command_is_listed() -> None:
    assert [command.word for command in COMMANDS if f"`{command.word}`" not in README.read_text()] == []
