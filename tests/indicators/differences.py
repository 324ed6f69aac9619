"""Where an indicator differs from its reference, in the words of its page.

Keys are `indicator.line`. A difference that is gone must be taken out, and one that the page does not name fails a test.
"""

from __future__ import annotations

from math import nan

STEADY = "while the RSI does not move"

VALUES: dict[str, tuple[str, str]] = {
    "stoch_rsi.K": ("ticks", STEADY),
    "stoch_rsi.D": ("ticks", STEADY),
    "cipher_b.StochK": ("ticks", STEADY),
    "cipher_b.StochD": ("ticks halt", STEADY),
    "connors_rsi.CRSI": ("halt", "counts average gains and losses below 1e-10 as none"),
    **dict.fromkeys(
        ("volume_macd.MACD", "volume_macd.Signal", "volume_macd.Histogram"),
        ("halt", "while a whole window has no volume its simple average counts"),
    ),
}
"""The series on which a line differs, and words of its page."""

FIRST: dict[str, str] = dict.fromkeys(
    ("volatility_stop.stop", "volatility_stop.direction"), "TradingView begins at the first bar"
)
"""Lines whose first value is at another bar than TradingView's, and words of their page."""

SETTLED = {"volatility_stop": 120}
"""The number of bars after which an indicator of `FIRST` equals its reference: both have changed sides."""

NEUTRAL: dict[str, float] = {
    **dict.fromkeys(
        (
            *("bop.BOP", "cci.CCI", "chop_zone.Angle", "cmf.CMF", "cmo.CMO", "ease_of_movement.EOM", "fisher.Fisher"),
            *("fisher.Trigger", "rvi.RVI", "rvi.Signal", "trend_strength.TSI", "volume_spread.spread"),
        ),
        0.0,
    ),
    **dict.fromkeys(
        (
            *("cipher_b.StochK", "mfi.MFI", "rsi_mfi_stoch.MFI", "rsi_mfi_stoch.StochD", "rsi_mfi_stoch.StochK"),
            *("stoch.D", "stoch.K", "stoch_rsi.D", "stoch_rsi.K", "ultimate.UO", "volume_balance.balance"),
        ),
        50.0,
    ),
    **dict.fromkeys(("percent_b.%b", "volume_spread.close_position"), 0.5),
    **dict.fromkeys(("vortex.VI+", "vortex.VI-"), 1.0),
    "choppiness.CHOP": 100.0,
    "williams_r.%R": -50.0,
}
"""The value while nothing moves or nothing is traded, where TradingView has none or another constant."""

ROUNDED: dict[str, float] = {
    **dict.fromkeys(("volatility_ohlc.Volatility", "volatility_zero_trend.Volatility"), 0.0),
    **dict.fromkeys(("relative_volume.RVOL", "vwma.VWMA"), nan),
}
"""The value while nothing moves or nothing is traded, which the reference has but for the rounding of its running sums."""
