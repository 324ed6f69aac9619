"""The look of a chart: size, style, theme and scale."""

from __future__ import annotations

from dataclasses import dataclass

from openbell.charts.choices import (
    LARGEST,
    LEAST_SCALE,
    MOST_PIXELS,
    MOST_SCALE,
    SCALES,
    SMALLEST,
    STYLES,
    THEME_NAMES,
)
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import check_one_of


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a chart. Raises `InvalidParameter` if a value is not allowed."""

    width: int = 1200
    height: int = 675
    scale: float = 1.0
    style: str = "candles"
    theme: str = "dark"
    price_scale: str = "linear"
    volume: bool = True
    last_bar: bool = True
    """Write the prices of the last bar beside the title."""

    def __post_init__(self) -> None:
        check_one_of("style", self.style, STYLES)
        check_one_of("theme", self.theme, THEME_NAMES)
        check_one_of("price_scale", self.price_scale, SCALES)
        if not LEAST_SCALE <= self.scale <= MOST_SCALE:
            raise InvalidParameter(f"scale must be between {LEAST_SCALE:g} and {MOST_SCALE:g}, not {self.scale}")
        times = f" × scale {self.scale:g}" if self.scale != 1 else ""
        for name, side in (("width", self.width), ("height", self.height)):
            if min(side, side * self.scale) < SMALLEST or max(side, side * self.scale) > LARGEST:
                raise InvalidParameter(
                    f"{name} must be {SMALLEST} to {LARGEST} pixels, scale included, not {side}{times}"
                )
        if round(self.width * self.scale) * round(self.height * self.scale) > MOST_PIXELS:
            raise InvalidParameter(
                f"a picture has at most {MOST_PIXELS:,} pixels, scale included, not {self.width}×{self.height}{times}"
            )
