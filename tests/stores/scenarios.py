"""Operations during which a process may die: each scenario prepares a folder and runs one operation on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from openbell.market.bars import Bars, closed_at, empty_of, merge
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.buffered import BULK
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.stores.samples import (
    DAY,
    END,
    EVER,
    FILE,
    LIVE,
    MINUTE,
    NOVEMBER,
    OCTOBER,
    SEPTEMBER,
    START,
    bars,
    minutes_of,
    run,
    whole,
)

AAPL, MSFT = minutes_of("AAPL"), minutes_of("MSFT")
IN_FILE = run(AAPL, SEPTEMBER, BULK)
IN_BUFFER = run(AAPL, SEPTEMBER + 1990 * MINUTE, 50, 2)
BESIDE = run(AAPL, SEPTEMBER + 10 * DAY, BULK, 5)
"""Minutes of another source in the same month."""
BEFORE = merge(IN_FILE, IN_BUFFER, BESIDE, run(AAPL, OCTOBER, 30, 2))
OTHERS = run(MSFT, OCTOBER, 40)
NEW = run(AAPL, SEPTEMBER + 1995 * MINUTE, 10, 3)
LARGE = merge(run(AAPL, SEPTEMBER + 1950 * MINUTE, BULK, 3), run(AAPL, OCTOBER - 9 * MINUTE, 2000, 3))
OTHER_SOURCE = run(AAPL, SEPTEMBER + DAY, 300, 4)
DAYS = whole("AAPL", Timeframe.D1)
QUARTERS, FIRST_QUARTERS = whole("AAPL", Timeframe.M15, 3), whole("MSFT", Timeframe.M15, 3)
"""Bars of three periods, each of which has a file."""
IN_JANUARY = bars(QUARTERS.series, QUARTERS.time[2000:2100])
NATIVE = {DAYS.series: DAYS, QUARTERS.series: IN_JANUARY, FIRST_QUARTERS.series: empty_of(FIRST_QUARTERS.series)}
"""The native series of scenarios and what is stored of them before."""
PAST, COVERED = Span(SEPTEMBER - DAY, SEPTEMBER), Span(SEPTEMBER, NOVEMBER)


@dataclass(frozen=True)
class Scenario:
    """`operate` is interrupted; `after` are the stored bars once it is done; `whole`: it takes effect at once."""

    operate: Callable[[ParquetStore], object]
    after: dict[Series, Bars]
    damage: Callable[[Path], object] = lambda _folder: None
    lost: Span | None = None
    """The span that the damage has removed, whether or not it was noticed."""
    replaced: Span | None = None
    """The span that is no longer covered once it is done."""
    whole: bool = True
    covers: Span | None = None
    uncovered: list[Span] = field(default_factory=list)
    """The gaps of the days once it is done; before, they have none."""

    @property
    def before(self) -> dict[Series, Bars]:
        """The stored bars until then."""
        minutes = {AAPL: BEFORE if self.lost is None else _without(self.lost, BEFORE), MSFT: OTHERS}
        return {**minutes, **{series: some for series, some in NATIVE.items() if series in self.after}}


def prepare(folder: Path) -> None:
    """Bars in files and in the buffer, some in both, all covered."""
    store = ParquetStore(folder)
    store.write([IN_FILE], LIVE, covers=COVERED)
    store.write([IN_BUFFER, OTHERS], LIVE, covers=COVERED)
    store.write([run(AAPL, OCTOBER, 30, 2)], LIVE)
    store.write([BESIDE], FILE)
    store.write([DAYS], LIVE, covers=Span(START, END))
    store.write([IN_JANUARY], LIVE)
    store.close()


def _without(lost: Span, some: Bars) -> Bars:
    """The bars without those of a damaged file, except those in the buffer."""
    return merge(some.between(0, lost.start), some.between(lost.end, EVER), IN_BUFFER, BESIDE)


def _spoil(folder: Path) -> None:
    path = folder / "stocks/1min/AAPL_2025-09.parquet"
    path.write_bytes(path.read_bytes()[:-1])


def _spoil_unmarked(folder: Path) -> None:
    """As after the loss of the buffer: only the month file names its source."""
    _spoil(folder)
    store = ParquetStore(folder)
    with store._buffer.transaction() as db:
        db.execute("DELETE FROM months")
    store.close()


def _write(*parts: Bars, covers: Span | None = None) -> Callable[[ParquetStore], object]:
    return lambda store: store.write(parts, LIVE, covers=covers)


def _import_days(days: Bars, source: Source = FILE) -> Scenario:
    """Days of a file that replace those of a feed: all of the feed's if they are adjusted in another way."""
    span = Span(int(days.time[0]), closed_at(days))
    kept = DAYS.take(~np.isin(DAYS.time, days.time)) if source.adjustment == LIVE.adjustment else empty_of(DAYS.series)
    gaps = [] if len(kept) or len(days) == len(DAYS) else [Span(START, span.start)]
    return Scenario(
        lambda store: store.write([days], source, covers=span, replace=True),
        {DAYS.series: merge(kept, days)},
        uncovered=[*gaps, Span(span.end, END)] if gaps else [],
    )


