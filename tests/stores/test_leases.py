"""Leases: one holder at a time, a token that only grows, and no lease that outlives its process."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.errors import LeaseHeld, LeaseLost
from openbell.stores import leases
from openbell.stores.leases import this_process
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Lease
from tests.stores.samples import LIVE, SEPTEMBER, run

HOST = socket.gethostname()
ID = "f" * 16
needs_boot_id = pytest.mark.skipif(
    not Path("/proc/sys/kernel/random/boot_id").exists(), reason="death is certain only where the kernel has a boot id"
)


class Hours:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.now = 5000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Hours:
    clock = Hours()
    monkeypatch.setattr(leases, "time", SimpleNamespace(monotonic=clock.monotonic, time=time.time))
    return clock


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ParquetStore]:
    store = ParquetStore(tmp_path / "data")
    yield store
    store.close()


@pytest.fixture(scope="module")
def dead() -> int:
    """The id of a process that has exited."""
    done = subprocess.Popen([sys.executable, "-S", "-c", ""])
    done.wait()
    return done.pid


def took(store: ParquetStore, holder: str, ttl: float = 15) -> Lease | None:
    """The lease; None if it is held."""
    try:
        return store.leases.acquire("collector", holder, ttl)
    except LeaseHeld:
        return None


def test_a_lease_expires(store: ParquetStore, hours: Hours) -> None:
    assert took(store, "one")
    hours.now += 14.9
    assert not took(store, "two")
    assert store.leases.holder("collector") == "one"
    hours.now += 0.2
    assert store.leases.holder("collector") is None
    assert took(store, "two")


def test_renewing_extends_a_lease(store: ParquetStore, hours: Hours) -> None:
    lease = store.leases.acquire("collector", "one", 15)
    for _ in range(5):
        hours.now += 10
        store.leases.renew(lease, 15)
        assert not took(store, "two")
    hours.now += 15.1
    assert took(store, "two")
    with pytest.raises(LeaseLost, match="two"):
        store.leases.renew(lease, 15)


def test_an_expired_lease_that_nobody_took_is_still_current(store: ParquetStore, hours: Hours) -> None:
    lease = store.leases.acquire("collector", "one", 15)
    hours.now += 100
    store.write([run("AAPL", SEPTEMBER, 1)], LIVE, lease=lease)
    store.leases.renew(lease, 15)
    assert not took(store, "two")


def test_a_refusal_names_the_holder_and_the_remaining_time(store: ParquetStore, hours: Hours) -> None:
    store.leases.acquire("collector", "one", 15)
    hours.now += 5
    with pytest.raises(LeaseHeld, match="already running as one") as caught:
        store.leases.acquire("collector", "two", 15)
    assert caught.value.details == {"holder": "one", "expires_in_s": 10.0}


def test_the_holder_may_take_it_again_and_its_old_token_is_void(store: ParquetStore) -> None:
    old = store.leases.acquire("collector", "one", 15)
    new = store.leases.acquire("collector", "one", 15)
    assert new.token > old.token
    with pytest.raises(LeaseLost):
        store.leases.renew(old, 15)
    store.leases.release(old)
    assert store.leases.holder("collector") == "one"
    store.leases.renew(new, 15)


def test_a_released_lease_is_void_for_its_holder(store: ParquetStore) -> None:
    lease = store.leases.acquire("collector", "one", 15)
    store.leases.release(lease)
    store.leases.release(lease)
    with pytest.raises(LeaseLost, match="nobody"):
        store.write([run("AAPL", SEPTEMBER, 1)], LIVE, lease=lease)
    assert store.stored() == []


def test_a_forged_lease_is_refused(store: ParquetStore) -> None:
    with pytest.raises(LeaseLost):
        store.leases.renew(Lease("collector", 1, "one"), 15)
    lease = store.leases.acquire("collector", "one", 15)
    for forged in (Lease("collector", lease.token, "two"), Lease("collector", lease.token + 1, "one")):
        with pytest.raises(LeaseLost):
            store.leases.renew(forged, 15)


def test_leases_of_different_names_are_independent(store: ParquetStore) -> None:
    one, other = store.leases.acquire("collector", "me", 15), store.leases.acquire("engine", "me", 15)
    store.leases.release(one)
    store.leases.renew(other, 15)
    assert store.leases.holder("engine") == "me"


# --- the holder's process -------------------------------------------------------------------------------------------


def test_host_name_and_process_id_prove_nothing(store: ParquetStore, hours: Hours, dead: int) -> None:
    """In a container of its own, a living process may have the host name of this one and the id of a dead one."""
    for holder in (
        f"collector@{HOST}:{dead}:12345",
        f"collector@{HOST}:{dead}:",
        f"collector@{HOST}:{dead}:{'0' * 16}",
    ):
        assert took(store, holder)
        assert store.leases.holder("collector") == holder
        assert not took(store, "two")
        hours.now += 15.1


@needs_boot_id
def test_a_file_that_can_be_locked_proves_the_death_of_its_holder(store: ParquetStore, tmp_path: Path) -> None:
    file, holder = left_behind(tmp_path / "data"), f"collector@elsewhere:1:{ID}"
    first = took(store, holder, 100)
    assert first
    assert store.leases.holder("collector") is None
    with file.open("rb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        assert store.leases.holder("collector") == holder
        assert not took(store, "two")
    taken = took(store, "two")
    assert taken
    assert taken.token == first.token + 1


@needs_boot_id
def test_the_copy_of_a_home_proves_nothing(store: ParquetStore, tmp_path: Path) -> None:
    """A backup of a running home holds the files of living processes, which nobody locks there."""
    file = left_behind(tmp_path / "data")
    content = file.read_bytes()
    file.rename(tmp_path / "original")
    file.write_bytes(content)
    assert took(store, f"collector@elsewhere:1:{ID}")
    assert not took(store, "two")


@needs_boot_id
def test_a_lease_from_before_a_reboot_is_free_whatever_its_time(store: ParquetStore, tmp_path: Path) -> None:
    """Monotonic time has begun again: the expiry means nothing."""
    file = left_behind(tmp_path / "data")
    file.write_bytes(b"another-boot " + file.read_bytes().split(b" ", 1)[1])
    assert took(store, f"collector@elsewhere:1:{ID}")
    assert took(store, "two")


def test_a_forked_child_is_another_holder(store: ParquetStore) -> None:
    assert took(store, this_process("collector"), 3600)
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writes, this_process("collector").encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reads, 200).decode().rpartition(":")[2] != this_process("collector").rpartition(":")[2]
    os.close(reads)
    os.close(writes)
    assert store.leases.holder("collector") == this_process("collector")


def left_behind(folder: Path) -> Path:
    """The file of a process that was killed while it held a lease; its id is changed to `ID`."""
    script = (
        "import os, signal, sys; from pathlib import Path; from openbell.stores.leases import Holders, this_process;"
        "Holders(Path(sys.argv[1])).enter(this_process('collector')); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, folder], check=False)
    (file,) = (folder / "holders").iterdir()
    return file.rename(folder / "holders" / ID)


def test_a_living_holder_keeps_its_lease(store: ParquetStore) -> None:
    holder = this_process("collector")
    assert took(store, holder, 3600)
    assert store.leases.holder("collector") == holder
    assert not took(store, this_process("another"), 3600)
    assert not took(store, "two", 3600)


@pytest.mark.parametrize(
    "holder", ["me", "a:b", "collector@elsewhere:{dead}:12345", "collector@{host}:x:y", "::", "@:1:", "a@{host}:-1:0"]
)
def test_an_unknown_holder_keeps_its_lease(store: ParquetStore, hours: Hours, dead: int, holder: str) -> None:
    holder = holder.format(dead=dead, host=HOST)
    assert took(store, holder)
    assert not took(store, "two")
    hours.now += 15.1
    assert took(store, "two")


def test_a_lease_from_before_a_reboot_is_free(store: ParquetStore, hours: Hours) -> None:
    """The monotonic clock starts again, and the old expiry is later than any new lease's could be."""
    hours.now = 1_000_000.0
    old = store.leases.acquire("collector", f"collector@elsewhere:{os.getpid()}:1", 15)
    hours.now = 40.0
    new = took(store, "two")
    assert new
    assert new.token > old.token


