"""Models of regions to look at: how many regions in a line, and the path that led to them as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.structures.named_structure import NamedRegions
    from bncli.steps.regions import NamedStep, RegionsReport


MOST_LISTED = 200
"""Regions of a model; of more only the numbers are told."""


def regions_text(report: RegionsReport) -> str:
    """The regions of the best model, and how it was reached."""
    text = orders_text(report.orders)
    if report.steps is None:
        return text
    return f"{text}; step {report.best_step} of {report.steps:,}, weight {report.weight:.3g}"


def orders_text(orders: Mapping[str, int]) -> str:
    """How many regions there are of each order."""
    counts = [f"{count:,} of order {order}" for order, count in orders.items()]
    return f"{', '.join(counts)} (attributes and the class)" if counts else "none, so the class alone"


def path_table(steps: Sequence[NamedStep], best: int) -> Table:
    """Every step on a line, the best one marked."""
    from bncli.cli.tables import add_row, plain_table

    checked = any(step.bootstrap_log_loss is not None for step in steps)
    headings = ("step", "", "region", "df", "log likelihood", "log posterior", "weight")
    table = plain_table("Path", *headings, *(("bootstrap log-loss",) if checked else ()), numbers=(0, 3, 4, 5, 6, 7))
    for number, step in enumerate(steps):
        mark, region = "*" if number == best else "", ", ".join(step.region) or "the class alone"
        logs = (f"{step.log_likelihood:.4f}", f"{step.log_posterior:.4f}")
        loss = () if step.bootstrap_log_loss is None else (f"{step.bootstrap_log_loss:.4f}",)
        add_row(table, str(number), mark, region, f"{step.df:,}", *logs, f"{step.weight:.4f}", *loss)
    return table


def region_table(structure: NamedRegions, *, chosen: bool) -> Table:
    """Regions without a path; with the gain that each was chosen for, where anything is known of that.

    An attribute that the region has in few intervals has their number beside it. `chosen`: those of the model alone.
    """
    from bncli.cli.tables import add_row, plain_table

    headings = ("step", "region", "gain") if structure.gains else ("step", "region")
    table = plain_table("Regions", *headings, numbers=(0, 2))
    for number, position in enumerate(structure.chosen_positions if chosen else range(len(structure.regions)), 1):
        cuts = structure.cuts[position] if structure.cuts else (None,) * len(structure.regions[position])
        members = [
            name if some is None else f"{name} ({len(some) + 1})"
            for name, some in zip(structure.regions[position], cuts, strict=True)
        ]
        gain = (f"{structure.gains[position]:.4f}",) if structure.gains else ()
        add_row(table, str(number), ", ".join(members), *gain)
    return table


def region_counts(regions: Sequence[tuple[str, ...]]) -> Table:
    """How many regions there are of each size, where they are too many to list."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table(f"{len(regions):,} regions", "attributes", "regions", numbers=(0, 1))
    for size, n in sorted(Counter(map(len, regions)).items()):
        add_row(table, str(size), f"{n:,}")
    return table


CUTS = "In parentheses: the intervals that an attribute has in this region, cut where that gains most."
GAINS = "A gain estimates what a region adds to the log-likelihood of the classes, in nats, beyond the smaller regions."


def meaning(param: str | None) -> list[str]:
    """What the path says of P(class | attributes); `param` None: no parameters are there yet."""
    use = {
        None: "kbma averages the models of all steps by these weights; kmap is the best step alone, marked *.",
        "kmap": "The model is that of the best step alone, marked *.",
    }.get(param, "The model averages those of all steps by these weights; the best is marked *.")
    return ["Each step adds a region: attributes that are looked up together with the class.", use]


def bins_text(bins: Sequence[int | None]) -> str:
    """How many intervals of an attribute the regions of each size have."""
    *smaller, rest = ["as cut" if most is None else f"at most {most:,}" for most in bins]
    kinds = [f"{kind} in regions of {size}" for size, kind in enumerate(smaller, 1)]
    return f"Intervals of an attribute: {', '.join([*kinds, f'{rest} in larger ones' if smaller else rest])}."
