"""The audit log: one line for each call, nothing secret, rotation, several processes, a full disk, and a clean stop."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import logging
import multiprocessing
import os
import stat
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from openbell.desk.settings import Settings
from openbell.gateway.admission import Admission
from openbell.gateway.calls import Calls, CallWatch, HttpCall
from openbell.gateway.guard import audit
from openbell.gateway.guard.audit import NAME, AuditEntry, AuditLog
from openbell.gateway.guard.metrics import GatewayMetrics
from openbell.net.rates import Rate
from openbell.protocol.session import LOCAL_OPERATOR
from tests.waiting import wait_for


def entry(**changes: Any) -> AuditEntry:
    given: dict[str, Any] = {
        "time": 1_795_000_000.1234,
        "request": "req-1",
        "principal": "ann",
        "server": "chartgen",
        "tool": "generate_chart",
        "scope": "read",
        "outcome": "ok",
        "ms": 12.3456,
        "address": "127.0.0.1",
    }
    return AuditEntry(**(given | changes))


def lines(folder: Path) -> list[dict[str, Any]]:
    """All lines, oldest first; rotated files too."""
    files = sorted(folder.glob(f"{NAME}*"), key=lambda file: -int(file.suffix[1:]) if file.suffix != ".log" else 0)
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def has_lines(folder: Path, count: int) -> bool:
    return (folder / NAME).exists() and len(lines(folder)) == count


def write(folder: Path, *entries: AuditEntry, **options: Any) -> None:
    audit = AuditLog(folder, **options)
    for each in entries:
        audit.record(each)
    audit.close()


def test_a_call_is_one_line(tmp_path: Path) -> None:
    write(tmp_path, entry())
    assert lines(tmp_path) == [
        {
            "time": "2026-11-18T11:06:40.123Z",
            "request": "req-1",
            "principal": "ann",
            "server": "chartgen",
            "tool": "generate_chart",
            "scope": "read",
            "outcome": "ok",
            "ms": 12.35,
            "address": "127.0.0.1",
        }
    ]
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


def test_a_later_process_appends(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, entry(request=f"req-{number}"))
    assert [line["request"] for line in lines(tmp_path)] == ["req-0", "req-1", "req-2"]


@pytest.mark.parametrize(
    "tool",
    [
        'x"}\n{"time": "forged", "principal": "root"}',
        "x\r\nforged",
        "x\u2028forged\u2029\x85\x0b\x0c",
        "\x1b[2J\x1b]0;owned\x07",
        "\u202egnp.exe",
        "x\x00y",
        "\ud800",
        "a" * 1_000_000,
    ],
)
def test_attack_log_injection_by_the_name_of_a_tool(tmp_path: Path, tool: str) -> None:
    write(tmp_path, entry(tool=tool), entry(tool="next"))
    text = (tmp_path / NAME).read_bytes()
    assert text.count(b"\n") == 2
    assert len(text) < 2000
    assert all(byte == 10 or 32 <= byte < 127 for byte in text)
    assert [line["tool"] for line in lines(tmp_path)] == [tool[:128], "next"]


def test_a_clean_stop_loses_no_line(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path, most_bytes=200_000, kept=50)

    def record(thread: int) -> None:
        for number in range(2000):
            audit.record(entry(request=f"{thread}-{number}"))

    threads = [threading.Thread(target=record, args=(each,)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    audit.close()
    found = [line["request"] for line in lines(tmp_path)]
    assert len(found) == 8000
    for thread in range(4):
        assert [each for each in found if each.startswith(f"{thread}-")] == [f"{thread}-{n}" for n in range(2000)]


def test_lines_are_written_while_the_process_runs(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path)
    try:
        for number in range(3):
            audit.record(entry(request=f"req-{number}"))
            wait_for(partial(has_lines, tmp_path, number + 1), "the line")
    finally:
        audit.close()


def test_the_log_is_rotated_by_size_and_old_files_are_removed(tmp_path: Path) -> None:
    for number in range(40):
        write(tmp_path, entry(request=f"req-{number}"), most_bytes=1000, kept=3)
    assert {file.name for file in tmp_path.iterdir()} <= {NAME, *(f"{NAME}.{number}" for number in (1, 2, 3))}
    assert all(file.stat().st_size < 1500 for file in tmp_path.iterdir())
    found = [int(line["request"][4:]) for line in lines(tmp_path)]
    assert found == list(range(found[0], 40))
    assert 12 <= len(found) < 30


def _many(folder: Path, name: str) -> None:
    audit = AuditLog(folder, most_bytes=5000, kept=200)
    for number in range(300):
        audit.record(entry(request=f"{name}-{number}"))
        if number % 30 == 0:
            wait_for(lambda: not audit._queue, "the writer")
    audit.close()


def test_several_processes_share_the_log_and_rotate_it_without_losing_a_line(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_many, args=(tmp_path, name)) for name in "abc"]
    for each in processes:
        each.start()
    for each in processes:
        each.join(60)
        assert each.exitcode == 0
    found = [line["request"] for line in lines(tmp_path)]
    assert sorted(found) == sorted(f"{name}-{number}" for name in "abc" for number in range(300))


def test_a_log_that_was_moved_by_an_operator_is_begun_anew(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path)
    try:
        audit.record(entry(request="one"))
        wait_for(partial(has_lines, tmp_path, 1), "the first line")
        (tmp_path / NAME).rename(tmp_path / "moved")
        audit.record(entry(request="two"))
    finally:
        audit.close()
    assert [line["request"] for line in lines(tmp_path)] == ["two"]


class FullDisk:
    """`os.write` that fails like a full disk; the first failing call writes half of its data."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self.failures = 0
        self._write = os.write
        monkeypatch.setattr(os, "write", self)

    def failed_more_than(self, times: int) -> bool:
        return self.failures > times

    def __call__(self, fd: int, data: bytes) -> int:
        if not self.full or threading.current_thread().name != "audit":
            return self._write(fd, data)
        self.failures += 1
        if self.failures == 1:
            return self._write(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_stops_no_call_and_warns_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    disk = FullDisk(monkeypatch)
    audit = AuditLog(tmp_path)
    audit.record(entry(request="before"))
    wait_for(partial(has_lines, tmp_path, 1), "the first line")
    disk.full = True
    for number in range(3):
        failures = disk.failures
        audit.record(entry(request=f"lost-{number}"))
        wait_for(partial(disk.failed_more_than, failures), "a failure")
    wait_for(lambda: audit.lost == 3, "the count")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "No space left" in caplog.text
    disk.full = False
    audit.record(entry(request="after"))
    audit.close()
    whole: list[dict[str, Any]] = []
    torn = 0
    for line in (tmp_path / NAME).read_text().splitlines():
        try:
            whole.append(json.loads(line))
        except ValueError:
            torn += 1
    assert torn == 1
    assert [line.get("request") for line in whole] == ["before", "after", None]
    assert whole[2]["lost_lines"] == 3


def test_a_line_that_cannot_be_made_does_not_stop_the_log(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path)
    audit.record(entry(time=float("nan")))
    wait_for(lambda: audit.lost == 1, "the failure")
    audit.record(entry(request="after", outcome=-32602))
    audit.close()
    assert [line.get("outcome") for line in lines(tmp_path)] == ["-32602", None]


def test_a_folder_that_cannot_be_written_stops_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "home").write_text("a file")
    write(tmp_path / "home", entry(), entry())
    assert "cannot be written" in caplog.text


