"""Make the picture of a report page in the README: `python -m tests.report_picture`, with Chromium installed.

The model is fitted to every other row of the tumours, and the page shows the remaining rows. The picture is the top
of the page. Make it again when the page changes.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.chromium import Browser
from tests.started import bncli
from tests.transcripts import ROOT

PICTURE = ROOT / "bncli" / "manual" / "report.png"
WIDTH, HEIGHT = 1300, 870
"""Of the picture, in pixels."""


def main() -> None:
    header, *rows = (ROOT / "sample_data" / "tumours.csv").read_text().splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.csv").write_text(header + "".join(rows[1::2]))
        (folder / "test.csv").write_text(header + "".join(rows[::2]))
        for words in ("fit train.csv -q -o tumours.bnc", "report tumours.bnc --data test.csv -q -o page.html"):
            subprocess.run([bncli(), *words.split()], cwd=folder, check=True)
        with Browser() as browser:
            page = browser.open(folder / "page.html", width=WIDTH)
            page.call("Emulation.setScrollbarsHidden", {"hidden": True})
            page.resize(WIDTH, page.evaluate("document.documentElement.scrollHeight"))
            PICTURE.write_bytes(page.picture(0, HEIGHT))


if __name__ == "__main__":
    main()
