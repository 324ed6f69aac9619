"""Orders at a local server that speaks Alpaca's trading protocol, with and without faults."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import socket
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any, TypeVar

import pytest

from openbell.brokers.alpaca.broker import AlpacaBroker
from openbell.brokers.alpaca.states import STATES, reachable
from openbell.brokers.alpaca.wire import MalformedReply, number
from openbell.market.errors import SettingsError
from openbell.trading.broker import (
    Broker,
    BrokerError,
    BrokerRefused,
    BrokerUnavailable,
    OrderReport,
    OutcomeUnknown,
)
from openbell.trading.orders import FINAL, MOVES, Force, Order, OrderKind, OrderState, Role, Side, exits_of
from tests.brokers.alpaca_server import (
    KEY,
    NOW,
    SECRET,
    TAKEN,
    UNTAKEN,
    AlpacaTradingServer,
    Answer,
    answer,
    refusal,
)
from tests.waiting import until

T = TypeVar("T")
TICKET = "local.order-1"


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use no proxy for the loopback."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[AlpacaTradingServer]:
    with AlpacaTradingServer() as running:
        yield running


class Pauses(list[float]):
    """Records pauses instead of waiting."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0)


def broker_at(server: AlpacaTradingServer, pause: Pauses | None = None, timeout: float = 5.0) -> AlpacaBroker:
    return AlpacaBroker(
        KEY, SECRET, trading_url=server.url, timeout=timeout, pause=Pauses() if pause is None else pause
    )


def run(broker: AlpacaBroker, call: Callable[[AlpacaBroker], Awaitable[T]]) -> T:
    async def inside() -> T:
        try:
            return await call(broker)
        finally:
            await broker.close()

    return asyncio.run(inside())


def submit(server: AlpacaTradingServer, wanted: Order, timeout: float = 5.0) -> OrderReport:
    return run(broker_at(server, timeout=timeout), lambda broker: broker.submit(wanted))


def find(server: AlpacaTradingServer, wanted: Order, pause: Pauses | None = None) -> OrderReport | None:
    return run(broker_at(server, pause), lambda broker: broker.find(wanted))


def found(server: AlpacaTradingServer, wanted: Order) -> OrderReport:
    report = find(server, wanted)
    assert report is not None
    return report


def cancel(server: AlpacaTradingServer, wanted: Order, timeout: float = 5.0) -> None:
    run(broker_at(server, timeout=timeout), lambda broker: broker.cancel(wanted))


def order(**changes: Any) -> Order:
    plain = Order(
        id=TICKET,
        account="paper",
        principal="local",
        symbol="AAPL",
        side=Side.BUY,
        kind=OrderKind.MARKET,
        quantity=Decimal(10),
        opening=Decimal(10),
        time_in_force=Force.GTC,
        placed_at=float(NOW),
    )
    return replace(plain, **changes)


def limit(price: str, **changes: Any) -> Order:
    return order(kind=OrderKind.LIMIT, limit_price=Decimal(price), **changes)


def bracket(**changes: Any) -> Order:
    return order(**{"role": Role.ENTRY, "take_profit": Decimal("120.5"), "stop_loss": Decimal(90), **changes})


def posted(server: AlpacaTradingServer) -> Any:
    return json.loads(next(seen.body for seen in reversed(server.requests) if seen.kind == "submit"))


# --- sending an order


@pytest.mark.parametrize(
    ("wanted", "extra"),
    [
        (order(), {"type": "market"}),
        (order(time_in_force=Force.DAY), {"type": "market", "time_in_force": "day"}),
        (limit("123.45", side=Side.SELL), {"type": "limit", "side": "sell", "limit_price": "123.45"}),
        (order(kind=OrderKind.STOP, stop_price=Decimal("99.9")), {"type": "stop", "stop_price": "99.9"}),
        (
            order(kind=OrderKind.STOP_LIMIT, stop_price=Decimal(99), limit_price=Decimal("98.5")),
            {"type": "stop_limit", "stop_price": "99", "limit_price": "98.5"},
        ),
        (order(symbol="BRK.B"), {"type": "market", "symbol": "BRK.B"}),
        (order(symbol="BTC/USD", quantity=Decimal("0.5")), {"type": "market", "symbol": "BTC/USD", "qty": "0.5"}),
        (
            bracket(),
            {
                "type": "market",
                "order_class": "bracket",
                "take_profit": {"limit_price": "120.5"},
                "stop_loss": {"stop_price": "90"},
            },
        ),
        (
            bracket(stop_loss=None),
            {"type": "market", "order_class": "oto", "take_profit": {"limit_price": "120.5"}},
        ),
        (bracket(take_profit=None), {"type": "market", "order_class": "oto", "stop_loss": {"stop_price": "90"}}),
    ],
    ids=lambda value: "" if isinstance(value, dict) else f"{value.symbol} {value.kind} {value.time_in_force}",
)
def test_an_order_is_sent_in_alpacas_form(server: AlpacaTradingServer, wanted: Order, extra: dict[str, Any]) -> None:
    report = submit(server, wanted)
    plain = {
        "symbol": "AAPL",
        "qty": "10",
        "side": "buy",
        "time_in_force": "gtc",
        "client_order_id": TICKET,
        "extended_hours": False,
    }
    assert posted(server) == plain | extra
    assert report.state is OrderState.OPEN
    assert report.broker_id == server.roots()[0]["id"]
    assert report.executions == ()
    sent = server.requests[0].headers
    assert (sent["apca-api-key-id"], sent["apca-api-secret-key"]) == (KEY, SECRET)


def test_amounts_are_exact_there_and_back(server: AlpacaTradingServer) -> None:
    small = limit("98765.12345678", symbol="BTC/USD", quantity=Decimal("1E-8"), opening=Decimal("1E-8"))
    submit(server, small)
    body = server.requests[0].body
    assert b'"qty": "0.00000001"' in body
    assert b'"limit_price": "98765.12345678"' in body
    server.fill(TICKET, "0.00000001", "98765.12345678")
    server.activities[0]["price"] = "0.123456789012"
    report = found(server, small)
    assert report.state is OrderState.FILLED
    (fill,) = report.executions
    assert (fill.quantity, fill.price) == (Decimal("0.00000001"), Decimal("0.123456789012"))
    assert fill.fee == 0


