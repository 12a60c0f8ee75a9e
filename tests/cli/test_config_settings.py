"""Options that are set: flags before variables before the file, and one line for everything that is wrong."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import Bncli, Ran


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("BNCLI_")]:
        monkeypatch.delenv(name)


def configured(folder: Path, text: str, name: str = "c.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def recipe(bncli: Bncli, *words: object) -> dict[str, object]:
    """What a model that `fit` learns says of how it was made."""
    ran = bncli("fit", "iris.csv", "-q", "-o", "m.bnc", *words)
    assert (ran.code, ran.err) == (0, "")
    shown: dict[str, object] = json.loads(bncli("inspect", "m.bnc", "--json").out)["recipe"]
    return shown


def refused(ran: Ran, *parts: str) -> None:
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert len(ran.err) < 700
    assert "internal error" not in ran.err
    for part in parts:
        assert part in ran.err


KINDS = [
    ("structure", "structure", '"tan"', "nb", ("kdb", "kdb")),
    ("smoothing", "smoothing", '"laplace:2"', "fgg:3", ("bdeu:4", "bdeu:4")),
    ("seed", "seed", "3", "4", ("5", 5)),
    ("level", "level", "2", "3", ("1", 1)),
    ("penalty", "penalty", "0.5", "2", ("3", 3.0)),
    ("tolerance", "tolerance", "1e-3", "1e-4", ("1e-5", 1e-5)),
]
"""Option, key, its value in the file, in the variable, and typed with what a recipe makes of it."""


@pytest.mark.parametrize(("option", "key", "file", "variable", "typed"), KINDS, ids=[kind[0] for kind in KINDS])
def test_what_is_typed_wins_then_the_variable_then_the_file(
    bncli: Bncli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    key: str,
    file: str,
    variable: str,
    typed: tuple[str, object],
) -> None:
    others = {"max-iterations": "3", "penalty": "1"}
    if option == "seed":  # it draws the folds of the calibration
        others = {"param": "map", "calibrate": "temperature"}
    lines = [f"{name} = '{value}'\n" for name, value in others.items()]
    path = configured(tmp_path, f"{''.join(lines)}[fit]\n{option} = {file}\n")
    unset = recipe(bncli, *(f"--{name}={value}" for name, value in others.items()), f"--{option}", file.strip('"'))
    assert recipe(bncli, "--config", path) == unset
    monkeypatch.setenv(f"BNCLI_{option.upper()}", variable)
    assert recipe(bncli, "--config", path) == recipe(bncli, "--config", path, f"--{option}", variable)
    assert recipe(bncli, "--config", path, f"--{option}", typed[0])[key] == typed[1]
    monkeypatch.setenv(f"BNCLI_{option.upper()}", "")
    assert recipe(bncli, "--config", path)[key] == unset[key]


def test_a_table_of_a_command_wins_over_the_top(bncli: Bncli, tmp_path: Path) -> None:
    path = configured(tmp_path, 'param = "map"\nstructure = "tan"\n[fit]\nstructure = "nb"\n[evaluate]\nfolds = 3\n')
    assert recipe(bncli, "--config", path)["structure"] == "nb"
    report = json.loads(bncli("evaluate", "iris.csv", "--config", path, "--json", "-q").out)
    assert len(report["folds"]) == 3
    assert (
        report["protocol"]
        == json.loads(bncli("evaluate", "iris.csv", "--folds", 3, "--param", "map", "--json", "-q").out)["protocol"]
    )


@pytest.mark.parametrize(("value", "switched"), [("true", True), ("false", False)])
def test_switches(bncli: Bncli, tmp_path: Path, value: str, switched: bool) -> None:
    path = configured(tmp_path, f'param = "map"\nforest = {value}\nquiet = {value}\n')
    ran = bncli("fit", "iris.csv", "--config", path)
    assert ran.code == 0
    assert (ran.err == "") is switched
    assert recipe(bncli, "--config", path)["forest"] is switched


@pytest.mark.parametrize(
    ("word", "switched"), [("1", True), ("yes", True), ("True", True), ("0", False), ("no", False)]
)
def test_switches_as_variables(bncli: Bncli, monkeypatch: pytest.MonkeyPatch, word: str, switched: bool) -> None:
    monkeypatch.setenv("BNCLI_FOREST", word)
    assert recipe(bncli, "--param", "map")["forest"] is switched
    monkeypatch.setenv("BNCLI_FOREST", "perhaps")
    refused(bncli("fit", "iris.csv"), "'perhaps' is neither true nor false, BNCLI_FOREST")


def test_options_that_may_be_repeated(bncli: Bncli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ignored(*words: object) -> int:
        ran = bncli("fit", "iris.csv", "--param", "map", "--structure", "nb", "--json", "-q", *words)
        return 4 - int(json.loads(ran.out)["attributes"])

    path = configured(tmp_path, 'ignore = ["petal_width", "petal_length", "sepal_width"]\n')
    assert ignored("--config", path) == 3
    assert ignored("--config", configured(tmp_path, 'ignore = "petal_width"\n', "one.toml")) == 1
    monkeypatch.setenv("BNCLI_IGNORE", "petal_width,petal_length")
    assert ignored("--config", path) == 2
    assert ignored("--config", path, "--ignore", "sepal_width") == 1


def test_what_is_typed_may_need_a_setting(bncli: Bncli, tmp_path: Path) -> None:
    path = configured(tmp_path, 'discretize = "equal-width"\nparam = "discriminative"\npenalty = 1\nk = 2\n')
    made = recipe(bncli, "--config", path, "--bins", 4, "--coding", "thermometer", "--structure", "nb")
    assert (made["discretize"], made["bins"], made["param"], made["k"]) == ("equal-width", 4, "discriminative", None)
    assert recipe(bncli, "--config", path, "--structure", "kdb")["k"] == 2


def test_a_setting_without_effect_is_left_aside_with_a_note(bncli: Bncli, tmp_path: Path) -> None:
    path = configured(tmp_path, 'structure = "kikuchi"\nlevel = 2\n')
    ran = bncli("fit", "iris.csv", "--config", path, "--param", "map", "-o", "m.bnc")
    notes = [line for line in ran.err.splitlines() if line.startswith("Note: ")]
    assert ran.code == 0
    assert all(f"{key} in {path} is ignored" in note for key, note in zip(["structure", "level"], notes, strict=True))
    assert json.loads(bncli("inspect", "m.bnc", "--json").out)["structure"]["method"] == "tan"


def test_settings_of_other_commands_are_ignored(bncli: Bncli, tmp_path: Path) -> None:
    path = configured(
        tmp_path,
        'structure = "nb"\nparam = "map"\nfolds = 7\njobs = 1\n[score]\nunseen = "error"\n[compare]\nrepeats = 9\n',
    )
    assert recipe(bncli, "--config", path)["structure"] == "nb"
    scored = bncli("score", "m.bnc", "iris.csv", "--config", path, "-q")
    assert scored.code == 0
    assert scored.out == bncli("score", "m.bnc", "iris.csv", "-q").out
    for words in (
        ["simulate", "m.bnc", "--rows", 5, "--config", path, "-q"],
        ["export", "m.bnc", "--to", "dot", "--config", path, "-q"],
        ["discretize", "iris.csv", "--cuts-out", "cuts.json", "--config", path, "-q"],
    ):
        assert bncli(*words).code == 0, words


def test_score_takes_what_concerns_it(bncli: Bncli, tmp_path: Path) -> None:
    recipe(bncli, "--param", "map", "--structure", "nb", "--discretize", "mdl")
    text = (tmp_path / "iris.csv").read_text()
    (tmp_path / "less.csv").write_text("\n".join(line.split(",", 1)[1] for line in text.splitlines()))
    assert bncli("score", "m.bnc", "less.csv").code == 3
    path = configured(tmp_path, "allow-missing-columns = true\nquiet = true\n")
    ran = bncli("score", "m.bnc", "less.csv", "--config", path)
    assert (ran.code, ran.err) == (0, "")


def test_evaluate_leaves_aside_what_its_protocol_does_not_use(bncli: Bncli, tmp_path: Path) -> None:
    recipe(bncli, "--param", "map", "--structure", "nb")
    path = configured(
        tmp_path,
        'folds = 3\nrepeats = 2\nallow-missing-columns = true\nk = 2\ncategorical = ["petal_width"]\nparam = "map"\n',
    )
    for words in (["--model", "m.bnc"], ["--test", "iris.csv"], []):
        ran = bncli("evaluate", "iris.csv", "--config", path, "--json", *words)
        assert ran.code == 0, ran.err
    plain, settled = [
        json.loads(bncli("evaluate", "iris.csv", "--model", "m.bnc", "--json", "-q", *words).out)
        for words in ([], ["--config", path])
    ]
    assert {**plain, "seconds": None} == {**settled, "seconds": None}
    refused(bncli("evaluate", "iris.csv", "--model", "m.bnc", "--folds", 3), "--folds has no effect with --model")


def test_compare_takes_its_own(bncli: Bncli, tmp_path: Path) -> None:
    """Its learners say their options themselves; --metric, which is another thing for auto, may be set for both."""
    path = configured(
        tmp_path,
        'structure = "kdb"\nmetric = "error"\n[compare]\nfolds = 2\njobs = 1\nlearner = ["--param map", "a="]\n',
    )
    ran = bncli("compare", "iris.csv", "--config", path, "--json", "-q", "--learner", "--param map --structure nb")
    report = json.loads(ran.out)
    assert [learner["name"] for learner in report["learners"]] == ["nb map"]
    assert report["metrics"] == ["error"]


def test_the_file_may_be_named_by_a_variable(bncli: Bncli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BNCLI_CONFIG", str(configured(tmp_path, 'structure = "nb"\nparam = "map"\n')))
    assert recipe(bncli)["structure"] == "nb"
    other = configured(tmp_path, 'structure = "tan"\nparam = "map"\n', "other.toml")
    assert recipe(bncli, "--config", other)["structure"] == "tan"
    assert recipe(bncli, "--config", "nowhere.toml", "--config", other)["structure"] == "tan", "the last one counts"
    monkeypatch.setenv("BNCLI_CONFIG", "nowhere.toml")
    refused(bncli("fit", "iris.csv"), "cannot read the configuration: no such file or directory, nowhere.toml")
    for words in (["help"], ["completion", "bash"], ["inspect", "m.bnc"], ["fit", "--help"]):
        assert bncli(*words).code == 0
    monkeypatch.setenv("BNCLI_CONFIG", "")
    assert recipe(bncli, "--param", "map")["structure"] == "tan"


def test_a_pipe_is_read(bncli: Bncli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text('structure = "nb"\nparam = "map"\n'))
    writer.start()
    assert recipe(bncli, "--config", "pipe")["structure"] == "nb"
    writer.join()


def test_a_mark_of_byte_order_and_line_ends_of_other_systems(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b'\xef\xbb\xbfstructure = "nb"\r\nparam = "map"\r\n')
    assert recipe(bncli, "--config", "c.toml")["structure"] == "nb"


BAD_TEXTS = [
    ('strukture = "nb"', "there is no option 'strukture' to set, c.toml; did you mean structure?"),
    ("output = 'x'", "there is no option 'output' to set, c.toml"),
    ("[fti]\nk = 1", "there is no command 'fti', in c.toml; did you mean fit?"),
    ("[structure]\nk = 1", "there is no command 'structure'"),
    ("[score]\nk = 1", "score has no option 'k' to set, [score] in c.toml"),
    ("[inspect]\nquiet = true", "inspect has no option 'quiet' to set, [inspect] in c.toml; inspect has no options"),
    ("[fit.more]\nk = 1", "fit has no option 'more' to set"),
    ("k = 'abc'", "'abc' is not a whole number of at least 0, k in c.toml"),
    ("k = true", "the value is neither a string nor a number, k in c.toml"),
    ("k = 2020-01-01", "the value is neither a string nor a number, k in c.toml"),
    ("k = [1]", "k takes one value, not a list, k in c.toml"),
    ("k = nan", "'nan' is not a whole number"),
    ("k = 0x" + "f" * 5000, "the number has more than 400 digits, k in c.toml"),
    ("k = " + "9" * 5000, "the configuration is not valid TOML"),
    ("k = ''", "k in c.toml"),
    ("forest = 3", "'3' is neither true nor false, forest in c.toml"),
    ("structure = 'tam'", "unknown --structure 'tam', structure in c.toml; did you mean tan?"),
    ("structure = 'no/where.json'", "there is no structure file 'no/where.json': there is no folder 'no', structure"),
    ("smoothing = 'laplace:x'", "smoothing in c.toml"),
    ("param = 'mapp'", "param in c.toml; did you mean map?"),
    ("class = 'nothing'", "there is no column 'nothing', iris.csv, class in c.toml"),
    ("delimiter = 'ab'", "delimiter in c.toml"),
    ("ignore = [['x']]", "the value is neither a string nor a number, ignore in c.toml"),
    ("ignore = {a = 1}", "there is no command 'ignore'"),
    ("k = " + "[" * 200_000, "the configuration cannot be read: it is nested too deeply, c.toml"),
    ("x" * 100_000 + " = 1", "there is no option"),
    ("k = '" + "x" * 100_000 + "'", "'xxx"),
    ("k = '" + "x" * 2_000_000 + "'", "the configuration is longer than the maximum of 1,048,576 bytes, c.toml"),
    ("k = 1\nk = 2", "the configuration is not valid TOML"),
    (
        "k 1",
        (
            "the configuration is not valid TOML: Expected '=' after a key in a key/value "
            "pair (at line 1, column 3), c.toml; a config"
        ),
    ),
    ("\0", "the configuration is not valid TOML"),
]


@pytest.mark.parametrize(("text", "line"), BAD_TEXTS, ids=[text[:18] for text, _ in BAD_TEXTS])
def test_one_line_says_what_is_wrong(bncli: Bncli, tmp_path: Path, text: str, line: str) -> None:
    configured(tmp_path, text)
    refused(bncli("fit", "iris.csv", "--config", "c.toml"), line)


def test_files_that_are_none(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    refused(bncli("fit", "iris.csv", "--config", tmp_path), "this is a folder")
    refused(bncli("fit", "iris.csv", "--config", "binary"), "the configuration is not valid TOML", "binary")
    refused(bncli("fit", "iris.csv", "--config", "/dev/zero"), "the configuration is longer than the maximum of")
    refused(bncli("fit", "iris.csv", "--config", ""), "the value is empty")
    refused(bncli("fit", "iris.csv", "--config", "a\0b"), "cannot read the configuration")
    assert recipe(bncli, "--param", "map", "--config", "/dev/null")["structure"] == "tan"
