"""Pictures of indicators for the documentation, drawn from simulated bars of a fixed time."""

from __future__ import annotations

import asyncio
from hashlib import blake2b

from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.charts.picture import png
from openbell.charts.raster import render
from openbell.charts.scene import Scene
from openbell.feeds.sim.feed import SimFeed
from openbell.indicators.evaluation import Computed, IndicatorRequest, parse_requests
from openbell.indicators.registry import all_indicators
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, resample
from openbell.market.clock import FixedClock
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe

_END = 1_763_000_000 // 14400 * 14400
_SHOWN = 120
_LOOK = Look(width=560, height=260, theme="light", volume=False)

_PICTURED: dict[str, dict[str, object]] = {"zigzag": {"deviation": 1.5}}
"""Parameters of pictures on which the default would show nothing: these bars have no swing of 5 %."""

_TIES = (
    "Defaults, first values and ties are those of TradingView's built-in indicator, unless its section says how they differ."
    " Computed prices that differ by less than a trillionth of the price are equal."
)


def page() -> str:
    """Returns docs/indicators.md. A digest of each display list makes the page test fail when a picture changes."""
    lines = [
        "# Indicators",
        "",
        f"{len(all_indicators())} indicators. `openbell indicators` lists them too.",
        "",
        _TIES,
        "",
    ]
    bars = _bars()
    for indicator in all_indicators().values():
        names = ", ".join(f"`{alias}`" for alias in indicator.aliases)
        lines += [f"## {indicator.name}", "", indicator.description + "." + (f" Also {names}." if names else ""), ""]
        if indicator.parameters:
            lines += ["| parameter | default | |", "|---|---|---|"]
            lines += [
                f"| {p.name} | {_shown(p.default)} | {_bounds(p)}{_other_names(p)} |" for p in indicator.parameters
            ]
            lines.append("")
        if indicator.labels:
            lines += ["Signals: " + ", ".join(f"`{label}`" for label in indicator.labels) + ".", ""]
        if indicator.differences:
            lines += [f"Differs from TradingView: {indicator.differences}", ""]
        if indicator.needs:
            lines += ["Needs from the feed: " + ", ".join(f"`{kind}`" for kind in indicator.needs) + ".", ""]
        digest = blake2b(scene(indicator, bars).text().encode(), digest_size=6).hexdigest()
        lines += [f"![{indicator.name}](indicators/{indicator.name}.png) <!-- {digest} -->", ""]
    return "\n".join(lines)


def pictures() -> dict[str, bytes]:
    """Returns the PNG of every indicator, by name."""
    bars = _bars()
    return {name: png(render(scene(each, bars))) for name, each in all_indicators().items()}


def showpiece() -> bytes:
    """Returns the picture of the README."""
    bars = _bars()
    shown = bars.tail(200)
    chosen = parse_requests(["bbands", {"name": "ema_line", "length": 21}, "rsi", "macd"])
    first = len(bars) - len(shown)
    computed = [Computed(each, each.indicator.run(bars, **each.settings).since(first)) for each in chosen]
    return png(render(compose(shown, computed, Look(), "BTC/USD · 1h", "SIMULATED")))


def scene(indicator: Indicator, bars: Bars) -> Scene:
    """Returns the display list of one indicator with its default parameters, but for those in `_PICTURED`."""
    feed = SimFeed(FixedClock(_END))
    start = int(bars.time[0])
    extras = {kind: asyncio.run(feed.extra(kind, bars.instrument, start, _END)) for kind in indicator.needs}
    shown = bars.tail(_SHOWN)
    given = _PICTURED.get(indicator.name, {})
    channels = indicator.run(shown if indicator.profile else bars, extras, **given)
    cut = channels if indicator.profile else channels.since(len(bars) - len(shown))
    wanted = IndicatorRequest(indicator.name, indicator, indicator.settings(**given))
    return compose(shown, [Computed(wanted, cut)], _LOOK, "BTC/USD · 1h", "SIMULATED")


def _bars() -> Bars:
    instrument = parse("BTC/USD")
    feed = SimFeed(FixedClock(_END))
    return resample(asyncio.run(feed.history(Series(instrument), _END - 40 * 86400, _END)), Timeframe.H1, _END)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _other_names(parameter: Parameter) -> str:
    return "; also " + ", ".join(parameter.aliases) if parameter.aliases else ""


def _bounds(parameter: object) -> str:
    choices = getattr(parameter, "choices", ())
    if choices:
        return ", ".join(choices)
    if isinstance(getattr(parameter, "default", None), bool):
        return "true or false"
    return f"{getattr(parameter, 'low', '')} to {getattr(parameter, 'high', '')}"