def test_amounts_written_as_json_numbers_keep_their_digits(server: AlpacaTradingServer) -> None:
    submit(server, order(quantity=Decimal("0.1"), opening=Decimal("0.1")))
    server.fill(TICKET, "0.1")
    row = json.dumps(server.activities[0]).replace('"price": "100"', '"price": 98765.12345678901')
    server.suffer("fills", Answer(200, f"[{row}]".encode()))
    assert found(server, order(quantity=Decimal("0.1"))).executions[0].price == Decimal("98765.12345678901")


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (order(symbol="BTC/USD", time_in_force=Force.DAY), "no day orders for crypto.*use time_in_force gtc"),
        (order(symbol="BTC/USD", kind=OrderKind.STOP, stop_price=Decimal(1)), "no stop orders for crypto"),
        (bracket(symbol="BTC/USD"), "no take_profit and stop_loss with crypto"),
        (bracket(time_in_force=Force.DAY), "exits of a day order end with the day"),
        (order(symbol="EUR/USD"), "US stocks and crypto, not EUR/USD"),
        (order(symbol="no symbol"), "Invalid symbol"),
        (exits_of(bracket())[0], "with their entry"),
        (order(id="x" * 129), "at most 128 characters: this one has 129"),
        (order(id=""), "at most 128 characters"),
    ],
    ids=str,
)
def test_unsupported_orders_are_refused_before_anything_is_sent(
    server: AlpacaTradingServer, wanted: Order, why: str
) -> None:
    with pytest.raises(BrokerRefused, match=why):
        submit(server, wanted)
    assert server.requests == []


def test_the_longest_id_is_accepted(server: AlpacaTradingServer) -> None:
    long = order(id="a&b=c/d?e%20#+" + "x" * 114)
    submit(server, long)
    assert found(server, long).broker_id == server.roots()[0]["id"]


def test_an_order_filled_at_once_is_open_until_its_fills_are_known(server: AlpacaTradingServer) -> None:
    told = {"id": "abc", "client_order_id": TICKET, "status": "filled", "qty": "10", "filled_qty": "10"}
    server.suffer("submit", answer(200, told))
    assert submit(server, order()) == OrderReport("abc", OrderState.OPEN)


def test_an_order_that_is_accepted_and_rejected_is_rejected(server: AlpacaTradingServer) -> None:
    told = {"id": "abc", "client_order_id": TICKET, "status": "rejected", "qty": "10", "filled_qty": "0"}
    server.suffer("submit", answer(200, told))
    assert submit(server, order()) == OrderReport("abc", OrderState.REJECTED, reason="Alpaca says rejected")


# --- refusals and unknown outcomes


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (400, 40010000, "request body format is invalid"),
        (401, 40110000, "request is not authorized"),
        (403, 40310000, "insufficient buying power"),
        (403, 40310000, "potential wash trade detected"),
        (404, 40410000, "asset not found"),
        (422, 42210000, "fractional orders must be DAY orders"),
        (422, 40010001, "client_order_id is invalid"),
    ],
)
def test_a_refusal_has_alpacas_message(server: AlpacaTradingServer, status: int, code: int, message: str) -> None:
    server.suffer("submit", refusal(status, code, message))
    with pytest.raises(BrokerRefused, match=message) as caught:
        submit(server, order())
    assert caught.value.details == {"status": status, "code": code}
    assert server.count("submit") == 1
    assert find(server, order()) is None


def test_an_order_that_the_account_cannot_pay_is_refused(server: AlpacaTradingServer) -> None:
    with pytest.raises(BrokerRefused, match=r"insufficient buying power \(HTTP 403\)$"):
        submit(server, limit("100000.01"))
    assert server.roots() == []


def test_wrong_keys_are_reported_with_advice(server: AlpacaTradingServer) -> None:
    broker = AlpacaBroker(KEY, "another", trading_url=server.url, pause=Pauses())
    with pytest.raises(BrokerRefused, match="ALPACA_SECRET_KEY"):
        run(broker, lambda it: it.submit(order()))
    for ask in (lambda it: it.find(order()), AlpacaBroker.equity_and_cash):
        with pytest.raises(BrokerUnavailable, match=r"not authorized \(HTTP 401\). .*ALPACA_SECRET_KEY"):
            run(broker, ask)
    with pytest.raises(BrokerRefused, match="ALPACA_API_KEY"):
        run(broker, lambda it: it.cancel(order(broker_id="abc")))
    server.suffer("submit", answer(403, {"message": "forbidden."}))
    with pytest.raises(BrokerRefused, match="ALPACA_API_KEY"):
        submit(server, order())


@pytest.mark.parametrize("message", ["client_order_id must be unique", "client order id already exists"])
def test_an_existing_id_means_that_the_order_may_be_ours(server: AlpacaTradingServer, message: str) -> None:
    server.suffer("submit", refusal(422, 40010001, message))
    with pytest.raises(OutcomeUnknown, match="already has an order with this id"):
        submit(server, order())


def test_an_order_sent_twice_is_one_order(server: AlpacaTradingServer) -> None:
    first = submit(server, order())
    with pytest.raises(OutcomeUnknown):
        submit(server, order())
    assert found(server, order(state=OrderState.UNKNOWN)).broker_id == first.broker_id
    assert len(server.roots()) == 1


@pytest.mark.parametrize("fault", TAKEN)
def test_an_order_without_a_clear_answer_is_unknown_and_found_by_its_id(
    server: AlpacaTradingServer, fault: str
) -> None:
    server.suffer("submit", fault)
    with pytest.raises(OutcomeUnknown, match=r"look it up by its id"):
        submit(server, order(), timeout=0.2 if "late" in fault else 5.0)
    assert server.count("submit") == 1
    assert server.count("/v2/elsewhere") == 0
    report = found(server, order(state=OrderState.UNKNOWN))
    assert [report.broker_id] == [each["id"] for each in server.roots()]
    assert report.state is OrderState.OPEN


