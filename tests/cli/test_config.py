"""`bncli config`: a file of every option that is valid, changes nothing, and can be edited line by line."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bncli.cli.commands import group
from bncli.cli.config import all_settings, is_setting, schema_files, setting_key, settings_of, to_toml, variable_of
from bncli.cli.options import Flag
from tests.cli.conftest import Bncli
from tests.transcripts import without_times


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("BNCLI_")]:
        monkeypatch.delenv(name)


def offers(text: str) -> list[str]:
    """The lines that set an option once the # is gone."""
    return re.findall(r"^# ([a-z-]+ = .*)$", text, flags=re.MULTILINE)


def test_every_option_is_offered_once(bncli: Bncli) -> None:
    text = bncli("config").out
    assert tomllib.loads(text) == {}
    assert sorted(line.partition(" = ")[0] for line in offers(text)) == sorted(all_settings())
    assert set(tomllib.loads("\n".join(offers(text)))) == set(all_settings())
    assert max(map(len, text.splitlines())) <= 100


def test_what_may_be_set_is_what_is_not_of_one_run() -> None:
    """Every option of a command that takes --config is one or the other, and files of a run are never set."""
    keys = set(all_settings())
    assert {"structure", "param", "seed", "threads", "jobs", "folds", "class", "missing", "quiet", "unseen"} <= keys
    assert not keys & {"output", "cuts", "trace", "model", "test", "json", "debug", "config", "keep", "network"}
    assert "missing" not in settings_of("simulate"), "it is a share there, not a token"
    assert "rows" not in settings_of("simulate"), "it is not the limit of a card there"
    for key, flag in all_settings().items():
        assert variable_of(flag) == "BNCLI_" + key.upper().replace("-", "_")


def test_commands_that_agree_on_a_key_mean_the_same_option() -> None:
    """One value may stand for all commands; compare takes several of --metric, and one is as good as a list."""
    for word in group.list_commands(click.Context(group)):
        for key, flag in settings_of(word).items():
            first = all_settings()[key]
            assert (type(flag.type), flag.is_flag) == (type(first.type), first.is_flag) or key == "metric", (word, key)
            assert isinstance(flag, Flag)
            assert is_setting(flag)
            assert setting_key(flag) == key


def test_the_file_as_it_is_changes_no_byte(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(bncli("config").out)
    assert bncli("fit", "iris.csv", "--structure", "nb", "-q", "-o", "plain.bnc").code == 0
    assert bncli("fit", "iris.csv", "--structure", "nb", "-q", "-o", "set.bnc", "--config", "c.toml").code == 0
    assert (tmp_path / "plain.bnc").read_bytes() == (tmp_path / "set.bnc").read_bytes()


_OF_SPLITS = ("group", "time")
"""Columns that this table lacks."""


@pytest.mark.slow
def test_any_line_may_be_uncommented(bncli: Bncli, tmp_path: Path) -> None:
    """It is taken, or refused with one line that names the key and the file where it is not a value for this table."""
    for line in offers(bncli("config").out):
        (tmp_path / "c.toml").write_text(line)
        shown = bncli("config", "--config", "c.toml")
        assert (shown.code, shown.err) == (0, ""), line
        assert tomllib.loads(shown.out) == tomllib.loads(line)
        ran = bncli("fit", "iris.csv", "--param", "map", "--structure", "nb", "-o", "m.bnc", "--config", "c.toml")
        if ran.code:
            key = line.partition(" = ")[0]
            columns = ("class", "categorical", "ignore", "numeric", "weights", "schema", "encoding", "use", *_OF_SPLITS)
            of_labels = ("costs", "threshold", "increasing", "decreasing", "positive")
            assert key in (*columns, *of_labels, "cluster", "knowledge", "prior-network", "prior-rows"), (line, ran.err)
            assert ran.err.count("\n") == 1
            assert f"{key} in c.toml" in ran.err or key == "schema", ran.err


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.recursive(TEXTS | st.booleans() | st.integers() | st.floats(allow_nan=False), st.lists, max_leaves=4))
def test_a_value_as_toml_reads_back(value: object) -> None:
    assert tomllib.loads(f"key = {to_toml(value)}") == {"key": value}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS.filter(bool), column=TEXTS.filter(bool), number=st.integers(0, 99))
