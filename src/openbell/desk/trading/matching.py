"""Paper fills: each account is walked through the minutes that have closed since it was last walked.

`trading.advance` says what becomes of the account; this reads its records and bars, and writes the changes and how far they
go in one transaction. The engine does it for every account, each minute; a question about an account, and a cancellation,
does it for that account first. Both may happen at once in several processes: the second one finds the first one's changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from openbell.desk.bars import BarService
from openbell.desk.trading.books import Books
from openbell.desk.trading.halts import Halted
from openbell.desk.trading.prices import Prices
from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import LeaseLost, OpenbellError, Refused
from openbell.market.instruments import parse
from openbell.stores.port import Lease, Span
from openbell.stores.records import marks
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.view import View
from openbell.trading.accounts import PAPER, Account
from openbell.trading.advance import DAY, Rules, Standing, advance
from openbell.trading.amounts import ZERO
from openbell.trading.fills import Fill
from openbell.trading.orders import RESTING, Order

log = logging.getLogger(__name__)

_PIECE = 7 * DAY
"""Seconds of bars that are walked and written at once: what was done stays if a later piece is cut short."""
_NOTE_SECONDS = 900
"""After so many quiet seconds how far an account was walked is noted, so that the next engine need not read them again."""
_TRIES = 3
_ENTRY = " through entry"


@dataclass(frozen=True, slots=True)
class _Scene:
    """An account as its records have it."""

    account: Account
    orders: tuple[Order, ...]
    noted: int
    """Up to when the account was walked, as its records have it."""
    walked: Mapping[str, tuple[int, int]]
    """By symbol, how far those orders were walked that were written up to some entry."""
    seq: int
    """The ledger's newest entry about this account."""
    start: int
    """The first minute that an order has not met."""
    symbols: frozenset[str]
    """What must be known to walk it."""
    standing: Standing
    held_then: Mapping[str, Decimal]
    """What was held when the day of `standing.since` began."""
    cash_then: Decimal


@dataclass(frozen=True, slots=True)
class _Piece:
    """Which part of an account's time is walked next."""

    account: str
    reached: int = 0
    """Up to where the pieces before went."""
    left_out: frozenset[str] = frozenset()
    """Symbols whose bars could not be read in those pieces: their orders meet no later bars first."""


