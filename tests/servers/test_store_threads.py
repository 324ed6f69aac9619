"""No tool asks the store of bars in the event loop, which answers all other calls meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.bars.watchlist import in_event_loop
from openbell.stores.audit import ArchiveAudit
from openbell.stores.buffer import Buffer
from openbell.stores.buffer_view import BufferView
from openbell.stores.buffered import BufferedStore
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.period_sources import PeriodSources
from tests.servers.desks import awaited, bench, bench_as_found
from tests.servers.every_tool import every_tool, samples

NOW = "2026-01-09T20:00:20Z"
CHEAP = {"timeframes", "gaps", "of", "lost_spans", "close"}
"""Calls that only look into the home's buffer, as the port says; what the first `gaps` of a series calls is noted."""


@pytest.fixture
def asked_in_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of the store that were made in an event loop."""
    found: list[str] = []

    def noted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(real)
        def call(*given: Any, **named: Any) -> Any:
            if in_event_loop():
                found.append(name)
            return real(*given, **named)

        return call

    for kind in (BufferedStore, ParquetStore, ArchiveAudit, PeriodSources):
        for name, each in vars(kind).items():
            if callable(each) and not name.startswith("_") and name not in CHEAP:
                monkeypatch.setattr(kind, name, noted(name, each))
    return found


@pytest.mark.parametrize("feed", ["sim", "none"])
@pytest.mark.usefixtures("short_search")
@awaited
async def test_no_tool_asks_the_store_in_the_event_loop(tmp_path: Path, feed: str, asked_in_loop: list[str]) -> None:
    async with bench(tmp_path, NOW, FEED=feed) as desk:
        for server, tool in every_tool():
            await desk.reply(server, tool.name, samples(server, tool.name)[0])
            assert not asked_in_loop, f"{server} {tool.name}: {asked_in_loop}"


@pytest.mark.usefixtures("short_search")
@awaited
async def test_no_tool_copies_the_buffer_of_a_read_only_desk_in_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only desk copies the home's buffer when another process has changed it: 10 MB take 10 ms."""
    copied_in_loop: list[str] = []

    def latest(view: BufferView) -> Buffer:
        if in_event_loop():
            copied_in_loop.append(str(view.path))
        return real(view)

    async with bench_as_found(tmp_path, NOW, FEED="sim", READ_ONLY="1") as desk:
        _ = desk.desk.bars  # the first copy is made when the store is opened
        real = BufferView._latest
        monkeypatch.setattr(BufferView, "_latest", latest)
        for server, tool in every_tool():
            for _ in range(2):
                await desk.reply(server, tool.name, samples(server, tool.name)[0])
            assert not copied_in_loop, f"{server} {tool.name}"
