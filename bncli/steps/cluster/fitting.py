"""What of `fit` a cluster does: the sums over rows of a `.codes` file, for networks whose learners ask for no more.

Conventions: any other table is encoded first, on the cluster too, into a file beside the model that goes when the fit
ends, however it ends. What needs single rows, or keeps more of each row than codes, is refused with its reason before
anything is read; the choice of the penalty, on at most 50,000 rows, is made by this process.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import NamedTuple

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.distributed import DistributedDataset
from bncli.errors import UsageError
from bncli.files.paths import is_special
from bncli.files.reading.coded import are_codes
from bncli.files.table import Source
from bncli.option_kinds import decimal
from bncli.recipe import Recipe
from bncli.steps.cluster.blocks import WorkerBlocks, placed
from bncli.steps.cluster.connection import connected
from bncli.steps.cluster.preflight import check_workers, files_of
from bncli.steps.encode import encode
from bncli.steps.supplied_files import Supplied, read_supplied
from bncli.watch import Note, Run

_STRUCTURES = ("nb", "tan", "kdb")
_PARAMETERS = ("map", "weighted", "discriminative", "extended")


def refuse_on_cluster(source: Source, recipe: Recipe, supplied: Supplied) -> None:
    """UsageError for what cannot be learnt from sums that workers make."""
    if supplied.kind or (supplied.structure is None and recipe.structure not in _STRUCTURES):
        what = f"--structure {supplied.kind or recipe.structure} looks at single rows, which a cluster keeps to itself"
        raise UsageError(f"{what}; with --cluster it is {_listed(_STRUCTURES)}, or a file of a network")
    if recipe.param not in _PARAMETERS:
        what = f"--param {recipe.param} is not learnt on a cluster"
        raise UsageError(what, hint=f"with --cluster it is {_listed(_PARAMETERS)}")
    if recipe.coding == "thermometer" or recipe.early_stop not in (None, "none"):
        option = "--coding thermometer" if recipe.coding == "thermometer" else "--early-stop"
        raise UsageError(
            f"{option} looks at single rows, which a cluster keeps to itself", hint="leave one of them out"
        )
    weighs_or_holds_out = recipe.class_weights is not None or recipe.sets is not None
    if weighs_or_holds_out or decimal(recipe.threshold or "0") is None:
        what = (
            "class weights, prediction sets and thresholds by rows held out take rows, which a cluster keeps to itself"
        )
        raise UsageError(what, hint="leave --cluster out")
    if recipe.missing_policy == "marginalize":
        what = "missing values are not marginalized on a cluster"
        raise UsageError(what, hint="say --missing-policy level, or leave --cluster out")
    files_of([source])


def _listed(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


class Placed(NamedTuple):
    """What is learnt from, the files that stand in for some of the learning, and the run that does it."""

    source: Source
    supplied: Supplied
    run: Run


@contextmanager
def placing(source: Source, recipe: Recipe, supplied: Supplied, model_path: str, run: Run) -> Iterator[Placed]:
    """The run, with the cluster that it names, checked and ready to hold the rows of `source`, or of its codes."""
    if run.cluster is None:
        yield Placed(source, supplied, run)
    elif are_codes(source.paths):
        with _holding(source, run) as ready:
            yield Placed(source, supplied, ready)
    else:
        with _encoded(source, recipe, supplied, model_path, run) as codes, _holding(Source((codes,)), run) as ready:
            cuts = read_supplied(codes).cuts
            yield Placed(Source((codes,)), replace(supplied, cuts=cuts, cuts_path=codes), ready)


@contextmanager
def _encoded(source: Source, recipe: Recipe, supplied: Supplied, model_path: str, run: Run) -> Iterator[str]:
    """A file of the codes, there as long as the block lasts."""
    beside = source.paths[0].rstrip(os.sep) if is_special(model_path) else model_path
    path = f"{beside}.{secrets.token_hex(4)}.codes"
    try:
        encode(source, recipe, output=path, supplied=supplied, run=run)
        run.watch(Note(f"a cluster learns from codes: {path} holds those of the table until this fit ends"))
        yield path
    finally:
        with suppress(OSError):
            os.unlink(path)


@contextmanager
def _holding(source: Source, run: Run) -> Iterator[Run]:
    """The run, whose rows lie with the workers."""
    path = os.path.abspath(source.paths[0])
    keepers: list[WorkerBlocks] = []
    assert run.cluster is not None

    with connected(run.cluster) as cluster:
        check_workers(cluster, [path], run.watch)

        def place(data: Dataset) -> DistributedDataset:
            found, keeper = placed(data, path, cluster, run.watch)
            keepers.append(keeper)
            return found

        yield run._replace(place=place)
        for keeper in keepers:
            run.watch(Note(told(keeper)))


def told(keeper: WorkerBlocks) -> str:
    """What went over the connection, in a sentence."""
    traffic = keeper.traffic
    rounds = max(traffic.rounds, 1)
    n_workers, n_threads = len({home for home, _ in keeper.groups}), len(keeper.groups)
    workers = f"{n_workers} {'worker' if n_workers == 1 else 'workers'}"
    threads = f"{n_threads} {'thread' if n_threads == 1 else 'threads'}"
    return (
        f"{traffic.rounds:,} rounds on {workers} ({threads}): on average {_size(traffic.sent // rounds)} out and "
        f"{_size(traffic.received // rounds)} back"
    )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.2g} MB" if n_bytes >= 1e6 else f"{max(n_bytes // 1000, 1)} kB"