class PaperMatching:
    """Walks paper accounts."""

    def __init__(
        self,
        records: Records,
        bars: BarService,
        books: Books,
        prices: Prices,
        rules: Rules,
        halted: Halted = marks.halted,
    ) -> None:
        self._records = records
        self._bars = bars
        self._books = books
        self._prices = prices
        self.rules = rules
        self._halted = halted
        self._walking: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._looked: dict[str, dict[str, int]] = defaultdict(dict)
        """By account and order, up to when they have met bars that did nothing to them."""
        self._troubles: dict[str, str] | None = None
        """What is noted for `openbell doctor`; None: not read yet."""

    async def step(self, lease: Lease | None, until: int) -> int:
        """Walk every account up to `until`; how many changes there were."""
        changes = 0
        working = await self._records.read(queries.working_accounts)
        for account in sorted({name for name, _ in working}):
            try:
                changes += await self.account(account, until, lease)
            except (LeaseLost, Refused):
                raise
            except OpenbellError as error:
                await self._trouble(f"account {account}", str(error), lease)
            except Exception as error:
                log.exception("account %s could not be walked", account)
                await self._trouble(f"account {account}", f"{type(error).__name__}: {error}", lease)
            else:
                await self._trouble(f"account {account}", None, lease)
        names = {name for name, _ in working}
        await self._settle_troubles(lambda name: not names & set(name.split(" ")[:2]), lease)
        return changes

    async def account(self, name: str, until: int, lease: Lease | None = None) -> int:
        """Walk one account; how many changes there were. Whoever asks meanwhile waits for the same walk."""
        async with self._walking[name]:
            done, piece = 0, _Piece(name)
            while True:
                scene = await self._records.read(lambda view: self._scene(view, piece))  # noqa: B023
                if scene is None:
                    return done
                start = scene.start
                end = min(until, start + _PIECE)
                if start >= end and not _expiring(scene.orders, until):
                    return done
                changed, unread = await self._walk(scene, piece, max(start, end), lease)
                done += changed
                if end >= until or unread is None:
                    return done
                piece = _Piece(name, end, piece.left_out | unread)

    async def _walk(
        self, scene: _Scene, piece: _Piece, end: int, lease: Lease | None
    ) -> tuple[int, frozenset[str] | None]:
        """One piece: how many changes there were, and the symbols that could not be read; None: stop here."""
        for _ in range(_TRIES):
            start = scene.start
            series = await self._read(scene, start, end, lease)
            standing = await self._priced(scene, series, start)
            # Looking is cheap and writing is not: most minutes bring nothing.
            if not advance(standing, series, start, end, self.rules):
                await self._look_further(scene, series, end, lease)
                return 0, scene.symbols - set(series)
            written = await self._records.write(lambda j: self._write(j, scene, piece, standing, series, end), lease)  # noqa: B023
            if written is not None:
                self._looked_at(scene, series, end)
                return written, scene.symbols - set(series)
            again = await self._records.read(lambda view: self._scene(view, piece))
            if again is None:
                break
            scene = again
        return 0, None

    def _write(
        self, journal: Journal, scene: _Scene, piece: _Piece, known: Standing, series: Mapping[str, Bars], end: int
    ) -> int | None:
        """Write what comes of the account as it is now; None if it is another than the one that was read."""
        now = self._scene(journal.view, piece)
        if now is None:
            return 0
        same = (now.standing.book, now.standing.orders, now.standing.halted) == (known.book, known.orders, known.halted)
        if not same:
            return None
        changes = advance(known, series, scene.start, end, self.rules)
        for change in changes:
            if isinstance(change, Fill):
                journal.put("fill", change, new=True, happened=change.at)
            else:
                journal.put("order", change, happened=change.updated_at)
        _note(journal, scene.account.name, self._met(series, end), end, journal.seq)
        return len(changes)

    def _scene(self, view: View, piece: _Piece) -> _Scene | None:
        """The account; None if there is nothing to fill."""
        account = queries.account(view, piece.account)
        if account is None or account.broker != PAPER:
            return None
        working = self._books.working(view, account)
        orders = tuple(order for _, order in working.orders.values())
        noted = marks.marked(view, _mark(account.name))
        walked = {
            order.symbol: (int(noted.get(order.symbol, 0)), int(noted.get(f"{order.symbol}{_ENTRY}", 0)))
            for order in orders
        }
        resting = [
            (seq, order)
            for seq, order in working.orders.values()
            if order.state in RESTING and order.symbol not in piece.left_out
        ]
        if not resting:
            return None
        met = {order.id: self._first_minute(seq, order, walked[order.symbol]) for seq, order in resting}
        start = max(piece.reached, min(met.values()))
        book = self._books.book(view, account)
        # While nothing rested nobody looked: a loss is judged from the first minute that can end something on.
        since = int(max(noted.get("", 0.0), self._books.last_fill(view, account), start))
        day = self._books.day_start(view, account, since // DAY * DAY)
        opening = any(order.remaining_opening for _, order in resting)
        symbols = {order.symbol for _, order in resting} | (set(book.positions) if opening else set())
        return _Scene(
            account,
            orders,
            int(noted.get("", 0.0)),
            walked,
            working.seq,
            start,
            frozenset(symbols - piece.left_out),
            Standing(book, orders, {}, None, since, self._halted(view) is not None, met),
            day.held,
            day.cash,
        )

    def _first_minute(self, seq: int, order: Order, walked: tuple[int, int]) -> int:
        """The first minute that an order has not met. Only a bar changes an order that rests, and at the bar's end."""
        changed = int(max(order.placed_at, order.updated_at) // MINUTE * MINUTE)
        looked = self._looked[order.account].get(order.id, 0)
        return max(changed, looked, walked[0] if seq <= walked[1] else 0)

    async def _read(self, scene: _Scene, start: int, end: int, lease: Lease | None) -> dict[str, Bars]:
        """The minutes of every symbol that can be read; one that cannot makes its own orders wait, and no others."""
        series = {}
        prefix, needed = f"{scene.account.name} ", scene.symbols
        await self._settle_troubles(lambda n: n.startswith(prefix) and n.removeprefix(prefix) not in needed, lease)
        for symbol in sorted(scene.symbols):
            instrument, name = parse(symbol), f"{scene.account.name} {symbol}"
            try:
                if end > start and (failure := await self._bars.fill(instrument, Span(start, end))):
                    raise failure
                series[symbol] = await self._bars.threads.run(self._bars.store.read, instrument, start, end)
            except OpenbellError as error:
                await self._trouble(name, f"orders of {symbol} wait: {error}", lease)
            else:
                await self._trouble(name, None, lease)
        return series

    async def _priced(self, scene: _Scene, series: Mapping[str, Bars], start: int) -> Standing:
        """The account with the prices that its day began with and those before the first minute."""
        standing = scene.standing
        try:
            before = await self._prices.before(set(standing.book.positions) & set(series), start)
            then = await self._prices.before(scene.held_then, standing.since // DAY * DAY)
        except OpenbellError as error:
            log.warning("account %s: %s", scene.account.name, error)
            before, then = {}, {}
        day_start = None
        if set(then) >= set(scene.held_then):
            day_start = scene.cash_then + sum((held * then[symbol] for symbol, held in scene.held_then.items()), ZERO)
        return replace(standing, marks=before, day_start=day_start)

    async def _look_further(self, scene: _Scene, series: Mapping[str, Bars], end: int, lease: Lease | None) -> None:
        name, met = scene.account.name, self._met(series, end)
        if end - scene.noted >= _NOTE_SECONDS:
            await self._records.write(lambda journal: _note(journal, name, met, end, scene.seq), lease)
        self._looked_at(scene, series, end)

    def _looked_at(self, scene: _Scene, series: Mapping[str, Bars], end: int) -> None:
        looked, met = self._looked[scene.account.name], self._met(series, end)
        self._looked[scene.account.name] = {
            order.id: max(met.get(order.symbol, 0), looked.get(order.id, 0)) for order in scene.orders
        }

    def _met(self, series: Mapping[str, Bars], end: int) -> dict[str, int]:
        """By symbol, the time before which no bar is to come: without a feed, that of the newest bar that was there."""
        if self._bars.feed.source is not None:
            return dict.fromkeys(series, end)
        return {symbol: int(bars.time[-1]) + MINUTE if len(bars) else 0 for symbol, bars in series.items()}

    async def _settle_troubles(self, over: Callable[[str], bool], lease: Lease | None) -> None:
        """Remove the notes about what nothing waits for any more."""
        for name in [name for name in self._troubles or () if over(name)]:
            await self._trouble(name, None, lease)

    async def _trouble(self, name: str, reason: str | None, lease: Lease | None) -> None:
        """Note for `openbell doctor` what keeps an account or a symbol from being filled, when that changes."""
        if self._troubles is None:
            noted = await self._records.read(marks.troubled)
            self._troubles = {name: reason for name, (_, reason) in noted.items()}
        if self._troubles.get(name) == reason:
            return
        if reason is not None:
            log.warning("%s", reason)
        since = self._bars.clock.epoch()
        try:
            await self._records.write(lambda journal: marks.set_trouble(journal.view, name, since, reason), lease)
        except OpenbellError as error:
            log.debug("%s", error)
            return
        if reason is None:
            self._troubles.pop(name, None)
        else:
            self._troubles[name] = reason


def _expiring(orders: tuple[Order, ...], until: int) -> bool:
    return any(order.expires_at is not None and order.expires_at <= until for order in orders if order.state in RESTING)


def _note(journal: Journal, account: str, met: Mapping[str, int], end: int, seq: int) -> None:
    """Note how far an account was walked, and its orders of some symbols that were written up to an entry."""
    marks.set_mark(journal.view, _mark(account), end)
    for symbol, until in met.items():
        marks.set_mark(journal.view, f"{_mark(account)}{symbol}", until)
        marks.set_mark(journal.view, f"{_mark(account)}{symbol}{_ENTRY}", seq)


def _mark(account: str) -> str:
    return f"walked {account}:"
