"""Help: at once, complete, and with examples that use words that exist."""

from __future__ import annotations

import importlib
import os
import pty
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path

import click
import pytest

from bncli.catalogue import CHOICES, MARGINALIZED, OPTIONS
from bncli.cli.commands import BY_WORD, COMMANDS, group
from bncli.cli.help import TOPIC_GROUPS, TOPICS, search, topics_by_synonym
from bncli.cli.options import Flag, kind_metavar
from tests.cli.conftest import Bncli, Ran
from tests.manual_tables import MANUAL
from tests.transcripts import ROOT

WORDS = [command.word for command in COMMANDS]


def test_the_group_lists_every_command(bncli: Bncli) -> None:
    ran = bncli("--help")
    assert ran.code == 0
    assert all(f"\n  {word} " in ran.out for word in WORDS)
    headings = re.findall(r"^(\w[\w ]*):$", ran.out, flags=re.MULTILINE)
    assert headings == ["Examples", *dict.fromkeys(command.task for command in COMMANDS), "Options"]


def test_version(bncli: Bncli) -> None:
    from bncli import __version__

    assert bncli("--version") == (0, f"bncli {__version__}\n", "")


@pytest.mark.parametrize("words", [("--version", "--verbose"), ("--verbose", "--version")])
def test_versions_for_a_bug_report(bncli: Bncli, words: tuple[str, ...]) -> None:
    import platform
    import tomllib

    from bncli import __version__

    ran = bncli(*words)
    assert (ran.code, ran.err) == (0, "")
    shown = dict(re.split("  +", line, maxsplit=1) for line in ran.out.splitlines())
    assert shown["bncli"] == __version__
    assert shown["Python"].startswith(platform.python_version())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (project["optional-dependencies"][extra] for extra in ("cluster", "onnx", "sklearn"))
    for requirement in (*project["dependencies"], *chain(*extras)):
        name = requirement.partition(">")[0]
        try:
            assert shown[name] == version(name)
        except PackageNotFoundError:
            assert shown[name] == "not installed"


