"""Fills paper orders: advances paper accounts through the minute bars that have closed since they were last advanced.

`trading.advance` computes the changes of an account. This module reads the account's records and bars, and records the
changes together with the progress (up to which minute bars were matched) in one transaction. The engine advances every
account each minute. Reading an account and cancelling an order advance that account first. Several processes may do this at
the same time: before it writes, each checks that the account is still the one that it read, and reads it again if not.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from openbell.desk.bars.service import BarService
from openbell.desk.events.supervision import FailingUnits
from openbell.desk.orders.books import Books, DayStart
from openbell.desk.orders.engine import raise_if_general
from openbell.desk.orders.halts import Halted
from openbell.desk.orders.prices import Prices
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import Clock
from openbell.market.errors import OpenbellError
from openbell.market.instruments import parse
from openbell.stores.port import Lease
from openbell.stores.records import orders as queries
from openbell.stores.records import progress, switches
from openbell.stores.records.journal import Journal, in_view
from openbell.stores.records.progress import account_of, trouble_of
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.trading.accounts import PAPER, Account
from openbell.trading.advance import DAY, AccountState, Rules, advance
from openbell.trading.fills import Fill
from openbell.trading.orders import RESTING, Order

log = logging.getLogger(__name__)

_CHUNK_SECONDS = 7 * DAY
"""The longest span that is read and recorded at once. If a later chunk fails, the earlier ones stay recorded."""
_PROGRESS_SECONDS = 900
"""If bars change nothing, the progress is recorded once per this many seconds, so that a new engine can start from there."""
_TRIES = 3
_ACCOUNT, _BARS, _PRICES = "account", "the bars of", "earlier prices of account"
"""Kinds of units that may fail alone."""
ENTRY = " through entry"
"""The end of the name of the ledger entry up to which the progress of a symbol is true."""


@dataclass(frozen=True, slots=True)
class _Progress:
    """Up to when the orders of one symbol were matched with bars, as it is recorded."""

    until: int
    """All bars before this time were matched."""
    seq: int
    """This is true of orders that the ledger's entries up to this one wrote; later orders were not matched."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """An account as its records show it at one moment, and what must be read to advance it."""

    account: Account
    orders: tuple[Order, ...]
    """All orders that are not final."""
    recorded_until: int
    """Up to when the account was advanced, as it is recorded."""
    seq: int
    """The ledger's newest entry about this account."""
    start: int
    """The first minute that is not matched with all resting orders."""
    symbols: frozenset[str]
    """The symbols whose bars are needed."""
    state: AccountState
    """The state without its prices, which are not in the records."""
    day: DayStart
    """Cash and quantities when the UTC day of `state.since` began."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The next part of the time through which one account is advanced."""

    account: str
    reached: int = 0
    """The end of the chunk before."""
    skipped: frozenset[str] = frozenset()
    """Symbols whose bars could not be read in earlier chunks. Their orders wait: later bars must not fill them first."""