@pytest.mark.parametrize("fault", UNTAKEN)
def test_an_order_that_did_not_arrive_is_unknown_too(server: AlpacaTradingServer, fault: str) -> None:
    server.suffer("submit", fault)
    with pytest.raises(OutcomeUnknown):
        submit(server, order())
    assert server.count("submit") == 1
    assert find(server, order(state=OrderState.UNKNOWN)) is None


def test_an_order_on_a_connection_that_is_dropped_at_once_is_unknown(server: AlpacaTradingServer) -> None:
    server.suffer("connect", "drop")
    with pytest.raises(OutcomeUnknown):
        submit(server, order())
    assert server.requests == []


@pytest.mark.parametrize(
    "page",
    [
        Answer(403, b"<html>the proxy says no</html>"),
        Answer(404, b""),
        Answer(422, b'["message"]'),
        answer(400, {"error": "not Alpaca's form"}),
        answer(408, {"message": "request time-out"}),
        answer(409, {"message": "conflict"}),
        answer(302, {}, Location="https://example.com/v2/orders"),
    ],
    ids=lambda page: str(page.status),
)
def test_a_refusal_that_may_not_be_alpacas_is_unknown(server: AlpacaTradingServer, page: Answer) -> None:
    server.suffer("submit", page)
    with pytest.raises(OutcomeUnknown):
        submit(server, order())
    assert server.count("submit") == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry_after": "7"}, 7), ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": str(NOW + 21)}, 21), ({}, 60)],
)
def test_an_order_refused_by_the_rate_limit_was_not_accepted(
    server: AlpacaTradingServer, headers: dict[str, str], seconds: float
) -> None:
    server.suffer("submit", answer(429, {"message": "too many requests."}, **headers))
    with pytest.raises(BrokerUnavailable, match=f"try again in {seconds} s") as caught:
        submit(server, order())
    assert caught.value.details["retry_after_s"] == pytest.approx(seconds, abs=1)
    assert server.count("submit") == 1


def unused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def test_a_refused_connection_means_that_nothing_was_sent() -> None:
    broker = AlpacaBroker(KEY, SECRET, trading_url=f"http://127.0.0.1:{unused_port()}", pause=Pauses())
    with pytest.raises(BrokerUnavailable, match=r"ConnectError.* was not sent"):
        run(broker, lambda it: it.submit(order()))
    with pytest.raises(BrokerUnavailable, match="the cancellation was not sent"):
        run(broker, lambda it: it.cancel(order(broker_id="abc")))
    with pytest.raises(BrokerUnavailable, match="3 tries"):
        run(broker, lambda it: it.find(order()))


def test_a_name_that_cannot_be_resolved_means_that_nothing_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    broker = AlpacaBroker(KEY, SECRET, pause=Pauses())
    with pytest.raises(BrokerUnavailable, match="was not sent"):
        run(broker, lambda it: it.submit(order()))


def test_a_connection_timeout_means_that_nothing_was_sent() -> None:
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # fill its queue, so that later connections wait
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        broker = AlpacaBroker(KEY, SECRET, trading_url=f"http://127.0.0.1:{full.getsockname()[1]}", timeout=0.2)
        with pytest.raises(BrokerUnavailable, match=r"ConnectTimeout.* was not sent"):
            run(broker, lambda it: it.submit(order()))


def test_an_endless_slow_answer_times_out(server: AlpacaTradingServer) -> None:
    server.suffer("submit", "trickle")
    broker = broker_at(server)
    broker._http._acts.bounds = replace(broker._http._acts.bounds, whole=0.2)

    async def bounded(it: AlpacaBroker) -> None:
        async with asyncio.timeout(5):
            await it.submit(order())

    with pytest.raises(OutcomeUnknown, match="TimeoutError"):
        run(broker, bounded)


def test_a_connection_that_died_while_idle_is_not_used_for_an_order(server: AlpacaTradingServer) -> None:
    async def two(broker: AlpacaBroker) -> None:
        await broker.submit(order())
        await asyncio.to_thread(server.drop_idle)
        await broker.submit(order(id="local.order-2"))

    run(broker_at(server), two)
    assert len(server.roots()) == 2


def test_orders_do_not_wait_for_reads(server: AlpacaTradingServer) -> None:
    async def crowd(broker: AlpacaBroker) -> OrderReport:
        server.suffer("by id", *["late"] * 20)
        asked = [asyncio.create_task(broker.find(order())) for _ in range(20)]
        await until(lambda: server.count("by id") == 5)
        async with asyncio.timeout(5):
            report = await broker.submit(order())
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        return report

    assert run(broker_at(server, timeout=30), crowd).state is OrderState.OPEN


def test_many_orders_at_once_arrive_once_each(server: AlpacaTradingServer) -> None:
    async def many(broker: AlpacaBroker) -> list[OrderReport]:
        return await asyncio.gather(*(broker.submit(order(id=f"local.{n}")) for n in range(40)))

    reports = run(broker_at(server), many)
    assert len({report.broker_id for report in reports}) == 40
    assert sorted(each["client_order_id"] for each in server.roots()) == sorted(f"local.{n}" for n in range(40))


def test_one_broker_serves_one_event_loop_after_another(server: AlpacaTradingServer) -> None:
    broker = broker_at(server)
    asyncio.run(broker.submit(order()))
    asyncio.run(broker.submit(order(id="local.order-2")))
    report = run(broker, lambda it: it.find(order()))
    assert report is not None
    assert len(server.roots()) == 2


# --- finding an order and its fills


def test_an_unknown_order_is_none(server: AlpacaTradingServer) -> None:
    assert find(server, order()) is None
    assert server.requests[0].params["client_order_id"] == TICKET


@pytest.mark.parametrize(
    "page",
    [Answer(404, b"<html>"), refusal(404, 40410000, "endpoint not found"), answer(404, {"message": "Not Found"})],
)
def test_another_404_does_not_make_an_order_lost(server: AlpacaTradingServer, page: Answer) -> None:
    submit(server, order())
    server.suffer("by id", page)
    with pytest.raises(BrokerUnavailable, match="404"):
        find(server, order())


