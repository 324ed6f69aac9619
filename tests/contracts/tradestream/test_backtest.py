"""backtest-mcp: the rows of run_backtest and get_historical_performance."""

from __future__ import annotations

from tests.contracts.rows import row
from tests.contracts.tradestream.agent import Agent, check_cache
from tests.contracts.tradestream.conftest import Desk
from tests.contracts.tradestream.schemas import check_parameters, check_words
from tests.gateway.services import Service, free_port

BTC = "BTC/USD"
RUN = {"strategy_id": "MACD_CROSSOVER", "symbol": BTC}
EARNED = {"strategy_id": "BBAND_WILLIAMS_R", "symbol": BTC}


# run_backtest


@row("run_backtest: name, parameters, types, defaults, maximum, enums, required")
def test_run_backtest_has_the_contracts_parameters(backtest: Agent) -> None:
    check_parameters(backtest.tools["run_backtest"], backtest.contract["run_backtest"])


@row("run_backtest: description of the tool and of its parameters")
def test_run_backtest_is_described_in_the_contracts_words(backtest: Agent) -> None:
    check_words(backtest.tools["run_backtest"], backtest.contract["run_backtest"])


@row("run_backtest: returns (fields and types)")
def test_run_backtest_returns_the_contracts_fields(backtest: Agent) -> None:
    found = backtest.returned("run_backtest", **RUN)
    assert found["trades"] > 0
    assert 0 <= found["win_rate"] <= 1
    assert 0 <= found["max_drawdown"] <= 1
    assert isinstance(found["sharpe_ratio"], float)
    days = {"start_date": "2021-03-01", "end_date": "2021-03-03"}
    nothing = backtest.returned("run_backtest", **RUN, **days)
    assert (nothing["trades"], nothing["total_return"], nothing["max_drawdown"]) == (0, 0, 0)
    assert (nothing["sharpe_ratio"], nothing["win_rate"]) == (None, None), "there is no number without a trade"


@row("run_backtest: STRATEGY_NOT_FOUND")
def test_a_backtest_of_no_strategy_is_strategy_not_found(backtest: Agent) -> None:
    assert backtest.code("run_backtest", strategy_id="nobody", symbol=BTC) == "STRATEGY_NOT_FOUND"


@row("run_backtest: INVALID_SYMBOL")
def test_a_backtest_on_no_symbol_is_invalid_symbol(backtest: Agent) -> None:
    assert backtest.code("run_backtest", strategy_id="MACD_CROSSOVER", symbol="?") == "INVALID_SYMBOL"


@row("run_backtest: INVALID_DATE_RANGE")
def test_a_backtest_that_ends_before_it_begins_is_invalid_date_range(backtest: Agent) -> None:
    for start, end in (("2024-01-02", "2024-01-01"), ("2024-01-02", "2024-01-02"), ("yesterday", "2024-01-02")):
        assert backtest.code("run_backtest", **RUN, start_date=start, end_date=end) == "INVALID_DATE_RANGE"


@row("run_backtest: INSUFFICIENT_DATA")
def test_a_backtest_of_years_without_bars_is_insufficient_data(backtest: Agent) -> None:
    code = backtest.code("run_backtest", **RUN, start_date="1950-01-01", end_date="1951-01-01")
    assert code == "INSUFFICIENT_DATA"


@row("run_backtest: BACKTEST_TIMEOUT")
def test_a_backtest_over_its_time_limit_is_backtest_timeout(research: Desk) -> None:
    with research.agent("backtest", BACKTEST_TIMEOUT="0.000001") as hurried:
        assert hurried.code("run_backtest", **RUN) == "BACKTEST_TIMEOUT"


@row("run_backtest: GRPC_ERROR")
def test_a_backtest_without_its_service_is_grpc_error(research: Desk) -> None:
    with research.agent("backtest", BACKTESTER=f"127.0.0.1:{free_port()}") as never_there:
        assert never_there.code("run_backtest", **RUN) == "GRPC_ERROR"
    with Service(research.home, workers=1) as service:
        gone = research.agent("backtest", BACKTESTER=service.address, POOL_BACKTESTER_CONNECT="0.5")
        with gone:
            assert gone.data("run_backtest", **RUN)["trades"] > 0
            service.process.kill()
            service.process.wait()
            assert gone.code("run_backtest", **RUN) == "GRPC_ERROR"


# get_historical_performance


@row("get_historical_performance: name, parameters, types, defaults, maximum, enums, required")
def test_get_historical_performance_has_the_contracts_parameters(backtest: Agent) -> None:
    check_parameters(backtest.tools["get_historical_performance"], backtest.contract["get_historical_performance"])


@row("get_historical_performance: description of the tool and of its parameters")
def test_get_historical_performance_is_described_in_the_contracts_words(backtest: Agent) -> None:
    check_words(backtest.tools["get_historical_performance"], backtest.contract["get_historical_performance"])


@row("get_historical_performance: returns (fields and types)")
def test_get_historical_performance_returns_the_contracts_fields(backtest: Agent) -> None:
    counts = []
    for period in ("3m", "6m", "1y"):
        found = backtest.returned("get_historical_performance", **EARNED, period=period)
        assert sum(each["total_signals"] for each in found["performance_by_month"]) == found["total_signals"]
        assert 0 <= found["accuracy"] <= 1
        counts.append(found["total_signals"])
    assert 0 < counts[0] < counts[1] < counts[2]
    default = backtest.data("get_historical_performance", **EARNED)
    assert default == backtest.data("get_historical_performance", **EARNED, period="3m")


@row("get_historical_performance: STRATEGY_NOT_FOUND")
def test_the_performance_of_no_strategy_is_strategy_not_found(backtest: Agent) -> None:
    assert backtest.code("get_historical_performance", strategy_id="nobody") == "STRATEGY_NOT_FOUND"


@row("get_historical_performance: INVALID_PERIOD")
def test_the_performance_of_another_period_is_invalid_period(backtest: Agent) -> None:
    assert backtest.code("get_historical_performance", **EARNED, period="2y") == "INVALID_PERIOD"


@row("get_historical_performance: NO_PERFORMANCE_DATA")
def test_the_performance_of_a_week_without_trades_is_no_performance_data(backtest: Agent) -> None:
    week = {"strategy_id": "PRICE_GAP", "symbol": BTC, "period": "1w"}
    assert backtest.code("get_historical_performance", **week) == "NO_PERFORMANCE_DATA"


@row("get_historical_performance: DATABASE_ERROR")
def test_a_performance_without_the_database_is_database_error(fallen: dict[str, Agent]) -> None:
    code = fallen["backtest"].code("get_historical_performance", strategy_id="MACD_CROSSOVER", symbol="AAPL")
    assert code == "DATABASE_ERROR"


@row("get_historical_performance: cache 300 s, force_refresh bypasses and refills")
def test_a_performance_is_cached_for_300_seconds(backtest: Agent) -> None:
    check_cache(backtest, "get_historical_performance", 300, **EARNED)
