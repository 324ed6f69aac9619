"""What bars are made of, for tests of the bar service."""

from __future__ import annotations

from openbell.desk.bars.facts import bar_facts
from openbell.desk.bars.service import BarService
from openbell.market.bars import Bars


async def made_of(service: BarService, bars: Bars) -> str | None:
    """The timeframes of the stored bars that bars are made of."""
    return (await bar_facts(service, bars)).made_of
