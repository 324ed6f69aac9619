"""The allowed values of a chart config's fields."""

from __future__ import annotations

from openbell.charts.choices import STYLES_OF_CONFIGS
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
