"""What it costs to choose the penalty, and the arcs.

CPU time of `bncli fit`, start-up and reading included, beside the same with `--penalty 1`; one run of each.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.performance.conftest import Recorder
from tests.performance.measure import run
from tests.performance.workloads import real_path

pytestmark = pytest.mark.performance

SETS = ("german", "car", "crx", "chess_krkp", "nursery", "satimage", "adult", "connect_4", "letter")
AT_MOST = 10.0


@pytest.mark.parametrize("param", ["weighted", "discriminative"])
@pytest.mark.parametrize("structure", ["nb", "tan"])
@pytest.mark.parametrize("name", SETS)
def test_a_penalty_that_is_chosen(name: str, structure: str, param: str, tmp_path: Path, record: Recorder) -> None:
    def cpu(*options: str) -> float:
        command = [sys.executable, "-m", "bncli", "fit", str(real_path(name)), "--structure", structure]
        return run([*command, "--param", param, *options, "--quiet", "-o", str(tmp_path / "model.bnc")]).cpu

    fixed = cpu("--penalty", "1")
    ways: dict[str, tuple[str, ...]] = {"": ()}
    if structure == "tan":
        ways = {" --arcs all": ("--arcs", "all"), **ways}
    for way, options in ways.items():
        chosen = cpu(*options)
        detail = f"{fixed:.2f} s, {chosen:.2f} s"
        what = f"{name}, {structure} --param {param}{way}"
        record(what, chosen / fixed, "x the fit with --penalty 1", AT_MOST, detail)
