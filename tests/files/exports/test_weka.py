"""XMLBIF as Weka reads it: by a validating parser, whose complaints are what is looked for, and number by number.

The JAR is the one that WEKA_JAR names, or that of the package python-weka-wrapper3.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bncli.files.exports.xmlbif import xmlbif_text
from tests.files.exports.test_interchange import NETWORK

READER = """\
import weka.classifiers.bayes.net.BIFReader;

public class Reader {
    public static void main(String[] files) throws Exception {
        BIFReader net = new BIFReader();
        net.processFile(files[0]);
        for (int i = 0; i < net.getNrOfNodes(); i++)
            for (int j = 0; j < net.getParentCardinality(i); j++)
                for (int k = 0; k < net.getCardinality(i); k++)
                    System.out.println(net.getProbability(i, j, k));
    }
}
"""


def weka_jar() -> str:
    """Where Weka is, with Java to run it; the test is skipped where either is missing."""
    spec = importlib.util.find_spec("weka")
    places = [Path(folder, "lib", "weka.jar") for folder in (spec and spec.submodule_search_locations) or ()]
    jar = next((path for path in [Path(os.environ.get("WEKA_JAR", "")), *places] if path.is_file()), None)
    if jar is None or shutil.which("java") is None:
        pytest.skip("Java or Weka (WEKA_JAR, python-weka-wrapper3) is not at hand")
    return str(jar)


@pytest.mark.slow
def test_weka_reads_every_number_and_complains_of_nothing(tmp_path: Path) -> None:
    jar = weka_jar()
    (tmp_path / "net.xml").write_text(xmlbif_text(NETWORK), encoding="utf-8")
    (tmp_path / "Reader.java").write_text(READER)
    command = ["java", "-cp", f"{jar}:{Path(jar).parent}/*", str(tmp_path / "Reader.java"), str(tmp_path / "net.xml")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "DOCTYPE" not in done.stderr
    assert "grammar" not in done.stderr
    assert "Error" not in done.stderr
    found = np.array([float(line) for line in done.stdout.split()])
    assert np.abs(found - np.concatenate([node.probabilities.ravel() for node in NETWORK.nodes])).max() < 1e-15
