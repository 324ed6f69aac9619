"""Entries and exits of strategies that compare the close with the session's VWAP, from the published definitions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import sqrt
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tests.strategies.plain_comparisons import under
from tests.strategies.plain_rules import ema, over, where

NEW_YORK = ZoneInfo("America/New_York")


class SessionRow(NamedTuple):
    """A bar within a day. `session` is None outside of regular hours."""

    open: float
    high: float
    low: float
    close: float
    volume: float
    session: str | None


def session_of_stock(time: int) -> str | None:
    """The date of the regular session at a time, on days that close at 16:00."""
    local = datetime.fromtimestamp(time, NEW_YORK)
    return f"{local:%Y-%m-%d}" if "09:30" <= f"{local:%H:%M}" < "16:00" else None


def session_of_coin(time: int) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}"


def average_and_deviation(rows: Sequence[SessionRow]) -> list[tuple[float | None, float | None]]:
    """The volume-weighted mean of the typical prices of the session so far, and their deviation from it."""
    found: list[tuple[float | None, float | None]] = []
    traded: list[tuple[float, float]] = []
    for at, row in enumerate(rows):
        if at == 0 or row.session != rows[at - 1].session:
            traded = []
        if row.session is None:
            found.append((None, None))
            continue
        traded.append(((row.high + row.low + row.close) / 3, row.volume))
        volume = sum(weight for _, weight in traded)
        mean = sum(price * weight for price, weight in traded) / volume
        found.append((mean, sqrt(sum(weight * (price - mean) ** 2 for price, weight in traded) / volume)))
    return found


def crossover_entries(rows: Sequence[SessionRow]) -> list[int]:
    """A session's first bar has no deviation, so there is no entry at it."""
    trend, vwap = ema([row.close for row in rows], 9), average_and_deviation(rows)

    def holds(at: int) -> bool:
        (before, _), (mean, deviation), close = vwap[at - 1], vwap[at], rows[at].close
        crossed = over(close, mean) and not over(rows[at - 1].close, before)
        return crossed and over(deviation, 0) and over(close, trend[at])

    return where(len(rows), holds)


def crossover_exits(rows: Sequence[SessionRow]) -> list[int]:
    vwap = average_and_deviation(rows)
    return [at for at, (mean, _) in enumerate(vwap) if mean is not None and under(rows[at].close, mean)]


def reversion_entries(rows: Sequence[SessionRow]) -> list[int]:
    vwap = average_and_deviation(rows)

    def holds(at: int) -> bool:
        mean, deviation = vwap[at]
        if mean is None or not deviation:
            return False
        return over(mean, mean - 2 * deviation) and under(rows[at].close, mean - 2 * deviation)

    return where(len(rows), holds)


def reversion_exits(rows: Sequence[SessionRow]) -> list[int]:
    vwap = average_and_deviation(rows)
    return [at for at, (mean, _) in enumerate(vwap) if mean is not None and over(rows[at].close, mean)]


ENTRIES = {"VWAP_CROSSOVER": crossover_entries, "VWAP_MEAN_REVERSION": reversion_entries}
EXITS = {"VWAP_CROSSOVER": crossover_exits, "VWAP_MEAN_REVERSION": reversion_exits}
