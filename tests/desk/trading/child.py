"""Child processes that tests kill or stop; forked from a process that has loaded the desk, so that they start fast."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from openbell.desk.alerts.service import Condition
from openbell.desk.desk import Desk
from openbell.desk.events import leased_work
from openbell.desk.orders.engine import Engine
from openbell.desk.settings import load
from openbell.market.errors import OpenbellError
from openbell.market.instruments import parse
from openbell.stores.port import Lease
from openbell.trading.alerts import Type
from openbell.trading.orders import OrderKind, Side
from openbell.trading.request import request

Say = Callable[[object], None]
Job = Callable[..., Coroutine[Any, Any, None]]
SYMBOLS = ("BTC/USD", "ETH/USD", "EUR/USD")
ME = "local"

_forks = get_context("forkserver")
_forks.set_forkserver_preload([__name__])


class Fork:
    """A child process that runs one job; it is killed at the end of the block."""

    def __init__(self, job: Job, *arguments: object) -> None:
        self._pipe, there = _forks.Pipe()
        self._process = _forks.Process(target=_work, args=(there, job, *arguments), daemon=True)
        self._process.start()
        there.close()
        assert self._process.pid
        self.pid: int = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.kill()
        self._pipe.close()
        self._process.close()

    def tell(self, word: object) -> None:
        """Send a message to the process."""
        self._pipe.send(word)

    def hear(self, bound: float = 60.0) -> Any:
        """Returns the next message of the process. Fails if it ends or takes longer than `bound` seconds."""
        if not self._pipe.poll(bound):
            raise AssertionError(f"nothing in {bound} s")
        try:
            return self._pipe.recv()
        except EOFError as error:
            raise AssertionError("it ended") from error

    def until(self, wanted: object, bound: float = 60.0) -> list[Any]:
        """Read messages until the wanted one; returns those before it."""
        before = []
        deadline = time.monotonic() + bound
        while (said := self.hear(max(0.0, deadline - time.monotonic()))) != wanted:
            before.append(said)
        return before

    def kill(self) -> list[Any]:
        """Kill the process (SIGKILL); returns its remaining messages."""
        self._process.kill()
        self._process.join()
        said = []
        with suppress(EOFError, OSError):
            while True:
                said.append(self._pipe.recv())
        return said

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)


def _work(pipe: Connection, job: Job, *arguments: object) -> None:
    asyncio.run(job(pipe.send, *arguments))


def desk_of(settings: Mapping[str, str]) -> Desk:
    """Returns a desk with these settings only; the environment is ignored."""
    return Desk(load({f"OPENBELL_{name}": value for name, value in settings.items()}))


# A desk that trades until it is killed


async def trade(say: Say, settings: dict[str, str], seed: int) -> None:
    """Run an engine and a client that reports every acknowledged write."""
    desk = desk_of(settings)
    desk.trading.engine._every = 0.01
    desk.trading.start()
    client = _Client(desk, say, random.Random(seed))
    while True:
        await client.act()


class _Client:
    def __init__(self, desk: Desk, say: Say, chance: random.Random) -> None:
        self._desk = desk
        self._say = say
        self._chance = chance
        self._orders: list[str] = []

    async def act(self) -> None:
        action = self._chance.choices((self._order, self._alert, self._decision, self._cancel), (5, 4, 1, 1))[0]
        with suppress(OpenbellError):  # refused: nothing was acknowledged
            await action()
        await asyncio.sleep(0)

    def _tell(self, kind: str, name: str) -> None:
        self._say((kind, name, self._desk.clock.epoch()))

    async def _price(self, symbol: str) -> float:
        return float((await self._desk.trading.prices.now(parse(symbol))).value)

    async def _order(self) -> None:
        chance, symbol = self._chance, self._chance.choice(SYMBOLS)
        price = await self._price(symbol)
        side = chance.choice((Side.BUY, Side.SELL))
        kind = chance.choice((OrderKind.MARKET, OrderKind.MARKET, OrderKind.LIMIT))
        near = price * (1 - 0.0005 * side.sign)
        bracket = chance.random() < 0.4
        asked = request(
            parse(symbol),
            side,
            kind,
            round(chance.choice((300.0, 1500.0, 4000.0)) / price, 4),
            price=round(near, 6) if kind is OrderKind.LIMIT else None,
            take_profit=round(price * (1 + 0.002 * side.sign), 6) if bracket else None,
            stop_loss=round(price * (1 - 0.002 * side.sign), 6) if bracket else None,
            client_order_id=f"key-{chance.getrandbits(60)}",
        )
        order = await self._desk.trading.orders.place(ME, asked)
        self._orders.append(order.id)
        self._tell("order", order.id)

    async def _alert(self) -> None:
        symbol = self._chance.choice(SYMBOLS)
        price = await self._price(symbol)
        above = self._chance.random() < 0.5
        level = price * (1 + (1 if above else -1) * self._chance.choice((-0.001, 0.0005, 0.002, 0.2)))
        wanted = Condition(Type.PRICE_ABOVE if above else Type.PRICE_BELOW, round(level, 6))
        alert = await self._desk.trading.alerts.set(ME, symbol, "1m", wanted)
        self._tell("alert", alert.id)

    async def _decision(self) -> None:
        made = await self._desk.trading.decisions.save(ME, "BTC/USD", "hold", 0.5, None, "because", None)
        self._tell("decision", made)

    async def _cancel(self) -> None:
        if self._orders:
            ended = await self._desk.trading.orders.cancel(ME, self._chance.choice(self._orders))
            self._tell("cancelled", ended.id)


# Engines that compete


async def compete(say: Say, settings: dict[str, str], label: str, lease_seconds: float) -> None:
    """Run an engine whose step writes a decision with its label; reports every change of its state."""
    leased_work.LEASE_SECONDS = lease_seconds
    desk = desk_of(settings)
    engine = _writing(desk, label, say)
    running = asyncio.create_task(engine.run())
    state = ""
    while not running.done():
        if f"{engine.status}" != state:
            state = f"{engine.status}"
            say(state)
        await asyncio.sleep(0.002)
    await running


async def stall(say: Say, settings: dict[str, str], label: str, lease_seconds: float) -> None:
    """As `compete`, but the process stops itself in the middle of a step, between reading and writing."""
    leased_work.LEASE_SECONDS = lease_seconds
    desk = desk_of(settings)
    await _writing(desk, label, say, stops=True).run()


def _writing(desk: Desk, label: str, say: Say, *, stops: bool = False) -> Engine:
    count = 0

    async def step(lease: Lease | None, _until: int) -> int:
        nonlocal count
        count += 1
        row = decision(label, count)
        if stops and count == 5:
            say("stopping")
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            await desk.trading.records.write(lambda journal: journal.put("decision", row, new=True), lease=lease)
        except OpenbellError as error:
            say(type(error).__name__)
            raise
        return 1

    return Engine(desk.trading.records, desk.clock, lambda: 0, {"decisions": step}, desk.hub, every=0.005)


def decision(label: str, number: int) -> dict[str, Any]:
    """Returns a decision that names its writer and number."""
    return {
        "id": f"{label}-{os.getpid()}-{number}",
        "principal": label,
        "symbol": "BTC/USD",
        "action": "hold",
        "confidence": 0.5,
        "opportunity_score": None,
        "reasoning": "",
        "tool_calls": None,
        "created_at": 0.0,
    }
