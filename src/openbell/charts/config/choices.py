"""The allowed values of a chart config's fields, and the vendor's plans with their limits."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from openbell.charts.choices import LARGEST as LARGEST_SIDE
from openbell.charts.choices import MOST_PIXELS, STYLES_OF_CONFIGS
from openbell.market.timeframes import CHART

INTERVALS = tuple(CHART)
DEFAULT_INTERVAL = "1D"
PRESETS = ("1D", "5D", "1M", "3M", "6M", "1Y", "5Y", "ALL", "DTD", "WTD", "MTD", "YTD")
"""The ranges that the vendor knows. Others are sent to it as two times."""
STYLES = tuple(STYLES_OF_CONFIGS)
THEMES = ("light", "dark")
SCALES = ("regular", "percent", "indexedTo100", "logarithmic")
SESSIONS = ("regular", "extended")
FORMATS = ("png", "jpeg")
WIDTH, HEIGHT = 1200, 675
"""The size of a chart for which none is asked."""
VENDOR_WIDTH, VENDOR_HEIGHT = 800, 600
"""The size that the vendor's API draws if a request has none."""
LEAST_WIDTH, LEAST_HEIGHT = 400, 300


@dataclass(frozen=True, slots=True)
class Plan:
    """The limits of one plan."""

    name: str
    per_second: int
    burst: int
    per_day: int
    width: int
    height: int
    storage_days: int
    parameters: int
    """Studies and drawings of one chart together."""

    @property
    def resolution(self) -> str:
        """The largest size, such as `800x600`; the largest square if the number of pixels is the limit."""
        side = isqrt(MOST_PIXELS)
        return f"{min(self.width, side)}x{min(self.height, side)}"


PLANS = {
    plan.name: plan
    for plan in (
        Plan("BASIC", 1, 3, 50, 800, 600, 14, 3),
        Plan("PRO", 10, 15, 500, 1920, 1080, 30, 5),
        Plan("MEGA", 15, 25, 1000, 1920, 1600, 60, 10),
        Plan("ULTRA", 35, 50, 3000, 2048, 1920, 90, 25),
        Plan("ENTERPRISE", 35, 50, 5000, 2048, 1920, 120, 50),
    )
}
"""From the smallest to the largest."""
LARGEST = PLANS["ENTERPRISE"]
OWN = Plan("openbell", 0, 0, 0, LARGEST_SIDE, LARGEST_SIDE, LARGEST.storage_days, LARGEST.parameters)
"""What this desk's own renderer draws for its operator. It has no rate and no quota."""
