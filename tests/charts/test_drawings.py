"""Indicators and price styles that are not drawn as plain lines and areas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openbell.charts.compose import compose
from openbell.charts.drawings import DRAWINGS, drawn_lines
from openbell.charts.intersections import with_intersections
from openbell.charts.look import Look
from openbell.charts.panels import Corner, Picture, price_panel
from openbell.charts.price import candles_of
from openbell.charts.scene import Band, Box, Boxes, Dot, Stroke
from openbell.charts.themes import THEMES
from openbell.indicators.registry import all_indicators
from tests.charts.pictures import axis, chart_scene, computed, hours, items

UP, DOWN = THEMES["dark"].up, THEMES["dark"].down


def test_every_entry_is_an_indicator() -> None:
    assert set(DRAWINGS) <= set(all_indicators())


@pytest.mark.parametrize("name", [name for name, drawing in DRAWINGS.items() if drawing.hidden])
def test_a_hidden_line_is_in_results_but_not_in_the_picture(name: str) -> None:
    """A direction of 1 would press the price against the upper edge."""
    (each,) = computed(hours(), [name], 200)
    labels = [line.label for line in each.channels.lines]
    hidden = DRAWINGS[name].hidden
    assert hidden < set(labels)
    assert [line.label for line in drawn_lines(each).channels.lines] == [x for x in labels if x not in hidden]
    assert not any((line.values < 1000).any() for line in drawn_lines(each).channels.lines), "all are prices"
    shown = [label.text for label in axis(chart_scene(entries=[name]))[0]]
    assert min(float(text.replace(",", "")) for text in shown) > 1000


def test_sar_is_a_dot_for_each_bar() -> None:
    scene = chart_scene(entries=["sar"], count=100)
    small = [dot for dot in items(scene, Dot) if dot.radius < 3]
    assert len(small) == 100
    assert {dot.color for dot in small} == {UP, DOWN}
    assert not [stroke for stroke in items(scene, Stroke) if stroke.dash is None]


def test_supertrend_breaks_where_it_changes_sides() -> None:
    (each,) = computed(hours(), ["supertrend"], 200)
    below = each.channels.lines[0].values <= hours().tail(200).close
    assert below.any()
    assert not below.all()
    up, down = (stroke for stroke in items(chart_scene(entries=["supertrend"]), Stroke) if stroke.dash is None)
    assert (up.color, down.color) == (UP, DOWN)
    assert (np.isfinite(up.y) == below).all()
    assert (np.isfinite(down.y) == ~below).all()


def test_heikin_ashi_over_the_price_is_bodies_not_lines() -> None:
    plain, scene = chart_scene(entries=[], count=100), chart_scene(entries=["heikin_ashi"], count=100)
    assert len(items(scene, Stroke)) == len(items(plain, Stroke))
    more = len(items(scene, Boxes)) - len(items(plain, Boxes))
    assert more == 2, "what rises and what falls"


def test_the_cloud_changes_colour_where_its_spans_cross() -> None:
    (each,) = computed(hours(), ["ichimoku"], 200)
    (fill,) = each.channels.fills
    crossings = np.count_nonzero(np.diff(np.sign(fill.upper - fill.lower)))
    green, red = items(chart_scene(entries=["ichimoku"]), Band)
    assert (green.color[:3], red.color[:3]) == (UP[:3], DOWN[:3])
    assert crossings > 0
    assert len(green.x) == 200 + crossings
    both = np.isfinite(green.upper) & np.isfinite(red.upper)
    assert both.sum() == crossings
    assert green.upper[both] == pytest.approx(green.lower[both])


def test_a_split_profile_has_two_colours() -> None:
    scene = chart_scene(entries=[{"name": "vpvr", "split_up_down": True, "bins": 10}], badge="")
    rose, fell = (box for box in items(scene, Boxes) if box.color[3] == 102)
    assert (rose.color[:3], fell.color[:3]) == (UP[:3], DOWN[:3])
    assert len(rose.left) == len(fell.left) == 10
    assert fell.right == pytest.approx(rose.left), "falling volume is drawn beside rising volume"


def test_a_session_profile_is_drawn_at_its_bars() -> None:
    (each,) = computed(hours(), ["session_vp"], 200)
    (rows,) = (box for box in items(chart_scene(entries=["session_vp"], badge=""), Boxes) if box.color[3] == 71)
    x = items(chart_scene(entries=["sma"]), Stroke)[0].x
    first = each.channels.hbars[-1].offset * 200
    assert rows.left[-1] == pytest.approx(x[round(first)] - (x[1] - x[0]) / 2)


class TestHeikinAshi:
    def test_the_style_equals_the_indicator(self) -> None:
        bars = hours()
        shown = candles_of(bars.tail(50), "heikin_ashi", bars)
        (each,) = computed(bars, ["heikin_ashi"], 50)
        for column, line in zip(shown.columns()[1:5], each.channels.lines, strict=True):
            assert (column == line.values).all()
        alone = candles_of(bars.tail(50), "heikin_ashi", None)
        assert alone.open[0] != shown.open[0]

    def test_compose_averages_from_the_first_available_bar_on(self) -> None:
        bars, look = hours(), Look(style="heikin_ashi")
        seeded, alone = (compose(bars.tail(5), [], look, "", "", whole) for whole in (bars, None))
        assert seeded.text() != alone.text()

    def test_every_averaged_candle_is_within_the_panel(self) -> None:
        bars = hours().tail(1)
        lower = replace(candles_of(bars, "heikin_ashi", None), low=bars.low / 3)
        drawn = Picture(
            bars, lower, "", Look(style="heikin_ashi"), THEMES["dark"], np.array([5.0]), 10.0, Box(0, 0, 100, 100), []
        )
        panel = price_panel(Box(0, 0, 100, 100), drawn, [], Corner(0.0, 0.0, 26.0))
        assert panel.scale.at(float(lower.low[0])) <= 100


class TestBaseline:
    def test_the_colour_changes_exactly_at_the_base(self) -> None:
        x, one, two = with_intersections(np.arange(3.0), np.array([0.0, 4.0, 0.0]), np.full(3, 1.0))
        assert x.tolist() == [0.0, 0.25, 1.0, 1.75, 2.0]
        assert one.tolist() == [0.0, 1.0, 4.0, 1.0, 0.0]
        assert two.tolist() == [1.0] * 5

    def test_no_part_of_the_line_has_the_wrong_colour(self) -> None:
        scene = chart_scene(Look(style="baseline"), entries=[], count=150)
        up, down = (stroke for stroke in items(scene, Stroke) if stroke.dash is None)
        base = up.y[np.isfinite(up.y)][0]
        assert np.nanmax(up.y) <= base + 1e-9
        assert np.nanmin(down.y) >= base - 1e-9
        assert len(up.x) > 150

    def test_gaps_and_lines_that_only_touch_do_not_change(self) -> None:
        one = np.array([0.0, np.nan, 2.0, 1.0, 2.0])
        x, out, _ = with_intersections(np.arange(5.0), one, np.full(5, 1.0))
        assert len(x) == 5
        assert out is one
