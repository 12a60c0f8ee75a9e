"""The manual is true: every console block prints what it shows, every table follows from where it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bncli.catalogue import CHOICES, SMOOTHINGS
from bncli.cli.commands import COMMANDS
from bncli.cli.help import TOPICS
from tests.manual_tables import MANUAL, renewed
from tests.transcripts import ROOT, UPDATING, blocks, parse, replay, settled, without_times, workplace

PAGES = sorted(MANUAL.glob("*.md"))
LONG_PAGES = {
    *("auto", "calibration", "compare", "decisions", "describe", "dossier", "evaluate", "explain", "export"),
    *("interactions", "monotone", "optimizers", "parameters", "penalties", "python", "regions", "shell"),
    *("quick-start", "structure-scores", "structures", "validation", "verify"),
}
"""Pages whose commands take many seconds; they are replayed with the slow tests."""
WIDEST = 120


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.stem in LONG_PAGES else ()) for page in PAGES],
    ids=lambda path: path.stem,
)
def test_console_blocks(page: Path, tmp_path: Path) -> None:
    folder = workplace(tmp_path)
    for block in blocks(page.read_text()):
        played = replay(block, folder)
        assert "internal error" not in played, "what went wrong must not become what is expected"
        if UPDATING:
            page.write_text(page.read_text().replace(f"```console\n{block}```", f"```console\n{played}```", 1))
        else:
            assert without_times(settled(played, block)) == without_times(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_tables(page: Path) -> None:
    text = page.read_text()
    if UPDATING:
        page.write_text(renewed(text))
    else:
        assert renewed(text) == text


def test_every_page_is_a_topic_and_every_topic_a_page() -> None:
    assert sorted(path.name for path in PAGES) == sorted(f"{topic}.md" for topic in TOPICS)
    assert len(set(TOPICS)) == len(TOPICS)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_says_in_its_title_what_it_is_about(page: Path) -> None:
    title = page.read_text().splitlines()[0]
    assert re.fullmatch(r"# [A-Z][^:]+: [^:]+[^.:]", title)
    assert len(title.partition(": ")[2]) <= 100


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_prose_fits_a_screen(page: Path) -> None:
    text = re.sub(r"^```console\n.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith("| ")]
    assert not [line for line in prose if len(line) > WIDEST or line.count("`") % 2], "too long, or code broken off"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_commands_fit_a_screen(page: Path) -> None:
    commands = [exchange.command for block in blocks(page.read_text()) for exchange in parse(block)]
    assert not [line for command in commands for line in command.splitlines() if len(line) > WIDEST - 2]


def test_the_pointers_of_the_pages_lead_to_topics() -> None:
    known = {*TOPICS, *(command.word for command in COMMANDS), "TOPIC"}
    for page in PAGES:
        pointed = re.findall(r"bncli help ([a-zA-Z][a-zA-Z-]*)", page.read_text())
        assert set(pointed) <= known, page.name


def test_the_keys_that_stay_are_in_the_schemas() -> None:
    rows = re.findall(r"^\| `([a-z-]+)[^`]*`[^|]*\| (.*) \|$", (MANUAL / "json.md").read_text(), flags=re.MULTILINE)
    assert rows
    for command, keys in rows:
        schema = (ROOT / "bncli" / "cli" / "schemas" / f"{command}.json").read_text()
        assert all(f'"{key}": ' in schema for key in re.findall(r"`([a-z_0-9]+)`", keys)), command


def test_every_command_names_its_topics() -> None:
    for command in COMMANDS:
        assert command.topics
        assert set(command.topics) <= set(TOPICS)


def test_every_topic_but_the_reference_belongs_to_a_command() -> None:
    pointed = {topic for command in COMMANDS for topic in command.topics}
    assert set(TOPICS) - pointed <= {"auto", "exit-codes", "internals", "optimizers", "pitfalls", "sources", "speed"}


def test_every_method_is_told_of() -> None:
    """Beyond the tables that are made."""
    text = "\n".join(re.sub(r"^\|.*\n", "", page.read_text(), flags=re.MULTILINE) for page in PAGES)
    for choice in CHOICES:
        for method in choice.methods:
            assert re.search(rf"(?<![\w-]){method.word}(?![\w-])", text), method.word


def test_numbers_of_smoothing_are_in_their_summaries() -> None:
    for word, number in [(m.word, m.number) for m in SMOOTHINGS.methods if m.number]:
        method = SMOOTHINGS.method(word)
        assert method is not None
        assert f"[{number}]" in method.summary
