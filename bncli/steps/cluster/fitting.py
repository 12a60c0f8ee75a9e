"""Fit on a cluster: its workers hold the rows of a `.codes` file as row blocks and compute the sums over them.

This works for networks whose learners need only sums over coded rows.

- Any other table is first encoded, also on the cluster, into a file beside the model. The file is removed when the fit
  ends, even if it fails.
- Options that need single rows, or more than the codes of each row, are refused with a reason before anything is read.
- The penalty is chosen by this process, on at most 50,000 rows.
- Every worker maps the file into memory itself, and a row block is the result of a task on the worker. If a worker is
  lost, its blocks, and the row state computed from them, can therefore be computed again elsewhere.
- In each round, every thread gets one task, which runs the kernel on the blocks of the thread and returns one partial
  result per block. This process adds the partial results in block order, so the sums are bit for bit those of a single
  process.
"""

from __future__ import annotations

import os
import pickle
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from bncli.catalogue.option_kinds import parse_decimal
from bncli.engine.data.dataset import Dataset, DistributedDataset, RowBlock
from bncli.engine.data.schema import Schema
from bncli.errors import BncliError, UsageError, alternatives
from bncli.files.artifacts.codes import CodesFile, read_codes
from bncli.files.paths import is_special
from bncli.files.reading.column_roles import is_codes_table
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.cluster.connection import BROADCAST_BYTES, MORE_MEMORY, Cluster, Future, LostResultsError
from bncli.steps.cluster.tasks import checked_cluster, files_of, keep_freed_memory
from bncli.steps.encode import encode
from bncli.steps.learning_inputs import SuppliedFiles, read_supplied
from bncli.watch import Note, Run, Watch

SECONDS_THAT_PAY = 1.0
"""A pass that takes fewer seconds than this on one machine is not worth the time for messages to and from workers."""
WORK_BYTES = 16 << 20
"""The minimum memory in bytes that a pass takes in addition to the codes."""
PAUSED_FROM = 0.8
"""The fraction of its memory limit at which Dask pauses a worker (distributed.worker.memory.pause)."""
_ATTEMPTS = 4
_STRUCTURES = ("nb", "tan", "kdb")
_PARAMETERS = ("map", "weighted", "discriminative", "extended")


def refuse_on_cluster(source: Source, recipe: Recipe, supplied: SuppliedFiles) -> None:
    """Raise UsageError for a fit that needs more than sums over coded rows, or for rows that workers cannot read."""
    if supplied.region_method or (supplied.structure is None and recipe.structure not in _STRUCTURES):
        word = supplied.region_method or recipe.structure
        what = f"--structure {word} needs single rows, which stay on the workers of a cluster"
        raise UsageError(f"{what}; with --cluster use {alternatives(_STRUCTURES)}, or the file of a network")
    if recipe.param not in _PARAMETERS:
        what = f"--param {recipe.param} is not learned on a cluster"
        raise UsageError(what, hint=f"with --cluster use {alternatives(_PARAMETERS)}")
    if recipe.coding == "thermometer" or recipe.early_stop not in (None, "none"):
        option = "--coding thermometer" if recipe.coding == "thermometer" else "--early-stop"
        raise UsageError(
            f"{option} needs single rows, which stay on the workers of a cluster",
            hint="leave one of them out",
        )
    if recipe.prior_network is not None:
        raise UsageError("--prior-network adds rows that the workers do not have", hint="leave --cluster out")
    if recipe.max_attributes is not None:
        what = "--max-attributes holds rows out, but rows stay on the workers of a cluster"
        raise UsageError(what, hint="leave one of them out, or give the columns with --use")
    weighs_or_holds_out = recipe.class_weights is not None or recipe.sets is not None
    if weighs_or_holds_out or parse_decimal(recipe.threshold or "0") is None:
        what = (
            "class weights, prediction sets and thresholds from held-out rows need single rows, which stay on the "
            "workers"
        )
        raise UsageError(what, hint="leave --cluster out")
    if source.group or source.time is not None:
        option = "--group" if source.group else "--time"
        what = f"{option} needs a column by which to split rows, but the workers of a cluster do not have it"
        raise UsageError(what, hint="leave --cluster out")
    if recipe.missing_policy == "marginalize":
        what = "missing values cannot be marginalized on a cluster"
        raise UsageError(what, hint="use --missing-policy level, or leave --cluster out")
    files_of([source])


