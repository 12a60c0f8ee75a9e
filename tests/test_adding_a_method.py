"""A method with an option of its own is one module and its entry in the catalogue; a score is a function in scores.py.

A copy of the package gets six methods, one of each kind, and every one is run through the command in a process of its
own: it is shown in the help, learns, scores, is cross-validated, is recorded, and its option is refused elsewhere.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.started import program

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parents[1] / "bncli"

RING = '''"""A chain of all attributes, turned by so many places."""

from bncli.engine.structures.structure import Dag


def learn(counts, *, turn, watch):
    nodes = counts.data.schema.informative
    shift = turn % max(len(nodes), 1)
    order = nodes[shift:] + nodes[:shift]
    parents = [()] * len(counts.data.schema.attributes)
    for parent, child in zip(order, order[1:]):
        parents[child] = (parent,)
    return Dag(tuple(parents), nodes, method="ring", options={"turn": turn})
'''

TILTED = '''"""Relative frequencies with so many rows spread evenly."""

from bncli.engine.parameters.generative import closed_form, generative_tables


def learn(counts, structure, *, tilt, watch):
    return closed_form(counts, generative_tables(counts, structure, f"m-estimate:{tilt}"))
'''

STEEP = '''"""Free tables in units of a slope, so that a penalty weighs them less."""

import numpy as np

from bncli.engine.parameters.coordinates import EntryCoordinates
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import ParameterSpace, optimize


def learn(counts, structure, *, slope, settings, watch):
    return optimize(build_space(counts, structure, slope=slope), settings, watch)


def build_space(counts, structure, *, slope):
    tables = generative_tables(counts, structure, "m-estimate:1")
    likelihood = conditional_likelihood(counts.data, tables.families)
    coordinates = EntryCoordinates(tables.cells / slope, np.full((1, likelihood.n_cells), slope))
    return ParameterSpace(likelihood, coordinates)
'''

MIDDLE = '''"""One cut, that share of the way from the lowest value to the highest."""


def cut_points(values, labels, n_labels, weights, *, share=0.5):
    if len(values) == 0 or values.min() == values.max():
        return ()
    low, high = float(values.min()), float(values.max())
    return (low + share * (high - low),)
'''

STEEPEST = '''"""Down the gradient; a step is shortened as long as it does not help."""

import numpy as np

from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.objective import Step


def minimise(objective, start, *, tolerance, max_iterations, report, shrink):
    p, (value, gradient) = start, objective.value_and_gradient(start)
    length, evaluations = 1.0, 1
    report(Step(0, value, float(np.linalg.norm(gradient)), 0.0, 1, 1), p)
    for iteration in range(1, max_iterations + 1):
        while length > 1e-12:
            trial = p - length * gradient
            found, slope = objective.value_and_gradient(trial)
            evaluations += 1
            if found < value:
                break
            length *= shrink
        else:
            return Optimum(p, value, 0.0, iteration - 1, evaluations, StoppedBy.LINE_SEARCH)
        p, value, gradient = trial, found, slope
        report(Step(iteration, value, float(np.linalg.norm(gradient)), length, evaluations, evaluations), p)
    return Optimum(p, value, 0.0, max_iterations, evaluations, StoppedBy.MAX_ITERATIONS)
'''

FEW = '''

def few(counts, price):
    """Return the log-likelihood less `price` for each free parameter."""
    return log_likelihood(counts) - price * free_parameters(counts)


FAMILY_SCORES["few"] = FamilyScore(few, equivalent=True)
'''


class Added(NamedTuple):
    """A method: its module or function, and its entries; `use` chooses it, `typed` is its option."""

    folder: str
    module: str
    code: str
    tuple_begins: str
    method: str
    use: str
    option: str = ""
    typed: str = ""
    recorded: tuple[str, Any] = ("", None)
    refusal: tuple[str, str] = ("", "")
    bad: str = ""


ADDED = {
    "structure": Added(
        "structure_learners",
        "ring",
        RING,
        "STRUCTURES = Choice(",
        'Method("ring", "a ring of attributes", ("--turn",))',
        "--structure ring --param map",
        'Option("--turn", Integer(0, 9), "1", STRUCTURE, "Places by which the ring is turned.")',
        "--turn 2",
        ("turn", 2),
        ("--structure nb", "--turn has no effect with --structure nb; use it with --structure ring"),
        "--turn 10",
    ),
    "probabilities": Added(
        "parameter_learners",
        "tilted",
        TILTED,
        "PARAMETERS = Choice(",
        'Method("tilted", "tilted frequencies", ("--tilt",), probabilities=True)',
        "--structure nb --param tilted",
        'Option("--tilt", Real(above=True), "2", PARAMETER, "Rows that are spread.")',
        "--tilt 3",
        ("tilt", 3.0),
        ("--param map", "--tilt has no effect with --param map; use it with --param tilted"),
        "--tilt 0",
    ),
    "coordinates": Added(
        "parameter_learners",
        "steep",
        STEEP,
        "PARAMETERS = Choice(",
        'Method("steep", "tables in units of a slope", ("--slope", *_SEARCH), fixed=_CENTERED)',
        "--structure nb --param steep",
        'Option("--slope", Real(above=True, below=50), "1", PARAMETER, "The unit.")',
        "--slope 2.5",
        ("slope", 2.5),
        ("--param lr", "--slope has no effect with --param lr; use it with --param steep"),
        "--slope 50",
    ),
    "discretizer": Added(
        "discretizers",
        "middle",
        MIDDLE,
        "DISCRETIZERS = Choice(",
        'Method("middle", "one cut", ("--share",))',
        "--discretize middle --structure nb --param map",
        'Option("--share", Real(below=1), "0.5", CUTTING, "Where the cut is.")',
        "--share 0.25",
        ("share", 0.25),
        ("--discretize mdl", "--share has no effect with --discretize mdl; use it with --discretize middle"),
        "--share 1",
    ),
    "optimizer": Added(
        "optimizers",
        "steepest",
        STEEPEST,
        "OPTIMIZERS = Choice(",
        'Method("steepest", "down the gradient", ("--shrink",))',
        "--structure nb --penalty 1 --max-iterations 20 --optimizer steepest",
        'Option("--shrink", Real(above=True, below=1), "0.5", PARAMETER, "By which a step is shortened.")',
        "--shrink 0.25",
        ("shrink", 0.25),
        ("--optimizer cg", "--shrink has no effect with --optimizer cg; use it with --optimizer steepest"),
        "--shrink 1",
    ),
    "score": Added(
        "scores",
        "few",
        FEW,
        "SCORES = Choice(",
        'Method("few", "log-likelihood less NUMBER [3] a parameter", number="3")',
        "--structure hill-climb --param map",
        typed="--structure-score few:0.5",
        recorded=("structure_score", "few:0.5"),
        refusal=("--structure nb", "--structure-score has no effect with --structure nb"),
        bad="--structure-score few:0",
    ),
}

ENTRIES = {
    "structure_learners": ("methods", "STRUCTURE_OPTIONS"),
    "scores": ("methods", "STRUCTURE_OPTIONS"),
    "parameter_learners": ("methods", "PARAMETER_OPTIONS"),
    "optimizers": ("methods", "OPTIMIZER_OPTIONS"),
    "discretizers": ("__init__", "_CUTTING_OPTIONS"),
}
"""Module of the catalogue and tuple of options that hold the entries about the modules of a folder of the engine."""

every_method = pytest.mark.parametrize("kind", ADDED)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, the methods added, and a table."""
    folder = tmp_path_factory.mktemp("copy")
    being_written = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(PACKAGE, folder / "bncli", ignore=being_written)
    for added in ADDED.values():
        if added.folder == "scores":
            with (folder / "bncli" / "engine" / "structures" / "scores.py").open("a") as module:
                module.write(added.code)
        else:
            (folder / "bncli" / "engine" / added.folder / f"{added.module}.py").write_text(added.code)
        entry_module, options = ENTRIES[added.folder]
        entries = folder / "bncli" / "catalogue" / f"{entry_module}.py"
        text = _with_entry(entries.read_text(), added.tuple_begins, "    (\n", f"        {added.method},\n")
        if added.option:
            text = _with_entry(text, f"\n{options}: ", "(\n", f"    {added.option},\n")
            imports = "from bncli.catalogue.choices import "
            text = text.replace(
                imports, f"from bncli.catalogue.option_kinds import {_kind(added.option)}\n{imports}", 1
            )
        entries.write_text(text)
    (folder / "table.csv").write_text(_table(80))
    program(folder / "bncli.sh", folder)
    return folder


