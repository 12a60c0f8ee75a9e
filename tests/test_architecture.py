"""The house as a test: which room may import which, and what each room may take from outside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from bncli.catalogue import CHOICES
from bncli.cli.commands import COMMANDS
from bncli.files.exports import EXPORTS, SCORES

PACKAGE = Path(__file__).parents[1] / "bncli"
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = [path.parent for path in MODULES if path.stem == "__init__"]

WORDS = [command.word for command in COMMANDS] + [word for choice in CHOICES for word in choice.words]
WORDS += [*EXPORTS, *SCORES]

FLOORS = (
    ("__main__", "api"),
    ("cli",),
    ("steps",),
    ("files.simulated_rows",),
    ("files.reading",),
    ("files.artifacts", "files.option_files"),
    ("files.exports",),
    ("files.atomic", "files.json_documents", "files.pictures"),
    ("files.paths",),
    ("engine.evaluation",),
    ("engine.learn",),
    ("engine.training_data",),
    ("engine.ensembles",),
    ("engine.structure_learners", "engine.parameter_learners"),
    ("engine.prediction", "engine.parameters"),
    ("engine.networks", "engine.inference", "engine.optimizers", "engine.kikuchi"),
    ("engine.model", "engine.counting"),
    ("engine.structures",),
    ("engine.data", "recipe"),
    ("engine.calibration", "engine.discretizers", "catalogue"),
    ("engine.kernels", "errors", "watch"),
)
"""The rooms, from the top floor down. A room is a folder (of the engine too) or a module that stands alone in one.

Inside a room modules are friends; a room imports rooms of lower floors only.
"""

FAMILIES = (
    "steps",
    "engine/discretizers",
    "engine/structure_learners",
    "engine/parameter_learners",
    "engine/optimizers",
)
"""Rooms of siblings (files named by a word that a user types), which nobody in the room imports."""


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, anywhere in it, type checking left out."""
    return _read(path)[1]


def top_of(path: Path) -> ast.Module:
    """A module's docstring and the imports at its top."""
    return _read(path)[0]


@cache
def _read(path: Path) -> tuple[ast.Module, tuple[str, ...]]:
    """Whole trees are not kept, for the garbage collector would look through all of them again and again."""
    tree = ast.parse(path.read_text())
    imports = tuple(_walk(tree))
    tree.body = [*tree.body[:1], *(node for node in tree.body[1:] if isinstance(node, ast.Import | ast.ImportFrom))]
    return tree, imports


def _walk(node: ast.AST) -> Iterator[str]:
    pending = [node]
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, "imports are absolute"
                yield from _from(child)
            elif isinstance(child, _WITH_STATEMENTS):
                pending.append(child)


_WITH_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
"""What may hold an import further down: no expression does."""


def _from(node: ast.ImportFrom) -> Iterator[str]:
    module = node.module or ""
    for alias in node.names:
        yield f"{module}.{alias.name}" if _is_module(module, alias.name) else module


@cache
def _is_module(package: str, name: str) -> bool:
    inner = PACKAGE.parent.joinpath(*package.split("."), name)
    return inner.is_dir() or inner.with_suffix(".py").exists()


def room_of(name: str) -> str:
    """`bncli.files.reading.table` is in the room `files`, `bncli.engine.kernels.gram` in `engine.kernels`."""
    parts = name.split(".")[1:]
    return ".".join(parts[:2] if parts[:1] in (["engine"], ["files"]) else parts[:1])


def floor_of(name: str) -> int:
    """The number of the floor; packages that hold rooms and no code of their own lie below all."""
    if name in ("bncli", "bncli.engine", "bncli.files"):
        return len(FLOORS)
    return next(level for level, rooms in enumerate(FLOORS) if room_of(name) in rooms)


def test_every_room_stands_on_one_floor() -> None:
    listed = [room for rooms in FLOORS for room in rooms]
    assert len(listed) == len(set(listed))
    assert set(listed) == {room_of(name_of(path)) for path in MODULES} - {"", "engine", "files"}


def test_imports_point_down() -> None:
    for path in MODULES:
        name = name_of(path)
        for target in imports_of(path):
            if target.split(".")[0] == "bncli" and room_of(target) != room_of(name):
                assert floor_of(name) < floor_of(target), f"{name} imports {target}, which is not below it"


@pytest.mark.parametrize("room", FAMILIES)
def test_siblings_never_import_each_other(room: str) -> None:
    words = {word.replace("-", "_") for word in WORDS}
    methods = {name_of(path) for path in (PACKAGE / room).glob("*.py") if path.stem in words}
    for path in (PACKAGE / room).glob("*.py"):
        for target in imports_of(path):
            assert target not in methods, f"{name_of(path)} imports its sibling {target}"


