"""What of `fit` a cluster does: the sums over rows of a `.codes` file, for networks whose learners ask for no more.

Conventions: any other table is encoded first, on the cluster too, into a file beside the model that goes when the fit
ends, however it ends. What needs single rows, or keeps more of each row than codes, is refused with its reason before
anything is read; the choice of the penalty, on at most 50,000 rows, is made by this process.

The rows of a `.codes` file as row blocks on workers, each of which maps the file by itself.

A block is a task (never data that is sent once): where a worker is lost, blocks and the row state made of them are made
again elsewhere. A round is one task per thread: it runs the kernel over the blocks that it stands for and returns the
partial result of each, which are added here in block order.
"""

from __future__ import annotations

import os
import pickle
import secrets
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bncli.catalogue.option_kinds import decimal
from bncli.engine.data.dataset import Dataset, DistributedDataset, RowBlock
from bncli.engine.data.schema import Schema
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.codes import CodesFile, read_codes
from bncli.files.paths import is_special
from bncli.files.reading.column_roles import is_codes_table
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.cluster.checks import check_memory, check_workers, files_of, keep_freed_memory
from bncli.steps.cluster.connection import BROADCAST_BYTES, Cluster, Future, LostError, connected
from bncli.steps.encode import encode
from bncli.steps.inputs import SuppliedFiles, read_supplied
from bncli.watch import Note, Run, Watch

_ATTEMPTS = 4
SECONDS_THAT_PAY = 1.0
"""Of a pass on this machine: with less, the way to the workers and back costs more than they save."""


@dataclass
class NetworkTraffic:
    """What went over the connection: rounds, bytes to the workers, bytes back."""

    rounds: int = 0
    sent: int = 0
    received: int = 0


class WorkerState(NamedTuple):
    """Row state of a block that stays with a worker."""

    future: Future


class _Plan(NamedTuple):
    """What a worker must know of a file; `stamp` is that of its counts, which tell one file from another."""

    path: str
    schema: Schema
    stamp: int


