"""Compares the bars that were written with those that are stored, in the background of a collector's start.

A file may have been deleted, a database dropped or restored from an older copy. Lost bars become gaps: they are fetched
when a tool needs them, and those that a chart of 3,000 minutes needs at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from typing import ParamSpec, TypeVar

from openbell.desk.bars.service import BarService
from openbell.market.errors import SourceConflict, StoreError
from openbell.market.instruments import Instrument
from openbell.market.lookback import lookback_start
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Loss, Span

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

_LONGEST = 600.0
"""Seconds after which the check ends, so that a slow database is not kept busy."""
_PAUSE = 30.0
"""Seconds between two attempts while the database cannot be reached."""


async def check_stored(bars: BarService, watched: Collection[Instrument]) -> list[Loss]:
    """Make lost bars of every series gaps, and fetch the latest ones of watched instruments. Returns the losses.

    One series at a time, so that other work comes in between.
    """
    deadline = time.monotonic() + _LONGEST
    lost: list[Loss] = []
    left = None
    while time.monotonic() < deadline:
        try:
            if left is None:
                if await _call(bars, bars.store.audit.mend_made):
                    log.error("bars that are made of minutes were lost in %s: they are made again", bars.store.name)
                left = await _call(bars, bars.store.audit.to_check)
            while left and time.monotonic() < deadline:
                lost += await _call(bars, bars.store.audit.mend_losses, left[0])
                left.pop(0)
        except StoreError as error:
            log.warning("the stored bars were not checked: %s; trying again in %.0f s", error, _PAUSE)
            await asyncio.sleep(_PAUSE)
            continue
        break
    if left:
        log.warning("%d series were not checked within %.0f s: openbell doctor checks them", len(left), _LONGEST)
    if lost:
        log.error("%d periods have lost bars: openbell doctor lists them", len(lost))
    for instrument in {loss.series.instrument for loss in lost} & set(watched):
        await _fetch(bars, instrument)
    return lost


async def _call(bars: BarService, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the store in a thread. A cancelled check waits for the call: nothing may use the store once it is closed."""
    call = asyncio.ensure_future(bars.threads.run(work, *args, **kwargs))
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        await asyncio.gather(call, return_exceptions=True)
        raise


async def _fetch(bars: BarService, instrument: Instrument) -> None:
    """Fetch the latest minutes again: the stream does not deliver them a second time."""
    until = bars.closed_until()
    failure = await bars.fill(instrument, Span(lookback_start(instrument, Timeframe.M1, 3000, until), until))
    if failure and not isinstance(failure, SourceConflict):
        log.warning("%s: lost bars could not be fetched: %s", instrument, failure)