def test_what_is_set_is_shown_and_loads_again(
    bncli: Bncli, tmp_path: Path, text: str, column: str, number: int
) -> None:
    lines = [f"class = {to_toml(text)}", f"ignore = {to_toml([column])}", f"[fit]\nseed = {number}"]
    (tmp_path / "c.toml").write_bytes("\n".join(lines).encode())
    shown = bncli("config", "--config", "c.toml")
    assert (shown.code, shown.err) == (0, "")
    assert tomllib.loads(shown.out) == {"class": text, "ignore": [column], "fit": {"seed": number}}
    (tmp_path / "d.toml").write_bytes(shown.out.encode())
    assert bncli("config", "--config", "d.toml") == shown


def test_variables_are_shown_by_name(bncli: Bncli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BNCLI_IGNORE", "a,b")
    monkeypatch.setenv("BNCLI_SEED", "7")
    shown = bncli("config").out
    assert tomllib.loads(shown) == {"ignore": ["a", "b"], "seed": "7"}
    assert 'ignore = ["a", "b"]  # BNCLI_IGNORE\n' in shown
    monkeypatch.setenv("BNCLI_SEED", "seven")
    ran = bncli("config")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "BNCLI_SEED" in ran.err


def test_a_file_is_checked(bncli: Bncli, tmp_path: Path) -> None:
    for text, where in [("k = 2020-01-01", "k in c.toml"), ("[fit]\nk = 'x'", "k of [fit] in c.toml")]:
        (tmp_path / "c.toml").write_text(text)
        ran = bncli("config", "--config", "c.toml")
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert where in ran.err


@pytest.mark.parametrize("word", schema_files())
def test_schemas_are_printed(bncli: Bncli, word: str) -> None:
    ran = bncli("config", "--schema", word)
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["title"] == f"bncli {word} --json"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("fti", "did you mean fit?"),
        ("../fit", "did you mean fit?"),
        ("help", "choose one of describe, fit, "),
        ("", "the value is empty"),
    ],
)
def test_no_schema(bncli: Bncli, word: str, hint: str) -> None:
    ran = bncli("config", "--schema", word)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert hint in ran.err


IDLE = {
    ("fit", "iris.csv", "--structure", "nb", "-o", "m.bnc"): {"window": 3, "gap": 1},
    ("evaluate", "iris.csv", "--structure", "nb", "--folds", "2"): {"window": 3, "gap": 1},
    ("evaluate", "iris.csv", "--structure", "nb", "--folds", "2", "--time", "petal_width"): {"repeats": 3},
    ("compare", "iris.csv", "--learner", "--structure nb", "--folds", "2", "--time", "petal_width"): {"repeats": 3},
    ("compare", "iris.csv", "--learner", "--structure nb", "--folds", "2"): {"window": 3, "gap": 1},
    ("learn-structure", "iris.csv", "--structure", "tan"): {"window": 3, "gap": 1},
    ("verify", "m.bnc"): {"property-seconds": 3, "min-rows": 5},
    ("export", "m.bnc", "--to", "dot"): {"dialect": "sqlite", "key": "id"},
    ("score", "m.bnc", "iris.csv"): {
        "because-seconds": 2,
        "fail-on-drift": True,
        "flip-changes": 1,
        "flip-columns": ["petal_width"],
    },
    ("convergence", "trace.csv"): {"at": 3},
}
"""Commands, and settings that have no effect in them: on the command line each would be an error."""


@pytest.mark.parametrize(("words", "idle"), IDLE.items())
def test_a_setting_without_effect_changes_nothing(
    bncli: Bncli, tmp_path: Path, words: tuple[str, ...], idle: dict[str, object]
) -> None:
    learned = bncli(
        "fit", "iris.csv", "--structure", "nb", "--param", "discriminative", "-o", "m.bnc", "--trace", "trace.csv"
    )
    assert learned.code == 0

    def shown(text: str) -> str:
        return without_times(text).partition("CPU seconds per fold")[0]

    plain = bncli(*words)
    assert plain.code == 0, plain.err
    for key, value in idle.items():
        (tmp_path / "c.toml").write_text(f"[{words[0]}]\n{key} = {to_toml(value)}\n")
        ran = bncli(*words, "--config", "c.toml")
        assert (ran.code, shown(ran.out), shown(ran.err)) == (
            *(plain.code, shown(plain.out)),
            shown(plain.err),
        ), key
        flag = [f"--{key}"] if value is True else [f"--{key}", value[0] if isinstance(value, list) else str(value)]
        refused = bncli(*words, *flag)
        assert (refused.code, refused.err.count("\n")) == (2, 1), key
        assert f"--{key} has no effect" in refused.err
