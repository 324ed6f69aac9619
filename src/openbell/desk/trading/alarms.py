"""Alerts: setting, listing and cancelling them, and the engine's step that fires them.

The engine keeps the active alerts in memory and asks the records only for what has changed. Each minute it looks at the
bars that are new, symbol by symbol; an indicator is computed only when a bar of its timeframe has closed.
"""

from __future__ import annotations

import logging
import secrets
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from openbell.charts.request import Wanted
from openbell.desk.bars import RING, BarService
from openbell.desk.charts import ChartService
from openbell.desk.trading.inbox import Inbox
from openbell.indicators.registry import get
from openbell.market.bars import Bars, closed_at
from openbell.market.clock import Clock, iso
from openbell.market.errors import DataError, InvalidParameter, NoSuchOrder, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.timeframes import SHORT, Timeframe
from openbell.stores.port import Lease
from openbell.stores.records import alerts as queries
from openbell.stores.records import marks
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading import amounts
from openbell.trading.alerts import Alert, AlertState, Firing, Type, price_firings, registered, signal_firings
from openbell.trading.evidence import bar_hash
from openbell.trading.inbox import notification

log = logging.getLogger(__name__)

MOST_PER_PRINCIPAL = 20_000
_MARK = "alerts"
_CATCH_UP = RING


@dataclass(frozen=True, slots=True)
class Condition:
    """What to wait for, as asked for."""

    type: Type
    threshold: float | str | None = None
    indicator: str | None = None
    signal: str | None = None


class AlertService:
    """Alerts of principals."""

    def __init__(self, records: Records, charts: ChartService, clock: Clock) -> None:
        self._records = records
        self._charts = charts
        self._clock = clock

    async def set(self, principal: str, symbol: str, interval: str, wanted: Condition) -> Alert:
        """Set an alert. Raises `InvalidSymbol`, `UnknownSymbol`, `InvalidParameter`."""
        threshold = None if wanted.threshold is None else amounts.price(wanted.threshold, wanted.type.value)
        indicator = None
        if wanted.type is Type.INDICATOR_SIGNAL:
            indicator = registered(wanted.indicator or "", wanted.signal or "")
        instrument = await self._charts.find(symbol)
        at = round(self._clock.epoch(), 3)
        alert = Alert(
            f"alert_{secrets.token_hex(8)}",
            principal,
            instrument.symbol,
            symbol,
            interval,
            wanted.type,
            at,
            threshold,
            indicator,
            wanted.signal,
            updated_at=at,
        )

        def work(journal: Journal) -> None:
            if queries.active_count(journal.connection, principal) >= MOST_PER_PRINCIPAL:
                raise InvalidParameter(f"{MOST_PER_PRINCIPAL} alerts are active, the most allowed: cancel some first")
            journal.put("alert", alert, new=True)

        await self._records.write(work)
        return alert

    async def listing(self, principal: str) -> list[Alert]:
        """A principal's active alerts, oldest first."""
        until = self._clock.epoch()
        return await self._records.read(lambda connection: queries.active(connection, principal, until))

    async def cancel(self, principal: str, alert_id: str) -> Alert:
        """Remove an alert before it fires. Raises `NoSuchOrder`."""

        def work(journal: Journal) -> Alert:
            alert = queries.find(journal.connection, alert_id)
            if alert is None or alert.principal != principal:
                raise NoSuchOrder(f"no alert {alert_id[:80]!r}", alert_id=alert_id[:80])
            if alert.state is not AlertState.ACTIVE:
                raise InvalidParameter(f"alert {alert.id} is {alert.state} already", alert_id=alert.id)
            ended = replace(alert, state=AlertState.CANCELLED, updated_at=journal.at)
            journal.put("alert", ended)
            return ended

        return await self._records.write(work)


