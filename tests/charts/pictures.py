"""Charts that the tests draw: simulated bars of a fixed time, the same on every machine."""

from __future__ import annotations

from functools import cache

from openbell.charts.compose import compose
from openbell.charts.request import Computed, Look, wanted_indicators
from openbell.charts.scene import Scene
from openbell.feeds.sim.minutes import minute_bars
from openbell.market.bars import Bars, resample
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe

END = 1_763_000_000 // 14400 * 14400
FIXTURE: list[str | dict[str, object]] = [
    "bbands",
    {"name": "ema_line", "length": 9},
    {"name": "ema_line", "length": 21},
    {"name": "ema_line", "length": 50},
    "rsi",
    "macd",
]


@cache
def hours(symbol: str = "BTC/USD", days: int = 40) -> Bars:
    """Hourly bars up to a fixed moment."""
    return resample(minute_bars(parse(symbol), 7, END - days * 86400, END), Timeframe.H1, END)


def computed(bars: Bars, entries: list[str | dict[str, object]], count: int) -> list[Computed]:
    """Indicators on all bars, cut to the newest `count`."""
    first = max(0, len(bars) - count)
    found = []
    for wanted in wanted_indicators(entries):
        channels = wanted.indicator.run(bars, **wanted.settings)
        found.append(Computed(wanted, channels.since(first)))
    return found


def picture(
    look: Look | None = None,
    symbol: str = "BTC/USD",
    count: int = 200,
    entries: list[str | dict[str, object]] | None = None,
    mark: str = "SIMULATED",
) -> Scene:
    """The facts page's fixture, or a variation of it."""
    bars = hours(symbol)
    chosen = FIXTURE if entries is None else entries
    return compose(bars.tail(count), computed(bars, chosen, count), look or Look(), f"{symbol} · 1h", mark)