_HELD = merge(IN_BUFFER, BESIDE, BEFORE.between(OCTOBER, EVER))
_MONTH = Span(SEPTEMBER, OCTOBER)
_REPLACED = Span(int(OTHER_SOURCE.time[0]), int(OTHER_SOURCE.time[-1]) + 1)

SCENARIOS: dict[str, Scenario] = {
    "small": Scenario(
        _write(NEW, run(MSFT, SEPTEMBER, 2, 3), covers=PAST),
        {
            AAPL: merge(BEFORE, NEW),
            MSFT: merge(OTHERS, run(MSFT, SEPTEMBER, 2, 3)),
        },
        covers=PAST,
    ),
    "large": Scenario(_write(LARGE, covers=PAST), {AAPL: merge(BEFORE, LARGE)}, whole=False, covers=PAST),
    "compact": Scenario(lambda store: store.compact(EVER), {}),
    "compact some": Scenario(lambda store: store.compact(SEPTEMBER + 2000 * MINUTE), {}),
    "replace": Scenario(
        lambda store: store.write([OTHER_SOURCE], FILE, replace=True),
        {AAPL: merge(BEFORE, OTHER_SOURCE)},
        replaced=_REPLACED,
    ),
    "read damaged": Scenario(lambda store: store.read(AAPL, 0, EVER), {}, _spoil, _MONTH),
    "tail damaged": Scenario(lambda store: store.tail(AAPL, 999, EVER), {}, _spoil_unmarked, _MONTH),
    "small on damaged": Scenario(_write(NEW), {AAPL: merge(_HELD, NEW)}, _spoil_unmarked, _MONTH),
    "large on damaged": Scenario(_write(LARGE), {AAPL: merge(_HELD, LARGE)}, _spoil, _MONTH, whole=False),
    "compact on damaged": Scenario(lambda store: store.compact(EVER), {}, _spoil, _MONTH),
    "replace on damaged": Scenario(
        lambda store: store.write([OTHER_SOURCE], FILE, replace=True),
        {AAPL: merge(_HELD, OTHER_SOURCE)},
        _spoil,
        _MONTH,
    ),
    "lease": Scenario(lambda store: store.leases.renew(store.leases.acquire("collector", "me", 60), 60), {}),
    "days": Scenario(
        lambda store: store.write([bars(DAYS.series, DAYS.time[5:], 7)], LIVE, covers=Span(START, END)),
        {DAYS.series: merge(DAYS, bars(DAYS.series, DAYS.time[5:], 7))},
    ),
    "new periods": Scenario(_write(QUARTERS), {QUARTERS.series: QUARTERS}, whole=False),
    "first periods": Scenario(_write(FIRST_QUARTERS), {FIRST_QUARTERS.series: FIRST_QUARTERS}, whole=False),
    "import some days": _import_days(bars(DAYS.series, DAYS.time[-9:-3], 7)),
    "import all days": _import_days(bars(DAYS.series, DAYS.time, 7)),
    "import adjusted days": _import_days(bars(DAYS.series, DAYS.time[-9:-3], 7), replace(FILE, adjustment="all")),
    "cover": Scenario(_write(empty_of(AAPL), covers=PAST), {}, covers=PAST),
}
