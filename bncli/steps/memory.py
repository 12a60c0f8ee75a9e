"""The memory that this process may still take, so that what cannot fit is refused before it is begun."""

from __future__ import annotations

import os
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
"""A container's own limit, where there is one."""


def free_memory() -> int | None:
    """Bytes, the least of what the system and a container allow; None where nothing is known."""
    known = [n for n in (_of_system(), _of_container()) if n is not None]
    return min(known, default=None)


def _of_system() -> int | None:
    """What Linux could give without swapping; elsewhere all memory there is."""
    try:
        lines = MEMINFO.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _of_container() -> int | None:
    """The limit less what is in use; files that are only kept in memory for speed do not count."""
    try:
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text())
        lines = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return limit - used + int(lines.get("inactive_file", 0))
    except (OSError, ValueError):  # no such file, or the word "max": no limit
        return None
