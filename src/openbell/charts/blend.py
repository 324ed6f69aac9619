"""Blends colours into packed pixels: red in the lowest byte, then green and blue."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from openbell.charts.scene import Color
from openbell.market.bars import Values

Pixels = npt.NDArray[np.uint32]
Shares = npt.NDArray[np.uint32]
"""Shares of a colour in 256ths."""
_RED_BLUE, _GREEN = np.uint32(0xFF00FF), np.uint32(0x00FF00)
_HALF_RED_BLUE, _HALF = np.uint32(0x800080), np.uint32(0x80)
_WHOLE, _BITS = np.uint32(256), np.uint32(8)


def packed(color: Color) -> np.uint32:
    """Returns a colour as a pixel."""
    return np.uint32(color[0] | color[1] << 8 | color[2] << 16)


def blend(pixels: Pixels | np.uint32, color: Color, share: Shares | np.uint32) -> Pixels:
    """Returns pixels with a colour blended in, rounded. Red and blue are multiplied together."""
    rest = _WHOLE - share
    one: Pixels = np.multiply(pixels & _RED_BLUE, rest)
    one += np.uint32(color[0] | color[2] << 16) * share + _HALF_RED_BLUE
    one >>= _BITS
    one &= _RED_BLUE
    two: Pixels = np.multiply((pixels & _GREEN) >> _BITS, rest)
    two += np.uint32(color[1]) * share + _HALF
    two &= _GREEN
    one |= two
    return one


def share_of(color: Color) -> np.uint32:
    """Returns the opacity of a colour in 256ths."""
    return np.uint32(round(color[3] * 256 / 255))


def shares(part: Values, color: Color) -> Shares:
    """Returns the covered parts of pixels times the colour's opacity, in 256ths."""
    return np.rint(part * (color[3] * 256 / 255)).astype(np.uint32)


@lru_cache(maxsize=256)
def shares_by_coverage(color: Color) -> Shares:
    """Returns the shares of a colour for each coverage from 0 to 255."""
    return shares(np.arange(256) / 255, color)


@lru_cache(maxsize=256)
def ramp(under: int, color: Color) -> Pixels:
    """Returns `color` blended into `under` with each coverage from 0 to 255."""
    return blend(np.uint32(under), color, shares_by_coverage(color))
