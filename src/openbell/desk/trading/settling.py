"""Brings accounts up to date before they are read or changed: applies the bars that have closed to their orders."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from openbell.desk.patience import Step, during
from openbell.market.bars import MINUTE
from openbell.market.errors import DataError, OpenbellError, Refused, StoreError, UnknownSymbol
from openbell.stores.port import Lease

if TYPE_CHECKING:
    from openbell.desk.bars import BarService
    from openbell.desk.trading.desk import TradingDesk
    from openbell.desk.trading.matching import PaperMatching

log = logging.getLogger(__name__)

Follow = Callable[[Lease | None, int], Awaitable[int]]

_FAILURES = (DataError, UnknownSymbol, StoreError, Refused)
_SETTLED_SECONDS = 1.0
"""How long a scenario counts as up to date while its clock has not reached another bar: bars may still arrive."""


class Settling:
    """Applies closed bars to the accounts of one trading desk."""

    def __init__(self, trading: TradingDesk, bars: BarService, scenario: str | None, follow: Follow) -> None:
        """`follow` runs the strategies that are followed, in a scenario."""
        self._trading = trading
        self._bars = bars
        self._scenario = scenario
        self._follow = follow
        self._settled = (0, 0.0)
        """Up to which bar this scenario was brought up to date last, and when by monotonic time."""
        self._behind: dict[str, str] = {}
        """By account, why it could not be brought up to date when it was last read or changed."""

    async def account(self, name: str) -> None:
        """Apply the bars that have closed to an account; `behind` says why that failed."""
        if not self._trading.writes:
            return
        try:
            if self._scenario is not None:
                await self._step_scenario()
            else:
                async with during(Step.SETTLE):
                    await self._trading.venue.settle(name)
        except _FAILURES as error:
            log.warning("the account %s could not be brought up to date: %s", name, error)
            self._behind[name] = error.message
        else:
            self._behind.pop(name, None)

    def behind(self, name: str) -> str | None:
        """Returns why fills that are due may be missing from an account; None if it is up to date."""
        why = self._behind.get(name) or self._trading.matching.unread(name)
        return why and f"fills that are due may be missing: {why}"

    async def scenario(self) -> None:
        """In a scenario, apply the bars that have closed to its account and alerts, before anything is written.

        The next write advances the scenario's time to this clock. A desk with an earlier clock could not record any more
        what was due before, and would show an order as open that should have filled.
        """
        try:
            await self._step_scenario()
        except _FAILURES as error:
            log.warning("the account could not be brought up to date: %s", error)

    async def _step_scenario(self) -> None:
        trading = self._trading
        if self._scenario is None or not trading.writes or not await trading.records.is_created():
            return
        until, now = self._bars.closed_until(), time.monotonic()
        # Orders and alerts that were added since are about later bars.
        if self._settled[0] == until and now - self._settled[1] < _SETTLED_SECONDS:
            return
        await trading.matching.step(None, until)
        await trading.alert_engine.step(None, until)
        await self._follow(None, until)
        self._settled = (until, now) if not trading.matching.troubled else (0, 0.0)

    async def every_account(self, until: float, matching: PaperMatching) -> None:
        """Apply the bars that had closed by a time to every paper account; failures are logged."""
        try:
            await matching.step(None, min(self._bars.closed_until(), int(until // MINUTE * MINUTE)))
        except OpenbellError as error:
            log.warning("accounts could not be brought up to date: %s", error)
