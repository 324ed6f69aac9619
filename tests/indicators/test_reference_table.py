"""The references of each indicator: a test of its own against an independent formula, and a comparison on real prices.

A new indicator needs a line in both tables.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from openbell.indicators.registry import all_indicators
from tests.indicators import differences
from tests.indicators.comparison import LIMIT, Comparison, compare, lines_of, part_of
from tests.indicators.parameter_sets import DEFAULTS, parameter_sets
from tests.indicators.pine.runner import Case, pine_lines
from tests.indicators.plain_lines import PLAIN
from tests.indicators.real_series import EVERY, REAL, series

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
        "tpo": "test_counts_the_half_hours_that_came_by",
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
"""The test of each indicator against an independent formula."""

FUNCTIONS = {
    "ad": "ta.accdist",
    "adx": "ta.dmi",
    "alma": "ta.alma",
    "atr": "ta.atr",
    "bbands": "ta.bb",
    "cci": "ta.cci",
    "cmo": "ta.cmo",
    "donchian": "ta.highest, ta.lowest",
    "ema_line": "ta.ema",
    "ema_stack": "ta.ema",
    "hma": "ta.hma",
    "linreg": "ta.linreg",
    "macd": "ta.macd",
    "mfi": "ta.mfi",
    "momentum": "ta.mom",
    "obv": "ta.obv",
    "pivot": "ta.pivot_point_levels",
    "price_channel": "ta.highest, ta.lowest",
    "pvt": "ta.pvt",
    "roc": "ta.roc",
    "rsi": "ta.rsi",
    "sar": "ta.sar",
    "sma": "ta.sma",
    "smma": "ta.rma",
    "supertrend": "ta.supertrend",
    "tsi": "ta.tsi",
    "vwap": "ta.vwap",
    "vwma": "ta.vwma",
    "williams_r": "ta.wpr",
    "wma": "ta.wma",
}
"""Functions of TradingView's language, in PyneCore."""

SCRIPTS = {
    **dict.fromkeys(
        (
            *("alligator", "aroon", "awesome", "bop", "chaikin", "chande_kroll", "chop_zone", "choppiness", "cmf"),
            *("connors_rsi", "coppock", "dema", "dpo", "ease_of_movement", "elder_ray", "envelope", "fisher", "force"),
            *(
                "fractals",
                "ichimoku",
                "keltner",
                "klinger",
                "kst",
                "ma_channel",
                "mass_index",
                "mcginley",
                "net_volume",
            ),
            *("ppo", "rvi", "smi_ergodic", "smi_oscillator", "stoch", "stoch_rsi", "tema", "trix", "ultimate"),
            *("volatility_stop", "volume_oscillator", "vortex"),
        ),
        "TradingView's script of its own indicator",
    ),
    **dict.fromkeys(
        ("bb_width", "percent_b", "std_dev", "trend_strength", "histvol"),
        "TradingView's script, with deviation and correlation in two passes",
    ),
    "asi": "Wilder's swing index",
    "chandelier": "Le Beau's exits: ta.highest and ta.lowest less and plus ta.atr",
    "cipher_b": "VuManChu's script: waves, RSI, and stochastic RSI of logarithms",
    "kalman_volume": "HMA of signed volume over HMA of volume, over its deviation, smoothed",
    "rsi_mfi_stoch": "ta.rsi, ta.mfi, ta.stoch",
    "squeeze": "LazyBear's script",
    "wavetrend": "LazyBear's script",
    "volatility_close": "sample deviation of log returns in two passes",
    "volatility_ohlc": "Garman and Klass' formula",
    "chaikin_volatility": "ta.roc of ta.ema of the range",
    "linreg_slope": "ta.linreg less ta.linreg with offset 1",
    "volume_macd": "ta.vwma, ta.ema",
    **dict.fromkeys(
        (
            *("advance_decline", "hamming", "heikin_ashi", "majority_rule", "regression_channel", "relative_volume"),
            *("std_error", "std_error_bands", "volatility_zero_trend", "volume_balance", "volume_spread"),
        ),
        "its definition",
    ),
}
"""Scripts that run in PyneCore: of TradingView, of an indicator's author, or written from the definition."""

