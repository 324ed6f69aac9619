"""Other clocks: desks that read the present at an earlier time, and scenarios with a time of their own.

Answers of desks are kept; later, a desk whose clock is fixed at the time of an answer must give the same answer.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openbell.desk.settings.principals import OPERATOR
from openbell.market.errors import DuplicateOrder, InvalidParameter, OpenbellError, Refused, RiskRefused
from openbell.stores.records import orders as queries
from openbell.stores.records import switches
from openbell.stores.records.records import RecordAccess
from openbell.stores.records.snapshot import View
from openbell.trading.accounts import Account
from openbell.trading.amounts import ONE
from openbell.trading.orders import Side
from openbell.trading.request import OrderRequest
from tests.desk.trading.market import SYMBOLS, Clock, Market
from tests.desk.trading.memory_databases import Life, Place, ReadOnlyLine, spelled
from tests.desk.trading.seats import CASH, Judgement, Seat, Setting, WatchedGate

if TYPE_CHECKING:
    from tests.desk.trading.simulation import World

Question = Callable[[Seat], Awaitable[object]]


async def _working(seat: Seat) -> object:
    def work(view: View) -> object:
        account = Account(seat.account, seat.venue.name, OPERATOR, CASH[seat.account], None, 0.0)
        return sorted(seat.books.orders(view, account), key=lambda order: order.id)

    return await seat.records.read(work)


PRICED: dict[str, Question] = {
    "positions": lambda seat: seat.portfolio.holdings(OPERATOR),
    "balance": lambda seat: seat.portfolio.balance(OPERATOR),
    "validate a buy": lambda seat: seat.portfolio.validate(OPERATOR, SYMBOLS[0], Side.BUY, ONE, None),
    "validate a sale": lambda seat: seat.portfolio.validate(OPERATOR, SYMBOLS[1], Side.SELL, ONE, None),
}
UNPRICED: dict[str, Question] = {
    "orders": lambda seat: seat.orders.listing(OPERATOR, open_only=False, limit=20),
    "older orders": lambda seat: seat.orders.listing(OPERATOR, open_only=False, limit=2, offset=1),
    "open orders": lambda seat: seat.orders.listing(OPERATOR, open_only=True, limit=20),
    "decisions": lambda seat: seat.decisions.recent(OPERATOR, 20, 0, None, None),
    "working orders": _working,
    "halted": lambda seat: seat.records.read(switches.halted),
    "account": lambda seat: seat.records.read(lambda view: queries.account(view, seat.account)),
}
QUESTIONS = {**PRICED, **UNPRICED}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a desk to one query."""

    moment: float
    seq: int
    """The newest entry of the ledger at that time."""
    account: str
    question: str
    text: str


@dataclass
class Answers:
    """The answers of the desks of one place so far."""

    place: Place
    never_set_back: bool = False
    """Whether the clock is never set back, as in a scenario."""
    given: list[Answer] = field(default_factory=list)
    compared: int = 0

    async def ask(self, seat: Seat, names: list[str]) -> None:
        """Run queries, and keep the answers during which nothing was written."""
        memory = self.place.memory
        for name in names:
            for _ in range(2):
                before, moment = memory.seq, seat.clock.at
                text = spelled(await QUESTIONS[name](seat))
                if (memory.seq, seat.clock.at) == (before, moment):
                    self.given.append(Answer(moment, before, seat.account, name, text))
                    break

    def comparable(self, answer: Answer) -> bool:
        """Returns True if a desk with an earlier clock must answer the same: no entry with an earlier time was added."""
        if self.never_set_back:  # more entries may have the same time
            return (
                self.place.memory.one("SELECT 1 FROM ledger WHERE seq > ? AND at = ?", answer.seq, answer.moment)
                is None
            )
        query = "SELECT 1 FROM ledger WHERE (seq > ? AND at <= ?) OR (seq <= ? AND at > ?) LIMIT 1"
        values = (answer.seq, answer.moment, answer.seq, answer.moment)
        return self.place.memory.one(query, *values) is None

    async def compare(self, seat: Seat, answer: Answer, surprises: list[str]) -> None:
        """Run the same query on a desk whose clock is fixed at that time."""
        assert isinstance(seat.clock, Clock)
        seat.clock.at = answer.moment
        text = spelled(await QUESTIONS[answer.question](seat))
        if not self.comparable(answer):
            return
        self.compared += 1
        if text != answer.text:
            surprises.append(
                f"{answer.question} of {answer.account} at {answer.moment}: {text} instead of {answer.text}"
            )


class Past:
    """Desks with an earlier clock that read the present's records."""

    def __init__(self, world: World) -> None:
        self._world = world
        clock = Clock(world.clock.at)
        market = Market(world.script, clock, {})
        setting = Setting(
            Life(world, world.place), clock, market, world.process.broker, RecordAccess.PAST, ReadOnlyLine
        )
        self.seats = {name: Seat(setting, name, _never) for name in world.accounts}
        self.looking: asyncio.Task[None] | None = None

    async def look(self, count: int, wanted: OrderRequest) -> None:
        """Compare some answers, and check that writes are refused."""
        world, answers = self._world, self._world.answers
        known = world.chance.sample(answers.given, min(count, len(answers.given)))
        for answer in known:
            await answers.compare(self.seats[answer.account], answer, world.surprises)
        seat = world.chance.choice(list(self.seats.values()))
        seat.clock.at = world.clock.at - world.chance.choice((0.5, 60.0, 600.0))
        attempts: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: seat.orders.place(OPERATOR, wanted),
            lambda: seat.orders.cancel(OPERATOR, "local-1"),
            lambda: seat.decisions.save(OPERATOR, "BTC/USD", "hold", 0.5, None, "a test", None),
            lambda: seat.halts.halt("a test"),
            seat.engine.once,
        )
        await refused(world.chance.choice(attempts)(), "a desk of an earlier clock", world.surprises)


