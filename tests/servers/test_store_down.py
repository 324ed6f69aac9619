"""The bar store fails while positions are held: what is shown, what is refused, and what still works."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from openbell.market.clock import iso
from openbell.market.errors import StoreError
from tests.servers.desks import Bench
from tests.servers.histories import START, History

ORDER = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "5"}
GONE = "the disk is gone"


class Failing:
    """A store whose bars cannot be read while it is down."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.down = False

    def __getattr__(self, name: str) -> Any:
        if self.down and name in {"read", "tail", "resampled", "count"}:
            return self._fail
        return getattr(self._store, name)

    @staticmethod
    def _fail(*_given: Any, **_named: Any) -> Any:
        raise StoreError(GONE)


def played(home: Path, work: Callable[[Bench, Failing, History], Awaitable[Any]], *, fresh: bool = False) -> Any:
    """Open a position, let the store fail a minute later, and do something; `fresh`: in a process that saw no price."""

    async def play() -> Any:
        history = History(home, 5)
        async with history.present() as bench:
            await bench.chartgen("place_order", **ORDER, client_order_id="first")
            history.clock.advance(120.0)
            history.arrive(bench.desk)
            (held,) = (await bench.chartgen("get_positions"))["positions"]
            assert "note" not in held
            if not fresh:
                return await _fail(bench, history, held)
        async with history.present() as bench:
            return await _fail(bench, history, held)

    async def _fail(bench: Bench, history: History, held: Any) -> Any:
        store = Failing(bench.desk.store)
        bench.desk.__dict__["store"] = bench.desk.bars.store = store
        history.clock.advance(60.0)
        history.arrive(bench.desk)
        store.down = True
        return held, await work(bench, store, history)

    return asyncio.run(play())


async def portfolio(bench: Bench, _store: Failing, _history: History) -> Any:
    return [
        (await bench.chartgen("get_positions"))["positions"][0],
        (await bench.ask("portfolio", "get_positions"))["items"][0],
        await bench.chartgen("get_balance"),
        await bench.ask("portfolio", "get_balance"),
    ]


def test_positions_show_the_last_known_price_with_its_time_and_a_note(tmp_path: Path) -> None:
    held, (shown, contract, balance, short) = played(tmp_path, portfolio)
    assert {name: shown[name] for name in held} == held, "price, time and profit are those of the last look"
    assert shown["price_time"] == iso(START + 120)
    assert "the last that was known" in shown["note"]
    assert GONE in shown["note"]
    assert (contract["current_price"], contract["note"]) == (float(held["current_price"]), shown["note"])
    for each in (balance, short):
        assert GONE in each["note"]
        assert float(each["available_balance"]) == 0
        assert each["total_balance"] is not None


def test_a_process_that_saw_no_price_shows_null_and_why(tmp_path: Path) -> None:
    held, (shown, contract, balance, short) = played(tmp_path, portfolio, fresh=True)
    for each in (shown, contract):
        assert (each["current_price"], each.get("price_time"), each["unrealized_pnl"]) == (None, None, None)
        assert GONE in each["note"]
    assert shown["entry_price"] == held["entry_price"]
    for each in (balance, short):
        assert (each["total_balance"], each["unrealized_pnl"], each["margin_used"]) == (None, None, None)
        assert float(each["available_balance"]) == 0
        assert GONE in each["note"]


async def headers(bench: Bench, _store: Failing, _history: History) -> Any:
    asked = [(server, tool) for server in ("chartgen", "portfolio") for tool in ("get_positions", "get_balance")]
    return [(await bench.reply(server, tool, {})).truth for server, tool in asked]


def test_the_truth_header_says_it_too(tmp_path: Path) -> None:
    _, known = played(tmp_path / "known", headers)
    _, unknown = played(tmp_path / "unknown", headers, fresh=True)
    for truth in (*known, *unknown):
        assert GONE in truth["note"]
    assert [truth["age_s"] for truth in known] == [60] * 4, "of the last known price"
    assert [truth["age_s"] for truth in unknown] == [None] * 4


async def orders(bench: Bench, store: Failing, _history: History) -> Any:
    opening = {**ORDER, "client_order_id": "second"}
    ask = {"symbol": "BTC/USD", "side": "BUY", "size": 1}
    refused = await bench.reply("chartgen", "place_order", opening)
    judged = await bench.reply("portfolio", "validate_trade", ask)
    elsewhere = {**opening, "symbol": "ETH/USD", "client_order_id": "other"}
    other = await bench.reply("chartgen", "place_order", elsewhere)
    less = await bench.reply(
        "chartgen", "place_order", {**ORDER, "side": "sell", "quantity": "2", "client_order_id": "less"}
    )
    store.down = False
    again = [await bench.reply("chartgen", "place_order", each) for each in (opening, elsewhere)]
    return refused, judged, other, less, again


def test_nothing_is_opened_what_reduces_passes_and_the_refused_id_can_be_used_again(tmp_path: Path) -> None:
    for fresh in (False, True):
        _, (refused, judged, other, less, again) = played(tmp_path / str(fresh), orders, fresh=fresh)
        for reply in (refused, other):
            assert reply.is_error
            assert GONE in str(reply.payload["error"])
        assert str(refused.payload["error"]).startswith("refused by the risk gate"), refused.payload
        assert judged.payload["data"]["valid"] is False
        assert GONE in judged.payload["data"]["reason"]
        assert not less.is_error, less.payload
        assert less.payload["status"] == "open"
        for reply, key in zip(again, ("second", "other"), strict=True):
            assert not reply.is_error, reply.payload
            assert (reply.payload["status"], reply.payload["client_order_id"]) == ("open", key)