@pytest.mark.parametrize("words", [("--verbose",), ("--verbose", "config")])
def test_verbose_goes_with_version(bncli: Bncli, words: tuple[str, ...]) -> None:
    ran = bncli(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("word", WORDS)
def test_help_of_a_command_begins_with_examples(bncli: Bncli, word: str) -> None:
    ran = bncli(word, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.index("Examples:") < ran.out.index("Usage:")
    example = ran.out[ran.out.index("Examples:") : ran.out.index("Usage:")]
    assert f"bncli {word} " in example
    assert max(map(len, example.splitlines())) <= 80
    command = importlib.import_module(f"bncli.cli.{word.replace('-', '_')}").command
    assert example.replace("\\\n", "").split() == ["Examples:", *command.examples.replace("\\\n", "").split()]
    everything = bncli(word, "--help-all").out
    for flag in re.findall(r"(?<=\s)--[a-z-]+", example):
        assert re.search(rf"^ .*{flag}\b", everything[everything.index("Usage:") :], flags=re.MULTILINE), flag


def unwrapped(text: str) -> str:
    """On one line; a line may end at a hyphen."""
    return re.sub(r"(?<=[a-z])-\s+(?=[a-z])", "-", " ".join(text.split()))


@pytest.mark.parametrize("word", ["fit", "evaluate"])
def test_help_all_shows_every_learning_option_with_its_default(bncli: Bncli, word: str) -> None:
    text = unwrapped(bncli(word, "--help-all").out)
    for choice in CHOICES:
        assert choice.flag in text
        learned = "tan or interactions, by cross-validation" if choice.flag == "--structure" else choice.default
        assert f"[{learned}]" in text
        assert all(f" {method.word} {method.summary}" in text for method in choice.methods)
    for option in OPTIONS:
        default = f" [{option.default_text}]" if option.default_text else ""
        value = option.metavar or kind_metavar(option.kind)
        assert " ".join(f"{option.flag} {value} {option.summary}{default}".split()) in text


@pytest.mark.parametrize("word", WORDS)
def test_help_of_a_command_ends_with_what_tells_more(bncli: Bncli, word: str) -> None:
    topics = f"bncli help TOPIC, with TOPIC one of {', '.join(BY_WORD[word].topics)}."
    ends = [unwrapped(bncli(word, how).out.strip().rpartition("\n\n")[2]) for how in ("--help", "--help-all")]
    assert ends == [f"More: bncli {word} --help-all for the other options; {topics}", f"More: {topics}"]


@pytest.mark.parametrize("word", WORDS)
def test_help_all_shows_every_option_and_help_a_part_of_them(bncli: Bncli, word: str) -> None:
    command = group.get_command(click.Context(group), word)
    assert command is not None
    flags = [flag for flag in command.params if isinstance(flag, Flag)]
    everything, everyday = (options_shown(bncli(word, how)) for how in ("--help-all", "--help"))
    assert {max(flag.opts, key=len) for flag in flags} <= everything
    assert everyday < everything
    assert {"--help", "--help-all"} <= everyday


def options_shown(ran: Ran) -> set[str]:
    assert (ran.code, ran.err) == (0, "")
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", ran.out, flags=re.MULTILINE))


def test_the_help_of_fit_has_about_fifteen_options(bncli: Bncli) -> None:
    ran = bncli("fit", "--help")
    shown = options_shown(ran) - {"--help", "--help-all"}
    assert 13 <= len(shown) <= 18
    assert {"--class", "--ignore", "--structure", "--param", "--output", "--json"} <= shown
    assert len(ran.out.splitlines()) <= 40
    assert "nb, tan, kdb, skdb, hill-climb, gbn, kikuchi, interactions, card, auto" in unwrapped(ran.out)
    assert "naive Bayes: the class is the only parent" in bncli("fit", "--help-all").out


@pytest.mark.parametrize("word", WORDS)
def test_the_help_of_a_command_is_about_a_screen(bncli: Bncli, word: str) -> None:
    assert len(bncli(word, "--help").out.splitlines()) <= 60
    assert len(f"  {'learn-structure':15}  {BY_WORD[word].summary}") <= 80, "a line of bncli --help"


def test_help_of_a_learner_is_short_too(bncli: Bncli) -> None:
    assert "--tolerance" not in bncli("compare", "--help").out
    assert "--structure METHOD" in bncli("compare", "--help-all").out


def test_help_all_needs_no_data_and_no_configuration(bncli: Bncli) -> None:
    ran = bncli("fit", "--config", "none.toml", "--help-all")
    assert (ran.code, ran.err) == (0, "")


def test_help_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'scipy', 'pyarrow', 'rich', 'dataclasses', 'importlib.metadata', 'json', 'difflib', 'logging'}"
    commands = (["--help"], ["fit", "--help"], ["fit", "--help-all"], ["export", "--help"], ["score", "--help"])
    for words in (*commands, ["help"], ["help", "structures"], ["help", "kdb"]):
        program = "import atexit, sys; from bncli.__main__ import main; "
        program += f"atexit.register(lambda: sys.stderr.write(str({heavy} & set(sys.modules)))); main()"
        done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
        assert done.stderr == "set()"


def test_help_names_the_parameters_that_can_be_marginalized(bncli: Bncli) -> None:
    text = " ".join(bncli("fit", "--help-all").out.split())
    assert f"in learning and scoring; for --param {', '.join(MARGINALIZED)} " in text


def test_the_manual_lists_every_topic_in_its_group(bncli: Bncli) -> None:
    ran = bncli("help")
    assert (ran.code, ran.err) == (0, "")
    for title, topics in TOPIC_GROUPS:
        group = ran.out.split(f"\n{title}:\n")[1].split("\n\n")[0]
        assert tuple(line.split()[0] for line in group.splitlines()) == topics
        assert all(re.fullmatch(r"  [a-z-]+ +\S.*\S", line) for line in group.splitlines())


@pytest.mark.parametrize("topic", TOPICS)
def test_through_a_pipe_a_topic_is_its_markdown(bncli: Bncli, topic: str) -> None:
    ran = bncli("help", topic)
    written = (MANUAL / f"{topic}.md").read_text()
    assert ran == (0, "".join(x for x in written.splitlines(keepends=True) if not x.startswith("<!--")), "")


def test_a_command_without_a_topic_of_its_own_names_its_topics(bncli: Bncli) -> None:
    ran = bncli("help", "fit")
    assert (ran.code, ran.err) == (0, "")
    assert "`bncli fit --help`" in ran.out
    assert re.findall(r"^- `bncli help (\S+)`: ", ran.out, flags=re.MULTILINE) == list(BY_WORD["fit"].topics)


@pytest.mark.parametrize("word", sorted({*WORDS, *(word for choice in CHOICES for word in choice.words)}))
def test_every_word_of_the_catalogue_is_explained(bncli: Bncli, word: str) -> None:
    ran = bncli("help", word)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("# ")
    assert word in TOPICS or "- `bncli help " in ran.out


def test_a_method_is_explained_with_what_it_takes(bncli: Bncli) -> None:
    out = bncli("help", "acll").out
    assert "- `--structure-score acll`: " in out
    assert "- `--param acll`: " in out
    assert "takes `--pseudo-counts`" in out
    assert "- `bncli help structure-scores`: " in out


@pytest.mark.parametrize(
    ("word", "topic"),
    [
        ("kdb", "structures"),
        ("hdp", "parameters"),
        ("weighted", "parameters"),
        ("cgb", "optimizers"),
        ("mdl", "discretize"),
        ("card", "structures"),
        ("cards", "structures"),
        ("tan", "structures"),
        ("points", "parameters"),
        ("kikuchi", "structures"),
        ("acll", "structure-scores"),
    ],
)
def test_the_topic_about_a_method_comes_first(bncli: Bncli, word: str, topic: str) -> None:
    assert re.findall(r"^- `bncli help (\S+)`: ", bncli("help", word).out, flags=re.MULTILINE)[0] == topic


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("structurs", "structures"), ("penaltys", "penalties"), ("fti", "fit")],
)
def test_a_mistyped_topic_is_one_line_with_the_nearest(bncli: Bncli, typed: str, meant: str) -> None:
    expected = f"Error: the manual has no topic {typed!r}; did you mean 'bncli help {meant}'?\n"
    assert bncli("help", typed) == (2, "", expected)


