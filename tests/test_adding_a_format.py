"""A format is added in two places, its module and its word in the list: shown in a copy of the package.

The copy runs in a process of its own, through the command alone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.started import program

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
LIST = Path("bncli", "files", "exports", "__init__.py")

NETWORK = '''
"""Numbers between bars, a variable a line after the class: name, states, parents, table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bncli.files.exports import NetworkFormat, Signature

if TYPE_CHECKING:
    from bncli.engine.networks.network import NamedNetwork


def write(network: NamedNetwork) -> str:
    lines = [f"bars|{network.name}|{network.class_name}"]
    for node in network.nodes:
        table = ",".join(map(repr, node.probabilities.ravel().tolist()))
        lines.append("|".join((node.name, ",".join(node.states), ",".join(node.parents), table)))
    return "\\n".join(lines) + "\\n"


def read(data: bytes, where: str) -> NamedNetwork:
    import numpy as np

    from bncli.engine.networks.network import NamedNetwork, Node

    (_, name, class_name), *rows = [line.split("|") for line in data.decode().splitlines()]
    states = {row[0]: tuple(row[1].split(",")) for row in rows}
    nodes = []
    for own, _, parents, table in rows:
        before = tuple(parents.split(",")) if parents else ()
        shape = [len(states[node]) for node in (*before, own)]
        nodes.append(Node(own, states[own], before, np.array(table.split(","), float).reshape(shape)))
    return NamedNetwork(name, class_name, tuple(nodes), "file", {})


FORMAT = NetworkFormat(
    "bars", "numbers between bars", (".bars", ".br"), write, READ, Signature(rb"bars\\|", "a network between bars")
)
'''
STRUCTURE = '''
"""The children of the class, a line each."""

from bncli.files.exports import StructureFormat


def write(structure):
    return "".join(f"{child}\\n" for child, parents in structure.parents.items() if structure.class_name in parents)


FORMAT = StructureFormat("class-children", "the children of the class", (".children",), write)
'''
SCORES = '''
"""Values between tabs."""

from functools import partial

import pyarrow.compute as pc

from bncli.files.exports import ScoreFormat
from bncli.files.exports.csv import LINES
from bncli.files.exports.score_layout import TextScores, all_bytes


def header(names):
    return ("\\t".join(names) + "\\n").encode()


def join(names, columns):
    *first, last = columns
    return all_bytes(pc.binary_join_element_wise(*first, pc.binary_join_element_wise(last, "\\n", ""), "\\t"))