def test_fills_are_reported_as_they_happened(server: AlpacaTradingServer) -> None:
    submit(server, order())
    assert found(server, order()).state is OrderState.OPEN
    assert server.count("fills") == 0
    first = server.fill(TICKET, "4", "100.01", at=NOW + 1.25)
    report = found(server, order())
    assert report.state is OrderState.PARTIALLY_FILLED
    (one,) = report.executions
    assert (one.id, one.quantity, one.price, one.at) == (first, Decimal(4), Decimal("100.01"), NOW + 1.25)
    second = server.fill(TICKET, "6", "100.02", at=NOW + 2)
    report = found(server, order(state=OrderState.PARTIALLY_FILLED, filled=Decimal(4)))
    assert report.state is OrderState.FILLED
    assert [fill.id for fill in report.executions] == [first, second]
    assert server.requests[-1].params["after"] == "2026-09-20T14:13:20Z"


@pytest.mark.parametrize(("page", "overlap", "filters"), [*product((1, 7, 100), (0, 1), (True, False))])
def test_every_fill_is_reported_exactly_once_over_pages(
    server: AlpacaTradingServer, page: int, overlap: int, filters: bool
) -> None:
    submit(server, order(quantity=Decimal(23)))
    submit(server, order(id="another", quantity=Decimal(1000)))
    wanted = []
    for number_ in range(23):
        server.fill("another", "1")
        wanted.append(server.fill(TICKET, "1", f"100.{number_:02}", at=NOW + number_))
    server.page, server.overlap, server.filters = page, overlap if page > 1 else 0, filters
    report = found(server, order(quantity=Decimal(23)))
    assert [fill.id for fill in report.executions] == wanted
    assert report.state is OrderState.FILLED


@pytest.mark.parametrize("count", [99, 100, 101, 200])
def test_reading_continues_after_a_full_page(server: AlpacaTradingServer, count: int) -> None:
    submit(server, order(quantity=Decimal(count)))
    for _ in range(count):
        server.fill(TICKET, "1")
    report = found(server, order(quantity=Decimal(count)))
    assert len(report.executions) == count
    assert report.state is OrderState.FILLED


@pytest.mark.parametrize(
    ("word", "end", "known"),
    [
        ("filled", OrderState.FILLED, 0),
        ("filled", OrderState.FILLED, 1),
        ("canceled", OrderState.CANCELLED, 0),
        ("canceled", OrderState.CANCELLED, 1),
        ("expired", OrderState.EXPIRED, 1),
    ],
)
def test_no_order_is_final_before_its_fills_are_known(
    server: AlpacaTradingServer, word: str, end: OrderState, known: int
) -> None:
    submit(server, order())
    server.fill(TICKET, "3", told=False)
    server.fill(TICKET, "7" if word == "filled" else "2", told=False)
    server.set(TICKET, status=word)
    server.catch_up(known)
    early = found(server, order())
    assert early.state is (OrderState.PARTIALLY_FILLED if known else OrderState.OPEN)
    assert [fill.quantity for fill in early.executions] == [Decimal(3)] * known
    server.catch_up()
    late = found(server, order(state=early.state, filled=Decimal(3 * known)))
    assert late.state is end
    assert sum(fill.quantity for fill in late.executions) == (10 if word == "filled" else 5)


def test_fills_that_come_between_two_requests_are_included(server: AlpacaTradingServer) -> None:
    submit(server, order())
    server.fill(TICKET, "4")

    def trade() -> None:
        if server.of(TICKET)["filled_qty"] == "4":
            server.fill(TICKET, "6")

    server.on_fills = trade
    report = found(server, order())
    assert report.state is OrderState.FILLED
    assert len(report.executions) == 2


def test_more_filled_than_ordered_is_an_error_and_not_booked(server: AlpacaTradingServer) -> None:
    submit(server, order())
    server.fill(TICKET, "11")
    with pytest.raises(BrokerUnavailable, match="filled beyond its quantity: check the account"):
        find(server, order())


WORDS = {
    "new": OrderState.OPEN,
    "accepted": OrderState.OPEN,
    "pending_new": OrderState.OPEN,
    "accepted_for_bidding": OrderState.OPEN,
    "partially_filled": OrderState.PARTIALLY_FILLED,
    "stopped": OrderState.OPEN,
    "suspended": OrderState.OPEN,
    "held": OrderState.OPEN,
    "pending_replace": OrderState.OPEN,
    "replaced": OrderState.OPEN,
    "done_for_day": OrderState.OPEN,
    "calculated": OrderState.OPEN,
    "pending_cancel": OrderState.CANCELLING,
    "canceled": OrderState.CANCELLED,
    "expired": OrderState.EXPIRED,
    "rejected": OrderState.REJECTED,
    "filled": OrderState.FILLED,
}
"""Every documented status, with an order that is partially or completely filled where the status says so."""


def test_every_documented_status_is_mapped() -> None:
    assert WORDS.keys() == STATES.keys()


@pytest.mark.parametrize("word", list(WORDS))
def test_each_status_becomes_our_state(server: AlpacaTradingServer, word: str) -> None:
    submit(server, order())
    done = {"filled": "10", "partially_filled": "4"}.get(word)
    if done:
        server.fill(TICKET, done)
    server.set(TICKET, status=word)
    report = found(server, order(state=OrderState.OPEN))
    assert report.state is WORDS[word]
    assert report.reason == (f"Alpaca says {word}" if report.state in FINAL - {OrderState.FILLED} else None)


def test_an_unknown_status_is_treated_as_open(server: AlpacaTradingServer, caplog: pytest.LogCaptureFixture) -> None:
    submit(server, order())
    server.set(TICKET, status="meditating")
    assert found(server, order()).state is OrderState.OPEN
    assert "has the unknown status 'meditating'; it is treated as open" in caplog.text
    server.fill(TICKET, "3")
    server.set(TICKET, status="meditating")
    assert found(server, order()).state is OrderState.PARTIALLY_FILLED


