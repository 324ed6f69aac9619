"""Charts of strategies: every trade is marked at its bars and prices, and each indicator is drawn where it belongs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tools.strategy_gallery import example, scene

from openbell.backtest.rules import END, Setup
from openbell.backtest.runs import Backtest, backtest
from openbell.backtest.trades import Trades
from openbell.charts.backtest_charts import strategy_indicators
from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.charts.panels import ChartPicture, Panel
from openbell.charts.scene import Band, Layer, Stroke
from openbell.charts.themes import THEMES
from openbell.charts.trade_markers import MAX_DRAWN, draw_trades
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.library import canonical
from openbell.strategies.reading import read_spec
from tests.charts.pictures import items
from tests.strategies.specs import crossover, walk

THEME = THEMES["light"]


def drawn(trades: Trades, found: Backtest) -> tuple[list[Band], list[Stroke], ChartPicture, Panel]:
    """The arrows and lines of trades, and where the chart that they are on draws its bars."""
    seen: list[tuple[Layer, ChartPicture, Panel]] = []

    def painter(layer: Layer, picture: ChartPicture, panel: Panel) -> None:
        draw_trades(trades, layer, picture, panel)
        seen.append((layer, picture, panel))

    compose(found.bars, [], Look(theme="light", volume=False), "", painter=painter)
    [(layer, picture, panel)] = seen
    arrows = [item for item in layer.items if isinstance(item, Band)]
    return arrows, [item for item in layer.items if isinstance(item, Stroke)], picture, panel


def strategy(side: str) -> Compiled:
    return compiled(read_spec({**crossover(), "side": side}))


@pytest.mark.parametrize("side", ["LONG", "SHORT"])
def test_every_trade_has_an_arrow_at_its_entry_and_at_its_exit(side: str) -> None:
    found = backtest(strategy(side), walk(11, 400), Setup())
    arrows, lines, picture, panel = drawn(found.run.trades, found)
    places = [(int(picture.x.searchsorted(arrow.x[1] - 1e-6)), arrow.color) for arrow in arrows]
    expected = []
    for trade in found.run.trades:
        expected.append((trade.entry_index, THEME.accent))
        if trade.reason != "END":
            expected.append((trade.exit_index, THEME.up if trade.profit > 0 else THEME.down))
    assert len(expected) > 20
    assert places == expected
    ends = [tuple(line.y.tolist()) for line in lines]
    prices = [(panel.scale.at(each.entry_price), panel.scale.at(each.exit_price)) for each in found.run.trades]
    assert np.allclose(ends, prices)


def test_arrows_point_at_the_bar_from_the_side_of_the_order() -> None:
    """A buy is below its bar and points up, a sale is above it and points down."""
    for side, first_points_up in (("LONG", True), ("SHORT", False)):
        found = backtest(strategy(side), walk(11, 400), Setup())
        [entry, leave, *_], _, _, panel = drawn(found.run.trades, found)
        at = int(found.run.trades.entry_index[0])
        low, high = (panel.scale.at(float(column[at])) for column in (found.bars.low, found.bars.high))
        assert (points_up(entry), points_up(leave)) == (first_points_up, not first_points_up)
        assert (entry.upper[1] > low) if first_points_up else (entry.lower[1] < high)


def points_up(arrow: Band) -> bool:
    return bool(arrow.upper[1] < arrow.upper[0])


def test_of_many_trades_those_with_the_largest_results_are_drawn() -> None:
    found = backtest(strategy("LONG"), walk(11, 20_000), Setup())
    trades = found.run.trades
    assert len(trades) > 2 * MAX_DRAWN
    _, lines, _, _ = drawn(trades, found)
    assert len(lines) == MAX_DRAWN
    least = np.sort(np.abs(trades.profit))[-MAX_DRAWN]
    assert sum(np.abs(trades.profit) >= least) == MAX_DRAWN


@pytest.mark.parametrize("name", canonical())
def test_every_canonical_strategy_trades_in_its_picture(name: str) -> None:
    shown = example(name)
    trades = shown.found.run.trades
    assert len(trades) > 0
    arrows = [item for item in items(scene(shown), Band) if len(item.x) == 3 and item.color[3] == 255]
    assert len(arrows) == 2 * len(trades) - int((trades.reason == END).sum())
    again = example(name)
    assert scene(again).text() == scene(shown).text()


def panels(name: str) -> dict[str, list[str]]:
    """The title of each panel, and the lines in it; the price has an empty title."""
    found: dict[str, list[str]] = {"": []}
    shown = example(name)
    for each in strategy_indicators(shown.strategy, shown.bars):
        labels = [line.label for line in each.channels.lines]
        if each.request.indicator.overlay:
            found[""] += labels
        else:
            found[each.request.label] = labels
        assert all(len(line.values) == len(shown.bars) for line in each.channels.lines)
    return found


def test_an_average_of_an_indicator_is_drawn_in_the_panel_of_that_indicator() -> None:
    assert panels("VPT") == {"": ["SMA"], "PVT · SMA(20)": ["PVT", "SMA(20)"]}
    assert panels("MOMENTUM_PINBALL") == {"": [], "ROC(1)": ["ROC"], "RSI(3) of change.roc": ["rsi"]}


def test_the_levels_of_a_panel_are_those_of_the_conditions() -> None:
    shown = example("CMO_MFI")
    levels = [each.channels.hlines for each in strategy_indicators(shown.strategy, shown.bars)]
    assert levels == [(-50.0, 50.0), (20.0, 80.0)]


def test_averages_of_averages_and_of_volume_are_not_drawn_over_the_price() -> None:
    raw = crossover()
    raw["indicators"] = [
        {"id": "sma", "type": "sma", "input": "volume"},
        {"id": "ema", "type": "ema", "input": "sma"},
        {"id": "highs", "type": "sma", "input": "high"},
    ]
    raw["parameters"] = []
    raw["entryConditions"].append({"type": "OVER", "indicator": "close", "params": {"other": "highs"}})
    found = strategy_indicators(compiled(read_spec(raw)), walk(3, 300))
    drawn_as = {each.request.label: each.request.indicator.overlay for each in found}
    assert drawn_as == {"SMA(10) of volume · EMA(9)": False, "SMA(10) of high": True}


def test_a_painter_changes_nothing_else() -> None:
    found = backtest(strategy("LONG"), walk(11, 12), Setup())
    assert len(found.run.trades) == 0
    look = Look(theme="light")
    plain = compose(found.bars, [], look, "x").text()
    painted = compose(found.bars, [], look, "x", painter=partial(draw_trades, found.run.trades)).text()
    assert [line for line in painted.splitlines() if not line.startswith("layer")] == [
        line for line in plain.splitlines() if not line.startswith("layer")
    ]
