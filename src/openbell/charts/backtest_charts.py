"""Charts of a backtest: the equity beside holding with the drawdown below, and the trades and the strategy on the price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from math import isfinite

import numpy as np

from openbell.backtest.runs import Backtest
from openbell.backtest.trades import Indexes, Trades
from openbell.charts.compose import compose
from openbell.charts.config.plots import StudyPlot
from openbell.charts.look import Look
from openbell.charts.panels import ChartPicture, Panel
from openbell.charts.scene import Dot, Layer, Scene
from openbell.charts.themes import THEMES
from openbell.charts.trade_markers import draw_trades, drawn_trades
from openbell.indicators.channels import ZERO, Channels, FilledBand, Level, Line
from openbell.indicators.evaluation import Computed, IndicatorRequest
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars, Values
from openbell.market.errors import NotFinite
from openbell.strategies.compiled import Compiled, IndicatorStep
from openbell.strategies.evaluation import Arrays, lines_over
from openbell.strategies.reachable import range_of
from openbell.strategies.spec import Comparison, Condition, ConditionGroup, LineOperand

GROUPS = 500
"""Of 2,000 bars and more, only the lowest and the highest of 500 groups are drawn, so that no extreme is lost."""
_MAX_CANDLES = 300
_LARGEST = 1e100
"""Larger numbers overflow in the arithmetic of axes and paths."""
_ENTRY, _EXIT = 2.0, 3.0
"""The radius of a dot, in pixels."""


def equity_scene(found: Backtest, look: Look, title: str, badge: str = "") -> Scene:
    """Returns the equity and the value of holding, the drawdown below, and a dot at each entry and exit.

    Exits are green for a profit and red for a loss. Raises `NotFinite` if the equity is too large to be drawn.
    """
    equity, bars = found.run.equity, found.bars
    _check(equity)
    chosen = thinned(equity)
    holding = equity[0] * bars.close / bars.open[0]
    lines = [_overlay("Equity", equity[chosen]), _overlay("Holding", holding[chosen])]
    fall = drawdown(equity, chosen)
    below = Channels(lines=(Line("Drawdown", fall),), fills=(FilledBand(np.zeros(len(fall)), fall),), hlines=(ZERO,))
    shown = equity[chosen]
    # The first value as the open: the last value is green if it is higher, red if it is lower.
    points = _bars_of(bars, chosen, np.full(len(shown), equity[0]), shown)
    look = replace(look, style="line", volume=False, last_bar=False)
    trades = found.run.trades
    values = equity[trades.entry_index], equity[trades.exit_index]
    painter = partial(_draw_dots, _moved(trades, chosen), values)
    drawn = [*lines, plain("Drawdown %", below, overlay=False)]
    # The equity is drawn over the line of the points, in the same colour.
    own = StudyPlot(lines[0].request, color=THEMES[look.theme].accent)
    return compose(points, drawn, look, title, badge, painter=painter, plots=[own])


def trades_scene(found: Backtest, look: Look, title: str, badge: str = "") -> Scene:
    """Returns the price with the trades: candles if there is room for them, otherwise a line of closes.

    Entries are orange, because the line is blue.
    """
    bars, trades, orange = found.bars, found.run.trades, THEMES[look.theme].hues["orange"]
    _check(bars.high)
    if len(bars) <= _MAX_CANDLES:
        look = replace(look, style="candles", volume=False)
        return compose(bars, [], look, title, badge, painter=partial(draw_trades, trades, entry_color=orange))
    chosen = thinned(bars.close)
    close = bars.close[chosen]
    look = replace(look, style="line", volume=False, last_bar=False)
    painter = partial(draw_trades, _moved(trades, chosen), entry_color=orange)
    return compose(_bars_of(bars, chosen, close, close), [], look, title, badge, painter=painter)


def thinned(values: Values, groups: int = GROUPS) -> Indexes:
    """Returns the ascending indexes of the lowest and the highest of each group of values, and of the last value.

    The first and the last of a group represent it if all its values are equal. Groups have at least four values; fewer
    values are all returned.
    """
    count = len(values) - 1
    if count < 4 * groups:
        return np.arange(len(values))
    edges = np.arange(groups + 1) * count // groups
    found = []
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        low, high = (start + int(each) for each in (values[start:end].argmin(), values[start:end].argmax()))
        found += sorted((low, high)) if low != high else [start, end - 1]
    return np.array([*found, count])


def drawdown(equity: Values, chosen: Indexes) -> Values:
    """Returns the drawdown in per cent, 0 or less, at each chosen bar: the deepest since the chosen bar before."""
    falls = 100.0 * (equity / np.maximum.accumulate(equity) - 1.0)
    return np.asarray(np.minimum.reduceat(falls, np.append(0, chosen[:-1] + 1)))


def _overlay(title: str, values: Values) -> Computed:
    return plain(title, Channels(lines=(Line(title, values),)), overlay=True)


def _bars_of(bars: Bars, chosen: Indexes, opened: Values, values: Values) -> Bars:
    """Returns one bar for each chosen one, with values in place of prices."""
    return Bars(
        bars.instrument, bars.timeframe, bars.time[chosen], opened, values, values, values, np.zeros(len(values))
    )


def _moved(trades: Trades, chosen: Indexes) -> Trades:
    """Returns the trades with the positions of the chosen bars that are closest to theirs, at or after them."""
    last = len(chosen) - 1
    entered, left = (np.minimum(chosen.searchsorted(each), last) for each in (trades.entry_index, trades.exit_index))
    return replace(trades, entry_index=entered, exit_index=left)


def _draw_dots(
    trades: Trades, values: tuple[Values, Values], layer: Layer, picture: ChartPicture, panel: Panel
) -> None:
    """Draws dots at the equity of each entry and exit, which `values` are."""
    theme, (entries, exits) = picture.theme, values
    for at in drawn_trades(trades).tolist():
        place, left = float(picture.x[trades.entry_index[at]]), float(picture.x[trades.exit_index[at]])
        color = theme.up if trades.profit[at] > 0 else theme.down
        layer.items.append(Dot(place, panel.scale.at(float(entries[at])), _ENTRY, theme.faint))
        layer.items.append(Dot(left, panel.scale.at(float(exits[at])), _EXIT, color))


def _check(values: Values) -> None:
    largest = float(np.abs(values).max(initial=0.0))
    if not largest < _LARGEST:
        raise NotFinite(f"values up to {largest:g} cannot be drawn")


def strategy_indicators(strategy: Compiled, bars: Bars, regular: Bars | None = None) -> list[Computed]:
    """Returns the indicators of a strategy over all bars. `regular` is as in `evaluate`.

    An average of another indicator is drawn in the panel of that indicator. Signals and divergences are left out, because
    the strategy does not use them.
    """
    arrays = lines_over(strategy, bars, regular)
    steps = {step.id: step for step in strategy.steps}
    found: list[Computed] = []
    for step in strategy.steps:
        if _host(step, steps) is None:
            added = [each for each in strategy.steps if _host(each, steps) is step]
            found.append(_drawn(strategy, step, added, bars, regular, arrays))
    return found


def _host(step: IndicatorStep, steps: dict[str, IndicatorStep]) -> IndicatorStep | None:
    """Returns the indicator in whose panel a step is drawn; None if it has its own panel or is drawn over the price."""
    source = steps.get(step.input.indicator or "") if step.input else None
    if source is None or not step.indicator.overlay:
        return None
    over_price = source.indicator.overlay and not _is_volume(source)
    return _host(source, steps) or (None if over_price else source)


def _drawn(
    strategy: Compiled,
    step: IndicatorStep,
    added: list[IndicatorStep],
    bars: Bars,
    regular: Bars | None,
    arrays: Arrays,
) -> Computed:
    if step.input is not None:
        found = _of_lines(step, arrays)
    else:
        part = regular if step.indicator.regular else None
        channels = step.indicator.run(bars, None, part, **step.settings)
        kept = replace(channels, signals=(), divlines=())
        found = Computed(IndicatorRequest(step.id, step.indicator, step.settings), kept)
    if found.request.indicator.overlay:
        return found
    levels = tuple(
        Level(each, "condition") for each in sorted(set(_levels((*strategy.entry, *strategy.exit), step.id)))
    )
    channels = replace(found.channels, hlines=levels or found.channels.hlines)
    if not added:
        return replace(found, channels=channels)
    lines = tuple(Line(_label(each), arrays[line]) for each in added for line in each.lines)
    title = " · ".join((found.request.label, *(_label(each) for each in added)))
    return plain(title, replace(channels, lines=(*channels.lines, *lines)), overlay=False, name=step.indicator.name)


def _of_lines(step: IndicatorStep, arrays: Arrays) -> Computed:
    """Returns an indicator that is computed from a line, in its declared range if it has one."""
    named = step.indicator.name
    lines = tuple(Line(line.name, arrays[line]) for line in step.lines)
    low, high = range_of(named, step.lines[0].name)
    channels = Channels(lines=lines, y_range=(low, high) if isfinite(low) and isfinite(high) else None)
    overlay = step.indicator.overlay and not _is_volume(step)
    return plain(f"{_label(step)} of {step.input}", channels, overlay=overlay, name=named)


def _is_volume(step: IndicatorStep) -> bool:
    return step.input == LineOperand(None, "volume")


def _label(step: IndicatorStep) -> str:
    return step.indicator.label(step.settings)


def _levels(conditions: Iterable[Condition], indicator: str) -> Iterator[float]:
    """Yields the numbers that conditions compare the lines of an indicator with."""
    for each in conditions:
        if isinstance(each, ConditionGroup):
            yield from _levels(each.conditions, indicator)
        elif isinstance(each, Comparison) and each.line.indicator == indicator and isinstance(each.other, int | float):
            yield float(each.other)


def plain(title: str, channels: Channels, *, overlay: bool, name: str = "") -> Computed:
    """Returns channels under a title. They are drawn as the indicator `name` is; by default as lines."""
    indicator = Indicator(
        name=name or title, title=title, description="", overlay=overlay, compute=lambda: channels, warmup=lambda: 1
    )
    return Computed(IndicatorRequest(title, indicator, {}), channels)