@pytest.mark.parametrize("typed", ["", "xyzzy", "../catalogue", "a\nb", "%", "[", "."])
def test_a_topic_that_is_like_no_other_is_one_line(bncli: Bncli, typed: str) -> None:
    ran = bncli("help", typed)
    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(r"Error: the manual has no topic .*; type 'bncli help' for the list of topics\n", ran.err)


def on_a_terminal(*words: str, **environment: str) -> tuple[int, str]:
    """The exit code, and what a person sees on a terminal of 80 columns."""
    leader, follower = pty.openpty()
    settings = {"TERM": "xterm-256color", "COLUMNS": "80", "PAGER": "cat", **environment}
    inherited = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "LESS", "CI")}
    command = [sys.executable, "-m", "bncli", *words]
    with subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env={**inherited, **settings}
    ) as process:
        os.close(follower)
        seen = b"".join(iter(lambda: _read(leader), b""))
    os.close(leader)
    return process.returncode, seen.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def test_on_a_terminal_a_topic_is_drawn() -> None:
    code, seen = on_a_terminal("help", "exit-codes")
    assert code == 0
    assert "| code | meaning |" not in seen
    assert "```" not in seen
    assert re.search("^ +Exit codes: how a script can tell", seen)
    assert "\x1b" not in seen, "cat is no pager that is known to pass colours"


def test_the_pager_gets_the_page(tmp_path: Path) -> None:
    pager = tmp_path / "less"
    pager.write_text(f"#!/bin/sh\necho the pager with $LESS\ncat > '{tmp_path / 'page'}'\n")
    pager.chmod(0o755)
    code, seen = on_a_terminal("help", "exit-codes", PAGER=str(pager))
    assert (code, seen) == (0, "the pager with -FRX\n")
    coloured = (tmp_path / "page").read_text()
    assert re.search(r"\x1b\[[0-9;]*3[0-9]", coloured)
    on_a_terminal("help", "exit-codes", PAGER=str(pager), NO_COLOR="1")
    bare = (tmp_path / "page").read_text()
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", bare)
    assert "terminal closed" in bare


