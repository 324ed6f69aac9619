"""Simulates whole desks in one process and one thread, from a seed, with processes that are killed at random points.

Real: the services for orders and accounts, the gate, prices, the books, the records on SQL, the engine with its steps.
Simulated: time, bars, the remote broker, the file of the ledger's head. On paper two accounts share a database, each with a
desk of its own; scenarios have databases of their own. The process of the present may be killed before or after any
transaction, write of the head or request to the broker. Its memory is lost, and the next one starts on the same database.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar
from unittest.mock import patch

from openbell.stores.records import checkpoints
from openbell.trading.broker import Broker
from openbell.trading.orders import Order, OrderState
from openbell.trading.request import OrderRequest
from tests.desk.trading.market import BEFORE_MIDNIGHT, NOON, Clock, Market, Outage, script
from tests.desk.trading.memory_databases import Died, Life, Memory, Place
from tests.desk.trading.other_clocks import Answers, Past, Scenario
from tests.desk.trading.remote_broker import RemoteBroker
from tests.desk.trading.schedule import Schedule
from tests.desk.trading.seats import COSTS, Judgement, Seat, Setting, WatchedGate
from tests.desk.trading.vendor import Vendor

T = TypeVar("T")

SCENARIOS = ("one", "two")


class Inline(ThreadPoolExecutor):
    """Runs work at once instead of in a thread, so that the order of events is deterministic."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            done.set_exception(error)
        return done


class Memories:
    """The databases of the present and of the scenarios, made once."""

    def __init__(self) -> None:
        self.present = Memory()
        self.scenarios = {name: Memory() for name in SCENARIOS}


@dataclass
class Asked:
    """A call of `place`, and its answer."""

    account: str
    request: OrderRequest
    at: float
    task: asyncio.Task[Order] | None = None
    answer: Order | None = None
    refused: BaseException | None = None


class World:
    """The state that survives the death of a process, and the random generator."""

    def __init__(self, seed: int, memories: Memories, *, on_paper: bool) -> None:
        self.seed = seed
        self.on_paper = on_paper
        self.chance = random.Random(seed)
        self.place = Place(memories.present)
        self._memories = memories
        self.accounts = ("main", "second") if on_paper else ("main",)
        self.started = int(self.chance.choice((NOON, NOON, BEFORE_MIDNIGHT)))
        self.clock = Clock(self.started + self.chance.randrange(60_000) / 1000)
        self.steady = Clock(self.clock.at)
        """A clock that is never set back."""
        self.script = script(self.chance.randrange(40), self.started)
        self.down: dict[str, Outage] = {}
        """Symbols whose bars cannot be read now."""
        self.outages: list[Outage] = []
        self.vendor = Vendor(self.chance, self.clock.epoch, self.written)
        self.costs = COSTS
        self.fuse: int | None = None
        """The number of kill points left until the process is killed."""
        self.flaky = self.chance.random() < 0.3
        """Whether the database is sometimes locked."""
        self.every, self.most = self.chance.choice((0.0, 5.0)), self.chance.choice((2, 1000, 1000))
        """How often an order is looked up, and how many per step."""
        self.between_checkpoints = self.chance.choice((4, 12, 30, 2000))
        self.calm = False
        self.asked: list[Asked] = []
        self.cancelled: dict[str, OrderState] = {}
        self.cancel_begun: dict[str, float] = {}
        self.judgements: dict[str, Judgement] = {}
        self.answers = Answers(self.place)
        self.scenarios: dict[str, Scenario] = {}
        self.deaths = 0
        self.orphans: set[str] = set()
        """Order ids of processes that were killed."""
        self.trace: list[str] = []
        self.surprises: list[str] = []
        self.process = Process(self)
        self.past = Past(self)

    @property
    def memory(self) -> Memory:
        return self.place.memory

    def written(self, order_id: str) -> bool:
        return bool(self.memory.one("SELECT state FROM orders WHERE id = ?", order_id) == OrderState.PENDING)

    def in_doubt(self) -> bool:
        """Returns True if an order is pending, unknown or cancelling."""
        query = "SELECT 1 FROM orders WHERE state IN ('pending', 'unknown', 'cancelling') LIMIT 1"
        return self.memory.one(query) is not None

    def working(self) -> int:
        """Returns the number of orders that are not final."""
        query = "SELECT count(*) FROM orders WHERE state NOT IN ('filled', 'cancelled', 'expired', 'rejected')"
        return int(self.memory.one(query))

    def price(self, symbol: str) -> Decimal:
        """Returns the latest price."""
        return self.script.close(symbol, self.clock.at)

    def advance_time(self, seconds: float) -> None:
        self.clock.move(seconds)
        self.steady.move(seconds)

    def scenario(self, name: str) -> Scenario:
        """Returns a scenario; it is created on first use."""
        if name not in self.scenarios:
            self.scenarios[name] = Scenario(self, name, Place(self._memories.scenarios[name]))
        return self.scenarios[name]

    def ask(self, account: str, wanted: OrderRequest) -> Asked:
        """Record a call of `place`."""
        self.asked.append(Asked(account, wanted, self.clock.at))
        return self.asked[-1]

    def end_outage(self, symbol: str) -> None:
        outage = self.down.pop(symbol)
        outage.end, outage.end_seq = self.clock.at, self.memory.seq

    def restart(self) -> None:
        """Start the next process, and new ones of the desks with other clocks."""
        self.deaths += 1
        self.orphans.update(self.process.ids)
        self.process = Process(self)
        self.past = Past(self)
        for each in self.scenarios.values():
            each.begin()
        self.note("started again")

    def note(self, what: str) -> None:
        self.trace.append(f"{self.clock.at - NOON:9.3f} {what}")


class Process(Life):
    """One process of the present's desks."""

    mortal = True

    def __init__(self, world: World) -> None:
        super().__init__(world, world.place)
        self.ids: list[str] = []
        self.broker: Broker | None = None if world.on_paper else RemoteBroker(self)
        market = Market(world.script, world.clock, world.down)
        setting = Setting(self, world.clock, market, self.broker)
        self.seats = {name: Seat(setting, name, self._named) for name in world.accounts}
        self.stepping: asyncio.Task[int] | None = None

    @property
    def seat(self) -> Seat:
        """The desk of the first account."""
        return self.seats["main"]

    def _named(self, gate: WatchedGate) -> str:
        name = f"{self.world.chance.getrandbits(40):010x}"
        self.ids.append(f"local-{name}")
        assert gate.last
        self.world.judgements[f"local-{name}"] = gate.last
        return name

    def touch(self, moment: str) -> None:
        """A point at which the process may be killed; raises `Died` from then on."""
        world = self.world
        if self.dead:
            raise Died
        if world.fuse is not None:
            world.fuse -= 1
            if world.fuse <= 0:
                world.fuse, self.dead = None, True
                world.note(f"DIED {moment}")
                raise Died(moment)


@contextmanager
def driver() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop without threads; the desk's warnings are not logged."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(Inline(1))
    loop.set_exception_handler(lambda _loop, _context: None)  # killed processes leave unretrieved exceptions
    log = logging.getLogger("openbell")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield loop
    finally:
        log.setLevel(before)
        loop.close()


def simulate(loop: asyncio.AbstractEventLoop, memories: Memories, seed: int, *, on_paper: bool) -> World:
    """Run one schedule."""
    world = World(seed, memories, on_paper=on_paper)
    with patch.object(checkpoints, "EVERY", world.between_checkpoints):
        loop.run_until_complete(Schedule(world).run())
    return world
