"""Charts of what there is: a fetch that fails is an error, never a chart of something else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from openbell.charts.request import Look, wanted_indicators
from openbell.desk.bars import BarService
from openbell.desk.charts import ChartService
from openbell.market.clock import StandingClock
from openbell.market.errors import FeedUnavailable, InsufficientData, UnknownSymbol
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet import ParquetStore
from tests.desk.scripted import BTC, ScriptedFeed

NOW = 1_767_744_000


def service(folder: Path, feed: ScriptedFeed) -> tuple[ChartService, ParquetStore]:
    store = ParquetStore(folder)
    return ChartService(BarService(store, feed, StandingClock(NOW)), feed), store


@pytest.mark.parametrize(
    ("down", "known", "expected"),
    [(True, True, FeedUnavailable), (False, True, InsufficientData), (False, False, UnknownSymbol)],
)
def test_a_failed_fetch_is_an_error(tmp_path: Path, down: bool, known: bool, expected: type[Exception]) -> None:
    feed = ScriptedFeed(known=(BTC,) if known else ())
    feed.down = down
    charts, store = service(tmp_path, feed)

    async def ask() -> None:
        instrument = await charts.find("BTC/USD")
        await charts.chart(instrument, Timeframe.H1, 200, wanted_indicators(["rsi"]))

    with pytest.raises(expected):
        asyncio.run(ask())
    charts.close()
    store.close()


def test_pictures_asked_for_at_once_are_each_drawn(tmp_path: Path) -> None:
    feed = ScriptedFeed()
    feed.table[BTC] = {NOW - 60 * n: 100.0 + n % 9 for n in range(1, 600)}
    charts, store = service(tmp_path, feed)

    async def ask() -> list[bytes]:
        chart = await charts.chart(BTC, Timeframe.M5, 50, wanted_indicators(["rsi"]))
        looks = [Look(width=300 + 10 * n, height=300) for n in range(6)]
        return await asyncio.gather(*(charts.png(chart, look, "BTC/USD", "") for look in looks))

    pictures = asyncio.run(ask())
    assert [int.from_bytes(data[16:20], "big") for data in pictures] == [300, 310, 320, 330, 340, 350]
    charts.close()
    store.close()