@contextmanager
def rows_on_cluster(
    source: Source, recipe: Recipe, supplied: SuppliedFiles, model_path: str, run: Run
) -> Iterator[tuple[Source, SuppliedFiles, Run]]:
    """Yield the source, supplied files and run for a fit in which the workers of the run's cluster hold the rows.

    The source is a `.codes` file, the supplied files include its cuts if it was encoded here, and the run has a
    function that distributes the row blocks. Without a cluster, all three are yielded unchanged.
    """
    if run.cluster is None:
        yield source, supplied, run
        return
    with ExitStack() as stack:
        if not is_codes_table(source.paths):
            path = stack.enter_context(_encoded_table(source, recipe, supplied, model_path, run))
            source, supplied = Source((path,)), replace(supplied, cuts=read_supplied(path).cuts, cuts_path=path)
        path = os.path.abspath(source.paths[0])
        cluster = stack.enter_context(checked_cluster(run.cluster, [path], run.watch))
        distributed: list[WorkerBlocks] = []
        distribute = partial(distribute_rows, path=path, cluster=cluster, watch=run.watch, distributed=distributed)
        yield source, supplied, run._replace(distribute=distribute)
        for blocks in distributed:
            run.watch(Note(blocks.traffic()))


@contextmanager
def _encoded_table(source: Source, recipe: Recipe, supplied: SuppliedFiles, model_path: str, run: Run) -> Iterator[str]:
    """Yield the path of a temporary `.codes` file of the table.

    The file is beside the model, or beside the data if the model is not written to a regular file.
    """
    beside_path = source.paths[0].rstrip(os.sep) if is_special(model_path) else model_path
    path = f"{beside_path}.{secrets.token_hex(4)}.codes"
    try:
        encode(source, recipe, output=path, supplied=supplied, run=run)
        run.watch(Note(f"a cluster learns from codes, which are kept in {path} until this fit ends"))
        yield path
    finally:
        with suppress(OSError):
            os.unlink(path)


class WorkerState(NamedTuple):
    """Row state of a block that stays on a worker."""

    future: Future


