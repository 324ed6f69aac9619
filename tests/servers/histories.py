"""Random histories of the present and of a scenario: orders, fills, alerts, decisions, halts, subscriptions and bars."""

from __future__ import annotations

import random
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from openbell.desk.desk import Desk
from openbell.desk.orders.halt_file import HaltFile
from openbell.desk.settings import load
from openbell.market.bars import MINUTE, make
from openbell.market.clock import iso
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from tests.clocks import HandClock
from tests.servers.desks import Bench, bench_as_found
from tests.servers.every_tool import LATER

START = 1_758_286_800
"""Friday, 2025-09-19 13:00 UTC: half an hour before the stock market opens."""
_SOURCE = Source(Origin.IMPORTED, "import")
SYMBOLS = ["BTC/USD", "ETH/USD", "AAPL"]
WHAT_IF = "what-if"


class History:
    """A desk of the present whose clock is moved by hand, and the bars that arrive as it goes."""

    def __init__(self, home: Path, seed: int, **settings: str) -> None:
        self.home = home
        self.chance = random.Random(seed)
        self.clock = HandClock(float(START))
        self.settings = {"FEED": "none", "TRADE": "1", "TIMEOUT": "60", "PAPER_SLIPPAGE": "0", **settings}
        self.symbols = list(SYMBOLS)
        self._prices = dict.fromkeys([*SYMBOLS, LATER], 100.0)
        self._arrived = START - 300 * MINUTE
        self._count = 0

    @asynccontextmanager
    async def present(self) -> AsyncIterator[Bench]:
        """The present's desk, at the clock that is moved by hand."""
        given = {"HOME": str(self.home), **self.settings}
        desk = Desk(load({f"OPENBELL_{name}": value for name, value in given.items()}))
        desk.clock = self.clock
        try:
            self.arrive(desk)
            yield Bench(desk)
        finally:
            await desk.trading.close()
            desk.store.close()

    async def go_on(self, steps: int) -> None:
        """So many random deeds, with time between them."""
        async with self.present() as bench:
            for _ in range(steps):
                self.clock.advance(self.chance.choice((1.0, 20.0, 61.0, 200.0)))
                self.arrive(bench.desk)
                await self._deed(bench)
                if self.chance.random() < 0.2:
                    await self._switch(bench)
                if self.chance.random() < 0.6:
                    await bench.desk.trading.engine.step(None)

    async def everything(self) -> None:
        """One deed of each kind, so that no history lacks one; at the end trading is halted."""
        async with self.present() as bench:
            for kind in range(7):
                self.clock.advance(61.0)
                self.arrive(bench.desk)
                await self._deed(bench, kind)
                await bench.desk.trading.engine.step(None)
            bench.desk.trading.halt_file.set("later", self.clock.epoch())
            await bench.desk.trading.halts.halt("later")
            await bench.desk.trading.engine.step(None)

    async def what_if(self, begin: float, end: float, deeds: int, **settings: str) -> None:
        """Deeds in the scenario, at some times after `begin` up to `end`, each with an alert that the next minute fires."""
        with lifted(self.home):
            await self._what_if(begin, end, deeds, **settings)

    async def _what_if(self, begin: float, end: float, deeds: int, **settings: str) -> None:
        for moment in sorted(self.chance.randint(int(begin) + 1, int(end)) for _ in range(deeds)):
            async with bench_as_found(
                self.home, iso(moment), **{**self.settings, "SCENARIO": WHAT_IF, **settings}
            ) as bench:
                await bench.desk.trading.catch_up()
                await self._deed(bench)
                await self._deed(bench)
                await bench.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 1.0})

    def arrive(self, desk: Desk) -> None:
        """The minutes that have closed since."""
        until = int(self.clock.epoch() // MINUTE * MINUTE)
        if until <= self._arrived:
            return
        times = np.arange(self._arrived, until, MINUTE)
        for symbol in self.symbols:
            steps = [self.chance.gauss(0, 0.003) for _ in times]
            closes = self._prices[symbol] * np.cumprod(1 + np.asarray(steps))
            opens = np.concatenate([[self._prices[symbol]], closes[:-1]])
            high, low = np.maximum(opens, closes) * 1.001, np.minimum(opens, closes) * 0.999
            desk.store.write(
                [make(parse(symbol), Timeframe.M1, times, opens, high, low, closes, np.full(len(times), 1000.0))],
                _SOURCE,
            )
            self._prices[symbol] = float(closes[-1])
        self._arrived = until

    async def _deed(self, bench: Bench, kind: int | None = None) -> None:
        chance = self.chance
        self._count += 1
        kind = chance.randrange(7) if kind is None else kind
        symbol = chance.choice(SYMBOLS)
        if kind in {0, 1}:
            await bench.reply("chartgen", "place_order", self._order(symbol))
        elif kind == 2:
            found = await bench.chartgen("get_orders", filter="open")
            if found["orders"]:
                order = chance.choice(found["orders"])["order_id"]
                await bench.reply("chartgen", "cancel_order", {"order_id": order})
        elif kind == 3:
            level = self._prices[symbol] * chance.uniform(0.98, 1.02)
            condition = {chance.choice(("price_above", "price_below")): round(level, 2)}
            await bench.reply("chartgen", "set_alert", {"symbol": symbol, "condition": condition})
        elif kind == 4:
            action = chance.choice(("BUY", "SELL", "HOLD"))
            given: dict[str, Any] = {
                "symbol": symbol,
                "action": action,
                "confidence": 0.5,
                "reasoning": f"deed {self._count}",
            }
            await bench.ask("decisions", "save_decision", **given)
        elif kind == 5:
            tool = chance.choice(("subscribe_notifications", "subscribe_notifications", "unsubscribe_notifications"))
            await bench.reply("chartgen", tool, {})
        else:
            await bench.reply("chartgen", "get_notifications", {"limit": chance.choice((1, 100))})

    def _order(self, symbol: str) -> dict[str, Any]:
        chance, price = self.chance, self._prices[symbol]
        side = chance.choice(("buy", "buy", "sell"))
        kind = chance.choice(("market", "market", "limit", "stop"))
        far = price * (1 + chance.uniform(-0.01, 0.01))
        given: dict[str, Any] = {"symbol": symbol, "side": side, "type": kind, "quantity": str(chance.randint(1, 40))}
        given |= {"limit": {"price": f"{far:.2f}"}, "stop": {"stop_price": f"{far:.2f}"}}.get(kind, {})
        if side == "buy" and chance.random() < 0.3:
            given |= {"take_profit": f"{price * 1.02:.2f}", "stop_loss": f"{price * 0.98:.2f}"}
        return {**given, "client_order_id": f"deed-{self._count}"}

    async def _switch(self, bench: Bench) -> None:
        trading = bench.desk.trading
        if trading.halt_file.read():
            trading.halt_file.lift()
            await trading.halts.resume()
        else:
            trading.halt_file.set("a deed", self.clock.epoch())
            await trading.halts.halt("a deed")


@contextmanager
def put_back(home: Path) -> Iterator[None]:
    """Whatever is done to a home inside is undone: questions asked there leave no trace."""
    aside = home.with_name(f"{home.name}.aside")
    shutil.copytree(home, aside)
    try:
        yield
    finally:
        shutil.rmtree(home)
        aside.rename(home)


@contextmanager
def lifted(home: Path) -> Iterator[None]:
    """Without the operator's switch in the home: it stops scenarios too, at the machine's own time."""
    switch = HaltFile(home / "halted")
    halt, since = switch.read(), switch.since()
    switch.lift()
    try:
        yield
    finally:
        if halt is not None and since is not None:
            switch.set(halt.reason, since)
