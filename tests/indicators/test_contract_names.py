"""The names of indicators and parameters that callers of chartgen use: those of its contract and of its own catalogue."""

from __future__ import annotations

import pytest

from openbell.indicators.evaluation import parse_requests
from openbell.indicators.registry import get

NAMES = {
    "ema_stack": "ema",
    "bbands": "bollinger bb",
    "keltner": "kc",
    "donchian": "dc",
    "vwap": "",
    "vwap_bands": "",
    "supertrend": "st",
    "sar": "parabolic_sar psar",
    "ichimoku": "ichi",
    "heikin_ashi": "ha",
    "pivot": "pivot_points",
    "volume_profile": "vp vpvr",
    "session_vp": "svp session_volume_profile",
    "hvn_lvn": "vp_nodes volume_nodes",
    "naked_poc": "npoc",
    "tpo": "market_profile",
    "cipher_b": "cipher cb",
    "macd": "",
    "rsi": "",
    "wavetrend": "wt",
    "stoch": "stochastic",
    "atr": "",
    "roc": "",
    "mfi": "",
    "williams_r": "willr",
    "adx": "",
    "cci": "",
    "cmf": "",
    "histvol": "hv",
    "obv": "",
    "ad": "ad_line adline",
    "kalman_volume": "kalman kvf kv",
    "rsi_mfi_stoch": "rsi_combo combo",
    "cvd": "",
    "funding": "funding_rate",
    "oi": "open_interest",
    "long_short": "ls_ratio",
    "fear_greed": "fng",
}
"""All 38 indicators with their aliases."""

PARAMETERS: dict[str, dict[str, object]] = {
    "bbands": {"period": 20, "std_dev": 2.0, "length": 20, "mult": 2.0},
    "keltner": {"period": 20, "multiplier": 1.5, "length": 20, "mult": 1.5},
    "donchian": {"period": 20, "length": 20},
    "vwap_bands": {"std_dev": 2.0, "mult": 2.0},
    "supertrend": {"period": 10, "multiplier": 3.0, "length": 10, "mult": 3.0},
    "sar": {"af_start": 0.02, "af_step": 0.02, "af_max": 0.2},
    "ichimoku": {"tenkan": 9, "kijun": 26, "senkou": 52, "senkou_b": 52},
    "volume_profile": {"bins": 24, "side": "right", "range_bars": 0, "split_up_down": False, "opacity": 0.4},
    "session_vp": {"bins": 24, "session": "daily", "show_value_area": True},
    "hvn_lvn": {
        "bins": 48,
        "neighborhood": 2,
        "min_prominence": 0.1,
        "top_n": 5,
        "show_hvn": True,
        "show_lvn": True,
    },
    "naked_poc": {"bins": 24, "session": "daily", "max_sessions": 20},
    "tpo": {"bins": 32, "side": "right"},
    "cipher_b": {
        "dot_mode": "strict",
        "wt_channel_length": 9,
        "wt_average_length": 12,
        "ch_len": 9,
        "avg_len": 12,
        "wt_oversold": -53.0,
        "wt_overbought": 53.0,
        "show_divergences": True,
    },
    "macd": {"fast": 12, "slow": 26, "signal": 9},
    "wavetrend": {"ch_len": 9, "avg_len": 12},
    "stoch": {"period": 14, "k_smooth": 3, "d_smooth": 3},
    **{name: {"length": 14, "period": 14} for name in ("rsi", "atr", "roc", "mfi", "williams_r", "adx")},
    **{name: {"length": 20, "period": 20} for name in ("cci", "cmf", "histvol")},
    "kalman_volume": {"vzo_length": 70, "k": 0.06, "sig_length": 10},
    "rsi_mfi_stoch": {
        "rsi_length": 14,
        "mfi_length": 14,
        "stoch_k": 14,
        "stoch_smooth": 3,
        "stoch_d": 3,
        "overbought": 70.0,
        "oversold": 30.0,
    },
}
"""Parameters with their defaults."""


@pytest.mark.parametrize("name", NAMES)
def test_indicators_are_found_under_every_name(name: str) -> None:
    for alias in (name, *NAMES[name].split()):
        assert get(alias) is get(name)
        (request,) = parse_requests([alias])
        assert request.key == alias


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_taken_under_every_name_and_have_these_defaults(name: str) -> None:
    defaults = get(name).settings()
    for parameter, value in PARAMETERS[name].items():
        (request,) = parse_requests([{"name": name, parameter: value}])
        assert request.settings == defaults, f"{parameter} is not {value!r} by default"
