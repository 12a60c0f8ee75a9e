"""The common part of exported programs: their data, as a literal of both Python and JavaScript.

    {"class": NAME, "labels": [...], "missing_texts": [...], "missing_numbers": [...],
     "inputs": [{"name": ..., "cuts": [...] or "codes": [[text, code], ...], "missing": code, "frequencies": [...]}],
     "stages": [{"weight": w, "anew": 0 or 1, "shift": [...],
                 "tables": [{"inputs": [p, ...], "digits": [[digit of every code], ...], "shape": [...],
                             "averaged": [0 or 1, ...] or [], "entries": [[number of every cell], ...]}]}]}

`entries` has one list per score. A calibrated model also has one of

    "calibration": {"powers": [[scale of every label], [shift]]} or {"lines": [[ends, starts, levels, slopes], ...]}

and a program with a decision rule has the keys that the rule needs:

    "decisions": {"costs": [[cost of every decision], ...], "threshold": p, "abstain_below": p}

where `costs` has one list per true label.

`bncli.engine.prediction.portable` explains the parts. Numbers are written so that they read back exactly, and invisible
characters are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from bncli.errors import BncliError

if TYPE_CHECKING:
    from bncli.engine.kernels.arrays import Array
    from bncli.engine.model import DecisionRule
    from bncli.engine.prediction.portable import PortableEffects, PortableScorer

_INVISIBLE = re.compile(
    "[\\x7f-\\x9f\\xad\u0600-\u0605\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_MOST_SECONDS = 3600
"""The maximum time, in seconds, for a program to score the rows with which it is verified."""


class ProgramTarget(NamedTuple):
    """Settings of a program to write; each format uses those that concern it.

    name: a name for the program. missing, missing_numbers: strings that mean a missing value in text columns and in
    numeric columns. options: the options of the format. effects: computes the effects of the model over the inputs of
    the program. rule: the decision rule, or None for a program that only returns probabilities.
    """

    name: str
    missing: tuple[str, ...] = ()
    missing_numbers: tuple[str, ...] = ()
    options: Mapping[str, Any] = MappingProxyType({})
    effects: Callable[..., PortableEffects] | None = None
    rule: DecisionRule | None = None


def data_text(
    scorer: PortableScorer, target: ProgramTarget, pack_entries: Callable[[Array], list[Any]] | None = None
) -> str:
    """Format the data with one line per table; `pack_entries` encodes a table's entries, by default as numbers."""
    inputs = []
    for column in scorer.inputs:
        coding = {"cuts": list(column.cuts or ())} if column.codes is None else {"codes": list(column.codes.items())}
        inputs.append(
            {"name": column.name, **coding, "missing": column.missing, "frequencies": list(column.frequencies)}
        )
    stages = []
    for stage in scorer.stages:
        tables = [
            {
                "inputs": list(table.inputs),
                "digits": [list(map(int, digits)) for digits in table.digits],
                "shape": list(table.shape),
                "averaged": [] if table.averages is None else [int(average is not None) for average in table.averages],
                "entries": table.entries.tolist() if pack_entries is None else pack_entries(table.entries),
            }
            for table in stage.tables
        ]
        head = f'"weight": {literal(stage.weight)}, "anew": {int(stage.anew)}, "shift": {literal(stage.shift.tolist())}'
        table_lines = ",\n".join("      " + literal(table) for table in tables)
        stages.append(f'    {{{head}, "tables": [\n{table_lines}\n    ]}}')
    input_lines = ",\n".join("    " + literal(column) for column in inputs)
    stage_lines = ",\n".join(stages)
    fields = [
        f'  "class": {literal(scorer.class_name)}',
        f'  "labels": {literal(list(scorer.labels))}',
        f'  "missing_texts": {literal(list(target.missing))}',
        f'  "missing_numbers": {literal(list(target.missing_numbers))}',
        f'  "inputs": [\n{input_lines}\n  ]',
        f'  "stages": [\n{stage_lines}\n  ]',
    ]
    if (calibration := scorer.calibration) is not None:
        is_powers = bool(calibration.powers)
        maps = {"powers": calibration.powers} if is_powers else {"lines": calibration.lines}
        fields.append(f'  "calibration": {literal(maps)}')
    if (rule := target.rule) is not None:
        decisions = {
            "costs": None if rule.costs is None else [list(row) for row in rule.costs],
            "threshold": None if rule.threshold is None else rule.threshold.value,
            "abstain_below": rule.abstain_below,
        }
        present = {key: value for key, value in decisions.items() if value is not None}
        fields.append(f'  "decisions": {literal(present)}')
    return "{\n" + ",\n".join(fields) + "\n}"


def has_decision_rule(text: str) -> bool:
    """Return whether the data in a program contain a decision rule."""
    return '\n  "decisions": ' in text


def literal(value: Any) -> str:
    """Format a value as a literal of JSON, Python and JavaScript; it must not contain None, True or False.

    Raises ValueError for a number that is not finite.
    """
    import json  # imported here, because help and the recognition of files do not need it

    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def run_program(command: Sequence[str], files: Mapping[str, str], rows: list[dict[str, Any]]) -> list[Any]:
    """Run a program that reads rows as JSON from the standard input, and return the parsed JSON that it prints.

    The files are written to a temporary folder; `{}` in the command stands for its path. Raises BncliError if the
    program fails, takes more than an hour, or does not print JSON.
    """
    import json
    import subprocess
    from pathlib import Path

    from bncli.files.atomic import temporary_folder

    with temporary_folder() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        words = [word.replace("{}", folder) for word in command]
        try:
            done = subprocess.run(
                words, input=json.dumps(rows), capture_output=True, check=True, encoding="utf-8", timeout=_MOST_SECONDS
            )
            answers: list[Any] = json.loads(done.stdout)
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            reason = next((line for line in reversed(lines) if "Error" in line), lines[-1] if lines else "no output")
            interpreter = Path(command[0]).name
            what = f"the exported program could not be run by {interpreter}: {reason.strip()}"
            raise BncliError(what, hint=f"try another version of {interpreter}") from error
    return answers
