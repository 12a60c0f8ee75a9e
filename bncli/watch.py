"""The settings of a computation (`Run`), and the events that it reports to its caller.

The engine and the readers never print and have no clock of their own. They call `watch(event)` with one of six kinds of
events. A command turns the events into stages with their seconds, progress bars, notes, the rows of `--trace` and a
list of moves.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple


class Stage(NamedTuple):
    """The event that a stage begins, which ends the preceding stage; `name` is a key of `seconds` in the report."""

    name: str


class Progress(NamedTuple):
    """The event that `done` of `total` units of the current stage are done; `total` is None if it is unknown.

    detail: a description of the progress, such as the current item.
    """

    done: float
    total: float | None
    detail: str = ""


class Note(NamedTuple):
    """A one-line message for the user; with `warning`, it says that the result may be unreliable."""

    text: str
    warning: bool = False


class Iteration(NamedTuple):
    """The state of an optimizer after an iteration (0 is the start).

    cll, penalty: the conditional log-likelihood (not negated) and the penalty, in nats. The numbers of evaluations and
    flops are totals since the start. flops: by the cost model of `bncli.engine.parameters.costs`, or None if the model
    does not cover the optimizer or the parameters. ll: the joint log-likelihood of class and attributes in nats, for
    learners that maximize it; cll is then None.
    """

    iteration: int
    cll: float | None
    penalty: float
    gradient_norm: float
    step: float
    cll_evaluations: int
    gradient_evaluations: int
    flops: int | None = None
    ll: float | None = None


class SelectedRun(NamedTuple):
    """The event that the result comes from run number `run`, counted from 0, of several optimizer runs in this stage.

    Each `Iteration` event with iteration 0 begins a run. A stage with a single run does not report `SelectedRun`.
    """

    run: int


MoveKind = Literal["add", "delete", "reverse"]


class Move(NamedTuple):
    """The event that a greedy search changed the arc `parent` -> `child` (positions of attributes).

    gain: the increase of the score in nats.
    """

    kind: MoveKind
    parent: int
    child: int
    gain: float


Event = Stage | Progress | Note | Iteration | SelectedRun | Move
Watch = Callable[[Event], None]
Clock = Callable[[], float]
"""A function that returns the seconds since an arbitrary moment, with which the engine observes time limits."""


def silent(event: Event) -> None:
    """Ignore an event."""


def forward_warnings(watch: Watch, prefix: str = "") -> Watch:
    """Return a watch that forwards only warnings, with `prefix` before the text of each."""

    def forward(event: Event) -> None:
        if isinstance(event, Note) and event.warning:
            watch(Note(f"{prefix}{event.text}", warning=True))

    return forward


def hold_notes(watch: Watch, notes: list[Note]) -> Watch:
    """Return a watch that appends notes to a list and forwards all other events."""

    def hold(event: Event) -> None:
        if isinstance(event, Note):
            notes.append(event)
        else:
            watch(event)

    return hold


class TimeLimit(NamedTuple):
    """A time limit in seconds, as measured by `clock`; without a clock the limit is ignored."""

    seconds: float
    clock: Clock | None = None


EachFile = Callable[[Callable[..., Iterable[Any]], Callable[[], tuple[Any, ...]]], Iterator[tuple[str, list[Any], Any]]]


class Run(NamedTuple):
    """The settings of a run.

    threads: number of threads for work on columns and row blocks.
    memory: the maximum memory in bytes, or None for no limit; work that needs more is refused before it begins.
    clock: the clock for the recipe's time limit, or None to ignore the limit.
    watch: a function that is called with every event.
    cluster: address of a Dask cluster whose workers do the work, or None to use only this machine.
    distribute: a function that distributes the coded rows (a Dataset) over the cluster, or None to keep them here.
    each_file: a function with which workers read the files of a table, or None to read them here.
        `each_file(work, arguments)` yields per file, in order: its path, the list of what
        `work(source, begin, run, *arguments())` yields on the worker (for the files of `source` from index `begin` on),
        and the BncliError that ended the work, or None.
    advise: whether to spend time on finding settings that would predict held-out rows better, for a note.
    hold_out: whether to compute the log-loss of held-out rows if learning chooses settings with such rows. The model
        records it. The folds of a cross-validation omit it.
    keep_predictions: whether to return the predictions of the held-out rows too; needs `hold_out`.
    alternatives: maximum number of alternatives to a card to return, each without one of its columns.
    intervals: whether the model records the uncertainty of its parameters, from which scoring computes intervals.
    class_weights: the factors per class (K,) by which row weights were multiplied, or None. Intervals do not count them
        as rows.
    """

    threads: int = 1
    memory: int | None = None
    clock: Clock | None = None
    watch: Watch = silent
    cluster: str | None = None
    distribute: Callable[[Any], Any] | None = None
    each_file: EachFile | None = None
    advise: bool = False
    hold_out: bool = False
    keep_predictions: bool = False
    intervals: bool = False
    alternatives: int = 0
    class_weights: Any = None
