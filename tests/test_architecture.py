"""The house as a test: which room may import which, and what each room may take from outside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from bncli.catalogue import CHOICES, COMMANDS

PACKAGE = Path(__file__).parents[1] / "bncli"
MODULES = sorted(PACKAGE.rglob("*.py"))

WORDS = [command.word for command in COMMANDS] + [word for choice in CHOICES for word in choice.words]

SHARED = ("bncli.errors", "bncli.recipe", "bncli.watch", "bncli.catalogue", "bncli.choices")
"""Serve every room."""

FLOORS = (
    ("bncli.__main__",),
    ("bncli.cli",),
    ("bncli.steps",),
    ("bncli.files", "bncli.stopwatch"),
    ("bncli.engine",),
)
"""Imports point down only, from an earlier floor to a later one, or stay on the floor."""

ENGINE_FLOORS = (
    ("validate",),
    ("learn",),
    ("auto",),
    ("explanation.contributions", "explanation.effects"),
    ("discretizers", "structure_learners", "parameter_learners", "evaluation", "explanation", "networks.agreement"),
    ("structure_search.arc_gains", "structure_search.family_cache", "structure_search.k_dependence"),
    ("structure_search.additive_fit", "structure_search.interaction_gains"),
    ("structure_search", "acll.tables", "generative", "incomplete_space", "early_stopping", "penalty_cv"),
    ("scores",),
    ("acll",),
    ("cutting", "encoding", "ascent", "scoring", "simulation"),
    ("kikuchi.look_ahead", "kikuchi.region_factors"),
    ("kikuchi", "summing_out", "parameter_spaces.whitening"),
    ("smoothing", "likelihood", "metrics", "folds", "forecast", "hdp", "parameter_spaces.flops"),
    ("optimizers",),
    ("descent.loop", "descent.conjugate", "descent.quasi_newton"),
    ("descent.acceptable_point", "descent.line_minimum"),
    ("descent", "parameter_spaces.subspace"),
    ("networks.random_networks", "networks.naming", "networks.normalisation"),
    ("networks",),
    ("parameter_spaces.effect_coordinates",),
    ("parameter_spaces.effect_projection", "parameter_spaces.effect_features"),
    ("parameter_spaces.effect_blocks",),
    ("parameter_spaces",),
    ("inference",),
    ("counts",),
    ("counting",),
    ("named_structure", "views", "holes"),
    ("coarsening",),
    ("schema", "dataset", "structure", "model", "columns", "objective"),
    ("graphs", "factors", "softmax"),
    ("kernels",),
)
"""The floors inside the engine; every module of it stands on one."""

FAMILIES = (
    "cli",
    "steps",
    "engine/discretizers",
    "engine/structure_learners",
    "engine/scores",
    "engine/parameter_learners",
    "engine/optimizers",
)
"""Rooms of siblings (files named by a word that a user types), which nobody in the room imports."""


HELPERS = ("line_search", "pairs", "refresh", "truncated")
"""Parts of the optimisers' machinery, each for itself."""


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, anywhere in it, type checking left out."""
    return tuple(_walk(ast.parse(path.read_text())))


def _walk(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute"
            yield from _from(child)
        else:
            yield from _walk(child)


def _from(node: ast.ImportFrom) -> Iterator[str]:
    module = node.module or ""
    for alias in node.names:
        inner = PACKAGE.parent.joinpath(*module.split("."), alias.name)
        yield f"{module}.{alias.name}" if inner.is_dir() or inner.with_suffix(".py").exists() else module


def floor(name: str, floors: tuple[tuple[str, ...], ...]) -> int | None:
    for level, rooms in enumerate(floors):
        if any(name == room or name.startswith(room + ".") for room in rooms):
            return level
    return None


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path: Path) -> None:
    here = floor(name_of(path), FLOORS)
    for target in imports_of(path):
        if not target.startswith("bncli.") or target in SHARED:
            continue
        there = floor(target, FLOORS)
        assert here is not None, f"{name_of(path)} serves every room and may import none, but imports {target}"
        assert there is not None, f"{target} is in no room"
        assert here <= there, f"{name_of(path)} imports {target}, which is above it"


@pytest.mark.parametrize("path", [p for p in MODULES if "engine" in p.parts], ids=name_of)
def test_imports_inside_the_engine_point_down(path: Path) -> None:
    here = floor(name_of(path).removeprefix("bncli.engine."), ENGINE_FLOORS)
    assert here is not None or name_of(path) == "bncli.engine", f"{name_of(path)} stands on no floor of the engine"
    for target in imports_of(path):
        there = floor(target.removeprefix("bncli.engine."), ENGINE_FLOORS)
        if here is not None and there is not None:
            assert here <= there, f"{name_of(path)} imports {target}, which is above it"


@pytest.mark.parametrize("room", FAMILIES)
def test_siblings_never_import_each_other(room: str) -> None:
    words = {word.replace("-", "_") for word in WORDS}
    methods = {name_of(path) for path in (PACKAGE / room).glob("*.py") if path.stem in words}
    for path in (PACKAGE / room).glob("*.py"):
        for target in imports_of(path):
            assert target not in methods, f"{name_of(path)} imports its sibling {target}"


@pytest.mark.parametrize("module", HELPERS)
def test_helpers_of_optimizers_never_import_each_other(module: str) -> None:
    targets = imports_of(PACKAGE / "engine" / "descent" / f"{module}.py")
    assert not {f"bncli.engine.descent.{name}" for name in HELPERS} & set(targets)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_outside_libraries_stay_in_their_rooms(path: Path) -> None:
    roots = {target.split(".")[0] for target in imports_of(path)}
    parts = path.relative_to(PACKAGE).parts
    if parts[0] != "cli":
        assert not roots & {"click", "rich"}, "click and rich belong to the command line"
    if parts[0] != "files":
        assert "pyarrow" not in roots, "pyarrow belongs to the files"
    if parts[0] == "engine":
        assert not roots & {"os", "sys", "time", "datetime", "random", "logging"}, "the engine is pure"


def test_help_imports_nothing_heavy() -> None:
    """What `bncli COMMAND --help` loads, followed through the imports at the top of modules."""
    seen: set[str] = set()
    pending = [
        path
        for path in MODULES
        if path.parent.name == "cli" and path.stem not in ("tables", "bars", "comparison_tables")
    ]
    while pending:
        path = pending.pop()
        for target in _top_level(path):
            if target.startswith("bncli.") and target not in seen:
                pending.extend(p for p in MODULES if name_of(p) == target)
            seen.add(target)
    roots = {target.split(".")[0] for target in seen}
    assert not roots & {"numpy", "scipy", "pyarrow", "rich", "dataclasses", "importlib.metadata"}


def _top_level(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_are_short_and_explain_themselves(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 500
    assert ast.get_docstring(ast.parse(text)), "a module begins by saying what it is"
    assert "TODO" not in text
