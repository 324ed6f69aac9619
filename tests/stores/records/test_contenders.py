"""Two homes with one host name, each in a space of process ids of its own, on one PostgreSQL, under load."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest

from openbell.stores.records.leases import RecordLeases
from tests.stores.records.contender import TTL
from tests.stores.records.places import Place
from tests.waiting import PATIENCE, wait_for

ROOT = Path(__file__).resolve().parents[3]


def in_own_space(command: list[str]) -> list[str]:
    """The command in a process-id space of its own: its process has the id 1."""
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("NOT TESTED: this user may not create process-id spaces")
    return [*apart, *command]


class Contender:
    """A process of one home."""

    def __init__(self, place: Place, label: str) -> None:
        words = [sys.executable, "-m", "tests.stores.records.contender", place.url, place.schema]
        self._process = subprocess.Popen(
            in_own_space([*words, str(place.folder), label]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self._lines: Queue[str] = Queue()
        self._reader = Thread(target=self._read)
        self._reader.start()
        assert self.hear() == "ready"

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line.strip())

    def hear(self) -> str:
        """Its next line."""
        return self._lines.get(timeout=PATIENCE)

    def said(self) -> str:
        """Its next line, if it has printed one."""
        try:
            return self._lines.get_nowait()
        except Empty:
            return ""

    def stand_still(self, seconds: float) -> None:
        """Block its event loop."""
        assert self._process.stdin
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """Kill −9, with everything in its space."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            pipe.close()


@pytest.fixture
def homes(on_postgres: Place, tmp_path: Path) -> tuple[Place, Place]:
    found = (on_postgres, replace(on_postgres, folder=tmp_path / "other"))

    async def begin() -> None:
        for each in found:  # both note the head of the empty ledger
            async with each.opened() as records:
                await records.write(lambda _journal: None)

    asyncio.run(begin())
    return found


@pytest.fixture
def contenders(homes: tuple[Place, Place]) -> Iterator[tuple[Contender, Contender]]:
    first = Contender(homes[0], "first")
    assert first.hear() == "took 1"
    second = Contender(homes[1], "second")
    try:
        yield first, second
    finally:
        first.kill()
        second.kill()


def entries(place: Place) -> list[tuple[str, int]]:
    """The label and the token of the writer of every entry, in order."""
    import json

    bodies = [json.loads(entry.body) for entry in asyncio.run(place.entries())]
    return [(body["id"].partition("-")[0], int(body["reasoning"])) for body in bodies]


def expiry(place: Place) -> float:
    async def read() -> float:
        async with place.opened() as records:
            row = await records.read(lambda view: RecordLeases(view).get("engine"))
            assert row
            return row.expires

    return asyncio.run(read())


def test_a_living_holder_keeps_its_lease_and_a_starved_one_loses_it_before_it_writes_again(
    homes: tuple[Place, Place], contenders: tuple[Contender, Contender]
) -> None:
    first, second = contenders
    began = expiry(homes[0])
    # Two holders that take each other for dead would change places at each look, 20 times a second.
    wait_for(lambda: expiry(homes[0]) > began + 2 * TTL, "the lease is renewed for two of its lives")
    assert (first.said(), second.said()) == ("", "")
    assert {label for label, _ in entries(homes[0])} == {"first"}

    first.stand_still(2 * TTL)
    assert second.hear() == "took 2"
    assert first.hear() == "lost"
    written = entries(homes[0])
    wait_for(lambda: len(entries(homes[0])) > len(written) + 5, "the second writes")
    assert second.said() == ""

    second.kill()
    assert first.hear() == "took 3", "after the lease has expired: the first cannot know that the second is dead"
    wait_for(lambda: ("first", 3) in entries(homes[0]), "the first writes again")
    tokens = [token for _, token in entries(homes[0])]
    assert tokens == sorted(tokens)
    assert {*entries(homes[0])} == {("first", 1), ("second", 2), ("first", 3)}
