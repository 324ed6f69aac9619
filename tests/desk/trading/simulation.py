"""A whole desk in one process and one thread, driven by a seed, that dies as often as the schedule says.

Real: the services for orders and accounts, the gate, the books, the records on SQL, the engine with its steps. Simulated:
time, prices, bars, the broker outside, the file of the ledger's head. A process dies before or after any transaction, note
of the head or word to the broker; what it had in memory is gone, and the next one is made on the same database and broker.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import StaticPool

from openbell.desk.bars import BarService
from openbell.desk.trading.accounts import OPERATOR, AccountService
from openbell.desk.trading.books import Books
from openbell.desk.trading.engine import Engine
from openbell.desk.trading.gate import Gate
from openbell.desk.trading.halts import Halts
from openbell.desk.trading.matching import PaperMatching
from openbell.desk.trading.orders import OrderService
from openbell.desk.trading.prices import Price, Prices
from openbell.desk.trading.reconcile import Reconciling
from openbell.market.bars import MINUTE, Bars, make
from openbell.market.errors import DuplicateOrder, OpenbellError, RiskRefused, StoreTimeout
from openbell.market.instruments import Instrument, parse
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Lease, Span
from openbell.stores.records import schema
from openbell.stores.records.head import HeadFile
from openbell.stores.records.records import Records
from openbell.stores.records.sqlite import engine_for
from openbell.stores.records.tables import metadata
from openbell.trading.advance import Rules
from openbell.trading.broker import Broker, BrokerRefused, BrokerUnavailable, OutcomeUnknown, PaperBroker, Report
from openbell.trading.ledger import Head
from openbell.trading.orders import Force, Kind, Order, Side, State
from openbell.trading.paper import Costs
from openbell.trading.request import Request, request
from openbell.trading.risk import Limits
from tests.desk.trading import vendor as lines
from tests.desk.trading.vendor import Vendor

T = TypeVar("T")

NOON = 1_757_073_600.0
CASH = Decimal(10_000)
SYMBOLS = (parse("BTC/USD"), parse("ETH/USD"), parse("SOL/USD"))
PRICES = {"BTC/USD": Decimal(100), "ETH/USD": Decimal(40), "SOL/USD": Decimal("7.5")}
LIMITS = Limits(
    order_share=Decimal("0.4"),
    symbol_share=Decimal("0.6"),
    positions=2,
    daily_loss=Decimal("0.05"),
    leverage=Decimal(1),
)
COSTS = Costs()


class Died(BaseException):
    """The process is no more."""


EXPECTED = (RiskRefused, BrokerRefused, DuplicateOrder, Died, StoreTimeout)
"""What a caller may hear; whoever gives a client_order_id never that it is a double."""


class Inline(ThreadPoolExecutor):
    """What should run in a thread runs at once: one thread, one order of events."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            done.set_exception(error)
        return done


class Memory:
    """One migrated database per process of the tests; a schedule begins with empty tables."""

    def __init__(self) -> None:
        self.engine = engine_for(":memory:", poolclass=StaticPool)
        self.connection = self.engine.connect()
        schema.prepare(self.connection)
        self.connection.commit()

    def empty(self) -> None:
        raw = self.raw
        for table in metadata.tables:
            raw.execute(f"DELETE FROM {table}")

    @property
    def raw(self) -> Any:
        return self.connection.connection.dbapi_connection

    def transaction(self, work: Callable[[Connection], T], *, writing: bool) -> T:
        connection = self.connection
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
            result = work(connection)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        return result


class Clock:
    """Moved by the schedule alone."""

    moving = True

    def __init__(self, at: float) -> None:
        self.at = at

    def epoch(self) -> float:
        return self.at

    async def sleep_until(self, _epoch: float) -> None:
        raise AssertionError("nothing here waits for the clock")


class FixedPrices:
    """The gate's prices: one per symbol, for ever."""

    async def now(self, instrument: Instrument) -> Price:
        return Price(PRICES[instrument.symbol], int(NOON), "bar", None)

    async def of(self, symbols: Iterable[str]) -> tuple[dict[str, Price], dict[str, str]]:
        return {symbol: await self.now(parse(symbol)) for symbol in symbols}, {}

    async def before(self, symbols: Iterable[str], _moment: int) -> dict[str, Decimal]:
        return {symbol: PRICES[symbol] for symbol in symbols}