@pytest.mark.parametrize("state", [state for state in OrderState if state not in FINAL | {OrderState.HELD}])
@pytest.mark.parametrize("filled", [0, 4])
def test_a_report_can_follow_the_orders_own_state(state: OrderState, filled: int) -> None:
    some = state is OrderState.PARTIALLY_FILLED or filled
    ours = order(state=state, filled=Decimal(4 if some else 0))
    for told in sorted({*WORDS.values(), OrderState.HELD}):
        near = reachable(ours, OrderReport("abc", told)).state
        assert near is state or near in MOVES[state], told
        assert (near in FINAL) == (told in FINAL), told


def test_a_bracket_through_its_life(server: AlpacaTradingServer) -> None:
    report = submit(server, bracket())
    profit, loss = server.leg(TICKET, "limit"), server.leg(TICKET, "stop")
    assert {role: (leg.broker_id, leg.state) for role, leg in report.exits} == {
        "take_profit": (profit["id"], OrderState.HELD),
        "stop_loss": (loss["id"], OrderState.HELD),
    }
    assert states(found(server, bracket())) == (OrderState.OPEN, OrderState.HELD, OrderState.HELD)
    server.fill(TICKET, "4")
    assert states(found(server, bracket())) == (OrderState.PARTIALLY_FILLED, OrderState.HELD, OrderState.HELD)
    server.fill(TICKET, "6")
    assert states(found(server, bracket())) == (OrderState.FILLED, OrderState.OPEN, OrderState.OPEN)
    server.fill(profit["id"], "3", "120.5")
    report = found(server, bracket())
    assert states(report) == (OrderState.FILLED, OrderState.PARTIALLY_FILLED, OrderState.OPEN)
    server.fill(profit["id"], "7", "120.6")
    report = found(server, bracket())
    assert states(report) == (OrderState.FILLED, OrderState.FILLED, OrderState.CANCELLED)
    assert [fill.price for fill in dict(report.exits)["take_profit"].executions] == [Decimal("120.5"), Decimal("120.6")]
    assert [fill.quantity for fill in report.executions] == [4, 6]


def states(report: OrderReport) -> tuple[OrderState, ...]:
    return (report.state, *(each.state for _, each in report.exits))


def test_legs_are_read_from_whichever_answer_has_them(server: AlpacaTradingServer) -> None:
    submit(server, bracket())
    assert len(found(server, bracket()).exits) == 2
    assert server.count("order") == 1
    server.tells_legs = True
    assert len(found(server, bracket()).exits) == 2
    assert server.count("order") == 1


def test_a_stop_that_takes_the_place_of_the_target(server: AlpacaTradingServer) -> None:
    submit(server, bracket())
    profit, loss = server.leg(TICKET, "limit"), server.leg(TICKET, "stop")
    server.fill(TICKET, "10")
    server.set(profit["id"], status="replaced", replaced_by=loss["id"])
    server.set(loss["id"], status="new")
    assert states(found(server, bracket())) == (OrderState.FILLED, OrderState.CANCELLED, OrderState.OPEN)
    server.fill(loss["id"], "10", "89.9")
    server.set(profit["id"], status="replaced", replaced_by=None)
    report = found(server, bracket())
    assert states(report) == (OrderState.FILLED, OrderState.CANCELLED, OrderState.FILLED)
    assert dict(report.exits)["take_profit"].reason == "the other exit took its place"


def test_a_stop_that_is_replaced_and_filled(server: AlpacaTradingServer) -> None:
    submit(server, bracket())
    server.fill(TICKET, "10")
    loss = server.leg(TICKET, "stop")
    new = server.replace(loss["id"])
    server.fill(new["id"], "10", "89.5")
    stop = dict(found(server, bracket()).exits)["stop_loss"]
    assert (stop.broker_id, stop.state) == (new["id"], OrderState.FILLED)
    assert [fill.price for fill in stop.executions] == [Decimal("89.5")]


def test_a_target_with_missing_fills_is_not_ended_by_the_stop(server: AlpacaTradingServer) -> None:
    submit(server, bracket())
    server.fill(TICKET, "10")
    profit, loss = server.leg(TICKET, "limit"), server.leg(TICKET, "stop")
    server.fill(profit["id"], "2", told=False)
    server.set(profit["id"], status="replaced", replaced_by=loss["id"])
    assert states(found(server, bracket())) == (OrderState.FILLED, OrderState.OPEN, OrderState.OPEN)
    server.catch_up()
    report = found(server, bracket())
    assert states(report) == (OrderState.FILLED, OrderState.CANCELLED, OrderState.OPEN)
    assert dict(report.exits)["take_profit"].executions[0].quantity == 2


@pytest.mark.parametrize("role", [Role.TAKE_PROFIT, Role.STOP_LOSS])
def test_an_exit_is_found_through_its_entry(server: AlpacaTradingServer, role: Role) -> None:
    submit(server, bracket())
    wanted = next(each for each in exits_of(bracket()) if each.role is role)
    assert found(server, wanted).state is OrderState.HELD
    server.fill(TICKET, "10")
    leg = server.leg(TICKET, "limit" if role is Role.TAKE_PROFIT else "stop")
    server.fill(leg["id"], "4")
    report = found(server, replace(wanted, state=OrderState.OPEN))
    assert (report.broker_id, report.state) == (leg["id"], OrderState.PARTIALLY_FILLED)
    assert [fill.quantity for fill in report.executions] == [4]


def test_an_exit_that_alpaca_does_not_have_is_none(server: AlpacaTradingServer) -> None:
    profit, loss = exits_of(bracket())
    assert find(server, loss) is None
    submit(server, bracket(stop_loss=None))
    assert find(server, loss) is None
    assert found(server, profit).state is OrderState.HELD


def test_an_unknown_kind_of_leg_is_an_error(server: AlpacaTradingServer) -> None:
    submit(server, bracket())
    server.leg(TICKET, "stop")["type"] = "market"
    with pytest.raises(BrokerUnavailable, match="neither limit nor stop"):
        find(server, bracket())