def test_every_refusal_is_counted_while_counts_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts are written as often as possible while another thread records refusals of many callers."""
    monkeypatch.setattr(audit, "_COUNT_SECONDS", 0.0)
    monkeypatch.setattr(audit, "_COLLECT_SECONDS", 0.0)
    monkeypatch.setattr(audit, "REFUSALS", Rate(per_minute=1, burst=1))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        made = AuditLog(tmp_path, most_bytes=1 << 30, now=lambda: 0.0)
        for number in range(60_000):
            made.record(entry(principal=f"p{number % 1_500}", outcome="refused"))
        made.close()
    finally:
        sys.setswitchinterval(interval)
    assert sum(each.get("refused_more", 1) for each in lines(tmp_path)) == 60_000


def test_refusals_beyond_the_queue_are_counted_as_those_of_others(tmp_path: Path) -> None:
    with (tmp_path / NAME).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # the thread cannot write
        made = AuditLog(tmp_path, most_queued=20)
        made.record(entry())
        wait_for(lambda: not made._queue, "the thread to hang")
        for _ in range(100):
            made.record(entry(outcome="refused"))
        assert len(made._refused) == 20
    made.close()
    counts = {each["principal"]: each["refused_more"] for each in lines(tmp_path) if "refused_more" in each}
    assert counts == {"ann": 20, "others": 70}


def test_attack_symbolic_link_in_place_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    (tmp_path / NAME).symlink_to(tmp_path / "target")
    write(tmp_path, entry())
    assert (tmp_path / "target").read_text() == "precious"


def test_a_disk_that_hangs_delays_no_call_and_memory_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, goes_on = threading.Event(), threading.Event()
    real = os.write

    def hang(fd: int, data: bytes) -> int:
        if threading.current_thread().name == "audit":
            hanging.set()
            assert goes_on.wait(30)
        return real(fd, data)

    monkeypatch.setattr(os, "write", hang)
    audit = AuditLog(tmp_path, most_queued=100)
    audit.record(entry())
    assert hanging.wait(30)

    async def calls() -> None:
        for _ in range(500):
            audit.record(entry())

    asyncio.run(calls())
    assert len(audit._queue) == 100
    goes_on.set()
    audit.close()
    assert [line["lost_lines"] for line in lines(tmp_path) if "lost_lines" in line] == [400]
    assert len(lines(tmp_path)) == 102


def test_a_call_is_recorded_however_it_ends(tmp_path: Path) -> None:
    """What was cancelled, as when the desk stops, may have changed something all the same."""
    log = AuditLog(tmp_path)
    watch = CallWatch(Settings(home=tmp_path), GatewayMetrics({"chartgen": ["place_order"]}), log)
    calls = Calls("chartgen", "http://127.0.0.1/mcp", cast("Admission", None), watch)
    call = HttpCall("place_order", "trade", frozenset(), "place_order")
    request = {"type": "http", "headers": [], "client": ("127.0.0.1", 1), "state": {"request_id": "r"}}

    async def end_with(error: BaseException | None) -> None:
        with calls.recorded(request, LOCAL_OPERATOR, call, 0.0) as outcome:
            if error is not None:
                raise error
            outcome.text = "ok"

    for error in (None, asyncio.CancelledError(), ConnectionResetError()):
        with suppress(asyncio.CancelledError, ConnectionResetError):
            asyncio.run(end_with(error))
    log.close()
    assert [line["outcome"] for line in lines(tmp_path)] == ["ok", "cancelled", "error"]
