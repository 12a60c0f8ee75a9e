"""Options, arguments and commands that do not exist: one line that names what was meant."""

from __future__ import annotations

import re

import click
import pytest

import bncli as package
from bncli.cli.command import _OTHER_NAMES, meant_options
from bncli.cli.commands import BY_WORD, COMMANDS, group
from tests.cli.conftest import Bncli

ANYWHERE = {
    name.removeprefix("--")
    for command in COMMANDS
    for parameter in getattr(group.get_command(click.Context(group), command.word), "params", ())
    for name in parameter.opts
}


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("fit iris.csv --target class", "did you mean --class COLUMN?"),
        ("evaluate iris.csv --label class", "did you mean --class COLUMN?"),
        ("fit iris.csv --y=class", "did you mean --class COLUMN?"),
        ("score iris.bnc iris.csv --jsonl", "did you mean --output-format jsonl?"),
        ("explain iris.bnc iris.csv --row 3", "did you mean --rows N|A-B?"),
        ("score iris.bnc iris.csv --rows 3-5", "did you mean --row N|A-B?"),
        ("fit iris.csv --out iris.bnc", "did you mean -o FILE?"),
        ("fit iris.csv --cv 5", "bncli evaluate and bncli compare have --folds"),
        ("fit iris.csv --folds 5", "bncli evaluate and bncli compare have --folds"),
        ("evaluate iris.csv --cv 5", "did you mean --folds N?"),
        ("explain iris.bnc --seed 1", "its result does not depend on random numbers"),
        ("fit iris.csv --random-state 1", "did you mean --seed N?"),
        ("fit iris.csv --jobs 2", "did you mean --threads N?"),
        ("fit iris.csv -j 2", "did you mean --threads N?"),
        ("compare iris.csv -j 2", "did you mean --jobs N?"),
        ("inspect iris.bnc --format json", "did you mean --json?"),
        ("export iris.bnc --format bif", "did you mean --to ["),
        ("fit iris.csv --sep ,", "did you mean --delimiter CHAR?"),
        ("fit iris.csv --delimeter ,", "did you mean --delimiter CHAR?"),
        ("score iris.bnc iris.csv --verbose", "bncli fit and bncli evaluate have --verbose"),
        ("score iris.bnc iris.csv -v", "bncli fit and bncli evaluate have --verbose"),
        ("score iris.bnc iris.csv --id class", "did you mean --keep COLUMN,...?"),
        ("score --model iris.bnc iris.csv", "files need no option: bncli score MODEL [DATA...]"),
        ("evaluate iris.csv --fairness class", "did you mean --by COLUMN[,COLUMN]?"),
        ("fit iris.csv --alpha 1", "did you mean --penalty LAMBDA|cv?"),
        ("score iris.bnc iris.csv --target class", "the model file contains the name of its class"),
        ("inspect iris.bnc -o x", "the result goes to the standard output; use > FILE to save it"),
        ("report iris.bnc iris.csv --output-format html", "bncli score and bncli simulate have --output-format"),
        ("evaluate iris.csv --ci", "every figure is printed with its 95 % interval"),
        ("evaluate iris.csv --groups class", "did you mean --group COLUMN,... or --by COLUMN[,COLUMN]?"),
        ("fit iris.csv --forbid a,b", "did you mean --knowledge FILE?"),
        ("fit iris.csv --lines 8", "did you mean --rows N?"),
        ("fit iris.csv --xyzzy", "bncli fit --help-all lists its options"),
        ("fit iris.csv -x", "bncli fit --help-all lists its options"),
        ("inspect iris.bnc --threads 2", "bncli describe, bncli fit, bncli score and others have --threads"),
    ],
)
def test_an_unknown_option_gets_the_one_that_was_meant(bncli: Bncli, words: str, hint: str) -> None:
    ran = bncli(*words.split())
    assert (ran.code, ran.out) == (2, "")
    option = next(word for word in words.split() if word.startswith("-") and word != "-").partition("=")[0]
    assert ran.err.startswith(f"Error: bncli {words.split()[0]} has no option '{option}'; {hint}")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("explain iris.bnc iris.csv 17", "there is no file '17'; did you mean --rows 17?"),
        ("score iris.bnc iris.csv 3-5", "there is no file '3-5'; did you mean --row 3-5?"),
        ("fit iris.csv y=class", "there is no file 'y=class'; did you mean --class class?"),
        ("fit iris.csv k=2", "there is no file 'k=2'; did you mean --k 2?"),
        ("score iris.bnc keep=class", "there is no file 'keep=class'; did you mean --keep class?"),
    ],
)
def test_a_number_of_a_row_or_an_assignment_is_no_file(bncli: Bncli, words: str, hint: str) -> None:
    assert bncli(*words.split()) == (2, "", f"Error: {hint}\n")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("export iris.bnc --to postgresql", "did you mean --to sql --dialect postgres?"),
        ("export iris.bnc --to js", "did you mean --to javascript?"),
        ("export iris.bnc --dialect postgresql", "did you mean --dialect postgres?"),
        ("fit iris.csv --dates of", "did you mean --dates off?"),
    ],
)
def test_an_unknown_word_gets_the_one_that_was_meant(bncli: Bncli, words: str, hint: str) -> None:
    ran = bncli(*words.split())
    assert (ran.code, ran.out) == (2, "")
    typed = words.split()[-1]
    assert re.fullmatch(
        rf"Error: Invalid value for '--[a-z]+': '{typed}' is not one of [^;]*; {re.escape(hint)}\n", ran.err
    )


@pytest.mark.parametrize("words", ["export iris.bnc --to xyzzy", "fit iris.csv --k x"])
def test_other_bad_values_keep_their_message(bncli: Bncli, words: str) -> None:
    ran = bncli(*words.split())
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean" not in ran.err


def test_a_file_may_have_an_equals_sign(bncli: Bncli) -> None:
    with open("iris.csv") as file, open("k=2", "w") as copy:
        copy.write(file.read())
    assert bncli("describe", "k=2").code == 0
    assert "no such file" in bncli("describe", "week=7").err


def test_in_python_the_same_names_are_known() -> None:
    for word, meant in (("y", "class_"), ("target", "class_"), ("n_jobs", "threads"), ("random_state", "seed")):
        with pytest.raises(TypeError, match=f"there is no option '{word}'; did you mean '{meant}'"):
            package.fit({"a": [1, 2], "class": ["x", "y"]}, **{word: "class"})


def test_the_table_of_other_names_is_true() -> None:
    """Every option in it exists, and every name in it leads to its option, written in any way."""
    for option, others in _OTHER_NAMES.items():
        assert option.partition(" ")[0] in ANYWHERE
        for name in others.split():
            assert option in meant_options(f"--{name}") == meant_options(name.replace("-", "_").upper())
            assert re.fullmatch(r"[a-z0-9-]+", name)


@pytest.mark.parametrize(
    ("typed", "meant"), [("predict", "score"), ("train", "fit"), ("test", "evaluate"), ("drift", "monitor")]
)
def test_a_command_by_another_name(bncli: Bncli, typed: str, meant: str) -> None:
    assert bncli(typed, "x") == (2, "", f"Error: there is no command {typed!r}; did you mean {meant}?\n")
    assert typed not in BY_WORD
