"""Single tools over stdio, as a client meets them: one client, fixed data, a clock that stands.

Every call of a round is timed from the request's first byte to the answer's last; a row shows the median, and the fastest
call in brackets. Servers start from nothing, and the first call of each, which fetches or reads its bars, is not counted.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measure import Client, row, rows
from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.charts.picture import picture
from openbell.desk.desk import Desk
from openbell.desk.pictures.indicators import Evaluation
from openbell.desk.settings import load
from openbell.feeds.sim.bars import minute_bars
from openbell.indicators.evaluation import parse_requests
from openbell.market.bars import MINUTE, Bars
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore

OPENBELL = [sys.executable, "-m", "openbell.cli.entry"]
NOW = 1_763_000_000 // 86400 * 86400 + 18 * 3600
"""Of a Wednesday in a regular session, in the middle of a month: 2025-11-12T18:00:00Z."""
SYMBOLS = 500
DEPTH = 3000
STORED = 500_000
ROUNDS, CALLS = 5, 20
MINUTES = 15
QUICK = 400
"""A replay at this speed has a new minute every 0.15 s."""
SOURCE = Source(Origin.IMPORTED, "import")
INDICATORS: list[Any] = ["bbands", "ema_stack", "rsi", "macd"]


def server(home: Path, name: str, **settings: str) -> Client:
    return Client([*OPENBELL, "mcp", name], str(home), **{"AS_OF": str(NOW), "TIMEOUT": "60", **settings})


def spent(work: Callable[[], Any], count: int = CALLS) -> list[float]:
    """How long each of so many calls took, in ms."""
    found = []
    for _ in range(count):
        began = time.perf_counter()
        work()
        found.append((time.perf_counter() - began) * 1000)
    return found


def asked(client: Client, tool: str, arguments: dict[str, Any] | None = None) -> Any:
    """The result of a call, which must be no error."""
    result = client.call(tool, arguments)
    assert not result["isError"], result
    return result


def shown(what: str, found: list[float], most: float) -> None:
    """A row: the median and the fastest call."""
    median = statistics.median(found)
    row(what, f"{median:.1f} ms ({min(found):.1f})", f"≤ {most:g} ms", median <= most)


def rows_of(result: Any) -> list[Any]:
    """The rows of a watchlist, all of them ready."""
    listed = result["structuredContent"]["watchlist"]
    found = [*listed["stocks"], *listed["crypto"]]
    assert all(each["price"] is not None and each["rsi"] is not None for each in found), found
    return found


def watchlist(home: Path) -> None:
    """The default one, on the simulator."""
    client = server(home, "chart-signals")
    assert len(rows_of(asked(client, "get_watchlist"))) == 22
    found = spent(lambda: asked(client, "get_watchlist"), ROUNDS * CALLS)
    client.close()
    shown("get_watchlist of 22 symbols, warm", found, 12)
    client = server(home, "chart-signals", REPLAY_SPEED=str(QUICK))
    fresh = []
    for _ in range(CALLS):
        rows_of(asked(client, "get_watchlist"))
        time.sleep(MINUTE / QUICK)
        fresh += spent(lambda: asked(client, "get_watchlist"), 1)
    client.close()
    figure = f"{statistics.median(fresh):.1f} ms ({min(fresh):.1f})"
    row("  in a new minute, which the server itself fetches", figure, "(none)", True)


def instruments() -> list[Instrument]:
    """Half of them stocks, none of which the simulator has."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    names = [f"Q{letters[n // 26]}{letters[n % 26]}Z" for n in range(SYMBOLS // 2)]
    return [parse(name) for name in names] + [parse(f"{name}/USD") for name in names]


def renamed(bars: dict[str, Bars], listed: list[Instrument], start: int, end: int) -> list[Bars]:
    """The bars of a stock and of a coin in a span, under every instrument's name."""
    cut = {name: each.between(start, end) for name, each in bars.items()}
    return [Bars(each, Timeframe.M1, *cut["BTC/USD" if "/" in each.symbol else "AAPL"].columns()) for each in listed]


def large_watchlist(home: Path) -> None:
    """500 stored symbols without a feed: warm, and after another process has stored a minute of all of them."""
    listed = instruments()
    home.mkdir()
    (home / "watchlist.txt").write_text("\n".join(each.symbol for each in listed) + "\n")
    simulated = {name: minute_bars(parse(name), 7, NOW - 10 * 86400, NOW) for name in ("BTC/USD", "AAPL")}
    last = NOW - MINUTES * MINUTE
    desk = Desk(load({"OPENBELL_HOME": str(home), "OPENBELL_FEED": "none"}))
    store: BarStore = desk.store
    for part in renamed(simulated, listed, 0, last):
        store.write([part.tail(DEPTH)], SOURCE)
    client = server(home, "chart-signals", FEED="none")
    first = spent(lambda: asked(client, "get_watchlist"), 1)
    assert len(rows_of(asked(client, "get_watchlist"))) == SYMBOLS
    warm = spent(lambda: asked(client, "get_watchlist"), 2 * CALLS)
    fresh = []
    for minute in range(last, NOW, MINUTE):
        store.write(renamed(simulated, listed, minute, minute + MINUTE), SOURCE)
        fresh += spent(lambda: asked(client, "get_watchlist"), 1)
    result = asked(client, "get_watchlist")
    assert result["_meta"]["openbell/truth"]["age_s"] == 0, result["_meta"]
    client.close()
    asyncio.run(desk.close())
    shown(f"get_watchlist of {SYMBOLS} symbols, warm", warm, 200)
    figure = f"{statistics.median(fresh):.0f} ms ({min(fresh):.0f})"
    row("  after a new minute of all of them", figure, "(none)", True)
    row("  the first of a process", f"{first[0]:.0f} ms", "(none)", True)


def chart(home: Path) -> None:
    """What a picture costs a client beyond its drawing, which is measured in this process between the calls."""
    client = server(home, "chartgen")
    given = {"symbol": "BTC/USD", "timeframe": "1h", "bars": 200, "indicators": INDICATORS}
    asked(client, "generate_chart", given)
    desk = Desk(load({"OPENBELL_HOME": str(home), "OPENBELL_AS_OF": str(NOW)}))

    async def evaluated() -> Evaluation:
        wanted = parse_requests(INDICATORS)
        found = await desk.indicators.evaluate(parse("BTC/USD"), Timeframe.H1, 200, wanted)
        await desk.close()
        return found

    found, look = asyncio.run(evaluated()), Look()

    def draw() -> bytes:
        scene = compose(found.bars, found.indicators, look, "BTC/USD · 1h", "SIMULATED", found.whole)
        return picture(scene, look.scale)

    draw()
    whole, drawing = [], []
    for _ in range(ROUNDS):
        whole += spent(lambda: asked(client, "generate_chart", given))
        drawing += spent(draw)
    client.close()
    beyond, least = statistics.median(whole) - statistics.median(drawing), min(whole) - min(drawing)
    figure = f"{beyond:.1f} ms ({least:.1f}) of {statistics.median(whole):.1f}"
    row("generate_chart beyond drawing, 200 bars, 4 indicators", figure, "≤ 6 ms", beyond <= 6)


def candles(home: Path, stored: Path) -> None:
    """The cache bypassed: on the simulator, and of minutes that were imported, without a feed."""
    desk = Desk(load({"OPENBELL_HOME": str(stored), "OPENBELL_FEED": "none"}))
    desk.store.write([minute_bars(parse("BTC/USD"), 7, NOW - STORED * MINUTE, NOW)], SOURCE)
    asyncio.run(desk.close())
    given = {"symbol": "BTC/USD", "timeframe": "1h", "limit": 100, "force_refresh": True}
    for what, where, feed in (("simulated", home, "sim"), (f"of {STORED:,} stored minutes", stored, "none")):
        client = server(where, "market-data", FEED=feed)
        assert len(asked(client, "get_candles", given)["structuredContent"]["data"]["items"]) == 100
        found = spent(lambda: asked(client, "get_candles", given), ROUNDS * CALLS)  # noqa: B023 - called at once
        client.close()
        shown(f"get_candles(1h, 100), force_refresh, {what}", found, 4)


def main() -> int:
    """Measure and print."""
    with TemporaryDirectory() as folder:
        home = Path(folder) / "sim"
        watchlist(home)
        chart(home)
        candles(home, Path(folder) / "minutes")
        large_watchlist(Path(folder) / "symbols")
    return len([met for *_, met in rows if not met]) and 0


if __name__ == "__main__":
    sys.exit(main())
