"""market-data-mcp: the rows of get_candles, get_current_price and get_volatility."""

from __future__ import annotations

from datetime import datetime

from tests.contracts.rows import row
from tests.contracts.tradestream.agent import Agent, check_cache
from tests.contracts.tradestream.conftest import Desk
from tests.contracts.tradestream.schemas import check_parameters, check_words

BTC, UNKNOWN = "BTC/USD", "ZZZZ"


# get_candles


@row("get_candles: name, parameters, types, defaults, maximum, enums, required")
def test_get_candles_has_the_contracts_parameters(market_data: Agent) -> None:
    check_parameters(market_data.tools["get_candles"], market_data.contract["get_candles"])


@row("get_candles: description of the tool and of its parameters")
def test_get_candles_is_described_in_the_contracts_words(market_data: Agent) -> None:
    check_words(market_data.tools["get_candles"], market_data.contract["get_candles"])


@row("get_candles: returns (fields and types)")
def test_get_candles_returns_the_contracts_fields(market_data: Agent) -> None:
    seconds = {"1m": 60, "5m": 300, "15m": 900, "1h": 3600, "4h": 14400, "1d": 86400}
    for timeframe, length in seconds.items():
        items = market_data.returned("get_candles", symbol=BTC, timeframe=timeframe, limit=3)["items"]
        first, second, third = (datetime.fromisoformat(each["timestamp"]).timestamp() for each in items)
        assert second - first == third - second == length
        for each in items:
            assert each["low"] <= min(each["open"], each["close"]) <= max(each["open"], each["close"]) <= each["high"]
    assert len(market_data.returned("get_candles", symbol=BTC)["items"]) == 100


@row("get_candles: INVALID_SYMBOL")
def test_candles_of_no_symbol_are_invalid_symbol(market_data: Agent) -> None:
    assert market_data.code("get_candles", symbol="???") == "INVALID_SYMBOL"


@row("get_candles: INVALID_TIMEFRAME")
def test_candles_of_another_length_are_invalid_timeframe(market_data: Agent) -> None:
    assert market_data.code("get_candles", symbol=BTC, timeframe="2h") == "INVALID_TIMEFRAME"


@row("get_candles: NO_DATA")
def test_candles_that_nobody_has_are_no_data(market_data: Agent, few_bars: Desk) -> None:
    assert market_data.code("get_candles", symbol=UNKNOWN) == "NO_DATA"
    with few_bars.agent("market-data", AS_OF="2025-09-19T16:51:00Z") as stored:
        assert stored.code("get_candles", symbol="AAPL", timeframe="1d") == "NO_DATA", "its day has not closed"


@row("get_candles: DATABASE_ERROR")
def test_candles_without_the_database_are_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["market-data"].code("get_candles", symbol="AAPL", force_refresh=True) == "DATABASE_ERROR"


@row("get_candles: cache 60 s, force_refresh bypasses and refills")
def test_candles_are_cached_for_60_seconds(market_data: Agent) -> None:
    check_cache(market_data, "get_candles", 60, symbol=BTC)


# get_current_price


@row("get_current_price: name, parameters, types, defaults, maximum, enums, required")
def test_get_current_price_has_the_contracts_parameters(market_data: Agent) -> None:
    check_parameters(market_data.tools["get_current_price"], market_data.contract["get_current_price"])


@row("get_current_price: description of the tool and of its parameters")
def test_get_current_price_is_described_in_the_contracts_words(market_data: Agent) -> None:
    check_words(market_data.tools["get_current_price"], market_data.contract["get_current_price"])


@row("get_current_price: returns (fields and types)")
def test_get_current_price_returns_the_contracts_fields(market_data: Agent, few_bars: Desk) -> None:
    found = market_data.returned("get_current_price", symbol=BTC)
    assert None not in (found["change_1h"], found["change_24h"])
    with few_bars.agent("market-data", AS_OF="2025-09-19T14:01:00Z") as early:
        found = early.returned("get_current_price", symbol="AAPL")
    assert (found["change_1h"], found["change_24h"]) == (None, None), "its first bar is 31 minutes old"


@row("get_current_price: INVALID_SYMBOL")
def test_the_price_of_no_symbol_is_invalid_symbol(market_data: Agent) -> None:
    assert market_data.code("get_current_price", symbol="") == "INVALID_SYMBOL"


@row("get_current_price: SYMBOL_NOT_FOUND")
def test_a_price_that_nobody_has_is_symbol_not_found(market_data: Agent) -> None:
    assert market_data.code("get_current_price", symbol=UNKNOWN) == "SYMBOL_NOT_FOUND"


@row("get_current_price: STALE_DATA")
def test_an_old_price_of_an_open_market_is_stale_data(few_bars: Desk) -> None:
    with few_bars.agent("market-data", AS_OF="2025-09-19T19:50:00Z") as later:
        found = later.error("get_current_price", symbol="AAPL")
    assert found["code"] == "STALE_DATA"
    assert found["details"]["trading_age_s"] == 3 * 3600


@row("get_current_price: DATABASE_ERROR")
def test_a_price_without_the_database_is_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["market-data"].code("get_current_price", symbol="AAPL") == "DATABASE_ERROR"


@row("get_current_price: cache 5 s, force_refresh bypasses and refills")
def test_a_price_is_cached_for_5_seconds(market_data: Agent) -> None:
    check_cache(market_data, "get_current_price", 5, symbol=BTC)


# get_volatility


@row("get_volatility: name, parameters, types, defaults, maximum, enums, required")
def test_get_volatility_has_the_contracts_parameters(market_data: Agent) -> None:
    check_parameters(market_data.tools["get_volatility"], market_data.contract["get_volatility"])


@row("get_volatility: description of the tool and of its parameters")
def test_get_volatility_is_described_in_the_contracts_words(market_data: Agent) -> None:
    check_words(market_data.tools["get_volatility"], market_data.contract["get_volatility"])


@row("get_volatility: returns (fields and types)")
def test_get_volatility_returns_the_contracts_fields(market_data: Agent) -> None:
    for timeframe in ("1h", "4h", "1d"):
        found = market_data.returned("get_volatility", symbol=BTC, timeframe=timeframe)
        assert 0 < found["atr"] < found["high_low_range"]
        assert 0 < found["volatility"] < 1


@row("get_volatility: INVALID_SYMBOL")
def test_the_volatility_of_no_symbol_is_invalid_symbol(market_data: Agent) -> None:
    assert market_data.code("get_volatility", symbol="A B C") == "INVALID_SYMBOL"


@row("get_volatility: INVALID_TIMEFRAME")
def test_the_volatility_of_minutes_is_invalid_timeframe(market_data: Agent) -> None:
    assert market_data.code("get_volatility", symbol=BTC, timeframe="1m") == "INVALID_TIMEFRAME"


@row("get_volatility: INSUFFICIENT_DATA")
def test_the_volatility_of_three_hours_is_insufficient_data(few_bars: Desk) -> None:
    with few_bars.agent("market-data", AS_OF="2025-09-19T16:51:00Z") as stored:
        assert stored.code("get_volatility", symbol="AAPL") == "INSUFFICIENT_DATA"


@row("get_volatility: DATABASE_ERROR")
def test_a_volatility_without_the_database_is_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["market-data"].code("get_volatility", symbol="AAPL") == "DATABASE_ERROR"


@row("get_volatility: cache 30 s, force_refresh bypasses and refills")
def test_a_volatility_is_cached_for_30_seconds(market_data: Agent) -> None:
    check_cache(market_data, "get_volatility", 30, symbol=BTC)
