"""`bncli simulate`: rows out of a model or a random network, and the truth behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bncli.catalogue import NETWORKS, refuse_options_without_effect
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import Paths, flag, real, share, whole
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.engine.networks.simulation import RandomNetworkKind, Range
    from bncli.steps.simulate import SimulateReport

EXAMPLES = """\
bncli simulate data.bnc --rows 5000 > more.csv
bncli simulate --network 2.30.2-3.1000 --seed 7 -o set.csv --network-out truth.json
bncli simulate --network tan --attributes 20 --rows 100000 -o set.parquet --model-out truth.bnc
bncli simulate --network conditioning --exponent 1 --rows 10000 -o ill.csv
bncli simulate data.bnc --rows 5000 --missing 0.25 > incomplete.csv
"""

_DEFAULT_ROWS = 1000


def _range(text: str) -> Range:
    """Return the type of an option that takes a whole number, or two with a hyphen between them."""
    least, hyphen, most = text.partition("-")
    number = whole(2)
    return number(least), number(most if hyphen else least)


MODEL = click.argument("model", required=False, metavar="[MODEL]", cls=Paths)
ORIGIN = (
    flag(
        "--network",
        group="Network",
        metavar="WORD|P.N.D.ROWS",
        words=(
            *((method.word, method.summary) for method in NETWORKS.methods),
            ("P.N.D.ROWS", "N attributes of D values each with P parents, the class and those just before"),
        ),
        help="Draw from a network made for the purpose instead of a model. D may be a range, as in 2.30.2-3.1000.",
    ),
    flag("--k", group="Network", metavar="N", type=whole(0, 1000), default_text="1", help="Attribute parents in kdb."),
    flag(
        "--attributes",
        group="Network",
        metavar="N",
        type=whole(1),
        default_text="10",
        help="Attributes of nb, tan and kdb.",
    ),
    flag(
        "--values",
        group="Network",
        metavar="N|N-N",
        type=_range,
        default_text="3",
        help="Values of each attribute of nb, tan and kdb; from a range a number is drawn for each.",
    ),
    flag(
        "--classes", group="Network", metavar="N", type=whole(2), default_text="2", help="Labels of the class of these."
    ),
    flag(
        "--exponent",
        group="Network",
        metavar="A",
        type=real,
        default_text="1",
        help="Coefficients 10^A, 1 and 10^-A in conditioning.",
    ),
)
MISSING = (
    flag(
        "--missing",
        group="Missing values",
        metavar="SHARE",
        type=share,
        default_text="0",
        setting=False,
        help="Remove each value of an attribute with this probability. The other values stay as they are.",
    ),
    flag(
        "--missing-from-model",
        group="Missing values",
        is_flag=True,
        setting=False,
        help="Remove each as often as its attribute was missing when MODEL was learnt.",
    ),
)
WRITING = (
    flag("--rows", group="Output", metavar="N", type=whole(1), default_text=f"{_DEFAULT_ROWS}", help="Rows to draw."),
    options.output("Where the rows go [standard output]."),
    flag(
        "--output-format",
        group="Output",
        type=click.Choice(["csv", "parquet"]),
        default_text="by the ending of FILE, else csv",
        help="Format of the rows.",
    ),
    flag("--network-out", group="Output", metavar="FILE", help="The true network, as a structure file."),
    flag("--model-out", group="Output", metavar="FILE", help="The true network with its tables, as a model file."),
)


@declare(
    "simulate",
    EXAMPLES,
    (MODEL,),
    ORIGIN,
    MISSING,
    WRITING,
    options.RUNNING,
    more="A MODEL must hold the probabilities of a network (--param map, acll, extended, em or apn). --json needs -o. "
    "The seed decides the network, then the rows; every distribution in a random network is drawn uniformly.",
)
def command(**typed: Any) -> None:
    """Draw rows and says what from."""
    given = [f"--{name}" for name in ("k", "attributes", "values", "classes", "exponent") if typed[name] is not None]
    # Rows come either from a model or from a network that is made.
    if typed["model"] is not None and typed["network"] is not None:
        raise UsageError("a MODEL and --network are given", hint="leave one of them out")
    if typed["model"] is None and typed["network"] is None:
        raise UsageError("there is nothing to draw from", hint="give a MODEL, or --network tan")
    if typed["model"] is not None and typed["model_out"] is not None:
        raise UsageError("--model-out has no effect with a MODEL", hint="the model is that file already")
    if typed["model"] is not None and given:
        raise UsageError(f"{given[0]} has no effect with a MODEL", hint="it goes with --network")
    if typed["missing_from_model"] and typed["model"] is None:
        raise UsageError("--missing-from-model has no effect with --network", hint="give a MODEL, or --missing 0.25")
    if typed["missing_from_model"] and typed["missing"] is not None:
        raise UsageError("--missing and --missing-from-model are given", hint="leave one of them out")
    if typed["model"] == "-":
        raise UsageError("a model cannot be read from the standard input", hint="name its file")
    _refuse_mixing(typed)
    origin, rows = _origin(typed, given)
    from bncli.steps.simulate import SimulateOutputs, simulate

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        report = simulate(
            origin,
            rows,
            SimulateOutputs(
                typed["output"],
                typed["output_format"],
                options.named(typed["network_out"]),
                options.named(typed["model_out"]),
            ),
            seed=typed["seed"],
            missing="model" if typed["missing_from_model"] else typed["missing"],
            watch=console.watch,
        )
        console.summary(summary(report))
        if console.as_json:
            console.json(report)


def _refuse_mixing(typed: Mapping[str, Any]) -> None:
    """Of rows, report and files, one may go to the standard output; and nobody reads Parquet on a terminal."""
    import sys

    to_stdout = typed["output"] in (None, "-")
    if typed["as_json"] and to_stdout:
        raise UsageError("--json needs -o FILE", hint="the standard output cannot hold rows and counts at once")
    places = [typed["output"] or "-", typed["network_out"], typed["model_out"]]
    if [*places, "-" if typed["as_json"] else None].count("-") > 1:
        raise UsageError("the standard output can hold one result only", hint="name files for the others")
    if to_stdout and typed["output_format"] == "parquet" and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("--output-format parquet is nothing for a terminal", hint="name a file with -o, or pipe it on")


def _origin(typed: Mapping[str, Any], given: list[str]) -> tuple[str | RandomNetworkKind | float, int]:
    """Return what the rows are drawn from, and how many."""
    word, rows = typed["network"], typed["rows"] or _DEFAULT_ROWS
    if word is None:
        return typed["model"], rows
    from bncli.engine.networks.simulation import named_spec

    named = named_spec(word)
    if named is None and NETWORKS.method(word) is None:
        raise _unknown(word)
    refuse_options_without_effect(given, {NETWORKS.flag: word}, (NETWORKS,))
    if named is None:
        return _made(typed, word), rows
    if typed["rows"] is not None:
        raise UsageError(f"--rows has no effect with --network {word}", hint="the name says how many rows")
    return named, named.rows or rows


def _unknown(word: str) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(word, NETWORKS.words, n=1)
    choices = f"the choices are {', '.join(NETWORKS.words)} and names like 2.30.2-3.1000"
    return UsageError(f"--network knows no {word!r}", hint=f"did you mean {near[0]}?" if near else choices)


def _made(typed: Mapping[str, Any], word: str) -> RandomNetworkKind | float:
    """Return a network by its word, with the options that were typed and the defaults of the others."""
    from bncli.engine.networks.simulation import RandomNetworkKind

    if word == "conditioning":
        return float(1.0 if typed["exponent"] is None else typed["exponent"])
    k = {"nb": 0, "tan": 1}.get(word, 1 if typed["k"] is None else typed["k"])
    classes = typed["classes"] or 2
    attributes, values = typed["attributes"] or 10, typed["values"] or (3, 3)
    said: dict[str, int | float | str | bool] = {"network": word} | ({"k": k} if word == "kdb" else {})
    return RandomNetworkKind(word, k, attributes, values, (classes, classes), options=said)


def summary(report: SimulateReport) -> list[str]:
    """Return the end of a run in a few lines."""
    perfect = "perfect" if report.perfect else "not perfect"
    files = {"network": report.network_file, "model": report.model_file, "rows in": report.output}
    return [
        f"rows        {report.rows:,} of {report.attributes:,} attributes and the class ({report.classes:,} labels)",
        f"drawn from  {report.model or report.network}: {report.arcs:,} arcs, {perfect}, "
        f"{report.probabilities:,} probabilities",
        *_missing(report),
        *(f"{what:<12}{path}" for what, path in files.items() if path),
    ]


def _missing(report: SimulateReport) -> list[str]:
    """Whatever made them: values removed, or a missing value that the model draws like any other."""
    if report.missing is None and not report.holes:
        return []
    values = report.rows * report.attributes
    return [f"missing     {report.holes:,} of {values:,} values ({report.holes / max(values, 1):.1%})"]
