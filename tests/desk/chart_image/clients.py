"""Clients of the vendor's double, with a time that passes only when they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TypeVar

from openbell.charts.config.choices import PLANS
from openbell.charts.config.model import ChartConfig
from openbell.desk.pictures.chart_image.http import Timing, VendorHttp, bucket_of
from openbell.desk.pictures.chart_image.vendor import DayCount, VendorClient
from tests.servers.chart_img_server import KEY

T = TypeVar("T")
NOON = datetime(2026, 3, 18, 12, tzinfo=UTC)
CONFIG = ChartConfig("BINANCE:BTCUSDT", "1h", "7D", width=800, height=600)


class HandClock:
    """A time that passes only when someone waits; `waits` are the seconds of each wait."""

    def __init__(self, start: datetime = NOON) -> None:
        self.passed = 0.0
        self.start = start.timestamp()
        self.waits: list[float] = []

    @property
    def timing(self) -> Timing:
        return Timing(lambda: 1000.0 + self.passed, lambda: self.start + self.passed, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.passed += seconds


class StillClock(HandClock):
    """A time that does not pass, for calls that wait at the same time."""

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def client(
    url: str,
    home: Path,
    clock: HandClock,
    *,
    plan: str = "ULTRA",
    key: str = KEY,
    limit: float = 20.0,
    connect: float = 3.0,
    read_only: bool = False,
) -> VendorClient:
    chosen = PLANS[plan]
    return VendorClient(
        VendorHttp(url, {"x-api-key": key}, connect=connect),
        key,
        chosen,
        DayCount(home / "chart-image", key, chosen, read_only=read_only),
        bucket_of(chosen),
        limit=limit,
        timing=clock.timing,
        chance=Random(7),
    )


def used(made: VendorClient, work: Callable[[VendorClient], Awaitable[T]]) -> T:
    """Returns what the work with a client returns, and closes the client."""

    async def run() -> T:
        try:
            return await work(made)
        finally:
            await made.close()

    return asyncio.run(run())
