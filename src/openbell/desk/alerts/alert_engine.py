"""The alert engine: the step of the engine that fires alerts, and records them with their notifications.

It keeps the active alerts in memory and reads only changed ones from the records. Each minute it reads the new minute
bars of all symbols; they decide every price alert, whatever its interval. If a symbol has no minutes, or none of the last
hours of trading, the latest bars of any stored timeframe do. An indicator is computed only when a bar of its timeframe has
closed.

What goes wrong with one alert or one symbol keeps no other from its turn. If many bars cannot be read at once, they are
read one by one. An alert that cannot be checked leaves its group: it is then checked alone, from where it was checked last.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

from openbell.desk.alerts.alert_groups import AlertGroup, AlertGroups
from openbell.desk.alerts.inbox import Inbox
from openbell.desk.bars.facts import latest_of_any
from openbell.desk.bars.service import MOST_CACHED, BarService
from openbell.desk.events.supervision import FailingUnits
from openbell.desk.orders.engine import raise_if_general
from openbell.desk.orders.prices import TradedMinutes
from openbell.desk.pictures.indicators import IndicatorService
from openbell.indicators.evaluation import IndicatorRequest
from openbell.market.bars import MINUTE, Bars, closed_at
from openbell.market.clock import iso
from openbell.market.errors import FeedUnavailable, NoData, SourceConflict, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.market.trading_time import trading_seconds
from openbell.stores.port import Lease, Span, Version
from openbell.stores.records import alerts as queries
from openbell.stores.records import progress
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.trading.alerts import Alert, AlertState, Firing, notification, price_firings, signal_firings
from openbell.trading.evidence import bar_hash

log = logging.getLogger(__name__)

_LONGEST = 1_100_000
"""Minutes in two years."""
_NOTE_SECONDS = 900.0
_PREPARE_SECONDS = 0.02
"""The time that preparations may take in each step."""
_CURRENT = 6.5 * 3600
"""Seconds of trading after which minutes are no longer current: a session of stocks."""
_EVER = 2**40
_ALERTS, _MINUTES = "alerts on", "the newest minutes of"
"""Kinds of units that may fail alone."""
ALERT = "alert"
"""The kind of unit that may fail alone."""
PROGRESS, PROGRESS_SEQ = "alerts", "alerts through entry"
Found = tuple[Firing, str]
"""A firing, and the hash of its bar."""


class AlertEngine:
    """Fires alerts on closed bars."""

    def __init__(
        self,
        records: Records,
        bars: BarService,
        minutes: TradedMinutes,
        indicators: IndicatorService,
        inbox: Inbox,
        failing: FailingUnits | None = None,
    ) -> None:
        self._failing = failing or FailingUnits()
        self._records = records
        self._bars = bars
        self._minutes = minutes
        self._indicators = indicators
        self._recorder = FiringRecorder(records, inbox, self._failing)
        self._groups = AlertGroups()
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
        self._groups.clear()
        self._seq, self._noted = 0, None

    async def step(self, lease: Lease | None, until: int) -> int:
        """Check every alert on the bars that had closed by `until`; returns how many fired."""
        async with self._stepping:
            return await self._step(lease, until)

    async def _step(self, lease: Lease | None, until: int) -> int:
        await self._load()
        due = self._due(until)
        new_bars = await self._read_new_bars(due, until)
        await self._read_larger_bars(due)
        found: list[Found] = []
        checked: list[AlertGroup] = []
        for group in due:
            signals, is_checked = await self._check_apart(group, new_bars.get(group.instrument), until)
            found += signals
            if is_checked:
                checked.append(group)
        fired = await self._recorder.fire(found, lease)
        for alert in fired.ended:
            self._groups.put(alert, alert.set_at)
        # After the firings were recorded: if that fails, the groups are checked again.
        checked = [group for group in checked if not fired.failed & group.alerts.keys()]
        await self._advance(checked, new_bars, until)
        behind = len(checked) < len(due)
        seen = min((group.seen for group in checked), default=float(until))
        if not behind and due and (fired.count or seen - (self._noted or 0.0) >= _NOTE_SECONDS):
            await self._recorder.note(int(seen), self._seq, lease)
            self._noted = float(int(seen))
        await self._prepare(until)
        return fired.count

    def _due(self, until: int) -> list[AlertGroup]:
        """Returns the groups of which a bar may have closed since the last check."""
        groups, due = self._groups.all(), []
        self._failing.keep(_ALERTS, {group.name for group in groups})
        for group in groups:
            try:
                if group.is_due(until):
                    due.append(group)
            except Exception as error:  # noqa: BLE001 - the other groups are checked
                self._failing.failed(_ALERTS, group.name, error)
        return due

    async def _check_apart(self, group: AlertGroup, new_bars: Bars | None, until: int) -> tuple[list[Found], bool]:
        """Returns the firings of a group; False if it could not be checked, which is noted.

        Alerts that keep the others of their group from being checked are set apart.
        """
        try:
            found = await self._check(group, new_bars, until)
        except (FeedUnavailable, NoData, UnknownSymbol, StoreError) as error:  # the bars of the symbol
            self._failing.failed(_ALERTS, group.name, error)
            return [], False
        except Exception as error:  # noqa: BLE001 - the alerts that can be checked are
            found, failed = [], list[tuple[Alert, Exception]]()
            for alert in group.alerts.values():
                try:
                    found += await self._check(group.only(alert), new_bars, until)
                except Exception as fault:  # noqa: BLE001 - noted below
                    failed.append((alert, fault))
            if len(failed) == len(group.alerts):
                self._failing.failed(_ALERTS, group.name, error)
                return [], False
            for alert, own in failed:
                self._failing.failed(_ALERTS, self._groups.set_apart(alert).name, own)
        else:
            self._failing.works(_ALERTS, group.name)
        return found, True

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
                each: float(min(until, int(bars.time[-1]) + MINUTE))
                if (bars := stored.get(each)) and len(bars)
                else 0.0
                for each in complete
            }
        for group in checked:
            group.seen = max(group.seen, complete[group.instrument])

    def _newest_minutes(self, instruments: Iterable[Instrument], until: int) -> dict[Instrument, Bars]:
        found = {}
        for each in instruments:
            try:
                found[each] = self._bars.store.tail(Series(each), 1, until)
            except Exception as error:  # noqa: BLE001 - its alerts are checked again
                self._failing.failed(_MINUTES, f"{each}", error)
            else:
                self._failing.works(_MINUTES, f"{each}")
        return found

    async def _prepare(self, until: int) -> None:
        """Do what the first checks of new alerts need before their bars close: these then take half the time."""
        ready = [group for group in self._groups.all() if group.seen >= until]
        new = {group.instrument for group in ready if group.timeframe is Timeframe.M1} - self._prepared
        if new:
            self._prepared |= new
            await self._bars.threads.run(self._keep_versions, sorted(new - set(self._versions)), until)
        began = monotonic()
        for group in self._groups.all():
            if monotonic() - began > _PREPARE_SECONDS:
                break
            if not group.prepared:
                group.prepared = True
                await self._prepare_signals(group)

    async def _prepare_signals(self, group: AlertGroup) -> None:
        try:
            if group.requests():  # which loads the indicators
                await self._bars.latest_stored([group.instrument], group.timeframe)
        except Exception as error:  # noqa: BLE001 - the check of the group raises it again
            log.debug("%s: %r", group.instrument, error)

    async def _load(self) -> None:
        """Load the alerts that were set, fired or cancelled since the last call."""

        def work(view: View) -> tuple[list[tuple[int, Alert]], float, float]:
            changed = queries.changed_after(view, self._seq)
            return changed, progress.progress(view, PROGRESS), progress.progress(view, PROGRESS_SEQ)

        changed, noted, noted_seq = await self._records.read(work)
        if self._noted is None:
            self._noted = noted
        for seq, alert in changed:
            self._seq = max(self._seq, seq)
            # An alert that was never checked may have been set before the time of the last check.
            seen = self._noted if seq <= noted_seq else alert.set_at
            try:
                self._groups.put(alert, seen)
                if alert.state is not AlertState.ACTIVE:
                    self._failing.works(ALERT, alert.id)
            except Exception as error:  # noqa: BLE001 - such as a symbol that can no longer be read
                self._failing.failed(ALERT, alert.id, error)

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
        try:
            found = await self._bars.threads.run(
                partial(self._bars.store.versions.new_bars, wanted, span, covered=covered)
            )
        except Exception as error:  # noqa: BLE001 - each is read by itself
            self._failing.failed(_MINUTES, "all symbols", error)
            return {}
        self._failing.works(_MINUTES, "all symbols")
        return {series.instrument: bars for series, bars in found.items()}

    async def _read_larger_bars(self, due: list[AlertGroup]) -> None:
        """Read the bars of signal alerts into memory, in one turn of a thread for each timeframe."""
        wanted: dict[Timeframe, list[Instrument]] = defaultdict(list)
        for group in due:
            if any(not alert.type.of_price for alert in group.alerts.values()):
                wanted[group.timeframe].append(group.instrument)
        for timeframe, instruments in wanted.items():
            try:
                await self._bars.latest_stored(instruments, timeframe)
            except Exception as error:  # noqa: BLE001 - each is read by itself, which raises it again
                log.debug("bars of %s: %r", timeframe, error)

    async def _check(self, group: AlertGroup, new_bars: Bars | None, until: int) -> list[Found]:
        instrument, timeframe, since = group.instrument, group.timeframe, group.seen
        found: list[Found] = []
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
            if count <= MOST_CACHED:
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
        version = store.versions.of(Series(instrument))
        ahead = store.tail(Series(instrument), 1, _EVER)
        if not self._are_current(ahead, until) or ahead.time[-1] >= until:
            self._versions.pop(instrument, None)
        else:
            self._versions[instrument] = version

    async def _signals(self, group: AlertGroup, requests: list[IndicatorRequest]) -> list[Found]:
        """Returns the firings of signal alerts. Alerts of one indicator share its values over the newest bars."""
        new = await self._indicators.evaluate(group.instrument, group.timeframe, MOST_CACHED, requests)
        found: list[Found] = []
        wanted = group.by_indicator()
        for each in new.indicators:
            firings = signal_firings(wanted[each.request.key], new.bars, each.channels.signals, group.seen)
            found += [(firing, bar_hash(new.bars, firing.index)) for firing in firings]
        return found


@dataclass(slots=True)
class Fired:
    """What was recorded of some firings."""

    count: int = 0
    ended: list[Alert] = field(default_factory=list)
    """The alerts that have fired now, or had ended before."""
    failed: set[str] = field(default_factory=set)
    """The ids of alerts whose firing could not be recorded."""


class FiringRecorder:
    """Writes what the alert engine has found."""

    def __init__(self, records: Records, inbox: Inbox, failing: FailingUnits) -> None:
        self._records = records
        self._inbox = inbox
        self._failing = failing

    async def fire(self, found: Iterable[Found], lease: Lease | None) -> Fired:
        """Record firings in one transaction, or one by one if that fails."""
        firings = sorted(found, key=lambda pair: (pair[0].at, pair[0].alert.id))
        fired = Fired()
        if not firings:
            return fired
        try:
            fired.count += await self._fire(firings, lease)
        except Exception as error:  # noqa: BLE001 - raised again below if it is not of one alert alone
            await raise_if_general(self._records, error, lease)
        else:
            for firing, _ in firings:
                self._failing.works(ALERT, firing.alert.id)
            fired.ended = [replace(firing.alert, state=AlertState.FIRED) for firing, _ in firings]
            return fired
        for firing, evidence in firings:
            try:
                fired.count += await self._fire([(firing, evidence)], lease)
            except Exception as error:  # noqa: BLE001 - the other alerts fire
                await raise_if_general(self._records, error, lease)
                self._failing.failed(ALERT, firing.alert.id, error)
                fired.failed.add(firing.alert.id)
            else:
                self._failing.works(ALERT, firing.alert.id)
                fired.ended.append(replace(firing.alert, state=AlertState.FIRED))
        return fired

    async def note(self, until: int, seq: int, lease: Lease | None) -> None:
        """Record the time up to which all alerts were checked that the ledger has up to an entry.

        The next engine begins there.
        """

        def work(journal: Journal) -> None:
            progress.set_progress(journal.view, PROGRESS, until)
            progress.set_progress(journal.view, PROGRESS_SEQ, seq)

        await self._records.write(work, lease=lease)

    async def _fire(self, firings: list[Found], lease: Lease | None) -> int:
        """Record firings, their notifications and pushes in one transaction. Returns how many alerts were still active."""

        def work(journal: Journal) -> int:
            active = queries.still_active(journal.view, [firing.alert.id for firing, _ in firings])
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
            return len(active)

        return await self._records.write(work, lease=lease)
