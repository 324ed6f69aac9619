"""The count of a day: shared by processes, kept over restarts, never in the way."""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from openbell.charts.config.choices import PLANS
from openbell.desk.pictures.chart_image import vendor
from openbell.desk.pictures.chart_image.errors import RateLimited
from openbell.desk.pictures.chart_image.vendor import DayCount

NOON = datetime(2026, 3, 18, 12, tzinfo=UTC).timestamp()
BASIC = PLANS["BASIC"]


@pytest.fixture
def often_switched() -> Iterator[None]:
    """Lets threads interrupt each other nearly everywhere."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def taken(count: DayCount, times: int, now: float = NOON) -> int:
    left = -1
    for _ in range(times):
        left = count.take(now)
    return left


def test_it_outlives_the_process_and_a_new_day_begins_at_zero(tmp_path: Path) -> None:
    assert taken(DayCount(tmp_path, "a", BASIC), 30) == 20
    assert taken(DayCount(tmp_path, "a", BASIC), 20) == 0
    with pytest.raises(RateLimited) as caught:
        DayCount(tmp_path, "a", BASIC).take(NOON)
    assert caught.value.retry_after == 43_200
    assert DayCount(tmp_path, "b", BASIC).take(NOON) == 49, "another key"
    assert DayCount(tmp_path, "a", BASIC).take(NOON + 43_200) == 49


def test_a_request_that_was_not_sent_is_given_back(tmp_path: Path) -> None:
    count = DayCount(tmp_path, "a", BASIC)
    taken(count, 50)
    count.give_back(NOON)
    assert count.take(NOON) == 0
    fresh = DayCount(tmp_path, "b", BASIC)
    fresh.give_back(NOON)
    assert fresh.take(NOON) == 49, "never less than none"


def test_several_at_once_get_exactly_the_plans_number(tmp_path: Path, often_switched: None) -> None:
    outcomes: Counter[str] = Counter()

    def work() -> None:
        count = DayCount(tmp_path, "a", BASIC)  # with a lock of its own, as another process has
        for _ in range(20):
            try:
                count.take(NOON)
                outcomes["taken"] += 1
            except RateLimited:
                outcomes["refused"] += 1

    workers = [threading.Thread(target=work) for _ in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join(30)
    assert outcomes == {"taken": 50, "refused": 30}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["requests.json", "requests.lock"]


def test_threads_of_one_process_share_the_count_in_memory(tmp_path: Path) -> None:
    other_done = threading.Event()

    class Slow(DayCount):
        """Pauses between reading and writing the count until another thread has counted, if it can."""

        def _checked(self, used: int, step: int, now: float) -> int:
            found = super()._checked(used, step, now)
            other_done.wait(0.1)
            return found

    def second() -> None:
        DayCount.take(count, NOON)
        other_done.set()

    count = Slow(tmp_path, "a", BASIC, read_only=True)
    worker = threading.Thread(target=second)
    worker.start()
    count.take(NOON)
    worker.join(30)
    assert count.take(NOON) == 47


def test_under_read_only_it_is_in_memory_on_top_of_the_file(tmp_path: Path) -> None:
    taken(DayCount(tmp_path, "a", BASIC), 10)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    count = DayCount(tmp_path, "a", BASIC, read_only=True)
    assert taken(count, 40) == 0
    with pytest.raises(RateLimited):
        count.take(NOON)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    empty = tmp_path / "empty"
    assert taken(DayCount(empty, "a", BASIC, read_only=True), 2) == 48
    assert not empty.exists()


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"day": 1}', b'{"day": "2026-03-18", "counts": {"x": "y"}}', b"\xff" * 9]
)
def test_a_damaged_file_counts_as_missing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "requests.json").write_bytes(data)
    assert taken(DayCount(tmp_path, "a", BASIC), 2) == 48


def test_a_folder_that_cannot_be_written_leaves_the_count_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    count = DayCount(tmp_path / "file" / "below", "a", BASIC)
    assert taken(count, 50) == 0
    with pytest.raises(RateLimited):
        count.take(NOON)


def test_a_lock_that_is_never_released_is_not_waited_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor, "_LOCK_SECONDS", 0.05)
    count = DayCount(tmp_path, "a", BASIC)
    taken(count, 5)
    before = (tmp_path / "requests.json").read_bytes()
    fd = os.open(tmp_path / "requests.lock", os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        assert taken(count, 2) == 43
        assert (tmp_path / "requests.json").read_bytes() == before, "nobody writes without the lock"
    finally:
        os.close(fd)
    assert taken(count, 1) == 42, "what was counted in memory joins the file"
    assert DayCount(tmp_path, "a", BASIC).take(NOON) == 41