class Alarms:
    """The engine's step."""

    def __init__(
        self,
        records: Records,
        bars: BarService,
        charts: ChartService,
        inbox: Inbox,
    ) -> None:
        self._records = records
        self._bars = bars
        self._charts = charts
        self._inbox = inbox
        self._active: dict[tuple[str, str], dict[str, Alert]] = defaultdict(dict)
        """By symbol and interval, then by id."""
        self._seq = 0
        self._seen: dict[tuple[str, str], float] = {}
        self._began: float | None = None
        """How far all alerts had been looked at when this engine began."""

    async def step(self, lease: Lease | None, until: int) -> int:
        """Look at every alert in the bars that had closed by `until`; how many fired."""
        await self._load()
        found: list[tuple[Firing, str]] = []
        behind = False
        for (symbol, interval), alerts in self._active.items():
            if not alerts:
                continue
            try:
                found += await self._look(symbol, interval, list(alerts.values()), until)
            except (DataError, UnknownSymbol, StoreError) as error:
                behind = True
                log.warning("alerts on %s wait: %s", symbol, error)
        fired = await self._fire(found, lease) if found else 0
        if fired or (not behind and self._began is not None and until - self._began >= 900):
            await self._note(until, lease, behind=behind)
        return fired

    async def _load(self) -> None:
        def work(connection: Connection) -> tuple[list[tuple[int, Alert]], float]:
            return queries.changed_after(connection, self._seq), marks.mark(connection, _MARK)

        changed, marked = await self._records.read(work)
        if self._began is None:
            self._began = marked
        for seq, alert in changed:
            self._seq = max(self._seq, seq)
            group = self._active[alert.symbol, alert.interval]
            if alert.state is AlertState.ACTIVE:
                group[alert.id] = alert
            else:
                group.pop(alert.id, None)

    async def _look(self, symbol: str, interval: str, alerts: list[Alert], until: int) -> list[tuple[Firing, str]]:
        timeframe, instrument = SHORT[interval], parse(symbol)
        since = max(self._seen.get((symbol, interval), self._began or 0.0), 0.0)
        # An alert that is new here may be older than what was looked at last.
        start = min(max(since, alert.set_at) for alert in alerts)
        if start >= until and since >= until:
            return []
        firings: list[tuple[Firing, str]] = []
        of_price = [alert for alert in alerts if alert.type.of_price]
        if of_price:
            bars = await self._bars_since(instrument, timeframe, min(since, start), until)
            firings += [(each, bar_hash(bars, each.index)) for each in price_firings(of_price, bars, since)]
        by_indicator: dict[str, list[Alert]] = defaultdict(list)
        for alert in alerts:
            if alert.indicator is not None:
                by_indicator[alert.indicator].append(alert)
        if by_indicator and await self._closed_since(instrument, timeframe, since, until):
            firings += await self._signals(instrument, timeframe, by_indicator, since)
        self._seen[symbol, interval] = float(until)
        return firings

    async def _closed_since(self, instrument: Instrument, timeframe: Timeframe, since: float, until: int) -> bool:
        """Whether a bar of this timeframe has closed since."""
        if timeframe.intraday:
            return int(until // timeframe.seconds) > int(since // timeframe.seconds)
        newest = await self._bars.newest(instrument, timeframe, 1)
        return len(newest) > 0 and closed_at(newest) > since

    async def _bars_since(self, instrument: Instrument, timeframe: Timeframe, since: float, until: int) -> Bars:
        count = min(_CATCH_UP, max(2, int((until - since) // timeframe.seconds) + 2))
        return await self._bars.newest(instrument, timeframe, count)

    async def _signals(
        self, instrument: Instrument, timeframe: Timeframe, wanted: dict[str, list[Alert]], since: float
    ) -> list[tuple[Firing, str]]:
        asked = [Wanted(name, get(name), get(name).settings()) for name in wanted]
        chart = await self._charts.chart(instrument, timeframe, RING, asked)
        firings: list[tuple[Firing, str]] = []
        for computed in chart.indicators:
            alerts = wanted[computed.wanted.indicator.name]
            found = signal_firings(alerts, chart.bars, computed.channels.signals, since)
            firings += [(each, bar_hash(chart.bars, each.index)) for each in found]
        return firings

    async def _fire(self, found: Iterable[tuple[Firing, str]], lease: Lease | None) -> int:
        """Write down what fired: the alert's end, its notification, and what is to be pushed, all or nothing."""
        firings = sorted(found, key=lambda pair: (pair[0].at, pair[0].alert.id))

        def work(journal: Journal) -> list[Alert]:
            active = queries.still_active(journal.connection, [firing.alert.id for firing, _ in firings])
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
                    updated_at=journal.at,
                )
                cursor = journal.put("alert", alert)
                self._inbox.deliver(journal.connection, alert, cursor, notification(firing, iso(firing.at)), journal.at)
                fired.append(alert)
            return fired

        fired = await self._records.write(work, lease)
        for firing, _ in firings:
            self._active[firing.alert.symbol, firing.alert.interval].pop(firing.alert.id, None)
        self._inbox.wake()
        return len(fired)

    async def _note(self, until: int, lease: Lease | None, *, behind: bool) -> None:
        """Remember how far all were looked at, so that the next engine need not begin where they were set."""
        if behind:
            return
        await self._records.write(lambda journal: marks.set_mark(journal.connection, _MARK, until), lease)
        self._began = float(until)
