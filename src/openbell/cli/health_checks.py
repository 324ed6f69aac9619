"""The checks of `openbell doctor` about the process that runs the desk, its Python, and who can read its files."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from openbell.cli.findings import Finding
from openbell.desk.desk import Desk
from openbell.desk.operations.health.asking import ask
from openbell.desk.operations.health.report import DOWN
from openbell.desk.settings import file_of
from openbell.desk.settings.private_files import is_shared, open_files
from openbell.market.plural import counted


def check_health(desk: Desk) -> Iterator[Finding]:
    """Report the parts that fail in the process that runs the desk, and since when."""
    health = ask(desk.settings)
    if health.state == DOWN:
        yield Finding("note", health.text, "openbell up")
        return
    for name, part in health.failing.items():
        yield Finding("bad", f"{name} of the running desk: {part}")
    if not health.failing:
        yield Finding("ok", f"the running desk: {health.text}")


def check_privacy(desk: Desk) -> Iterator[Finding]:
    """Report secrets and files that other users of this machine can read."""
    home = desk.settings.home
    if warning := file_of(home).warning:
        yield Finding("bad", warning, f"chmod 600 {file_of(home).path}")
    if found := open_files(home):
        files = f", and so can {counted(len(found) - 1, 'file')} in it" if len(found) > 1 else ""
        yield Finding("note", f"home {home} can be read by other users{files}", f"chmod -R go= {home}")
    elif is_shared(home):
        yield Finding("note", f"home {home} is shared with its group: members can read bars, settings and logs")


class _Hole(NamedTuple):
    name: str
    effect: str
    mended: Mapping[int, int]
    """The first patch level without it, by minor version; other minor versions never had it."""


_HOLES = (
    _Hole("CVE-2024-7592", "a Cookie header can cost seconds", {11: 10, 12: 6}),
    _Hole("CVE-2024-4032", "some private addresses count as public", {11: 10, 12: 4}),
    _Hole("CVE-2024-8088", "reading a zip file may never end", {11: 10, 12: 6}),
)
"""In modules that Openbell, or a part of it, uses. docs/decisions/0023-guard.md says what protects from each."""


def check_python(_desk: Desk) -> Iterator[Finding]:
    """Name the holes of the Python that runs."""
    found = holes(sys.version_info[1], sys.version_info[2])
    if found:
        names = "; ".join(f"{hole.name}: {hole.effect}" for hole in found)
        newest = max(hole.mended[sys.version_info[1]] for hole in found)
        mended = f"3.{sys.version_info[1]}.{newest}"
        yield Finding(
            "note",
            f"Python {platform.python_version()} has known holes ({names}), unless your system has mended them",
            f"install Python {mended} or newer, then make clean and make PYTHON=/path/to/python up",
        )


def holes(minor: int, patch: int) -> list[_Hole]:
    """Returns the holes of Python 3.MINOR.PATCH."""
    return [hole for hole in _HOLES if patch < hole.mended.get(minor, 0)]