def _kind(option: str) -> str:
    """What `Option("--share", Real(below=1), ...)` takes its value for; it may not be imported there yet."""
    return option.split('", ')[1].split("(")[0]


def _with_entry(text: str, definition: str, opening: str, entry: str) -> str:
    place = text.index(opening, text.index(definition)) + len(opening)
    return text[:place] + entry + text[place:]


def _table(n_rows: int) -> str:
    rng = np.random.default_rng(0)
    lines = ["age,dose,colour,size,class"]
    for y in rng.integers(0, 2, n_rows):
        colour = "red" if rng.random() < 0.3 + 0.4 * y else "blue"
        size = "" if rng.random() < 0.1 else "big" if (colour == "red") == (rng.random() < 0.8) else "small"
        lines.append(f"{rng.exponential(1 + y):.3f},{rng.normal(y):.3f},{colour},{size},{'yes' if y else 'no'}")
    return "\n".join(lines) + "\n"


def bncli(copy: Path, words: str, fails: bool = False) -> str:
    """What the copy's command prints; on standard error where it is to fail for its words."""
    done = subprocess.run(
        [copy / "bncli.sh", *shlex.split(words)],
        cwd=copy,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == (2 if fails else 0), done.stderr
    return done.stderr if fails else done.stdout


def fitted(copy: Path, kind: str, more: str = "") -> dict[str, Any]:
    """The recipe of the model learned with the method and its option; the model is `KIND.bnc`."""
    added = ADDED[kind]
    bncli(copy, f"fit table.csv {added.use} {added.typed} {more} -o {kind}.bnc")
    return dict(json.loads(bncli(copy, f"inspect {kind}.bnc --json"))["recipe"])


def test_the_help_shows_every_method_and_option(copy: Path) -> None:
    shown = {command: bncli(copy, f"{command} --help-all") for command in ("fit", "learn-structure", "discretize")}
    for kind, added in ADDED.items():
        in_help = ["fit", *(["learn-structure"] if kind in ("structure", "score", "discretizer") else [])]
        for command in (*in_help, *(["discretize"] if kind == "discretizer" else [])):
            lines = shown[command].splitlines()
            assert any(line.split()[:1] == [added.module] for line in lines)
            if added.option:
                flag, default, what = added.typed.split()[0], *added.option.split('"')[3::2]
                (line,) = [line for line in lines if line.strip().startswith(flag)]
                assert what in line
                assert f"[{default}]" in line


@every_method
def test_it_learns_is_recorded_and_scores(copy: Path, kind: str) -> None:
    key, value = ADDED[kind].recorded
    assert fitted(copy, kind)[key] == value
    scores = bncli(copy, f"score {kind}.bnc table.csv").splitlines()
    assert len(scores) == 81
    evaluated = json.loads(bncli(copy, f"evaluate table.csv {ADDED[kind].use} {ADDED[kind].typed} --folds 2 --json"))
    assert evaluated


@every_method
def test_the_option_changes_the_model(copy: Path, kind: str) -> None:
    key, value = ADDED[kind].recorded
    fitted(copy, kind)
    usual = "" if ADDED[kind].option else "--structure-score few:30"
    bncli(copy, f"fit table.csv {ADDED[kind].use} {usual} -o usual.bnc")
    tables = [json.loads(bncli(copy, f"inspect {name}.bnc --tables --json")) for name in (kind, "usual")]
    assert tables[1]["recipe"][key] != value
    assert tables[0]["tables"] != tables[1]["tables"]


@every_method
def test_elsewhere_and_out_of_bounds_it_is_refused(copy: Path, kind: str) -> None:
    added = ADDED[kind]
    elsewhere, message = added.refusal
    assert message in " ".join(bncli(copy, f"fit table.csv {elsewhere} {added.typed}", fails=True).split())
    refusal = bncli(copy, f"fit table.csv {added.use} {added.bad}", fails=True)
    assert added.bad.split()[0] in refusal
    assert "Traceback" not in refusal


def test_probabilities_are_a_network(copy: Path) -> None:
    recipe = fitted(copy, "probabilities", "--missing-policy marginalize")
    assert recipe["missing_policy"] == "marginalize"
    assert "probability" in bncli(copy, "export probabilities.bnc --to bif -o -")
    assert len(bncli(copy, "simulate probabilities.bnc --rows 5").splitlines()) == 6


def test_step_by_step_is_the_same_model(copy: Path) -> None:
    both = "--discretize middle --share 0.25 --structure ring --turn 2"
    bncli(copy, f"fit table.csv {both} --param map -o once.bnc")
    bncli(copy, "discretize table.csv --discretize middle --share 0.25 --cuts-out cuts.json")
    bncli(copy, "learn-structure table.csv --cuts cuts.json --structure ring --turn 2 -o ring.json")
    bncli(copy, "fit table.csv --cuts cuts.json --structure ring.json --param map -o steps.bnc")
    assert (copy / "once.bnc").read_bytes() == (copy / "steps.bnc").read_bytes()


def test_a_learner_of_compare_takes_the_option(copy: Path) -> None:
    learners = "--learner '--structure ring --turn 3 --param map' --learner 'plain=--structure nb --param map'"
    assert "ring map turn=3" in bncli(copy, f"compare table.csv {learners} --folds 2 --json --quiet")
