"""Options of chart configs: what is shown around the price, and in which colours."""

from __future__ import annotations

from typing import Any

import pytest

from openbell.charts.annotations.overrides import color_of
from openbell.charts.config.choices import SCALES, STYLES
from openbell.charts.config.looks import look_of, unsupported
from openbell.charts.config.model import Watermark
from openbell.charts.raster import render
from openbell.charts.scene import Boxes, Label, Scene, Stroke
from openbell.charts.svg import svg
from tests.charts.configs import config, scene_of, study
from tests.charts.pictures import axis, edges, hours, items, labels

RSI = study("RSI")


def shown(override: dict[str, Any], *studies: Any, **fields: Any) -> Scene:
    """Returns the scene of a config whose overrides all have an effect."""
    asked = config(theme="light", override=override, studies=studies, **fields)
    assert unsupported(asked) == []
    return scene_of(asked)


def texts(scene: Scene) -> str:
    return "|".join(label.text for label in labels(scene))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("scale", SCALES)
def test_every_style_and_scale_of_configs_can_be_drawn(style: str, scale: str) -> None:
    assert scene_of(config(style=style, scale=scale), 50).layers


def test_an_indexed_scale_has_the_first_close_as_100() -> None:
    scene = scene_of(config(scale="indexedTo100"))
    bars = hours().tail(120)
    *ticks, tag = axis(scene)[0]
    assert tag.text == f"{100 * bars.close[-1] / bars.close[0]:.2f}"
    assert "100.00" in [tick.text for tick in ticks]
    plain = scene_of(config()).text()
    assert plain.count("boxes") == scene.text().count("boxes")


def test_the_axis_has_the_times_of_its_zone() -> None:
    utc, tokyo = (scene_of(config(timezone=zone)) for zone in ("Etc/UTC", "Asia/Tokyo"))
    days = [{label.text: label.x for label in labels(scene) if label.text.isdigit()} for scene in (utc, tokyo)]
    slot = days[0]["11"] - days[0]["10"]
    assert days[0]["11"] - days[1]["11"] == pytest.approx(slot * 9 / 24)


def test_empty_bars_at_the_right() -> None:
    plain, shifted = (shown({}, study("MA", length=2), shift_right=each) for each in (0, 40))
    ends = [next(item for item in items(scene, Stroke) if len(item.x) == 120).x[-1] for scene in (plain, shifted)]
    right = edges(shifted)[0]
    assert ends[1] < ends[0]
    assert right - ends[1] > 40 * (right / 170)


class TestSwitches:
    def test_a_hidden_legend(self) -> None:
        assert texts(shown({}, RSI)).startswith("BINANCE") or "BINANCE" in texts(shown({}, RSI))
        hidden = texts(shown({"showLegend": False}, RSI))
        assert "BINANCE" not in hidden
        assert "RSI(14)" not in hidden

    def test_a_legend_without_values(self) -> None:
        found = [label for label in labels(shown({"showLegendValues": False}, RSI)) if label.x < 900]
        assert any("RSI(14)" in label.text for label in found)
        assert not any("46.38" in label.text for label in found)

    def test_a_title_without_prices_or_change(self) -> None:
        assert "O |" in texts(shown({}))
        assert "O |" not in texts(shown({"showSeriesOHLC": False}))
        assert "+0.13%" in texts(shown({"showSeriesOHLC": False}))
        assert "+0.13%" not in texts(shown({"showBarChange": False}))

    def test_a_chart_without_a_price_line(self) -> None:
        dotted = [
            sum(item.dash == (2.0, 3.0) for item in items(shown({"showPriceLine": each}), Stroke))
            for each in (True, False)
        ]
        assert dotted == [1, 0]

    def test_last_values_at_the_axis(self) -> None:
        def tags(override: dict[str, Any]) -> list[int]:
            return [sum(label.bold for label in panel) for panel in axis(shown(override, RSI))]

        assert tags({}) == [1, 1]
        assert tags({"showSeriesLastValue": False}) == [0, 1]
        assert tags({"showStudyLastValue": False}) == [1, 0]

    def test_watermarks_are_behind_the_price(self) -> None:
        scene = shown({"showSymbolWatermark": True}, watermark=Watermark("Mine", 40.0, 0.5))
        first = [item for item in scene.layers[0].items if isinstance(item, Label)]
        assert [(each.text, each.size, each.color[3]) for each in first] == [
            ("BINANCE:BTCUSDT", 56.0, 40),
            ("Mine", 40.0, 128),
        ]
        assert first[1].y > first[0].y

    def test_a_wide_watermark_is_made_to_fit(self) -> None:
        scene = shown({}, watermark=Watermark("A very long text " * 5, 64.0))
        (mark,) = scene.layers[0].items
        assert isinstance(mark, Label)
        assert mark.size < 30

    @pytest.mark.parametrize("text", ["", " \n", "a\x00\ud800b"])
    def test_a_watermark_without_printable_text_breaks_nothing(self, text: str) -> None:
        scene = shown({}, watermark=Watermark(text, 0.0, 7.0))
        render(scene)
        svg(scene).encode()
        assert all(label.text.isprintable() and label.text for label in labels(scene))


