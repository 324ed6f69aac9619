"""Colours of indicators: by the roles of their lines, no hue twice on a panel, and those that a caller asks for."""

from __future__ import annotations

from itertools import pairwise

import pytest

from openbell.charts.choices import THEME_NAMES
from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.charts.scene import Band, Boxes, Color, Scene, Stroke
from openbell.charts.styles import panel_colors, parse_styled
from openbell.charts.themes import THEMES
from openbell.indicators.evaluation import evaluate
from openbell.market.errors import InvalidParameter
from tests.charts.pictures import chart_scene, computed, hours, items

DARK = THEMES["dark"]
AVERAGES: list[str | dict[str, object]] = ["sma", "ema_line", "wma", "hma", "dema", "tema", "vwma", "kama"]


def lines(scene: Scene) -> list[Color]:
    """The colours of the lines with a value for each bar."""
    return [stroke.color for stroke in items(scene, Stroke) if len(stroke.x) >= 200]


def styled(*entries: dict[str, object]) -> Scene:
    requests, plots = parse_styled(entries)
    bars = hours()
    return compose(bars.tail(200), evaluate(bars, 200, requests, {}, None), Look(), "", plots=plots)


@pytest.mark.parametrize("theme", THEME_NAMES)
@pytest.mark.parametrize("name", ["bbands", "keltner", "donchian", "envelope", "vwap_bands", "ma_channel"])
def test_a_channel_has_one_hue_and_a_lighter_fill(name: str, theme: str) -> None:
    (each,) = computed(hours(), [name], 200)
    ink = panel_colors([each], THEMES[theme], {})[name]
    assert ink.main in THEMES[theme].hues.values()
    edge = ink.lines["upper"]
    assert ink.lines["lower"] == edge
    assert ink.main in ink.lines.values()
    (band,) = items(chart_scene(Look(theme=theme), entries=[name]), Band)
    assert band.color[:3] == ink.main[:3]
    assert band.color[3] < 64


def test_macd_has_two_hues_and_a_histogram_of_four_tones() -> None:
    scene = chart_scene(entries=["macd"], badge="")
    assert lines(scene) == [DARK.hues["blue"], DARK.hues["orange"]]
    tones = {box.color for box in items(scene, Boxes) if len(box.left) > 1}
    assert {DARK.up, DARK.down} <= tones


def test_the_averages_of_a_ribbon_are_tones_of_one_hue() -> None:
    ribbon = lines(chart_scene(entries=["ema_stack"]))
    light = [sum(color[:3]) for color in ribbon]
    assert len(set(ribbon)) == 4
    assert all(fast > slow for fast, slow in pairwise(light)), "the fast average stands out most"
    assert all(red > green > blue for red, green, blue, _ in ribbon), "all are orange"


@pytest.mark.parametrize("theme", THEME_NAMES)
def test_no_hue_is_used_twice_while_others_are_free(theme: str) -> None:
    hues = THEMES[theme].hues
    shown = lines(chart_scene(Look(theme=theme), entries=AVERAGES))
    assert len(shown) == len(set(shown)) == len(hues)
    again = lines(chart_scene(Look(theme=theme), entries=[*AVERAGES, "alma"]))
    assert len(set(again)) == 9, "a hue that is used again has another tone"


def test_an_indicator_with_a_hue_of_its_own_has_it_in_any_order() -> None:
    for entries in (["sma", "bbands"], ["bbands", "sma"]):
        drawn = computed(hours(), [*entries], 200)
        inks = panel_colors(drawn, DARK, {})
        assert inks["bbands"].main == DARK.hues["blue"]
        assert inks["sma"].main != DARK.hues["blue"]


@pytest.mark.parametrize("style", ["line", "area"])
def test_the_price_line_and_the_indicators_differ(style: str) -> None:
    price, *others = lines(chart_scene(Look(style=style), entries=["bbands", "sma", "ema_stack"]))
    assert price == DARK.accent
    assert DARK.accent not in others


def test_rising_and_falling_lines_have_the_colours_of_candles() -> None:
    (each,) = computed(hours(), ["adx"], 200)
    ink = panel_colors([each], DARK, {})["adx"]
    assert (ink.lines["+DI"], ink.lines["-DI"]) == (DARK.up, DARK.down)


class TestColorAndWidth:
    """`color` and `width` of an indicator."""

    def test_all_lines_of_one_hue_have_the_colour(self) -> None:
        scene = styled({"name": "bbands", "color": "#ff0000", "width": 3})
        upper, middle, lower = (stroke for stroke in items(scene, Stroke) if len(stroke.x) == 200)
        assert upper.color == lower.color == (255, 0, 0, 255)
        assert middle.color[0] > middle.color[1] + 100, "a softer red"
        assert {each.width for each in (upper, middle, lower)} == {3.0}
        (band,) = items(scene, Band)
        assert band.color[:3] == (255, 0, 0)

    @pytest.mark.parametrize("name", ["supertrend", "sar", "aroon", "rsi", "zigzag", "pivot"])
    def test_it_replaces_the_colours_of_every_form(self, name: str) -> None:
        more: dict[str, object] = {"deviation": 2.0} if name == "zigzag" else {}
        scene = styled({"name": name, "color": "#123456", **more})
        shown = {item.color for layer in scene.layers for item in layer.items if not isinstance(item, Boxes)}
        assert (0x12, 0x34, 0x56, 255) in shown

    def test_others_keep_their_hues_and_settings(self) -> None:
        requests, plots = parse_styled(["sma", {"name": "rsi", "length": 21, "width": 2}])
        assert [request.key for request in requests] == ["sma", "rsi"]
        assert requests[1].settings["length"] == 21
        assert [(plot.request.key, plot.color, plot.width) for plot in plots] == [("rsi", None, 2.0)]

    @pytest.mark.parametrize(
        ("style", "message"),
        [
            ({"color": "reddish"}, "color must be like #ff9800, not 'reddish'"),
            ({"color": 7}, "color must be like"),
            ({"width": 0}, "width must be 0.5 to 10 pixels, not '0'"),
            ({"width": "thick"}, "width must be 0.5 to 10 pixels"),
        ],
    )
    def test_bad_values_are_refused(self, style: dict[str, object], message: str) -> None:
        with pytest.raises(InvalidParameter, match=message):
            parse_styled([{"name": "rsi", **style}])
