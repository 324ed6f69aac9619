"""Calls about an account while bars cannot be read: they continue without bars, and say so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.bars.call_deadlines import BarDeadline, call_within, during
from openbell.desk.bars.service import BarService
from openbell.desk.desk import Desk
from openbell.market.errors import RiskRefused, StoreTimeout
from openbell.market.instruments import parse
from openbell.trading.orders import OrderKind, OrderState, Side
from openbell.trading.request import OrderRequest, request
from tests.clocks import HandClock
from tests.desk.trading.child import desk_of

BTC = parse("BTC/USD")
START = 1_767_800_730.0
TIMEOUT = 0.5


def order(side: Side, quantity: str, price: str | None = None) -> OrderRequest:
    return request(BTC, side, OrderKind.LIMIT if price else OrderKind.MARKET, Decimal(quantity), price=price)


@asynccontextmanager
async def holding(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    """A desk with a position, a resting order and a market order that is due, whose bars can no longer be read."""
    desk = desk_of({"HOME": str(home), "TRADE": "1"})
    desk.clock = clock = HandClock(START)
    async with desk:
        orders = desk.trading.orders
        await orders.place("local", order(Side.BUY, "0.02"))
        clock.advance(120)
        await orders.place("local", order(Side.BUY, "0.01", price="80000"))
        await orders.place("local", order(Side.BUY, "0.005"))
        clock.advance(120)
        with monkeypatch.context() as patch:
            hangs = asyncio.Event()

            async def never(*_: Any) -> None:
                await hangs.wait()

            for name in ("fill", "newest", "known"):
                patch.setattr(BarService, name, never)
            patch.setattr(desk.bars.threads, "run", never)
            yield desk


def test_a_position_is_reduced_and_an_order_cancelled_while_bars_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with holding(tmp_path, monkeypatch) as desk:
            trading = desk.trading
            with call_within(TIMEOUT):
                sold = await trading.orders.place("local", order(Side.SELL, "0.02"))
            assert sold.state is OrderState.OPEN
            assert sold.opening == 0
            resting = next(each for each in (await orders_of(desk)) if each.kind is OrderKind.LIMIT)
            with call_within(TIMEOUT):
                assert (await trading.orders.cancel("local", resting.id)).state is OrderState.CANCELLED
            with call_within(TIMEOUT), pytest.raises((RiskRefused, StoreTimeout), match="did not answer within"):
                await trading.orders.place("local", order(Side.BUY, "0.03"))

    asyncio.run(main())


def test_positions_are_listed_while_bars_hang_and_a_fill_that_is_due_is_named_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with holding(tmp_path, monkeypatch) as desk:
            with call_within(TIMEOUT):
                (held,) = await desk.trading.portfolio.holdings("local")
            assert held.position.quantity == Decimal("0.02")
            behind = desk.trading.behind("local")
            assert behind
            assert behind.startswith("fills that are due may be missing: a store or the feed did not answer within")
        async with desk_of({"HOME": str(tmp_path), "TRADE": "1"}) as desk:
            desk.clock = HandClock(START + 240)
            (held,) = await desk.trading.portfolio.holdings("local")
            assert held.position.quantity == Decimal("0.025")
            assert desk.trading.behind("local") is None

    asyncio.run(main())


def test_steps_end_at_their_share_of_a_call_and_never_outside_of_one() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with call_within(0.1):
            for step in BarDeadline:
                with pytest.raises(StoreTimeout, match="a store or the feed did not answer within"):
                    async with during(step):
                        await asyncio.Event().wait()
            with pytest.raises(TimeoutError):  # of something else
                async with during(BarDeadline.REASONS):
                    raise TimeoutError
        for limit in (call_within(0), call_within(0.0)):
            with limit:
                async with during(BarDeadline.FIND):
                    await asyncio.sleep(0)
        began = loop.time()
        async with during(BarDeadline.FIND):
            assert loop.time() >= began

    asyncio.run(main())


async def orders_of(desk: Desk) -> list[Any]:
    with call_within(TIMEOUT):
        return (await desk.trading.orders.listing("local", open_only=True, limit=10))[0]
