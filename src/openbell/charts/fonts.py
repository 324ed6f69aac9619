"""Masks and widths of texts in the font that ships with the package."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import ImageFont

_FOLDER = Path(__file__).parent / "fonts"
CAP_HEIGHT = 0.727
"""The height of Inter's capitals and digits as a share of the font size, to centre texts vertically."""

Mask = npt.NDArray[np.uint8]


@lru_cache(maxsize=64)
def _font(size: float, bold: bool) -> ImageFont.FreeTypeFont:
    name = "Inter-SemiBold.ttf" if bold else "Inter-Regular.ttf"
    return ImageFont.truetype(_FOLDER / name, size, layout_engine=ImageFont.Layout.BASIC)


@lru_cache(maxsize=4096)
def width(text: str, size: float, bold: bool = False) -> float:
    """Returns the width of a text in pixels."""
    return float(_font(size, bold).getlength(text))


@lru_cache(maxsize=1024)
def mask(text: str, size: float, bold: bool = False) -> tuple[Mask, int, int]:
    """Returns the coverage of each pixel by a text, and the offset of its top left corner from the start of its baseline."""
    pixels, offset = _font(size, bold).getmask2(text, mode="L", anchor="ls")
    array = np.array(pixels, dtype=np.uint8).reshape(pixels.size[1], pixels.size[0])
    return array, int(offset[0]), int(offset[1])