def _never(_gate: WatchedGate) -> str:
    return "never"


async def refused(attempt: Awaitable[object], who: str, surprises: list[str]) -> None:
    """Report a surprise unless the attempt is refused because of the clock."""
    try:
        await attempt
    except Refused as error:
        if isinstance(error, RiskRefused):
            surprises.append(f"{who} was judged by the gate: {error}")
        return
    surprises.append(f"{who} wrote")


class Scenario:
    """A scenario: a database, a clock and a desk of its own."""

    def __init__(self, world: World, name: str, place: Place) -> None:
        self._world = world
        self.name = name
        self.place = place
        self.clock = Clock(world.started + world.chance.randrange(120_000) / 1000)
        self.answers = Answers(place, never_set_back=True)
        self.judgements: dict[str, Judgement] = {}
        self.ids: list[str] = []
        self.acting: asyncio.Task[None] | None = None
        self.begin()

    def begin(self) -> None:
        """Start a new process on the same place."""
        self.acting = None
        self.seat = self._seat(self.clock)

    def _seat(self, clock: Clock) -> Seat:
        world = self._world
        market = Market(world.script, clock, {})
        setting = Setting(Life(world, self.place), clock, market, None, RecordAccess.SCENARIO)
        return Seat(setting, self.name, self._named)

    def _named(self, gate: WatchedGate) -> str:
        name = f"{self._world.chance.getrandbits(40):010x}"
        assert gate.last
        self.judgements[f"local-{name}"] = gate.last
        return name

    async def act(self, chance: random.Random, wanted: OrderRequest) -> None:
        """Do some random actions: advance the time in jumps or as a replay, trade; then maybe read an earlier time."""
        for _ in range(chance.randrange(1, 6)):
            deed = chance.choice((self._later, self._replay, self._place, self._place, self._cancel, self._decide))
            try:
                await deed(chance, wanted)
            except (RiskRefused, DuplicateOrder, InvalidParameter):
                continue
            except OpenbellError as error:
                self._world.surprises.append(f"the scenario {self.name} failed: {error!r}")
        if chance.random() < 0.5:
            await self.seat.settle(self.name)  # as every query of a client does first
            await self.answers.ask(self.seat, chance.sample(list(QUESTIONS), 2))
        if chance.random() < 0.5:
            await self._earlier(chance, wanted)

    async def _later(self, chance: random.Random, _wanted: OrderRequest) -> None:
        self.clock.move(chance.choice((0.001, 30.0, 130.0, 900.0)))

    async def _replay(self, chance: random.Random, _wanted: OrderRequest) -> None:
        for _ in range(chance.randrange(1, 4)):
            self.clock.move(60.0)
            await self.seat.engine.step(None)

    async def _place(self, _chance: random.Random, wanted: OrderRequest) -> None:
        self.ids.append((await self.seat.orders.place(OPERATOR, wanted)).id)

    async def _cancel(self, chance: random.Random, _wanted: OrderRequest) -> None:
        if self.ids:
            await self.seat.orders.cancel(OPERATOR, chance.choice(self.ids))

    async def _decide(self, chance: random.Random, _wanted: OrderRequest) -> None:
        self.clock.move(chance.choice((0.001, 130.0, 900.0)))
        await self.seat.decisions.save(OPERATOR, "BTC/USD", "hold", 0.5, None, "a test", None)

    async def _earlier(self, chance: random.Random, wanted: OrderRequest) -> None:
        """A desk with an earlier clock sees what was known then, and cannot write."""
        world, memory = self._world, self.place.memory
        earlier = self._seat(Clock(self.clock.at))
        for answer in chance.sample(self.answers.given, min(2, len(self.answers.given))):
            await self.answers.compare(earlier, answer, world.surprises)
        last = memory.one("SELECT max(at) FROM ledger")
        if last is None:
            return
        earlier.clock.at = round(last - chance.choice((0.001, 1.0, 300.0)), 3)
        before = memory.raw.total_changes
        await refused(earlier.orders.place(OPERATOR, wanted), f"an earlier clock in {self.name}", world.surprises)
        if memory.raw.total_changes != before:
            world.surprises.append(f"an earlier clock changed the scenario {self.name}")
        # These answers about an earlier time must stay the same, whatever is written later.
        await self.answers.ask(earlier, chance.sample(list(QUESTIONS), 2))

    async def run_until_quiet(self) -> None:
        """Advance until nothing changes any more; then repeat every query with a clock fixed at its time."""
        for _ in range(60):
            self.clock.move(3600.0)
            if not await self.seat.engine.step(None):
                break
        else:
            self._world.surprises.append(f"the scenario {self.name} does not come to rest")
        earlier = self._seat(Clock(self.clock.at))
        for answer in self.answers.given:
            await self.answers.compare(earlier, answer, self._world.surprises)
