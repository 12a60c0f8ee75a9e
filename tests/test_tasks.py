"""The commands of `bncli help tasks` run, in their order, on a table that has the columns they name."""

from __future__ import annotations

import csv
import gzip
import re
import shlex
from pathlib import Path

import pytest

from bncli.cli.main import run
from tests.manual_tables import MANUAL
from tests.transcripts import ROOT

PAGE = (MANUAL / "tasks.md").read_text()
TASKS = re.findall(r"^\| ([a-z].*?) \| `(bncli .*?)` \|$", PAGE, flags=re.MULTILINE)


def write_tables(folder: Path) -> None:
    """Write rows of the tumours, with three of their columns and five more, as train.csv, test.csv and new.csv."""
    with open(ROOT / "sample_data" / "tumours.csv", newline="") as file:
        tumours = list(csv.DictReader(file))
        rows = [
            {
                "id": f"r{i:03}",
                "patient": f"p{i // 2:03}",
                "visit": f"2024-{i // 20 + 1:02}-{i % 20 + 1:02}",
                "ward": i * i % 7,
                "sex": "fm"[i * i % 3 % 2],
                **{name: row[name] for name in ("radius", "texture", "worst_area", "diagnosis")},
            }
            for i, row in enumerate(tumours[k * 37 % len(tumours)] for k in range(210))
        ]
    for name, part in (("train", rows[:100]), ("test", rows[100:180]), ("new", rows[180:])):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0])[: -1 if name == "new" else None], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(part)
    (folder / "new.csv.gz").write_bytes(gzip.compress((folder / "new.csv").read_bytes()))
    (knowledge,) = re.findall(r"`known.toml` has one line: `(.*?)`", PAGE)
    (folder / "known.toml").write_text(f"{knowledge}\n")


def test_thirty_tasks() -> None:
    assert len(TASKS) == len(re.findall(r"^\|(?! I want| ---)", PAGE, flags=re.MULTILINE)) == 30
    assert len({want for want, _ in TASKS}) == len({command for _, command in TASKS}) == 30


@pytest.mark.slow
def test_every_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A configuration file spares the time of choosing a structure, which no command is about."""
    write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("settings.toml").write_text('structure = "nb"\n')
    monkeypatch.setenv("BNCLI_CONFIG", "settings.toml")
    for _, command in TASKS:
        code = run(shlex.split(command)[1:])
        out, err = capfdbinary.readouterr()
        assert (command, code) == (command, 0), err.decode()
        outputs = re.findall(r" -o (\S+)", command)
        assert bool(out) + bool(outputs) == 1 or "verify" in command, command
        assert all((tmp_path / name).stat().st_size for name in outputs)


def test_the_commonest_tasks_are_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    assert set(re.findall(r"^\| ([a-z].*?) \| `(bncli .*?)` \|$", text, flags=re.MULTILINE)) <= set(TASKS)
    assert len(re.findall(r"^\| [a-z].*? \| `bncli .*?` \|$", text, flags=re.MULTILINE)) == 10
