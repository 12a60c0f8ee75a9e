"""How a computation is carried out (`Run`), and the events that it reports to its caller.

The engine and the readers never print and never read a clock. They call `watch(event)` with one of six kinds of events.
A command turns the events into stages with their seconds, progress bars, notes, the rows of `--trace` and a list of
moves.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple


class Stage(NamedTuple):
    """The event that a stage begins, which ends the one before it; `name` is a key of `seconds` in the report."""

    name: str


class Progress(NamedTuple):
    """The event that `done` of `total` units of the current stage are done; `detail` names the item.

    total: None if it is unknown.
    """

    done: float
    total: float | None
    detail: str = ""


class Note(NamedTuple):
    """One line for the user, such as what was left out; a `warning` means that the result may be unreliable."""

    text: str
    warning: bool = False


class Iteration(NamedTuple):
    """The state of an optimizer after an iteration (0 = the start); cll and penalty in nats, not negated.

    The numbers of evaluations and flops are totals since the start. `flops` follows the cost model of
    `bncli.engine.parameters.costs`, and is None where the model does not cover the optimizer or the parameters.
    Learners that maximise the joint log-likelihood of class and attributes report it as `ll`, and no cll.
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

    A run begins with each event `Iteration` of iteration 0. A stage with a single run does not report `SelectedRun`.
    """

    run: int


MoveKind = Literal["add", "delete", "reverse"]


class Move(NamedTuple):
    """The event that a greedy search changed the arc `parent` -> `child` (indices of attributes).

    gain: the increase of the score in nats.
    """

    kind: MoveKind
    parent: int
    child: int
    gain: float


Event = Stage | Progress | Note | Iteration | SelectedRun | Move
Watch = Callable[[Event], None]
Clock = Callable[[], float]
"""A function that returns seconds since an arbitrary moment. The engine gets one where it has to keep a time limit."""


def silent(event: Event) -> None:
    """Ignore an event."""


def forward_warnings(watch: Watch, prefix: str = "") -> Watch:
    """Return a watch that forwards only warnings, each with `prefix` in front of its text."""

    def forward(event: Event) -> None:
        if isinstance(event, Note) and event.warning:
            watch(Note(f"{prefix}{event.text}", warning=True))

    return forward


class TimeLimit(NamedTuple):
    """A limit in seconds by `clock`; without a clock the limit is ignored."""

    seconds: float
    clock: Clock | None = None


EachFile = Callable[[Callable[..., Iterable[Any]], Callable[[], tuple[Any, ...]]], Iterator[tuple[str, list[Any], Any]]]


class Run(NamedTuple):
    """The settings of a run; none of them changes predictions, unless the recipe has a limit in seconds (`clock`).

    threads: number of threads for work on columns and row blocks.
    memory: bytes that may be used, None for no limit; work that needs more is refused before it begins.
    clock: measures a recipe's limit in seconds; None ignores that limit.
    watch: is called with every event.
    cluster: address of a Dask cluster whose workers do the work; None uses this machine alone.
    distribute: takes the coded rows (a Dataset) and returns them distributed over the cluster; None leaves them here.
    each_file: a function by which workers read the files of a table; None reads them here. `each_file(work, arguments)`
        yields per file, in order: its path, the list of what `work(source, begin, run, *arguments())` yields on the
        worker (for the files of `source` from index `begin` on), and the BncliError that ended the work, or None.
    advise: whether to spend time on notes about settings that would predict held-out rows better.
    hold_out: whether to measure the log-loss of held-out rows where learning has chosen something by such rows. The
        model records it. Folds of a cross-validation leave it out.
    keep_predictions: whether to return the predictions of the held-out rows too; needs `hold_out`.
    alternatives: number of alternatives to a card to search for, each without one of its columns.
    intervals: whether the model records the uncertainty of its parameters, from which scoring makes intervals.
    class_weights: the factors per class (K,) that the row weights contain, which do not count as rows in intervals.
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