@pytest.mark.parametrize("carried", [False, True])
def test_fills_before_and_after_a_replacement_count(server: AlpacaTradingServer, carried: bool) -> None:
    submit(server, limit("100"))
    server.fill(TICKET, "4", at=NOW + 1)
    new = server.replace(TICKET, filled_qty="4" if carried else "0")
    assert states(found(server, limit("100"))) == (OrderState.PARTIALLY_FILLED,)
    server.fill(new["id"], "6", at=NOW + 2, told=False)
    server.set(new["id"], status="filled")
    assert found(server, limit("100")).state is OrderState.PARTIALLY_FILLED
    server.catch_up()
    report = found(server, limit("100"))
    assert (report.broker_id, report.state) == (new["id"], OrderState.FILLED)
    assert [fill.quantity for fill in report.executions] == [4, 6]


@pytest.mark.parametrize("carried", [False, True])
def test_a_replacement_that_ends_early_is_final_once_its_fills_are_known(
    server: AlpacaTradingServer, carried: bool
) -> None:
    submit(server, limit("100"))
    server.fill(TICKET, "4", at=NOW + 1)
    new = server.replace(TICKET, filled_qty="4" if carried else "0")
    server.fill(new["id"], "3", at=NOW + 2, told=False)
    server.set(new["id"], status="canceled")
    assert found(server, limit("100")).state is OrderState.PARTIALLY_FILLED
    server.catch_up()
    report = found(server, limit("100"))
    assert report.state is OrderState.CANCELLED
    assert [fill.quantity for fill in report.executions] == [4, 3]


def test_an_order_that_was_made_smaller_at_alpaca_has_ended(server: AlpacaTradingServer) -> None:
    submit(server, limit("100"))
    new = server.replace(TICKET, qty="3")
    server.fill(new["id"], "3")
    report = found(server, limit("100"))
    assert (report.state, report.reason) == (OrderState.CANCELLED, "its quantity was reduced at Alpaca")


def test_replacements_in_a_circle_or_by_a_missing_order_are_errors(server: AlpacaTradingServer) -> None:
    submit(server, order())
    server.set(TICKET, status="replaced", replaced_by="nowhere")
    with pytest.raises(BrokerUnavailable, match="order nowhere, which replaced another, is missing"):
        find(server, order())
    server.set(TICKET, replaced_by=server.of(TICKET)["id"])
    assert found(server, order()).state is OrderState.OPEN
    for _ in range(25):
        server.replace(list(server.orders)[-1])
    with pytest.raises(BrokerUnavailable, match="replaced more than 20 times"):
        find(server, order())


@pytest.mark.parametrize("fault", ["drop", "500", "503", answer(429, {}), "late"])
def test_a_read_is_retried(server: AlpacaTradingServer, fault: Answer | str) -> None:
    submit(server, order())
    server.fill(TICKET, "10")
    pauses = Pauses()
    server.suffer("by id", fault, fault)
    server.suffer("fills", fault)
    report = run(broker_at(server, pauses, timeout=0.2 if fault == "late" else 5.0), lambda it: it.find(order()))
    assert report is not None
    assert report.state is OrderState.FILLED
    assert len(pauses) == 3
    assert all(0.2 < pause < 2 for pause in pauses)


@pytest.mark.parametrize("kind", ["by id", "order", "fills"])
@pytest.mark.parametrize("fault", ["drop", "503"])
def test_a_read_fails_after_three_tries(server: AlpacaTradingServer, kind: str, fault: str) -> None:
    submit(server, bracket())
    server.fill(TICKET, "10")
    server.suffer(kind, *[fault] * 3)
    with pytest.raises(BrokerUnavailable, match="3 tries"):
        find(server, bracket())
    assert server.count(kind) == 3
    assert found(server, bracket()).state is OrderState.FILLED


def test_a_read_fails_at_once_if_the_required_pause_is_long(server: AlpacaTradingServer) -> None:
    pauses = Pauses()
    server.suffer("by id", answer(429, {}, retry_after="40"))
    with pytest.raises(BrokerUnavailable, match="try again in 40 s") as caught:
        find(server, order(), pauses)
    assert caught.value.details["retry_after_s"] == pytest.approx(40, abs=1)
    assert pauses == []
    assert server.count("by id") == 1


def test_reads_keep_a_short_required_pause_and_orders_do_not(
    server: AlpacaTradingServer,
) -> None:
    async def both(broker: AlpacaBroker) -> None:
        with pytest.raises(BrokerUnavailable):
            await broker.submit(order())
        await broker.submit(order())
        assert pauses == []
        await broker.find(order())

    pauses = Pauses()
    server.suffer("submit", answer(429, {}, retry_after="5"))
    run(broker_at(server, pauses), both)
    assert list(pauses) == pytest.approx([5], abs=1)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        json.dumps({"client_order_id": TICKET, "status": "new"}).encode(),
        json.dumps({"id": "../account", "client_order_id": TICKET, "status": "new"}).encode(),
        json.dumps({"id": "abc", "client_order_id": TICKET}).encode(),
        json.dumps({"id": "abc", "client_order_id": "another", "status": "new"}).encode(),
        json.dumps({"id": "abc", "client_order_id": TICKET, "status": "new", "legs": {}}).encode(),
        json.dumps({"id": "abc", "client_order_id": TICKET, "status": "new", "filled_qty": "many"}).encode(),
        b'{"id": "abc", "client_order_id": "local.order-1", "status": "new", "filled_qty": NaN}',
        b'{"id": "abc", "client_order_id": "local.order-1", "status": "new", "filled_qty": 1e999999999}',
        b'{"id": "abc", "client_order_id": "local.order-1", "status": "new", "filled_qty": true}',
        b" " * 5_000_000,
    ],
    ids=[str(n) for n in range(15)],
)
def test_a_malformed_answer_is_an_error(server: AlpacaTradingServer, body: bytes) -> None:
    server.suffer("by id", *[Answer(200, body)] * 3)
    with pytest.raises(BrokerUnavailable):
        find(server, order())
    server.suffer("submit", Answer(200, body))
    with pytest.raises(OutcomeUnknown):
        submit(server, order())


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"id": ""},
        {"qty": "-1"},
        {"qty": "0"},
        {"qty": None},
        {"price": "free"},
        {"price": "0"},
        {"transaction_time": None},
        {"transaction_time": "yesterday"},
        {"transaction_time": "2026-09-21T14:13:20"},
    ],
    ids=str,
)
def test_an_impossible_fill_is_not_booked(server: AlpacaTradingServer, change: dict[str, Any]) -> None:
    submit(server, order())
    server.fill(TICKET, "10")
    server.suffer("fills", answer(200, [{**server.activities[0], **change}]))
    with pytest.raises(BrokerUnavailable, match="is malformed"):
        find(server, order())


