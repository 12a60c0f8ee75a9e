"""What a search went through before it chose, as a person is told of it: moves, penalties, candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.chosen_penalty import ChosenPenalty, HeldOut, Shrinkage, TriedArcs
    from bncli.engine.model import Restarts, TriedCandidate
    from bncli.engine.training.network_scores import ScoredNetwork
    from bncli.steps.run import NamedMove

_OF_A_CANDIDATE = ("candidate", "penalty", "log-loss", "error", "weight")


def move_lines(moves: Sequence[NamedMove]) -> list[str]:
    """How many, then one aligned line each with its gain; nothing where nobody searched."""
    if not moves:
        return []
    arcs = [f"{move.parent} -> {move.child}" for move in moves]
    gains = [f"{move.gain:,.3f}" for move in moves]
    arc_width, gain_width = max(map(len, arcs)), max(map(len, gains))
    title = f"moves       {len(moves):,} from naive Bayes, with the gain of each in nats"
    return [title] + [
        f"            {move.kind:<7}  {arc:<{arc_width}}  {gain:>{gain_width}}"
        for move, arc, gain in zip(moves, arcs, gains, strict=True)
    ]


def score_lines(scored: ScoredNetwork) -> list[str]:
    """The scores of a network, a line each."""
    cells = [(name, "-" if value is None else f"{value:,.4f}") for name, value in scored.scores._asdict().items()]
    width = max(len(text) for _, text in cells)
    heads = ["scores", *[""] * (len(cells) - 1)]
    lines = [f"{head:<12}{name:<5}{text:>{width}}" for head, (name, text) in zip(heads, cells, strict=True)]
    if scored.acll_relative_error is not None:
        lines[-1] += f", {acll_error_text(scored.acll_relative_error)}"
    return lines


def acll_error_text(error: float) -> str:
    """How far the approximation is off."""
    return f"{100 * error:.4g} % off the CLL of the same parameters"


def held_out_text(held_out: HeldOut) -> str:
    """How good the model was on rows kept back, beside what can be had without a model."""
    base = f"{held_out.base_log_loss:.4g} by the class frequencies alone"
    return f"log-loss {held_out.log_loss:.4g} on rows kept back, {base} (lower is better)"


def chosen_text(penalty: ChosenPenalty) -> str:
    """The penalty and what it was chosen from; one at an end of those tried is worth a second look."""
    if not penalty.tried:
        return f"{penalty.penalty:g}, for there are too few rows to choose it by cross-validation"
    most, least = (pick(one.penalty for one in penalty.tried) for pick in (max, min))
    which = f" between {least:g} and {most:g}"
    if penalty.penalty in (most, least):
        which = f", the {'largest' if penalty.penalty == most else 'smallest'} of those tried"
    return f"{penalty.penalty:g}, chosen by cross-validation{which}"


def shrunk_text(shrinkage: Shrinkage) -> str:
    """What is left of what the tables say."""
    left = f"to {shrinkage.factor:g} of the log-odds, towards those of the class frequencies"
    return f"{left}: rows held out support no more"


def restarts_text(restarts: Restarts) -> str:
    """How many starts there were, how far apart they ended, and which one is kept."""
    what = "held-out likelihoods" if restarts.held_out else "objectives"
    n = len(restarts.objectives) - 1
    which = f"random start {restarts.kept}" if restarts.kept else "the usual start"
    ends = f"{what} from {min(restarts.objectives):.7g} to {restarts.best:.7g} nats"
    return f"{which} kept of the usual one and {n:,} random: {ends}"


def arcs_text(arcs: Sequence[TriedArcs], kept: int) -> str:
    """How many of the arcs that were found are kept, and what that is worth on held-out rows."""
    every = arcs[-1]
    rivals = ", ".join(f"{_ARCS[one.arcs]} {one.log_loss:.4g}" for one in arcs)
    return f"{kept:,} of {every.n_arcs:,} kept, chosen by held-out log-loss: {rivals}"


_ARCS = {"class": "class alone", "none": "none", "supported": "supported by BIC", "all": "all"}


def arcs_table(arcs: Sequence[TriedArcs]) -> Table:
    """The held-out log-loss of every choice of arcs."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table("Arcs", "choice", "arcs", "penalty", "log-loss of held-out rows", numbers=(1, 2, 3))
    for one in arcs:
        add_row(table, _ARCS[one.arcs], f"{one.n_arcs:,}", f"{one.penalty:g}", f"{one.log_loss:.5f}")
    return table


def penalty_table(penalty: ChosenPenalty) -> Table:
    """The held-out log-loss of every penalty tried."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table("Penalties", "penalty", "log-loss of held-out rows", numbers=(0, 1))
    for one in penalty.tried:
        add_row(table, f"{one.penalty:g}", f"{one.log_loss:.5f}")
    return table


def trial_lines(trials: Sequence[TriedCandidate]) -> list[str]:
    """For the end of a run: one aligned line a candidate; nothing where there is no ensemble."""
    if not trials:
        return []
    rows = [_OF_A_CANDIDATE, *map(_cells, trials)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    title = f"candidates  {len(trials):,}, with the losses of held-out rows and the weight in the ensemble"
    return [title] + [
        "            " + "  ".join(f"{cell:<{w}}" if i == 0 else f"{cell:>{w}}" for i, (cell, w) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]


def trial_table(trials: Sequence[TriedCandidate]) -> Table:
    """The same as a table of its own."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table("Candidates", *_OF_A_CANDIDATE, numbers=(1, 2, 3, 4))
    for trial in trials:
        add_row(table, *_cells(trial))
    return table


def _cells(trial: TriedCandidate) -> tuple[str, ...]:
    weight = f"{trial.weight:.2f}" if trial.weight else "-"
    return trial.name, f"{trial.penalty:g}", f"{trial.log_loss:.5f}", f"{trial.error:.4f}", weight