class PaperMatching:
    """Advances paper accounts."""

    def __init__(
        self,
        records: Records,
        bars: BarService,
        books: Books,
        prices: Prices,
        rules: Rules,
        halted: Halted = switches.halted,
        failing: FailingUnits | None = None,
    ) -> None:
        """`failing` is where accounts and symbols are noted that cannot be brought up to date."""
        self._failing = failing or FailingUnits()
        self._records = records
        self._bars = bars
        self._books = books
        self._prices = prices
        self.rules = rules
        self._halted = halted
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By account: callers that advance the same account wait for each other."""
        self._matched: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
        """By ledger, account and order id, up to when this process has matched bars. It is ahead of the recorded one."""
        self._unread: dict[str, dict[str, str]] = defaultdict(dict)
        """By account, the symbols whose bars could not be read when it was last advanced, each with the reason."""
        self._troubles = RecordedTroubles(records, bars.clock)

    @property
    def troubled(self) -> bool:
        """True if an account or the bars of a symbol could not be read in the last step."""
        return bool(self._troubles)

    def unread(self, account: str) -> str | None:
        """Returns why bars of an account's orders could not be read when it was last advanced; None if all were."""
        return next(iter(self._unread.get(account, {}).values()), None)

    async def step(self, lease: Lease | None, until: int) -> int:
        """Advance every account up to `until`; returns the number of changes."""
        changes = 0
        working = await self._records.read(queries.working_accounts)
        for account in sorted({name for name, _ in working}):
            try:
                changes += await self.advance(account, until, lease)
            except Exception as error:  # noqa: BLE001 - the other accounts are advanced
                await raise_if_general(self._records, error, lease)
                self._failing.failed(_ACCOUNT, account, error)
                await self._troubles.set(trouble_of(account), f"account {account}: {_reason(error)}", lease)
            else:
                self._failing.works(_ACCOUNT, account)
                await self._troubles.set(trouble_of(account), None, lease)
        accounts = {name for name, _ in working}
        await self._troubles.clear(lambda name: account_of(name) not in accounts, lease)
        return changes

    async def advance(self, name: str, until: int, lease: Lease | None = None) -> int:
        """Advance one account up to `until`, chunk by chunk; returns the number of changes."""
        async with self._locks[name]:
            done, chunk = 0, _Chunk(name)
            while True:
                snapshot = await self._records.read(self._snapshot, chunk)
                if snapshot is None:
                    return done
                start = snapshot.start
                end = min(until, start + _CHUNK_SECONDS)
                if start >= end and not _any_expired(snapshot.orders, until):
                    return done
                changed, unread = await self._advance_chunk(snapshot, chunk, max(start, end), lease)
                done += changed
                if end >= until or unread is None:
                    return done
                chunk = _Chunk(name, end, chunk.skipped | unread)

    async def _advance_chunk(
        self, snapshot: _Snapshot, chunk: _Chunk, end: int, lease: Lease | None
    ) -> tuple[int, frozenset[str] | None]:
        """Returns the number of changes and the symbols whose bars could not be read; None instead of these: stop here."""
        for _ in range(_TRIES):
            start = snapshot.start
            series = await self._read_bars(snapshot, start, end, lease)
            state = await self._with_prices(snapshot, series, start)
            # Computed before the transaction too: most minutes change nothing, and then nothing is written.
            if not advance(state, series, start, end, self.rules):
                await self._save_quiet(snapshot, series, end, lease)
                return 0, snapshot.symbols - set(series)
            changed = await self._records.write(self._record, snapshot, chunk, state, series, end, lease=lease)
            if changed is not None:
                self._remember(snapshot, series, end)
                return changed, snapshot.symbols - set(series)
            again = await self._records.read(self._snapshot, chunk)
            if again is None:
                break
            snapshot = again
        return 0, None

    def _record(
        self,
        journal: Journal,
        snapshot: _Snapshot,
        chunk: _Chunk,
        state: AccountState,
        series: Mapping[str, Bars],
        end: int,
    ) -> int | None:
        """Record the changes; returns their number, or None if the account has changed since `snapshot` was read."""
        current = self._snapshot(journal.view, chunk)
        if current is None:
            return 0
        now = current.state
        if (now.book, now.orders, now.halted) != (state.book, state.orders, state.halted):
            return None
        changes = advance(state, series, snapshot.start, end, self.rules)
        for change in changes:
            if isinstance(change, Fill):
                journal.put("fill", change, new=True, happened=change.at)
            else:
                journal.put("order", change, happened=change.updated_at)
        save_progress(journal, snapshot.account.name, self._complete_until(series, end), end, journal.seq)
        return len(changes)

    # Reading

    def _snapshot(self, view: View, chunk: _Chunk) -> _Snapshot | None:
        """Returns the account as a transaction sees it; None if it has no orders that could fill."""
        account = queries.account(view, chunk.account)
        if account is None or account.broker != PAPER:
            return None
        working = self._books.working(view, account)
        orders = tuple(order for _, order in working.orders.values())
        recorded = progress.all_progress(view, progress_key(account.name))
        by_symbol = {
            order.symbol: _Progress(int(recorded.get(order.symbol, 0)), int(recorded.get(f"{order.symbol}{ENTRY}", 0)))
            for order in orders
        }
        resting = [
            (seq, order)
            for seq, order in working.orders.values()
            if order.state in RESTING and order.symbol not in chunk.skipped
        ]
        if not resting:
            return None
        matched_until = {order.id: self._matched_until(seq, order, by_symbol[order.symbol]) for seq, order in resting}
        start = max(chunk.reached, min(matched_until.values()))
        book = self._books.book(view, account)
        # Without resting orders the account was not advanced, so the daily loss is checked from `start` on at the earliest.
        since = int(max(recorded.get("", 0.0), self._books.last_fill(view, account), start))
        day = self._books.day_start(view, account, since // DAY * DAY)
        opening = any(order.remaining_opening for _, order in resting)
        symbols = {order.symbol for _, order in resting} | (set(book.positions) if opening else set())
        return _Snapshot(
            account,
            orders,
            int(recorded.get("", 0.0)),
            working.seq,
            start,
            frozenset(symbols - chunk.skipped),
            AccountState(book, orders, {}, None, since, self._halted(view) is not None, matched_until),
            day,
        )

    def _matched_until(self, seq: int, order: Order, progress: _Progress) -> int:
        """Returns the first minute that was not matched with an order; entry `seq` of the ledger wrote the order last."""
        # Only bars change resting orders, so that bars that end by `updated_at` were matched.
        changed = int(max(order.placed_at, order.updated_at) // MINUTE * MINUTE)
        remembered = self._matched[self._records.replaced, order.account].get(order.id, 0)
        return max(changed, remembered, progress.until if seq <= progress.seq else 0)

    async def _read_bars(self, snapshot: _Snapshot, start: int, end: int, lease: Lease | None) -> dict[str, Bars]:
        """Returns the minute bars by symbol. A symbol whose bars cannot be read is left out: only its own orders wait."""
        series: dict[str, Bars] = {}
        unread: dict[str, str] = {}
        needed = {trouble_of(snapshot.account.name, symbol) for symbol in (*snapshot.symbols, "")}
        await self._troubles.clear(lambda n: account_of(n) == snapshot.account.name and n not in needed, lease)
        instruments, minutes = {parse(symbol): symbol for symbol in sorted(snapshot.symbols)}, self._prices.minutes
        try:
            new = await self._bars.threads.run(minutes.new, instruments, start, end)
        except Exception as error:  # noqa: BLE001 - each is read by itself, which raises it again
            log.debug("the minutes of account %s: %r", snapshot.account.name, error)
            new = {}
        for instrument, symbol in instruments.items():
            name = trouble_of(snapshot.account.name, symbol)
            try:
                series[symbol] = new[instrument] if instrument in new else await minutes.filled(instrument, start, end)
            except Exception as error:  # noqa: BLE001 - our own errors, and faults of a feed's adapter with this symbol
                self._failing.failed(_BARS, f"{symbol} for account {snapshot.account.name}", error)
                unread[symbol] = f"the bars of {symbol} cannot be read: {_reason(error)}"
                await self._troubles.set(name, unread[symbol], lease)
            else:
                self._failing.works(_BARS, f"{symbol} for account {snapshot.account.name}")
                await self._troubles.set(name, None, lease)
        self._unread[snapshot.account.name] = unread
        return series

    async def _with_prices(self, snapshot: _Snapshot, series: Mapping[str, Bars], start: int) -> AccountState:
        """Returns the state with the prices before `start`, and with the equity when the day began."""
        state, unit = snapshot.state, snapshot.account.name
        try:
            before = await self._prices.before(set(state.book.positions) & set(series), start)
            at_day_start = await self._prices.before(snapshot.day.held, snapshot.day.moment)
        except Exception as error:  # noqa: BLE001 - without these prices the daily loss is not checked, and orders fill
            self._failing.failed(_PRICES, unit, error)
            before, at_day_start = {}, {}
        else:
            self._failing.works(_PRICES, unit)
        known = set(at_day_start) >= set(snapshot.day.held)
        day_start = snapshot.day.equity(at_day_start) if known else None
        return replace(state, prices=before, day_start=day_start)

    # Progress

    async def _save_quiet(self, snapshot: _Snapshot, series: Mapping[str, Bars], end: int, lease: Lease | None) -> None:
        """Save the progress after bars that changed nothing: in memory, and now and then in the records."""
        name, until = snapshot.account.name, self._complete_until(series, end)
        if end - snapshot.recorded_until >= _PROGRESS_SECONDS:
            await self._records.write(save_progress, name, until, end, snapshot.seq, lease=lease)
        self._remember(snapshot, series, end)

    def _remember(self, snapshot: _Snapshot, series: Mapping[str, Bars], end: int) -> None:
        key, until = (self._records.replaced, snapshot.account.name), self._complete_until(series, end)
        old = self._matched[key]
        self._matched[key] = {o.id: max(until.get(o.symbol, 0), old.get(o.id, 0)) for o in snapshot.orders}

    def _complete_until(self, series: Mapping[str, Bars], end: int) -> dict[str, int]:
        """Returns, by symbol, the time before which no more bars will arrive.

        Without a feed, bars may be imported at any time later: it is the end of the last bar that was read.
        """
        if self._bars.feed.source is not None:
            return dict.fromkeys(series, end)
        return {symbol: int(bars.time[-1]) + MINUTE if len(bars) else 0 for symbol, bars in series.items()}


def _reason(error: Exception) -> str:
    """Returns why, for people. The message of an unknown exception may contain a secret: only the log has it."""
    return f"{error}" if isinstance(error, OpenbellError) else f"{type(error).__name__}; the log has the trace"


def _any_expired(orders: tuple[Order, ...], until: int) -> bool:
    return any(order.expires_at is not None and order.expires_at <= until for order in orders if order.state in RESTING)


def save_progress(journal: Journal, account: str, complete_until: Mapping[str, int], end: int, seq: int) -> None:
    """Record that an account was advanced up to `end`, and the progress of each symbol; `seq` is that of `_Progress`."""
    progress.set_progress(journal.view, progress_key(account), end)
    for symbol, until in complete_until.items():
        progress.set_progress(journal.view, f"{progress_key(account)}{symbol}", until)
        progress.set_progress(journal.view, f"{progress_key(account)}{symbol}{ENTRY}", seq)


def progress_key(account: str) -> str:
    """Returns the name under which the progress of an account is recorded."""
    return f"matched {account}:"


class RecordedTroubles:
    """The accounts that cannot be advanced, and the symbols whose bars cannot be read, each with the reason."""

    def __init__(self, records: Records, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._known: dict[str, str] | None = None
        """None if they were not read yet."""
        self._known_of = 0

    def __bool__(self) -> bool:
        return bool(self._known)

    async def clear(self, over: Callable[[str], bool], lease: Lease | None) -> None:
        """Remove the recorded problems that are over."""
        for name in [name for name in self._known or () if over(name)]:
            await self.set(name, None, lease)

    async def set(self, name: str, reason: str | None, lease: Lease | None) -> None:
        """Record a problem if it has changed; None: it is over."""
        if self._known is None or self._known_of != self._records.replaced:
            found = await self._records.read(progress.all_troubles)
            self._known, self._known_of = {n: why for n, (_, why) in found.items()}, self._records.replaced
        if self._known.get(name) == reason:
            return
        since = self._clock.epoch()
        try:
            await self._records.write(in_view(progress.set_trouble), name, since, reason, lease=lease)
        except OpenbellError as error:
            log.debug("%s", error)
            return
        if reason is None:
            self._known.pop(name, None)
        else:
            self._known[name] = reason