TABS = LINES._replace(header=header, join=join)
FORMAT = ScoreFormat("tabs", "values between tabs", (".tsv",), partial(TextScores, lines=TABS))
'''


class Copy:
    """The package with formats of its own, beside a model and its data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(
            ROOT / "bncli", folder / "bncli", ignore=shutil.ignore_patterns("*.pyc.*")
        )  # these are being written
        shutil.copy(ROOT / "sample_data" / "monks1.csv", folder / "data.csv")
        shutil.copy(ROOT / "sample_data" / "monks1.schema.json", folder / "data.schema.json")

    def add(self, kind: str, word: str, module: str) -> None:
        """One module, and its word in one of the lists."""
        name = word.replace("-", "_") + ".py"
        (self.folder / LIST).with_name(name).write_text(module)
        text = (self.folder / LIST).read_text()
        line = next(line for line in text.splitlines() if line.startswith(f"{kind} = ("))
        (self.folder / LIST).write_text(text.replace(line, line.replace(")", f', "{word}")')))

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": "100"}
        command = [self.folder / "bncli.sh", *words]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)

    def done(self, *words: str) -> str:
        """The standard output of a run that goes well."""
        ran = self(*words)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    made = Copy(tmp_path_factory.mktemp("copy"))
    made.add("EXPORTS", "bars", NETWORK.replace("READ", "read"))
    made.add("EXPORTS", "class-children", STRUCTURE)
    made.add("EXPORTS", "unread", NETWORK.replace("READ", "None").replace("bars", "unread").replace(".br", ".ur"))
    made.add("EXPORTS", "forgetful", NETWORK.replace("READ", FORGETFUL).replace("bars", "forgetful"))
    made.add("SCORES", "tabs", SCORES)
    program(made.folder / "bncli.sh", made.folder)
    made.done("fit", "data.csv", "-o", "m.bnc", "--quiet")
    return made


FORGETFUL = 'lambda data, where: read(data.replace(b"0.", b"0.0"), where)'


def test_the_copy_is_what_runs(copy: Copy) -> None:
    code = "import bncli; print(bncli.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(copy.folder)}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=copy.folder, env=environment, capture_output=True, text=True, check=True)
    assert Path(ran.stdout.strip()).is_relative_to(copy.folder)


def test_the_help_shows_the_new_formats(copy: Copy) -> None:
    text = copy.done("export", "--help-all")
    assert "json|python|javascript|sql|onnx|scorecard|bars|class-children" in "".join(text.split())
    assert "    bars  " in text
    assert "numbers between bars" in text
    assert "the children of the class" in text
    assert "arrow|tabs" in copy.done("score", "--help")


def test_a_network_is_written_verified_and_learnt_from(copy: Copy) -> None:
    report = json.loads(copy.done("export", "m.bnc", "--to", "bars", "-o", "x.out", "--json"))
    assert report["format"] == "bars"
    assert report["rows"] == 10_000
    assert report["max_dp"] < 1e-9
    text = (copy.folder / "x.out").read_text()
    assert text.startswith("bars|")
    assert copy.done("export", "m.bnc", "--to", "bars", "--quiet") == text
    assert json.loads(copy.done("export", "m.bnc", "-o", "x.BR", "--json"))["format"] == "bars"
    assert (copy.folder / "x.BR").read_text() == text
    fitted = json.loads(copy.done("fit", "data.csv", "--structure", "x.out", "-o", "again.bnc", "--json"))
    assert fitted["structure"] == "file"
    arcs = "export {} --to json --quiet".format
    parents = [json.loads(copy.done(*arcs(name).split()))["parents"] for name in ("m.bnc", "again.bnc")]
    assert parents[0] == parents[1]


def test_a_structure_alone_is_written(copy: Copy) -> None:
    report = json.loads(copy.done("export", "m.bnc", "-o", "x.children", "--json"))
    assert report["format"] == "class-children"
    assert report["max_dp"] is None
    structure = json.loads(copy.done("export", "m.bnc", "--to", "json", "--quiet"))
    expected = [name for name, parents in structure["parents"].items() if structure["class"] in parents]
    assert (copy.folder / "x.children").read_text().split() == expected != []


def test_a_format_that_is_not_read_back_is_not_verified(copy: Copy) -> None:
    report = json.loads(copy.done("export", "m.bnc", "-o", "x.ur", "--json"))
    assert report["format"] == "unread"
    assert report["rows"] is report["max_dp"] is None
    ran = copy("fit", "data.csv", "--structure", "x.ur", "-o", "no.bnc")
    assert ran.returncode == 1
    assert "this is a network between unread, not a structure file" in ran.stderr
    assert "BIF, XMLBIF, DOT, BARS and FORGETFUL" in ran.stderr


def test_a_format_that_reads_back_as_another_network_is_refused(copy: Copy) -> None:
    ran = copy("export", "m.bnc", "--to", "forgetful", "-o", "x.forgetful")
    assert ran.returncode == 1
    assert not (copy.folder / "x.forgetful").exists()
    assert ran.stderr.startswith("Error: ")
    assert len(ran.stderr.splitlines()) == 1


def test_predictions_stream_in_the_new_format(copy: Copy) -> None:
    expected = copy.done("score", "m.bnc", "data.csv", "--quiet").replace(",", "\t")
    assert copy.done("score", "m.bnc", "data.csv", "--output-format", "tabs", "--quiet") == expected
    copy.done("score", "m.bnc", "data.csv", "-o", "x.tsv")
    assert (copy.folder / "x.tsv").read_text() == expected


def test_predictions_of_an_evaluation_take_the_new_ending(copy: Copy) -> None:
    copy.done("evaluate", "data.csv", "--structure", "nb", "--predictions", "p.tsv", "--quiet")
    assert (copy.folder / "p.tsv").read_text().startswith("prediction\t")


@pytest.mark.parametrize(
    "words", [("export", "m.bnc", "--to", "bras"), ("score", "m.bnc", "data.csv", "--output-format", "bras")]
)
def test_an_unknown_word_is_refused(copy: Copy, words: tuple[str, ...]) -> None:
    ran = copy(*words)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "'bras' is not one of" in ran.stderr
    assert ("'bars'" in ran.stderr) == (words[0] == "export")


def test_the_message_for_an_unclear_format_names_all(copy: Copy) -> None:
    ran = copy("export", "m.bnc", "-o", "x.txt")
    assert ran.returncode == 2
    assert (
        "add --to bif|xmlbif|dot|json|python|javascript|sql|onnx|scorecard|bars|class-children|unread|forgetful"
        in ran.stderr
    )
