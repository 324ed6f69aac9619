"""Replaces the entries of a home that is a mount point, which cannot be renamed.

While entries are moved, the home has a file that names the step. Every command refuses such a home; the next restore puts
the old entries back before it begins.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from openbell.desk.orders.halt_file import HALT_FILE
from openbell.desk.settings.reading import RESTORING
from openbell.stores.folders import sync_folder

BUILDING = ".restoring"
"""The folder in which the new home is built."""
ASIDE = "before-restore-"
"""How the folder of the old entries begins."""
_SYSTEM = "lost+found"
_OUT, _IN = "out", "in"


def is_mount(home: Path) -> bool:
    """Returns True if a file system is mounted at the home, or a folder of the same file system (a bind mount)."""
    if home.is_mount():
        return True
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not on every system
        return False
    escaped = "".join(f"\\{ord(each):03o}" if each in " \t\n\\" else each for each in str(home.resolve()))
    return any(line.split(" ")[4] == escaped for line in lines)


def entries(home: Path) -> list[Path]:
    """The entries of a home, without those of the disk and of earlier restores."""
    others = {RESTORING, BUILDING, _SYSTEM}
    return sorted(each for each in home.iterdir() if each.name not in others and not each.name.startswith(ASIDE))


def replace_entries(home: Path, building: Path, aside: Path) -> Path | None:
    """Put the entries of a complete folder in place of those of the home, which go into the new folder `aside`.

    Returns that folder; None if there were none.

    Raises `OSError`; the old entries are in place then.
    """
    aside.mkdir(mode=0o700)
    try:
        _note(home, _OUT, aside)
        _move(home, entries(home), aside)
        _note(home, _IN, aside)
        _move(building, sorted(building.iterdir()), home)
    except OSError:
        take_back(home)
        raise
    (home / RESTORING).unlink()
    sync_folder(home)
    if any(aside.iterdir()):
        return aside
    aside.rmdir()
    return None


def take_back(home: Path) -> bool:
    """Put the old entries back if a restore was killed while it moved them. Returns True then. Raises `OSError`."""
    try:
        step, _, name = (home / RESTORING).read_text(encoding="utf-8").strip().partition(" ")
    except FileNotFoundError:
        return False
    aside = home / name
    if step == _IN:
        for each in entries(home):
            # A halt that was set meanwhile stays.
            if each.name == HALT_FILE and not (aside / HALT_FILE).exists():
                continue
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        _note(home, _OUT, aside)  # what is in the home from now on is old
    _move(aside, sorted(aside.iterdir()), home)
    aside.rmdir()
    shutil.rmtree(home / BUILDING, ignore_errors=True)
    (home / RESTORING).unlink()
    sync_folder(home)
    return True


def _note(home: Path, step: str, aside: Path) -> None:
    """Store durably which step has begun."""
    partial = home / BUILDING / RESTORING
    partial.parent.mkdir(exist_ok=True, mode=0o700)
    with partial.open("w", encoding="utf-8") as file:
        file.write(f"{step} {aside.name}\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(home / RESTORING)
    sync_folder(home)


def _move(source: Path, found: list[Path], target: Path) -> None:
    for each in found:
        each.rename(target / each.name)
    for folder in (target, source):
        sync_folder(folder)
