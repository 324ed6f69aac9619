"""What a chart shows of a closed bar never changes: not with the weekend, a holiday, a change of clocks or the next bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.indicators.evaluation import parse_requests
from openbell.market.instruments import parse
from openbell.market.timeframes import SHORT, parse_timeframe
from tests.servers.desks import awaited


async def shown(home: Path, symbol: str, timeframe: str, as_of: str, indicator: dict[str, Any]) -> dict[int, Any]:
    """By the open of each bar, the values of the lines and the levels that begin at it."""
    async with Desk(load({"OPENBELL_HOME": str(home), "OPENBELL_AS_OF": as_of, "OPENBELL_TIMEOUT": "60"})) as desk:
        wanted = parse_requests([indicator])
        found = await desk.indicators.evaluate(parse(symbol), parse_timeframe(timeframe, SHORT), 12, wanted)
        channels = found.indicators[0].channels
        values: dict[int, Any] = {int(time): [] for time in found.bars.time}
        for line in (*channels.lines, *channels.histogram):
            for time, value in zip(found.bars.time.tolist(), line.values[-len(found.bars) :].tolist(), strict=True):
                values[time].append(value)
        for level in channels.divlines:
            values[int(found.bars.time[level.x1])].append(level.y1)
        return values


@pytest.mark.parametrize(
    ("symbol", "timeframe", "indicator", "closed", "later"),
    [
        ("AAPL", "1d", {"name": "fear_greed"}, "2026-03-06T22:00Z", "2026-03-07T14:00Z"),
        ("AAPL", "1d", {"name": "cvd"}, "2026-03-06T22:00Z", "2026-03-07T14:00Z"),
        ("AAPL", "1w", {"name": "cvd"}, "2026-01-23T22:00Z", "2026-01-28T12:00Z"),  # after a holiday on Monday
        ("EUR/USD", "1w", {"name": "cvd"}, "2026-03-06T22:30Z", "2026-03-10T12:00Z"),  # clocks go forward
        ("AAPL", "1w", {"name": "session_vp"}, "2026-01-23T22:00Z", "2026-01-28T12:00Z"),
        ("AAPL", "1w", {"name": "tpo"}, "2026-01-23T22:00Z", "2026-01-28T12:00Z"),
        ("EUR/USD", "1w", {"name": "session_vp"}, "2026-03-06T22:30Z", "2026-03-10T12:00Z"),
        ("AAPL", "1w", {"name": "session_vp", "session": "weekly"}, "2026-03-06T22:00Z", "2026-03-10T12:00Z"),
    ],
)
def test_values_of_a_closed_bar_are_the_same_later(
    tmp_path: Path, symbol: str, timeframe: str, indicator: dict[str, Any], closed: str, later: str
) -> None:
    @awaited
    async def ask() -> None:
        before = await shown(tmp_path, symbol, timeframe, closed, indicator)
        after = await shown(tmp_path, symbol, timeframe, later, indicator)
        last = max(before)
        assert before[last], "the closed bar has values"
        assert before[last] == pytest.approx(after[last], rel=1e-12)

    ask()


def test_a_weekly_bar_has_one_profile(tmp_path: Path) -> None:
    @awaited
    async def ask() -> None:
        for symbol in ("AAPL", "EUR/USD"):
            daily, weekly = [
                await shown(tmp_path, symbol, "1w", "2026-03-28T12:00Z", {"name": "session_vp", "session": session})
                for session in ("daily", "weekly")
            ]
            assert daily == weekly

    ask()