PLAIN_LOOPS = {
    "cvd": ("sums of the values of the day", EVERY),
    "double_pattern": ("list of all pairs of tops", EVERY),
    "fibonacci": ("list of all swings, made anew at each bar", EVERY),
    "frama": ("Ehlers' listing of 2005", EVERY),
    "gann_swing": ("runs counted back from each bar", EVERY),
    "gap": ("lists of the bars of each day", EVERY),
    "hvn_lvn": ("volume spread row by row, prominence by search", EVERY),
    "kama": ("Kaufman's formula with exact sums", EVERY),
    "mass_bulge": ("TA-Lib's MASSI", EVERY),
    "naked_poc": ("volume spread row by row, touches by search", EVERY),
    "rainbow": ("Widner's formula with exact sums", tuple(name for name in EVERY if name != "halt")),
    "range_bars": ("bar by bar in decimals", EVERY),
    "renko": ("brick by brick in fractions", EVERY),
    "rolling_profile": ("volume spread row by row, moments in fractions", EVERY),
    "session_vp": ("volume spread row by row", EVERY),
    "tpo": ("bars counted row by row", EVERY),
    "vidya": ("Chande's formula with exact sums", EVERY),
    "volatility_index": ("Wilder's rules bar by bar", EVERY),
    "volume_profile": ("volume spread row by row", EVERY),
    "vwap_bands": ("two passes over the day in decimals", EVERY),
    "zigzag": ("TradingView's library bar by bar", EVERY),
    **dict.fromkeys(("funding", "oi", "long_short", "fear_greed"), ("newest value by search", EVERY)),
}
"""Plain implementations in Python, and their series."""

COMPARED = {name: (what, EVERY) for name, what in (FUNCTIONS | SCRIPTS).items()} | PLAIN_LOOPS
"""What each indicator is compared with, and on which series."""


@pytest.mark.parametrize("name", all_indicators())
def test_every_indicator_has_a_reference(name: str) -> None:
    found = [(file, tests[name]) for file, tests in REFERENCES.items() if name in tests]
    assert found, f"{name} has no test against a formula: add it here"
    for file, test in found:
        tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert test in names, f"{name}: {file}::{test} is gone"


def problems(found: Comparison, on: str) -> Iterator[str]:
    """How a comparison on a series contradicts the tables in `differences`."""
    if on in differences.VALUES.get(found.line, ("", ""))[0].split():
        if found.worst <= LIMIT and found.first == found.expected_first:
            yield f"{found.line} on {on} no longer differs: take it out of differences.VALUES"
    elif found.worst > LIMIT:
        yield f"{on}: {found}"
    elif (found.first != found.expected_first) != (found.line in differences.FIRST):
        yield f"{on}: {found}; differences.FIRST says otherwise"


def test_every_indicator_is_compared_on_real_prices() -> None:
    assert list(all_indicators()) == sorted(COMPARED)
    assert all(set(REAL) <= set(on) for _, on in COMPARED.values())


def test_the_page_of_an_indicator_names_its_differences() -> None:
    pages = {name: (each.differs, f"{each.description}. {each.differs}") for name, each in all_indicators().items()}
    words = {line: text for line, (_, text) in differences.VALUES.items()} | differences.FIRST
    for line, text in words.items():
        assert text.lower() in pages[line.partition(".")[0]][0].lower(), line
    for line, constant in differences.NEUTRAL.items():
        named = "half way" if line.startswith("fisher.") else f"{constant:g}"
        assert re.search(rf"(?<![\d.]){named}(?![\d]|\.\d)", pages[line.partition(".")[0]][1]), line
    assert set(differences.SETTLED) == {line.partition(".")[0] for line in differences.FIRST}


PARTS = {"GOOG": slice(0, 340), "EURUSD": slice(310, 650)}
"""The bars on which other parameters are compared."""


def test_every_line_equals_its_reference_but_for_the_named_differences(tmp_path: Path) -> None:
    wrong: list[str] = []
    seen: set[str] = set()
    real: set[str] = set()
    cases = [Case(on, bars, DEFAULTS) for on, bars in series().items()]
    cases += [Case(on, series()[on].take(part), each) for on, part in PARTS.items() for each in parameter_sets()]
    for (on, whole, settings), scripts in zip(cases, pine_lines(cases, tmp_path), strict=True):
        for name in (name for name, (_, chosen) in COMPARED.items() if on in chosen):
            if settings is not DEFAULTS and name not in settings:
                continue
            bars, chosen = part_of(name, whole), settings.get(name, {})
            loops = PLAIN[name](bars, **chosen) if name in PLAIN else {}
            for label, values in lines_of(name, bars, **chosen).items():
                line = f"{name}.{label}"
                assert line in scripts or label in loops, f"{line} has no reference"
                reference = loops[label] if label in loops else scripts[line]
                wrong += problems(compare(line, values, reference, on == "halt"), on)
                seen.add(line)
                if on in REAL and settings is DEFAULTS and np.isfinite(reference).any():
                    real.add(line)
    assert not wrong, "\n".join(wrong)
    named = {*differences.VALUES, *differences.FIRST, *differences.NEUTRAL, *differences.ROUNDED}
    assert seen >= named, "a line in the tables is gone"
    assert seen == real, "a reference has no value on real prices"
