"""The reference of each indicator: where it is compared with an independent formula. A new one needs its line here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from openbell.indicators.registry import all_indicators

HERE = Path(__file__).parent

REFERENCES = {
    "test_references.py": {
        "ema_line": "test_ema",
        "sma": "test_sma",
        "macd": "test_macd",
        "rsi": "test_rsi",
        "bbands": "test_bbands",
        "atr": "test_atr",
        "vwap": "test_vwap_of_stocks_is_that_of_the_regular_session",
    },
    "test_oscillators.py": {
        "aroon": "test_aroon_counts_the_bars_since_the_extreme",
        "trix": "test_trix_is_tradingviews",
        "dpo": "test_dpo_is_tradingviews_without_centring",
        **{
            name: f"test_{name}"
            for name in (
                *("ultimate", "awesome", "cmo", "ppo", "kst", "elder_ray", "force", "klinger"),
                *("mass_index", "mass_bulge", "vortex", "choppiness"),
            )
        },
    },
    "test_overlays.py": {
        "ema_stack": "test_ema_stack_is_four_averages_by_the_definition",
        "wma": "test_wma_by_the_definition",
        "hma": "test_hma_by_hulls_definition",
        "dema": "test_dema_and_tema_by_mulloys_definition",
        "tema": "test_dema_and_tema_by_mulloys_definition",
        "vwma": "test_vwma_by_the_definition",
        "linreg": "test_linreg_is_the_end_of_numpys_least_squares_line",
        "keltner": "test_keltner_by_the_definition",
        "donchian": "test_donchian_is_that_of_ta_lib",
        "chandelier": "test_chandelier_by_the_definition",
        "vwap_bands": "test_stocks_by_two_passes_over_the_regular_session",
        "supertrend": "TestSupertrend",
        "sar": "TestSar",
        "ichimoku": "test_by_slices_and_shifts",
        "heikin_ashi": "TestHeikinAshi",
        "pivot": "test_is_the_prior_sessions_by_the_exchanges_calendar",
        "zigzag": "test_is_tradingviews_library_bar_by_bar",
    },
    "test_panels.py": {
        "rsi_mfi_stoch": "test_rsi_mfi_stoch_is_the_three_of_them",
        "cipher_b": "test_cipher_b_has_the_waves_the_rsi_and_the_stochastic_rsi_of_logarithms",
        **{
            name: f"test_{name}"
            for name in (
                *("stoch", "stoch_rsi", "roc", "mfi", "williams_r", "adx", "cci", "cmf", "histvol", "obv", "ad"),
                *("wavetrend", "kalman_volume", "squeeze"),
            )
        },
    },
    "test_profiles.py": {
        "volume_profile": "test_is_the_volume_at_each_price",
        "session_vp": "test_every_session_has_its_own_profile_at_its_own_place",
        "hvn_lvn": "test_prominence_is_the_least_descent_on_the_way_to_higher_ground",
        "naked_poc": "test_are_exactly_the_untouched_ones",
        "tpo": "test_counts_the_bars_that_came_by",
    },
    "test_momentum_and_volume.py": {
        name: f"test_{name}"
        for name in (
            *("momentum", "chaikin", "pvt", "frama", "rainbow", "rvi", "vidya"),
            *("relative_volume", "volume_balance", "volume_macd"),
        )
    },
    "test_swings_and_bricks.py": {
        name: f"test_{name}"
        for name in (*("volatility_stop", "renko", "range_bars", "gann_swing", "fibonacci", "double_pattern", "gap"),)
    },
    "test_channels_and_spreads.py": {
        name: f"test_{name}" for name in ("regression_channel", "rolling_profile", "volume_spread")
    },
    "test_vendor_averages.py": {
        name: f"test_{name}"
        for name in (
            *("smma", "alma", "hamming", "mcginley", "price_channel", "envelope", "ma_channel", "alligator"),
            *("kama", "std_error_bands", "fractals", "chande_kroll", "volatility_index"),
        )
    },
    "test_vendor_oscillators.py": {
        name: f"test_{name}"
        for name in (
            *("bop", "net_volume", "majority_rule", "advance_decline", "percent_b", "volume_oscillator"),
            *("linreg_slope", "trend_strength", "tsi", "smi_ergodic", "smi_oscillator", "coppock", "connors_rsi"),
            *("fisher", "asi", "ease_of_movement", "chop_zone"),
        )
    },
    "test_vendor_volatility.py": {
        name: f"test_{name}"
        for name in (
            *("std_dev", "bb_width", "std_error", "chaikin_volatility"),
            *("volatility_close", "volatility_ohlc", "volatility_zero_trend"),
        )
    },
    "test_external.py": {
        "cvd": "test_cvd_adds_up_what_falls_into_each_bar",
        **dict.fromkeys(("funding", "oi", "long_short", "fear_greed"), "test_the_newest_value_known_at_each_bars_end"),
    },
}


@pytest.mark.parametrize("name", all_indicators())
def test_every_indicator_has_a_reference(name: str) -> None:
    found = [(file, tests[name]) for file, tests in REFERENCES.items() if name in tests]
    assert found, f"{name} has no reference: add its test here"
    for file, test in found:
        tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert test in names, f"{name}: {file}::{test} is gone"
