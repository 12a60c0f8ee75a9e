"""A process that does units of a comparison: a plan and then units come in on stdin, what became of them goes out.

`python -m bncli.steps.comparing.worker` is started by `workers`, and is of no use by hand. It ends as soon as nobody
can ask it any more, in the middle of a unit if need be, so that nothing is left behind when its parent is killed.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from queue import SimpleQueue
from typing import BinaryIO

from bncli.steps.comparing.runner import Bench, Unit


def serve() -> None:
    """Answers until stdin ends."""
    asked = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what anything prints must not get among the answers
        bench = Bench(pickle.load(asked))
        units: SimpleQueue[Unit] = SimpleQueue()
        threading.Thread(target=_listen, args=(asked, units), daemon=True).start()
        while True:
            pickle.dump(bench.attempt(units.get()), answers)
            answers.flush()


def _listen(asked: BinaryIO, units: SimpleQueue[Unit]) -> None:
    """Takes in units; the end of the input is the end of the process."""
    try:
        while True:
            units.put(pickle.load(asked))
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve()
