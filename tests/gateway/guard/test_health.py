"""/healthz and /readyz: of a real desk, with stores that work and stores that do not."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Message

from openbell.desk.desk import Desk
from openbell.desk.events.checks import Checks
from openbell.gateway.guard.metrics import Readiness, healthz
from tests.gateway.guard.serving import Served, settings_of

FULL = "CREATE TRIGGER full BEFORE UPDATE ON marks BEGIN SELECT RAISE(ABORT, 'disk is full'); END"


async def ask(app: ASGIApp) -> tuple[int, Any]:
    """Status and body."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError

    await app({"type": "http"}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


async def ready(**settings: Any) -> tuple[int, Any]:
    async with Desk(settings_of(**settings)) as desk:
        return await ask(Readiness(Checks(desk.checks())))


def test_a_process_that_answers_is_healthy(tmp_path: Path) -> None:
    with Served(lambda _port: healthz, settings_of(tmp_path)) as served:
        answer = served.get("/healthz")
    assert (answer.status, answer.json, answer["cache-control"]) == (200, {"status": "ok"}, "no-store")


def test_a_new_desk_is_ready(tmp_path: Path) -> None:
    assert asyncio.run(ready(home=tmp_path)) == (200, {"status": "ready"})


def test_a_desk_whose_disk_is_full_is_not_ready(tmp_path: Path) -> None:
    """Every write fails, as on a full disk; a transaction that writes nothing would succeed."""

    async def main() -> tuple[int, Any]:
        async with Desk(settings_of(home=tmp_path)) as desk:
            app = Readiness(Checks(desk.checks()))
            assert (await ask(app))[0] == 200
            with sqlite3.connect(tmp_path / "simulated" / "records.sqlite") as connection:
                connection.execute(FULL)
            connection.close()
            return await ask(Readiness(Checks(desk.checks())))

    assert asyncio.run(main()) == (503, {"status": "not ready", "failing": ["records"]})


def test_a_read_only_desk_is_ready_and_writes_nothing(tmp_path: Path) -> None:
    assert asyncio.run(ready(home=tmp_path / "home", read_only=True)) == (200, {"status": "ready"})
    assert not (tmp_path / "home").exists()


def test_a_desk_on_postgresql_is_ready(tmp_path: Path, database: str) -> None:
    assert asyncio.run(ready(home=tmp_path, database_url=database)) == (200, {"status": "ready"})


def test_the_ledger_does_not_grow(tmp_path: Path) -> None:
    async def main() -> tuple[Any, Any]:
        async with Desk(settings_of(tmp_path)) as desk:
            check = desk.checks()["records"]
            await check()
            before = desk.trading.records.head.read()
            for _ in range(5):
                await check()
            return before, desk.trading.records.head.read()

    before, after = asyncio.run(main())
    assert before == after


def test_stores_that_cannot_be_reached_are_named_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    status, body = asyncio.run(
        ready(
            home=tmp_path,
            database_url="postgresql://ann:hush-hush@127.0.0.1:9/desk",
            influx_url="http://127.0.0.1:9",
            influx_token="hush-hush",
            pool_postgres_connect=1,
        )
    )
    assert (status, body) == (503, {"status": "not ready", "failing": ["records", "bars"]})
    assert "hush-hush" not in caplog.text


def test_a_database_that_was_removed_is_named(tmp_path: Path) -> None:
    async def main() -> tuple[int, Any]:
        async with Desk(settings_of(tmp_path)) as desk:
            await desk.checks()["records"]()
            (desk.settings.market_folder / "records.sqlite").unlink()
            return await ask(Readiness(Checks(desk.checks())))

    assert asyncio.run(main()) == (503, {"status": "not ready", "failing": ["records"]})


def test_a_database_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    async def main() -> tuple[int, Any]:
        async with Desk(settings_of(tmp_path)) as desk:
            checks = desk.checks()
            await checks["records"]()
            other = sqlite3.connect(desk.settings.market_folder / "records.sqlite", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            try:
                await desk.trading.records.read(lambda _view: None)  # reading works
                return await ask(Readiness(Checks(checks, timeout=0.5)))
            finally:
                other.execute("ROLLBACK")
                other.close()

    assert asyncio.run(main()) == (503, {"status": "not ready", "failing": ["records"]})


def test_a_check_that_hangs_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    async def hang() -> None:
        await asyncio.Event().wait()

    status, body = asyncio.run(ask(Readiness(Checks({"records": hang}, timeout=0.05))))
    assert (status, body["failing"]) == (503, ["records"])
    assert "records cannot be used: no answer in 0.05 s" in caplog.text


def test_requests_within_a_second_share_their_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [1000.0]
    monkeypatch.setattr("openbell.desk.events.checks.time.monotonic", lambda: moment[0])
    checks = 0

    async def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 1:
            raise OSError("down")

    async def main() -> None:
        app = Readiness(Checks({"records": check}))
        answers = await asyncio.gather(*(ask(app) for _ in range(50)))
        assert {status for status, _ in answers} == {503}
        assert (await ask(app))[0] == 503
        assert checks == 1
        moment[0] += 1.01
        assert (await ask(app))[0] == 200
        assert checks == 2

    asyncio.run(main())


def test_a_client_that_leaves_does_not_stop_the_checks_of_others() -> None:
    async def main() -> None:
        goes_on = asyncio.Event()
        app = Readiness(Checks({"records": lambda: _wait(goes_on)}))
        first, second = asyncio.create_task(ask(app)), asyncio.create_task(ask(app))
        await asyncio.sleep(0)
        first.cancel()
        goes_on.set()
        assert (await second)[0] == 200

    asyncio.run(main())


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