@dataclass
class WorkerBlocks:
    """The row blocks of a file; groups[w] are the numbers of those that one thread of a worker sums over."""

    cluster: Cluster
    blocks: list[Future]
    homes: list[str]
    groups: list[tuple[str, range]]
    traffic: NetworkTraffic = field(default_factory=NetworkTraffic)

    def results(
        self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None
    ) -> Sequence[Any]:
        """Return `kernel(block, *broadcast)` of every block, in block order."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._round(kernel, tuple(broadcast), states)
            except LostError as error:
                if attempt == _ATTEMPTS - 1:
                    what = "what workers were to have was lost again and again"
                    raise BncliError(what, hint="see why workers of the cluster end") from error
        raise AssertionError

    def _round(self, kernel: Callable[..., Any], broadcast: Any, states: Sequence[Any] | None) -> list[Any]:
        size = len(pickle.dumps(broadcast, protocol=5))
        times = len(self.groups)
        if size > BROADCAST_BYTES:
            broadcast, times = self.cluster.broadcast(broadcast), len(self.cluster.threads)
        futures = []
        for home, numbers in self.groups:
            own = None if states is None else [_futures(states[s]) for s in numbers]
            blocks = [self.blocks[s] for s in numbers]
            futures.append(self.cluster.submit(_sum_each, kernel, broadcast, blocks, own, worker=home))
        found = [result for part in self.cluster.values(futures) for result in part]
        self.traffic.rounds += 1
        self.traffic.sent += size * times
        self.traffic.received += sum(_bytes(result) for result in found)
        return found

    def keep(self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None) -> list[Any]:
        """Return the result of every block, which stays with a worker.

        What is large is shared and not broadcast: what is kept may have to be made again much later.
        """
        size, operand = len(pickle.dumps(tuple(broadcast), protocol=5)), tuple(broadcast)
        is_large = size > BROADCAST_BYTES
        common: Any = self.cluster.share(operand) if is_large else operand
        self.traffic.sent += size * (len(set(self.homes)) if is_large else len(self.blocks))
        kept = []
        for s, (block, home) in enumerate(zip(self.blocks, self.homes, strict=True)):
            state = None if states is None else _futures(states[s])
            kept.append(WorkerState(self.cluster.submit(_apply, kernel, common, block, state, worker=home)))
        return kept


_STRUCTURES = ("nb", "tan", "kdb")
_PARAMETERS = ("map", "weighted", "discriminative", "extended")


class FitInputs(NamedTuple):
    """What is learnt from, the files that stand in for some of the learning, and the run that does it."""

    source: Source
    supplied: SuppliedFiles
    run: Run


def placed(data: Dataset, path: str, cluster: Cluster, watch: Watch) -> tuple[DistributedDataset, WorkerBlocks]:
    """Return the rows of a `.codes` file, their blocks shared out among the threads of the workers in turn."""
    plan = _Plan(path, data.schema, _stamp(read_codes(path)))
    bounds = data.bounds()
    seats = [address for address, threads in cluster.threads.items() for _ in range(threads)][: len(bounds)]
    edges = [len(bounds) * i // len(seats) for i in range(len(seats) + 1)]
    groups = [(home, range(a, b)) for home, a, b in zip(seats, edges, edges[1:], strict=False)]
    homes = [home for home, numbers in groups for _ in numbers]
    check_memory(cluster, _shares(data, homes))
    sized = zip(bounds, homes, strict=True)
    blocks = [cluster.submit(_load, plan, s, b - a, worker=home) for s, ((a, b), home) in enumerate(sized)]
    _report_threads(data, len(seats), cluster, watch)
    keeper = WorkerBlocks(cluster, blocks, homes, groups)
    kept = (data.schema, data.codes, data.labels, data.weights, data.threads)
    return DistributedDataset(*kept, keeper=keeper), keeper


def _stamp(file: CodesFile) -> int:
    return zlib.crc32(repr((file.heading.rows, file.counts)).encode())


def _shares(data: Dataset, homes: Sequence[str]) -> dict[str, int]:
    """Return bytes of the codes that each worker maps."""
    columns = [codes for codes, a in zip(data.codes, data.schema.attributes, strict=True) if a.informative]
    width = sum(int(codes.dtype.itemsize) for codes in (*columns, data.labels))
    shares = dict.fromkeys(homes, 0)
    for (start, stop), home in zip(data.bounds(), homes, strict=True):
        shares[home] += (stop - start) * width
    return shares


def _load(plan: _Plan, number: int, n_rows: int) -> RowBlock:
    """On a worker: a row block, views on the mapped file."""
    keep_freed_memory()
    file = _opened(plan.path)
    if _stamp(file) != plan.stamp or file.batches[number].num_rows != n_rows:
        what = "a worker sees other codes under the same name"
        raise BncliError(what, where=plan.path, hint="copy the same file to every machine")
    batch, n_attributes = file.batches[number], len(file.heading.cuts.attributes)
    place = {name: i for i, (name, _, _) in enumerate(file.heading.columns[:n_attributes])}
    nothing = np.broadcast_to(np.zeros(1, np.uint8), n_rows)
    codes = tuple(batch.column(place[a.name]).to_numpy() if a.informative else nothing for a in plan.schema.attributes)
    weights = None if file.heading.weights is None else batch.column(n_attributes + 1).to_numpy()
    return RowBlock(codes, batch.column(n_attributes).to_numpy(), weights)


@lru_cache(1)
def _opened(path: str) -> CodesFile:
    """Open the file, mapped once for all blocks of a worker."""
    return read_codes(path)


def _report_threads(data: Dataset, n_seats: int, cluster: Cluster, watch: Watch) -> None:
    """How many threads can help, and whether they can at all."""
    if n_seats < cluster.n_threads:
        blocks = "one row block" if n_seats == 1 else f"{n_seats} row blocks"
        watch(Note(f"{data.n_rows:,} rows are {blocks}: {n_seats} of {cluster.n_threads} threads of the cluster help"))
    seconds = pass_seconds(data)
    if seconds < SECONDS_THAT_PAY:
        text = (
            f"a pass over these rows takes about {seconds:.2g} s of this machine's processor; under "
            f"{SECONDS_THAT_PAY:.0f} s a cluster is slower than the machine at hand"
        )
        watch(Note(text))


def pass_seconds(data: Dataset) -> float:
    """Return seconds of one thread, roughly, of a pass over families of one attribute each."""
    return 1e-9 * data.n_rows * max(data.n_labels - 1, 1) * (8.0 + 2.0 * len(data.schema.informative))


def refuse_on_cluster(source: Source, recipe: Recipe, supplied: SuppliedFiles) -> None:
    """Raise UsageError for what cannot be learnt from sums that workers make."""
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


@contextmanager
def placing(source: Source, recipe: Recipe, supplied: SuppliedFiles, model_path: str, run: Run) -> Iterator[FitInputs]:
    """Yield the run with its cluster connected, checked and ready to hold the rows of `source` or its codes."""
    if run.cluster is None:
        yield FitInputs(source, supplied, run)
    elif is_codes_table(source.paths):
        with _holding(source, run) as ready:
            yield FitInputs(source, supplied, ready)
    else:
        with _encoded(source, recipe, supplied, model_path, run) as codes, _holding(Source((codes,)), run) as ready:
            cuts = read_supplied(codes).cuts
            yield FitInputs(Source((codes,)), replace(supplied, cuts=cuts, cuts_path=codes), ready)


@contextmanager
def _holding(source: Source, run: Run) -> Iterator[Run]:
    """Yield the run, whose rows lie with the workers."""
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
            run.watch(Note(traffic_text(keeper)))


@contextmanager
def _encoded(source: Source, recipe: Recipe, supplied: SuppliedFiles, model_path: str, run: Run) -> Iterator[str]:
    """Yield a file of the codes, there as long as the block lasts."""
    beside = source.paths[0].rstrip(os.sep) if is_special(model_path) else model_path
    path = f"{beside}.{secrets.token_hex(4)}.codes"
    try:
        encode(source, recipe, output=path, supplied=supplied, run=run)
        run.watch(Note(f"a cluster learns from codes: {path} holds those of the table until this fit ends"))
        yield path
    finally:
        with suppress(OSError):
            os.unlink(path)


def traffic_text(keeper: WorkerBlocks) -> str:
    """Return what went over the connection, in a sentence."""
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


def _futures(state: Any) -> Any:
    """Row state with futures, which are values on the worker, in the place of what stands for them."""
    if isinstance(state, WorkerState):
        return state.future
    return type(state)(map(_futures, state)) if type(state) in (tuple, list) else state


def _bytes(result: Any) -> int:
    return sum(map(_bytes, result)) if isinstance(result, (tuple, list)) else np.asarray(result).nbytes


def _apply(kernel: Callable[..., Any], broadcast: tuple[Any, ...], block: RowBlock, state: Any) -> Any:
    """On a worker: the kernel on one block."""
    return kernel(block if state is None else RowBlock(block.codes, block.labels, block.weights, state), *broadcast)


def _sum_each(
    kernel: Callable[..., Any], broadcast: tuple[Any, ...], blocks: Sequence[RowBlock], states: Sequence[Any] | None
) -> list[Any]:
    """On a worker: the kernel on each of its blocks."""
    own = [None] * len(blocks) if states is None else states
    return [_apply(kernel, broadcast, block, state) for block, state in zip(blocks, own, strict=True)]
