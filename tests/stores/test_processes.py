"""Many processes on one folder: none misses a bar, reads one twice, or undoes another's write."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openbell.market.bars import Bars, empty_of, merge
from openbell.market.errors import LeaseHeld
from openbell.stores.leases import this_process
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Lease, Span
from tests.stores.child import Child
from tests.stores.model import assert_same
from tests.stores.partner import CONTESTED, CONTESTED_MINUTES, FIXED, LAST_VERSION, REPLACED, SHARED, mine
from tests.stores.samples import EVER, FILE, LIVE, MINUTE, SEPTEMBER, bars, minutes_of, run

COUNT = 6


class Partner(Child):
    """A process that runs `tests.stores.partner`."""

    def __init__(self) -> None:
        super().__init__("tests.stores.partner")

    def begin(self, job: str, **arguments: Any) -> None:
        """Send it a job without waiting."""
        self.tell(json.dumps({"do": job, **{name: _plain(value) for name, value in arguments.items()}}))

    def answer(self) -> Any:
        """The result of the job."""
        return json.loads(self.line())

    def ask(self, job: str, **arguments: Any) -> Any:
        """Send it a job and wait for the result."""
        self.begin(job, **arguments)
        return self.answer()


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


@pytest.fixture(scope="module")
def partners() -> Iterator[list[Partner]]:
    """Processes that have loaded everything, so that their jobs begin at the same moment."""
    with ExitStack() as stack:
        started = [stack.enter_context(Partner()) for _ in range(COUNT)]
        assert [partner.answer() for partner in started] == ["ready"] * COUNT
        yield started


# --- creating the store ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attempt", range(5))
@pytest.mark.parametrize("there", ["nothing", "garbage", "an empty buffer"])
def test_many_processes_may_create_the_store_at_once(
    tmp_path: Path, partners: list[Partner], there: str, attempt: int
) -> None:
    folder = tmp_path / "home" / "data"
    if there != "nothing":
        folder.mkdir(parents=True)
        (folder / "buffer.sqlite").write_bytes(b"garbage " * 999 if there == "garbage" else b"")
    for number, partner in enumerate(partners):
        partner.begin("begin", folder=folder, number=number)
    assert [partner.answer() for partner in partners] == [40] * COUNT
    store = ParquetStore(folder)
    everything = merge(*(mine(number) for number in range(COUNT)))
    assert_same(store.read(minutes_of(SHARED), 0, EVER), everything)
    for number in range(COUNT):
        times = mine(number).time
        assert store.gaps(minutes_of(SHARED), Span(int(times[0]), int(times[-1]))) == []
    assert len(store.audit.problems()) == (there == "garbage")
    store.close()


# --- side by side ---------------------------------------------------------------------------------------------------


def test_two_writers_of_the_same_minutes_leave_the_last_version_of_either(
    tmp_path: Path, partners: list[Partner]
) -> None:
    for number, partner in enumerate(partners[:2]):
        partner.begin("contest", folder=tmp_path, number=number)
    assert [partner.answer() for partner in partners[:2]] == [LAST_VERSION] * 2
    store = ParquetStore(tmp_path)
    got = store.read(minutes_of(CONTESTED), 0, EVER)
    last = [run(CONTESTED, SEPTEMBER, CONTESTED_MINUTES, LAST_VERSION * 10 + number) for number in range(2)]
    first_won = np.isclose(got.close, last[0].close, rtol=0, atol=0)
    assert_same(got, merge(last[1], bars(CONTESTED, got.time[first_won], LAST_VERSION * 10)))
    store.compact(EVER)
    assert_same(store.read(minutes_of(CONTESTED), 0, EVER), got)
    store.close()


def test_readers_see_every_bar_once_while_others_write_and_move_them(tmp_path: Path, partners: list[Partner]) -> None:
    store = ParquetStore(tmp_path)
    store.write([FIXED], LIVE)
    store.close()
    readers, writers = partners[:2], partners[2:4]
    for reader in readers:
        reader.begin("watch", folder=tmp_path)
    for writer in writers:
        writer.begin("rewrite", folder=tmp_path, rounds=40)
    moved = [writer.answer() for writer in writers]
    for reader in readers:
        reader.begin("stop")
    reads = [reader.answer() for reader in readers]
    assert all(isinstance(times, int) and times >= 5 for times in reads), reads
    assert all(isinstance(bar_count, int) and bar_count > 1000 for bar_count in moved), moved


def test_bars_are_all_of_one_source_while_they_are_replaced(tmp_path: Path, partners: list[Partner]) -> None:
    reader, replacer, insister = partners[:3]
    reader.begin("compare", folder=tmp_path)
    replacer.begin("replace", folder=tmp_path, rounds=60)
    insister.begin("insist", folder=tmp_path, rounds=200)
    assert replacer.answer() == 60
    assert insister.answer() == 200
    reader.begin("stop")
    assert isinstance(reads := reader.answer(), int), reads
    store = ParquetStore(tmp_path)
    store.compact(EVER)
    later = run(REPLACED, SEPTEMBER + 100 * MINUTE, 202, 1)
    assert_same(store.read(minutes_of(REPLACED), 0, EVER), merge(run(REPLACED, SEPTEMBER, 20, 2), later))
    store.close()


def test_a_damaged_file_is_set_aside_by_one_of_many_processes(tmp_path: Path, partners: list[Partner]) -> None:
    store = ParquetStore(tmp_path)
    for attempt in range(4):
        store.write([run("AAPL", SEPTEMBER, 2500, attempt)], LIVE, covers=Span(0, EVER))
        path = tmp_path / "stocks/1min/AAPL_2025-09.parquet"
        path.write_bytes(path.read_bytes()[:-100])
        known = set(tmp_path.glob("*/1min/*.corrupt-*"))
        for partner in partners[:4]:
            partner.begin("read", folder=tmp_path, symbol="AAPL")
        partners[4].begin("write", folder=tmp_path, symbol="AAPL", count=2000, version=99)
        assert {partner.answer() for partner in partners[:4]} <= {0, 2000}
        assert partners[4].answer() == 2000
        assert_same(store.read(minutes_of("AAPL"), 0, EVER), run("AAPL", SEPTEMBER, 2000, 99))
        assert len(set(tmp_path.glob("*/1min/*.corrupt-*")) - known) == 1
        assert store.gaps(minutes_of("AAPL"), Span(SEPTEMBER, SEPTEMBER + 60)) == [Span(SEPTEMBER, SEPTEMBER + 60)]
    store.close()


def _interrupted(reader: ParquetStore, at_step: int, event: Callable[[], object]) -> Callable[[], bool]:
    """Call `event` just before one step of a read. Returns a function that tells whether it was called."""
    step = count()
    happened = []

    def stepwise(work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            if next(step) == at_step:
                happened.append(True)
                event()
            return work(*values, **named)

        return call

    reader._buffer.state = stepwise(reader._buffer.state)  # type: ignore[method-assign]
    reader._buffer.get = stepwise(reader._buffer.get)  # type: ignore[method-assign]
    reader._archive.read = stepwise(reader._archive.read)  # type: ignore[method-assign]
    return lambda: bool(happened)


@pytest.mark.parametrize("event", ["small", "large", "compact", "replace", "damage"])
def test_a_read_is_consistent_whatever_happens_between_its_steps(memory_path: Path, event: str) -> None:
    filed, waiting = run("AAPL", SEPTEMBER, 2500), run("AAPL", SEPTEMBER + 2400 * MINUTE, 900, 2)
    small, large = run("AAPL", SEPTEMBER + 2450 * MINUTE, 10, 3), run("AAPL", SEPTEMBER + 2000 * MINUTE, 2000, 3)
    path = "stocks/1min/AAPL_2025-09.parquet"
    events: dict[str, tuple[Callable[[ParquetStore], object], Bars]] = {
        "small": (lambda other: other.write([small], LIVE), merge(filed, waiting, small)),
        "large": (lambda other: other.write([large], LIVE), merge(filed, waiting, large)),
        "compact": (lambda other: other.compact(SEPTEMBER + 2700 * MINUTE), merge(filed, waiting)),
        "replace": (lambda other: other.write([large], FILE, replace=True), merge(filed, waiting, large)),
        "damage": (lambda other: (other.root / path).write_bytes(b"damaged"), waiting),
    }
    happen, after = events[event]
    asks: list[Callable[[ParquetStore], Bars]] = [
        lambda store: store.read(filed.series, 0, EVER),
        lambda store: store.tail(filed.series, 9999, EVER),
    ]
    for number, (at_step, ask) in enumerate(product(range(4), asks)):
        folder = memory_path / str(number)
        reader, other = ParquetStore(folder), ParquetStore(folder)
        other.write([filed], LIVE)
        other.write([waiting], LIVE)
        happened = _interrupted(reader, at_step, lambda: happen(other))  # noqa: B023 - called in this round
        got = ask(reader)
        assert happened()
        possible = [some for some in (merge(filed, waiting), after) if len(some) == len(got) and some.same_as(got)]
        assert possible, f"{event} before step {at_step}: {len(got)} bars"
        reader.close()
        other.close()


# --- stopped and killed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 2500])
def test_a_process_stopped_past_its_lease_writes_nothing_when_it_wakes(
    tmp_path: Path, partners: list[Partner], count: int
) -> None:
    holder = partners[0]
    store = ParquetStore(tmp_path)
    token = holder.ask("acquire", folder=tmp_path, ttl=0.3)
    assert holder.ask("leased_write", folder=tmp_path, symbol="AAPL", count=5, version=1) == 5
    holder.send(signal.SIGSTOP)
    taken: list[Lease] = []

    def take() -> bool:
        try:
            taken.append(store.leases.acquire("collector", this_process("successor"), 60))
        except LeaseHeld:
            return False
        return True

    try:
        holder.until(take, "the lease is over", bound=20)
        assert taken[0].token > token
        store.write([run("AAPL", SEPTEMBER, 5, 2)], LIVE, lease=taken[0])
        version = store.versions.of(minutes_of("AAPL"))
    finally:
        holder.send(signal.SIGCONT)
    lost = holder.ask("leased_write", folder=tmp_path, symbol="AAPL", count=count, version=3)
    assert lost.startswith("LeaseLost"), lost
    assert holder.ask("leased_write", folder=tmp_path, symbol="MSFT", count=count, version=3).startswith("LeaseLost")
    assert holder.ask("renew", folder=tmp_path, ttl=60).startswith("LeaseLost")
    assert holder.ask("acquire", folder=tmp_path, ttl=60).startswith("LeaseHeld")
    assert_same(store.read(minutes_of("AAPL"), 0, EVER), run("AAPL", SEPTEMBER, 5, 2))
    assert_same(store.read(minutes_of("MSFT"), 0, EVER), empty_of(minutes_of("MSFT")))
    assert store.versions.changed_since(minutes_of("AAPL"), version) is None
    assert store.gaps(minutes_of("MSFT"), Span(0, 60)) == [Span(0, 60)]
    store.close()


def test_a_stopped_reader_does_not_block_writers(tmp_path: Path, partners: list[Partner]) -> None:
    store = ParquetStore(tmp_path)
    store.write([run("AAPL", SEPTEMBER, 2500)], LIVE)
    reader = partners[0]
    assert reader.ask("read", folder=tmp_path, symbol="AAPL") == 2500
    reader.send(signal.SIGSTOP)
    try:
        store.write([run("AAPL", SEPTEMBER, 2600, 2)], LIVE)
        store.compact(EVER)
    finally:
        reader.send(signal.SIGCONT)
    assert reader.ask("read", folder=tmp_path, symbol="AAPL") == 2600
    store.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="zombies are told from the living by /proc")
@pytest.mark.parametrize("reaped", [True, False], ids=["gone", "a zombie"])
def test_the_lease_of_a_killed_holder_is_free_at_once(tmp_path: Path, reaped: bool) -> None:
    store = ParquetStore(tmp_path)
    with Partner() as holder:
        assert holder.answer() == "ready"
        token = holder.ask("acquire", folder=tmp_path, ttl=3600)
        held_by = store.leases.holder("collector")
        assert held_by is not None
        assert f"@{socket.gethostname()}:{holder.pid}:" in held_by
        with pytest.raises(LeaseHeld):
            store.leases.acquire("collector", this_process("successor"), 3600)
        if reaped:
            holder.kill()
        else:
            holder.send(signal.SIGKILL)
            holder.ended_unseen()
        assert store.leases.holder("collector") is None
        assert store.leases.acquire("collector", this_process("successor"), 3600).token == token + 1
    store.close()
