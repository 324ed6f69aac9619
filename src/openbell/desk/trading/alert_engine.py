"""The alert engine: the step of the engine that fires alerts.

It keeps the active alerts in memory and reads only changed ones from the records. Each minute it reads the new minute
bars of all symbols; they decide every price alert, whatever its interval. If a symbol has no minutes, or none of the last
hours of trading, the latest bars of any stored timeframe do. An indicator is computed only when a bar of its timeframe has
closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from time import monotonic

from openbell.desk.bar_facts import latest_of_any
from openbell.desk.bars import RING, BarService
from openbell.desk.followers import SignalFollowers
from openbell.desk.indicators import IndicatorService
from openbell.desk.trading.alert_groups import AlertGroup, GroupKey, key_of
from openbell.desk.trading.inbox import Inbox
from openbell.desk.trading.traded_minutes import TradedMinutes
from openbell.indicators.evaluation import IndicatorRequest
from openbell.market.bars import MINUTE, Bars, closed_at
from openbell.market.clock import iso
from openbell.market.errors import DataError, SourceConflict, StoreError, UnknownSymbol
from openbell.market.freshness import trading_seconds
from openbell.market.instruments import Instrument
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Lease, Span, Version
from openbell.stores.records import alerts as queries
from openbell.stores.records import progress
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.view import View
from openbell.trading.alerts import Alert, AlertState, Firing, price_firings, signal_firings
from openbell.trading.evidence import bar_hash
from openbell.trading.inbox import notification

log = logging.getLogger(__name__)

_LONGEST = 1_100_000
"""Minutes in two years."""
_NOTE_SECONDS = 900.0
_PREPARE_SECONDS = 0.02
"""The time that preparations may take in each step."""
_CURRENT = 6.5 * 3600
"""Seconds of trading after which minutes are no longer current: a session of stocks."""
_EVER = 2**40
_PROGRESS, _PROGRESS_SEQ = "alerts", "alerts through entry"
_Found = tuple[Firing, str]
"""A firing, and the hash of its bar."""


class AlertEngine:
    """Fires alerts on closed bars."""

    def __init__(
        self, records: Records, bars: BarService, minutes: TradedMinutes, indicators: IndicatorService, inbox: Inbox
    ) -> None:
        self._records = records
        self._bars = bars
        self._minutes = minutes
        self._followers = SignalFollowers(bars, indicators)
        self._inbox = inbox
        self._groups: dict[GroupKey, AlertGroup] = {}
        self._versions: dict[Instrument, Version] = {}
        """The version of a symbol's stored bars when `_read` last read them."""
        self._prepared: set[Instrument] = set()
        """Symbols whose version was kept, or could not be, before their first bars were read."""
        self._stepping = asyncio.Lock()
        self._seq = 0
        self._noted: float | None = None
        """The time up to which all alerts were checked, as last recorded."""
        records.on_replaced.append(self._forget)

    def _forget(self) -> None:
        """Drop what was read from an earlier ledger."""
        self._groups, self._seq, self._noted = {}, 0, None

    async def step(self, lease: Lease | None, until: int) -> int:
        """Check every alert on the bars that had closed by `until`; returns how many fired."""
        async with self._stepping:
            return await self._step(lease, until)

    async def _step(self, lease: Lease | None, until: int) -> int:
        await self._load()
        self._followers.begin_round()
        due = [group for group in self._groups.values() if group.alerts and group.is_due(until)]
        new_bars = await self._read_new_bars(due, until)
        await self._read_larger_bars(due)
        found: list[_Found] = []
        checked: list[AlertGroup] = []
        for group in due:
            try:
                found += await self._check(group, new_bars.get(group.instrument), until)
            except (DataError, UnknownSymbol, StoreError) as error:
                log.warning("alerts on %s wait: %s", group.instrument, error)
            else:
                checked.append(group)
        fired = await self._fire(found, lease) if found else 0
        # After the firings were recorded: if that fails, the groups are checked again.
        await self._advance(checked, new_bars, until)
        behind = len(checked) < len(due)
        seen = min((group.seen for group in checked), default=float(until))
        if not behind and due and (fired or seen - (self._noted or 0.0) >= _NOTE_SECONDS):
            await self._note(int(seen), lease)
        await self._prepare(until)
        return fired

    async def _advance(self, checked: list[AlertGroup], new_bars: dict[Instrument, Bars], until: int) -> None:
        """Set the time up to which groups were checked.

        Without a feed, that is the end of the newest stored minute: bars before the clock's time may still be imported.
        """
        complete = dict.fromkeys((group.instrument for group in checked), float(until))
        if self._bars.feed.source is None:
            # Where `new_bars` has an entry, it has all bars since the last check.
            unread = [each for each in complete if each not in new_bars]
            stored = new_bars | await self._bars.threads.run(self._newest_minutes, unread, until)
            complete = {
                each: float(min(until, int(bars.time[-1]) + MINUTE)) if len(bars := stored[each]) else 0.0
                for each in complete
            }
        for group in checked:
            group.seen = max(group.seen, complete[group.instrument])

    def _newest_minutes(self, instruments: Iterable[Instrument], until: int) -> dict[Instrument, Bars]:
        return {each: self._bars.store.tail(Series(each), 1, until) for each in instruments}

    async def _prepare(self, until: int) -> None:
        """Do what the next checks need before their bars close: they then take less time."""
        ready = [group for group in self._groups.values() if group.alerts and group.seen >= until]
        new = {group.instrument for group in ready if group.timeframe is Timeframe.M1} - self._prepared
        if new:
            self._prepared |= new
            await self._bars.threads.run(self._keep_versions, sorted(new - set(self._versions)), until)
        began = monotonic()
        for group in self._groups.values():
            if monotonic() - began > _PREPARE_SECONDS:
                break
            if group.alerts and not group.prepared:
                group.prepared = True
                await self._prepare_signals(group)

    async def _prepare_signals(self, group: AlertGroup) -> None:
        if requests := group.requests():
            found = await self._bars.latest_stored([group.instrument], group.timeframe)
            for bars in found.values():
                await self._followers.prepare(bars, requests)

    async def _load(self) -> None:
        """Load the alerts that were set, fired or cancelled since the last call."""

        def work(view: View) -> tuple[list[tuple[int, Alert]], float, float]:
            changed = queries.changed_after(view, self._seq)
            return changed, progress.progress(view, _PROGRESS), progress.progress(view, _PROGRESS_SEQ)

        changed, noted, noted_seq = await self._records.read(work)
        if self._noted is None:
            self._noted = noted
        for seq, alert in changed:
            self._seq = max(self._seq, seq)
            if (group := self._groups.get(key_of(alert))) is None:
                group = self._groups[key_of(alert)] = AlertGroup(*key_of(alert))
            if alert.state is AlertState.ACTIVE:
                # An alert that was never checked may have been set before the time of the last check.
                seen = self._noted if seq <= noted_seq else alert.set_at
                group.seen = min(group.seen, seen) if group.alerts else seen
            group.put(alert)

    async def _read_new_bars(self, due: list[AlertGroup], until: int) -> dict[Instrument, Bars]:
        """Returns the new minute bars by symbol, in one read for all symbols whose last check was the latest one."""
        minutes = [group for group in due if group.timeframe is Timeframe.M1 and group.instrument in self._versions]
        if not minutes:
            return {}
        since = max(group.seen for group in minutes)
        wanted = {
            Series(group.instrument): self._versions[group.instrument] for group in minutes if group.seen == since
        }
        span = Span(int(since), until)
        covered = self._bars.feed.source is not None
        found = await self._bars.threads.run(partial(self._bars.store.new_bars, wanted, span, covered=covered))
        return {series.instrument: bars for series, bars in found.items()}

    async def _read_larger_bars(self, due: list[AlertGroup]) -> None:
        """Read the bars of signal alerts into memory, in one turn of a thread for each timeframe."""
        wanted: dict[Timeframe, list[Instrument]] = defaultdict(list)
        for group in due:
            if any(not alert.type.of_price for alert in group.alerts.values()):
                wanted[group.timeframe].append(group.instrument)
        for timeframe, instruments in wanted.items():
            await self._bars.latest_stored(instruments, timeframe)

    async def _check(self, group: AlertGroup, new_bars: Bars | None, until: int) -> list[_Found]:
        instrument, timeframe, since = group.instrument, group.timeframe, group.seen
        found: list[_Found] = []
        failure = await self._bars.fill(instrument, Span(int(since), until)) if new_bars is None else None
        if failure and not isinstance(failure, SourceConflict):  # then stored bars of another source decide
            raise failure  # an alert may fire on the bars that are missing
        bars = new_bars if timeframe is Timeframe.M1 else None
        if bars is None and any(alert.type.of_price for alert in group.alerts.values()):
            bars = await self._read(instrument, since, until)
            if self._are_current(bars, until):
                bars = await self._bars.threads.run(self._minutes.of, bars)
            else:
                bars = await latest_of_any(self._bars, instrument, bars)
        if bars is not None and group.within_reach(bars):
            found += [(each, bar_hash(bars, each.index)) for each in price_firings(group.of_price(), bars, since)]
        if requests := group.requests():
            found += await self._signals(group, requests)
        return found

    @staticmethod
    def _are_current(minutes: Bars, until: int) -> bool:
        """Returns False if the market has traded for long without a minute: some were stored once, but none any more."""
        return len(minutes) > 0 and trading_seconds(minutes.instrument, closed_at(minutes), until) < _CURRENT

    async def _read(self, instrument: Instrument, since: float, until: int) -> Bars:
        """Returns the minute bars since a time."""
        await self._bars.threads.run(self._keep_version, instrument, until)
        while True:
            # New bars may close during the read; the result must still begin at `since`.
            count = max(2, int((self._bars.closed_until() - since) // MINUTE) + 2)
            if count <= RING:
                bars = await self._bars.newest(instrument, Timeframe.M1, count)
            else:
                # The last check was long ago; `page` returns at most the bars of the store and its feed.
                bars = (await self._bars.page(instrument, Timeframe.M1, min(count, _LONGEST), 0))[0]
            if len(bars) < count or bars.time[0] <= since:
                return bars

    def _keep_versions(self, instruments: Iterable[Instrument], until: int) -> None:
        for instrument in instruments:
            try:
                self._keep_version(instrument, until)
            except StoreError as error:
                log.debug("%s: %s", instrument, error)  # it is read by itself, which raises the error again

    def _keep_version(self, instrument: Instrument, until: int) -> None:
        """Keep the version of a symbol's bars, so that the next check reads only newer bars.

        The version is removed if the store has bars later than this desk's clock: they would not count as new later. It is
        also removed if there are no current minutes: other bars then decide.
        """
        store = self._bars.store
        version = store.version(Series(instrument))
        ahead = store.tail(Series(instrument), 1, _EVER)
        if not self._are_current(ahead, until) or ahead.time[-1] >= until:
            self._versions.pop(instrument, None)
        else:
            self._versions[instrument] = version

    async def _signals(self, group: AlertGroup, requests: list[IndicatorRequest]) -> list[_Found]:
        new = await self._followers.since(group.instrument, group.timeframe, requests, group.seen)
        found: list[_Found] = []
        wanted = group.by_indicator()
        for name, signals in new.by_name.items():
            firings = signal_firings(wanted[name], new.bars, signals, group.seen)
            found += [(each, bar_hash(new.bars, each.index)) for each in firings]
        return found

    async def _fire(self, found: Iterable[_Found], lease: Lease | None) -> int:
        """Record the firings, their notifications and pushes in one transaction; returns how many were recorded."""
        firings = sorted(found, key=lambda pair: (pair[0].at, pair[0].alert.id))

        def work(journal: Journal) -> list[Alert]:
            active = queries.still_active(journal.view, [firing.alert.id for firing, _ in firings])
            fired = []
            for firing, evidence in firings:
                if firing.alert.id not in active:
                    continue
                alert = replace(
                    firing.alert,
                    state=AlertState.FIRED,
                    fired_at=firing.at,
                    value=firing.value,
                    bar_hash=evidence,
                    updated_at=firing.at,
                )
                cursor = journal.put("alert", alert, happened=firing.at)
                self._inbox.deliver(journal, alert, cursor, notification(firing, iso(firing.at)), firing.at)
                fired.append(alert)
            return fired

        fired = await self._records.write(work, lease)
        for firing, _ in firings:
            self._groups[key_of(firing.alert)].put(replace(firing.alert, state=AlertState.FIRED))
        return len(fired)

    async def _note(self, until: int, lease: Lease | None) -> None:
        """Record the time up to which all alerts were checked, so that the next engine begins there."""
        seq = self._seq

        def work(journal: Journal) -> None:
            progress.set_progress(journal.view, _PROGRESS, until)
            progress.set_progress(journal.view, _PROGRESS_SEQ, seq)

        await self._records.write(work, lease)
        self._noted = float(until)
