"""Indicators and price styles that are not drawn as plain lines and areas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.charts.panels import ChartPicture, Corner, price_panel
from openbell.charts.price import candles_of, with_intersections
from openbell.charts.scene import Band, Box, Boxes, Dot, Stroke
from openbell.charts.styles import STYLES, drawn_lines
from openbell.charts.themes import THEMES
from openbell.indicators.channels import Channels, Line
from openbell.indicators.registry import all_indicators
from openbell.market.bars import resample
from openbell.market.timeframes import Timeframe
from tests.charts.pictures import END, axis, chart_scene, computed, edges, hours, items, labels

UP, DOWN = THEMES["dark"].up, THEMES["dark"].down


def test_every_entry_is_an_indicator() -> None:
    assert set(STYLES) <= set(all_indicators())


@pytest.mark.parametrize("name", [name for name, drawing in STYLES.items() if drawing.hidden])
def test_a_hidden_line_is_in_results_but_not_in_the_picture(name: str) -> None:
    """A direction of 1 would press the price against the upper edge."""
    (each,) = computed(hours(), [name], 200)
    labels = [line.label for line in each.channels.lines]
    hidden = STYLES[name].hidden
    assert hidden <= set(labels)
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
    assert more == 3, "what rises, what falls, and the tag of the last close"


def test_the_cloud_changes_colour_where_its_spans_cross() -> None:
    (each,) = computed(hours(), ["ichimoku"], 200)
    (fill,) = each.channels.fills
    assert fill.ahead is not None
    upper, lower = (np.concatenate(pair) for pair in zip((fill.upper, fill.lower), fill.ahead, strict=True))
    crossings = np.count_nonzero(np.diff(np.sign(upper - lower)))
    green, red = items(chart_scene(entries=["ichimoku"]), Band)
    assert (green.color[:3], red.color[:3]) == (UP[:3], DOWN[:3])
    assert crossings > 0
    assert len(green.x) == 225 + crossings
    both = np.isfinite(green.upper) & np.isfinite(red.upper)
    assert both.sum() == crossings
    assert green.upper[both] == pytest.approx(green.lower[both])


def test_a_split_profile_has_two_colours() -> None:
    scene = chart_scene(entries=[{"name": "vpvr", "split_up_down": True, "bins": 10}], badge="")
    for strength, count in ((102, 5), (46, 5)):
        rose, fell = (box for box in items(scene, Boxes) if box.color[3] == strength and len(box.left) > 1)
        assert (rose.color[:3], fell.color[:3]) == (UP[:3], DOWN[:3])
        assert len(rose.left) == len(fell.left) == count
        assert fell.right == pytest.approx(rose.left), "falling volume is drawn beside rising volume"


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_session_profile_is_drawn_at_its_bars(side: str) -> None:
    scene = chart_scene(entries=[{"name": "tpo", "side": side}, "sma"], badge="")
    (each,) = computed(hours(), [{"name": "tpo", "side": side}], 200)
    rows = [box for box in items(scene, Boxes) if box.color[3] in {102, 46} and len(box.left) > 1]
    x = next(stroke for stroke in items(scene, Stroke) if len(stroke.x) == 200).x
    slot = x[1] - x[0]
    sessions = {(segment.x1, segment.x2) for segment in each.channels.divlines}
    edges = {round(x[first] - slot / 2 if side == "left" else x[last] + slot / 2, 3) for first, last in sessions}
    assert {round(place, 3) for box in rows for place in getattr(box, side).tolist()} == edges


class TestTheSideOfTheNewestBar:
    """Room at the right of the newest bar."""

    @pytest.mark.parametrize("name", ["volume_profile", "hvn_lvn"])
    def test_a_profile_never_covers_a_bar(self, name: str) -> None:
        scene = chart_scene(entries=[name, "sma"], badge="")
        x = next(stroke for stroke in items(scene, Stroke) if len(stroke.x) == 200).x
        rows = [box for box in items(scene, Boxes) if box.color[3] in {102, 46} and len(box.left) > 1]
        assert rows
        assert min(box.left.min() for box in rows) > x[-1] + (x[1] - x[0]) / 2

    def test_its_levels_are_named_and_its_value_area_is_stronger(self) -> None:
        scene = chart_scene(entries=["volume_profile"], badge="")
        (each,) = computed(hours(), ["volume_profile"], 200)
        names = {label.text: label.y for label in labels(scene) if label.text in {"POC", "VAH", "VAL"}}
        assert names["VAH"] < names["POC"] < names["VAL"]
        strong, pale = (
            next(box for box in items(scene, Boxes) if box.color[3] == opacity and len(box.left) > 1)
            for opacity in (102, 46)
        )
        assert strong.color[:3] == pale.color[:3]
        assert len(strong.left) + len(pale.left) == len(each.channels.hbars)
        lines = {round(stroke.y[0], 6) for stroke in items(scene, Stroke) if len(stroke.x) == 2}
        assert {round(strong.top.min(), 6), round(strong.bottom.max() + 1, 6)} <= lines, "VAH and VAL bound it"

    def test_the_cloud_reaches_25_bars_beyond_the_last(self) -> None:
        scene = chart_scene(entries=["ichimoku"])
        lines = [stroke for stroke in items(scene, Stroke) if stroke.dash is None]
        assert [len(stroke.x) for stroke in lines] == [200, 200, 225, 225, 200]
        conversion, _, span_a, *_ = lines
        assert np.isfinite(span_a.y[200:]).all()
        slot = conversion.x[1] - conversion.x[0]
        assert span_a.x[-1] == pytest.approx(conversion.x[-1] + 25 * slot)
        right, _ = edges(scene)
        assert span_a.x[-1] < right

    def test_few_bars_keep_most_of_the_width(self) -> None:
        scene = chart_scene(entries=["ichimoku"], count=10)
        *_, span_b, _ = (stroke for stroke in items(scene, Stroke) if stroke.dash is None)
        assert len(span_b.x) == 15

    def test_the_legend_has_all_five_lines(self) -> None:
        (each,) = computed(hours(), ["ichimoku"], 200)
        shown = [label.text.strip() for label in labels(chart_scene(entries=["ichimoku"]))]
        for line in each.channels.lines:
            assert line.label in shown
        assert shown[shown.index("Lagging") + 1] == f"{hours().close[-1]:,.2f}"


class TestSessions:
    """Lines that restart with each session have gaps and names."""

    def test_vwap_has_a_gap_between_days(self) -> None:
        (vwap,) = (stroke for stroke in items(chart_scene(entries=["vwap"]), Stroke) if stroke.dash is None)
        days = len(set((hours().tail(200).time // 86400).tolist()))
        assert np.isnan(vwap.y).sum() == days - 1
        assert len(vwap.x) == 200 + days - 1

    def test_the_bands_have_the_same_gaps(self) -> None:
        scene = chart_scene(entries=["vwap_bands"])
        (band,) = items(scene, Band)
        strokes = [stroke for stroke in items(scene, Stroke) if stroke.dash is None]
        for stroke in strokes:
            assert (np.isnan(stroke.y) == np.isnan(band.upper)).all()
        assert {"VWAP", "+2 SD", "−2 SD"} <= {label.text for label in labels(scene)}

    def test_daily_bars_have_no_gaps(self) -> None:
        bars = resample(hours(), Timeframe.D1, END)
        (vwap,) = (stroke for stroke in items(chart_scene(entries=["vwap"], bars=bars), Stroke) if stroke.dash is None)
        assert np.isfinite(vwap.y).all()

    def test_pivots_are_level_and_named(self) -> None:
        entries: list[str | dict[str, object]] = [{"name": "pivot", "period": "session"}]
        scene = chart_scene(entries=entries)
        (each,) = computed(hours(), entries, 200)
        right, _ = edges(scene)
        strokes = [stroke for stroke in items(scene, Stroke) if stroke.dash is None]
        assert len(strokes) == 7
        for stroke, line in zip(strokes, each.channels.lines, strict=True):
            runs = stroke.y.reshape(-1, 3)
            assert len(runs) == 1 + np.count_nonzero(np.diff(line.values))
            assert (runs[:, 0] == runs[:, 1]).all()
            assert np.isnan(runs[:, 2]).all(), "a gap between sessions"
            assert stroke.x[-1] == pytest.approx(right)
        names = [label.text for label in labels(scene)]
        assert names.count("P") > 3

    def test_far_levels_do_not_press_the_price_together(self) -> None:
        bars = hours()
        level = Line("P", np.full(200, bars.close[-1] * 3))
        (each,) = computed(bars, ["pivot"], 200)
        far = replace(each, channels=Channels(lines=(level,)))
        one, two = (compose(bars.tail(200), drawn, Look(), "") for drawn in ([], [far]))
        assert [label.text for label in axis(one)[0]] == [label.text for label in axis(two)[0]]


class TestSwings:
    """Swings are drawn at their turns."""

    def test_a_zigzag_is_one_line_through_its_turns_with_their_prices(self) -> None:
        entries: list[str | dict[str, object]] = [{"name": "zigzag", "deviation": 2.0}]
        (each,) = computed(hours(), entries, 200)
        scene = chart_scene(entries=entries)
        legs, newest = (stroke for stroke in items(scene, Stroke) if stroke.width > 1.0)
        assert len(legs.x) == len(each.channels.divlines) + 1
        assert newest.dash is not None
        assert (newest.x[0], newest.y[0]) == (legs.x[-1], legs.y[-1])
        assert not items(scene, Dot)
        first = each.channels.divlines[0].y1
        assert f"{first:,.2f}" in [label.text for label in labels(scene)]

    def test_a_fractal_is_a_triangle_at_its_extreme(self) -> None:
        (each,) = computed(hours(), ["fractals"], 200)
        triangles = items(chart_scene(entries=["fractals"]), Band)
        known = [signal for signal in each.channels.signals if signal.index >= 2]
        assert len(triangles) == len(known)
        x = items(chart_scene(entries=["fractals", "sma"]), Stroke)[0].x
        assert triangles[0].x[1] == pytest.approx(x[known[0].index - 2])

    def test_a_retracement_shows_the_newest_swing_with_names(self) -> None:
        scene = chart_scene(entries=["fibonacci"])
        right, _ = edges(scene)
        (each,) = computed(hours(), ["fibonacci"], 200)
        levels = [stroke for stroke in items(scene, Stroke) if stroke.dash is None]
        assert len(levels) == 7
        assert all(stroke.y[0] == stroke.y[1] and stroke.x[1] == pytest.approx(right) for stroke in levels)
        price = each.channels.lines[4].values[-1]
        assert f"0.618 ({price:,.2f})" in [label.text for label in labels(scene)]


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
        drawn = ChartPicture(
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
