"""Reports: whole pages of models of every kind, well formed, closed, bounded, without rows, whatever the names are."""

from __future__ import annotations

import csv
import hashlib
import html
import json
import math
import re
import shlex
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bncli.cli.main import run
from bncli.errors import UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.pictures.effect_plots import share_bars
from bncli.files.pictures.page import SCRIPT_LIMIT, escape_script, read_part
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.evaluate.evaluate import evaluate_model
from bncli.steps.fit import fit
from bncli.steps.report import report as pages
from bncli.steps.report import structure_section
from bncli.steps.report.report import report
from tests.transcripts import ROOT

SAMPLES = ROOT / "sample_data"
VOID = {"meta", "input", "br"}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title></script><!--",
    "x" * 10_000,
    "\u202eعكس اللغة العربية\u202c",
    "🙂 & é 'quoted'",
    "`${alert(1)}` \\u003c/script>",
)


class Read(HTMLParser):
    """Refuses tags that do not match; keeps what a browser would load, run or show."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.shown: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.shown.append(data)

    @property
    def by_lines(self) -> str:
        return "".join(self.shown)

    @property
    def text(self) -> str:
        return " ".join(self.by_lines.split())


def written(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def page_of(data: Path, folder: Path, *, test: Path | None = None, **words: str) -> str:
    """The page of a model of `data`, on `test` where there is one."""
    model = folder / "m.bnc"
    fit(Source((str(data),)), Recipe.of(**words), output=str(model))
    source = None if test is None else Source((str(test),))
    found = report(str(model), source, output=str(folder / "r.html"))
    text = (folder / "r.html").read_text(encoding="utf-8")
    assert found.bytes == len(text.encode())
    return text


KINDS = {
    "nb": ("tic_tac_toe", {"structure": "nb", "param": "map"}),
    "tan": ("tumours", {"structure": "tan", "param": "map"}),
    "kdb": ("wine", {"structure": "kdb", "k": "2", "param": "map"}),
    "regions": ("tic_tac_toe", {"structure": "kikuchi"}),
    "path": ("tic_tac_toe", {"structure": "kikuchi", "param": "kbma"}),
    "interactions": ("wine", {"structure": "interactions", "penalty": "1"}),
    "auto": ("wine", {"structure": "auto", "effort": "1"}),
}


def kinds(*usual: str) -> list[Any]:
    """Those named in the usual run, the others in the slow sweep."""
    return [pytest.param(kind, marks=[] if kind in usual else [pytest.mark.slow]) for kind in KINDS]


@pytest.fixture(scope="module", params=kinds("tan", "regions", "interactions", "auto"))
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    name, words = KINDS[request.param]
    data = SAMPLES / f"{name}.csv"
    return page_of(data, tmp_path_factory.mktemp(request.param), test=data, **words), data


def test_pages_of_every_kind_are_well_formed_closed_and_small(page: tuple[str, Path]) -> None:
    text, _ = page
    read = Read(text)
    assert len(text.encode()) < 1_000_000
    names = [tag for tag, _ in read.tags]
    assert not {"link", "img", "iframe", "object", "embed", "base", "form", "video", "audio"}.intersection(names)
    loaded = [(name, value) for _, attributes in read.tags for name, value in attributes.items()]
    assert not [one for one in loaded if one[0] in ("src", "srcset", "action", "style") or one[0].startswith("on")]
    assert all((value or "").startswith("#") for name, value in loaded if name == "href")
    places = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(places) == len(set(places))
    assert {value[1:] for name, value in loaded if name == "href" and value} <= set(places)
    policy = next(a["content"] for tag, a in read.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_pages_can_be_heard_as_well(page: tuple[str, Path]) -> None:
    read = Read(page[0])
    names = [tag for tag, _ in read.tags]
    assert [names.count(one) for one in ("h1", "main", "nav", "header")] == [1, 1, 1, 1]
    assert names.count("h2") == names.count("section") == 6
    pictures = [attributes for tag, attributes in read.tags if tag == "svg"]
    assert pictures
    assert all(one.get("role") in ("img", "group") and len(one.get("aria-label") or "") > 10 for one in pictures)
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in read.tags if tag == "th")


def test_sections_have_a_fixed_order(page: tuple[str, Path]) -> None:
    read = Read(page[0])
    words = [attributes["id"] for tag, attributes in read.tags if tag == "section"]
    assert words == ["good", "effects", "row", "rely", "built", "made"]


def test_no_row_is_in_a_page(tmp_path: Path) -> None:
    """Values that one row alone has, of a column that is cut, and what rows are called."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=300).round(9)
    rows: list[list[object]] = [[repr(float(v)), rng.integers(3), int(v > 0.2)] for v in values]
    data = written(tmp_path / "d.csv", ["number", "b", "class"], rows)
    text = page_of(data, tmp_path, test=data, structure="nb", param="map")
    assert not [v for v in values.tolist() if repr(v) in text]


