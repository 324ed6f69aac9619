"""Configs, studies and drawings for tests of charts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from openbell.charts.compose import compose
from openbell.charts.config.looks import look_of, options_of
from openbell.charts.config.model import KINDS, ChartConfig, ConfigAnnotation, ConfigStudy
from openbell.charts.config.plots import requests_of
from openbell.charts.scene import Scene
from openbell.charts.studies.catalogue import find
from openbell.indicators.evaluation import evaluate
from openbell.market.bars import Bars
from tests.charts.pictures import hours


def study(name: str, override: dict[str, Any] | None = None, *, over: bool = False, **inputs: Any) -> ConfigStudy:
    """Returns a study with some of its inputs."""
    found = find(name)
    known = {each.name: each for each in found.inputs}
    return ConfigStudy(found, {key: known[key].check(value) for key, value in inputs.items()}, override or {}, over)


def drawing(
    name: str, override: dict[str, Any] | None = None, *, on_top: bool = True, text: str = "", **places: Any
) -> ConfigAnnotation:
    """Returns a drawing. Times are seconds."""
    times = {key: datetime.fromtimestamp(value, UTC) for key, value in places.items() if "atetime" in key}
    prices = {key: float(value) for key, value in places.items() if "atetime" not in key}
    return ConfigAnnotation(KINDS[name], prices, times, text, override or {}, on_top)


def config(**fields: Any) -> ChartConfig:
    """Returns a config of bitcoin."""
    return ChartConfig("BINANCE:BTCUSDT", "1h", **fields)


def scene_of(asked: ChartConfig, count: int = 120, bars: Bars | None = None, badge: str = "") -> Scene:
    """Returns the scene of a config for the latest bars."""
    bars = hours() if bars is None else bars
    plots = requests_of(asked)
    computed = evaluate(bars, count, [each.request for each in plots], {}, None)
    return compose(
        bars.tail(count),
        computed,
        look_of(asked),
        asked.symbol,
        badge,
        bars,
        options=options_of(asked),
        plots=plots,
        drawings=asked.drawings,
    )


def one_of_each(bars: Bars) -> Sequence[ConfigAnnotation]:
    """Returns a drawing of each kind, spread over the bars."""
    time, low, high = bars.time, float(bars.low.min()), float(bars.high.max())
    count = len(bars)

    def at(share: float) -> float:
        return float(time[int(share * (count - 1))])

    def price(share: float) -> float:
        return low + share * (high - low)

    corners: dict[str, Any] = {
        "startDatetime": at(0.02),
        "startPrice": price(0.1),
        "endDatetime": at(0.2),
        "endPrice": price(0.4),
    }
    return (
        drawing("Rectangle", text="Base", **corners),
        drawing("Horizontal Line", text="Resistance", price=price(1.08)),
        drawing("Order Line", {"lineColor": "#ab47bc"}, text="Buy limit", price=price(-0.05)),
        drawing("Vertical Line", {"lineStyle": 2}, text="Report", datetime=at(0.5)),
        drawing(
            "Trend Line",
            {"extendRight": True, "lineColor": "rgb(255, 109, 0)"},
            text="Support",
            startDatetime=at(0.25),
            startPrice=price(0.02),
            endDatetime=at(0.6),
            endPrice=price(0.2),
        ),
        drawing(
            "Fib Retracement", startDatetime=at(0.34), startPrice=price(0.0), endDatetime=at(0.47), endPrice=price(0.95)
        ),
        drawing("Long Position", entryPrice=price(0.6), targetPrice=price(0.95), stopPrice=price(0.45)),
        drawing(
            "Short Position",
            startDatetime=at(0.55),
            endDatetime=at(0.68),
            entryPrice=price(0.6),
            targetPrice=price(0.3),
            stopPrice=price(0.75),
        ),
        drawing("Date Range", {"transparency": 94}, on_top=False, startDatetime=at(0.86), endDatetime=at(0.98)),
        drawing(
            "Date Price Range",
            startDatetime=at(0.7),
            startPrice=price(0.05),
            endDatetime=at(0.84),
            endPrice=price(0.3),
        ),
        drawing(
            "Arrow Marker",
            text="Move",
            startDatetime=at(0.05),
            startPrice=price(0.9),
            endDatetime=at(0.2),
            endPrice=price(0.7),
        ),
        drawing("Arrow Mark Up", text="Buy", datetime=at(0.12), price=price(0.12)),
        drawing("Arrow Mark Down", text="Sell", datetime=at(0.27), price=price(0.8)),
        drawing("Text", {"fontBold": True}, text="A note\non two lines", datetime=at(0.22), price=price(0.62)),
        drawing("Callout", text="Gap closed", datetime=at(0.93), price=price(0.15)),
    )
