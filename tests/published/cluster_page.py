"""The page of a pass on a cluster, from its figures alone: python -m tests.published.cluster_page writes cluster.md."""

from __future__ import annotations

import math
from pathlib import Path

from bncli.engine.data.dataset import block_bounds
from tests.published.cluster import N_ATTRIBUTES, N_VALUES, PLACES, read_rows
from tests.published.pages import table

PAGE = Path(__file__).with_suffix("").with_name("cluster.md")
LINKS = (("1 Gbit/s", 125e6), ("10 Gbit/s", 1.25e9))
_ROWS, _WORKERS = (10**9, 10**10), (1, 20, 200)

HEAD = f"""# A pass over the rows on a cluster

One evaluation of the conditional log-likelihood and its gradient: {N_ATTRIBUTES} attributes of {N_VALUES} values, two
classes, naive Bayes (`python -m tests.published.cluster`). Wall milliseconds, the least of the passes and in brackets
the middle one; the places took turns. The machine has two cores and was busy with other work, so the middle says more
of that work than of this one. Values and gradients were the same bits in all places.
"""

MIDDLE = """
Workers of the same machine cannot be faster than its threads: they share its cores with the scheduler and the command.
What the table tells is the price of a round: that of the fewest rows, where hardly any of it is arithmetic, and how it
grows with the bytes that come back, one table of partial sums a block (they must come home one by one: added elsewhere
in another order, the last bits would differ).

| what | figure |
| --- | ---: |
| a round of the fewest rows | {latency:.0f} ms |
| a row of a pass on one thread | {row:.0f} ns |
| to each worker, a round | {out:.0f} kB |
| back of each block | {back:.0f} kB |

## From where it pays

A round on W threads elsewhere costs the latency, the bytes over the link, and 1 / W of the pass; on T threads here it
costs 1 / T of the pass. The pass on one thread from which W = 8 threads elsewhere beat T = 2 here:
{pays}.
With the closed form (`--param map`) there are a handful of passes, and reading the codes costs more than all of them.

## On paper: 10^9 and 10^10 rows

From the figures above, seconds a round, workers of one thread, over links of 1 and of 10 Gbit/s at the command's end.
Of 10^9 rows there are 64 row blocks and of 10^10 rows 256, so of 200 workers 64 and 200 have work, and the slowest
has ceil(blocks / workers) blocks.
"""

END = """
The codes of 10^10 rows of 30 attributes are 310 GB: each worker maps its own blocks, 16 GB on each of 20 and 1.6 GB on
each of 200. Nothing of this was run: what a shared link, a slow worker or a file server adds is not in it.
"""


def page(rows: list[dict[str, str]]) -> str:
    figures = _figures(rows)
    pays = " and ".join(f"{_pays(figures, bandwidth):.2f} s ({name})" for name, bandwidth in LINKS)
    middle = MIDDLE.format(
        latency=1e3 * figures["latency"],
        row=1e9 * figures["row"],
        out=figures["out"] / 1e3,
        back=figures["back"] / 1e3,
        pays=pays,
    )
    return "\n".join([HEAD, _measured(rows), middle, _on_paper(figures), END])


def _measured(rows: list[dict[str, str]]) -> str:
    header = ("rows", "blocks", *PLACES, "out, kB", "back, kB")
    lines = []
    for size in dict.fromkeys(row["rows"] for row in rows):
        here = {row["place"]: row for row in rows if row["rows"] == size}
        times = [f"{1e3 * float(here[p]['least']):.0f} ({1e3 * float(here[p]['middle']):.0f})" for p in PLACES]
        moved = here["2 workers"]
        sizes = [f"{int(moved[key]) / 1e3:.0f}" for key in ("sent", "received")]
        lines.append((f"{int(size):,}", moved["blocks"], *times, *sizes))
    return table(header, lines)


def _figures(rows: list[dict[str, str]]) -> dict[str, float]:
    """Seconds of a round without rows and of a row, bytes to a worker and back of a block."""
    there = [row for row in rows if row["place"] == "2 workers"]
    alone = [row for row in rows if row["place"] == "1 thread"]
    return {
        "latency": float(there[0]["least"]) - float(alone[0]["least"]) / 2,
        "row": float(alone[-1]["least"]) / int(alone[-1]["rows"]),
        "out": int(there[-1]["sent"]) / 2,
        "back": int(there[-1]["received"]) / int(there[-1]["blocks"]),
    }


def _pays(figures: dict[str, float], bandwidth: float, there: int = 8, here: int = 2, blocks: int = 16) -> float:
    fixed = figures["latency"] + (there * figures["out"] + blocks * figures["back"]) / bandwidth
    return fixed / (1 / here - 1 / there)


def round_seconds(figures: dict[str, float], n_rows: int, workers: int, bandwidth: float) -> float:
    """A round on paper; one worker is this machine, which moves nothing."""
    if workers == 1:
        return n_rows * figures["row"]
    blocks = len(block_bounds(n_rows))
    busy = min(workers, blocks)
    moved = (busy * figures["out"] + blocks * figures["back"]) / bandwidth
    return figures["latency"] + moved + math.ceil(blocks / busy) * n_rows / blocks * figures["row"]


def _on_paper(figures: dict[str, float]) -> str:
    header = ("rows", "link", *("one thread here" if w == 1 else f"{w} workers" for w in _WORKERS))
    lines = []
    for n_rows in _ROWS:
        for name, bandwidth in LINKS:
            seconds = [round_seconds(figures, n_rows, w, bandwidth) for w in _WORKERS]
            lines.append((f"10^{round(math.log10(n_rows))}", name, *(f"{s:.1f}" for s in seconds)))
    return table(header, lines)


if __name__ == "__main__":
    PAGE.write_text(page(read_rows()))
