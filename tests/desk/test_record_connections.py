"""What a server starts on a desk before its first call."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.servers import NAMES
from openbell.servers import load as load_service
from tests.waiting import until


def test_a_failure_to_open_connections_is_logged_and_the_desk_closes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {"OPENBELL_HOME": str(tmp_path / "home"), "OPENBELL_DATABASE_URL": "postgresql://127.0.0.1:1/none"}

    class Broken(Desk):
        @property
        def trading(self) -> None:  # type: ignore[override]
            raise OSError("the disk is full")

    async def main() -> None:
        async with Broken(load(environ)) as desk:
            load_service("portfolio").begin(desk)
            await until(lambda: "the disk is full" in caplog.text, "the failure in the log")

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert "never retrieved" not in caplog.text


def test_only_servers_that_declare_it_answer_early(tmp_path: Path) -> None:
    found = set()
    for name in NAMES:
        service = load_service(name)
        desk = Desk(load({"OPENBELL_HOME": str(tmp_path / name), "OPENBELL_READ_ONLY": "1"}))

        async def main(desk: Desk = desk, service: object = service) -> None:
            async with desk:
                service.begin(desk)  # type: ignore[attr-defined]

        asyncio.run(main())
        if desk.answers_early:
            found.add(name)
    assert found == {"strategy", "strategy-db", "backtest"}
