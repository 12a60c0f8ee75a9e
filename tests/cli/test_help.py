"""Help: at once, complete, and with examples that use words that exist."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bncli.catalogue import CHOICES, COMMANDS, MARGINALIZED, OPTIONS
from bncli.cli.numbers import metavar
from tests.cli.conftest import Bncli

WORDS = [command.word for command in COMMANDS]


def test_the_group_lists_every_command(bncli: Bncli) -> None:
    ran = bncli("--help")
    assert ran.code == 0
    assert all(f"\n  {word} " in ran.out for word in WORDS)


def test_version(bncli: Bncli) -> None:
    from bncli import __version__

    assert bncli("--version") == (0, f"bncli {__version__}\n", "")


@pytest.mark.parametrize("word", WORDS)
def test_help_of_a_command_begins_with_examples(bncli: Bncli, word: str) -> None:
    ran = bncli(word, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.index("Examples:") < ran.out.index("Usage:")
    example = ran.out[ran.out.index("Examples:") : ran.out.index("Usage:")]
    assert f"bncli {word} " in example
    for flag in re.findall(r"(?<=\s)--[a-z-]+", example):
        assert re.search(rf"^ .*{flag}\b", ran.out[ran.out.index("Usage:") :], flags=re.MULTILINE), flag


@pytest.mark.parametrize("word", ["fit", "evaluate"])
def test_help_shows_every_learning_option_with_its_default(bncli: Bncli, word: str) -> None:
    text = " ".join(bncli(word, "--help").out.split())
    for choice in CHOICES:
        assert choice.flag in text
        assert f"[{choice.default}]" in text
        assert all(f" {method.word} {method.summary}" in text for method in choice.methods)
    for option in OPTIONS:
        default = f" [{option.shown_default}]" if option.shown_default else ""
        value = option.metavar or metavar(option.kind)
        assert " ".join(f"{option.flag} {value} {option.summary}{default}".split()) in text


def test_help_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'scipy', 'pyarrow', 'rich', 'dataclasses', 'importlib.metadata', 'json', 'difflib', 'logging'}"
    for words in (["--help"], ["fit", "--help"]):
        program = f"import sys; from bncli.cli.run import run; run({words!r})"
        program += f"; sys.stderr.write(str({heavy} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stderr == "set()"


def test_help_names_the_parameters_that_can_be_marginalized(bncli: Bncli) -> None:
    text = " ".join(bncli("fit", "--help").out.split())
    assert f"(summed out), in learning and in scoring; it goes with --param {', '.join(MARGINALIZED)} " in text
