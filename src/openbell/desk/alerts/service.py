"""Alerts of a principal: setting, listing and cancelling them. The alert engine fires them."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from openbell.desk.bars.service import BarService
from openbell.desk.orders.prices import Prices
from openbell.desk.settings.principals import Quota
from openbell.market.errors import InvalidParameter, NoSuchAlert
from openbell.stores.records import alerts as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading import amounts
from openbell.trading.alerts import Alert, AlertProgress, AlertState, LastPrice, Type, progress_of, registered


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of an alert, as requested."""

    type: Type
    threshold: float | str | None = None
    indicator: str | None = None
    signal: str | None = None


class AlertService:
    """Alerts of principals."""

    def __init__(
        self, records: Records, bars: BarService, prices: Prices, settle: Callable[[], Awaitable[None]], quota: Quota
    ) -> None:
        """`settle` applies the bars that have closed: an alert that is due fires before it can be cancelled."""
        self._records = records
        self._quota = quota
        self._settle = settle
        self._bars = bars
        self._prices = prices
        self._clock = bars.clock

    async def set(self, principal: str, symbol: str, interval: str, wanted: Condition) -> Alert:
        """Set an alert. Raises `InvalidSymbol`, `UnknownSymbol`, `InvalidParameter`, `QuotaExceeded`."""
        threshold = None if wanted.threshold is None else amounts.price(wanted.threshold, wanted.type.value)
        indicator = None
        if wanted.type is Type.INDICATOR_SIGNAL:
            indicator = registered(wanted.indicator or "", wanted.signal or "")
        instrument = await self._bars.find(symbol)
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
            self._quota.check(queries.active_count(journal.view, principal))
            journal.put("alert", alert, new=True)

        await self._settle()
        await self._records.write(work)
        return alert

    async def listing(self, principal: str) -> list[Alert]:
        """Returns a principal's active alerts, oldest first."""
        await self._settle()
        return await self._records.read(queries.active, principal)

    async def fired(self, principal: str, limit: int) -> tuple[list[Alert], int]:
        """Returns a principal's latest fired alerts, the latest first, and how many there are in all."""
        await self._settle()
        return await self._records.read(queries.fired, principal, limit)

    async def progress(self, alerts: Iterable[Alert]) -> dict[str, AlertProgress]:
        """Returns by id why each of these active alerts has not fired."""
        alerts = list(alerts)
        found, missing = await self._prices.of({alert.symbol for alert in alerts if alert.type.of_price})
        last: dict[str, LastPrice | str] = {
            **missing,
            **{symbol: LastPrice(price.value, price.end) for symbol, price in found.items()},
        }
        now = self._clock.epoch()
        return {alert.id: progress_of(alert, last.get(alert.symbol), now) for alert in alerts}

    async def cancel(self, principal: str, alert_id: str) -> Alert:
        """Cancel an active alert. Raises `NoSuchAlert`, or `InvalidParameter` if it has ended already."""

        def work(journal: Journal) -> Alert:
            alert = queries.find(journal.view, alert_id)
            if alert is None or alert.principal != principal:
                raise NoSuchAlert(f"no alert {alert_id[:80]!r}", alert_id=alert_id[:80])
            if alert.state is not AlertState.ACTIVE:
                raise InvalidParameter(f"alert {alert.id} is {alert.state} already", alert_id=alert.id)
            ended = replace(alert, state=AlertState.CANCELLED, updated_at=journal.at)
            journal.put("alert", ended)
            return ended

        await self._settle()
        return await self._records.write(work)
