"""Brings accounts up to date before they are read or changed: applies the bars that have closed to their orders."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openbell.desk.bars.call_deadlines import BarDeadline, during
from openbell.market.bars import MINUTE
from openbell.market.errors import DataError, OpenbellError, Refused, StoreError, UnknownSymbol

if TYPE_CHECKING:
    from openbell.desk.bars.service import BarService
    from openbell.desk.orders.matching import PaperMatching
    from openbell.stores.records.records import Records

log = logging.getLogger(__name__)

_FAILURES = (DataError, UnknownSymbol, StoreError, Refused)
_SETTLED_SECONDS = 1.0
"""How long a scenario counts as up to date while its clock has not reached another bar: bars may still arrive."""


@dataclass(frozen=True, slots=True)
class CatchUpParts:
    """What a trading desk is brought up to date with."""

    records: Records
    writes: bool
    """Whether the desk may change its records."""
    bars: BarService
    scenario: str | None
    """The scenario that the desk trades in; None in the present."""
    settle: Callable[[str], Awaitable[None]]
    """Applies closed bars to an account at its venue."""
    unread: Callable[[str], str | None]
    """Returns why bars of an account's orders could not be read when it was last advanced; None if all were."""
    step_scenario: Callable[[int], Awaitable[bool]]
    """Applies the bars that closed before a time to a scenario; returns False if some of them could not be read."""


class CatchUp:
    """Applies closed bars to the accounts of one trading desk."""

    def __init__(self, parts: CatchUpParts) -> None:
        self._parts = parts
        self._bars = parts.bars
        self._settled = (0, 0.0)
        """Up to which bar this scenario was brought up to date last, and when by monotonic time."""
        self._behind: dict[str, str] = {}
        """By account, why it could not be brought up to date when it was last read or changed."""

    async def account(self, name: str) -> None:
        """Apply the bars that have closed to an account; `behind` says why that failed."""
        if not self._parts.writes:
            return
        try:
            if self._parts.scenario is not None:
                await self._step_scenario()
            else:
                async with during(BarDeadline.SETTLE):
                    await self._parts.settle(name)
        except _FAILURES as error:
            log.warning("the account %s could not be brought up to date: %s", name, error)
            self._behind[name] = error.message
        else:
            self._behind.pop(name, None)

    def behind(self, name: str) -> str | None:
        """Returns why fills that are due may be missing from an account; None if it is up to date."""
        why = self._behind.get(name) or self._parts.unread(name)
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
        parts = self._parts
        if parts.scenario is None or not parts.writes or not await parts.records.is_created():
            return
        until, now = self._bars.closed_until(), time.monotonic()
        # Orders and alerts that were added since are about later bars.
        if self._settled[0] == until and now - self._settled[1] < _SETTLED_SECONDS:
            return
        self._settled = (until, now) if await parts.step_scenario(until) else (0, 0.0)

    async def every_account(self, until: float, matching: PaperMatching) -> None:
        """Apply the bars that had closed by a time to every paper account; failures are logged."""
        try:
            await matching.step(None, min(self._bars.closed_until(), int(until // MINUTE * MINUTE)))
        except OpenbellError as error:
            log.warning("accounts could not be brought up to date: %s", error)
