"""The account on a chart. A chart is drawn even if the account cannot be read; the overlay then has the reason."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from openbell.charts.account.overlay import AccountOverlay, missing_overlay, overlay_of
from openbell.desk.trading.symbol_records import symbol_records
from openbell.market.bars import Bars
from openbell.market.errors import OpenbellError

if TYPE_CHECKING:
    from openbell.desk.desk import Desk

log = logging.getLogger(__name__)
_READ_ONLY = "read-only: orders are shown as they were last recorded, and may have filled since"


async def account_overlay(desk: Desk, principal: str, bars: Bars, *, refused: str | None = None) -> AccountOverlay:
    """Returns what a chart of these bars shows of a principal's account.

    `refused` is the reason if the principal may read fills and positions, but not working orders and alerts.
    """
    try:
        records = await symbol_records(desk.trading, principal, bars.instrument.symbol, with_intentions=refused is None)
    except OpenbellError as error:
        log.debug("the account is not on the chart: %s", error)
        return missing_overlay(desk.account, bars, error.message)
    notes = [
        f"working orders and alerts are not shown: {refused}" if refused else None,
        _READ_ONLY if desk.settings.read_only and records.orders else None,
    ]
    return overlay_of(records, desk.account, bars, "; ".join(filter(None, notes)) or None)
