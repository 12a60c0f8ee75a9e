"""The manual as a web site and as man pages: complete, with links that lead somewhere, and readable by others."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest

from bncli.cli.commands import COMMANDS, group
from bncli.cli.help import TOPICS, subject_of
from bncli.cli.main import run
from bncli.cli.options import Flag
from tests.chromium import Browser, chromium
from tests.cli.conftest import Bncli
from tests.manual_tables import MANUAL
from tests.steps.test_report_axe import AXE, violations
from tests.sweeps import every_value

WORDS = [command.word for command in COMMANDS]
in_browser = pytest.mark.skipif(chromium() is None, reason="there is no Chromium to open pages with")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert run(["help", "--html", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def man(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man")
    assert run(["help", "--man", str(folder)]) == 0
    return folder


class Elements(HTMLParser):
    """The links, the anchors, and what is open at the end of a page."""

    VOID = ("meta", "link", "input", "br", "hr", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.anchors.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def options_of(word: str) -> list[Flag]:
    command = group.get_command(click.Context(group), word)
    assert command is not None
    return [flag for flag in command.params if isinstance(flag, Flag)]


def test_every_topic_and_every_command_has_a_page(site: Path, man: Path) -> None:
    pages = {f"{topic}.html" for topic in TOPICS} | {f"bncli-{word}.html" for word in WORDS}
    assert {path.name for path in site.iterdir()} == pages | {"index.html", "manual.css", "manual.js"}
    pages = {f"bncli-{topic}.7" for topic in TOPICS} | {f"bncli-{word}.1" for word in WORDS}
    assert {path.name for path in man.iterdir()} == pages | {"bncli.1"}


def test_every_link_resolves(site: Path) -> None:
    pages = {path.name: Elements(path.read_text(encoding="utf-8")) for path in site.glob("*.html")}
    for name, page in pages.items():
        assert page.open == [], name
        assert len(set(page.anchors)) == len(page.anchors), name
        for link in page.links:
            file, _, anchor = link.partition("#")
            if file in ("manual.css", "manual.js") or file.startswith("https://"):
                continue
            assert (file or name) in pages, f"{name}: {link}"
            assert not anchor or anchor in pages[file or name].anchors, f"{name}: {link}"
    places = re.findall(r'^\[".*?", "([\w.-]+)#?([\w-]*)", ".*"\],?$', (site / "manual.js").read_text(), re.MULTILINE)
    assert len(places) > 500
    for file, anchor in places:
        assert not anchor or anchor in pages[file].anchors, f"{file}#{anchor}"


def test_pointers_of_the_text_are_links(site: Path) -> None:
    for topic in TOPICS:
        pointers = re.findall(r"`bncli help ([a-z-]+)`", (MANUAL / f"{topic}.md").read_text())
        links = Elements((site / f"{topic}.html").read_text(encoding="utf-8")).links
        assert {f"{pointer}.html" for pointer in pointers if pointer in TOPICS} <= set(links), topic
    assert "quick-start.html" in Elements((site / "index.html").read_text(encoding="utf-8")).links


@pytest.mark.parametrize("word", WORDS)
def test_the_page_of_a_command_has_every_option(site: Path, man: Path, word: str) -> None:
    page = (site / f"bncli-{word}.html").read_text(encoding="utf-8")
    source = (man / f"bncli-{word}.1").read_text(encoding="utf-8").replace("\\-", "-")
    for flag in options_of(word):
        name = max(flag.opts, key=len)
        assert f'<dt id="{name}">' in page
        assert re.search(rf"^\.TP\n\\fB(-\w, )?{name}\b", source, flags=re.MULTILINE), name
        summary = (flag.help or "").split("bncli help")[0].strip()
        assert summary in unescape(re.sub(r"<[^>]+>", "", page))


def test_the_text_of_a_topic_is_all_there(site: Path) -> None:
    for topic in TOPICS:
        text = (MANUAL / f"{topic}.md").read_text()
        text = re.sub(r"^(<!--.*-->|```.*|\|[ :|-]+\|)\n|^ *\d+\. ", "", text, flags=re.MULTILINE)
        text = re.sub(r"\]\(.*?\)", "", text)
        main = (site / f"{topic}.html").read_text(encoding="utf-8").split('<main id="main">')[1].split("</main>")[0]
        shown = unescape(re.sub(r"<[^>]+>", " ", main))
        assert re.findall(r"\w", shown) == re.findall(r"\w", text), topic


@pytest.mark.slow
def test_a_folder_may_exist_and_is_written_again(bncli: Bncli, tmp_path: Path, site: Path) -> None:
    first = {path.name: path.read_bytes() for path in site.iterdir()} | {"notes.txt": b"mine"}
    (tmp_path / "site").mkdir()
    for name, content in first.items():
        (tmp_path / "site" / name).write_bytes(content)
    assert bncli("help", "--html", "site") == (0, "", "written     site/index.html, the first page of the manual\n")
    assert {path.name: path.read_bytes() for path in (tmp_path / "site").iterdir()} == first
    assert bncli("help", "--html", "a/b", "--man", "c").err == (
        "written     a/b/index.html, the first page of the manual\nwritten     c/bncli.1, the first of the man pages\n"
    )


@pytest.mark.parametrize(("flag", "name"), [("--html", "index.html"), ("--html", "fit.html"), ("--man", "bncli.1")])
def test_files_of_others_stay(bncli: Bncli, tmp_path: Path, flag: str, name: str) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / name).write_text("mine")
    ran = bncli("help", flag, "site")
    assert (tmp_path / "site" / name).read_text() == "mine"
    if name != "fit.html":
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            "Error: a file of this name exists and is not part of a manual, so it is not replaced, "
            f"site/{name}; choose another folder, or move the file\n"
        )
        assert list((tmp_path / "site").iterdir()) == [tmp_path / "site" / name]


@pytest.mark.parametrize(
    ("folder", "flag"), every_value(["iris.csv", "iris.csv/site", "-", "/proc/none", ""], ["--html", "--man"])
)
def test_a_folder_that_cannot_be_written_is_one_line(bncli: Bncli, flag: str, folder: str) -> None:
    ran = bncli("help", flag, folder)
    assert ran.code in (1, 2)
    assert ran.out == ""
    assert re.fullmatch(r"Error: .*\n", ran.err)


def test_the_whole_manual_takes_no_topic(bncli: Bncli) -> None:
    for flag in ("--html", "--man"):
        ran = bncli("help", "kdb", flag, "site")
        expected = f"Error: {flag} writes the whole manual, so it takes no topic; leave out kdb\n"
        assert ran == (2, "", expected)
    assert not Path("site").exists()


def test_man_pages_have_their_name(man: Path) -> None:
    for topic in TOPICS:
        source = (man / f"bncli-{topic}.7").read_text(encoding="utf-8").replace("\\-", "-").replace("\\(ga", "`")
        assert f"\n.SH NAME\nbncli-{topic} - {subject_of(topic)}\n.SH " in source
    if shutil.which("lexgrog") is None:
        pytest.skip("there is no lexgrog")
    files = sorted(man.iterdir())
    read = subprocess.run(["lexgrog", *files], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [re.split(r': "| - ', line)[1] for line in read] == [path.stem for path in files]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("groff") is None or shutil.which("tbl") is None, reason="there is no groff")
def test_groff_has_no_complaint(man: Path) -> None:
    for path in sorted(man.iterdir()):
        done = subprocess.run(
            ["groff", "-t", "-K", "utf8", "-T", "utf8", "-man", "-ww", "-z", path], capture_output=True, text=True
        )
        # Lines that are longer than the page stand in examples, which are printed as they are.
        complaints = [line for line in done.stderr.splitlines() if "cannot adjust line" not in line]
        assert (path.name, done.returncode, complaints) == (path.name, 0, [])


@pytest.mark.slow
@in_browser
def test_no_page_is_wider_than_a_phone_or_says_anything(site: Path) -> None:
    with Browser() as browser:
        for path in sorted(site.glob("*.html")):
            page = browser.open(path, width=360)
            widths = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
            assert widths[0] <= widths[1], path.name
            assert page.complaints() == [], path.name
            assert all(url.startswith("file:") for url in page.requests())
            page.call("Page.close")


@pytest.mark.slow
@in_browser
def test_search_finds_topics_headings_options_and_methods(site: Path) -> None:
    search = """(text => {
      const field = document.getElementById("search");
      field.value = text;
      field.dispatchEvent(new Event("input"));
      return [...document.querySelectorAll("#results a")].map(link => link.getAttribute("href"));
    })"""
    with Browser() as browser:
        page = browser.open(site / "index.html")
        for text, place in (
            ("Calibration", "calibration.html"),
            ("fairness", "groups.html"),
            ("cost", "decisions.html"),
            ("class weights", "decisions.html#class-weights"),
            ("--penalty", "bncli-fit.html#--penalty"),
            ("kdb", "structures.html#kdb-and-skdb"),
            ("--structure kdb", "bncli-fit.html#--structure"),
            ("bncli fit", "bncli-fit.html"),
            ("missing values", "missing-values.html"),
        ):
            assert page.evaluate(f"{search}({text!r})")[0] == place, text
        assert page.evaluate(f"{search}('xyzzy')") == []
        assert page.evaluate("document.getElementById('status').textContent") == "no results"
        assert len(page.evaluate(f"{search}('the')")) == 12


@in_browser
@pytest.mark.slow
@pytest.mark.skipif(not AXE, reason="BNCLI_AXE names no axe.min.js (npm install axe-core)")
def test_no_page_of_the_site_breaks_a_rule_of_accessibility(site: Path) -> None:
    with Browser() as browser:
        for name in ("index", "glossary", "which-one", "decisions", "bncli-help", "bncli-config"):
            page = browser.open(site / f"{name}.html")
            assert (name, violations(page)) == (name, [])
            page.colour("dark")
            assert (name, violations(page, '{runOnly: ["color-contrast"]}')) == (name, [])
