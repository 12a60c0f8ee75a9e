"""How a computation is carried out (`Run`) and what it tells whoever watches it: one callback, six kinds of events.

The engine and the readers never print and never look at a clock. They call `watch(event)`; a command turns the
events into stages with their seconds, progress bars, notes, the rows of `--trace` and a list of moves.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple


class Stage(NamedTuple):
    """A stage begins and the one before it ends; `name` is a key of the report's `seconds`."""

    name: str


class Progress(NamedTuple):
    """`done` of `total` units (None: unknown) of the present stage; `detail` says what is in hand."""

    done: float
    total: float | None
    detail: str = ""


class Note(NamedTuple):
    """One line that the user should read: something left out, something surprising.

    `warning`: the result may not be worth what it looks like.
    """

    text: str
    warning: bool = False


class Iteration(NamedTuple):
    """State of an optimiser after an iteration (0 = the start); cll and penalty in nats, never negated.

    Evaluations and flops are totals since the start; flops by the cost model of `bncli.engine.parameters.flops`,
    None outside it. Who maximises the joint log-likelihood of classes and attributes tells that one, `ll`, and no cll.
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


class Kept(NamedTuple):
    """Of the runs of an optimiser told since the stage began, each from its iteration 0 on, this one (from 0) is kept.

    Told only where there were several.
    """

    run: int


MoveKind = Literal["add", "delete", "reverse"]


class Move(NamedTuple):
    """A greedy search changed one arc, `parent` -> `child` by attribute index; `gain` is that of its score, in nats."""

    kind: MoveKind
    parent: int
    child: int
    gain: float


Event = Stage | Progress | Note | Iteration | Kept | Move
Watch = Callable[[Event], None]
Clock = Callable[[], float]
"""Seconds since some moment: handed in where a limit of time has to be kept, for the engine has no clock."""


def silent(event: Event) -> None:
    """Ignore an event."""


def warnings_of(watch: Watch, where: str = "") -> Watch:
    """Return a watch that hands on warnings alone, with `where` in front of each."""

    def told(event: Event) -> None:
        if isinstance(event, Note) and event.warning:
            watch(Note(f"{where}{event.text}", warning=True))

    return told


class TimeLimit(NamedTuple):
    """So many seconds by a clock; without one the limit is not kept."""

    seconds: float
    clock: Clock | None = None


EachFile = Callable[[Callable[..., Iterable[Any]], Callable[[], tuple[Any, ...]]], Iterator[tuple[str, list[Any], Any]]]


class Run(NamedTuple):
    """How a computation is carried out; no part of it changes a result, but for a limit in seconds that a recipe sets.

    threads: for work on columns and row blocks. memory: bytes that may be taken, None = not limited; what needs more is
    refused before it is begun. clock: what a recipe's limit in seconds is kept by, None = that limit is not kept.
    cluster: the address of the machines that do the work, None = this one alone. place: puts coded rows (a Dataset)
    where sums over them are made, None = they stay. each_file: has every file of a table read elsewhere, None = here:
    `each_file(work, ask)` gives, in order, a file's name, the list of what `work(source, begin, run, *ask())` yields
    there (a table of which only the files from that numbered `begin` are meant), and the BncliError that ended it.
    advise: whether time is spent on notes that say what held-out rows would have preferred.
    """

    threads: int = 1
    memory: int | None = None
    clock: Clock | None = None
    watch: Watch = silent
    cluster: str | None = None
    place: Callable[[Any], Any] | None = None
    each_file: EachFile | None = None
    advise: bool = False
