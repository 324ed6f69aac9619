"""Drawings of chart configs: where their items are, and that no drawing breaks a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.charts.annotations.areas import LEVELS
from openbell.charts.annotations.catalogue import ANNOTATIONS, draw_all, outside
from openbell.charts.annotations.overrides import OVERRIDES
from openbell.charts.config.looks import unsupported
from openbell.charts.config.model import KINDS, TYPES, ConfigAnnotation, Coordinate
from openbell.charts.look import Look
from openbell.charts.numbers import NumberFormat
from openbell.charts.panels import ChartPicture, Panel
from openbell.charts.raster import render
from openbell.charts.scales import Scale
from openbell.charts.scene import Band, Box, Boxes, Item, Label, Layer, Stroke
from openbell.charts.svg import svg
from openbell.charts.themes import THEMES
from tests.charts.configs import config, drawing, one_of_each, scene_of
from tests.charts.pictures import axis, hours, items, labels

BARS = hours().tail(100)
FIRST, HOUR = int(BARS.time[0]), 3600
THEME = THEMES["light"]
AREA = Box(0.0, 0.0, 1200.0, 400.0)
PICTURE = ChartPicture(BARS, BARS, "", Look(theme="light"), THEME, np.arange(5.0, 1005.0, 10.0), 10.0, AREA, [])
PANEL = Panel(AREA, Scale(0.0, 100.0, AREA), NumberFormat(), ())
"""A bar is 10 pixels wide, the last one at 995; a price unit is 4 pixels, 100 at the top."""


LAST_CLOSE = float(BARS.close[-1])


def at(bar: float) -> float:
    return FIRST + bar * HOUR


def drawn(each: ConfigAnnotation) -> list[Item]:
    layer = Layer(AREA)
    draw_all(layer, [each], PICTURE, PANEL)
    return layer.items


def of(found: list[Item], kind: type) -> list[Any]:
    return [item for item in found if isinstance(item, kind)]


def points(stroke: Stroke) -> list[tuple[float, float]]:
    return list(zip(stroke.x.tolist(), stroke.y.tolist(), strict=True))


def edges(boxes: Boxes) -> tuple[float, ...]:
    return tuple(float(edge[0]) for edge in (boxes.left, boxes.top, boxes.right, boxes.bottom))


def texts(found: list[Item]) -> list[str]:
    return [item.text for item in of(found, Label)]


CORNERS: dict[str, Any] = {"startDatetime": at(10), "startPrice": 20.0, "endDatetime": at(30), "endPrice": 70.0}


def test_every_kind_can_be_drawn() -> None:
    assert set(ANNOTATIONS) == set(KINDS)
    assert all(each.honours <= set(OVERRIDES) for each in ANNOTATIONS.values())
    assert {key for each in ANNOTATIONS.values() for key in each.honours} == set(OVERRIDES)


class TestPlaces:
    @pytest.mark.parametrize(
        ("bar", "x"), [(0, 5), (10, 105), (10.5, 110), (99, 995), (-3, -25), (-0.5, 0), (102, 1025), (99.5, 1000)]
    )
    def test_times_are_placed_in_proportion_and_beyond_the_bars_by_the_length_of_a_bar(
        self, bar: float, x: float
    ) -> None:
        (line,) = drawn(drawing("Trend Line", startDatetime=at(-100), startPrice=0, endDatetime=at(bar), endPrice=50))
        assert isinstance(line, Stroke)
        assert float(line.x[-1]) == pytest.approx(x)

    def test_times_between_two_sessions_are_placed_between_their_bars(self) -> None:
        bars = BARS.take(np.array([0, 1, 50, 51]))
        picture = ChartPicture(bars, bars, "", Look(), THEME, np.array([5.0, 15.0, 25.0, 35.0]), 10.0, AREA, [])
        layer = Layer(AREA)
        draw_all(layer, [drawing("Vertical Line", datetime=at(25.5))], picture, PANEL)
        (line,) = of(layer.items, Boxes)
        assert edges(line) == (19.0, 0.0, 21.0, 400.0)

    def test_far_points_do_not_change_the_slope_of_a_line(self) -> None:
        (line,) = drawn(
            drawing("Trend Line", startDatetime=at(-(10**6)), startPrice=0, endDatetime=at(10**6 + 99), endPrice=100)
        )
        assert isinstance(line, Stroke)
        slope = (line.y[1] - line.y[0]) / (line.x[1] - line.x[0])
        assert slope == pytest.approx(-400 / (2 * 10**7 + 990))
        assert -50 < line.x[0] < line.x[1] < 1250


class TestLines:
    def test_a_horizontal_line_crosses_the_panel_and_has_a_text(self) -> None:
        line, ground, text = drawn(
            drawing("Horizontal Line", {"lineColor": "#010203", "lineWidth": 3}, text="R1", price=50)
        )
        assert isinstance(line, Stroke)
        assert isinstance(text, Label)
        assert (points(line), line.color, line.width) == ([(0.0, 200.0), (1200.0, 200.0)], (1, 2, 3, 255), 3.0)
        assert (text.text, text.anchor, text.color) == ("R1", "right", (1, 2, 3, 255))
        assert text.y < 200
        assert isinstance(ground, Boxes)

    @pytest.mark.parametrize(("style", "dash"), [(0, None), ("dotted", (2.0, 3.0)), (2, (6.0, 4.0))])
    def test_styles_of_lines(self, style: object, dash: object) -> None:
        (line,) = drawn(drawing("Horizontal Line", {"lineStyle": style}, price=50))
        assert isinstance(line, Stroke)
        assert line.dash == dash

    def test_a_label_can_be_hidden(self) -> None:
        assert not texts(drawn(drawing("Horizontal Line", {"showLabel": False}, text="R1", price=50)))

    def test_an_order_line_names_its_price(self) -> None:
        found = drawn(drawing("Order Line", text="Buy limit", price=50))
        assert texts(found) == ["Buy limit  50.00"]
        assert of(found, Stroke)[0].dash == (6.0, 4.0)

    def test_a_vertical_line_crosses_all_panels_but_has_one_text(self) -> None:
        each = drawing("Vertical Line", text="Report", datetime=at(10))
        assert edges(of(drawn(each), Boxes)[0]) == (104.0, 0.0, 106.0, 400.0)
        scene = scene_of(config(theme="light", drawings=(drawing("Vertical Line", text="Report", datetime=at(50)),)))
        assert [label.text for label in labels(scene)].count("Report") == 1
        assert any(":00" in label.text and label.bold for label in labels(scene))

    def test_a_dashed_vertical_line_has_gaps(self) -> None:
        (line,) = drawn(drawing("Vertical Line", {"lineStyle": "dashed"}, datetime=at(10)))
        assert isinstance(line, Boxes)
        assert line.top.tolist() == [10.0 * n for n in range(40)]
        assert (line.bottom - line.top).tolist() == [6.0] * 40

    def test_a_trend_line_joins_its_points_in_any_order(self) -> None:
        (line,) = drawn(drawing("Trend Line", **CORNERS))
        turned: dict[str, Any] = {"startDatetime": at(30), "startPrice": 70.0, "endDatetime": at(10), "endPrice": 20.0}
        (other,) = drawn(drawing("Trend Line", **turned))
        assert isinstance(line, Stroke)
        assert isinstance(other, Stroke)
        assert points(line) == points(other) == [(105.0, 320.0), (305.0, 120.0)]

    def test_dashes_are_equally_long_on_steep_lines(self) -> None:
        steep: dict[str, Any] = {"startDatetime": at(10), "startPrice": 0.0, "endDatetime": at(13), "endPrice": 90.0}
        (line,) = drawn(drawing("Trend Line", {"lineStyle": "dashed"}, **steep))
        assert isinstance(line, Stroke)
        assert line.dash is None
        x, y = line.x.reshape(-1, 3), line.y.reshape(-1, 3)
        assert np.isnan(y[:, 2]).all()
        assert np.hypot(x[:-1, 1] - x[:-1, 0], y[:-1, 1] - y[:-1, 0]) == pytest.approx(6.0)
        assert np.hypot(np.diff(x[:, 0]), np.diff(y[:, 0])) == pytest.approx(10.0)

    def test_an_extended_trend_line_ends_at_the_edge(self) -> None:
        (line,) = drawn(
            drawing(
                "Trend Line",
                {"extendRight": True},
                startDatetime=at(0),
                startPrice=20.0,
                endDatetime=at(50),
                endPrice=40.0,
            )
        )
        assert isinstance(line, Stroke)
        assert points(line)[1] == pytest.approx((1200.0, 320 - 80 * 1195 / 500))

    def test_a_trend_line_shows_its_change_if_asked(self) -> None:
        found = drawn(drawing("Trend Line", {"showStats": True}, text="Up", **CORNERS))
        assert texts(found) == ["Up", "50.00 (+250.00%)"]

    def test_an_arrow_has_its_head_at_the_end(self) -> None:
        found = drawn(drawing("Arrow Marker", {"arrowColor": "#010203"}, **CORNERS))
        (head,) = of(found, Band)
        assert (head.x[-1], head.upper[-1], head.lower[-1]) == (305.0, 120.0, 120.0)
        assert head.color == of(found, Stroke)[0].color == (1, 2, 3, 255)


class TestAreas:
    def test_a_rectangle_has_a_fill_and_a_border(self) -> None:
        found = drawn(drawing("Rectangle", {"backgroundColor": "rgba(1,2,3,0.5)"}, text="Zone", **CORNERS))
        assert edges(of(found, Boxes)[0]) == (105.0, 120.0, 305.0, 320.0)
        assert of(found, Boxes)[0].color == (1, 2, 3, 128)
        assert [points(line) for line in of(found, Stroke)] == [
            [(105.0, 120.0), (305.0, 120.0)],
            [(105.0, 320.0), (305.0, 320.0)],
        ]
        (text,) = of(found, Label)
        assert (text.text, text.x, text.anchor) == ("Zone", 205.0, "center")

    def test_transparency_and_fill_of_a_rectangle(self) -> None:
        (clear, *_) = of(drawn(drawing("Rectangle", {"transparency": 60}, **CORNERS)), Boxes)
        assert clear.color[3] == 102
        assert len(of(drawn(drawing("Rectangle", {"fillBackground": False}, **CORNERS)), Boxes)) == 2  # the sides only

    def test_an_extended_rectangle_reaches_beyond_the_edge(self) -> None:
        assert edges(of(drawn(drawing("Rectangle", {"extendRight": True}, **CORNERS)), Boxes)[0])[2] > 1200

    def test_a_date_range_counts_bars_and_time(self) -> None:
        found = drawn(drawing("Date Range", startDatetime=at(10), endDatetime=at(40)))
        assert texts(found) == ["30 bars, 1d 6h"]
        fill = edges(of(found, Boxes)[0])
        assert (fill[0], fill[2]) == (105.0, 405.0)
        assert fill[1] <= 0
        assert fill[3] >= 400
        backwards = drawn(drawing("Date Range", startDatetime=at(40), endDatetime=at(10)))
        assert texts(backwards) == ["−30 bars, 1d 6h"]

    def test_a_date_and_price_range_has_arrows_both_ways(self) -> None:
        found = drawn(drawing("Date Price Range", text="Run", **CORNERS))
        assert texts(found) == ["Run", "50.00 (+250.00%)", "20 bars, 20h"]
        assert len(of(found, Band)) == 2
        hidden = drawn(drawing("Date Price Range", {"showStats": False}, **CORNERS))
        assert not texts(hidden)


class TestFibonacci:
    def test_levels_are_between_the_end_and_the_start(self) -> None:
        found = drawn(drawing("Fib Retracement", **CORNERS))
        levels = [line for line in of(found, Stroke) if line.y[0] == line.y[1]]
        assert [line.y[0] for line in levels] == pytest.approx([400 - 4 * (70 - 50 * level) for level in LEVELS])
        assert {tuple(line.x) for line in levels} == {(105.0, 305.0)}
        assert texts(found)[:3] == ["0 (70.00)", "0.236 (58.20)", "0.382 (50.90)"]
        assert len(of(found, Boxes)) >= 6

    def test_extended_levels_and_hidden_labels(self) -> None:
        found = drawn(drawing("Fib Retracement", {"extendRight": True, "showLabel": False}, **CORNERS))
        assert not texts(found)
        assert max(line.x[-1] for line in of(found, Stroke)) == 1200.0


class TestPositions:
    def test_a_long_position_has_a_green_box_above_a_red_one(self) -> None:
        found = drawn(drawing("Long Position", entryPrice=50.0, targetPrice=80.0, stopPrice=40.0))
        green, red = of(found, Boxes)[:2]
        assert edges(green) == (745.0, 80.0, 995.0, 200.0)
        assert edges(red) == (745.0, 200.0, 995.0, 240.0)
        assert (green.color[:3], red.color[:3]) == (THEME.up[:3], THEME.down[:3])
        assert texts(found) == [
            "Target 80.00 (+60.00%)",
            "Stop 40.00 (−20.00%)",
            "Entry 50.00 · Risk/reward 3.00",
        ]

    def test_a_short_position_has_its_target_below(self) -> None:
        found = drawn(
            drawing(
                "Short Position",
                {"showStats": False},
                entryPrice=50.0,
                targetPrice=30.0,
                stopPrice=55.0,
                startDatetime=at(20),
                endDatetime=at(40),
            )
        )
        assert edges(of(found, Boxes)[0]) == (205.0, 200.0, 405.0, 280.0)
        assert texts(found) == ["Target 30.00 (−40.00%)", "Stop 55.00 (+10.00%)"]

    def test_a_position_that_begins_after_the_last_bar_is_drawn_beside_it(self) -> None:
        found = drawn(
            drawing("Long Position", entryPrice=50.0, targetPrice=80.0, stopPrice=40.0, startDatetime=at(105))
        )
        assert edges(of(found, Boxes)[0])[::2] == (1055.0, 1115.0)

    def test_levels_beyond_the_panel_are_named_at_its_edge(self) -> None:
        found = drawn(drawing("Long Position", entryPrice=50.0, targetPrice=500.0, stopPrice=-500.0))
        target, stop = of(found, Label)[:2]
        assert (target.text, stop.text) == ("Target 500.00 (+900.00%)", "Stop −500.00 (−1,100.00%)")
        assert 26 < target.y < 50
        assert 370 < stop.y < 400
        assert not drawn(drawing("Long Position", entryPrice=150.0, targetPrice=160.0, stopPrice=140.0))

    def test_nothing_at_risk_has_no_ratio(self) -> None:
        found = drawn(drawing("Long Position", entryPrice=50.0, targetPrice=80.0, stopPrice=50.0))
        assert texts(found)[-1] == "Entry 50.00 · Risk/reward –"


class TestMarks:
    def test_arrows_have_their_tips_at_the_price(self) -> None:
        for name, way, color in (("Arrow Mark Up", 1, THEME.up), ("Arrow Mark Down", -1, THEME.down)):
            found = drawn(drawing(name, text="Here", datetime=at(10), price=50))
            (head,), (text,) = of(found, Band), of(found, Label)
            tip = head.upper[1] if way > 0 else head.lower[1]
            assert (head.x[1], tip, head.color) == (105.0, 200.0, color)
            assert (text.y - 200) * way > 0

    def test_a_text_has_its_lines_below_each_other_at_its_point(self) -> None:
        found = of(
            drawn(drawing("Text", {"fontSize": 20, "fontBold": True}, text="One\ntwo", datetime=at(10), price=50)),
            Label,
        )
        assert [(label.text, label.x, label.size, label.bold) for label in found] == [
            ("One", 105.0, 20.0, True),
            ("two", 105.0, 20.0, True),
        ]
        assert found[0].y < 200 < found[1].y

    def test_a_text_at_the_edge_is_moved_into_the_panel(self) -> None:
        (label,) = of(drawn(drawing("Text", text="A long text at the end", datetime=at(119), price=99.9)), Label)
        assert label.x < 1100
        assert label.y > 8

    def test_a_callout_points_at_its_point(self) -> None:
        place: dict[str, Any] = {"datetime": at(10), "price": 50.0, "endDatetime": at(20), "endPrice": 80.0}
        found = drawn(drawing("Callout", text="Look", **place))
        (line,), (text,) = of(found, Stroke), of(found, Label)
        assert points(line) == [(105.0, 200.0), (205.0, 80.0)]
        assert (text.text, text.x) == ("Look", 205.0)
        assert texts(drawn(drawing("Callout", text="Look", datetime=at(10), price=50.0))) == ["Look"]

    def test_texts_have_no_control_characters_and_are_cut(self) -> None:
        text = "a\x00b\x1b[0m\u202e\r\n" + "long " * 100
        found = texts(drawn(drawing("Text", text=text, datetime=at(10), price=50)))
        assert all(each.isprintable() for line in found for each in line)
        assert sum(map(len, found)) <= 300
        assert found[-1].endswith("…")


class TestScale:
    def test_a_price_just_beyond_the_bars_enlarges_the_scale_and_is_tagged(self) -> None:
        shown = hours().tail(120)
        low, high = float(shown.low.min()), float(shown.high.max())
        near, far = high + 0.25 * (high - low), high + 0.4 * (high - low)
        plain = scene_of(config())
        scene = scene_of(
            config(drawings=(drawing("Horizontal Line", price=near), drawing("Horizontal Line", price=far)))
        )
        assert scene.outside == [1]
        assert len(axis(scene)[0]) >= 2
        bold = [label.text for label in axis(scene)[0] if label.bold]
        assert f"{near:,.2f}" in bold
        assert f"{far:,.2f}" not in bold
        only_far = scene_of(config(drawings=(drawing("Horizontal Line", price=far),)))
        assert [label.text for label in axis(only_far)[0]] == [label.text for label in axis(plain)[0]]
        assert only_far.outside == [0]

    def test_a_price_can_be_left_out_of_the_axis(self) -> None:
        price = float(hours().close[-1]) * 1.002
        scene = scene_of(config(drawings=(drawing("Horizontal Line", {"showPrice": False}, price=price),)))
        assert f"{price:,.2f}" not in [label.text for label in axis(scene)[0]]

    def test_tags_at_nearly_the_same_price_do_not_overlap(self) -> None:
        last = float(hours().close[-1])
        lines = tuple(drawing("Horizontal Line", price=last * factor) for factor in (1.0002, 0.9999, 1.0001))
        bold = sorted((label.y, label.text) for label in axis(scene_of(config(drawings=lines)))[0] if label.bold)
        assert [text for _, text in bold] == [f"{last * factor:,.2f}" for factor in (1.0002, 1.0001, 1, 0.9999)]
        assert min(np.diff([y for y, _ in bold])) >= 18

    def test_what_is_outside_is_reported(self) -> None:
        far: dict[str, Any] = {"startDatetime": at(300), "endDatetime": at(400)}
        position: dict[str, Any] = {"entryPrice": 50.0, "targetPrice": 60.0, "stopPrice": 45.0}
        asked = [
            drawing("Vertical Line", datetime=at(-5)),
            drawing("Trend Line", startPrice=10.0, endPrice=20.0, **far),
            drawing("Trend Line", **CORNERS),
            drawing("Long Position", **position),
            drawing("Long Position", **position, startDatetime=at(300)),
            drawing("Rectangle", startPrice=150.0, endPrice=160.0, startDatetime=at(1), endDatetime=at(9)),
            drawing("Text", text="x", datetime=at(10), price=-5),
            drawing("Date Range", startDatetime=at(10), endDatetime=at(20), startPrice=1e9),
        ]
        assert outside(asked, PICTURE, PANEL) == [0, 1, 4, 5, 6]
        for number in (0, 1, 4, 5, 6):
            assert not drawn(asked[number])

    def test_drawings_at_the_bottom_are_below_the_candles(self) -> None:
        low, top = (
            scene_of(
                config(drawings=(drawing("Horizontal Line", {"lineColor": "#010203"}, on_top=each, price=LAST_CLOSE),))
            )
            for each in (False, True)
        )
        first = [[layer.items for layer in scene.layers] for scene in (low, top)]
        for layers, below in zip(first, (True, False), strict=True):
            line = next(
                n for n, found in enumerate(layers) for item in found if getattr(item, "color", 0) == (1, 2, 3, 255)
            )
            candle = next(
                n for n, found in enumerate(layers) for item in found if getattr(item, "color", 0) == THEME.up
            )
            assert (line < candle) is below


def test_overrides_without_an_effect_are_reported() -> None:
    asked = (
        drawing("Horizontal Line", {"extendRight": True, "lineColor": "red", "lineWidth": 2}, price=1),
        drawing(
            "Long Position", {"accountSize": 1000, "lotSize": 1, "risk": 5}, entryPrice=1, targetPrice=2, stopPrice=1
        ),
    )
    assert unsupported(config(drawings=asked)) == [
        "drawings[0].override.extendRight is not supported",
        "drawings[0].override.lineColor cannot be 'red'",
        "drawings[1].override.accountSize is not supported",
        "drawings[1].override.lotSize is not supported",
        "drawings[1].override.risk is not supported",
    ]


def test_a_chart_without_bars_has_no_drawings() -> None:
    scene = scene_of(config(drawings=tuple(one_of_each(BARS))), 0, BARS.take(slice(0, 0)))
    assert scene.outside == list(range(15))


LAST = int(BARS.time[-1])
TIMES = st.one_of(
    st.integers(FIRST - 50 * HOUR, LAST + 50 * HOUR), st.sampled_from([-2_000_000_000, 0, FIRST, LAST, 7_000_000_000])
).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
PRICES = st.one_of(
    st.floats(float(BARS.low.min()) * 0.9, float(BARS.high.max()) * 1.1),
    st.floats(-1e15, 1e15),
    st.sampled_from([0.0, 5e-324, -1e308, 1e308]),
)
COLORS = st.sampled_from(["#fff", "#01020304", "rgb(1,2,3)", "rgba(1, 2, 3, .5)", "rgba(1,2,3,9)", "red", 7])
VALUES = st.one_of(
    COLORS, st.booleans(), st.integers(-1, 200), st.floats(0, 100), st.sampled_from(["dashed", "x", None])
)


@st.composite
def drawings(draw: st.DrawFn) -> ConfigAnnotation:
    """Returns a drawing of any kind with any valid coordinates."""
    kind = draw(st.sampled_from(list(KINDS.values())))
    chosen = [*kind.required, *(name for name in kind.optional if draw(st.booleans()))]
    return ConfigAnnotation(
        kind,
        {name: draw(PRICES) for name in chosen if TYPES[name] is Coordinate.PRICE},
        {name: draw(TIMES) for name in chosen if TYPES[name] is Coordinate.TIME},
        draw(st.text(max_size=40)) if "text" in chosen else "",
        draw(st.dictionaries(st.sampled_from([*OVERRIDES, "other"]), VALUES, max_size=5)),
        draw(st.booleans()),
    )


@given(
    st.lists(drawings(), min_size=1, max_size=4),
    st.sampled_from(["regular", "logarithmic", "percent", "indexedTo100"]),
    st.integers(0, 20),
)
@settings(deadline=None, max_examples=60)
def test_random_drawings_never_break_a_picture(found: list[ConfigAnnotation], scale: str, empty: int) -> None:
    asked = config(width=400, height=300, scale=scale, shift_right=empty, drawings=tuple(found))
    unsupported(asked)
    scene = scene_of(asked, 40, BARS)
    with np.errstate(all="raise"):
        render(scene)
    ET.fromstring(svg(scene))
    for layer in scene.layers:
        assert 0 <= layer.clip.left <= layer.clip.right <= 400
        assert 0 <= layer.clip.top <= layer.clip.bottom <= 300
    for item in items(scene, Stroke):
        assert np.isfinite(item.x).all()
        assert (np.diff(item.x) >= 0).all()