@pytest.mark.parametrize("body", [b"{}", b"[1]", b"null"])
def test_malformed_fills_are_an_error(server: AlpacaTradingServer, body: bytes) -> None:
    submit(server, order())
    server.fill(TICKET, "10")
    server.suffer("fills", Answer(200, body))
    with pytest.raises(BrokerUnavailable, match="is malformed"):
        find(server, order())


def test_endless_pages_are_an_error(server: AlpacaTradingServer) -> None:
    submit(server, order())
    submit(server, order(id="another", quantity=Decimal(10_000)))
    for _ in range(120):
        server.fill("another", "1")
    server.fill(TICKET, "10", told=False)
    server.page, server.filters = 1, False
    with pytest.raises(BrokerUnavailable, match="more than 100 pages"):
        find(server, order())


FAULTS: list[Answer | str] = ["drop", "503", answer(429, {})]


@pytest.mark.parametrize("seed", range(12))
def test_books_kept_by_reports_end_equal_to_alpacas(server: AlpacaTradingServer, seed: int) -> None:
    """Partial fills, late activities, cancellations and faults in any order: no fill is lost or booked twice."""
    chance = random.Random(seed)
    ours = replace(order(), state=OrderState.UNKNOWN)
    server.suffer("submit", "take and drop")
    with pytest.raises(OutcomeUnknown):
        submit(server, order())
    booked: set[str] = set()

    def market() -> None:
        vendor = server.of(TICKET)
        left = 10 - int(vendor["filled_qty"])
        deed = chance.choice(["fill", "fill", "cancel", "pending", "tell", "fault", "odd"])
        if deed == "tell":
            server.catch_up(chance.randint(0, len(server.hidden)))
        elif deed == "fault":
            server.suffer(chance.choice(["by id", "fills"]), chance.choice(FAULTS))
        elif vendor["status"] in {"canceled", "filled"}:
            return
        elif deed == "fill" and left:
            server.fill(TICKET, str(chance.randint(1, min(4, left))), told=chance.random() < 0.5)
        elif deed == "cancel" and chance.random() < 0.3:
            server.set(TICKET, status="canceled")
        elif deed in {"pending", "odd"}:
            server.set(
                TICKET, status="pending_cancel" if deed == "pending" else chance.choice(["calculated", "dozing"])
            )

    async def look(broker: AlpacaBroker) -> None:
        nonlocal ours
        report = await broker.find(ours)
        assert report is not None
        for fill in report.executions:
            if fill.id not in booked:
                booked.add(fill.id)
                ours = ours.with_fill(fill.quantity, fill.price, fill.fee, fill.at)
        ours = ours.to(report.state, NOW)

    async def days(broker: AlpacaBroker) -> None:
        for _ in range(25):
            market()
            if ours.final:
                return
            await look(broker)
        server.catch_up()
        if server.of(TICKET)["status"] != "filled":
            server.set(TICKET, status="canceled")
        if not ours.final:
            await look(broker)

    run(broker_at(server), days)
    assert ours.final
    assert ours.filled == Decimal(server.of(TICKET)["filled_qty"])
    assert server.hidden == []


# --- cancelling


@pytest.mark.parametrize("word", list(WORDS))
def test_cancelling_in_every_state(server: AlpacaTradingServer, word: str) -> None:
    report = submit(server, order())
    if word == "filled":
        server.fill(TICKET, "10")
    server.set(TICKET, status=word)
    cancel(server, order(broker_id=report.broker_id))
    ended = {"filled", "canceled", "expired", "rejected", "replaced", "pending_cancel", "pending_replace"}
    assert server.of(TICKET)["status"] == (word if word in ended else "canceled")
    assert server.count("cancel") == 1


def test_cancelling_takes_its_time(server: AlpacaTradingServer) -> None:
    server.slow_cancel = True
    report = submit(server, order())
    cancel(server, order(broker_id=report.broker_id))
    working = order(state=OrderState.OPEN)
    assert found(server, working).state is OrderState.CANCELLING
    assert found(server, order(state=OrderState.PENDING)).state is OrderState.OPEN
    server.fill(TICKET, "4")
    server.set(TICKET, status="pending_cancel")
    assert found(server, working).state is OrderState.CANCELLING
    server.cancel_all()
    report = found(server, order(state=OrderState.CANCELLING))
    assert (report.state, len(report.executions)) == (OrderState.CANCELLED, 1)


def test_an_order_whose_id_at_alpaca_is_not_known_is_cancelled_by_ours(server: AlpacaTradingServer) -> None:
    submit(server, order())
    cancel(server, order())
    assert server.of(TICKET)["status"] == "canceled"


def test_cancelling_an_unknown_order_is_no_error(server: AlpacaTradingServer) -> None:
    cancel(server, order())
    assert server.count("cancel") == 0
    cancel(server, order(broker_id="abc"))
    assert server.count("cancel") == 1


def test_an_exit_is_cancelled_through_its_entry(server: AlpacaTradingServer) -> None:
    submit(server, bracket())
    server.fill(TICKET, "10")
    _, loss = exits_of(bracket())
    cancel(server, loss)
    assert server.leg(TICKET, "stop")["status"] == "canceled"
    assert server.leg(TICKET, "limit")["status"] == "new"


def test_an_entry_takes_its_exits_with_it(server: AlpacaTradingServer) -> None:
    submit(server, bracket())
    cancel(server, bracket())
    assert states(found(server, bracket())) == (OrderState.CANCELLED,) * 3


