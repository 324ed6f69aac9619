"""The allowed values of a chart config's fields."""

from __future__ import annotations

INTERVALS = (
    *("1m", "2m", "3m", "5m", "15m", "30m", "45m", "1h", "2h", "3h", "4h", "6h", "8h", "12h"),
    *("1D", "2D", "3D", "1W", "1M", "3M", "6M", "1Y"),
)
DEFAULT_INTERVAL = "1D"
PRESETS = ("1D", "5D", "1M", "3M", "6M", "1Y", "5Y", "ALL", "DTD", "WTD", "MTD", "YTD")
"""The ranges that the vendor knows. Others are sent to it as two times."""
STYLES = ("bar", "candle", "line", "area", "heikinAshi", "hollowCandle", "baseline", "hiLo", "column")
THEMES = ("light", "dark")
SCALES = ("regular", "percent", "indexedTo100", "logarithmic")
SESSIONS = ("regular", "extended")
FORMATS = ("png", "jpeg")
WIDTH, HEIGHT = 1200, 675
"""The size of a chart for which none is asked."""
VENDOR_WIDTH, VENDOR_HEIGHT = 800, 600
"""The size that the vendor's API draws if a request has none."""
LEAST_WIDTH, LEAST_HEIGHT = 400, 300
