"""The alert engine: the step of the engine that fires alerts.

It keeps the active alerts in memory and reads only changed ones from the records. Each minute it reads the new minute
bars of all symbols; they decide every price alert, whatever its interval. An indicator is computed only when a bar of its
timeframe has closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from openbell.desk.bars import RING, BarService
from openbell.desk.followers import SignalFollowers
from openbell.desk.indicators import IndicatorService
from openbell.desk.trading.inbox import Inbox
from openbell.indicators.evaluation import IndicatorRequest
from openbell.indicators.registry import get
from openbell.market.bars import MINUTE, Bars, closed_at
from openbell.market.clock import iso
from openbell.market.errors import DataError, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, Timeframe
from openbell.stores.port import Lease, Span, Version
from openbell.stores.records import alerts as queries
from openbell.stores.records import progress
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.view import View
from openbell.trading.alerts import Alert, AlertState, Firing, PriceLevels, levels_of, price_firings, signal_firings
from openbell.trading.evidence import bar_hash
from openbell.trading.inbox import notification

log = logging.getLogger(__name__)

_LONGEST = 1_100_000
"""Minutes in two years."""
_NOTE_SECONDS = 900.0
_EVER = 2**40
_PROGRESS, _PROGRESS_SEQ = "alerts", "alerts through entry"
_Found = tuple[Firing, str]
"""A firing, and the hash of its bar."""

_Key = tuple[str, Timeframe]


def _key(alert: Alert) -> _Key:
    """Returns the group of an alert: its symbol, and the timeframe of the bars that decide it."""
    return alert.symbol, Timeframe.M1 if alert.type.of_price else SHORT[alert.interval]


class _Group:
    """The active alerts that the bars of one symbol at one timeframe decide."""

    def __init__(self, symbol: str, timeframe: Timeframe) -> None:
        self.instrument = parse(symbol)
        self.timeframe = timeframe
        self.alerts: dict[str, Alert] = {}
        self.seen: float = 0.0
        """The alerts were checked on bars that closed up to this time."""
        self._levels: PriceLevels | None = None

    def put(self, alert: Alert) -> None:
        """Add an active alert, or remove one that has ended."""
        self._levels = None
        if alert.state is AlertState.ACTIVE:
            self.alerts[alert.id] = alert
        else:
            self.alerts.pop(alert.id, None)

    def within_reach(self, bars: Bars) -> bool:
        """Returns True if any price alert can fire on these bars."""
        if self._levels is None:
            self._levels = levels_of(self.alerts.values())
        return self._levels.can_fire(bars)

    def is_due(self, until: int) -> bool:
        """Returns True if a bar of the timeframe may have closed since the last check."""
        step = self.timeframe.seconds
        return self.seen < until and (not self.timeframe.intraday or int(until // step) > int(self.seen // step))

    def of_price(self) -> list[Alert]:
        """Returns the price alerts."""
        return [alert for alert in self.alerts.values() if alert.type.of_price]

    def by_indicator(self) -> dict[str, list[Alert]]:
        """Returns the signal alerts by indicator."""
        found: dict[str, list[Alert]] = defaultdict(list)
        for alert in self.alerts.values():
            if alert.indicator is not None:
                found[alert.indicator].append(alert)
        return found


class AlertEngine:
    """Fires alerts on closed bars."""

    def __init__(self, records: Records, bars: BarService, indicators: IndicatorService, inbox: Inbox) -> None:
        self._records = records
        self._bars = bars
        self._followers = SignalFollowers(bars, indicators)
        self._inbox = inbox
        self._groups: dict[_Key, _Group] = {}
        self._versions: dict[Instrument, Version] = {}
        """The version of a symbol's stored bars when `_read` last read them."""
        self._prepared: set[Instrument] = set()
        """Symbols whose version was kept, or could not be, before their first bars were read."""
        self._stepping = asyncio.Lock()
        self._seq = 0
        self._noted: float | None = None
        """The time up to which all alerts were checked, as last recorded."""

    async def step(self, lease: Lease | None, until: int) -> int:
        """Check every alert on the bars that had closed by `until`; returns how many fired."""
        async with self._stepping:
            return await self._step(lease, until)

    async def _step(self, lease: Lease | None, until: int) -> int:
        await self._load()
        self._followers.begin_round()
        due = [group for group in self._groups.values() if group.alerts and group.is_due(until)]
        new_bars = await self._read_new_bars(due, until)
        found: list[_Found] = []
        checked: list[_Group] = []
        for group in due:
            try:
                found += await self._check(group, new_bars.get(group.instrument), until)
            except (DataError, UnknownSymbol, StoreError) as error:
                log.warning("alerts on %s wait: %s", group.instrument, error)
            else:
                checked.append(group)
        fired = await self._fire(found, lease) if found else 0
        for group in checked:  # after the firings were recorded: if that fails, the group is checked again
            complete = await self._complete_until(group, new_bars.get(group.instrument), until)
            group.seen = max(group.seen, complete)
        behind = len(checked) < len(due)
        seen = min((group.seen for group in checked), default=float(until))
        if not behind and due and (fired or seen - (self._noted or 0.0) >= _NOTE_SECONDS):
            await self._note(int(seen), lease)
        await self._prepare(until)
        return fired

    async def _prepare(self, until: int) -> None:
        """Keep the versions of symbols that were not read yet, so that the next minute of all is read at once."""
        new = {
            group.instrument
            for group in self._groups.values()
            if group.alerts and group.timeframe is Timeframe.M1 and group.seen >= until
        } - self._prepared
        if new:
            self._prepared |= new
            await self._bars.threads.run(self._keep_versions, sorted(new - set(self._versions)), until)

    async def _complete_until(self, group: _Group, new_bars: Bars | None, until: int) -> float:
        """Returns the time before which no bar will arrive: without a feed, the end of the newest stored bar."""
        if self._bars.feed.source is not None:
            return float(until)
        if new_bars is not None:  # all bars since the last check
            return float(min(until, int(new_bars.time[-1]) + MINUTE)) if len(new_bars) else group.seen
        newest = await self._bars.threads.run(self._bars.store.tail, Series(group.instrument), 1, until)
        return float(min(until, int(newest.time[-1]) + MINUTE)) if len(newest) else group.seen

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
            if (group := self._groups.get(_key(alert))) is None:
                group = self._groups[_key(alert)] = _Group(*_key(alert))
            if alert.state is AlertState.ACTIVE:
                # An alert that was never checked may have been set before the time of the last check.
                seen = self._noted if seq <= noted_seq else alert.set_at
                group.seen = min(group.seen, seen) if group.alerts else seen
            group.put(alert)

    async def _read_new_bars(self, due: list[_Group], until: int) -> dict[Instrument, Bars]:
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

    async def _check(self, group: _Group, new_bars: Bars | None, until: int) -> list[_Found]:
        instrument, timeframe, since = group.instrument, group.timeframe, group.seen
        found: list[_Found] = []
        if new_bars is None and (failure := await self._bars.fill(instrument, Span(int(since), until))):
            raise failure  # an alert may fire on the bars that are missing
        bars = new_bars if timeframe is Timeframe.M1 else None
        if bars is None and any(alert.type.of_price for alert in group.alerts.values()):
            bars = await self._read(instrument, since, until)
        if bars is not None and group.within_reach(bars):
            found += [(each, bar_hash(bars, each.index)) for each in price_firings(group.of_price(), bars, since)]
        wanted = group.by_indicator()
        if wanted and await self._closed_since(instrument, timeframe, since, until):
            found += await self._signals(instrument, timeframe, wanted, since)
        return found

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

        The version is removed if the store has bars later than this desk's clock: they would not count as new later.
        """
        store = self._bars.store
        version = store.version(Series(instrument))
        ahead = store.tail(Series(instrument), 1, _EVER)
        if len(ahead) and ahead.time[-1] >= until:
            self._versions.pop(instrument, None)
        else:
            self._versions[instrument] = version

    async def _closed_since(self, instrument: Instrument, timeframe: Timeframe, since: float, until: int) -> bool:
        """Returns True if a bar of this timeframe has closed after `since`."""
        if timeframe.intraday:
            return int(until // timeframe.seconds) > int(since // timeframe.seconds)
        newest = await self._bars.newest(instrument, timeframe, 1)
        return len(newest) > 0 and closed_at(newest) > since

    async def _signals(
        self, instrument: Instrument, timeframe: Timeframe, wanted: dict[str, list[Alert]], since: float
    ) -> list[_Found]:
        requests = [IndicatorRequest(name, get(name), get(name).settings()) for name in wanted]
        new = await self._followers.since(instrument, timeframe, requests, since)
        found: list[_Found] = []
        for name, signals in new.by_name.items():
            firings = signal_firings(wanted[name], new.bars, signals, since)
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
            self._groups[_key(firing.alert)].put(replace(firing.alert, state=AlertState.FIRED))
        return len(fired)

    async def _note(self, until: int, lease: Lease | None) -> None:
        """Record the time up to which all alerts were checked, so that the next engine begins there."""
        seq = self._seq

        def work(journal: Journal) -> None:
            progress.set_progress(journal.view, _PROGRESS, until)
            progress.set_progress(journal.view, _PROGRESS_SEQ, seq)

        await self._records.write(work, lease)
        self._noted = float(until)
