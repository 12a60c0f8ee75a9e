"""Completion: what the scripts ask for and are told, in the real shells where they are installed."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bncli.catalogue import SMOOTHINGS, STRUCTURES
from bncli.cli.commands import COMMANDS
from bncli.cli.completion import SHELLS
from bncli.cli.help import TOPICS
from tests.cli.conftest import Bncli
from tests.transcripts import ROOT, workplace

Told = Callable[..., list[str]]
COLUMNS = ["sepal_length", "sepal_width", "petal_length", "petal_width", "class"]
ODD = 'petal width,a:b,x=1,$(touch owned),it\'s,*,"line\nbreak",,class\n1,2,3,4,5,6,7,8,a\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workplace(tmp_path)
    shutil.copy(ROOT / "sample_data" / "iris.csv", tmp_path / "iris.csv")
    (tmp_path / "odd table.csv").write_text(ODD)
    return tmp_path


@pytest.fixture
def told(bncli: Bncli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Told:
    """The values (`<file>` for the names of files) that are told for a line, in this process."""
    (tmp_path / "odd table.csv").write_text(ODD)

    def asked(line: str, shell: str = "zsh") -> list[str]:
        monkeypatch.setenv("_BNCLI_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_LINE", line)
        ran = bncli()
        assert (ran.code, ran.err) == (0, "")
        items = [row.split("\t") for row in ran.out.splitlines()]
        return ["<file>" if item[0] == "file" else item[1] for item in items]

    return asked


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("bncli ", [command.word for command in COMMANDS]),
        ("bncli f", ["fit"]),
        ("bncli nothing ", []),
        ("bncli fit iris.csv --smo", ["--smoothing"]),
        ("bncli fit --help", ["--help", "--help-all"]),
        ("bncli fit iris.csv --smoothing ", list(SMOOTHINGS.words)),
        ("bncli fit iris.csv --smoothing m", ["mle", "m-estimate"]),
        ("bncli fit iris.csv --structure=k", ["kdb", "kikuchi", "<file>"]),
        ("bncli learn-structure iris.csv --structure ", list(STRUCTURES.words)),
        ("bncli fit iris.csv --early-stop ", ["cv", "none"]),
        ("bncli fit iris.csv --format p", ["parquet"]),
        ("bncli fit iris.csv --k ", []),
        ("bncli score m.bnc iris.csv --explain ", []),
        ("bncli fit ", ["<file>"]),
        ("bncli fit iris.csv --config ", ["<file>"]),
        ("bncli completion ", list(SHELLS)),
        ("bncli help stru", [topic for topic in TOPICS if topic.startswith("stru")]),
        ("bncli config --schema s", ["score", "simulate"]),
        ("bncli fit iris.csv --class ", COLUMNS),
        ("bncli fit iris.csv --class=pe", ["petal_length", "petal_width"]),
        ("bncli fit iris.csv -q --ignore class --numeric s", ["sepal_length", "sepal_width"]),
        ("bncli score m.bnc iris.csv --keep petal_", ["petal_length", "petal_width"]),
        ("bncli score m.bnc --keep ", []),
        ("bncli fit 'odd table.csv' --class \"petal w", ["petal width"]),
        ("bncli fit odd\\ table.csv --class petal\\ ", ["petal width"]),
        ("bncli fit 'odd table.csv' --class ", ["petal width", "a:b", "x=1", "$(touch owned)", "it's", "*", "class"]),
        ("bncli fit missing.csv --class ", []),
        ("bncli fit - --class ", []),
        ("bncli fit iris.csv missing.csv --ignore ", []),
        ("bncli fit iris.csv --delimiter nonsense --class ", []),
    ],
)
def test_what_is_told(told: Told, line: str, values: list[str]) -> None:
    for shell in SHELLS:
        assert told(line, shell) == values


def test_columns_of_other_tables(told: Told, tmp_path: Path) -> None:
    (tmp_path / "iris.csv.gz").write_bytes(gzip.compress((tmp_path / "iris.csv").read_bytes()))
    (tmp_path / "many").mkdir()
    shutil.copy(tmp_path / "iris.csv", tmp_path / "many")
    (tmp_path / "none").mkdir()
    for data, columns in [("iris.csv.gz", COLUMNS), ("many", COLUMNS), ("none", []), (f"{tmp_path}/iris.csv", COLUMNS)]:
        assert told(f"bncli fit {data} --class ") == columns


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\0" * 5000, b"\x1f\x8bnot gzip", b"PAR1PAR1", b"ARROW1\0\0", b"a,a\n1,2\n", b'"a', b"\xff\xfe,b\n"],
)
def test_a_hostile_table_is_no_news(told: Told, tmp_path: Path, content: bytes) -> None:
    for name in ("hostile.csv", "hostile.csv.gz", "hostile.parquet"):
        (tmp_path / name).write_bytes(content)
        told(f"bncli fit {name} --class ")


def test_a_pipe_is_not_waited_for(told: Told, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert told("bncli fit pipe.csv --class ") == []


@pytest.mark.parametrize("instruction", ["bash", "bash_", "tcsh_complete", "zsh_nonsense", "x"])
def test_a_question_that_is_none(bncli: Bncli, monkeypatch: pytest.MonkeyPatch, instruction: str) -> None:
    monkeypatch.setenv("_BNCLI_COMPLETE", instruction)
    assert bncli("fit") == (0, "", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_the_same_in_both_ways(bncli: Bncli, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    typed = bncli("completion", shell)
    monkeypatch.setenv("_BNCLI_COMPLETE", f"{shell}_source")
    assert typed == bncli()
    assert f"_BNCLI_COMPLETE={shell}_complete" in typed.out


def test_an_unknown_shell(bncli: Bncli) -> None:
    ran = bncli("completion", "tcsh")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "'bash', 'zsh', 'fish'" in ran.err


@pytest.mark.parametrize(("word", "hint"), [("fti", "did you mean fit?"), ("qqq", "the commands are describe, fit,")])
def test_a_mistyped_command(bncli: Bncli, word: str, hint: str) -> None:
    ran = bncli(word, "iris.csv")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"Error: there is no command '{word}'; {hint}")


def test_numpy_is_loaded_for_columns_alone() -> None:
    program = (
        "import sys; from bncli.cli.main import run; code = run(sys.argv[1:]);"
        "heavy = {'numpy', 'scipy', 'rich', 'pyarrow'} & set(sys.modules); sys.exit(code or len(heavy))"
    )
    for line in ("bncli ", "bncli fit --str", "bncli fit iris.csv --structure ", "bncli evaluate x.csv --config "):
        environment = os.environ | {"_BNCLI_COMPLETE": "bash_complete", "COMP_LINE": line}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


def shell_says(folder: Path, *words: str) -> list[str]:
    environment = os.environ | {"PATH": f"{folder / '.programs'}:{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


_ASK_BASH = """
source <(bncli completion bash)
compopt() { echo "<$2>"; }
while IFS=$'\\t' read -r -a COMP_WORDS; do
    [[ ${COMP_WORDS[-1]} == . ]] && COMP_WORDS[-1]=
    COMP_LINE="${COMP_WORDS[*]}"
    COMP_LINE=${COMP_LINE// = /=} COMP_LINE=${COMP_LINE// : /:}
    COMP_LINE=${COMP_LINE/% :/:}
    COMP_POINT=${#COMP_LINE} COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _bncli_completion bncli && echo "${COMPREPLY[@]}"
done
"""


@needs("bash")
def test_bash(folder: Path) -> None:
    """Words as bash breaks them, a tab between them, `.` for the empty one; what comes back is quoted for the line."""
    asked = {
        "bncli\tf": "fit",
        "bncli\tfit\t.": "<default>\n",
        "bncli\tfit\tiris.csv\t--class\t=\tpe": "petal_length petal_width",
        "bncli\tfit\todd\\ table.csv\t--class\ta\t:": "b",
        "bncli\tfit\todd\\ table.csv\t--class\t.": "petal\\ width a:b x=1 \\$\\(touch\\ owned\\) it\\'s \\* class",
        "bncli\tfit\todd\\ table.csv\t--class\t'p": "petal width",
        "bncli\tfit\todd\\ table.csv\t--class\t'$": "",
        "bncli\tfit\tmissing.csv\t--class\t.": "",
    }
    program = f"{_ASK_BASH.strip()} <<'END'\n" + "\n".join(asked) + "\nEND\n"
    assert "\n".join(shell_says(folder, "bash", "--norc", "-c", program)) == "\n".join(asked.values())
    assert not (folder / "owned").exists()


_ASK_ZSH = """
compdef() { }
compset() { }
_path_files() { print "<file>" }
_describe() { print -rl -- "${(@P)3}" }
compadd() { print -rl -- "${(@P)4}" }
source ./script
ask() { words=("$@"); CURRENT=$#; _bncli_completion }
"""


@needs("zsh")
def test_zsh(folder: Path) -> None:
    """The script with functions in place of the builtins that need a terminal, which quote what they insert."""
    (folder / "script").write_text("\n".join(shell_says(folder, "bncli", "completion", "zsh")))
    assert shell_says(folder, "zsh", "-n", "script") == []
    asked = {
        "comple": ["completion:Print the completion script for bash, zsh..."],
        "fit iris.csv --structure hill": ["<file>", "hill-climb"],
        "fit iris.csv --class=petal_w": ["petal_width"],
        "fit 'odd\\ table.csv' --class ''": ["petal width", "a:b", "x=1", "$(touch owned)", "it's", "*", "class"],
        "fit missing.csv --class ''": [],
    }
    program = _ASK_ZSH + "".join(f"ask bncli {line}\n" for line in asked) + "true\n"
    said = shell_says(folder, "zsh", "-f", "-c", program)
    assert said == [value for values in asked.values() for value in values]
    assert not (folder / "owned").exists()


@needs("fish")
def test_fish(folder: Path) -> None:
    (folder / "script").write_text("\n".join(shell_says(folder, "bncli", "completion", "fish")))
    assert shell_says(folder, "fish", "--no-execute", "script") == []
    asked = {
        "bncli comple": ["completion"],
        "bncli fit iris.csv --class=pe": ["--class=petal_length", "--class=petal_width"],
        "bncli fit 'odd table.csv' --class p": ["petal width"],
        "bncli fit iri": ["iris.csv"],
        "bncli fit missing.csv --class ": [],
    }
    program = "source script\n" + "\n".join(f'complete -C "{line}"' for line in asked)
    said = [line.split("\t")[0] for line in shell_says(folder, "fish", "--no-config", "-c", program)]
    assert said == [value for values in asked.values() for value in values]