def test_what_needs_no_data_is_told_without(tmp_path: Path) -> None:
    read = Read(page_of(SAMPLES / "wine.csv", tmp_path, param="map"))
    assert read.text.count("--data TEST") == 3
    assert "Importance" in read.text


@pytest.mark.parametrize("label", HOSTILE[:3])
def test_names_out_of_files_stay_text(label: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    levels = list(HOSTILE)
    codes = rng.integers(0, len(levels), (150, 2))
    rows: list[list[object]] = [
        [levels[a], levels[b], a / 7 + b, label if (a + b) % 3 else "\u202eother"] for a, b in codes
    ]
    header = [HOSTILE[0], HOSTILE[3], HOSTILE[4], HOSTILE[1]]
    data = written(tmp_path / "d.csv", header, rows)
    for words in ({"structure": "tan", "param": "map"}, {"structure": "interactions", "penalty": "1"}):
        text = page_of(data, tmp_path, test=data, **words)
        read = Read(text)
        assert [tag for tag, _ in read.tags].count("script") == len(read.scripts) == 2
        assert not [tag for tag, _ in read.tags if tag == "img"]
        assert HOSTILE[0] in read.text
        assert HOSTILE[3] not in read.text
        json.loads(read.scripts[0])


def test_our_script_keeps_its_bound_and_names_no_address() -> None:
    script = read_part("page.js")
    assert len(script.encode()) <= SCRIPT_LIMIT
    addresses = set(re.findall(r"https?://[^\"' ]+", script + read_part("page.css")))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\beval\b|innerHTML|insertAdjacent|document\.write|fetch|XMLHttp|import", script)


def test_a_program_in_a_page_cannot_end_its_script() -> None:
    program = 'const a = "</script><!-- <SCRIPT"; if (1 < 2) f();'
    assert escape_script(program) == 'const a = "\\u003c/script>\\u003c!-- \\u003cSCRIPT"; if (1 < 2) f();'


@pytest.mark.slow
def test_a_page_is_small_at_fifty_effects_and_bounded_beyond(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    n, k = 600, 12
    y = rng.integers(0, k, n)
    columns = [(y[:, None] + rng.integers(0, 8, (n, 100))) % 12, rng.integers(0, 500, (n, 1))]
    codes = np.concatenate(columns, axis=1)
    header = [f"column {i}" for i in range(101)] + ["class"]
    data = written(
        tmp_path / "d.csv", header, [[*(f"v{c}" for c in row), f"label {c}"] for row, c in zip(codes, y, strict=True)]
    )
    text = page_of(data, tmp_path, test=data, structure="nb", param="map", group_levels="off")
    assert len(text.encode()) < 1_000_000
    read = Read(text)
    assert " of the variance not shown; see bncli inspect" in read.text
    assert "60 of 100 attributes are drawn" in read.text


def test_every_picture_is_a_file_too(tmp_path: Path) -> None:
    model = tmp_path / "m.bnc"
    data = Source((str(SAMPLES / "wine.csv"),))
    fit(data, Recipe.of(param="map"), output=str(model))
    found = report(str(model), data, output=str(tmp_path / "r.html"), svg=str(tmp_path / "drawn"))
    assert sorted(found.pictures) == sorted(path.name for path in (tmp_path / "drawn").iterdir())
    assert len(found.pictures) == (tmp_path / "r.html").read_text().count("<figure")
    assert {"roc.svg", "shares.svg", "network.svg", "effect-proline.svg"} <= set(found.pictures)


def test_the_same_model_and_data_give_the_same_page(tmp_path: Path) -> None:
    model = tmp_path / "m.bnc"
    data = Source((str(SAMPLES / "wine.csv"),))
    fit(data, Recipe.of(param="map"), output=str(model))
    pages = []
    for name in ("a.html", "b.html"):
        report(str(model), data, output=str(tmp_path / name))
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    model = tmp_path / "m.bnc"
    data = Source((str(SAMPLES / "wine.csv"),))
    fit(data, Recipe.of(param="map"), output=str(model))
    for output in (str(model), data.paths[0]):
        with pytest.raises(UsageError, match="cannot write"):
            report(str(model), replace(data), output=output)
    with pytest.raises(UsageError, match="needs a folder"):
        report(str(model), None, output=str(tmp_path / "r.html"), svg=str(model))


def test_fit_and_evaluate_write_pages_of_what_they_know(tmp_path: Path) -> None:
    data = str(SAMPLES / "iris.csv")
    nb = ("--structure", "nb")
    outputs = {"fit": tmp_path / "f.html", "evaluate": tmp_path / "e.html"}
    assert run(["fit", data, *nb, "-q", "-o", str(tmp_path / "m.bnc"), "--report", str(outputs["fit"])]) == 0
    assert run(["evaluate", data, "--param", "map", "--folds", "3", "-q", "--report", str(outputs["evaluate"])]) == 0
    fitted, evaluated = (Read(path.read_text(encoding="utf-8")).text for path in outputs.values())
    assert "on 150 rows (out-of-fold predictions by models fitted without these rows)" in fitted
    assert "ROC curve" in fitted
    assert "Variation between folds" in evaluated
    assert "Reliability" in evaluated
    page = tmp_path / "n.html"
    assert run(["fit", data, "--param", "map", "-q", "-o", str(tmp_path / "n.bnc"), "--report", str(page)]) == 0
    assert "add --data TEST" in Read(page.read_text(encoding="utf-8")).text  # no row was held out
    assert run(["fit", data, "-q", "-o", str(tmp_path / "m.bnc"), "--report", data]) == 2
    assert run(["fit", data, "--dry-run", "--report", str(tmp_path / "x.html")]) == 2


def test_a_first_look_and_a_comparison_are_pages_too(tmp_path: Path) -> None:
    data, other = str(SAMPLES / "wine.csv"), str(SAMPLES / "iris.csv")
    outputs = [str(tmp_path / "d.html"), str(tmp_path / "c.html")]
    assert run(["describe", data, "-q", "--report", outputs[0]]) == 0
    learners = ["--learner", "nb=--structure nb --param map", "--learner", "tan=--structure tan --param map"]
    assert run(["compare", data, other, *learners, "--folds", "2", "-q", "--jobs", "1", "--report", outputs[1]]) == 0
    described, compared = (Read(Path(path).read_text(encoding="utf-8")).text for path in outputs)
    assert "has the most information about the class" in described
    assert "bncli fit" in described
    assert "has the best average rank" in compared
    assert "nb" in compared


def cards(folder: Path) -> tuple[Path, Path]:
    """Two tables of two labels, told by a number with much noise, and by a name; halves of one draw."""
    rng = np.random.default_rng(5)
    y = rng.random(1200) < 0.3
    x, name = (y + rng.normal(size=1200)).round(2), np.where(rng.random(1200) < 0.7, y, ~y)
    rows: list[list[object]] = [[a, "ab"[b], ["good", "bad"][c]] for a, b, c in zip(x, name * 1, y * 1, strict=True)]
    header = ["x", "name", "risk"]
    return written(folder / "train.csv", header, rows[:600]), written(folder / "test.csv", header, rows[600:])


def cells_of(text: str, caption: str) -> list[str]:
    """Of one table, row by row."""
    table = text.split(f"<caption>{caption}</caption>")[1].split("</table>")[0]
    return [re.sub("<[^>]*>", "", cell) for cell in re.findall("<t[hd][ >].*?</t[hd]>", table)]


@pytest.mark.parametrize(
    "rule",
    [["--threshold", "0.2371"], ["--costs", "good:bad=1,bad:good=5"], ["--abstain-below", "0.8"]],
    ids=["threshold", "costs", "abstain"],
)
def test_the_models_own_rule_decides_in_its_page(rule: list[str], tmp_path: Path) -> None:
    """Against the decisions that `score` writes."""
    train, test = cards(tmp_path)
    model, scores = str(tmp_path / "m.bnc"), tmp_path / "s.csv"
    assert run(["fit", str(train), "--class", "risk", "--param", "map", *rule, "-q", "-o", model]) == 0
    assert run(["score", model, str(test), "-q", "-o", str(scores)]) == 0
    with test.open() as file, scores.open() as other:
        truth = [row["risk"] for row in csv.DictReader(file)]
        decisions = [row["decision"] for row in csv.DictReader(other)]
    labels = ["bad", "good"]
    table = {(t, d): 0 for t in labels for d in ("bad", "good", "")}
    for pair in zip(truth, decisions, strict=True):
        table[pair] += 1
    report(model, Source((str(test),)), output=str(tmp_path / "r.html"))
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    read = Read(text)
    cells = cells_of(text, "Confusion matrix of the model&#x27;s own rule")
    order = cells[1:3]
    assert sorted(order) == labels
    abstains = rule[0] == "--abstain-below"
    own = [[one, *(str(table[one, d]) for d in (*order, *([""] if abstains else [])))] for one in order]
    assert cells[3 + abstains :] == [*own[0], *own[1]]
    wrong = sum(n for (t, d), n in table.items() if d and t != d) / sum(n for (_, d), n in table.items() if d)
    assert f"With this rule, {100 * wrong:.1f} % of the decisions are wrong." in read.text
    panel = json.loads(read.scripts[0])["panels"]["thresholds"]
    if rule[0] == "--costs":
        second_is_bad = panel["label"] == "bad"
        assert panel["costs"] == ([5.0, 1.0] if second_is_bad else [1.0, 5.0])
        assert panel["t"][panel["start"]] == pytest.approx(1 / 6 if second_is_bad else 5 / 6)
    else:
        assert panel["t"][panel["start"]] == (0.5 if abstains else 0.2371)
    if not abstains:
        i, second = panel["start"], panel["label"]
        assert panel["tp"][i] == table[second, second]
        assert panel["fp"][i] == table[panel["other"], second]


def test_how_much_is_found_from_which_threshold_on(tmp_path: Path) -> None:
    """The highest of the thresholds that the panel has which finds so much."""
    train, test = cards(tmp_path)
    text = page_of(train, tmp_path, test=test, param="map")
    read = Read(text)
    panel = json.loads(read.scripts[0])["panels"]["thresholds"]
    enough = [t for t, tp in zip(panel["t"], panel["tp"], strict=True) if tp >= 0.9 * panel["positives"]]
    place = panel["t"].index(max(enough))
    found = panel["tp"][place]
    precision = found / (found + panel["fp"][place])
    cells = cells_of(text, f"Thresholds for a target recall of {html.escape(panel['label'])}")
    told = [f"{max(enough):.4g}", *(f"{100 * share:.1f}\u00a0%" for share in (found / panel["positives"], precision))]
    assert cells[cells.index("90 %") + 1 :][:3] == told


def test_a_picture_of_several_classes_has_a_sentence_of_each(tmp_path: Path) -> None:
    text = page_of(SAMPLES / "wine.csv", tmp_path, structure="nb", param="map")
    figure_ = text.split('id="picture-effect-flavanoids"')[1].split("</figcaption>")[0]
    sentences = re.findall(r'<span data-label="(\d)"( hidden)?>The odds of (\w+) ', figure_)
    assert sentences == [("0", "", "cultivar_1"), ("1", " hidden", "cultivar_2"), ("2", " hidden", "cultivar_3")]


def test_learners_with_equal_ranks_share_the_best(tmp_path: Path) -> None:
    data, other = str(SAMPLES / "wine.csv"), str(SAMPLES / "iris.csv")
    learners = ["--learner", "one=--param map", "--learner", "other=--param map"]
    page = tmp_path / "c.html"
    assert run(["compare", data, other, *learners, "--folds", "2", "-q", "--jobs", "1", "--report", str(page)]) == 0
    assert "one, other share the best average rank, 1.50 over 2 data sets." in Read(page.read_text()).text


def test_the_page_answers_what_readers_ask_where_the_manual_says(tmp_path: Path) -> None:
    lines = (SAMPLES / "tumours.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("".join(lines[::2]), encoding="utf-8")
    test.write_text("".join([lines[0], *lines[1::2]]), encoding="utf-8")
    text = page_of(train, tmp_path, test=test, structure="tan", param="map")
    sections = {
        re.sub(r"^\d+\. ", "", Read(part).shown[1].strip()): "".join(Read(part).text.split())
        for part in re.findall("<section.*?</section>", text, flags=re.DOTALL)
    }
    manual = (ROOT / "bncli/manual/report.md").read_text(encoding="utf-8")
    table = manual.split("| a reader asks |")[1].split("\n\n")[0].splitlines()[2:]
    assert len(table) == 5
    for line in table:
        _, _, where, told, _ = (cell.strip() for cell in line.split("|"))
        if " set to " not in where:  # what follows from a value that is chosen needs a browser
            assert "".join(told.split()) in sections[where.split(",")[0]], line


def test_rows_that_look_like_those_of_training_are_warned_of(tmp_path: Path) -> None:
    train, test = cards(tmp_path)
    warned = "Figures on the training rows, too optimistic"
    assert warned in page_of(train, tmp_path, test=train, param="map")
    assert warned not in page_of(train, tmp_path, test=test, param="map")


def test_groups_that_were_asked_for_are_in_the_pages(tmp_path: Path) -> None:
    train, test = cards(tmp_path)
    model, pages = str(tmp_path / "m.bnc"), [tmp_path / "r.html", tmp_path / "e.html"]
    common = ["--by", "name", "-q"]
    assert run(["fit", str(train), "--class", "risk", "--param", "map", "-q", "-o", model]) == 0
    assert run(["report", model, "--data", str(test), *common, "-o", str(pages[0])]) == 0
    assert run(["evaluate", str(test), "--model", model, *common, "--report", str(pages[1])]) == 0
    with test.open() as file:
        sizes = Counter(row["name"] for row in csv.DictReader(file))
    for page in pages:
        cells = cells_of(page.read_text(encoding="utf-8"), "Groups by name, highest error rate first")
        assert {cells[i]: cells[i + 1] for i in (9, 18)} == {name: str(n) for name, n in sizes.items()}
        assert "By name, the highest error rate is that of" in Read(page.read_text(encoding="utf-8")).text
    assert run(["report", model, "--by", "name", "-q", "-o", str(pages[0])]) == 2


def test_the_command_line_of_a_page_makes_the_same_model_again(page: tuple[str, Path], tmp_path: Path) -> None:
    text, data = page
    (line,) = re.findall(r"bncli fit TRAIN .*", Read(text).by_lines)
    words = [{"TRAIN": str(data), "MODEL.bnc": str(tmp_path / "again.bnc")}.get(one, one) for one in shlex.split(line)]
    assert run([*words[1:], "-q"]) == 0
    told = Read(text).text
    assert hashlib.sha256((tmp_path / "again.bnc").read_bytes()).hexdigest() in told


@pytest.mark.slow
def test_that_command_leaves_out_what_was_left_out_and_labels_without_predictions_are_named(tmp_path: Path) -> None:
    data = tmp_path / "rows.csv"
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.integers(3)},{rng.integers(2)},2024-0{rng.integers(1, 9)}-01,{'ny'[rng.integers(2)]}" for _ in range(80)
    ]
    data.write_text("a,b,day,class\n" + "\n".join(lines) + "\n")
    first = ["fit", str(data), "--ignore", "b", "--structure", "nb", "--intervals", "--threshold", "0.99"]
    assert run([*first, "-o", str(tmp_path / "m.bnc"), "-q"]) == 0
    assert run(["report", str(tmp_path / "m.bnc"), str(data), "-o", str(tmp_path / "r.html"), "-q"]) == 0
    text = Read((tmp_path / "r.html").read_text())
    assert "No row is predicted as y." in text.text
    (line,) = re.findall(r"bncli fit TRAIN .*", text.by_lines)
    words = [{"TRAIN": str(data), "MODEL.bnc": str(tmp_path / "again.bnc")}.get(one, one) for one in shlex.split(line)]
    assert run([*words[1:], "-q"]) == 0
    assert (tmp_path / "again.bnc").read_bytes() == (tmp_path / "m.bnc").read_bytes()


def test_names_of_sets_that_are_shortened_can_be_told_apart() -> None:
    names = [
        ("top-left-square", f"{side}-middle-square-of-the-board", "bottom-right-square") for side in ("top", "low")
    ]
    source = share_bars("t", [(name, 1.0) for name in names], ["1", "1"]).source()
    told = re.findall(r'text-anchor="end">([^<]*)<', source)
    assert len(set(told)) == 2
    assert all("&amp; bottom-ri" in one for one in told)


def beside_page(folder: Path, *words: str) -> str:
    """Of a model on rows not seen, with others beside it: the table of figures and what follows, as text."""
    lines = (SAMPLES / "tumours.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    for name, rows in {"train": lines[1::2], "test": lines[2::2]}.items():
        (folder / f"{name}.csv").write_text("".join([lines[0], *rows]), encoding="utf-8")
    for structure in ("tan", "nb", "kdb"):
        model = str(folder / f"{structure}.bnc")
        assert (
            run(["fit", str(folder / "train.csv"), "--structure", structure, "--param", "map", "-q", "-o", model]) == 0
        )
    assert run([word.replace("FOLDER", str(folder)) for word in words]) == 0
    return Read(re.sub("(</t[dh]>)", r" \1", (folder / "r.html").read_text(encoding="utf-8"))).text


@pytest.mark.parametrize(
    "words",
    [
        ("report", "FOLDER/tan.bnc", "--data", "FOLDER/test.csv", "-o", "FOLDER/r.html"),
        ("evaluate", "FOLDER/test.csv", "--model", "FOLDER/tan.bnc", "--report", "FOLDER/r.html"),
    ],
    ids=["report", "evaluate"],
)
def test_other_models_stand_beside_with_their_own_figures(words: tuple[str, ...], tmp_path: Path) -> None:
    others = ("--beside", "FOLDER/nb.bnc", "--beside", "FOLDER/kdb.bnc", "-q")
    text = beside_page(tmp_path, *words, *others)
    assert "figure model 95 % interval nb kdb class frequencies" in text
    losses = {}
    for name in ("tan", "nb", "kdb"):
        found = evaluate_model(str(tmp_path / f"{name}.bnc"), Source((str(tmp_path / "test.csv"),)))
        log_p, codes, _ = found.predictions
        losses[name] = -log_p[codes, range(len(codes))]
    (told,) = re.findall(r"log-loss \(nats per row\) ([\d. ]+?) ([\d. ]+) to ([\d. ]+?) ([\d. ]+?) Brier", text)
    assert float(told[1]) < float(told[0]) < float(told[2])
    assert [told[0], *told[3].split()[:2]] == [f"{losses[name].mean():.4f}" for name in ("tan", "nb", "kdb")]
    gaps = losses["nb"] - losses["tan"]
    error = 2 * gaps.std() / math.sqrt(len(gaps))
    way = "lower" if gaps.mean() > 0 else "higher"
    significance = "not significant" if abs(gaps.mean()) <= error else "significant"
    assert f"log-loss is {abs(gaps.mean()):.4f} nats per row {way} than that of nb (± {error:.4f}" in text
    assert f"the difference is {significance}." in text


def test_a_model_beside_tells_the_same_class_and_rows_are_read_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fit", str(SAMPLES / "iris.csv"), "--param", "map", "-q", "-o", str(tmp_path / "iris.bnc")]) == 0
    beside_page(tmp_path, "report", "FOLDER/tan.bnc", "-q", "-o", "FOLDER/r.html")
    shown = ["report", str(tmp_path / "tan.bnc"), "--data", str(tmp_path / "test.csv"), "-o", str(tmp_path / "x.html")]
    for words, code, line in (
        (
            [*shown, "--beside", str(tmp_path / "iris.bnc")],
            3,
            "must predict diagnosis (benign, malignant); this one predicts",
        ),
        ([*shown[:3], "-", *shown[4:], "--beside", str(tmp_path / "nb.bnc")], 2, "so it needs a file"),
        ([*shown[:2], "--beside", str(tmp_path / "nb.bnc")], 2, "--beside has no effect without labelled rows"),
        (["evaluate", shown[3], "--beside", shown[1]], 2, "--beside has no effect without --report"),
        (["evaluate", shown[3], "--beside", shown[1], "--report", shown[-1]], 2, "with cross-validation"),
    ):
        assert run(words) == code
        assert line in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def test_a_panel_that_finds_no_room_says_so_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = SAMPLES / "tumours.csv"
    overall = page_of(data, tmp_path, param="map")
    assert '"effects":true' in overall
    monkeypatch.setattr(pages, "MOST_BYTES", len(overall.encode()) - 1)
    assert '"effects":false' in page_of(data, tmp_path, param="map")
    monkeypatch.setattr(pages, "MOST_BYTES", 0)
    none = page_of(data, tmp_path, param="map")
    assert "panel-what-if" not in none
    assert re.search(
        "There is no form for entering a row: a model of [0-9]+ table entries makes the page larger", Read(none).text
    )


@pytest.mark.slow
def test_a_page_of_a_comparison_draws_ranks_and_every_learner_against_the_baseline(tmp_path: Path) -> None:
    data = [str(SAMPLES / f"{name}.csv") for name in ("iris", "tumours", "wine")]
    learners = [word for name in ("nb", "kdb") for word in ("--learner", f"{name}=--structure {name} --param map")]
    words = ["--folds", "2", "--jobs", "1", "-q"]
    found = {}
    for n in (1, 3):
        assert run(["compare", *data[:n], *learners, *words, "--report", str(tmp_path / "c.html")]) == 0
        found[n] = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert 'id="picture-scatter-' not in found[1]
    metrics = re.findall('<section id="by-([a-z_]+)"', found[3])
    assert metrics
    for metric in metrics:
        assert f'id="picture-ranks-{metric}"' in found[3]
        (scatter,) = re.findall(f'id="picture-scatter-{metric}".*?</figure>', found[3], re.DOTALL)
        assert scatter.count("<circle") == 3
    assert "a bar joins learners without a significant difference" in Read(found[3]).text


def test_small_effects_are_folded_and_every_picture_is_named_by_its_attributes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 900)
    strong = [(y + (rng.random(900) < 0.2)) % 2 for _ in range(4)]
    weak = [np.where(rng.random(900) < 0.52, y, 1 - y) for _ in range(2)]
    rows: list[list[object]] = [list(row) for row in np.column_stack([*strong, *weak, y]).tolist()]
    names = ["a", "a b", "a/b", "../d", "weak", "dim"]
    data = written(tmp_path / "d.csv", [*names, "class"], [[*(f"v{v}" for v in row[:-1]), row[-1]] for row in rows])
    text = page_of(data, tmp_path, structure="nb", param="map")
    shown, folded = text.split('<details id="small-effects">')
    folded = folded.split("</details>")[0]
    pattern = 'id="picture-effect-([^"]+)"'
    assert sorted(re.findall(pattern, shown)) == ["a", "a_b", "a_b-2", "d"]
    assert sorted(re.findall(pattern, folded)) == ["dim", "weak"]
    assert "2 effects below 1.0\u00a0% of the variance" in folded


def test_tables_beyond_the_most_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.bnc"
    sample = ROOT / "sample_data" / "wine.csv"
    assert run(["fit", str(sample), "--structure", "nb", "--param", "map", "-q", "-o", str(path)]) == 0
    monkeypatch.setattr(structure_section, "MOST_NODES", 4)
    monkeypatch.setattr(structure_section, "MOST_REGIONS", 2)
    assert run(["report", str(path), "-q", "-o", str(tmp_path / "m.html")]) == 0
    text = Read((tmp_path / "m.html").read_text(encoding="utf-8")).text
    names = [attribute.name for attribute in read_model(str(path)).schema.attributes]
    assert "Tables of the model (6)" in text
    assert (
        f"Tables not shown (see bncli inspect --tables): {', '.join(names[6:11])} and {len(names) - 11} more." in text
    )
