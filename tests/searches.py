"""Searches for strategies that take a fraction of a second: for tests of what a search writes, not of what it finds."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import pytest

from openbell.backtest.search import FEWEST_BARS
from openbell.desk.research.strategies.series_bars import SEARCHED
from openbell.desk.research.strategies.specs import canonical_specs
from openbell.desk.research.workers import Workers


def search_only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Search only some strategies of the library, in this process instead of a worker's."""
    few = tuple(each for each in canonical_specs() if each.id in names)
    assert len(few) == len(names)
    for module in ("specs", "searching"):
        monkeypatch.setattr(f"openbell.desk.research.strategies.{module}.canonical_specs", lambda: few)

    async def run(_self: Workers, work: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(work, *args, **kwargs)

    monkeypatch.setattr(Workers, "run", run)
    monkeypatch.setattr(Workers, "prepare", lambda _self, *_modules: None)


def bars_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all bars be evidence for submitted specs, for tests of what follows."""
    monkeypatch.setattr("openbell.desk.research.strategies.searching.unseen_from", lambda _spec: -inf)


def search_few_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search with few bars, because the simulator computes every minute of them."""
    for timeframe in SEARCHED:
        monkeypatch.setitem(SEARCHED, timeframe, 2 * FEWEST_BARS)
