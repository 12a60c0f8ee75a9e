"""A comparison is run: every learner on every fold of every data set, in this process or in several.

The largest data sets come first, so that no process is left alone with a long unit at the end. What is found is put in
order afterwards, so neither the number of processes nor who was first can change it.

Decided here: a learner that fails on a fold is not tried on the other folds of that data set; it has a gap there, no
outcomes, and the reason is that of its first fold that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from bncli.engine.data.folds import stratified_folds
from bncli.engine.evaluation.bias_variance import BiasVariance, bias_variance
from bncli.steps.comparing.checkpoint import Ledger
from bncli.steps.comparing.entries import Entry
from bncli.steps.comparing.outcomes import Gap, Outcome, Trial
from bncli.steps.comparing.pool import Result, in_processes
from bncli.steps.comparing.runner import Bench, Failure, Plan, Unit
from bncli.steps.protocol import Protocol
from bncli.watch import Note, Progress, Stage, Watch


def run(plan: Plan, entries: Sequence[Entry], ledger: Ledger, *, jobs: int, watch: Watch) -> Trial:
    """Tries all that the ledger does not know yet, writes it there, and returns everything in order."""
    units = _units(plan, entries)
    found = _Found(ledger.kept())
    left = [unit for unit in units if unit not in found.outcomes]
    if len(left) < len(units):
        watch(Note(f"{len(units) - len(left):,} of {len(units):,} folds are taken from {ledger.path}"))
    watch(Stage("run"))
    try:
        with closing(_results(plan, left, min(jobs, len(left)), found.fails)) as results:
            for unit, result in _told(results, plan, len(units), found, watch):
                if isinstance(result, Outcome):
                    ledger.add(unit, result)
                found.add(unit, result)  # after it is kept, so that an interrupt never counts what is not
    except KeyboardInterrupt:
        if ledger.path is not None:
            kept = f"{len(found.outcomes):,} of {len(units):,} folds are kept in {ledger.path}"
            watch(Note(f"{kept}; the same command goes on from there"))
        raise
    return _trial(plan, entries, found)


@dataclass
class _Found:
    """What is known so far: outcomes, and where a learner failed (data set, learner) its first fold that did."""

    outcomes: dict[Unit, Outcome]
    failures: dict[tuple[int, int], tuple[Unit, Failure]] = field(default_factory=dict)

    def add(self, unit: Unit, result: Outcome | Failure) -> None:
        if isinstance(result, Outcome):
            self.outcomes[unit] = result
            return
        before = self.failures.get(unit[:2])
        if before is None or unit < before[0]:
            self.failures[unit[:2]] = unit, result

    def fails(self, unit: Unit) -> bool:
        return unit[:2] in self.failures


Results = Generator[Result, None, None]


def _units(plan: Plan, entries: Sequence[Entry]) -> list[Unit]:
    """Everything that there is to do, in the order in which it is begun."""
    largest_first = sorted(range(len(entries)), key=lambda data: -entries[data].cells)
    parts = product(largest_first, range(len(plan.learners)), range(plan.protocol.repeats), range(plan.protocol.folds))
    return [Unit(*part) for part in parts]


def _results(plan: Plan, units: Sequence[Unit], jobs: int, skip: Callable[[Unit], bool]) -> Results:
    if jobs > 1:
        yield from in_processes(plan, units, jobs, skip)
        return
    bench = Bench(plan)
    for unit in units:
        if not skip(unit):
            yield unit, bench.attempt(unit)


def _told(results: Iterable[Result], plan: Plan, total: int, found: _Found, watch: Watch) -> Iterator[Result]:
    """The results; the watch hears how many folds are done, and which was the last."""
    watch(Progress(len(found.outcomes), total))
    for unit, result in results:
        yield unit, result
        where = f"{plan.learners[unit.learner].name} on {plan.names[unit.data]}"
        watch(Progress(len(found.outcomes), total, f"{where}, fold {unit.fold + 1}"))


def _trial(plan: Plan, entries: Sequence[Entry], found: _Found) -> Trial:
    names = tuple(learner.name for learner in plan.learners)
    whole = {unit: outcome for unit, outcome in sorted(found.outcomes.items()) if not found.fails(unit)}
    pairs = sorted({unit[:2] for unit in whole}) if plan.protocol.repeats > 1 else []
    return Trial(
        learners=names,
        data=plan.names,
        sizes={entry.name: entry.n_rows for entry in entries},
        protocol=plan.protocol,
        outcomes=tuple(whole.values()),
        bias_variance={
            (plan.names[data], names[learner]): _bias_variance(entries[data], plan.protocol, whole, (data, learner))
            for data, learner in pairs
        },
        options={learner.name: learner.options for learner in plan.learners},
        gaps=tuple(
            Gap(plan.names[data], names[learner], failure.reason)
            for (data, learner), (_, failure) in sorted(found.failures.items())
        ),
    )


def _bias_variance(
    entry: Entry, protocol: Protocol, outcomes: Mapping[Unit, Outcome], pair: tuple[int, int]
) -> BiasVariance:
    """From the predictions of every repeat, each row predicted once in each by the model that has not seen it."""
    predictions = np.empty((protocol.repeats, entry.n_rows), entry.labels.dtype)
    for repeat in range(protocol.repeats):
        fold_of = stratified_folds(entry.labels, protocol.folds, (protocol.seed, repeat))
        for fold in range(protocol.folds):
            predictions[repeat, fold_of == fold] = outcomes[Unit(*pair, repeat, fold)].predicted
    return bias_variance(entry.labels, predictions, entry.n_labels, entry.weights)