def test_the_replacement_of_an_order_is_cancelled(server: AlpacaTradingServer) -> None:
    report = submit(server, limit("100"))
    new = server.replace(TICKET)
    newest = server.replace(new["id"])
    cancel(server, limit("100", broker_id=report.broker_id))
    assert server.of(newest["id"])["status"] == "canceled"


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("drop", OutcomeUnknown),
        ("take and drop", OutcomeUnknown),
        ("take and be late", OutcomeUnknown),
        ("take and 504", OutcomeUnknown),
        ("503", OutcomeUnknown),
        ("take and redirect", OutcomeUnknown),
        (Answer(403, b"<html>"), OutcomeUnknown),
        (refusal(403, 40310000, "account is blocked"), BrokerRefused),
        (refusal(400, 40010000, "bad"), BrokerRefused),
        (answer(429, {}, retry_after="3"), BrokerUnavailable),
    ],
    ids=str,
)
def test_each_answer_to_a_cancellation_has_its_error(
    server: AlpacaTradingServer, fault: Answer | str, outcome: type[BrokerError]
) -> None:
    report = submit(server, order())
    server.suffer("cancel", fault)
    with pytest.raises(BrokerError) as caught:
        cancel(server, order(broker_id=report.broker_id), timeout=0.2 if fault == "take and be late" else 5.0)
    assert type(caught.value) is outcome
    assert server.count("cancel") == 1
    taken = isinstance(fault, str) and fault.startswith("take")
    assert found(server, order()).state is (OrderState.CANCELLED if taken else OrderState.OPEN)


# --- the account


def test_equity_and_cash_are_exact(server: AlpacaTradingServer) -> None:
    told = run(broker_at(server), AlpacaBroker.equity_and_cash)
    assert told == {"equity": Decimal("100000.12345678"), "cash": Decimal("-12.5")}
    unreadable: list[Any] = [[], {"equity": "1"}, {"equity": "1", "cash": "much"}]
    for account in unreadable:
        server.account = account
        with pytest.raises(BrokerUnavailable, match="is malformed"):
            run(broker_at(server), AlpacaBroker.equity_and_cash)


@pytest.mark.parametrize("value", [None, True, 1.5, [], "", "1_0", "nan", "inf", "1e400", "١"])
def test_invalid_amounts_are_malformed(value: Any) -> None:
    with pytest.raises(MalformedReply):
        number(value)


# --- keys and addresses


def test_keys_are_in_no_error_and_no_log(server: AlpacaTradingServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f"no: {KEY} and {SECRET}\r\nnext line \x1b[31m " + "x" * 1000
    faults: list[Answer | str] = [*TAKEN, *UNTAKEN, answer(429, {"message": echo})]
    faults += [refusal(status, 40310000, echo) for status in (400, 401, 403, 404, 409, 422)]
    told: list[BrokerError] = []

    async def everything(broker: AlpacaBroker) -> None:
        for number_, fault in enumerate(faults):
            for kind, call in (
                ("submit", lambda n=number_: broker.submit(order(id=f"local.{n}"))),
                ("cancel", lambda: broker.cancel(order(broker_id="abc"))),
                ("by id", lambda: broker.find(order())),
                ("account", broker.equity_and_cash),
            ):
                server.suffer(kind, *[fault] * (1 if kind in {"submit", "cancel"} else 3))
                try:
                    await call()
                except BrokerError as error:
                    told.append(error)
                server._faults[kind].clear()

    run(broker_at(server, timeout=0.2), everything)
    assert len(told) > 3 * len(faults)
    texts = [caplog.text]
    for error in told:
        texts += ["".join(traceback.format_exception(error)), repr(error), str(error.details)]
        assert len(error.message) < 500
        assert error.message.isprintable()
    assert any("no: … and … next line" in text for text in texts)
    for text in texts:
        assert KEY not in text
        assert SECRET not in text
    assert SECRET not in repr(broker_at(server)) + str(broker_at(server).__dict__["account"])


def test_keys_do_not_follow_a_redirect(server: AlpacaTradingServer) -> None:
    with AlpacaTradingServer() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            away = Answer(status, b"", {"Location": f"{elsewhere.url}/v2/orders"})
            server.suffer("submit", away)
            server.suffer("by id", away)
            with pytest.raises(OutcomeUnknown):
                submit(server, order())
            with pytest.raises(BrokerUnavailable, match=str(status)):
                find(server, order())
        assert elsewhere.requests == []
    assert {seen.kind for seen in server.requests} == {"submit", "by id"}


@pytest.mark.parametrize("bad", ["", "  ", "two words", "line\nbreak", "schlüssel"])
def test_invalid_keys_are_refused_without_quoting_them(bad: str) -> None:
    with pytest.raises(SettingsError, match="ALPACA_API_KEY") as caught:
        AlpacaBroker(bad, SECRET)
    assert not bad.strip() or bad not in str(caught.value)
    with pytest.raises(SettingsError, match="ALPACA_SECRET_KEY"):
        AlpacaBroker(KEY, bad)


def test_paper_and_live_have_their_addresses() -> None:
    paper: Broker = AlpacaBroker(KEY, SECRET)
    live: Broker = AlpacaBroker(KEY, SECRET, live=True)
    assert (paper.name, paper.account) == ("alpaca", "paper")
    assert (live.name, live.account) == ("alpaca", "live")
    assert AlpacaBroker(KEY, SECRET)._http._acts.url == "https://paper-api.alpaca.markets"
    assert AlpacaBroker(KEY, SECRET, live=True)._http._acts.url == "https://api.alpaca.markets"


@pytest.mark.parametrize(
    ("url", "live"),
    [
        ("https://api.alpaca.markets", False),
        ("https://API.alpaca.markets:443/", False),
        ("https://paper-api.alpaca.markets/", True),
        ("http://example.com", False),
        ("http://10.0.0.1", True),
        ("ftp://127.0.0.1", False),
        ("example.com", False),
        ("https://user:pass@example.com", False),
        ("https://example.com?key=1", False),
    ],
)
def test_an_address_of_the_other_account_or_without_tls_is_refused(url: str, live: bool) -> None:
    with pytest.raises(SettingsError):
        AlpacaBroker(KEY, SECRET, live=live, trading_url=url)
