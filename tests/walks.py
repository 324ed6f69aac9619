"""The six paths of docs/architecture.md, walked on real desks: each is walked once before, so that all parts are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from openbell.backtest.wire.limits import USUAL_MESSAGE_MB
from openbell.desk.bars.collector import Collector
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.gateway.backtester.service import ServiceOptions, serve
from openbell.gateway.outbound import Outbound
from openbell.gateway.webhooks.sender import WebhookSender
from openbell.protocol.service import Runner
from openbell.servers import load as load_server
from openbell.stores.records import orders
from tests.clocks import HandClock
from tests.gateway.receivers import Receiver
from tests.gateway.streamable.gateways import Inside, message
from tests.sessions import answered
from tests.tracing import Trace, tracing
from tests.waiting import until, wait_for

NOW = 1_767_798_000
"""2026-01-07T15:00:00Z."""
COIN, OTHER = "BTC/USD", "ETH/USD"


@asynccontextmanager
async def simulated(home: Path, **settings: str) -> AsyncIterator[Desk]:
    """A desk on the simulated market whose clock is moved by hand."""
    given = {"HOME": str(home), "FEED": "sim", "TRADE": "1", "TIMEOUT": "60", **settings}
    desk = Desk(load({f"OPENBELL_{name}": value for name, value in given.items()}))
    desk.clock = HandClock(NOW)
    try:
        yield desk
    finally:
        await desk.close()


def pass_minute(desk: Desk) -> None:
    """Close the bars of a minute."""
    assert isinstance(desk.clock, HandClock)
    desk.clock.advance(60)


async def call(desk: Desk, server: str, tool: str, **arguments: Any) -> Any:
    """The payload of a call."""
    reply = await answered(Runner(load_server(server), desk), tool, arguments)
    assert not reply.is_error, reply.payload
    return reply.payload


async def bar_to_signal(home: Path, trace: Trace) -> None:
    """A minute closes, the collector stores its bar, and `get_signals` is called."""
    async with simulated(home) as desk:
        desk.settings.watchlist_file.write_text(f"{COIN}\n", encoding="utf-8")
        collector = Collector(desk.bars, desk.watchlist, desk.hub)
        desk.supervisor.background("collector", collector.run, collector.status)
        await until(lambda: collector.status.through >= NOW, "the collector to catch up")

        async def minute(number: int) -> None:
            pass_minute(desk)
            await until(lambda: collector.status.through >= NOW + 60 * number, "the bar")
            await call(desk, "chart-signals", "get_signals", symbol=COIN, timeframe="1min")

        await minute(1)
        with trace.recording():
            for number in (2, 3, 4):  # a minute that was read with the one before it needs no file
                await minute(number)


async def order_to_fill(home: Path, trace: Trace) -> None:
    """A market order is placed, and filled at the open of the next minute."""
    async with simulated(home) as desk:
        for quantity in ("0.01", "0.02"):
            given = {"symbol": COIN, "side": "buy", "quantity": quantity, "type": "market"}
            with trace.recording():
                placed = await call(desk, "chartgen", "place_order", **given)
                pass_minute(desk)
                await desk.trading.catch_up()
            found = await desk.trading.records.read(lambda view: orders.order(view, placed["order_id"]))  # noqa: B023
            assert found is not None
            assert found.filled == Decimal(quantity)


async def request_to_picture(home: Path, trace: Trace) -> None:
    """`generate_chart` is called."""
    async with simulated(home) as desk:
        for symbol in (COIN, OTHER):
            with trace.recording():
                await call(desk, "chartgen", "generate_chart", symbol=symbol, timeframe="1h", indicators=["RSI"])


async def http_to_answer(home: Path, trace: Trace) -> None:
    """`get_current_price` is called over HTTP with a token."""

    def ask() -> None:
        with Inside(home, AS_OF="2026-01-07T15:00:00Z") as gateway:
            # Another token, because those that were read are known for a second.
            for who, symbol in (("alice", COIN), ("bob", OTHER)):
                asked = message("tools/call", {"name": "get_current_price", "arguments": {"symbol": symbol}})
                with trace.recording():
                    answer = gateway.post(asked, who, "/market-data/mcp")
                    wait_for(trace.is_still, "what follows the answer, such as the audit")
                assert answer.json["result"]["structuredContent"]["data"]["price"] > 0, answer

    await asyncio.to_thread(ask)


async def backtest_over_grpc(home: Path, trace: Trace) -> None:
    """`run_backtest` is called on a desk with a backtester."""
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    service = asyncio.create_task(
        serve(ServiceOptions("127.0.0.1", 0, 1, None, USUAL_MESSAGE_MB), stop, address.set_result)
    )
    async with simulated(home, BACKTESTER=await address) as desk:
        for symbol in (COIN, OTHER):
            given = {"strategy_id": "SMA_RSI", "symbol": symbol, "start_date": "2025-12-01", "end_date": "2026-01-01"}
            with trace.recording():
                await call(desk, "backtest", "run_backtest", **given)
    stop.set()
    await service


async def alert_to_phone(home: Path, trace: Trace) -> None:
    """A minute closes above the price of an alert, and its webhook arrives."""
    with Receiver() as receiver:
        async with simulated(home, WEBHOOK_ORIGINS=receiver.url) as desk:
            await desk.webhooks.add("local", f"{receiver.url}/hook")
            for count in (1, 2):
                await call(desk, "chartgen", "set_alert", symbol=COIN, condition={"price_above": 1})
                with trace.recording():
                    pass_minute(desk)
                    await desk.trading.catch_up()
                    sender = WebhookSender(desk, Outbound(trusted=desk.settings.trusted_origins))
                    sending = desk.supervisor.background("webhooks", sender.run, sender.status)
                    await until(lambda: len(receiver.seen) >= count, "the webhook")  # noqa: B023
                    while any(each.waiting for each in await desk.webhooks.list("local")):
                        await asyncio.sleep(0.01)  # its arrival is recorded
                sending.cancel()
                await asyncio.wait({sending})


WALKS: dict[str, Callable[[Path, Trace], Coroutine[Any, Any, None]]] = {
    "A bar to a signal": bar_to_signal,
    "An order to its fill": order_to_fill,
    "A request to a picture": request_to_picture,
    "An HTTP call to its answer": http_to_answer,
    "A backtest over gRPC": backtest_over_grpc,
    "An alert to a phone": alert_to_phone,
}
"""By the heading on the page."""


def walk(heading: str, folder: Path) -> list[str]:
    """Returns the files of src/openbell that a path visits, in order of the first visit."""
    home = folder / "home"
    home.mkdir()
    with tracing(folder) as trace:
        asyncio.run(WALKS[heading](home, trace))
    return trace.visited()
