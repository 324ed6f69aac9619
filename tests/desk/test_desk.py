"""The desk as a whole: how its parts end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load


def test_a_part_that_cannot_be_closed_keeps_no_other_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    async def fail() -> None:
        raise OSError("the feed cannot be closed")

    async def run() -> None:
        async with Desk(load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_FEED": "sim"})) as desk:
            monkeypatch.setattr(desk.feed, "close", fail)
            monkeypatch.setattr(desk.store, "close", lambda: closed.append("store"))

    with pytest.raises(OSError, match="cannot be closed"):
        asyncio.run(run())
    assert closed == ["store"]
