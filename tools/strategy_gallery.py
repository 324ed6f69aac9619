"""Pictures of the canonical strategies for the documentation: their trades on simulated bars of a fixed time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import blake2b

from openbell.backtest.engine import simulate
from openbell.backtest.rules import END, Setup
from openbell.backtest.runs import Backtest, backtest
from openbell.charts.backtest_charts import strategy_indicators
from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.charts.picture import png
from openbell.charts.raster import render
from openbell.charts.scene import Scene
from openbell.charts.trade_markers import draw_trades
from openbell.feeds.sim.bars import bars_of
from openbell.market.bars import Bars
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, Timeframe, name_of
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.evaluation import Conditions, evaluate
from openbell.strategies.library import canonical
from openbell.strategies.spec import Complexity, Spec

_SEED, _DAY = 7, 86400
_END = 1_757_894_400
"""2025-09-15, midnight UTC."""
_SHOWN, _STEP = 160, 20
"""Bars of a picture, and the distance between the stretches that are considered."""
_FEWEST, _MOST = 3, 8
"""Trades that a picture should show."""
_WIDTH, _HEIGHT, _PANEL = 640, 240, 60


@dataclass(frozen=True, slots=True)
class Example:
    """The trades of a strategy on a stretch of bars, and the bars before it, which warm up the indicators."""

    strategy: Compiled
    bars: Bars
    found: Backtest


def page() -> str:
    """Returns docs/strategies.md. A digest of each display list makes the page test fail when a picture changes."""
    specs = canonical().values()
    lines = [
        "# Strategies",
        "",
        f"{len(specs)} canonical strategies, each a YAML file in `src/openbell/strategies/library/`. A position is opened",
        "at the open after a close at which all entry conditions hold, and closed at the open after a close at which all",
        "exit conditions hold. Stops close it inside a bar. A parameter is shown with its default and its range.",
        "",
        "Each picture shows the strategy with its defaults on simulated prices: a blue arrow at each entry, and at each",
        "exit a green arrow for a profit or a red one for a loss after fees. The stretch is one on which the strategy",
        "trades. The pictures explain the rules, not how profitable they are.",
        "",
    ]
    for complexity in Complexity:
        lines += [f"## {complexity.capitalize()}", ""]
        for spec in specs:
            if spec.complexity is complexity:
                lines += _section(spec)
    return "\n".join(lines)


def _section(spec: Spec) -> list[str]:
    used = dict.fromkeys(use.indicator for use in spec.indicators)
    indicators = ", ".join(f"[{name}](indicators.md#{name})" for name in used)
    parameters = ", ".join(
        f"`{each.name}` {each.default:g} ({each.low:g} to {each.high:g})" for each in spec.parameters
    )
    digest = blake2b(scene(example(spec.name)).text().encode(), digest_size=6).hexdigest()
    return [
        f"### {spec.name}",
        "",
        f"{spec.description}",
        "",
        f"- Source of the idea: {spec.idea}",
        f"- Indicators: {indicators}",
        f"- Parameters: {parameters}",
        "",
        f"![{spec.name}](strategies/{spec.name}.png) <!-- {digest} -->",
        "",
    ]


def example(name: str) -> Example:
    """Returns the latest stretch with 3 to 8 closed trades, or the one with the most if there is none."""
    strategy = compiled(canonical()[name])
    by_session = any(step.indicator.regular for step in strategy.steps)
    bars = _bars(Timeframe.M30 if by_session else Timeframe.D1)
    conditions, setup = evaluate(strategy, bars), Setup()
    counts: dict[int, int] = {}
    for first in range(len(bars) - _SHOWN, strategy.warmup, -_STEP):
        chosen = slice(first, first + _SHOWN)
        part = Conditions(conditions.entry[chosen], conditions.exit[chosen])
        run = simulate(bars.take(chosen), part, strategy.side, strategy.stops, setup)
        counts[first] = int((run.trades.reason != END).sum())
        if _FEWEST <= counts[first] <= _MOST:
            break
    else:
        first = max(counts, key=lambda at: min(counts[at], _MOST))
    upto = bars.take(slice(0, first + _SHOWN))
    return Example(strategy, upto, backtest(strategy, upto, setup, float(bars.time[first])))


def scene(shown: Example) -> Scene:
    """Returns the display list of an example: the price, the indicators, and the trades."""
    first = len(shown.bars) - len(shown.found.bars)
    indicators = [
        replace(each, channels=each.channels.since(first)) for each in strategy_indicators(shown.strategy, shown.bars)
    ]
    below = sum(not each.request.indicator.overlay for each in indicators)
    look = Look(width=_WIDTH, height=_HEIGHT + _PANEL * below, theme="light", volume=False)
    title = f"{shown.bars.instrument} · {name_of(shown.bars.timeframe, SHORT)}"
    painter = partial(draw_trades, shown.found.run.trades)
    return compose(shown.found.bars, indicators, look, title, "SIMULATED", shown.bars, painter)


def pictures() -> dict[str, bytes]:
    """Returns the PNG of every canonical strategy, by name."""
    return {name: png(render(scene(example(name)))) for name in canonical()}


@cache
def _bars(timeframe: Timeframe) -> Bars:
    days = 3000 if timeframe is Timeframe.D1 else 200
    return bars_of(Series(parse("AAPL"), timeframe), _SEED, _END - days * _DAY, _END, _END)