class ScriptedBars:
    """Minute bars of every symbol: a walk around its price that follows from the seed; some minutes have none."""

    def __init__(self, chance: random.Random, start: int, count: int) -> None:
        self.store = self
        self.thin = chance.random() < 0.5
        self.bars: dict[str, Bars] = {}
        for symbol, price in PRICES.items():
            rows = []
            last = float(price)
            for number in range(count):
                if chance.random() < 0.1:
                    continue
                close = round(last * (1 + chance.uniform(-0.02, 0.02)), 2)
                high, low = max(last, close) + chance.randrange(3) / 10, min(last, close) - chance.randrange(3) / 10
                volume = chance.choice((0.0, 3.0, 40.0, 250.0)) if self.thin else 1e9
                rows.append((start + number * MINUTE, last, round(high, 2), round(low, 2), close, volume))
                last = close
            self.bars[symbol] = make(parse(symbol), Timeframe.M1, *zip(*rows, strict=True))

    async def fill(self, _instrument: Instrument, _span: Span) -> OpenbellError | None:
        return None

    def read(self, instrument: Instrument, start: int, end: int) -> Bars:
        return self.bars[instrument.symbol].between(start, end)


@cache
def scripted(number: int, start: int) -> ScriptedBars:
    """One of a few scripts, made once."""
    return ScriptedBars(random.Random(number), start, 90)


@dataclass
class Asked:
    """A call of place, and what its caller heard."""

    request: Request
    at: float
    task: asyncio.Task[Order] | None = None
    answer: Order | None = None
    refused: BaseException | None = None


class World:
    """What is left when a process dies, and the schedule's dice."""

    def __init__(self, seed: int, memory: Memory, *, inside: bool) -> None:
        self.seed = seed
        self.inside = inside
        self.chance = random.Random(seed)
        self.memory = memory
        memory.empty()
        self.started = int(NOON + self.chance.choice((0, 0, 42_900)))
        self.clock = Clock(self.started + self.chance.randrange(60_000) / 1000)
        self.head: Head | None = None
        self.intended: tuple[Head, ...] = ()
        self.vendor = Vendor(self.chance, self.clock.epoch, self.written)
        self.bars = scripted(self.chance.randrange(40), self.started) if inside else None
        self.costs = COSTS
        self.fuse: int | None = None
        """How many moments are left until the process dies."""
        self.flaky = self.chance.random() < 0.3
        """Whether the database is locked now and then."""
        self.every, self.most = self.chance.choice((0.0, 5.0)), self.chance.choice((2, 1000, 1000))
        """How often an order is asked for, and how many at once."""
        self.calm = False
        self.asked: list[Asked] = []
        self.cancelled: dict[str, State] = {}
        self.deaths = 0
        self.orphans: set[str] = set()
        """Ids that a process which died had given away."""
        self.trace: list[str] = []
        self.surprises: list[str] = []
        self.process = Process(self)

    def written(self, order_id: str) -> bool:
        found = self.memory.raw.execute("SELECT state FROM orders WHERE id = ?", (order_id,)).fetchone()
        return found is not None and found[0] == State.PENDING

    def in_doubt(self) -> bool:
        """Whether an order waits for an answer that must come."""
        query = "SELECT 1 FROM orders WHERE state IN ('pending', 'unknown', 'cancelling') LIMIT 1"
        return self.memory.raw.execute(query).fetchone() is not None

    def working(self) -> int:
        """How many orders have not ended."""
        query = "SELECT count(*) FROM orders WHERE state NOT IN ('filled', 'cancelled', 'expired', 'rejected')"
        return int(self.memory.raw.execute(query).fetchone()[0])

    def note(self, what: str) -> None:
        self.trace.append(f"{self.clock.at - NOON:9.3f} {what}")


