"""Pages of every kind under axe-core, the rules of accessibility (WCAG and good practice) as a program.

It comes from npm, to tests alone: the environment variable BNCLI_AXE names its axe.min.js. Without it, or without
Chromium, this skips itself.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bncli.cli.main import run
from tests.chromium import Browser, PageOfFile, chromium
from tests.steps.test_report import KINDS, SAMPLES
from tests.steps.test_report_browser import READY, other_pages

AXE = os.environ.get("BNCLI_AXE", "")
pytestmark = [
    pytest.mark.skipif(chromium() is None, reason="there is no Chromium to open pages with"),
    pytest.mark.skipif(not AXE, reason="BNCLI_AXE names no axe.min.js (npm install axe-core)"),
]

MODELS = {
    **KINDS,
    "weighted": ("tumours", {"structure": "tan", "param": "weighted"}),
    "gbn": ("wine", {"structure": "gbn", "param": "map"}),
    "holes": ("wine_holes", {"structure": "tan", "param": "map"}),
}
# axe takes seconds where there are many elements: of rows that are all alike a few will do, and it cannot tell what
# lies behind words in a picture (another test looks at their contrast)
READY_FOR_AXE = """document.querySelectorAll("details").forEach(one => { one.open = true });
  document.querySelectorAll("tbody tr:nth-child(n + 4), svg[role=img] text, svg[role=img] title, svg[role=img] rect")
    .forEach(one => one.remove())"""
VIOLATIONS = """axe.run({resultTypes: ["violations"], ...OPTIONS})
  .then(found => found.violations.flatMap(one => one.nodes.map(node => `${one.id}: ${node.html.slice(0, 200)}`)))"""


def pages_of_models(folder: Path) -> list[Path]:
    """What `report` says of each kind with data, and `fit` of one without."""
    for kind, (name, words) in MODELS.items():
        data, model = str(SAMPLES / f"{name}.csv"), str(folder / f"{kind}.bnc")
        options = [word for key, value in words.items() for word in (f"--{key}", value)]
        page = ["--report", str(folder / "fit.html")] if kind == "nb" else []
        assert run(["fit", data, *options, "-q", "-o", model, *page]) == 0
        assert run(["report", model, "--data", data, "-q", "-o", str(folder / f"{kind}.html")]) == 0
    return sorted(folder.glob("*.html"))


def violations(page: PageOfFile, options: str = "{}") -> list[str]:
    """Of the page as it is: a rule, and the element that breaks it."""
    page.evaluate(f"{Path(AXE).read_text(encoding='utf-8')};1")
    found: list[str] = page.evaluate(VIOLATIONS.replace("OPTIONS", options))
    return found


@pytest.mark.slow
def test_no_page_breaks_a_rule_of_accessibility(tmp_path: Path) -> None:
    models, others = tmp_path / "models", tmp_path / "others"
    models.mkdir()
    others.mkdir()
    with Browser() as browser:
        for path in (*pages_of_models(models), *other_pages(others)):
            page = browser.open(path)
            page.wait_for(READY)
            page.evaluate(READY_FOR_AXE)
            assert (path.name, violations(page)) == (path.name, [])
            page.colour("dark")
            assert (path.name, violations(page, '{runOnly: ["color-contrast"]}')) == (path.name, [])


def test_a_page_that_breaks_rules_is_found_out(tmp_path: Path) -> None:
    bad = '<!DOCTYPE html><title>x</title><main><img src=""><p style="color: #ddd">pale</p></main>'
    (tmp_path / "bad.html").write_text(bad, encoding="utf-8")
    with Browser() as browser:
        found = violations(browser.open(tmp_path / "bad.html"))
    assert {one.split(":")[0] for one in found} >= {"image-alt", "color-contrast", "html-has-lang"}
