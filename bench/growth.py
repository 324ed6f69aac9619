"""How costs grow: the same work at 1 ×, 10 × and 100 × the bars, symbols and alerts.

Work that is done for every bar, symbol or alert may grow with their number: from 10 × to 100 × at most 15-fold. Reads of the
newest bars, the tool list and the memory of a server must not grow: at 100 × at most 1.5 times what they are at 1 ×.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.clocks import HandClock

from history import NOW, SOURCE, days, instruments
from measure import Client, row, rows
from openbell.desk.desk import Desk
from openbell.desk.importing import ImportOptions, read
from openbell.desk.settings import load
from openbell.feeds.sim.bars import minute_bars
from openbell.market.bars import MINUTE, Bars, resample
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from openbell.stores.records.journal import Journal
from openbell.trading import amounts
from openbell.trading.alerts import Alert, Type

OPENBELL = [sys.executable, "-m", "openbell.cli.entry"]
SCALES = (1, 10, 100)
BARS, SYMBOLS, ALERTS = 5_000, 50, 100
BTC = parse("BTC/USD")
FASTER, LEVEL = 15.0, 1.5
REPEAT = 7


def best(work: Callable[[], object], repeat: int = REPEAT) -> float:
    """The least time of several runs in ms: growth is compared, not noise."""
    spent = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        spent.append((time.perf_counter() - began) * 1000)
    return min(spent)


def grows(what: str, found: list[float]) -> None:
    """A row for work that may grow with its size."""
    growth = found[2] / found[1]
    row(what, f"{_figures(found)}: {growth:.1f} ×", f"≤ {FASTER:g} × for 10 ×", growth <= FASTER)


def level(what: str, found: list[float], unit: str = "ms", slack: float = 0.5) -> None:
    """A row for what must not grow."""
    met = found[2] <= LEVEL * found[0] + slack
    row(what, _figures(found, unit), f"≤ {LEVEL:g} × at 100 ×", met)


def _figures(found: list[float], unit: str = "ms") -> str:
    return " · ".join(f"{each:.3g}" for each in found) + f" {unit}"


def stored_bars(folder: Path) -> None:
    base = minute_bars(BTC, 7, NOW - BARS * SCALES[-1] * MINUTE, NOW)
    writes, reads, newest, hours, lists, memory = ([] for _ in range(6))
    for scale in SCALES:
        bars, home = base.tail(BARS * scale), folder / f"bars-{scale}"
        with closing(ParquetStore(home / "data")) as store:
            began = time.perf_counter()
            store.write([bars], SOURCE, covers=Span(int(bars.time[0]), NOW))
            writes.append((time.perf_counter() - began) * 1000)
            series = Series(BTC)
            reads.append(best(lambda: store.read(series, 0, NOW), 3))  # noqa: B023 - called at once
            newest.append(best(lambda: store.tail(series, 300, NOW)))  # noqa: B023
            hours.append(best(lambda: store.resampled(series, Timeframe.H1, 30, NOW)))  # noqa: B023
        client = Client([*OPENBELL, "mcp", "market-data"], str(home), FEED="none", AS_OF=str(NOW))
        client.call("get_candles", {"symbol": "BTC/USD", "timeframe": "1h", "limit": 50})
        lists.append(best(lambda: client.request("tools/list", {})))  # noqa: B023
        memory.append(client.memory_mb("VmRSS"))
        client.close()
    size = "5k · 50k · 500k bars"
    grows(f"store: write {size}", writes)
    grows(f"store: read {size}", reads)
    level(f"store: newest 300 of {size}", newest)
    level(f"store: newest 30 hours of {size}", hours)
    level(f"tools/list with {size} stored", lists)
    level(f"memory of market-data with {size} stored", memory, "MB")


def resampled() -> None:
    base = minute_bars(BTC, 7, NOW - BARS * SCALES[-1] * MINUTE, NOW)
    found = [best(lambda: resample(base.tail(BARS * scale), Timeframe.H1, NOW)) for scale in SCALES]  # noqa: B023
    grows("resample 5k · 50k · 500k minutes to hours", found)


def imported(folder: Path) -> None:
    base = minute_bars(BTC, 7, NOW - BARS * SCALES[-1] * MINUTE, NOW)
    found = []
    for scale in SCALES:
        path = folder / f"rows-{scale}.csv"
        _write(path, base.tail(BARS * scale))
        found.append(best(lambda: read(path, ImportOptions(BTC), NOW), 3))  # noqa: B023
    grows("import: read 5k · 50k · 500k rows of CSV", found)


def _write(path: Path, bars: Bars) -> None:
    rows_ = zip(*(column.tolist() for column in bars.columns()), strict=True)
    path.write_text(
        "timestamp,open,high,low,close,volume\n" + "".join(f"{','.join(map(repr, each))}\n" for each in rows_)
    )


def symbols(folder: Path) -> None:
    known = instruments(SYMBOLS * SCALES[-1])
    screens, reads, lists = [], [], []
    with closing(ParquetStore(folder / "symbols" / "data")) as store:
        done = 0
        for scale in SCALES:
            count = SYMBOLS * scale
            for at in range(done, count, 50):
                parts = [days(each, 2) for each in known[at : at + 50]]
                store.write(parts, SOURCE, covers={part.series: [Span(int(part.time[0]), NOW)] for part in parts})
            done = count
            assert len(store.newest(Timeframe.D1, NOW)) == count
            screens.append(best(lambda: store.newest(Timeframe.D1, NOW)))
            one = Series(known[7], Timeframe.D1)
            reads.append(best(lambda: store.resampled(one, Timeframe.D1, 300, NOW)))  # noqa: B023
            client = Client([*OPENBELL, "mcp", "market-data"], str(folder / "symbols"), FEED="none", AS_OF=str(NOW))
            lists.append(best(lambda: client.request("tools/list", {})))  # noqa: B023
            client.close()
    size = "50 · 500 · 5,000 symbols"
    grows(f"a screen over the newest day of {size}", screens)
    level(f"newest 300 days of one of {size}", reads)
    level(f"tools/list with {size} stored", lists)


async def alerts(folder: Path) -> None:
    found = [await _minute_of_alerts(folder / f"alerts-{scale}", ALERTS * scale, 5 * scale) for scale in SCALES]
    grows("a minute of 100 · 1,000 · 10,000 alerts on 5 · 50 · 500 symbols", found)


async def _minute_of_alerts(home: Path, count: int, symbols_: int) -> float:
    """The median minute of an engine with so many price alerts that do not fire, in ms."""
    clock = HandClock(NOW + 1)
    desk = Desk(load({"OPENBELL_HOME": str(home), "OPENBELL_FEED": "none", "OPENBELL_TRADE": "1"}))
    desk.clock = clock
    known = [parse(f"{each.symbol}/USD") for each in instruments(symbols_)]
    base = minute_bars(BTC, 7, NOW - 100 * MINUTE, NOW + 20 * MINUTE)

    def part(start: int, end: int) -> list[Bars]:
        return [Bars(each, Timeframe.M1, *base.between(start, end).columns()) for each in known]

    desk.store.write(part(0, NOW), SOURCE)
    last, chance = float(base.between(0, NOW).close[-1]), random.Random(7)

    def fill(journal: Journal) -> None:
        for number in range(count):
            symbol = known[number % symbols_].symbol
            level_ = amounts.price(round(last * chance.uniform(2, 3), 2))
            one = Alert(f"alert_{number}", "local", symbol, symbol, "1m", Type.PRICE_ABOVE, NOW, level_)
            journal.put("alert", one, new=True)

    trading = desk.trading
    await trading.records.write(fill)
    await trading.engine.step(None)
    spent = []
    for minute in range(NOW, NOW + 20 * MINUTE, MINUTE):
        desk.store.write(part(minute, minute + MINUTE), SOURCE)
        clock.advance(MINUTE)
        began = time.perf_counter()
        await trading.engine.step(None)
        spent.append((time.perf_counter() - began) * 1000)
    await desk.close()
    return statistics.median(spent)


def main() -> int:
    """Measure and print."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        stored_bars(folder)
        resampled()
        imported(folder)
        symbols(folder)
        asyncio.run(alerts(folder))
    return len([met for *_, met in rows if not met]) and 0


if __name__ == "__main__":
    sys.exit(main())
