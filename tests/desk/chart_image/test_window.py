"""The bars that a config shows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from openbell.charts.config.reading import read_config
from openbell.desk.pictures.chart_image.own_engine import DEFAULT_BARS, BarWindow, window_of
from openbell.market.timeframes import CHART
from tests.servers.desks import Bench, awaited, bench_as_found

AS_OF = "2026-01-07T15:30:20Z"
"""A Wednesday, an hour after the open."""
WARM_UP = 50


async def window(bench: Bench, symbol: str, interval: str, **change: Any) -> BarWindow:
    config = read_config({"symbol": symbol, "interval": interval, **change}).config
    assert config is not None
    instrument = await bench.desk.bars.find(config.symbol)
    return await window_of(bench.desk.bars, config, instrument, CHART[interval], WARM_UP)


def times(found: BarWindow) -> np.ndarray[Any, Any]:
    """Returns the times of the bars that are shown."""
    return found.bars.time[-found.count :]


@awaited
async def test_a_window_has_its_bars_and_those_that_studies_need(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AS_OF, FEED="sim", TRADE="0") as bench:
        # Extended hours of stocks are left out, and their bars do not count.
        for symbol in ("BINANCE:BTCUSDT", "NASDAQ:AAPL"):
            for interval in ("1m", "1h", "1D"):
                found = await window(bench, symbol, interval)
                assert found.count == DEFAULT_BARS
                assert len(found.bars) >= DEFAULT_BARS + WARM_UP
                ranged = await window(bench, symbol, interval, range="5D")
                assert len(ranged.bars) - ranged.count >= WARM_UP or ranged.notes

        # A shift moves what is shown and keeps its length.
        plain = await window(bench, "BINANCE:BTCUSDT", "1h", range="2D")
        for shift in (1, 5, 100):
            moved = await window(bench, "BINANCE:BTCUSDT", "1h", range="2D", shiftLeft=shift)
            assert (times(moved) == times(plain) - shift * 3600).all()
        past = await window(bench, "BINANCE:BTCUSDT", "1h", range="2026-01-02/2026-01-03")
        moved = await window(bench, "BINANCE:BTCUSDT", "1h", range="2026-01-02/2026-01-03", shiftLeft=7)
        assert (past.count, moved.count) == (48, 48)
        assert datetime.fromtimestamp(times(past)[0], UTC) == datetime(2026, 1, 2, tzinfo=UTC)
        assert (times(moved) == times(past) - 7 * 3600).all()

        # All there is, whatever the studies need; a range that is cut is named.
        whole = await window(bench, "BINANCE:BTCUSDT", "1W", range="ALL")
        assert (whole.count, whole.notes) == (len(whole.bars), ())
        assert whole.count > 2 * DEFAULT_BARS
        for span in ("ALL", "1M"):
            cut = await window(bench, "BINANCE:BTCUSDT", "1m", range=span)
            assert (cut.count, cut.notes) == (2000, (f"the newest 2,000 bars of range {span} are drawn",))
