"""Signals for alerts: kept streams find exactly what arrays find, whatever happens to the bars in between."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from openbell.desk.bars import BarService
from openbell.desk.followers import SignalFollowers
from openbell.desk.indicators import IndicatorService
from openbell.feeds.none.feed import NoFeed
from openbell.indicators.evaluation import IndicatorRequest, evaluate
from openbell.indicators.follower import Follower
from openbell.indicators.registry import all_indicators
from openbell.market.bars import MINUTE, Bars, bucket_bounds, make
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet import ParquetStore
from tests.clocks import HandClock
from tests.servers.desks import awaited

SOURCE = Source(Origin.IMPORTED, "import")
START = 1_758_240_000  # a midnight
EMITTING = [each for each in all_indicators().values() if each.signals and not each.needs]
REQUESTS = [IndicatorRequest(each.name, each, each.settings()) for each in EMITTING]


def bars_of(symbol: str, chance: random.Random, first: int, count: int, price: float) -> Bars:
    rows = []
    for number in range(count):
        opened, price = price, round(max(1.0, price * (1 + chance.gauss(0, 0.004))), 2)
        high, low = max(opened, price) + chance.random() / 3, min(opened, price) - chance.random() / 3
        rows.append((first + number * MINUTE, opened, high, low, price, float(chance.randrange(1, 50))))
    return make(parse(symbol), Timeframe.M1, *zip(*rows, strict=True))


def computed(bars: Bars, since: float) -> dict[str, list[tuple[int, str]]]:
    """By indicator the signals of bars that closed after a time, from arrays."""
    ends = bucket_bounds(bars.instrument, bars.timeframe, bars.time)[1]
    return {
        each.request.indicator.name: [
            (int(bars.time[signal.index]), signal.label)
            for signal in each.channels.signals
            if ends[signal.index] > since
        ]
        for each in evaluate(bars, len(bars), REQUESTS, {}, None)
    }


@pytest.mark.parametrize("symbol", ["BTC/USD", "AAPL"])
@pytest.mark.parametrize("timeframe", [Timeframe.M1, Timeframe.M15])
@awaited
async def test_every_new_signal_is_found_once(
    tmp_path: Path, symbol: str, timeframe: Timeframe, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"{symbol} {timeframe}")
    built: list[str] = []
    monkeypatch.setattr(Follower, "update", _counted(Follower.update, built))
    store, clock, worker = ParquetStore(tmp_path), HandClock(float(START)), ThreadPoolExecutor(1)
    feed = NoFeed()
    service = BarService(store, feed, clock)
    followers = SignalFollowers(service, IndicatorService(service, feed, worker))
    history = bars_of(symbol, chance, START - 2000 * MINUTE, 2000, 100.0)
    store.write([history], SOURCE)
    price, since, seen = float(history.close[-1]), float(START), 0
    for _ in range(40):
        count = chance.choice((1, 1, 1, 5, 17, 40))
        new = bars_of(symbol, chance, int(clock.epoch()), count, price)
        price = float(new.close[-1])
        store.write([new], SOURCE)
        clock.advance(count * MINUTE)
        if chance.random() < 0.15:  # a correction of bars that were followed
            at = int(clock.epoch()) - chance.randrange(50, 400) * MINUTE
            store.write([bars_of(symbol, chance, at, 3, price)], SOURCE)
        followers.begin_round()
        found = await followers.since(parse(symbol), timeframe, REQUESTS, since)
        wanted = computed(await service.latest(parse(symbol), timeframe), since)
        ends = bucket_bounds(found.bars.instrument, timeframe, found.bars.time)[1]
        told = {
            name: [(int(found.bars.time[s.index]), s.label) for s in signals if ends[s.index] > since]
            for name, signals in found.by_name.items()
        }
        assert told == wanted
        seen += sum(map(len, wanted.values()))
        if chance.random() < 0.8:  # otherwise what was found could not be recorded, and is asked for again
            since = clock.epoch()
        if chance.random() < 0.3:  # streams are warmed up before the next bars
            await followers.prepare(await service.latest(parse(symbol), timeframe), REQUESTS)
    assert seen > 20
    assert built, "nothing was followed"
    worker.shutdown()
    store.close()


def _counted(update: object, built: list[str]) -> object:
    def counting(self: Follower, *given: object) -> object:
        built.append("followed")
        return update(self, *given)  # type: ignore[operator]

    return counting