def test_a_terminal_that_cannot_draw_gets_the_markdown() -> None:
    assert on_a_terminal("help", "exit-codes", TERM="dumb") == (0, (MANUAL / "exit-codes.md").read_text())


def test_a_pager_that_cannot_be_read_is_one_line() -> None:
    code, seen = on_a_terminal("help", "exit-codes", PAGER="less '")
    assert (code, seen) == (
        2,
        "Error: PAGER is not a command: No closing quotation; set PAGER=cat to print without a pager\n",
    )


def test_a_pager_that_does_not_exist_is_left_out() -> None:
    code, seen = on_a_terminal("help", "exit-codes", PAGER="/nowhere/less")
    assert code == 0
    assert "terminal closed" in seen


def hits(bncli: Bncli, *words: str) -> list[tuple[str, str]]:
    """The topics and headings that a search shows."""
    ran = bncli("help", *words)
    assert (ran.code, ran.err) == (0, "")
    title, *lines = ran.out.splitlines()
    assert title == f"# {' '.join(words)} in the manual"
    found = [re.fullmatch(r"- `bncli help (\S+?)`(?:, (.*?))?: (.+)", line) for line in lines if line]
    assert all(found)
    assert len(found) <= 10
    assert max(map(len, lines)) <= 240
    return [(match[1], match[2] or "") for match in found if match]


def test_other_words_are_searched_for(bncli: Bncli) -> None:
    """A slow search of the files finds the same topics, and those with the words in a heading come first."""
    assert bncli("help", "Speed").out == bncli("help", "speed").out
    shown = [topic for topic, _ in hits(bncli, "approximate", "conditional")]
    pages = {topic: re.sub(r"\s+", " ", (MANUAL / f"{topic}.md").read_text().lower()) for topic in TOPICS}
    assert set(shown) == {topic for topic in TOPICS if "approximate conditional" in pages[topic]}
    assert shown[0] == "structure-scores"
    assert hits(bncli, "Conditional", "approximate") == hits(bncli, "conditional approximate"), (
        "all words, in any order"
    )
    assert ("missing-values", "") in hits(bncli, "missing values")[:1]
    assert bncli("help", "MISSING  values").out.splitlines()[2:] == bncli("help", "missing values").out.splitlines()[2:]


@pytest.mark.parametrize(
    ("word", "topic"),
    [
        ("fairness", "groups"),
        ("refuse", "groups"),
        ("time series", "validation"),
        ("auc", "evaluate"),
        ("importance", "explain"),
        ("threshold", "decisions"),
        ("cost", "decisions"),
        ("leakage", "pitfalls"),
        ("drift", "monitor"),
        ("scorecard", "export"),
        ("sklearn", "python"),
        ("customer", "validation"),
        ("patient", "validation"),
        ("overfitting", "penalties"),
        ("calibrated", "calibration"),
        ("missing", "missing-values"),
        ("onnx", "export"),
        ("explainability", "explain"),
        ("SHAP", "explain"),
        ("refused", "groups"),
        ("postgresql", "export"),
        ("confidence interval", "evaluate"),
        ("forbid arc", "knowledge"),
        ("imbalanced", "decisions"),
        ("counterfactual", "what-if"),
        ("xgboost", "which-one"),
        ("predict", "score"),
        ("header", "data"),
        ("docker", "install"),
        ("uncertainty", "intervals"),
        ("audit", "dossier"),
        ("fastapi", "web-service"),
    ],
)
def test_a_word_leads_to_the_topic_that_its_user_needs(bncli: Bncli, word: str, topic: str) -> None:
    assert hits(bncli, word)[0] == (topic, "")


def test_every_synonym_leads_to_its_topic() -> None:
    """None is the name of a topic, a command or a method, each of which has a page of its own."""
    last = {topic: word for word, topic in topics_by_synonym().items()}
    for topic, word in last.items():
        found = search(word)
        assert (found[0].topic, found[0].heading) == (topic, ""), word
    for word in topics_by_synonym():
        assert word not in TOPICS, word
        assert not any(choice.method(word) for choice in CHOICES), word


def test_prose_comes_before_examples(bncli: Bncli) -> None:
    for hit in search("threshold"):
        assert "$" not in hit.line, "the topics have lines of prose about it"
