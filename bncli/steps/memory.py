"""The memory that a run may take: the least of what the system has, what its groups allow, and its own limits.

    system     MemAvailable: what Linux could give without swapping; elsewhere all memory there is
    cgroup v2  memory.max and memory.high less memory.current, of the own group and of every group around it
    cgroup v1  memory.limit_in_bytes less memory.usage_in_bytes, likewise
    process    RLIMIT_AS (`ulimit -v`) less the address space in use, RLIMIT_DATA less the data segment

Files that are only kept in memory for speed (`inactive_file`) count as free. What cannot be read sets no limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")
_V2 = (("memory.max", "memory.high"), "memory.current", "inactive_file")
_V1 = (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file")


def free_memory() -> int | None:
    """Bytes, the least of all limits, never negative; None where nothing is known."""
    known = [n for n in (_of_system(), *_of_groups(), *_of_process()) if n is not None]
    return max(min(known), 0) if known else None


def _of_system() -> int | None:
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _of_groups() -> Iterator[int]:
    for root, own, files in _groups():
        # In a container the path may be the host's: then the root is the own group.
        for group in (own, *own.parents):
            yield from _left(root / group.relative_to("/"), *files)


def _groups() -> Iterator[tuple[Path, PurePosixPath, tuple[tuple[str, ...], str, str]]]:
    """Where groups are mounted, the own one in it, and the files that speak of its memory."""
    own = {}
    try:
        for line in (PROC / "self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), PurePosixPath("/") / path.lstrip("/")))
    except (OSError, ValueError):
        pass
    root = PurePosixPath("/")
    yield CGROUP, own.get("", root), _V2
    yield CGROUP / "unified", own.get("", root), _V2
    yield CGROUP / "memory", own.get("memory", root), _V1


def _left(group: Path, limits: tuple[str, ...], usage: str, cached: str) -> Iterator[int]:
    """What each limit of a group leaves; nothing for one that is not there, or the word "max"."""
    try:
        used = int((group / usage).read_text())
        lines = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        used -= int(lines.get(cached, 0))
    except (OSError, ValueError):
        return
    for limit in limits:
        try:
            yield int((group / limit).read_text()) - used
        except (OSError, ValueError):
            continue


def _of_process() -> Iterator[int]:
    try:
        import resource

        pages = [int(n) for n in (PROC / "self/statm").read_text().split()]
        taken = {resource.RLIMIT_AS: pages[0], resource.RLIMIT_DATA: pages[5]}
    except (ImportError, OSError, ValueError, IndexError):
        return
    for kind, n_pages in taken.items():
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit - n_pages * os.sysconf("SC_PAGE_SIZE")
