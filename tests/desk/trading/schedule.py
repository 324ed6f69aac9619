"""One run of the simulation: random steps from the seed, then steps until nothing changes any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from openbell.desk.settings.principals import OPERATOR
from openbell.market.errors import (
    DuplicateOrder,
    FeedUnavailable,
    InvalidParameter,
    OpenbellError,
    RiskRefused,
    StoreError,
    StoreTimeout,
)
from openbell.trading.broker import BrokerRefused
from openbell.trading.orders import Force, Order, OrderKind, Side
from openbell.trading.request import OrderRequest, request
from tests.desk.trading.market import FIRST, SYMBOLS, Outage
from tests.desk.trading.memory_databases import Died
from tests.desk.trading.other_clocks import QUESTIONS, UNPRICED, Scenario
from tests.desk.trading.rematching import overdue

if TYPE_CHECKING:
    from tests.desk.trading.simulation import Asked, Process, World

T = TypeVar("T")

EXPECTED = (RiskRefused, BrokerRefused, Died, StoreTimeout)
"""Errors that a caller may get; without a client_order_id also `DuplicateOrder`."""


class Schedule:
    """The steps of one run."""

    STEPS: ClassVar = {
        "place": 30,
        "retry": 12,
        "hang up": 5,
        "cancel": 11,
        "market": 30,
        "engine": 14,
        "time": 12,
        "set back": 2,
        "switch": 4,
        "die": 10,
        "outage": 5,
        "decide": 2,
        "ask": 7,
        "look": 5,
        "scenario": 5,
    }

    def __init__(self, world: World) -> None:
        self.world = world
        self.chance = world.chance

    async def run(self) -> None:
        """Run the random steps, then run until nothing changes."""
        self._place()
        for _ in range(self.chance.randrange(6, 16)):
            step = self.chance.choices(list(self.STEPS), list(self.STEPS.values()))[0]
            doing: Awaitable[None] | None = getattr(self, "_" + step.replace(" ", "_"))()
            if doing is not None:
                await doing
            await self._let_run(self.chance.choice((0, 3, 10, 40)))
        await self._run_until_quiet()

    async def _let_run(self, turns: int) -> None:
        for _ in range(turns):
            if self.world.process.dead:
                break
            await asyncio.sleep(0)
        if self.world.process.dead:
            await self._restart()

    async def _restart(self) -> None:
        """Discard everything in memory and start a new process."""
        world = self.world
        await _end_all()
        for asked in world.asked:
            self._hear(asked)
        world.restart()

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return asyncio.get_running_loop().create_task(work)

    # Orders

    def _place(self) -> None:
        self._ask_for(self.chance.choice(self.world.accounts), self._order())

    def _order(self) -> OrderRequest:
        chance = self.chance
        instrument = chance.choice(SYMBOLS)
        last = self.world.price(instrument.symbol)
        side = chance.choice((Side.BUY, Side.BUY, Side.SELL))
        kind = chance.choice(
            (OrderKind.MARKET, OrderKind.MARKET, OrderKind.LIMIT, OrderKind.STOP, OrderKind.STOP_LIMIT)
        )
        worth = Decimal(chance.choice((150, 800, 1900, 3500, 5200)))
        quantity = (worth / last).quantize(Decimal("0.01"))
        away = last / Decimal(chance.choice((50, 50, 100)))
        limit = {
            OrderKind.LIMIT: last - away * side.sign,
            OrderKind.STOP_LIMIT: last + away * side.sign * chance.choice((1, 2)),
        }
        stop = last + away * side.sign if kind in {OrderKind.STOP, OrderKind.STOP_LIMIT} else None
        bracket = chance.random() < 0.3
        far = last / Decimal("12.5") * side.sign
        return request(
            instrument,
            side,
            kind,
            quantity,
            time_in_force=chance.choice((Force.GTC, Force.GTC, Force.DAY)),
            price=limit.get(kind),
            stop_price=stop,
            take_profit=last + far if bracket and chance.random() < 0.8 else None,
            stop_loss=last - far if bracket else None,
            client_order_id=f"key-{chance.getrandbits(30)}" if chance.random() < 0.6 else None,
        )

    def _ask_for(self, account: str, wanted: OrderRequest) -> None:
        asked = self.world.ask(account, wanted)
        kind = f"{wanted.side} {wanted.quantity} {wanted.instrument} {wanted.kind}"
        self.world.note(f"{account}: place {kind} {wanted.client_order_id}")
        asked.task = self._begin(self._placing(account, wanted))

    async def _placing(self, account: str, wanted: OrderRequest) -> Order:
        """Place an order, and check that it and the ledger's head are durable when it is acknowledged."""
        world = self.world
        order = await world.process.seats[account].orders.place(OPERATOR, wanted)
        written = world.memory.one("SELECT min(seq) FROM ledger WHERE kind = 'order' AND key = ?", order.id)
        if written is None or world.place.head is None or world.place.head.seq < written:
            world.surprises.append(f"{order.id} was acknowledged before the ledger's head was noted")
        return order

    def _retry(self) -> None:
        """Repeat a request; sometimes on the other account, where it is a different order."""
        if self.world.asked:
            again = self.chance.choice(self.world.asked)
            account = again.account if self.chance.random() < 0.8 else self.chance.choice(self.world.accounts)
            self._ask_for(account, again.request)

    def _hang_up(self) -> None:
        """Cancel a caller before it gets its answer."""
        waiting = [each for each in self.world.asked if each.task and not each.task.done()]
        if waiting:
            gone = self.chance.choice(waiting)
            assert gone.task
            gone.task.cancel()
            self.world.note("hung up")

    def _cancel(self) -> None:
        for asked in self.world.asked:
            self._hear(asked)
        placed = [(each.account, each.answer.id) for each in self.world.asked if each.answer]
        if placed:
            account, order_id = self.chance.choice(placed)
            order_id += self.chance.choice(("", "", "", "-sl", "-tp"))
            self.world.note(f"{account}: cancel {order_id}")
            self._begin(self._cancelling(account, order_id))

    async def _cancelling(self, account: str, order_id: str) -> None:
        begun = self.world.clock.at
        self.world.cancel_begun.setdefault(order_id, begun)
        try:
            told = await self.world.process.seats[account].orders.cancel(OPERATOR, order_id)
        except OpenbellError:
            return
        self.world.cancelled[order_id] = told.state

    # Market, engine and time

    def _market(self) -> None:
        world = self.world
        if world.on_paper:
            world.advance_time(self.chance.choice((20.0, 60.0, 60.0, 180.0)))
            return
        vendor = world.vendor
        choice = self.chance.random()
        if choice < 0.15:
            vendor.arrive()
        elif choice < 0.2:
            vendor.end_something()
        else:
            prices = {symbol: world.price(symbol) for symbol in FIRST}
            for _ in range(self.chance.choice((1, 2, 5))):
                vendor.trade(prices)
        world.note("the market moves")

    def _engine(self) -> None:
        process = self.world.process
        if process.stepping is None or process.stepping.done():
            self.world.note("engine")
            process.stepping = self._begin(self._step(process))

    async def _step(self, process: Process) -> int:
        """Run one step of the engine of any desk; store timeouts are retried later, as the engine's loop does."""
        seat = self.chance.choice(list(process.seats.values()))
        try:
            return await seat.engine.step(None)
        except OpenbellError as error:
            if not isinstance(error, StoreTimeout):
                self.world.surprises.append(f"the engine's step failed: {error!r}")
            return 1

    def _time(self) -> None:
        self.world.advance_time(self.chance.choice((0.5, 3.0, 11.0, 61.0, 130.0, 310.0)))

    def _set_back(self) -> None:
        """Set the machine's clock back."""
        self.world.clock.move(-self.chance.choice((0.4, 2.0, 5.0)))
        self.world.note("the clock was set back")

    def _switch(self) -> None:
        halt = self.chance.random() < 0.5
        self.world.note("halt" if halt else "resume")
        self._begin(self._halting(self.world.process) if halt else self._resuming(self.world.process))

    async def _halting(self, process: Process) -> None:
        with suppress(OpenbellError):
            await process.seat.halts.halt("a test")
            await process.seat.halts.enforce(process.seat.venue)

    async def _resuming(self, process: Process) -> None:
        with suppress(OpenbellError):
            await process.seat.halts.resume()

    def _die(self) -> None:
        self.world.fuse = self.chance.randrange(1, 14)

    def _decide(self) -> None:
        self._begin(self._deciding(self.world.process))

    async def _deciding(self, process: Process) -> None:
        with suppress(OpenbellError):
            await process.seat.decisions.save(OPERATOR, "BTC/USD", "hold", 0.5, None, "a test", None)

    # Outages of bars

    async def _outage(self) -> None:
        """Begin or end an outage of one symbol's bars; the orders of other symbols must still fill."""
        world = self.world
        if world.down:
            await self._look_at_the_others()
            symbol = self.chance.choice(list(world.down))
            world.note(f"bars of {symbol} are back")
            world.end_outage(symbol)
            return
        if world.on_paper:
            await self._until_idle()  # so that later writes are based on later reads
        traded = [row[0] for row in world.memory.raw.execute("SELECT symbol FROM orders WHERE state != 'rejected'")]
        symbol = self.chance.choice(traded or [each.symbol for each in SYMBOLS])
        outage = Outage(symbol, self.chance.random() < 0.5, world.clock.at, world.memory.seq)
        world.note(f"no bars of {outage.symbol} ({'store' if outage.store else 'feed'})")
        world.down[outage.symbol] = outage
        world.outages.append(outage)
        if self.chance.random() < 0.7:
            self._place()
            self._place()
            await self._let_run(40)
            world.advance_time(self.chance.choice((60.0, 120.0, 240.0)))
            await self._look_at_the_others()

    async def _look_at_the_others(self) -> None:
        world = self.world
        if not world.on_paper or world.flaky or world.fuse is not None:
            return
        await self._until_idle()
        await self._step(world.process)
        world.surprises += overdue(world)

    # Other clocks

    async def _ask(self) -> None:
        """Run queries on the present, and keep the answers."""
        world = self.world
        questions = list(UNPRICED if world.down else QUESTIONS)
        seat = world.process.seats[self.chance.choice(world.accounts)]
        asking = self._begin(world.answers.ask(seat, self.chance.sample(questions, 3)))
        await asyncio.wait([asking])
        if not asking.cancelled() and (error := asking.exception()) and not isinstance(error, (StoreTimeout, Died)):
            world.surprises.append(f"a question failed: {error!r}")
        world.advance_time(0.001)  # later entries have a later time

    def _look(self) -> None:
        """Let a desk with an earlier clock read the present's records meanwhile."""
        past = self.world.past
        if past.looking is None or past.looking.done():
            past.looking = self._begin(past.look(4, self._order()))

    def _scenario(self) -> None:
        for name in self.chance.sample(("one", "two"), self.chance.choice((1, 2))):
            scenario = self.world.scenario(name)
            if scenario.acting is None or scenario.acting.done():
                scenario.acting = self._begin(self._acting(scenario))

    async def _acting(self, scenario: Scenario) -> None:
        try:
            await scenario.act(self.chance, self._order())
        except OpenbellError as error:
            self.world.surprises.append(f"the scenario {scenario.name} failed: {error!r}")

    # The end

    async def _run_until_quiet(self) -> None:
        """End outages, deliver delayed requests, and run the engine until nothing changes any more."""
        world = self.world
        world.calm = world.vendor.calm = True
        await self._until_idle()
        world.fuse = None
        for symbol in list(world.down):
            world.end_outage(symbol)
        while world.vendor.delayed:
            world.vendor.arrive()
        quiet = 0
        for _ in range(80):
            world.advance_time(3600.0 if world.on_paper else 301.0)
            quiet = 0 if await self._step(world.process) or world.in_doubt() else quiet + 1
            if quiet > world.working() // world.most:  # every order was looked up
                break
        else:
            world.surprises.append("the engine never becomes quiet")
        for asked in world.asked:
            self._hear(asked)
        for scenario in world.scenarios.values():
            await scenario.run_until_quiet()
        await self._look_back()

    async def _look_back(self) -> None:
        """Repeat every query with a clock fixed at its time."""
        world = self.world
        for answer in world.answers.given:
            await world.answers.compare(world.past.seats[answer.account], answer, world.surprises)

    def _hear(self, asked: Asked) -> None:
        """Take the answer of a call that is done."""
        task = asked.task
        if task is None or not task.done():
            return
        asked.task = None
        if task.cancelled():
            return
        asked.refused = task.exception()
        asked.answer = None if asked.refused else task.result()
        expected: tuple[type[BaseException], ...] = EXPECTED
        if not asked.request.client_order_id:
            expected += (DuplicateOrder,)
        if asked.request.bracket and asked.request.kind is OrderKind.MARKET:
            expected += (InvalidParameter,)  # the price has moved beyond an exit
        if self.world.outages:
            expected += (StoreError, FeedUnavailable)  # there is no price, and nothing is recorded
        if asked.refused and not isinstance(asked.refused, expected):
            self.world.surprises.append(f"the caller of {asked.request.client_order_id} heard {asked.refused!r}")

    async def _until_idle(self) -> None:
        for _ in range(4000):
            await self._let_run(1)
            if len(asyncio.all_tasks()) == 1 and not self.world.process.dead:
                return
        raise AssertionError("something never ends")


async def _end_all() -> None:
    """End the tasks of a killed process."""
    for _ in range(50):
        others = asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())}
        if not others:
            return
        for task in others:
            task.cancel()
        await asyncio.wait(others)
    raise AssertionError("a dead process goes on")
