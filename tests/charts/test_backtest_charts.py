"""The charts of a backtest: lines show every extreme, trades are marked where they were, and simulated data is named."""

from __future__ import annotations

import numpy as np
import pytest

from openbell.backtest.engine import Run
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest, backtest
from openbell.charts.backtest_charts import GROUPS, drawdown, equity_scene, thinned, trades_scene
from openbell.charts.look import Look
from openbell.charts.picture import picture
from openbell.charts.scene import Band, Dot, Scene, Stroke
from openbell.charts.themes import THEMES
from openbell.market.bars import Values
from openbell.market.errors import NotFinite
from openbell.strategies.compiled import compiled
from openbell.strategies.reading import read_spec
from tests.charts.pictures import items, labels
from tests.strategies.specs import crossover, walk

THEME = THEMES["dark"]


def run(count: int) -> Backtest:
    return backtest(compiled(read_spec(crossover())), walk(11, count), Setup())


def stroke(scene: Scene, number: int) -> Stroke:
    """The line of a colour, of which the equity has the first and holding the second."""
    return next(
        each for each in items(scene, Stroke) if each.color == list(THEME.hues.values())[number] and len(each.x) > 2
    )


@pytest.mark.parametrize("count", [300, 1999, 2001, 20_000])
def test_no_extreme_of_the_equity_and_of_the_drawdown_is_lost(count: int) -> None:
    equity = run(count).run.equity
    chosen = thinned(equity)
    assert len(chosen) == (count if count <= 4 * GROUPS else 2 * GROUPS + 1)
    assert (np.diff(chosen) > 0).all()
    assert (equity[chosen].min(), equity[chosen].max(), equity[chosen][-1]) == (equity.min(), equity.max(), equity[-1])
    deepest = float((equity / np.maximum.accumulate(equity) - 1).min()) * 100
    assert drawdown(equity, chosen).min() == pytest.approx(deepest, rel=1e-12)


def test_a_flat_line_is_thinned_evenly() -> None:
    chosen = thinned(np.ones(10_000))
    assert np.diff(chosen).max() <= 20


def test_equity_holding_and_drawdown_are_drawn_to_scale() -> None:
    found = run(500)
    scene = equity_scene(found, Look(), "title", "SIMULATED")
    equity, holding = stroke(scene, 0), stroke(scene, 1)
    assert len(equity.x) == 500

    def heights(values: Values) -> Values:
        return np.asarray((values - values[0]) / (values[-1] - values[0]))

    assert np.allclose(heights(equity.y), heights(found.run.equity))
    assert np.allclose(heights(holding.y), heights(found.bars.close))
    shown = [label.text for label in labels(scene)]
    assert shown.count("SIMULATED") == 2, "across the chart and in its corner"
    assert "title" in shown
    assert not {"O ", "H ", "L "} & set(shown), "the equity has no open, high and low"


def test_real_data_has_no_badge() -> None:
    assert "SIMULATED" not in [label.text for label in labels(equity_scene(run(300), Look(), "title"))]


@pytest.mark.parametrize("count", [500, 5000])
def test_each_trade_has_a_dot_at_its_entry_and_at_its_exit(count: int) -> None:
    found = run(count)
    scene = equity_scene(found, Look(), "title")
    line = stroke(scene, 0)
    dots = items(scene, Dot)
    trades = list(found.run.trades)
    assert [dot.color for dot in dots[1::2]] == [THEME.up if each.profit > 0 else THEME.down for each in trades]
    assert len(dots) == 2 * len(trades)
    scale = np.polyfit(found.run.equity[thinned(found.run.equity)], line.y, 1)
    expected = [np.polyval(scale, found.run.equity[each.exit_index]) for each in trades]
    assert np.allclose([dot.y for dot in dots[1::2]], expected, atol=1e-6)
    width = line.x[-1] - line.x[0]
    places = [line.x[0] + width * each.exit_index / (count - 1) for each in trades]
    assert np.abs(np.array([dot.x for dot in dots[1::2]]) - places).max() < 4


def test_the_price_has_candles_if_there_is_room_and_a_line_otherwise() -> None:
    few, many = trades_scene(run(200), Look(), "BTC"), trades_scene(run(5000), Look(), "BTC")
    assert [len(each.x) for each in items(few, Stroke) if len(each.x) > 2] == []
    assert [len(each.x) for each in items(many, Stroke) if len(each.x) > 2] == [2 * GROUPS + 1]
    for scene, count in ((few, 200), (many, 5000)):
        trades = run(count).run.trades
        arrows = [each for each in items(scene, Band) if len(each.x) == 3]
        assert len(arrows) >= 2 * len(trades) - 1


@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG"), ("jpeg", b"\xff\xd8"), ("svg", b"<svg")])
def test_every_format_is_written(form: str, start: bytes) -> None:
    assert picture(equity_scene(run(300), Look(), "title"), form=form).startswith(start)


def test_an_equity_that_no_axis_can_show_is_refused() -> None:
    found = run(300)
    huge = Backtest(found.bars, Run(found.run.trades, found.run.equity * 1e120), found.metrics)
    with pytest.raises(NotFinite, match="cannot be drawn"):
        equity_scene(huge, Look(), "title")
