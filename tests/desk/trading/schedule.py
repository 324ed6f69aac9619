"""One run: steps chosen by the seed, then quiet, so that what is checked has come to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from openbell.desk.principals import OPERATOR
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
from openbell.trading.orders import Force, Kind, Order, Side
from openbell.trading.request import Request, request
from tests.desk.trading.looking import QUESTIONS, UNPRICED, Scenario
from tests.desk.trading.market import FIRST, SYMBOLS, Outage
from tests.desk.trading.places import Died
from tests.desk.trading.rematch import overdue

if TYPE_CHECKING:
    from tests.desk.trading.simulation import Asked, Process, World

T = TypeVar("T")

EXPECTED = (RiskRefused, BrokerRefused, Died, StoreTimeout)
"""What a caller may hear; who gives no client_order_id may hear that it is a double."""


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
        """The steps, and then the peace."""
        self._place()
        for _ in range(self.chance.randrange(6, 16)):
            step = self.chance.choices(list(self.STEPS), list(self.STEPS.values()))[0]
            doing: Awaitable[None] | None = getattr(self, "_" + step.replace(" ", "_"))()
            if doing is not None:
                await doing
            await self._let_run(self.chance.choice((0, 3, 10, 40)))
        await self._come_to_rest()

    async def _let_run(self, turns: int) -> None:
        for _ in range(turns):
            if self.world.process.dead:
                break
            await asyncio.sleep(0)
        if self.world.process.dead:
            await self._restart()

    async def _restart(self) -> None:
        """Throw away everything in memory and begin again."""
        world = self.world
        await _end_all()
        for asked in world.asked:
            self._hear(asked)
        world.begin_again()

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return asyncio.get_running_loop().create_task(work)

    # Orders

    def _place(self) -> None:
        self._ask_for(self.chance.choice(self.world.accounts), self._order())

    def _order(self) -> Request:
        chance = self.chance
        instrument = chance.choice(SYMBOLS)
        mark = self.world.mark(instrument.symbol)
        side = chance.choice((Side.BUY, Side.BUY, Side.SELL))
        kind = chance.choice((Kind.MARKET, Kind.MARKET, Kind.LIMIT, Kind.STOP, Kind.STOP_LIMIT))
        worth = Decimal(chance.choice((150, 800, 1900, 3500, 5200)))
        quantity = (worth / mark).quantize(Decimal("0.01"))
        away = mark / Decimal(chance.choice((50, 50, 100)))
        limit = {Kind.LIMIT: mark - away * side.sign, Kind.STOP_LIMIT: mark + away * side.sign * chance.choice((1, 2))}
        stop = mark + away * side.sign if kind in {Kind.STOP, Kind.STOP_LIMIT} else None
        bracket = chance.random() < 0.3
        far = mark / Decimal("12.5") * side.sign
        return request(
            instrument,
            side,
            kind,
            quantity,
            time_in_force=chance.choice((Force.GTC, Force.GTC, Force.DAY)),
            price=limit.get(kind),
            stop_price=stop,
            take_profit=mark + far if bracket and chance.random() < 0.8 else None,
            stop_loss=mark - far if bracket else None,
            client_order_id=f"key-{chance.getrandbits(30)}" if chance.random() < 0.6 else None,
        )

    def _ask_for(self, account: str, wanted: Request) -> None:
        asked = self.world.ask(account, wanted)
        kind = f"{wanted.side} {wanted.quantity} {wanted.instrument} {wanted.kind}"
        self.world.note(f"{account}: place {kind} {wanted.client_order_id}")
        asked.task = self._begin(self._placing(account, wanted))

    async def _placing(self, account: str, wanted: Request) -> Order:
        """What is acknowledged is durable, the ledger's head included."""
        world = self.world
        order = await world.process.seats[account].orders.place(OPERATOR, wanted)
        written = world.memory.one("SELECT min(seq) FROM ledger WHERE kind = 'order' AND key = ?", order.id)
        if written is None or world.place.head is None or world.place.head.seq < written:
            world.surprises.append(f"{order.id} was acknowledged before the ledger's head was noted")
        return order

    def _retry(self) -> None:
        """The same once more; now and then on the other account, where it is another order."""
        if self.world.asked:
            again = self.chance.choice(self.world.asked)
            account = again.account if self.chance.random() < 0.8 else self.chance.choice(self.world.accounts)
            self._ask_for(account, again.request)

    def _hang_up(self) -> None:
        """A caller goes away before it has its answer."""
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

    # What goes on

    def _market(self) -> None:
        world = self.world
        if world.inside:
            world.go_on(self.chance.choice((20.0, 60.0, 60.0, 180.0)))
            return
        vendor = world.vendor
        choice = self.chance.random()
        if choice < 0.15:
            vendor.arrive()
        elif choice < 0.2:
            vendor.end_something()
        else:
            marks = {symbol: world.mark(symbol) for symbol in FIRST}
            for _ in range(self.chance.choice((1, 2, 5))):
                vendor.trade(marks)
        world.note("the market moves")

    def _engine(self) -> None:
        process = self.world.process
        if process.stepping is None or process.stepping.done():
            self.world.note("engine")
            process.stepping = self._begin(self._step(process))

    async def _step(self, process: Process) -> int:
        """As the engine's own loop does: what the store refuses is tried again later. Any desk may be the engine."""
        seat = self.chance.choice(list(process.seats.values()))
        try:
            return await seat.engine.step(None)
        except OpenbellError as error:
            if not isinstance(error, StoreTimeout):
                self.world.surprises.append(f"the engine's step failed: {error!r}")
            return 1

    def _time(self) -> None:
        self.world.go_on(self.chance.choice((0.5, 3.0, 11.0, 61.0, 130.0, 310.0)))

    def _set_back(self) -> None:
        """Somebody corrects the machine's clock."""
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

    # Bars that cannot be had

    async def _outage(self) -> None:
        """One symbol's bars are gone, or come back; meanwhile the orders of the others fill as ever."""
        world = self.world
        if world.down:
            await self._look_at_the_others()
            symbol = self.chance.choice(list(world.down))
            world.note(f"bars of {symbol} are back")
            world.end_outage(symbol)
            return
        if world.inside:
            await self._until_idle()  # so that what is written from now on was read from now on
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
            world.go_on(self.chance.choice((60.0, 120.0, 240.0)))
            await self._look_at_the_others()

    async def _look_at_the_others(self) -> None:
        world = self.world
        if not world.inside or world.flaky or world.fuse is not None:
            return
        await self._until_idle()
        await self._step(world.process)
        world.surprises += overdue(world)

    # Other clocks

    async def _ask(self) -> None:
        """Keep what the present answers now."""
        world = self.world
        questions = list(UNPRICED if world.down else QUESTIONS)
        seat = world.process.seats[self.chance.choice(world.accounts)]
        asking = self._begin(world.answers.ask(seat, self.chance.sample(questions, 3)))
        await asyncio.wait([asking])
        if not asking.cancelled() and (error := asking.exception()) and not isinstance(error, (StoreTimeout, Died)):
            world.surprises.append(f"a question failed: {error!r}")
        world.go_on(0.001)  # what is written from now on is later

    def _look(self) -> None:
        """A desk of an earlier clock looks at the present while it goes on."""
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

    async def _come_to_rest(self) -> None:
        """Everything that was begun ends, everything on its way arrives, and the engine asks until nothing is new."""
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
            world.go_on(3600.0 if world.inside else 301.0)
            quiet = 0 if await self._step(world.process) or world.in_doubt() else quiet + 1
            if quiet > world.working() // world.most:  # every one was asked for
                break
        else:
            world.surprises.append("the engine does not come to rest")
        for asked in world.asked:
            self._hear(asked)
        for scenario in world.scenarios.values():
            await scenario.come_to_rest()
        await self._look_back()

    async def _look_back(self) -> None:
        """Every answer once more, from the clock of its moment."""
        world = self.world
        for answer in world.answers.given:
            await world.answers.compare(world.past.seats[answer.account], answer, world.surprises)

    def _hear(self, asked: Asked) -> None:
        """What the caller heard, if it has heard anything."""
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
        if asked.request.bracket and asked.request.kind is Kind.MARKET:
            expected += (InvalidParameter,)  # the price has gone beyond an exit
        if self.world.outages:
            expected += (StoreError, FeedUnavailable)  # there is no price, and nothing is kept of the question
        if asked.refused and not isinstance(asked.refused, expected):
            self.world.surprises.append(f"the caller of {asked.request.client_order_id} heard {asked.refused!r}")

    async def _until_idle(self) -> None:
        for _ in range(4000):
            await self._let_run(1)
            if len(asyncio.all_tasks()) == 1 and not self.world.process.dead:
                return
        raise AssertionError("something never ends")


async def _end_all() -> None:
    """The tasks of a dead process: all that they could still touch refuses them."""
    for _ in range(50):
        others = asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())}
        if not others:
            return
        for task in others:
            task.cancel()
        await asyncio.wait(others)
    raise AssertionError("a dead process goes on")
