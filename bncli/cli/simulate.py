"""`bncli simulate`: draw rows from a model or a random network; write them and, if requested, the network."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bncli.catalogue import NETWORKS, refuse_options_without_effect
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import FilePath, flag, integer, output_flag, real, share
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.engine.networks.simulation import RandomNetworkKind, Range

EXAMPLES = """\
bncli simulate data.bnc --rows 5000 > more.csv
bncli simulate --network 2.30.2-3.1000 --seed 7 -o set.csv --network-out truth.json
bncli simulate --network tan --attributes 20 --rows 100000 -o set.parquet --model-out truth.bnc
bncli simulate --network conditioning --exponent 1 --rows 10000 -o ill.csv
bncli simulate data.bnc --rows 5000 --missing 0.25 > incomplete.csv
"""
_network_flag = partial(flag, group="Network")

_DEFAULT_ROWS = 1000


def _parse_range(text: str) -> Range:
    """Parse a range N-N into its bounds; for a single N both bounds are N."""
    least, hyphen, most = text.partition("-")
    number = integer(2)
    return number(least), number(most if hyphen else least)


MODEL = click.argument("model", required=False, metavar="[MODEL]", cls=FilePath)
ORIGIN = (
    _network_flag(
        "--network",
        metavar="WORD|P.N.D.ROWS",
        words=(
            *((method.word, method.summary) for method in NETWORKS.methods),
            (
                "P.N.D.ROWS",
                "N attributes of D values, each with P parents: the class and the attributes just before it",
            ),
        ),
        help="Draw from a random network instead of a model. D may be a range, as in 2.30.2-3.1000.",
    ),
    _network_flag("--k", type=integer(0, 1000), default_text="1", help="kdb: number of attribute parents."),
    _network_flag("--attributes", type=integer(1), default_text="10", help="nb, tan and kdb: number of attributes."),
    _network_flag(
        "--values",
        metavar="N|N-N",
        type=_parse_range,
        default_text="3",
        help="nb, tan and kdb: number of values of each attribute, or a range to draw it from.",
    ),
    _network_flag(
        "--classes", type=integer(2), default_text="2", help="nb, tan and kdb: number of labels of the class."
    ),
    _network_flag(
        "--exponent",
        metavar="A",
        type=real,
        default_text="1",
        help="conditioning: the coefficients are 10^A, 1 and 10^-A.",
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
        help="Remove each attribute value with this probability.",
    ),
    flag(
        "--missing-from-model",
        group="Missing values",
        is_flag=True,
        setting=False,
        help="Remove values as often as they were missing in the training rows of MODEL.",
    ),
)
WRITING = (
    output_flag("--rows", type=integer(1), default_text=f"{_DEFAULT_ROWS}", help="Number of rows to draw."),
    options.output("The file of rows [standard output]."),
    output_flag(
        "--output-format",
        type=click.Choice(["csv", "parquet"]),
        default_text="by the extension of FILE, else csv",
        help="Format of the rows.",
    ),
    output_flag("--network-out", metavar="FILE", help="Write the true network as a structure file."),
    output_flag("--model-out", metavar="FILE", help="Write the true network with its tables as a model file."),
)


@declare(
    "simulate",
    EXAMPLES,
    (MODEL,),
    ORIGIN,
    MISSING,
    WRITING,
    options.RUNNING,
    more="A MODEL must contain the probabilities of a network (--param map, acll, extended, em or apn). --json needs "
    "-o. "
    "The seed determines the network, then the rows; every distribution in a random network is drawn uniformly.",
)
def command(**typed: Any) -> None:
    """Draw rows and write them; also write the network and its model if files for these were named."""
    network_options = [
        f"--{name}" for name in ("k", "attributes", "values", "classes", "exponent") if typed[name] is not None
    ]
    _refuse_contradictions(typed, network_options)
    origin, n_rows = _origin(typed, network_options)
    from bncli.steps.simulate import SimulateOutputs, simulate

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        report = simulate(
            origin,
            n_rows,
            SimulateOutputs(
                typed["output"],
                typed["output_format"],
                options.output_path(typed["network_out"]),
                options.output_path(typed["model_out"]),
            ),
            seed=typed["seed"],
            missing="model" if typed["missing_from_model"] else typed["missing"],
            watch=console.watch,
        )
        perfect = "perfect" if report.perfect else "not perfect"
        lines = [
            f"rows        {report.rows:,}, with {report.attributes:,} attributes and the class "
            f"({report.classes:,} labels)",
            f"drawn from  {report.model or report.network}: {report.arcs:,} arcs, {perfect}, "
            f"{report.probabilities:,} probabilities",
        ]
        if report.missing is not None or report.holes:
            # Values may be missing although none were removed, if missing is one of the values that the model draws.
            values = report.rows * report.attributes
            lines.append(f"missing     {report.holes:,} of {values:,} values ({report.holes / max(values, 1):.1%})")
        files = {"network": report.network_file, "model": report.model_file, "rows in": report.output}
        console.finish(report, [*lines, *(f"{what:<12}{path}" for what, path in files.items() if path)])


def _refuse_contradictions(typed: Mapping[str, Any], network_options: Sequence[str]) -> None:
    """Raise UsageError for options that exclude each other or have no effect, and for two results on one output."""
    has_model = typed["model"] is not None
    if has_model and typed["network"] is not None:
        raise UsageError("MODEL and --network were both given", hint="leave one of them out")
    if not has_model and typed["network"] is None:
        raise UsageError("there is no network to draw from", hint="give a MODEL, or --network tan")
    if has_model and typed["model_out"] is not None:
        raise UsageError(
            "--model-out has no effect with a MODEL", hint="leave it out: the model already exists as a file"
        )
    if has_model and network_options:
        raise UsageError(f"{network_options[0]} has no effect with a MODEL", hint="use it with --network")
    if typed["missing_from_model"] and not has_model:
        raise UsageError("--missing-from-model has no effect with --network", hint="give a MODEL, or --missing 0.25")
    if typed["missing_from_model"] and typed["missing"] is not None:
        raise UsageError("--missing and --missing-from-model were both given", hint="leave one of them out")
    rows_to_stdout = typed["output"] in (None, "-")
    if typed["as_json"] and rows_to_stdout:
        raise UsageError(
            "--json needs -o FILE", hint="the standard output cannot take both the rows and the JSON report"
        )
    outputs = [typed["output"] or "-", typed["network_out"], typed["model_out"], "-" if typed["as_json"] else None]
    if outputs.count("-") > 1:
        raise UsageError("the standard output can take only one result", hint="write the others to files")
    to_terminal = rows_to_stdout and sys.stdout is not None and sys.stdout.isatty()
    if to_terminal and typed["output_format"] == "parquet":
        raise UsageError(
            "--output-format parquet cannot be shown in a terminal", hint="add -o FILE, or redirect the output"
        )


def _origin(typed: Mapping[str, Any], network_options: Sequence[str]) -> tuple[str | RandomNetworkKind | float, int]:
    """Return the origin of the rows, and the number of rows.

    The origin is the path of a model, a kind of random network, or the exponent of the network `conditioning`. Raises
    UsageError for an unknown --network, and for options that have no effect with it.
    """
    word, n_rows = typed["network"], typed["rows"] or _DEFAULT_ROWS
    if word is None:
        return typed["model"], n_rows
    from bncli.engine.networks.simulation import RandomNetworkKind, named_spec

    spec = named_spec(word)
    if spec is None and NETWORKS.method(word) is None:
        from difflib import get_close_matches

        similar = get_close_matches(word, NETWORKS.words, n=1)
        choices = f"choose {', '.join(NETWORKS.words)} or a name like 2.30.2-3.1000"
        hint = f"did you mean {similar[0]}?" if similar else choices
        raise UsageError(f"unknown --network {word!r}", hint=hint)
    refuse_options_without_effect(network_options, {NETWORKS.flag: word}, (NETWORKS,))
    if spec is not None:
        if typed["rows"] is not None:
            raise UsageError(f"--rows has no effect with --network {word}", hint="the name contains the number of rows")
        return spec, spec.rows or n_rows
    if word == "conditioning":
        return float(1.0 if typed["exponent"] is None else typed["exponent"]), n_rows
    k = {"nb": 0, "tan": 1}.get(word, 1 if typed["k"] is None else typed["k"])
    classes = typed["classes"] or 2
    attributes, values = typed["attributes"] or 10, typed["values"] or (3, 3)
    recorded: dict[str, int | float | str | bool] = {"network": word} | ({"k": k} if word == "kdb" else {})
    return RandomNetworkKind(word, k, attributes, values, (classes, classes), options=recorded), n_rows
