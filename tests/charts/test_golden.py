"""Display lists as text, and pixels without text, compared with golden files that a person has checked.

Set OPENBELL_WRITE_SNAPSHOTS=1 to write the golden files again, and check the pictures before you commit them.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from openbell.charts.choices import STYLES
from openbell.charts.look import Look
from openbell.charts.picture import png, rgb
from openbell.charts.raster import render
from tests.charts.configs import config, one_of_each, scene_of, study
from tests.charts.pictures import chart_scene, hours

GOLDEN = Path(__file__).parent / "golden"
WRITE = bool(os.environ.get("OPENBELL_WRITE_SNAPSHOTS"))
OFF_BY = 16
TILE = 32


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_display_list_equals_the_golden_file(theme: str) -> None:
    text = chart_scene(Look(theme=theme), count=30).text()
    file = GOLDEN / f"scene-{theme}.txt"
    if WRITE:
        file.write_text(text)
    assert text == file.read_text()


LOOKS = {style: Look(width=480, height=300, style=style) for style in STYLES} | {
    "light": Look(width=480, height=300, theme="light"),
    "log": Look(width=480, height=300, price_scale="log"),
    "percent": Look(width=480, height=300, price_scale="percent"),
    "indexed": Look(width=480, height=300, price_scale="indexed"),
    "double": Look(width=300, height=200, scale=2.0),
}


@pytest.mark.parametrize("name", LOOKS)
def test_the_pixels_equal_the_golden_picture(name: str, tmp_path: Path) -> None:
    look = LOOKS[name]
    compare(rgb(render(chart_scene(look, count=60), look.scale, text=False)), name, tmp_path)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_drawings_of_all_kinds_equal_the_golden_picture(theme: str, tmp_path: Path) -> None:
    drawings = tuple(one_of_each(hours().tail(60)))
    asked = config(theme=theme, width=1000, height=600, shift_right=3, drawings=drawings, studies=(study("RSI"),))
    scene = scene_of(asked, 60)
    assert scene.outside == []
    compare(rgb(render(scene, text=False)), f"drawings-{theme}", tmp_path)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_overlays_of_every_form_equal_the_golden_picture(theme: str, tmp_path: Path) -> None:
    pivots: dict[str, object] = {"name": "pivot", "period": "session"}
    zigzag: dict[str, object] = {"name": "zigzag", "deviation": 2.0}
    entries: list[str | dict[str, object]] = ["ichimoku", "volume_profile", "vwap", "supertrend", pivots, zigzag, "adx"]
    scene = chart_scene(Look(width=800, height=500, theme=theme), count=100, entries=entries)
    compare(rgb(render(scene, text=False)), f"overlays-{theme}", tmp_path)


def compare(pixels: npt.NDArray[np.uint8], name: str, tmp_path: Path) -> None:
    """Fails if too many pixels differ from the golden picture."""
    file = GOLDEN / f"{name}.png"
    if WRITE:
        Image.fromarray(np.ascontiguousarray(pixels)).save(file, optimize=True)
    expected = np.asarray(Image.open(file).convert("RGB"))
    assert pixels.shape == expected.shape
    off = np.abs(pixels.astype(int) - expected.astype(int)).max(axis=2) > OFF_BY
    tiles = [
        off[y : y + TILE, x : x + TILE].mean()
        for y in range(0, off.shape[0], TILE)
        for x in range(0, off.shape[1], TILE)
    ]
    if off.mean() > 0.001 or max(tiles) > 0.05:
        difference = np.where(off[:, :, None], [255, 0, 0], expected // 2).astype(np.uint8)
        Image.fromarray(difference).save(tmp_path / "difference.png")
        pytest.fail(f"{off.sum()} pixels differ, worst tile {max(tiles):.1%}: see {tmp_path / 'difference.png'}")


def test_one_candle_in_another_colour_would_be_found() -> None:
    """Tests the comparison itself: its limits are lower than the difference of one candle."""
    look = LOOKS["candles"]
    pixels = rgb(render(chart_scene(look, count=60), look.scale, text=False)).astype(int)
    other = pixels.copy()
    up = (np.abs(pixels - [8, 153, 129]).max(axis=2) < 3).nonzero()
    first = up[1] == up[1][0]
    other[up[0][first], up[1][first]] = [242, 54, 69]
    off = np.abs(pixels - other).max(axis=2) > OFF_BY
    assert max(off[y : y + TILE, x : x + TILE].mean() for y in range(0, 300, TILE) for x in range(0, 480, TILE)) > 0.005


def test_the_same_scene_gives_the_same_bytes() -> None:
    look = Look()
    one, two = (png(render(chart_scene(look), look.scale)) for _ in range(2))
    assert one == two
