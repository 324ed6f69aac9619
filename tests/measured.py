"""Measures which branches of the source run, if TESTS_COVERAGE names the file of the figures (`make check`).

Every process of pytest is measured, and every command that tests/prefork.py forks. Each writes a file of its own beside the
named one; tools/room_coverage.py joins them. Processes that begin from nothing are not measured: it would double the time
that their tests measure.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import coverage

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "pyproject.toml"
VARIABLE = "TESTS_COVERAGE"
"""Processes of tests inherit it."""


_under_way: list[coverage.Coverage] = []
"""The measurement of this process."""


def begin(*, forked: bool = False) -> None:
    """Begins to measure this process, if that is wanted.

    A process of pytest also lists the files that it never loads. A forked command leaves that out: it takes 50 ms.
    """
    if VARIABLE not in os.environ:
        return
    import coverage

    os.environ[VARIABLE] = str(Path(os.environ[VARIABLE]).absolute())
    made = coverage.Coverage(os.environ[VARIABLE], data_suffix=True, config_file=str(SETTINGS))
    if forked:
        made.set_option("run:source_pkgs", [])
        # The folder of the checkout may be called openbell too.
        made.set_option("run:include", [str(ROOT / "src" / "openbell" / "*")])
    made.start()
    _under_way.append(made)


def write() -> None:
    """Ends the measurement of this process and writes its file."""
    while _under_way:
        made = _under_way.pop()
        made.stop()
        made.save()
