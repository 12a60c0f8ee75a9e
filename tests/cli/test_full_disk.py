"""A disk that fills while codes are written: one line, and nothing half written."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.transcripts import ROOT

LIMITED = """import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from bncli.__main__ import main
main()
"""


def test_encode_leaves_nothing_half_written(tmp_path: Path) -> None:
    shutil.copy(ROOT / "sample_data" / "tic_tac_toe.csv", tmp_path / "t.csv")
    words = ["encode", "t.csv", "-o", "t.codes"]
    # without -B, Python 3.11 would keep the bytecode of modules that it compiles here, cut at the limit
    ran = subprocess.run([sys.executable, "-B", "-c", LIMITED, *words], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Error: cannot write")
    assert len(ran.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