class Process:
    """One life of the desk."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.dead = False
        self.ids: list[str] = []
        self.records = Records(_Database(self), cast("HeadFile", _Head(self)), world.clock)
        self.broker: Broker = PaperBroker() if world.inside else Outside(self)
        self.books = books = Books()
        prices = cast("Prices", FixedPrices())
        self.gate = Gate(prices, books, LIMITS, world.clock)
        rules = Rules(COSTS, LIMITS)
        self.matching = PaperMatching(self.records, cast("BarService", world.bars), books, prices, rules)
        self.accounts = AccountService(self.records, "main", self.broker.name, _cash, "", default=True)
        self.orders = OrderService(
            self.records,
            self.accounts,
            self.gate,
            self.broker,
            self._settle,
            new_id=self._new_id,
            received=world.clock.epoch,
        )
        self.halts = Halts(self.records)
        self.reconciling = reconciling = Reconciling(
            self.records, "main", self.broker, world.clock.epoch, every=world.every, most=world.most
        )

        async def halting(lease: Lease | None, _until: int) -> int:
            return await self.halts.enforce(self.broker, lease)

        async def asking(lease: Lease | None, _until: int) -> int:
            return await reconciling.step(lease)

        steps = (halting, self.matching.step) if world.inside else (halting, asking)
        self.engine = Engine(self.records, world.clock, lambda: int(world.clock.at // MINUTE * MINUTE), steps)
        self.stepping: asyncio.Task[int] | None = None

    async def _settle(self) -> None:
        """Every call about the account fills first what bars fill, as on a desk."""
        if self.world.inside:
            await self.matching.account("main", int(self.world.clock.at // MINUTE * MINUTE))

    def _new_id(self) -> str:
        name = f"{self.world.chance.getrandbits(40):010x}"
        self.ids.append(f"local-{name}")
        return name

    def touch(self, moment: str) -> None:
        """A moment at which it may die; once dead it does nothing more."""
        world = self.world
        if self.dead:
            raise Died
        if world.fuse is not None:
            world.fuse -= 1
            if world.fuse <= 0:
                world.fuse, self.dead = None, True
                world.note(f"DIED {moment}")
                raise Died(moment)

    async def pause(self, most: int = 2) -> None:
        """Let others go first, as a thread or a line would."""
        for _ in range(self.world.chance.randrange(most + 1)):
            await asyncio.sleep(0)


async def _cash() -> Decimal:
    return CASH


class _Database:
    source = "sqlite"
    where = "memory"

    def __init__(self, process: Process) -> None:
        self._process = process

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        process, world = self._process, self._process.world
        await process.pause()
        process.touch("before a transaction")
        if world.flaky and not world.calm and world.chance.random() < 0.04:
            raise StoreTimeout("the records are locked")
        try:
            result = world.memory.transaction(work, writing=writing)
        except IntegrityError as error:
            world.surprises.append(f"a row that is there was written again: {error.orig}")
            raise
        if writing:
            process.touch("after a transaction")
        if then is not None:
            then(result)
        await process.pause()
        return result

    async def exists(self) -> bool:
        return True

    async def close(self) -> None: ...


class _Head:
    def __init__(self, process: Process) -> None:
        self._process = process

    def read(self) -> Head | None:
        return self._process.world.head

    def ends(self) -> tuple[Head, ...]:
        world = self._process.world
        return (
            () if world.head is None else (world.head, *(each for each in world.intended if each.seq > world.head.seq))
        )

    def intend(self, found: Head, wanted: Head) -> None:
        self._process.touch("before the head was announced")
        world = self._process.world
        if world.head is None or world.head.seq < found.seq:
            world.head = found
        world.intended = (wanted,)
        self._process.touch("after the head was announced")

    def note(self, head: Head) -> None:
        world = self._process.world
        if world.head is None or world.head.seq < head.seq:
            world.head = head
        self._process.touch("after the head was noted")

    def reset(self, head: Head) -> None:
        self._process.world.head, self._process.world.intended = head, ()

    def close(self) -> None: ...


class Outside:
    """The line to the vendor, as one process has it."""

    name = "outside"
    account = "live"
    inside = False

    def __init__(self, process: Process) -> None:
        self._process = process
        self._vendor = process.world.vendor

    async def submit(self, order: Order) -> Report:
        process, vendor = self._process, self._vendor
        process.touch("before an order is sent")
        outcome = vendor.outcome(order)
        process.world.note(f"  sent {order.id}: {outcome}")
        await self._travel()
        if outcome == lines.REFUSED:
            raise BrokerRefused("no")
        if outcome == lines.UNAVAILABLE:
            raise BrokerUnavailable("not there")
        if outcome in {lines.ACCEPTED, lines.ANSWER_LOST}:
            vendor.take(order)
        elif outcome == lines.DELAYED:
            vendor.delayed.append(order)
        process.touch("after an order was sent")
        report = vendor.report(order.id)
        await process.pause(12)
        if outcome != lines.ACCEPTED:
            raise OutcomeUnknown("no answer")
        assert report is not None
        return report

    async def _travel(self) -> None:
        """A few turns of the others, or so long that the engine begins to wonder."""
        world = self._process.world
        if world.chance.random() < 0.12:
            arrival = world.clock.at + world.chance.choice((60.5, 150.0, 500.0))
            while world.clock.at < arrival and not world.calm:
                await asyncio.sleep(0)
        await self._process.pause(6)

    async def cancel(self, order: Order) -> None:
        process, vendor = self._process, self._vendor
        process.touch("before a cancellation is sent")
        await process.pause(4)
        if vendor.fails(0.1):
            raise BrokerUnavailable("not there")
        lost = vendor.fails(0.15)
        if not (lost and vendor.fails(0.5)) and (kept := vendor.find(order.id)) is not None:
            vendor.end(kept, State.CANCELLED)
        process.touch("after a cancellation was sent")
        await process.pause(4)
        if lost:
            raise OutcomeUnknown("no answer")

    async def find(self, order: Order) -> Report | None:
        process, vendor = self._process, self._vendor
        process.touch("before an order is asked for")
        await process.pause(4)
        if vendor.fails(0.12):
            raise BrokerUnavailable("not there")
        report = vendor.report(order.id)
        await process.pause(8)
        return report

    async def cash(self) -> Decimal:
        return CASH

    async def close(self) -> None: ...


class Schedule:
    """One run: steps chosen by the seed, then quiet, so that what is checked has come to its end."""

    STEPS = ("place", "retry", "hang up", "cancel", "market", "engine", "time", "switch", "die")
    WEIGHTS = (30, 12, 5, 11, 30, 14, 12, 5, 10)

    def __init__(self, world: World) -> None:
        self.world = world
        self.chance = world.chance

    async def run(self) -> None:
        """The steps, and then the peace."""
        self._place()
        for _ in range(self.chance.randrange(6, 16)):
            getattr(self, "_" + self.chance.choices(self.STEPS, self.WEIGHTS)[0].replace(" ", "_"))()
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
        world.deaths += 1
        world.orphans.update(world.process.ids)
        world.process = Process(world)
        world.note("started again")

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return asyncio.get_running_loop().create_task(work)

    # Steps

    def _place(self) -> None:
        self._ask(self._order())

    def _order(self) -> Request:
        chance = self.chance
        instrument = chance.choice(SYMBOLS)
        mark = PRICES[instrument.symbol]
        side = chance.choice((Side.BUY, Side.BUY, Side.SELL))
        kind = chance.choice((Kind.MARKET, Kind.MARKET, Kind.LIMIT, Kind.STOP))
        worth = Decimal(chance.choice((150, 800, 1900, 3500, 5200)))
        quantity = (worth / mark).quantize(Decimal("0.01"))
        away = mark / Decimal(50)
        price = mark - away * side.sign if kind is Kind.LIMIT else None
        stop = mark + away * side.sign if kind is Kind.STOP else None
        bracket = chance.random() < 0.3
        far = 4 * away * side.sign
        return request(
            instrument,
            side,
            kind,
            quantity,
            time_in_force=chance.choice((Force.GTC, Force.GTC, Force.DAY)),
            price=price,
            stop_price=stop,
            take_profit=mark + far if bracket and chance.random() < 0.8 else None,
            stop_loss=mark - far if bracket else None,
            client_order_id=f"key-{chance.getrandbits(30)}" if chance.random() < 0.6 else None,
        )

    def _ask(self, wanted: Request) -> None:
        asked = Asked(wanted, self.world.clock.at)
        self.world.asked.append(asked)
        self.world.note(
            f"place {wanted.side} {wanted.quantity} {wanted.instrument} {wanted.kind} {wanted.client_order_id}"
        )
        asked.task = self._begin(self._placing(wanted))

    async def _placing(self, wanted: Request) -> Order:
        """What is acknowledged is durable, the ledger's head included."""
        world = self.world
        order = await world.process.orders.place(OPERATOR, wanted)
        query = "SELECT min(seq) FROM ledger WHERE kind = 'order' AND key = ?"
        (written,) = world.memory.raw.execute(query, (order.id,)).fetchone()
        if written is None or world.head is None or world.head.seq < written:
            world.surprises.append(f"{order.id} was acknowledged before the ledger's head was noted")
        return order

    def _retry(self) -> None:
        if self.world.asked:
            self._ask(self.chance.choice(self.world.asked).request)

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
        ids = [each.answer.id for each in self.world.asked if each.answer]
        if ids:
            order_id = self.chance.choice(ids) + self.chance.choice(("", "", "", "-sl", "-tp"))
            self.world.note(f"cancel {order_id}")
            self._begin(self._cancelling(order_id))

    async def _cancelling(self, order_id: str) -> None:
        try:
            told = await self.world.process.orders.cancel(OPERATOR, order_id)
        except OpenbellError:
            return
        self.world.cancelled[order_id] = told.state

    def _market(self) -> None:
        world = self.world
        if world.inside:
            world.clock.at += self.chance.choice((20.0, 60.0, 60.0, 180.0))
            return
        vendor = world.vendor
        choice = self.chance.random()
        if choice < 0.15:
            vendor.arrive()
        elif choice < 0.2:
            vendor.end_something()
        else:
            for _ in range(self.chance.choice((1, 2, 5))):
                vendor.trade(PRICES)
        world.note("the market moves")

    def _engine(self) -> None:
        process = self.world.process
        if process.stepping is None or process.stepping.done():
            self.world.note("engine")
            process.stepping = self._begin(self._step(process))

    async def _step(self, process: Process) -> int:
        """As the engine's own loop does: what the store refuses is tried again later."""
        try:
            return await process.engine.step(None)
        except OpenbellError as error:
            if not isinstance(error, StoreTimeout):
                self.world.surprises.append(f"the engine's step failed: {error!r}")
            return 1

    def _time(self) -> None:
        self.world.clock.at += self.chance.choice((0.5, 3.0, 11.0, 61.0, 130.0, 310.0))

    def _switch(self) -> None:
        halt = self.chance.random() < 0.5
        self.world.note("halt" if halt else "resume")
        self._begin(self._halting(self.world.process) if halt else self._resuming(self.world.process))

    async def _halting(self, process: Process) -> None:
        with suppress(OpenbellError):
            await process.halts.halt("a test")
            await process.halts.enforce(process.broker)

    async def _resuming(self, process: Process) -> None:
        with suppress(OpenbellError):
            await process.halts.resume()

    def _die(self) -> None:
        self.world.fuse = self.chance.randrange(1, 14)

    # The end

    async def _come_to_rest(self) -> None:
        """Everything that was begun ends, everything on its way arrives, and the engine asks until nothing is new."""
        world = self.world
        world.calm = world.vendor.calm = True
        await self._until_idle()
        world.fuse = None
        while world.vendor.delayed:
            world.vendor.arrive()
        quiet = 0
        for _ in range(80):
            world.clock.at += 3600.0 if world.inside else 301.0
            quiet = 0 if await self._step(world.process) or world.in_doubt() else quiet + 1
            if quiet > world.working() // world.most:  # every one was asked for
                break
        else:
            world.surprises.append("the engine does not come to rest")
        for asked in world.asked:
            self._hear(asked)

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
        expected = (RiskRefused, BrokerRefused, Died, StoreTimeout) if asked.request.client_order_id else EXPECTED
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


@contextmanager
def driver() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop without threads, in which the desk's warnings are not told."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(Inline(1))
    loop.set_exception_handler(lambda _loop, _context: None)  # what a dead process leaves unheard is meant to be
    log = logging.getLogger("openbell")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield loop
    finally:
        log.setLevel(before)
        loop.close()


def simulate(loop: asyncio.AbstractEventLoop, memory: Memory, seed: int, *, inside: bool) -> World:
    """One schedule."""
    world = World(seed, memory, inside=inside)
    loop.run_until_complete(Schedule(world).run())
    return world
