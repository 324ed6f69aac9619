"""strategy-mcp: the rows of get_top_strategies, get_strategy_signal and get_strategy_consensus."""

from __future__ import annotations

from tests.contracts.rows import row
from tests.contracts.tradestream.agent import Agent, check_cache
from tests.contracts.tradestream.schemas import check_parameters, check_words

BTC, UNTRIED = "BTC/USD", "NFLX"
"""A symbol with strategies, and one without bars."""


# get_top_strategies


@row("get_top_strategies: name, parameters, types, defaults, maximum, enums, required")
def test_get_top_strategies_has_the_contracts_parameters(strategy: Agent) -> None:
    check_parameters(strategy.tools["get_top_strategies"], strategy.contract["get_top_strategies"])


@row("get_top_strategies: description of the tool and of its parameters")
def test_get_top_strategies_is_described_in_the_contracts_words(strategy: Agent) -> None:
    check_words(strategy.tools["get_top_strategies"], strategy.contract["get_top_strategies"])


@row("get_top_strategies: returns (fields and types)")
def test_get_top_strategies_returns_the_contracts_fields(strategy: Agent) -> None:
    for metric in ("sharpe", "accuracy", "return"):
        items = strategy.returned("get_top_strategies", symbol=BTC, metric=metric)["items"]
        assert len(items) == 5
        scores = [each["score"] for each in items]
        assert scores == sorted(scores, reverse=True)
        assert metric == "return" or scores == [each[metric] for each in items]


@row("get_top_strategies: INVALID_SYMBOL")
def test_a_ranking_of_no_symbol_is_invalid_symbol(strategy: Agent) -> None:
    assert strategy.code("get_top_strategies", symbol="!!") == "INVALID_SYMBOL"


@row("get_top_strategies: SYMBOL_NOT_FOUND")
def test_a_ranking_without_strategies_is_symbol_not_found(strategy: Agent) -> None:
    assert strategy.code("get_top_strategies", symbol=UNTRIED) == "SYMBOL_NOT_FOUND"


@row("get_top_strategies: DATABASE_ERROR")
def test_a_ranking_without_the_database_is_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["strategy"].code("get_top_strategies", symbol="AAPL") == "DATABASE_ERROR"


@row("get_top_strategies: INVALID_METRIC")
def test_a_ranking_by_another_metric_is_invalid_metric(strategy: Agent) -> None:
    assert strategy.code("get_top_strategies", symbol=BTC, metric="calmar") == "INVALID_METRIC"


@row("get_top_strategies: cache 30 s, force_refresh bypasses and refills")
def test_a_ranking_is_cached_for_30_seconds(strategy: Agent) -> None:
    check_cache(strategy, "get_top_strategies", 30, symbol=BTC)


# get_strategy_signal


def best(strategy: Agent) -> str:
    """The id of the best strategy."""
    return str(strategy.data("get_top_strategies", symbol=BTC)["items"][0]["strategy_id"])


@row("get_strategy_signal: name, parameters, types, defaults, maximum, enums, required")
def test_get_strategy_signal_has_the_contracts_parameters(strategy: Agent) -> None:
    check_parameters(strategy.tools["get_strategy_signal"], strategy.contract["get_strategy_signal"])


@row("get_strategy_signal: description of the tool and of its parameters")
def test_get_strategy_signal_is_described_in_the_contracts_words(strategy: Agent) -> None:
    check_words(strategy.tools["get_strategy_signal"], strategy.contract["get_strategy_signal"])


@row("get_strategy_signal: returns (fields and types)")
def test_get_strategy_signal_returns_the_contracts_fields(strategy: Agent) -> None:
    found = strategy.returned("get_strategy_signal", strategy_id=best(strategy), symbol=BTC)
    assert 0 < found["confidence"] < 1
    assert found["parameters"]


@row("get_strategy_signal: STRATEGY_NOT_FOUND")
def test_the_signal_of_no_strategy_is_strategy_not_found(strategy: Agent) -> None:
    found = strategy.error("get_strategy_signal", strategy_id="abc123", symbol=BTC)
    assert found["code"] == "STRATEGY_NOT_FOUND"
    assert found["details"]["strategy_id"] == "abc123", "as in the contract's example"


@row("get_strategy_signal: INVALID_SYMBOL")
def test_the_signal_for_no_symbol_is_invalid_symbol(strategy: Agent) -> None:
    assert strategy.code("get_strategy_signal", strategy_id="MACD_CROSSOVER", symbol="?") == "INVALID_SYMBOL"


@row("get_strategy_signal: NO_SIGNAL")
def test_a_strategy_without_a_signal_for_the_symbol_is_no_signal(strategy: Agent) -> None:
    assert strategy.code("get_strategy_signal", strategy_id="MACD_CROSSOVER", symbol=UNTRIED) == "NO_SIGNAL"


@row("get_strategy_signal: DATABASE_ERROR")
def test_a_signal_without_the_database_is_database_error(fallen: dict[str, Agent]) -> None:
    code = fallen["strategy"].code("get_strategy_signal", strategy_id="MACD_CROSSOVER", symbol="AAPL")
    assert code == "DATABASE_ERROR"


@row("get_strategy_signal: cache 10 s, force_refresh bypasses and refills")
def test_a_signal_is_cached_for_10_seconds(strategy: Agent) -> None:
    check_cache(strategy, "get_strategy_signal", 10, strategy_id=best(strategy), symbol=BTC)


# get_strategy_consensus


@row("get_strategy_consensus: name, parameters, types, defaults, maximum, enums, required")
def test_get_strategy_consensus_has_the_contracts_parameters(strategy: Agent) -> None:
    check_parameters(strategy.tools["get_strategy_consensus"], strategy.contract["get_strategy_consensus"])


@row("get_strategy_consensus: description of the tool and of its parameters")
def test_get_strategy_consensus_is_described_in_the_contracts_words(strategy: Agent) -> None:
    check_words(strategy.tools["get_strategy_consensus"], strategy.contract["get_strategy_consensus"])


@row("get_strategy_consensus: returns (fields and types)")
def test_get_strategy_consensus_returns_the_contracts_fields(strategy: Agent) -> None:
    found = strategy.returned("get_strategy_consensus", symbol=BTC)
    assert found["bullish_count"] + found["bearish_count"] + found["neutral_count"] > 0
    assert 0 <= found["confidence"] <= 1


@row("get_strategy_consensus: INVALID_SYMBOL")
def test_the_consensus_on_no_symbol_is_invalid_symbol(strategy: Agent) -> None:
    assert strategy.code("get_strategy_consensus", symbol="?") == "INVALID_SYMBOL"


@row("get_strategy_consensus: NO_ACTIVE_STRATEGIES")
def test_a_consensus_without_votes_is_no_active_strategies(strategy: Agent) -> None:
    assert strategy.code("get_strategy_consensus", symbol=UNTRIED) == "NO_ACTIVE_STRATEGIES"


@row("get_strategy_consensus: DATABASE_ERROR")
def test_a_consensus_without_the_database_is_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["strategy"].code("get_strategy_consensus", symbol="AAPL") == "DATABASE_ERROR"


@row("get_strategy_consensus: cache 30 s, force_refresh bypasses and refills")
def test_a_consensus_is_cached_for_30_seconds(strategy: Agent) -> None:
    check_cache(strategy, "get_strategy_consensus", 30, symbol=BTC)
