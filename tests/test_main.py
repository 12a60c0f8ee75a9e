"""Where the program begins: what is settled before numpy is loaded, and what is never loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE_DATA = Path(__file__).parents[1] / "sample_data"
TREE = ["--structure", "tan", "--arcs", "cv"]
PROGRAM = """
import atexit, os, sys
sys.argv = ["bncli", *{words!r}]
seen = lambda: (os.environ["OPENBLAS_NUM_THREADS"], sorted(m for m in {heavy!r} if sys.modules.get(m)))
atexit.register(lambda: print(seen(), file=sys.stderr))
from bncli.__main__ import main
main()
"""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """What stands for DATA, some rows of a table, and for OUT in what is typed."""
    lines = (SAMPLE_DATA / "tumours.csv").read_text().splitlines(keepends=True)
    (tmp_path / "some.csv").write_text("".join(lines[:250]))
    return {"DATA": str(tmp_path / "some.csv"), "OUT": str(tmp_path / "out")}


@pytest.mark.parametrize(
    ("words", "also"),
    [
        pytest.param(["discretize", "DATA", "-o", "OUT"], [], marks=pytest.mark.slow),
        pytest.param(["fit", "DATA", *TREE, "-o", "OUT"], [], marks=pytest.mark.slow),
        (["fit", "DATA", "-o", "OUT"], ["importlib.metadata"]),  # scipy.sparse, for interactions, loads it
    ],
    ids=["discretize", "tree", "fit"],
)
def test_a_command_loads_only_what_it_uses(places: dict[str, str], words: list[str], also: list[str]) -> None:
    words = [places.get(word, word) for word in [*words, "--quiet"]]
    heavy = ["pandas", "scipy.optimize", "scipy.stats", "sklearn", "rich", "importlib.metadata"]
    program = PROGRAM.format(words=words, heavy=heavy)
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "4"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == f"('1', {also!r})\n"


@pytest.mark.parametrize(
    "words", [["--help"], ["fit", "--help"], ["fit", "DATA", *TREE, "-o", "OUT", "--quiet"]], ids=" ".join
)
def test_help_and_the_fit_of_a_tree_load_no_scipy(places: dict[str, str], words: list[str]) -> None:
    """It takes longer to load than a small table takes to learn from, so only what needs it imports it."""
    program = PROGRAM.format(words=[places.get(word, word) for word in words], heavy=["scipy", "scipy.special"])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "('1', [])\n"


def test_an_interrupt_within_a_text_that_is_run_ends_with_its_code() -> None:
    """As where ^C meets a module that makes a dataclass."""
    program = """
import bncli.__main__, bncli.cli.memory_limit
def interrupted(_run):
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        return 130
bncli.cli.memory_limit.run_within_memory_limit = interrupted
bncli.__main__.main()
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 130


INTERRUPTED = """
import os, sys
sys.modules.pop("signal", None)
class Interrupting:
    def __del__(self):
        os.kill(os.getpid(), 2)
        for _ in range(1000): pass
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            if {in_destructor!r}:
                Interrupting()
            else:
                os.kill(os.getpid(), 2)
sys.meta_path.insert(0, Hook())
sys.argv = ["bncli", "describe", {data!r}]
from bncli.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "in_destructor"),
    [
        ("signal", False),
        ("bncli.cli.memory_limit", False),
        ("bncli.cli.main", False),
        ("bncli.cli.describe", False),
        ("bncli.cli.describe", True),  # where Python ignores exceptions
    ],
)
def test_an_interrupt_while_modules_are_loaded_ends_quietly(module: str, in_destructor: bool) -> None:
    program = INTERRUPTED.format(module=module, in_destructor=in_destructor, data=str(SAMPLE_DATA / "tumours.csv"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_package_loads_nothing_before_interrupts_are_handled() -> None:
    program = f"import sys; sys.path.insert(0, {str(SAMPLE_DATA.parent)!r}); seen = set(sys.modules); import bncli; "
    program += "print(sorted(set(sys.modules) - seen))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['bncli']\n"


def test_the_first_module_to_be_found_is_the_one_that_handles_signals() -> None:
    """A module that is looked for before it is a place where ^C shows a traceback."""
    program = f"""
import os, sys  # loaded before any program begins
sys.path.insert(0, {str(SAMPLE_DATA.parent)!r})
class Hook:
    def find_spec(self, name, path=None, target=None):
        print(name)
sys.meta_path.insert(0, Hook())
import bncli.__main__
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[:3] == ["bncli", "bncli.__main__", "signal"]