def test_outside_libraries_stay_in_their_rooms() -> None:
    for path in MODULES:
        roots = {target.split(".")[0] for target in imports_of(path)}
        parts = path.relative_to(PACKAGE).parts
        name = name_of(path)
        if parts[0] != "cli":
            assert not roots & {"click", "rich"}, f"{name}: click and rich belong to the command line"
        if parts[0] not in ("files", "api"):
            assert "pyarrow" not in roots, f"{name}: pyarrow belongs to the files, and to tables that Python hands over"
        if parts[0] != "api":
            assert "sklearn" not in roots, f"{name}: scikit-learn is known to its estimator alone"
        if path.stem != "connection":
            assert not roots & {"dask", "distributed"}, f"{name}: dask is an extra, and one module knows it"
        if parts[0] == "engine":
            assert not roots & {"os", "sys", "time", "datetime", "random", "logging"}, f"{name}: the engine is pure"


def test_help_imports_nothing_heavy() -> None:
    """What `bncli COMMAND --help` loads, followed through the imports at the top of modules.

    `bncli.files.exports` imports the modules of EXPORTS by their names.
    """
    seen: set[str] = set()
    pending = [path for path in MODULES if path.parent.name == "cli"]
    pending += [PACKAGE / "files" / "exports" / f"{word.replace('-', '_')}.py" for word in EXPORTS]
    while pending:
        path = pending.pop()
        for target in _top_level(path):
            if target.startswith("bncli.") and target not in seen:
                pending.extend(p for p in MODULES if name_of(p) == target)
            seen.add(target)
    roots = {target.split(".")[0] for target in seen}
    assert not roots & {"numpy", "scipy", "pyarrow", "rich", "dataclasses", "importlib.metadata"}


def _top_level(path: Path) -> Iterator[str]:
    for node in top_of(path).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(PACKAGE.parent).as_posix())
def test_a_package_lists_its_modules(folder: Path) -> None:
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    docstring = ast.get_docstring(top_of(folder / "__init__.py")) or ""
    assert sorted(listed_modules(docstring)) == sorted(modules - {"__init__", "__main__"})


def listed_modules(docstring: str) -> list[str]:
    """Return the names in backticks before the first colon of each list item, or after it if there are none."""
    names = []
    for item in re.findall(r"^- .*(?:\n  .*)*", docstring, re.MULTILINE):
        parts = [re.findall(r"`(\w+)`", part) for part in re.split(r":\s", item, maxsplit=1)]
        names += parts[0] or parts[-1]
    return names


def test_modules_are_read_from_lists() -> None:
    docstring = """A package for `nothing`.

- `one`, `two`: what `three`
  needs
- formats: `four`;
  others: `five`
"""
    assert listed_modules(docstring) == ["one", "two", "four", "five"]


def test_files_explain_themselves() -> None:
    for path in MODULES:
        text = path.read_text()
        assert ast.get_docstring(top_of(path)), f"{path}: a module begins by saying what it is"
        assert "TODO" not in text, path


def test_an_expected_failure_names_its_exception_and_is_strict() -> None:
    """What may fail in any way, or pass, says nothing."""
    for path in Path(__file__).parent.rglob("*.py"):
        text = path.read_text()
        if "xfail" in text:
            assert not list(_weak_expectations(ast.parse(text))), path


@pytest.mark.parametrize(
    ("text", "n_weak"),
    [
        ("pytest.mark.xfail(raises=ValueError)", 0),
        ("pytest.mark.xfail(raises=ValueError, strict=True)", 0),
        ("pytest.mark.xfail(raises=ValueError, strict=False)", 1),
        ("pytest.mark.xfail(reason='so')", 1),
        ("@pytest.mark.xfail\ndef test() -> None: ...", 1),
        ("def test() -> None:\n    pytest.xfail('so')", 1),
    ],
)
def test_weak_expectations_are_found(text: str, n_weak: int) -> None:
    assert len(list(_weak_expectations(ast.parse(text)))) == n_weak


def _weak_expectations(tree: ast.AST) -> Iterator[int]:
    """Lines of expected failures without an exception, or that may pass."""
    calls = {id(node.func): node.keywords for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "xfail":
            given = {one.arg: ast.unparse(one.value) for one in calls.get(id(node), ())}
            if "raises" not in given or given.get("strict", "True") != "True":
                yield node.lineno
