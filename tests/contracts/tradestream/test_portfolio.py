"""portfolio-mcp: the rows of get_positions, get_balance and validate_trade."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client import OPENBELL, Client, run
from tests.contracts.rows import row
from tests.contracts.tradestream.agent import Agent
from tests.contracts.tradestream.conftest import PLACED, Desk
from tests.contracts.tradestream.schemas import check_parameters, check_words
from tests.gateway.services import free_port

BTC = "BTC/USD"
TRADE = {"symbol": BTC, "side": "BUY", "size": 0.01}


@pytest.fixture(scope="module")
def guarded(account: Desk) -> Iterator[Agent]:
    """A server for an account that wants a token, without the token."""
    done = run(account.home, "account", "add", "guarded", "--token", **account.settings)
    assert done.returncode == 0, done.stderr
    with Agent(account.home, "portfolio", ACCOUNT="guarded", **account.settings) as made:
        yield made


@pytest.fixture(scope="module")
def unpriced(account: Desk) -> Iterator[Agent]:
    """A server that cannot read any bar."""
    with account.agent("portfolio", INFLUX_URL=f"http://127.0.0.1:{free_port()}") as made:
        yield made


# get_positions


@row("get_positions: name, parameters, types, defaults, maximum, enums, required")
def test_get_positions_has_the_contracts_parameters(portfolio: Agent) -> None:
    check_parameters(portfolio.tools["get_positions"], portfolio.contract["get_positions"])


@row("get_positions: description of the tool and of its parameters")
def test_get_positions_is_described_in_the_contracts_words(portfolio: Agent) -> None:
    check_words(portfolio.tools["get_positions"], portfolio.contract["get_positions"])


@row("get_positions: returns (fields and types)")
def test_get_positions_returns_the_contracts_fields(portfolio: Agent, unpriced: Agent) -> None:
    items = portfolio.returned("get_positions")["items"]
    assert {each["symbol"]: (each["side"], each["size"]) for each in items} == {
        "AAPL": ("LONG", 10),
        "BTC/USD": ("LONG", 0.05),
        "ETH/USD": ("LONG", 1),
    }
    for each in items:
        assert each["unrealized_pnl"] == pytest.approx((each["current_price"] - each["entry_price"]) * each["size"])
    (one,) = portfolio.returned("get_positions", symbol="ethusd")["items"]
    assert one["symbol"] == "ETH/USD"
    without_prices = unpriced.returned("get_positions")["items"]
    assert [(each["current_price"], each["unrealized_pnl"]) for each in without_prices] == [(None, None)] * 3


@row("get_positions: INVALID_SYMBOL")
def test_positions_of_no_symbol_are_invalid_symbol(portfolio: Agent) -> None:
    assert portfolio.code("get_positions", symbol="???") == "INVALID_SYMBOL"


@row("get_positions: UNAUTHORIZED")
def test_positions_of_a_guarded_account_are_unauthorized(guarded: Agent) -> None:
    assert guarded.code("get_positions") == "UNAUTHORIZED"


@row("get_positions: DATABASE_ERROR")
def test_positions_without_the_database_are_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["portfolio"].code("get_positions") == "DATABASE_ERROR"


@row("get_positions: never cached")
def test_positions_are_never_cached(portfolio: Agent) -> None:
    check_never_cached(portfolio, "get_positions")


def check_never_cached(portfolio: Agent, tool: str) -> None:
    """The same call twice is read from the database twice."""
    assert "force_refresh" not in portfolio.tools[tool]["inputSchema"]["properties"]
    for _ in range(2):
        said = portfolio.metadata(tool)
        assert (said["cached"], said["cache_ttl_remaining"]) == (False, None)


# get_balance


@row("get_balance: name, parameters, types, defaults, maximum, enums, required")
def test_get_balance_has_the_contracts_parameters(portfolio: Agent) -> None:
    check_parameters(portfolio.tools["get_balance"], portfolio.contract["get_balance"])


@row("get_balance: description of the tool and of its parameters")
def test_get_balance_is_described_in_the_contracts_words(portfolio: Agent) -> None:
    check_words(portfolio.tools["get_balance"], portfolio.contract["get_balance"])


@row("get_balance: returns (fields and types)")
def test_get_balance_returns_the_contracts_fields(portfolio: Agent, unpriced: Agent) -> None:
    found, positions = portfolio.returned("get_balance"), portfolio.data("get_positions")["items"]
    assert found["unrealized_pnl"] == pytest.approx(sum(each["unrealized_pnl"] for each in positions))
    assert found["margin_used"] == pytest.approx(sum(each["size"] * each["current_price"] for each in positions))
    assert found["available_balance"] == pytest.approx(found["total_balance"] - found["margin_used"])
    without_prices = unpriced.returned("get_balance")
    assert [without_prices[name] for name in ("total_balance", "margin_used", "unrealized_pnl")] == [None] * 3
    assert without_prices["available_balance"] == 0


@row("get_balance: UNAUTHORIZED")
def test_the_balance_of_a_guarded_account_is_unauthorized(guarded: Agent) -> None:
    assert guarded.code("get_balance") == "UNAUTHORIZED"


@row("get_balance: ACCOUNT_NOT_FOUND")
def test_the_balance_of_no_account_is_account_not_found(account: Desk) -> None:
    with Agent(account.home, "portfolio", ACCOUNT="savings", **account.settings) as other:
        found = other.error("get_balance")
    assert (found["code"], found["details"]) == ("ACCOUNT_NOT_FOUND", {"account": "savings"})


@row("get_balance: DATABASE_ERROR")
def test_the_balance_without_the_database_is_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["portfolio"].code("get_balance") == "DATABASE_ERROR"


@row("get_balance: never cached")
def test_the_balance_is_never_cached(portfolio: Agent, account: Desk) -> None:
    check_never_cached(portfolio, "get_balance")
    settings = {**account.settings, "SCENARIO": "fresh"}
    trading = [*OPENBELL, "mcp", "chartgen", "--trade", "--as-of", PLACED]
    with (
        Agent(account.home, "portfolio", "--as-of", PLACED, **settings) as reader,
        Client(account.home, command=trading, **settings) as other,
    ):
        other.initialize()
        before = reader.data("get_balance")["available_balance"]
        order = {"symbol": BTC, "side": "buy", "type": "market", "quantity": "0.01"}
        assert other.call("place_order", order)["result"]["isError"] is False
        assert reader.data("get_balance")["available_balance"] < before, "another process has ordered something"


# validate_trade


@row("validate_trade: name, parameters, types, defaults, maximum, enums, required")
def test_validate_trade_has_the_contracts_parameters(portfolio: Agent) -> None:
    check_parameters(portfolio.tools["validate_trade"], portfolio.contract["validate_trade"])


@row("validate_trade: description of the tool and of its parameters")
def test_validate_trade_is_described_in_the_contracts_words(portfolio: Agent) -> None:
    check_words(portfolio.tools["validate_trade"], portfolio.contract["validate_trade"])


@row("validate_trade: returns (fields and types)")
def test_validate_trade_returns_the_contracts_fields(portfolio: Agent) -> None:
    small = portfolio.returned("validate_trade", **TRADE)
    assert (small["valid"], small["reason"]) == (True, "")
    large = portfolio.returned("validate_trade", **{**TRADE, "size": round(small["max_size"] * 1.1, 6)})
    assert (large["valid"], large["risk_score"]) == (False, 1)
    assert large["reason"]
    assert portfolio.returned("validate_trade", **TRADE, price=1.0)["valid"] is False, "far from the market"


@row("validate_trade: INVALID_SYMBOL")
def test_a_trade_of_no_symbol_is_invalid_symbol(portfolio: Agent) -> None:
    for symbol in ("???", "ZZZZ"):
        assert portfolio.code("validate_trade", **{**TRADE, "symbol": symbol}) == "INVALID_SYMBOL"


@row("validate_trade: INVALID_SIDE")
def test_a_trade_to_another_side_is_invalid_side(portfolio: Agent) -> None:
    assert portfolio.code("validate_trade", **{**TRADE, "side": "HOLD"}) == "INVALID_SIDE"


@row("validate_trade: INVALID_SIZE")
def test_a_trade_of_nothing_is_invalid_size(portfolio: Agent) -> None:
    for size in (0, -1):
        assert portfolio.code("validate_trade", **{**TRADE, "size": size}) == "INVALID_SIZE"


@row("validate_trade: INSUFFICIENT_BALANCE")
def test_a_trade_that_cannot_be_paid_is_insufficient_balance(portfolio: Agent) -> None:
    found = portfolio.error("validate_trade", **{**TRADE, "size": 50})
    assert found["code"] == "INSUFFICIENT_BALANCE"
    assert 0 < found["details"]["max_size"] < 50


@row("validate_trade: DATABASE_ERROR")
def test_a_trade_without_the_database_is_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["portfolio"].code("validate_trade", **TRADE) == "DATABASE_ERROR"
