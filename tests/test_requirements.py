"""What must hold, and the tests that hold it: a requirement without a test fails here, and so does a test that is gone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent

MUST_HOLD = {
    "the contract's quick start answers in an empty home": [
        "servers/test_chart_signals.py::test_the_quick_start_answers_with_real_numbers_in_an_empty_home"
    ],
    "signals equal an independent calculation to 1e-9 at every timeframe": [
        "servers/test_chart_signals.py::test_signals_equal_an_independent_calculation_at_every_timeframe",
        "signals/test_series.py::test_is_the_independent_calculation",
    ],
    "crossings are exactly the contract's formulas, inclusive bounds included": [
        "signals/test_crossings.py::test_exactly_the_contracts_formulas",
        "signals/test_crossings.py::test_the_rsi_levels_are_inclusive",
    ],
    "the same call gives the same bytes": ["servers/test_chart_signals.py::test_the_same_question_has_the_same_bytes"],
    "a partial bucket is never used; 34 bars are not ready, 35 are": [
        "servers/test_chart_signals.py::test_34_closed_bars_are_not_ready_and_35_are",
        "market/test_resample.py::test_a_bucket_is_never_shown_before_its_end",
    ],
    "sessions agree with exchange_calendars for every minute of 2015–2027": [
        "market/test_sessions.py::test_regular_minutes_are_exactly_those_of_the_exchange"
    ],
    "market status on holidays, half days, daylight saving and weekends": [
        "servers/test_chart_signals.py::test_market_status"
    ],
    "every error code arrives as a JSON-RPC error": [
        "servers/test_chart_signals.py::test_every_error_code_arrives_as_a_json_rpc_error",
        "servers/test_chart_signals.py::test_a_store_that_cannot_be_used_is_market_data_unavailable",
    ],
    "any number of servers on one home beside the collector": [
        "servers/test_chart_signals.py::test_many_servers_share_one_home",
        "cli/test_commands.py::test_servers_answer_beside_a_collector",
    ],
    "kill -9 of the collector: no acknowledged bar lost, none double": [
        "stores/test_crash.py::test_a_killed_collector_loses_and_doubles_nothing"
    ],
    "every feed passes one suite": ["feeds/test_contract.py::TestSim", "feeds/test_contract.py::TestReplay"],
    "every bar store passes one suite": ["stores/test_parquet.py::TestParquetStore"],
    "batch and streaming agree; no indicator sees the future": [
        "indicators/test_every_indicator.py::test_bar_by_bar_is_the_same_as_all_at_once",
        "indicators/test_every_indicator.py::test_never_sees_the_future",
        "indicators/test_every_indicator.py::test_what_comes_later_changes_nothing",
    ],
    "every indicator agrees with its reference to 1e-9": [
        "indicators/test_reference_table.py::test_every_indicator_has_a_reference"
    ],
    "Wilder's RSI, population Bollinger, session VWAP, Ichimoku displaced, pivots of the prior session": [
        "indicators/test_references.py::test_wilders_own_worksheet",
        "indicators/test_references.py::test_bands_use_the_populations_deviation",
        "indicators/test_references.py::test_vwap_of_stocks_is_that_of_the_regular_session",
        "indicators/test_overlays.py::test_a_span_comes_from_base_bars_before_and_the_lagging_line_from_base_bars_after",
        "indicators/test_overlays.py::test_is_the_prior_sessions_by_the_exchanges_calendar",
        "indicators/test_regular_hours.py::test_pivots_are_those_of_the_daily_bars_at_every_timeframe",
        "desk/test_charts.py::test_vwap_and_bands_are_those_of_the_minutes",
    ],
    "golden scenes as text, golden pixels with tolerance, a picture of the difference": [
        "charts/test_golden.py::test_the_display_list_is_what_it_was",
        "charts/test_golden.py::test_the_pixels_are_what_they_were",
    ],
    "10,000 fuzzed chart requests, each a chart or a typed error, within 2 s and 300 MB": [
        "servers/test_chartgen.py::test_fuzzed_requests_are_a_chart_or_an_error"
    ],
    "both live feeds pass the feeds' suite against a local vendor, faults included": [
        "feeds/test_alpaca.py::TestAlpaca",
        "feeds/test_exchange.py::TestCcxt",
    ],
    "InfluxDB passes the stores' suite": ["stores/test_influx.py::TestInfluxStore"],
    "the store is killed, stopped, restarted and filled by two writers": [
        "stores/test_influx.py::test_killed_at_any_moment_what_was_acknowledged_is_there",
        "stores/test_influx.py::test_a_server_that_stands_still_is_a_time_out",
        "stores/test_influx.py::test_small_writes_go_on_and_arrive_later",
        "stores/test_influx.py::test_two_writers_of_one_home_end_up_with_the_same",
    ],
    "answers from Parquet and InfluxDB are equal": ["stores/test_influx.py::test_parquet_and_influxdb_answer_the_same"],
    "every error code of market-data is really raised": [
        "servers/test_market_data.py::test_every_mistake_has_its_code",
        "servers/test_market_data.py::test_old_and_few_bars_have_their_codes",
        "servers/test_market_data.py::test_a_store_that_is_gone_is_a_database_error",
        "servers/test_market_data.py::test_a_call_that_takes_too_long_is_a_time_out",
    ],
    "docs/indicators.md is what the registry says": ["cli/test_reference.py::test_generated_pages_are_up_to_date"],
}

DEFECTS_SEEN_ELSEWHERE = {
    "Bollinger upper and lower swapped": [
        "indicators/test_references.py::test_upper_is_never_below_the_middle_nor_that_below_the_lower"
    ],
    "market status on a fixed UTC-5, no holidays, no half days": [
        "market/test_sessions.py::test_a_fixed_offset_from_utc_would_be_wrong_in_summer",
        "market/test_sessions.py::test_half_day",
    ],
    "error codes never emitted": ["servers/test_chart_signals.py::test_every_error_code_arrives_as_a_json_rpc_error"],
    "bad JSON got no reply": ["protocol/test_stdio.py::test_a_bad_line_gets_an_error_and_the_server_lives_on"],
    "notifications got replies": ["protocol/test_stdio.py::test_a_notification_never_gets_a_reply"],
    "aggregated timeframes did not re-check 35 bars": [
        "servers/test_chart_signals.py::test_each_timeframe_counts_for_itself"
    ],
    "the last, partial bar was counted": ["market/test_resample.py::test_a_bucket_is_never_shown_before_its_end"],
    "VWAP had no session reset": ["indicators/test_references.py::test_vwap_of_stocks_is_that_of_the_regular_session"],
    "BTC_USD split on its underscore": ["market/test_instruments.py::test_the_name_on_disk_is_not_split_into_a_stock"],
    "comments in the watchlist became part of a symbol": [
        "servers/test_chart_signals.py::test_the_watchlist_file_rules"
    ],
    "a failed fetch returned made-up data under the real symbol": [
        "desk/test_charts.py::test_a_failed_fetch_is_an_error"
    ],
    "RSI was not Wilder's and had no null warm-up": [
        "indicators/test_references.py::test_wilders_own_worksheet",
        "charts/test_charts.py::test_values_before_warm_up_are_null",
    ],
    "get_candles ignored timeframe and offset and returned the oldest rows": [
        "servers/test_market_data.py::test_pages_put_together_are_the_whole",
        "servers/test_market_data.py::test_candles_are_the_minutes",
    ],
    "cache keys left out arguments": ["servers/test_market_data.py::test_each_argument_has_an_answer_of_its_own"],
    "unescaped query text": ["stores/test_influx.py::test_no_text_gets_out_of_its_place"],
    "two rsi entries with other lengths collided on one key": [
        "servers/test_chartgen.py::test_two_entries_of_one_indicator_have_keys_of_their_own"
    ],
}


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize(
    ("requirement", "tests"), [*MUST_HOLD.items(), *DEFECTS_SEEN_ELSEWHERE.items()], ids=lambda value: str(value)[:60]
)
def test_every_requirement_has_its_tests(requirement: str, tests: list[str]) -> None:
    assert tests, requirement
    for test in tests:
        file, _, name = test.partition("::")
        assert name in names_in(ROOT / file), f"{requirement}: {test} is gone"
