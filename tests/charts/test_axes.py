"""Tags at the value axis, the scales of panels, and the values beside the title."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openbell.charts.axes import _apart
from openbell.charts.compose import compose
from openbell.charts.look import ChartOptions, Look
from openbell.charts.numbers import number, percent
from openbell.charts.panels import indicator_panel
from openbell.charts.price import candles_of
from openbell.charts.scene import Box, Boxes, Scene
from openbell.charts.themes import THEMES
from openbell.market.bars import Bars
from tests.charts.pictures import axis, chart_scene, computed, edges, hours, items, labels

DARK = THEMES["dark"]


def tags(scene: Scene, panel: int = 0) -> list[str]:
    return [label.text for label in axis(scene)[panel] if label.bold]


class TestEveryLine:
    def test_all_lines_over_the_price_are_tagged_at_their_last_value(self) -> None:
        entries: list[str | dict[str, object]] = ["bbands", "ema_stack"]
        last = [line.values[-1] for each in computed(hours(), entries, 200) for line in each.channels.lines]
        close = float(hours().close[-1])
        assert sorted(tags(chart_scene(entries=entries))) == sorted(number(value, 2) for value in (*last, close))

    def test_all_lines_of_a_panel_are_tagged(self) -> None:
        scene = chart_scene(entries=["adx", "macd"])
        for panel, each in enumerate(computed(hours(), ["adx", "macd"], 200), 1):
            lines = (*each.channels.lines, *each.channels.histogram)
            assert sorted(tags(scene, panel)) == sorted(number(line.values[-1], 2) for line in lines)

    def test_a_line_outside_the_picture_has_no_tag(self) -> None:
        bars, drawn = hours().tail(50), computed(hours(), ["bbands"], 50)
        close, upper = float(bars.close[-1]), float(drawn[0].channels.lines[0].values[-1])
        options = ChartOptions(price_range=(close * 0.9, (close + upper) / 2))
        shown = tags(compose(bars, drawn, Look(), "", options=options))
        assert number(close, 2) in shown
        assert number(upper, 2) not in shown

    def test_only_as_many_as_fit(self) -> None:
        scene = chart_scene(Look(width=400, height=200), entries=["pivot", "ichimoku", "bbands", "rsi", "macd", "adx"])
        for panel in axis(scene):
            ys = sorted(label.y for label in panel if label.bold)
            assert all(two - one >= 17.9 for one, two in pairwise(ys))
        assert tags(scene)[-1] == number(float(hours().close[-1]), 2), "the price is always among them"


@given(st.lists(st.floats(0, 300), min_size=1, max_size=15))
def test_tags_are_moved_apart_within_the_panel(places: list[float]) -> None:
    found = _apart(places, 18.0, 9.0, 291.0)
    order = sorted(range(len(places)), key=lambda at: places[at])
    assert all(found[two] - found[one] >= 18.0 - 1e-9 for one, two in pairwise(order)), "apart and in order"
    assert min(found) >= 9.0 - 1e-9
    assert max(found) <= 291.0 + 1e-9
    if len(places) == 1:
        assert found[0] == min(max(places[0], 9.0), 291.0)


class TestScales:
    def test_adx_fits_its_values(self) -> None:
        (each,) = computed(hours(), ["adx"], 200)
        panel = indicator_panel(Box(0, 0, 100, 120), each)
        highest = max(float(line.values.max()) for line in each.channels.lines)
        assert panel.scale.high < highest * 1.4
        assert 25.0 in panel.ticks

    @pytest.mark.parametrize("height", [90.0, 150.0, 400.0])
    def test_rsi_has_30_and_70_and_the_whole_range(self, height: float) -> None:
        (each,) = computed(hours(), ["rsi"], 200)
        panel = indicator_panel(Box(0, 0, 100, height), each)
        assert {30.0, 70.0} <= set(panel.ticks)
        assert panel.scale.low <= 0
        assert panel.scale.high >= 100


class TestTitle:
    def words(self, scene: Scene) -> str:
        return "".join(label.text for label in labels(scene) if label.y == 16 and label.x < 900)

    def test_a_percent_scale_has_per_cents_in_the_legend(self) -> None:
        scene = chart_scene(Look(price_scale="percent"), entries=["sma"])
        bars, (sma,) = hours().tail(200), computed(hours(), ["sma"], 200)

        def change(value: float) -> str:
            return percent((value / bars.close[0] - 1) * 100)

        words = self.words(scene)
        for name, column in (("O", bars.open), ("H", bars.high), ("L", bars.low), ("C", bars.close)):
            assert f"{name} {change(column[-1])} " in words
        assert f"Change {percent((bars.close[-1] / bars.close[-2] - 1) * 100)} " in words
        assert f"Last {number(bars.close[-1], 2)} " in words
        average = change(sma.channels.lines[0].values[-1])
        assert average + " " in [label.text for label in labels(scene)]
        assert average in tags(scene)

    def test_an_indexed_scale_has_its_own_values_too(self) -> None:
        bars = hours().tail(200)
        words = self.words(chart_scene(Look(price_scale="indexed"), entries=[]))
        assert f"C {100 * bars.close[-1] / bars.close[0]:.2f} " in words
        assert f"Last {number(bars.close[-1], 2)} " in words

    def test_averaged_candles_are_named_with_their_own_values(self) -> None:
        bars = hours().tail(200)
        drawn = candles_of(bars, "heikin_ashi", hours())
        words = self.words(chart_scene(Look(style="heikin_ashi"), entries=[]))
        assert words.startswith("BTC/USD · 1h · Heikin-AshiO ")
        for name, column in (("O", drawn.open), ("H", drawn.high), ("L", drawn.low), ("C", drawn.close)):
            assert f"{name} {number(float(column[-1]), 2)} " in words
        assert f"Last {number(float(bars.close[-1]), 2)} " in words
        assert "Last" not in self.words(chart_scene(entries=[]))
        narrow = self.words(chart_scene(Look(width=400, height=300, style="heikin_ashi"), entries=[], badge=""))
        assert f"BTC/USD · 1h · HAC {number(float(drawn.close[-1]), 2)} " in narrow


class TestHollow:
    def bars(self) -> Bars:
        """Returns bars that close above or below their open, and above or below the close before."""
        bars = hours().tail(5)
        opened, close = np.array([10.0, 14.0, 10.0, 13.0, 9.0]), np.array([12.0, 13.0, 11.0, 14.0, 8.0])
        high, low = np.maximum(opened, close) + 1, np.minimum(opened, close) - 1
        return Bars(bars.instrument, bars.timeframe, bars.time, opened, high, low, close, bars.volume)

    def test_candles_are_coloured_by_the_close_before_and_filled_by_their_open(self) -> None:
        bars = self.bars()
        scene = compose(bars.tail(4), [], Look(style="hollow", volume=False), "", "", bars)
        right, _ = edges(scene)
        wide = [box for box in items(scene, Boxes) if len(box.left) and 20 < (box.right - box.left)[0] < 60]
        found: dict[int, list[tuple[int, ...]]] = {}
        for box in wide:
            for left, end in zip(box.left.tolist(), box.right.tolist(), strict=True):
                if end < right:
                    found.setdefault(round((left + end) / 2), []).append(box.color)
        shown = [colors for _, colors in sorted(found.items())]
        assert shown == [
            [DARK.up],  # falls from 14 to 13, above the 12 before: filled and green
            [DARK.down, DARK.background],  # rises from 10 to 11, below the 13 before: hollow and red
            [DARK.up, DARK.background],
            [DARK.down],
        ]

    def test_the_last_price_has_the_colour_of_its_candle(self) -> None:
        bars = self.bars()
        for style, color in (("hollow", DARK.down), ("candles", DARK.up)):
            scene = compose(bars.take(np.arange(3)), [], Look(style=style, volume=False), "")
            right, _ = edges(scene)
            (tag,) = (box for box in items(scene, Boxes) if len(box.left) == 1 and box.left[0] == right + 1)
            assert tag.color == color