# --- concurrency and sequences --------------------------------------------------------------------------------------


def test_one_of_many_concurrent_callers_gets_the_lease(store: ParquetStore) -> None:
    start = Barrier(8)

    def ask(number: int) -> Lease | None:
        start.wait(20)
        return took(store, f"thread {number}", 3600)

    with ThreadPoolExecutor(8) as pool:
        got = [lease for lease in pool.map(ask, range(8)) if lease]
    assert len(got) == 1
    assert store.leases.holder("collector") == got[0].holder


@settings(deadline=None, max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["take", "renew", "release", "write", "wait"]), st.integers(0, 2)), max_size=30
    )
)
def test_tokens_only_grow_and_only_the_newest_is_current(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    hours = Hours()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "time", SimpleNamespace(monotonic=hours.monotonic, time=time.time))
        store = ParquetStore(tmp_path_factory.mktemp("leases"))
        mine: dict[int, Lease] = {}
        newest, holder, ends = 0, -1, 0.0
        for number, (kind, who) in enumerate(steps):
            held = mine.get(who)
            valid = held is not None and held.token == newest and holder == who
            if kind == "wait":
                hours.now += 4 * (who + 1)
            elif kind == "take":
                got = took(store, f"number {who}", 10)
                assert (got is not None) == (holder in {-1, who} or hours.now >= ends)
                if got:
                    assert got.token == newest + 1
                    mine[who], newest, holder, ends = got, got.token, who, hours.now + 10
            elif held and kind == "release":
                store.leases.release(held)
                holder = -1 if valid else holder
            elif held:
                try:
                    if kind == "renew":
                        store.leases.renew(held, 10)
                        ends = hours.now + 10
                    else:
                        store.write([run("AAPL", SEPTEMBER, 1, number)], LIVE, lease=held)
                    assert valid
                except LeaseLost:
                    assert not valid
        store.close()
