"""Requests: the checks with their messages, and the digest of equal orders."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from openbell.market.errors import InvalidParameter
from openbell.market.instruments import parse
from openbell.trading.orders import Force, OrderKind, Side
from openbell.trading.request import OrderRequest, request
from tests.trading.samples import BUY, SELL, D, look


def asked(
    side: Side = BUY, kind: OrderKind = OrderKind.MARKET, quantity: Any = 1, symbol: str = "AAPL", **more: Any
) -> OrderRequest:
    return request(parse(symbol), side, kind, quantity, **more)


def refusal(*args: Any, **more: Any) -> str:
    with pytest.raises(InvalidParameter) as caught:
        asked(*args, **more)
    return caught.value.message


def test_each_kind_takes_its_prices_and_no_others() -> None:
    stop_limit = asked(kind=OrderKind.STOP_LIMIT, price="101", stop_price=100)
    assert look(stop_limit, "limit_price stop_price") == (101, 100)
    assert asked(kind=OrderKind.LIMIT, price=1.5).limit_price == D("1.5")
    assert asked(kind=OrderKind.STOP, stop_price=2).stop_price == 2
    assert asked().limit_price is None


@pytest.mark.parametrize(
    ("kind", "prices", "message"),
    [
        (OrderKind.LIMIT, {}, "price is required for a limit order"),
        (OrderKind.LIMIT, {"stop_price": 1}, "price is required for a limit order"),
        (OrderKind.LIMIT, {"price": 1, "stop_price": 1}, "a limit order takes no stop_price"),
        (OrderKind.STOP, {}, "stop_price is required for a stop order"),
        (OrderKind.STOP, {"stop_price": 1, "price": 1}, "a stop order takes no price"),
        (OrderKind.STOP_LIMIT, {"price": 1}, "stop_price is required for a stop_limit order"),
        (OrderKind.STOP_LIMIT, {"stop_price": 1}, "price is required for a stop_limit order"),
        (OrderKind.MARKET, {"price": 1}, "a market order takes no price"),
        (OrderKind.MARKET, {"stop_price": 1}, "a market order takes no stop_price"),
    ],
)
def test_a_missing_or_superfluous_price_is_named(kind: OrderKind, prices: dict[str, Any], message: str) -> None:
    assert refusal(BUY, kind, **prices) == message


@pytest.mark.parametrize("name", ["price", "stop_price", "take_profit", "stop_loss"])
def test_a_bad_number_is_named(name: str) -> None:
    prices: dict[str, Any] = {"price": 2, "stop_price": 1} | {name: "cheap"}
    assert refusal(BUY, OrderKind.STOP_LIMIT, **prices) == f"{name} must be a number"
    assert refusal(BUY, OrderKind.STOP_LIMIT, **prices | {name: 0}).startswith(f"{name} must be more than 0")
    assert refusal(quantity="many") == "quantity must be a number"
    assert refusal(quantity=True) == "quantity must be a number"


@pytest.mark.parametrize(
    ("side", "kind", "prices", "message"),
    [
        (BUY, OrderKind.LIMIT, {"price": 100, "stop_loss": 100}, "stop_loss must be below the entry's price"),
        (BUY, OrderKind.LIMIT, {"price": 100, "stop_loss": 101}, "stop_loss must be below the entry's price"),
        (BUY, OrderKind.LIMIT, {"price": 100, "take_profit": 100}, "the entry's price must be below take_profit"),
        (BUY, OrderKind.STOP, {"stop_price": 100, "take_profit": 99}, "the entry's price must be below take_profit"),
        (BUY, OrderKind.MARKET, {"stop_loss": 100, "take_profit": 100}, "stop_loss must be below take_profit"),
        (SELL, OrderKind.LIMIT, {"price": 100, "stop_loss": 100}, "the entry's price must be below stop_loss"),
        (SELL, OrderKind.STOP, {"stop_price": 100, "stop_loss": 99}, "the entry's price must be below stop_loss"),
        (SELL, OrderKind.LIMIT, {"price": 100, "take_profit": 101}, "take_profit must be below the entry's price"),
        (SELL, OrderKind.MARKET, {"stop_loss": 99, "take_profit": 100}, "take_profit must be below stop_loss"),
    ],
)
def test_a_bracket_on_the_wrong_side_is_refused(
    side: Side, kind: OrderKind, prices: dict[str, Any], message: str
) -> None:
    assert refusal(side, kind, **prices) == f"for a {side} order {message}"


@pytest.mark.parametrize(
    ("side", "prices"),
    [
        (BUY, {"stop_loss": 99, "take_profit": 101}),
        (BUY, {"stop_loss": 99}),
        (BUY, {"take_profit": 101}),
        (SELL, {"stop_loss": 101, "take_profit": 99}),
        (SELL, {"stop_loss": 101}),
        (SELL, {"take_profit": 99}),
    ],
)
def test_a_bracket_on_the_right_side_is_accepted(side: Side, prices: dict[str, Any]) -> None:
    entries: list[tuple[OrderKind, dict[str, Any]]]
    entries = [(OrderKind.MARKET, {}), (OrderKind.LIMIT, {"price": 100}), (OrderKind.STOP, {"stop_price": 100})]
    for kind, entry in entries:
        assert asked(side, kind, **entry, **prices).bracket
    assert not asked(side).bracket


@pytest.mark.parametrize("symbol", ["EUR/JPY", "ETH/BTC", "BTC/EUR", "USD/JPY", "USDT/EUR"])
def test_instruments_priced_in_other_currencies_are_refused(symbol: str) -> None:
    quote = symbol[-3:]
    assert refusal(symbol=symbol) == (
        f"{symbol} is priced in {quote} and the account is in USD: trade it against USD or a stable coin of it"
    )


@pytest.mark.parametrize("symbol", ["AAPL", "BRK.B", "BTC/USD", "BTC/USDT", "ETH/USDC", "EUR/USD"])
def test_dollars_and_dollar_stablecoins_are_accepted(symbol: str) -> None:
    assert asked(symbol=symbol).instrument.symbol == symbol


@pytest.mark.parametrize("key", ["a", "!~", "x" * 128, "0b6f-77:1/2"])
def test_a_key_of_printable_characters_is_accepted(key: str) -> None:
    assert asked(client_order_id=key).client_order_id == key


@pytest.mark.parametrize("key", ["", " ", "a b", "a\n", "é", "x" * 129, "\x7f", "\x00"])
def test_any_other_key_is_refused(key: str) -> None:
    assert refusal(client_order_id=key) == "client_order_id must be 1 to 128 printable characters without spaces"


@pytest.mark.parametrize("quantity", [1, 1.0, "1", "1.00", "1e0", D("1.000")])
@pytest.mark.parametrize("price", [250, "250.0", "2.5e2"])
def test_equal_orders_have_the_same_digest_however_numbers_are_written(quantity: Any, price: Any) -> None:
    one = asked(kind=OrderKind.LIMIT, price="250")
    other = asked(kind=OrderKind.LIMIT, quantity=quantity, price=price, client_order_id="mine", spelling="aapl")
    assert other.digest() == one.digest()
    assert len(one.digest()) == 64


def test_any_other_order_has_another_digest() -> None:
    base: dict[str, Any] = {
        "side": BUY,
        "kind": OrderKind.STOP_LIMIT,
        "quantity": 1,
        "symbol": "BTC/USD",
        "time_in_force": Force.GTC,
        "price": 100,
        "stop_price": 99,
        "take_profit": 110,
        "stop_loss": 90,
    }
    changes: dict[str, Any] = {
        "quantity": "1.00000001",
        "symbol": "BTC/USDT",
        "time_in_force": Force.DAY,
        "price": "100.000000000001",
        "stop_price": "98",
        "take_profit": 111,
        "stop_loss": None,
    }
    all_of_them = [base, *(base | {name: value} for name, value in changes.items())]
    all_of_them.append(base | {"side": SELL, "take_profit": 90, "stop_loss": 110})
    plain = {**base, "take_profit": None, "stop_loss": None}
    all_of_them += [plain, plain | {"side": SELL}, plain | {"kind": OrderKind.LIMIT, "stop_price": None}]
    all_of_them += [plain | {"kind": OrderKind.STOP, "price": None, "stop_price": 100}]
    all_of_them += [plain | {"kind": OrderKind.MARKET, "price": None, "stop_price": None}]
    all_of_them += [base | {"take_profit": None}, base | {"stop_loss": "90.1"}, plain | {"reduce_only": True}]
    digests = [asked(**each).digest() for each in all_of_them]
    assert len(set(digests)) == len(digests)
    assert {each.name for each in fields(OrderRequest)} == {
        *("instrument", "side", "kind", "quantity", "time_in_force", "limit_price", "stop_price", "take_profit"),
        *("stop_loss", "client_order_id", "spelling", "reduce_only"),
    }, "a new field must be told apart here too"


def test_without_reduce_only_the_digest_is_the_one_before_it_existed() -> None:
    """Digests of earlier orders are stored; a retry must find them."""
    earlier = "115e6d9562b3ebe71fa9c7fbd41b73684f0773b85ff5448315d1649156a8bedf"
    assert asked(kind=OrderKind.LIMIT, price="250").digest() == earlier
    assert asked(kind=OrderKind.LIMIT, price="250", reduce_only=True).digest() != earlier


@pytest.mark.parametrize("prices", [{"stop_loss": 99}, {"take_profit": 101}])
def test_a_reduce_only_order_has_no_exits(prices: dict[str, Any]) -> None:
    assert refusal(reduce_only=True, **prices) == (
        "a reduce_only order opens nothing: leave out take_profit and stop_loss"
    )