class TestSizes:
    def test_the_height_of_the_price_panel(self) -> None:
        assert edges(shown({"mainPaneHeight": 300}, RSI))[1][0] == (0.0, 300.0)
        top, bottom = edges(shown({"mainPaneHeight": 5000}, RSI))[1][1]
        assert bottom - top == pytest.approx(23.0)

    def test_the_range_of_the_price(self) -> None:
        scene = shown({"priceRange": {"from": 100_000, "to": 200_000}})
        prices = [float(label.text.replace(",", "")) for label in axis(scene)[0] if not label.bold]
        assert min(prices) >= 100_000
        assert min(prices) <= 110_000
        assert max(prices) >= 190_000

    def test_the_font_of_the_axes(self) -> None:
        assert {label.size for label in axis(shown({"scalesFontSize": 16}))[0]} == {16.0}


class TestColours:
    def test_candles_have_their_own_colours(self) -> None:
        names = ("upColor", "downColor", "borderUpColor", "borderDownColor", "wickUpColor", "wickDownColor")
        style = {f"candleStyle.{name}": f"rgb({at + 1}, 0, 0)" for at, name in enumerate(names)}
        colors = {item.color[0] for item in items(shown({"style": style}), Boxes)}
        assert {1, 2, 3, 4, 5, 6} <= colors

    def test_parts_of_candles_can_be_hidden(self) -> None:
        def count(**style: bool) -> int:
            scene = shown({"style": {f"candleStyle.{name}": value for name, value in style.items()}})
            return sum(len(item.left) for item in items(scene, Boxes))

        assert count() - count(drawWick=False) == 120
        assert count(drawBody=False) - count() == 120

    def test_volume_has_its_own_colours(self) -> None:
        scene = shown(
            {},
            study("Volume", {"Volume.color.0": "#ff0000", "Volume.color.1": "#0000ff", "Volume.plottype": "columns"}),
        )
        pale = {item.color[:3] for item in items(scene, Boxes)}
        assert {(255, 166, 166), (166, 166, 255)} <= pale

    def test_a_tag_in_a_light_colour_has_black_text(self) -> None:
        style = {"candleStyle.upColor": "#ffffff", "candleStyle.downColor": "#ffffff"}
        tag = axis(shown({"style": style}))[0][-1]
        assert tag.color == (0, 0, 0, 255)


def test_the_look_is_that_of_the_config() -> None:
    look = look_of(config(width=800, height=600, style="hiLo", theme="dark", scale="logarithmic"), 2.0)
    found = (look.width, look.height, look.scale, look.style, look.theme, look.price_scale, look.volume)
    assert found == (800, 600, 2.0, "hilo", "dark", "log", False)


def test_what_has_no_effect_is_reported() -> None:
    override = {
        "showMainPane": False,
        "showLegend": "no",
        "mainPaneHeight": 3,
        "scalesFontSize": True,
        "priceRange": {"from": 1, "to": 2, "margin": 3},
        "style": {"candleStyle.upColor": "green", "lineStyle.color": "#fff", "candleStyle.drawWick": 1},
        "x" * 200: 1,
    }
    assert unsupported(config(override=override)) == [
        "override.showMainPane is not supported",
        "override.showLegend cannot be 'no'",
        "override.mainPaneHeight cannot be 3",
        "override.scalesFontSize cannot be True",
        "override.priceRange.margin is not supported",
        "override.style.candleStyle.upColor cannot be 'green'",
        "override.style.lineStyle.color is not supported",
        "override.style.candleStyle.drawWick cannot be 1",
        f"override.{'x' * 79}… is not supported",
    ]
    assert unsupported(config(style="line", override={"style": {"candleStyle.upColor": "#fff"}})) == [
        "override.style has no effect on the style line"
    ]
    assert unsupported(config(override={"priceRange": {"from": 2, "to": 1}, "style": 3})) == [
        "override.priceRange cannot be {'from': 2, 'to': 1}",
        "override.style is not supported",
    ]


@pytest.mark.parametrize(
    ("text", "color"),
    [
        ("#abc", (170, 187, 204, 255)),
        ("#0A0b0c", (10, 11, 12, 255)),
        ("#0a0b0c80", (10, 11, 12, 128)),
        ("rgb(8, 153,129)", (8, 153, 129, 255)),
        ("RGBA(1,2,3,0.5)", (1, 2, 3, 128)),
        ("rgba(1,2,3,.25)", (1, 2, 3, 64)),
        *(
            (bad, None)
            for bad in ("", "red", "#ab", "rgb(256,0,0)", "rgb(1,2)", "rgba(1,2,3,1.5)", "rgba(1,2,3,.)", 5, None)
        ),
    ],
)
def test_colours(text: object, color: object) -> None:
    assert color_of(text) == color