@dataclass
class WorkerBlocks:
    """The row blocks of a file on the workers; implements `BlockKeeper`.

    preferred_workers[s]: the address of the worker that should hold block s. groups: for each thread in use, the
    worker's address and the indices of the blocks that the thread sums over. rounds: the number of rounds of tasks.
    sent, received: the number of bytes sent to the workers and received from them.
    """

    cluster: Cluster
    blocks: list[Future]
    preferred_workers: list[str]
    groups: list[tuple[str, range]]
    rounds: int = 0
    sent: int = 0
    received: int = 0

    def results(
        self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None
    ) -> Sequence[Any]:
        """Return `kernel(block, *broadcast)` for every block, in block order, from one round of tasks.

        Raises BncliError if the operands are lost repeatedly.
        """
        size = len(pickle.dumps(tuple(broadcast), protocol=5))
        for attempt in range(_ATTEMPTS):
            try:
                operands: Any = tuple(broadcast)
                times = len(self.groups)
                if size > BROADCAST_BYTES:
                    operands, times = self.cluster.broadcast(operands), len(self.cluster.workers)
                futures = []
                for home, numbers in self.groups:
                    own_states = None if states is None else [_with_futures(states[s]) for s in numbers]
                    blocks = [self.blocks[s] for s in numbers]
                    futures.append(self.cluster.submit(_apply_each, kernel, operands, blocks, own_states, worker=home))
                results = [result for part in self.cluster.values(futures) for result in part]
            except LostResultsError as error:
                if attempt == _ATTEMPTS - 1:
                    what = "the data sent to the workers were lost repeatedly"
                    raise BncliError(what, hint="check the logs of the workers for why they stop") from error
                continue
            self.rounds += 1
            self.sent += size * times
            self.received += sum(map(_n_bytes, results))
            return results
        raise AssertionError

    def keep(self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None) -> list[Any]:
        """Submit `kernel(block, *broadcast)` for every block; return WorkerStates, whose values stay on the workers.

        Large operands are shared and not broadcast, because the results may have to be computed again much later.
        """
        size, operands = len(pickle.dumps(tuple(broadcast), protocol=5)), tuple(broadcast)
        is_large = size > BROADCAST_BYTES
        common: Any = self.cluster.share(operands) if is_large else operands
        self.sent += size * (len(set(self.preferred_workers)) if is_large else len(self.blocks))
        results = []
        for s, (block, home) in enumerate(zip(self.blocks, self.preferred_workers, strict=True)):
            state = None if states is None else _with_futures(states[s])
            results.append(WorkerState(self.cluster.submit(_apply, kernel, common, block, state, worker=home)))
        return results

    def traffic(self) -> str:
        """Return a sentence on the number of rounds and the average size of their messages."""
        n_workers, n_threads = len({home for home, _ in self.groups}), len(self.groups)
        workers = f"{n_workers} {'worker' if n_workers == 1 else 'workers'}"
        threads = f"{n_threads} {'thread' if n_threads == 1 else 'threads'}"
        sizes = [total // max(self.rounds, 1) for total in (self.sent, self.received)]
        out, back = (f"{n / 1e6:.2g} MB" if n >= 1e6 else f"{max(n // 1000, 1)} kB" for n in sizes)
        return f"{self.rounds:,} rounds on {workers} ({threads}): on average {out} sent and {back} received"


def distribute_rows(
    data: Dataset, *, path: str, cluster: Cluster, watch: Watch, distributed: list[WorkerBlocks]
) -> DistributedDataset:
    """Distribute the row blocks of the `.codes` file at `path` over the threads of the workers, and return the data.

    The WorkerBlocks are also appended to `distributed`. Raises BncliError if Dask would pause a worker because of its
    memory limit.
    """
    # Each thread gets a run of consecutive blocks; with fewer blocks than threads, the last threads get none.
    bounds = data.bounds()
    seats = [address for address, worker in cluster.workers.items() for _ in range(worker.threads)][: len(bounds)]
    edges = [len(bounds) * i // len(seats) for i in range(len(seats) + 1)]
    groups = [(home, range(a, b)) for home, a, b in zip(seats, edges, edges[1:], strict=False)]
    preferred_workers = [home for home, numbers in groups for _ in numbers]
    # The bytes of codes that each worker will map.
    columns = [codes for codes, a in zip(data.codes, data.schema.attributes, strict=True) if a.informative]
    row_bytes = sum(int(codes.dtype.itemsize) for codes in (*columns, data.labels))
    shares = dict.fromkeys(preferred_workers, 0)
    for (start, stop), home in zip(bounds, preferred_workers, strict=True):
        shares[home] += (stop - start) * row_bytes
    refuse_memory_limits(cluster, shares)
    stamp = _stamp(read_codes(path))
    blocks = [
        cluster.submit(_load_block, path, data.schema, stamp, number, stop - start, worker=home)
        for number, ((start, stop), home) in enumerate(zip(bounds, preferred_workers, strict=True))
    ]
    if len(seats) < cluster.n_threads:
        blocks_text = "one row block" if len(seats) == 1 else f"{len(seats)} row blocks"
        threads_text = f"only {len(seats)} of {cluster.n_threads} threads of the cluster are used"
        watch(Note(f"{data.n_rows:,} rows make {blocks_text}, so {threads_text}"))
    # Roughly the time of one thread for a pass over families of one attribute each.
    seconds = 1e-9 * data.n_rows * max(data.n_labels - 1, 1) * (8.0 + 2.0 * len(data.schema.informative))
    if seconds < SECONDS_THAT_PAY:
        text = (
            f"a pass over these rows takes about {seconds:.2g} s of CPU time; below "
            f"{SECONDS_THAT_PAY:.0f} s a cluster is slower than this machine"
        )
        watch(Note(text))
    keeper = WorkerBlocks(cluster, blocks, preferred_workers, groups)
    distributed.append(keeper)
    return DistributedDataset(
        data.schema, data.codes, data.labels, data.weights, data.threads, data.split_by, keeper=keeper
    )


def refuse_memory_limits(cluster: Cluster, shares: Mapping[str, int]) -> None:
    """Raise BncliError for the first worker that Dask would pause for the memory of its row blocks.

    shares: the bytes of codes that each worker will map, by address.
    """
    for address, used in cluster.ask_all(_resident_bytes).items():
        worker, share = cluster.workers.get(address), shares.get(address, 0)
        if worker is None or isinstance(used, BaseException) or not worker.limit:
            continue
        if used + share + WORK_BYTES > PAUSED_FROM * worker.limit:
            limit, has, takes = (f"{n / 1e6:,.0f} MB" for n in (worker.limit, used, share))
            what = f"worker {address} may use {limit} of memory, already uses {has}, and its row blocks need {takes}"
            hint = (
                f"Dask would pause it near its limit: {MORE_MEMORY}; --memory-limit 0 is safe, because row blocks "
                "are memory-mapped"
            )
            raise BncliError(what, hint=hint)


def _resident_bytes() -> int:
    """Return the memory of this process in bytes, including mapped pages, or 0 if the system does not report it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _stamp(file: CodesFile) -> int:
    """Return a checksum of the counts in a file, which distinguishes different files with the same path."""
    return zlib.crc32(repr((file.header.rows, file.counts)).encode())


def _load_block(path: str, schema: Schema, stamp: int, number: int, n_rows: int) -> RowBlock:
    """Load a row block on a worker as views of the mapped file; raise BncliError if it is a different file."""
    keep_freed_memory()
    file = _open_codes(path)
    if _stamp(file) != stamp or file.batches[number].num_rows != n_rows:
        what = "a worker finds different codes under the same path"
        raise BncliError(what, where=path, hint="copy the same file to every machine")
    batch, n_attributes = file.batches[number], len(file.header.cuts.attributes)
    place = {name: i for i, (name, _, _) in enumerate(file.header.columns[:n_attributes])}
    zeros = np.broadcast_to(np.zeros(1, np.uint8), n_rows)
    codes = tuple(batch.column(place[a.name]).to_numpy() if a.informative else zeros for a in schema.attributes)
    weights = None if file.header.weights is None else batch.column(n_attributes + 1).to_numpy()
    return RowBlock(codes, batch.column(n_attributes).to_numpy(), weights)


@lru_cache(1)
def _open_codes(path: str) -> CodesFile:
    """Load the codes at `path`, which a worker maps only once for all its blocks."""
    return read_codes(path)


def _with_futures(state: Any) -> Any:
    """Replace each WorkerState in row state by its future; Dask then passes the value of the future to the task."""
    if isinstance(state, WorkerState):
        return state.future
    return type(state)(map(_with_futures, state)) if type(state) in (tuple, list) else state


def _n_bytes(result: Any) -> int:
    return sum(map(_n_bytes, result)) if isinstance(result, (tuple, list)) else np.asarray(result).nbytes


def _apply_each(
    kernel: Callable[..., Any], operands: tuple[Any, ...], blocks: Sequence[RowBlock], states: Sequence[Any] | None
) -> list[Any]:
    """Apply the kernel to each of the blocks on a worker, and return the results in order."""
    own_states = [None] * len(blocks) if states is None else states
    return [_apply(kernel, operands, block, state) for block, state in zip(blocks, own_states, strict=True)]


def _apply(kernel: Callable[..., Any], operands: tuple[Any, ...], block: RowBlock, state: Any) -> Any:
    """Apply the kernel to one block, with row state if there is any, on a worker."""
    return kernel(block if state is None else RowBlock(block.codes, block.labels, block.weights, state), *operands)
