"""What a process holds: memory, file handles, threads."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(pid: int | str = "self") -> int:
    """Returns the bytes of a process that are in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def processor_seconds(pid: int | str = "self") -> float:
    """Returns the seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads(pid: int | str = "self") -> int:
    """Returns how many threads a process has."""
    return len(os.listdir(f"/proc/{pid}/task"))


def handles(pid: int | str = "self") -> Counter[str]:
    """Returns the open file handles of a process: files by name, all others by kind."""
    found: Counter[str] = Counter()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(handle.readlink())
        except FileNotFoundError:  # the handle with which the folder was listed
            continue
        found[Path(target).name if target.startswith("/") else target.partition(":")[0]] += 1
    return found
