"""Reports in a real browser: quiet, closed, as wide as the window, and right about what they score.

They skip themselves where there is no Chromium.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bncli.cli.main import run
from bncli.files.artifacts.model import read_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.fit import fit
from bncli.steps.report.report import report
from bncli.steps.score import ScoreOutput, score
from tests.chromium import Browser, PageOfFile, chromium
from tests.steps.test_report import HOSTILE, KINDS, SAMPLES, kinds, written
from tests.sweeps import first_few
from tests.transcripts import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="there is no Chromium to open pages with"),
]

READY = "document.documentElement.dataset.ready === 'true'"
CONTRAST = """(() => {
  // WCAG 2: relative luminance, and the ratio of words to what is painted behind them
  const part = (c) => (c <= 10.31475 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = numbers(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const worst = {};
  const words = "p, th, td, caption, a, h1, h2, h3, label, summary, text, figcaption, button, input, select, code";
  for (const element of document.querySelectorAll(words)) {
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ink = light(numbers(element.tagName === "text" ? style.fill : style.color));
    const paper = light(behind(element));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    worst[element.tagName] = Math.min(ratio, worst[element.tagName] || 21);
  }
  return worst;
})()"""
FILL = """(choices => {
  const fields = [...document.querySelectorAll("#panel-what-if .fields input, #panel-what-if .fields select")];
  fields.forEach((field, i) => {
    if (field.tagName === "SELECT") field.selectedIndex = choices[i] % field.options.length;
    else field.value = choices[i] % 7 === 0 ? "" : Number(field.defaultValue || 1) * (choices[i] % 5) / 2;
    field.dispatchEvent(new Event("input"));
  });
  const panel = document.getElementById("panel-what-if");
  const gone = f => f.tagName === "SELECT" && f.selectedOptions[0].dataset.missing !== undefined;
  return {
    row: Object.fromEntries(fields.map(f => [f.getAttribute("aria-label"), gone(f) ? "" : f.value])),
    probabilities: JSON.parse(panel.dataset.probabilities),
    contributions: JSON.parse(panel.dataset.contributions),
  };
})"""
OVERLAPS = """(() => {
  // words of a picture over other words of it
  const found = [];
  for (const svg of document.querySelectorAll("figure svg")) {
    const texts = [...svg.querySelectorAll("text")].filter(t => t.checkVisibility());
    const boxes = texts.map(t => [t.getBoundingClientRect(), t.textContent.slice(0, 20)]);
    boxes.forEach(([a, one], i) => boxes.slice(i + 1).forEach(([b, other]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1.5 && high > 3) found.push(`${svg.closest("figure").id}: ${one} / ${other}`);
    }));
  }
  return found;
})()"""
WIDE = """[...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll, pre, svg")
  && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display === "block").map(e => e.outerHTML.slice(0, 99))"""
SQUEEZED = """[...document.querySelectorAll(".scroll th, .scroll td")].filter(e => e.checkVisibility()
  && /[^\\s-]{7}/.test(e.textContent) && e.clientWidth < 50).map(e => e.textContent.slice(0, 20))"""
ENDLESS = """[...document.querySelectorAll("main bdi, main output, main label, main p, main caption, option")]
  .filter(e => !e.querySelector("select") && e.textContent.length > 1500).map(e => e.outerHTML.slice(0, 99))"""
SHOWN = """[...document.querySelectorAll("#good [data-label]")].filter(g => g.getClientRects().length)
  .map(g => g.dataset.label).join()"""
SWITCH = """document.querySelectorAll("[data-switch]").forEach(s => {
  s.value = "LABEL"; s.dispatchEvent(new Event("change")) })"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture(scope="module", params=[*kinds("tan", "interactions"), "hostile"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The kind of a model, and the folder with m.bnc and r.html."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "hostile":
        rows: list[list[object]] = [
            [HOSTILE[i % 7], HOSTILE[(i // 7) % 7], i % 13, HOSTILE[(i + i // 7) % 3]] for i in range(600)
        ]
        data, words = (
            written(folder / "d.csv", [HOSTILE[4], HOSTILE[3], HOSTILE[0], HOSTILE[1]], rows),
            {"param": "map"},
        )
    else:
        name, words = KINDS[request.param]
        data = SAMPLES / f"{name}.csv"
    fit(Source((str(data),)), Recipe.of(**words), output=str(folder / "m.bnc"))
    report(str(folder / "m.bnc"), Source((str(data),)), output=str(folder / "r.html"))
    return request.param, folder


@pytest.fixture(scope="module")
def page(browser: Browser, made: tuple[str, Path]) -> PageOfFile:
    found = browser.open(made[1] / "r.html")
    found.wait_for(READY)
    return found


def test_nothing_is_complained_of_and_nothing_asked_for(page: PageOfFile, made: tuple[str, Path]) -> None:
    assert page.complaints() == []
    assert page.requests() == [(made[1] / "r.html").resolve().as_uri()]
    assert page.evaluate("document.querySelectorAll('img, iframe, link, body script[src]').length") == 0


@pytest.mark.parametrize("width", first_few([360, 1600, 800], 2))
def test_nothing_is_wider_than_the_window(page: PageOfFile, width: int) -> None:
    page.resize(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(WIDE) == []
    assert page.evaluate(SQUEEZED) == []
    assert page.evaluate(ENDLESS) == []
    page.resize(1300)


def test_no_words_lie_over_others_in_a_picture(page: PageOfFile) -> None:
    assert page.evaluate(OVERLAPS) == []


def test_what_if_says_what_score_says(page: PageOfFile, made: tuple[str, Path]) -> None:
    kind, folder = made
    n = page.evaluate("document.querySelectorAll('#panel-what-if .fields label').length")
    assert n
    found = [page.evaluate(f"{FILL}({[(7 * k + 3 * i * (k + 1)) % 29 for i in range(n)]})") for k in range(6)]
    names = list(found[0]["row"])
    schema = read_model(str(folder / "m.bnc")).schema
    others = [a.name for a in schema.attributes if a.name not in names]
    rows: list[list[object]] = [[*(one["row"][name] for name in names), *("" for _ in others)] for one in found]
    data = written(folder / "rows.csv", [*names, *others], rows)
    score(str(folder / "m.bnc"), Source((str(data),)), ScoreOutput(str(folder / "p.jsonl"), explain=99))
    scored = [json.loads(line) for line in (folder / "p.jsonl").read_text(encoding="utf-8").splitlines()]
    adds_up = page.evaluate("document.getElementById('panel-what-if').textContent.includes('add up to')")
    assert adds_up == (kind not in ("regions", "path"))
    for one, told in zip(found, scored, strict=True):
        assert one["probabilities"] == pytest.approx([told[f"p_{label}"] for label in schema.labels], abs=1e-9)
        explained = [value for key, value in told.items() if key.startswith("explain_") and value is not None]
        given = {" & ".join(e["attributes"]): e["contribution"] for e in explained}
        for name, number in one["contributions"] if adds_up else ():
            assert number == pytest.approx(given.get(name, 0.0), abs=1e-9)


def test_the_class_switch_draws_another_class(page: PageOfFile, made: tuple[str, Path]) -> None:
    n = page.evaluate("document.querySelectorAll('[data-switch]').length")
    assert n == (0 if len(read_model(str(made[1] / "m.bnc")).schema.labels) == 2 else 2)
    shown = "[...document.querySelectorAll('#effects path.curve')].map(p => p.getAttribute('d')).join()"
    before = page.evaluate(shown), page.evaluate(SHOWN)
    page.evaluate(SWITCH.replace("LABEL", "1"))
    after = page.evaluate(shown), page.evaluate(SHOWN)
    if n:
        assert set(after[1].split(",")) == {"1"}
        assert before[0] != after[0] or not before[0]
    page.evaluate(SWITCH.replace("LABEL", "0"))
    if n:
        # what the script draws anew is what was written, as far as its numbers go
        assert [len(d) for d in page.evaluate(shown).split(",")] == pytest.approx(
            [len(d) for d in before[0].split(",")], abs=8
        )


def test_the_threshold_moves_by_keyboard_and_its_figures_follow(page: PageOfFile) -> None:
    if page.evaluate("document.getElementById('panel-thresholds') === null"):
        return
    figures = "JSON.parse(document.getElementById('panel-thresholds').dataset.figures)"
    page.evaluate("document.querySelector('#panel-thresholds input[type=range]').focus()")
    before = page.evaluate(figures)
    page.press("ArrowRight")
    after = page.evaluate(figures)
    assert after["threshold"] > before["threshold"]
    assert after["tp"] + after["fn"] == before["tp"] + before["fn"]
    assert after["tp"] <= before["tp"]
    assert after["fp"] <= before["fp"]
    # the point on the ROC curve is at these rates: the frame of 240 pixels has a margin of a twentieth on every side
    mark = (
        "(m => [m.getAttribute('cx'), m.getAttribute('cy')].map(Number))(document.querySelector('#picture-roc .mark'))"
    )
    rates = after["fp"] / (after["fp"] + after["tn"]), after["tp"] / (after["tp"] + after["fn"])
    assert page.evaluate(mark) == pytest.approx([56 + 12 + 216 * rates[0], 26 + 240 - 12 - 216 * rates[1]])
    page.evaluate("document.querySelector('#panel-thresholds button').click()")
    assert page.evaluate(figures)["cost"] <= min(before["cost"], after["cost"]) + 1e-12


def test_the_keyboard_reaches_everything_in_order(page: PageOfFile) -> None:
    wanted = page.evaluate(
        "(() => { document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0);"
        " const all = [...document.querySelectorAll('a, button, input, select, summary, [tabindex=\"0\"]')]"
        ""
        ".filter(e => e.checkVisibility()); all.forEach((e, i) => { e.__number = i }); return all.length; })()"
    )
    page.evaluate("document.querySelector('.skip').focus()")
    order = [page.evaluate("document.activeElement.__number")]
    for _ in range(wanted - 1):
        page.press("Tab")
        order.append(page.evaluate("document.activeElement.__number ?? -1"))
    assert order == sorted(order)
    assert len(set(order)) == wanted


def test_a_node_leads_to_the_table_behind_it(page: PageOfFile) -> None:
    link = page.evaluate("document.querySelector('#built svg a')?.getAttribute('href') ?? ''")
    if not link:
        return
    page.evaluate(f"location.hash = '{link}'")
    page.wait_for(f"document.querySelector('{link}') === null || document.querySelector('{link}').open")
    assert page.evaluate(f"document.querySelector('{link}')?.getClientRects().length")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_words_can_be_told_from_the_paper(
    browser: Browser, page: PageOfFile, made: tuple[str, Path], dark: bool
) -> None:
    found = browser.open(made[1] / "r.html", dark=True) if dark else page
    found.wait_for(READY)
    found.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    worst = found.evaluate(CONTRAST)
    assert {tag: round(ratio, 2) for tag, ratio in worst.items() if ratio < 4.5} == {}


CHOOSE = """((name, level) => {
  const fields = [...document.querySelectorAll("#panel-what-if select")];
  const field = fields.find(one => one.getAttribute("aria-label") === name);
  field.value = level;
  field.dispatchEvent(new Event("input"));
  return document.getElementById("panel-what-if").innerText;
})"""


def test_the_manual_says_why_a_row_is_what_it_is(browser: Browser, tmp_path: Path) -> None:
    lines = (SAMPLES / "tumours.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "train.csv").write_text("".join(lines[::2]), encoding="utf-8")
    words = ["--structure", "tan", "--param", "map", "-q", "-o", str(tmp_path / "m.bnc")]
    assert run(["fit", str(tmp_path / "train.csv"), *words, "--report", str(tmp_path / "r.html")]) == 0
    manual = (ROOT / "bncli/manual/report.md").read_text(encoding="utf-8")
    (name, level, told) = re.findall(r"Explain a prediction, with (\S+) set to (\S+) \| (.*) \|", manual)[0]
    page = browser.open(tmp_path / "r.html")
    page.wait_for(READY)
    shown = " ".join(page.evaluate(f"{CHOOSE}({json.dumps(name)}, {json.dumps(level)})").split())
    probability, *reasons = told.split(", ")
    assert probability in shown
    assert " ".join(reasons) in shown


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return other_pages(tmp_path_factory.mktemp("others"))


def other_pages(folder: Path) -> list[Path]:
    """Pages that are not of a model: monitors, a comparison, a table, an evaluation."""
    data, model = str(SAMPLES / "tumours.csv"), str(folder / "m.bnc")
    lines = Path(data).read_text(encoding="utf-8").splitlines(keepends=True)
    monitors = []
    assert run(["fit", data, "--param", "map", "-q", "-o", model]) == 0
    for number in range(14):
        part, monitor = folder / "part.csv", str(folder / f"a long name of the month {number}.json")
        part.write_text("".join([lines[0], *lines[1 + 40 * number : 41 + 40 * number]]), encoding="utf-8")
        assert run(["score", model, str(part), "-q", "-o", str(folder / "s.csv"), "--monitor", monitor]) == 0
        monitors.append(monitor)
    learners = ["--learner", "nb=--param map", "--learner", "tan=--structure tan --param map", "--folds", "2"]
    commands = {
        "monitor": ["monitor", *monitors],
        "compare": ["compare", data, str(SAMPLES / "iris.csv"), *learners, "--jobs", "1"],
        "describe": ["describe", data],
        "evaluate": ["evaluate", data, "--param", "map", "--folds", "3"],
    }
    pages = [folder / f"{name}.html" for name in commands]
    for words, page in zip(commands.values(), pages, strict=True):
        assert run([*words, "-q", "--report", str(page)]) == 0
    return pages


def test_pages_that_are_not_of_a_model_are_quiet_and_fit_every_window(browser: Browser, others: list[Path]) -> None:
    for path in others:
        page = browser.open(path)
        page.wait_for(READY)
        assert (path.name, page.complaints()) == (path.name, [])
        assert page.requests() == [path.resolve().as_uri()]
        for width in (360, 800, 1600):
            page.resize(width)
            assert (path.name, page.evaluate("document.documentElement.scrollWidth") <= width) == (path.name, True)
            assert (path.name, page.evaluate(WIDE)) == (path.name, [])
            assert (path.name, page.evaluate(SQUEEZED)) == (path.name, [])
        assert (path.name, page.evaluate(OVERLAPS)) == (path.name, [])
        assert {tag: ratio for tag, ratio in page.evaluate(CONTRAST).items() if ratio < 4.5} == {}
