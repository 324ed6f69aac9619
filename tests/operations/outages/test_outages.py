"""Every store in every condition: what users see is on the page, calls end in time, nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts import SOAK
from tests.operations.outages.page import PAGE, comparable, page
from tests.operations.outages.station import TIMEOUT
from tests.operations.outages.visits import Visit
from tests.prefork import Process

SETUPS = ("files", "databases")
PATIENCE = 600.0
MARGIN = 1.5
"""Seconds that a call may take beyond its time-out."""
WRITES = bool(os.environ.get("OPENBELL_WRITE_SNAPSHOTS"))


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> list[Visit]:
    """What both walks have seen. They run at the same time: most of it is waiting."""
    folders = [tmp_path_factory.mktemp(f"outages-{setup}") for setup in SETUPS]
    walks = [_start(setup, folder) for setup, folder in zip(SETUPS, folders, strict=True)]
    found: list[Visit] = []
    try:
        for walk, folder in zip(walks, folders, strict=True):
            walk.wait(timeout=PATIENCE)
            printed = (folder / "log").read_text()
            if walk.returncode and "NOT TESTED" in printed:
                pytest.skip(printed.strip().splitlines()[-1])
            assert walk.returncode == 0, printed[-3000:]
            found += [Visit.read(each) for each in json.loads((folder / "walk.json").read_text())]
    finally:
        for walk in walks:
            walk.kill()
            walk.wait()
    return found


def _start(setup: str, folder: Path) -> Process:
    command = [sys.executable, "-m", "tests.operations.outages.walk", setup, str(folder)]
    null = subprocess.DEVNULL
    # Not a pipe: nobody reads that of the second walk while the first is waited for, and a full pipe stops its desk.
    with (folder / "log").open("wb") as log:
        return Process(command, stdin=null, stdout=null, stderr=log)


def test_nothing_acknowledged_is_lost_or_doubled_and_everything_goes_on(visits: list[Visit]) -> None:
    found = {(visit.store, visit.condition): visit.faults for visit in visits if visit.faults}
    assert found == {}


@pytest.mark.skipif(not SOAK, reason="`make soak` measures the calls: other tests take the processor from the walks")
def test_no_call_takes_longer_than_its_time_out(visits: list[Visit]) -> None:
    late = {
        (visit.store, visit.condition, name): cell.seconds
        for visit in visits
        for name, cell in visit.cells.items()
        if cell.seconds > TIMEOUT + MARGIN
    }
    assert late == {}


@pytest.mark.skipif(not (SOAK or WRITES), reason="`make soak` compares the page: on a busy machine more calls time out")
def test_the_page_shows_what_users_see(visits: list[Visit]) -> None:
    found = page(visits)
    if WRITES:
        PAGE.write_text(found, encoding="utf-8")
    written = PAGE.read_text(encoding="utf-8")
    assert comparable(found) == comparable(written), "OPENBELL_WRITE_SNAPSHOTS=1 writes docs/outages.md anew"
